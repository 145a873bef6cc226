"""Vectors whose unused lanes are the padding of a row are stored whole; others keep elements."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.lower import lower_kernel
from tilewright.codegen.lower.to_thread.context import Lanes, LoweringContext
from tilewright.codegen.lower.to_thread.row_padding import skips_only_padding
from tilewright.ir.dtype import f32
from tilewright.ir.interpreter import run_prim
from tilewright.ir.loop.nodes import Buffer
from tilewright.ir.script import parse
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.thread.nodes import Select
from tilewright.ir.thread.visit import statement_values, walk, walk_values
from tilewright.target.target import Target

from tests.codegen.kernels import ALL_LEVELS, LEVELS, build

ROWS = """
@prim_func(scheduled=True)
def f(x: Buffer[(4, {rows}, {row}), f32], y: Out[({rows}, {row}), f32]):
    S = alloc(({rows}, {row}), f32, scope="local")
    for i0 in unrolled({rows}):
        for j0 in vectorized({lanes}):
            with block("start"):
                vi0, vj0 = spatial(i0), spatial({row}, j0)
                guard(j0 < {row})
                S[vi0, vj0] = 1.0
    for k in range(4):
        for i in unrolled({rows}):
            for j in vectorized({lanes}):
                with block("sum"):
                    vi, vj, vk = spatial(i), spatial({row}, j), ordered(k)
                    guard({guard})
                    S[vi, vj] = S[vi, vj] * 2.0 + x[vk, vi, vj]
    for i1 in unrolled({rows}):
        for j1 in vectorized({lanes}):
            with block("end"):
                vi1, vj1 = spatial(i1), spatial({row}, j1)
                guard(j1 < {row})
                y[vi1, vj1] = S[vi1, vj1]
"""


def program(*, rows=3, row=5, lanes=8, guard=None):
    """Return updates of rows whose vectors are longer than a row."""
    return ROWS.format(rows=rows, row=row, lanes=lanes, guard=guard or f"j < {row}")


GUARDS = {
    "all elements": None,
    "not the last one": "j < {last}",
    "not the first one": "j > 0 and j < {row}",
    "some rows": "i + k < 4 and j < {row}",
    "a diagonal": "j < {row} and i + j < {row}",
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", GUARDS)
def test_results_of_rows_of_all_sizes(name: str, level: str) -> None:
    for rows, row, lanes in ((1, 1, 8), (2, 3, 4), (3, 5, 8), (2, 7, 8), (3, 13, 16), (2, 17, 32)):
        guard = GUARDS[name] and GUARDS[name].format(row=row, last=row - 1)
        text = program(rows=rows, row=row, lanes=lanes, guard=guard)
        func = parse(text).prims[0]
        x = np.random.default_rng(row).integers(-9, 10, (4, rows, row)).astype(np.float32)
        found, wanted = (np.full((rows, row), np.nan, np.float32) for _ in range(2))
        assert build(func, level)(x, found) == 0
        run_prim(func, [x, wanted])
        np.testing.assert_array_equal(found, wanted, str((rows, row, lanes)))


def selects(text: str, level: str) -> int:
    """Return the number of values that keep lanes."""
    kernel = lower_kernel(parse(text).prims[0], Target("cpu", features=(level,)))
    found = (v for s in walk(kernel.function.body) for v in walk_values(statement_values(s)))
    return sum(isinstance(v, Select) for v in found)


@pytest.mark.usefixtures("every_level")
@pytest.mark.parametrize("level", ALL_LEVELS)
def test_lanes_are_kept_only_where_they_are_elements(level: str) -> None:
    assert selects(program(), level) == 0
    assert selects(program(guard="j < 4"), level) > 0
    assert selects(program(guard="j > 0 and j < 5"), level) > 0


LANE = var("lane", lower=0, upper=7)
SIZE = var("n", lower=1)


def skips(shape, strides, indices, mask) -> bool:
    """Return the decision for a vector of 8 lanes."""
    steps = None if strides is None else tuple(map(as_expr, strides))
    buffer = Buffer(1, "S", tuple(map(as_expr, shape)), f32, "local", steps)
    context = LoweringContext(lanes=Lanes(LANE, 8), mask=mask)
    return skips_only_padding(buffer, tuple(map(as_expr, indices)), context)


@pytest.mark.parametrize(
    ("shape", "strides", "indices", "mask", "expected"),
    [
        ((3, 5), (8, 1), (2, LANE), LANE < 5, True),
        ((5,), (1,), (LANE,), LANE < 5, True),
        ((13,), (1,), (LANE + 8,), LANE < 5, True),
        ((2, 3, 5), (24, 8, 1), (1, 2, LANE), LANE < 5, True),
        ((3, 5), (8, 1), (2, LANE), LANE < 4, False),
        ((3, 5), (8, 1), (2, LANE), LANE < SIZE, False),
        ((3, 5), (8, 1), (2, LANE + 1), LANE < 4, False),
        ((3, 5), (7, 1), (2, LANE), LANE < 5, False),
        ((3, 5), (4, 1), (2, LANE), LANE < 5, False),
        ((3, 5), (8, 2), (2, LANE), LANE < 5, False),
        ((3, 2, 3), (4, 16, 1), (0, 0, LANE), LANE < 3, False),
        ((3, 5), None, (2, LANE), LANE < 5, False),
        ((SIZE, 5), (8, 1), (2, LANE), LANE < 5, True),
        ((3, SIZE), (8, 1), (2, LANE), LANE < 5, False),
        ((8, 5), (8, 1), (LANE, LANE), LANE < 5, False),
    ],
    ids=str,
)
def test_padding_is_outside_of_every_row(shape, strides, indices, mask, expected: bool) -> None:
    assert skips(shape, strides, indices, mask) is expected
