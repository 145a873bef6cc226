"""Statements of the first iteration of a reduction loop, hoisted before the loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.codegen.lower.passes.hoist_reduction_init import HoistReductionInit
from tilewright.ir.loop.nodes import For
from tilewright.ir.script import parse

from tests.codegen.kernels import LEVELS, build
from tests.codegen.lower.passes.running import (
    CPU,
    both,
    comparison,
    same_results,
    text_of,
    unchanged,
)

NAME = "hoist_reduction_init"

TRIANGLE = """
n = symbols("n", lower=1)

@prim_func
def triangle(x: Buffer[(n, n), i32], y: Out[(n,), i32]):
    for k in range(n):
        for i in range(n - k):
            with block("sum"):
                vi, vk = spatial(n, i), reduce(k)
                with init(): y[vi] = 0
                y[vi] += x[vi, vk]
"""
TWO_LOOPS = """
@prim_func
def pairs(x: Buffer[(4, 8), i32], y: Out[(4,), i32]):
    for k0 in range(4):
        for i in range(4 - k0):
            for k1 in range(2):
                with block("sum"):
                    vi, vk = spatial(4, i), reduce(8, k0 * 2 + k1)
                    with init(): y[vi] = 0
                    y[vi] += x[vi, vk]
"""
SHRINKING = """
m, n = symbols("m n", lower=0)

@prim_func
def shrinking(x: Buffer[(m, n), i32], y: Out[(m,), i32]):
    for k in range(n):
        for i in range(max(m - k, 0)):
            with block("sum"):
                vi, vk = spatial(m, i), reduce(k)
                with init(): y[vi] = 0
                y[vi] += x[vi, vk]
"""
FIRST = """
n = symbols("n", lower=0)

@prim_func
def first(x: Buffer[(n,), i32], y: Out[(), i32]):
    for k in range(n):
        if {condition}:
            y[()] = 0
        y[()] += x[k]
"""
"""Already a branch, without a block."""


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, TRIANGLE, CPU))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_results(n):
    same_results(*both(NAME, TRIANGLE, CPU), n=n)


def test_two_reduction_loops():
    first, second = both(NAME, TWO_LOOPS, CPU)
    assert "if" in text_of(first)
    assert "if" not in text_of(second)
    same_results(first, second)


def test_an_empty_sum_is_zero():
    """Before the pass, no iteration writes the result."""
    first, second = both(NAME, SHRINKING, CPU)
    (found,) = same_results(second, second, m=3, n=0)
    np.testing.assert_array_equal(found, np.zeros(3))
    same_results(first, second, m=3, n=2)


@pytest.mark.parametrize("condition", ["k == 0", "k == 1", "k < 1", "n == 0"])
def test_other_branches_are_not_hoisted(condition):
    assert unchanged(NAME, FIRST.format(condition=condition), CPU)


@pytest.mark.parametrize("kind", ["parallel", "thread"])
def test_loops_without_an_order_are_not_changed(kind):
    func, _ = both(NAME, TRIANGLE, CPU)
    loop = func.body
    assert isinstance(loop, For)
    unordered = replace(func, body=replace(loop, kind=kind))
    assert text_of(HoistReductionInit().run(unordered, CPU)) == text_of(unordered)


BRANCH = """
n = symbols("n", lower=0)

@prim_func
def branch(z: Out[(n,), i32], y: InOut[(), i32]):
    for k in range(n):
        z[k] = y[()]
        if k == 0:
            y[()] = 5
"""


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("level", LEVELS)
def test_a_branch_of_the_program_stays_in_the_loop(n, level):
    kernel = build(next(iter(parse(BRANCH).functions.values())), level)
    z, y = np.zeros(n, np.int32), np.array(9, np.int32)
    kernel(z, y)
    assert z.tolist() == [9, 5, 5][:n]
    assert y == (9 if n == 0 else 5)
