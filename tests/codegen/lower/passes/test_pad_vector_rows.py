"""Rows of small temporaries padded to whole vectors."""

from __future__ import annotations

import pytest

from tilewright.codegen.llvm import assembly, emit_module
from tilewright.codegen.lower import lower_kernel
from tilewright.ir.analysis import tree_of
from tilewright.ir.script import parse
from tilewright.target.target import Target

from tests.codegen.kernels import LEVELS
from tests.codegen.lower.passes.running import CPU, both, comparison, same_results, unchanged

NAME = "pad_vector_rows"

ROWS = """
n = symbols("n", lower=1)

@prim_func(scheduled=True)
def f(x: Buffer[(n, {rows}, {row}), {dtype}], y: Out[({rows}, {row}), {dtype}]):
    S = alloc(({rows}, {row}), {dtype}, scope="{scope}")
    for i0 in unrolled({rows}):
        for j0 in vectorized({lanes}):
            with block("start"):
                vi0, vj0 = spatial(i0), spatial({row}, j0)
                guard(j0 < {row})
                S[vi0, vj0] = {dtype}(0)
    for k in range(n):
        for i in unrolled({rows}):
            for j in vectorized({lanes}):
                with block("sum"):
                    vi, vj, vk = spatial(i), spatial({row}, j), reduce(k)
                    guard(j < {row})
                    S[vi, vj] += x[vk, vi, vj]
    for i1 in unrolled({rows}):
        for j1 in vectorized({lanes}):
            with block("end"):
                vi1, vj1 = spatial(i1), spatial({row}, j1)
                guard(j1 < {row})
                y[vi1, vj1] = S[vi1, vj1]
"""


def of(*, rows=3, row=5, lanes=8, dtype="f32", scope="local"):
    """Return sums of rows whose vectors are longer than a row."""
    return ROWS.format(rows=rows, row=row, lanes=lanes, dtype=dtype, scope=scope)


def strides(text):
    """Return the strides of the temporary after the pass."""
    _, second = both(NAME, text, CPU)
    (buffer,) = tree_of(second).temporaries
    return None if buffer.strides is None else tuple(map(int, map(str, buffer.strides)))


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, of(), CPU))


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize(
    "text",
    [of(), of(rows=1), of(row=13, lanes=16), of(dtype="f64"), of(row=9, dtype="i8", lanes=16)],
)
def test_results(text, n):
    same_results(*both(NAME, text, CPU), n=n)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (of(row=5), (8, 1)),
        (of(row=13, lanes=16), (16, 1)),
        (of(rows=1, row=7), (8, 1)),
        (of(row=3, dtype="f64", lanes=4), (4, 1)),
    ],
)
def test_rows_are_whole_vectors(text, expected):
    assert strides(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        of(row=8),
        of(row=16),
        of(row=5, lanes=5),
        of(rows=260),
    ],
    ids=["a whole vector", "two vectors", "vectors of a row", "a large temporary"],
)
def test_other_rows_are_not_padded(text):
    unchanged(NAME, text, CPU)


@pytest.mark.parametrize("level", LEVELS)
def test_sums_of_partial_vectors_stay_in_registers(level):
    target = Target("cpu", features=(level,))
    lowered = lower_kernel(parse(of(row=13, lanes=16)).prims[0], target)
    text = assembly(emit_module([lowered.function], target), target)
    loop = max(text.split("\n.LBB"), key=lambda block: block.count("vaddps"))
    assert loop.count("vaddps") >= 3
    assert not [line for line in loop.splitlines() if "mm" in line and "(%rsp)" in line]


def test_a_vector_without_lanes_is_ignored():
    """A loop over the part of a row before its first element has no iterations."""
    text = """
@prim_func(scheduled=True)
def f(x: Buffer[(4, 3), f32], y: Out[(4, 3), f32]):
    S = alloc((4, 3), f32, scope="local")
    for i in range(4):
        for j in vectorized(0):
            with block("none"):
                vi, vj = spatial(i), spatial(3, j)
                S[vi, vj] = x[vi, vj]
        for j1 in range(3):
            with block("y"):
                vi1, vj1 = spatial(i), spatial(j1)
                y[vi1, vj1] = x[vi1, vj1]
"""
    unchanged(NAME, text, CPU)
