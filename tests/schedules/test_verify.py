"""``Schedule.verify`` finds programs with different results, and reports the sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.ir.loop.nodes import Block, Stmt
from tilewright.ir.loop.visit import transform
from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.schedules.handles import FunctionRef
from tilewright.schedules.verify import VerificationError, verify

from tests.schedules.helpers import CHAIN, MATMUL, schedule

FLOATS = """
n = symbols("n", lower=1)

@prim_func
def wave(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    t = alloc((n,), f32)
    for i in range(n):
        with block("first"):
            vi = spatial(i)
            t[vi] = exp(x[vi])
    for j in range(n):
        with block("second"):
            vj = spatial(j)
            y[vj] = t[vj] / (t[vj] + 1.0)
"""

GRAPH = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 4), f32]):
    y = softmax(x, axis=-1)
    return y
"""

MUTANTS = {
    "a last row left out": (MATMUL, "for i in range(M)", "for i in range(M - 1)"),
    "an initialization forgotten": (MATMUL, "with init(): C[vi, vj] = 0", "with init(): pass"),
    "a wrong start": (MATMUL, "C[vi, vj] = 0", "C[vi, vj] = 1"),
    "neighbors swapped": (CHAIN, "t[vj] * x[vj]", "t[vj] * x[n - 1 - vj]"),
    "operands swapped": (CHAIN, "u[vk] - x[vk]", "x[vk] - u[vk]"),
    "a constant slightly off": (FLOATS, "+ 1.0)", "+ 1.00001)"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_programs_are_found(name: str) -> None:
    text, old, new = MUTANTS[name]
    assert old in text
    if new.endswith("pass"):
        before = parse(text)
        after = before.with_functions(without_init(before.prims[0]))
    else:
        before, after = parse(text), parse(text.replace(old, new))
    found = verify(before, after)
    assert not found.ok
    with pytest.raises(VerificationError, match="WRONG"):
        found.required()


def without_init(func):
    def change(statement: Stmt) -> Stmt:
        return replace(statement, init=None) if isinstance(statement, Block) else statement

    return replace(func, body=transform(func.body, change))


def test_the_report_names_function_sizes_and_difference() -> None:
    found = verify(parse(FLOATS), parse(FLOATS.replace("+ 1.0)", "+ 1.5)")), runs=1)
    (one,) = found.compared
    assert str(found).startswith(f"wave at n = {one.sizes['n']}: relative difference")
    assert str(found).endswith(", WRONG")


def test_integers_and_sums_compare_bit_for_bit() -> None:
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    *_, k = sch.get_loops(mm)
    k0, k1 = sch.split(k, (None, 3))
    sch.reorder((k1, k0))
    found = sch.verify()
    assert found.ok
    assert all(c.exact and c.difference == 0 for c in found.compared)


def test_graphs_are_run_as_a_whole() -> None:
    sch = Schedule(parse(GRAPH))
    sch.legalize(FunctionRef("main"))
    found = sch.verify()
    assert found.ok
    assert {c.function for c in found.compared} == {"main"}


def test_a_function_too_large_to_interpret_is_reported_as_skipped() -> None:
    before = parse(MATMUL.replace("24", "4096"))
    found = verify(before, parse(MATMUL.replace("24", "4096")), limit=1e3)
    assert not found.compared
    ((name, reason),) = found.skipped
    assert name == "matmul"
    assert "iterations exceed the limit" in reason


COPIES = """
n, m = symbols("n m", lower=0)

@prim_func
def copies(x: Buffer[(n,), i32], z: Buffer[(m,), i32], y: Out[(n,), i32]):
    for i in range(n):
        with block("copy"):
            vi = spatial(i)
            y[vi] = READ
"""


@pytest.mark.parametrize("seed", range(5))
def test_the_default_sizes_are_a_prime_zero_one_and_several_vectors(seed: int) -> None:
    text = COPIES.replace("READ", "x[vi]")
    found = verify(parse(text), parse(text), seed=seed)
    prime, zero, one, large = (c.sizes for c in found.compared)
    assert set(prime.values()) <= {2, 3, 5, 7, 11, 13}
    assert 0 in zero.values()
    assert 1 in one.values()
    assert min(large.values()) > 32
    assert found.skipped == ()


GATHER = """
m = symbols("m", lower=0)

@prim_func
def gather(x: Buffer[(3,), i32], z: Buffer[(m,), i32], y: Out[(3,), i32]):
    for i in range(3):
        with checked(x[i], 0, m) as p:
            with block("copy"):
                vi, vp = spatial(i), spatial(m, p)
                y[vi] = z[vp]
"""


def test_sizes_that_the_original_program_rejects_are_reported() -> None:
    found = verify(parse(GATHER), parse(GATHER))
    ((name, reason),) = found.skipped
    assert name == "gather"
    assert reason.startswith("m = 0 is rejected before the steps: ")
    assert f"gather: not run, {reason}" in str(found)
    assert len(found.compared) == 4


def test_nothing_to_compare_is_reported() -> None:
    sch = schedule(MATMUL)
    assert str(sch.verify()) == "nothing changed"
    np.testing.assert_equal(sch.verify().compared, ())


NARROW = """
n = symbols("n", lower=2, upper=4)

@prim_func
def narrow(x: Buffer[(n,), i32], y: Out[(n,), i32]):
    for i in range(n):
        with block("copy"):
            vi = spatial(i)
            y[vi] = x[vi]
"""


@pytest.mark.parametrize("runs", [3, 30])
def test_no_sizes_are_listed_twice(runs: int) -> None:
    found = verify(parse(NARROW), parse(NARROW), runs=runs)
    sizes = [c.sizes["n"] for c in found.compared]
    assert sorted(sizes) == [2, 3, 4]


def test_constant_sizes_are_one_comparison_and_the_worst() -> None:
    text = """
@prim_func
def fixed(x: Buffer[(1,), i32], y: Out[(1,), i32]):
    for i in range(1):
        with block("copy"):
            vi = spatial(i)
            y[vi] = x[vi]
"""
    assert [str(c) for c in verify(parse(text), parse(text)).compared] == [
        "fixed at constant sizes: bit for bit"
    ]
    # Wrong for negative numbers only, which not every draw of one number is.
    wrong = parse(text.replace("= x[vi]", "= abs(x[vi])"))
    found = verify(parse(text), wrong, runs=12)
    assert len(found.compared) == 1
    assert not found.ok
    assert any(verify(parse(text), wrong, runs=1, seed=s).ok for s in range(12))


def test_sizes_are_edges_primes_and_more_than_two_vectors() -> None:
    text = """
n = symbols("n", lower=0)
@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i]
"""
    sizes = [c.sizes["n"] for c in verify(parse(text), parse(text), runs=12).compared]
    assert {0, 1} <= set(sizes)
    assert {37, 41, 43} & set(sizes)
    assert {2, 3, 5, 7, 11, 13} & set(sizes)


@pytest.mark.parametrize("condition", ["m == 0", "m == 1", "m > 32"])
def test_a_program_that_is_wrong_only_at_some_sizes_is_found(condition: str) -> None:
    text = """
m = symbols("m", lower=0)
@prim_func
def f(x: Buffer[(m,), f32], y: Out[(4,), f32]):
    for i in range(4):
        y[i] = where(condition({}), 1.0, 2.0)
"""
    found = verify(parse(text.format("m < 0")), parse(text.format(condition)), runs=6)
    relation, value = condition.split()[1:]
    for c in found.compared:
        m = c.sizes["m"]
        assert c.ok == (m <= int(value) if relation == ">" else m != int(value))
    with pytest.raises(VerificationError, match="WRONG"):
        found.required()


def test_a_step_that_drops_the_init_of_an_empty_reduction_is_found() -> None:
    text = """
k = symbols("k", lower=0)
@prim_func
def f(x: Buffer[(4, k), f32], y: Out[(4,), f32]):
    for i in range(4):
        {start}
        for j in range(k):
            with block("s"):
                vi, vj = spatial(i), reduce(j)
                {init}
                y[vi] += x[vi, vj]
"""
    before = text.format(start="pass", init="with init(): y[vi] = 0.0")
    after = """
k = symbols("k", lower=0)
@prim_func
def f(x: Buffer[(4, k), f32], y: Out[(4,), f32]):
    for j in range(k):
        for i in range(4):
            if j == 0:
                y[i] = 0.0
            y[i] = y[i] + x[i, j]
"""
    found = verify(parse(before), parse(after), runs=6)
    assert [c.ok for c in found.compared if c.sizes["k"] == 0] == [False]
