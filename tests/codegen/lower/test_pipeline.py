"""Unscheduled functions, compiled, equal NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower.pipeline import lower_kernel
from tilewright.ir.dtype import f32
from tilewright.ir.kernel_errors import UnrolledCodeError
from tilewright.ir.loop.builder import Builder
from tilewright.ir.loop.nodes import Binary
from tilewright.ir.script import parse
from tilewright.ir.symbolic import var
from tilewright.target.target import Target

from tests.codegen.kernels import LEVELS, build


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (16, 8, 33)])
def test_matmul(level: str, shape: tuple[int, int, int]) -> None:
    m, n, k = var("m", lower=1), var("n", lower=1), var("k", lower=1)
    b = Builder("matmul")
    x, y = b.param("x", (m, k), f32), b.param("y", (k, n), f32)
    z = b.param("z", (m, n), f32, "out")
    b.reduce(z, (k,), lambda i, j, r: Binary("mul", b.load(x, i, r), b.load(y, r, j)))
    rng = np.random.default_rng(0)
    left = rng.integers(-4, 5, (shape[0], shape[2])).astype(np.float32)
    right = rng.integers(-4, 5, (shape[2], shape[1])).astype(np.float32)
    out = np.full(shape[:2], np.nan, np.float32)
    assert build(b.finish(), level)(left, right, out) == 0
    np.testing.assert_array_equal(out, left @ right)


LOOPS = "".join("    " * (k + 1) + f"for i{k} in unrolled(10):\n" for k in range(8))
UNROLLED = "@prim_func\ndef f(x: Buffer[(8,), f32], y: Out[(8,), f32]):\n"
UNROLLED += LOOPS + "    " * 9 + "y[0] = y[0] + x[0]\n"


def test_an_error_names_the_pass_that_raised_it() -> None:
    with pytest.raises(UnrolledCodeError) as caught:
        lower_kernel(parse(UNROLLED).prim("f"), Target("cpu"))
    assert caught.value.details["pass"] == "to_thread"
    assert "in pass 'to_thread'" in "".join(caught.value.__notes__)
