"""The estimate of work that decides whether a loop runs on several threads."""

from __future__ import annotations

import pytest

from tilewright.codegen.lower.analysis.cost_estimate import estimated_work
from tilewright.ir.loop.decompose import decomposed
from tilewright.ir.loop.nodes import PrimFunc
from tilewright.ir.script import parse
from tilewright.ir.symbolic import evaluate
from tilewright.schedules.launch.realize_blocks import RealizeBlocks
from tilewright.target.target import Target

from tests.ir.script.texts import unverified

TILE = """
n = symbols("n", lower=1)

@prim_func
def f(a: Buffer[(14, n), f32], b: Buffer[(n, 32), f32], c: Out[(14, 32), f32]):
    t = alloc((14, 32), f32, scope="local")
    for k in range(n):
        for i in unrolled(14):
            for j in vectorized(32):
                with block("update"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    t[vi, vj] = t[vi, vj] + a[vi, vk] * b[vk, vj]
"""
PLAIN = """
n = symbols("n", lower=1)

@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("b"):
            vi = spatial(i)
            y[vi] = {value}
"""


def realized(func: PrimFunc) -> PrimFunc:
    return RealizeBlocks().run(decomposed(func), Target("cpu"))


def work(text: str, n: int) -> int:
    func = next(iter(unverified(text).functions.values()))
    estimate = estimated_work(realized(func).body)
    return int(evaluate(estimate, dict.fromkeys(estimate.free, n)))


def test_a_tile_reads_its_operands_once() -> None:
    products, rows, columns = 28, 14, 2
    assert work(TILE, 100) == 100 * (products + rows + columns)


@pytest.mark.parametrize(
    ("value", "each"),
    [("x[vi]", 2), ("x[vi] * x[vi] + x[vi]", 5), ("exp(x[vi])", 26), ("x[vi] / 3.0", 10)],
)
def test_functions_cost_more_than_sums(value: str, each: int) -> None:
    assert work(PLAIN.format(value=value), 7) == 7 * each


TRIANGLE = """
n = symbols("n", lower=1)

@prim_func
def f(x: Buffer[(n, 4), f32], y: Out[(n, 4), f32]):
    for i in range(n):
        for j in unrolled(4):
            for k in range(4 - j):
                with block("b"):
                    vi, vj, vk = spatial(i), spatial(j), spatial(4, k)
                    y[vi, vk] = x[vi, vj]
"""


def test_work_mentions_no_variable_of_its_own_loops() -> None:
    func = parse(TRIANGLE).functions["f"]
    assert {v.name for v in estimated_work(realized(func).body).free} == {"n"}


RAGGED = """
@prim_func
def f(off: Buffer[(5,), i32], x: Buffer[(16,), f32], y: Out[(4,), f32]):
    for i in range(4):
        with checked(off[i], 0, 17) as lo:
            with checked(off[i + 1], lo, 17) as hi:
                for j in range(hi - lo):
                    with block("s"):
                        vi, vl, vj = spatial(i), spatial(17, lo), reduce(16, j)
                        with init(): y[vi] = 0.0
                        y[vi] += x[vl + vj]
"""


def test_the_estimate_contains_no_integers_that_are_bound_inside() -> None:
    func = next(iter(parse(RAGGED).functions.values()))
    assert estimated_work(realized(func).body).free == frozenset()
    assert work(RAGGED, 0) >= 4 * 16
