"""Bounds checks of debug mode, and loads that a masked or unselected element does not need."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.thread.runtime_table import CODE_BOUNDS

from tests.codegen.kernels import LEVELS, Runtime, build
from tests.ir.script.texts import unverified

HEAD = "n, m = symbols('n m', lower=1)\n\n"


def function(body: str):
    module = unverified(HEAD + "@prim_func\n" + body)
    return next(iter(module.functions.values()))


SHIFTED = """
def shifted(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in vectorized(n):
        with block("shift"):
            vi = spatial(i)
            y[vi] = x[vi + {by}]
"""


def test_debug_mode_reports_the_first_access_outside() -> None:
    kernel = build(function(SHIFTED.format(by=2)), debug=True)
    x, y, runtime = np.arange(6, dtype=np.float32), np.zeros(6, np.float32), Runtime()
    assert kernel(x, y, runtime=runtime) == CODE_BOUNDS
    ((_, text, index, extent),) = runtime.errors
    assert (index, extent) == (6, 6)
    assert text == (
        "x: index of axis 0 is out of bounds in block 'shift', in x[i + 2], "
        "line 8 of 'shifted': y[vi] = x[vi + 2]"
    )
    np.testing.assert_array_equal(y, [2, 3, 4, 5, 0, 0])


def test_debug_mode_lets_correct_programs_pass() -> None:
    kernel = build(function(SHIFTED.format(by=0)), debug=True)
    x, y, runtime = np.arange(6, dtype=np.float32), np.zeros(6, np.float32), Runtime()
    assert kernel(x, y, runtime=runtime) == 0
    np.testing.assert_array_equal(y, x)
    assert not runtime.errors


PADDED = """
def padded(x: Buffer[(n,), f32], y: Out[(n + 2,), f32]):
    for i in vectorized(n + 2):
        with block("pad"):
            vi = spatial(i)
            y[vi] = where(1 <= vi and vi <= n, x[vi - 1], 0.0)
"""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("size", [1, 14, 15, 16, 47])
def test_the_side_of_a_where_not_taken_is_not_read(level: str, size: int, debug: bool) -> None:
    page = np.full(size + 8, np.nan, np.float32)
    x = page[4:-4]
    x[:] = np.arange(size)
    y = np.empty(size + 2, np.float32)
    assert build(function(PADDED), level, debug=debug)(x, y) == 0
    np.testing.assert_array_equal(y, np.pad(x, 1))
