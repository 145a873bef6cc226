"""Reduction blocks split into initialization and update."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.lower.passes.running import CPU, both, comparison, same_results, text_of

NAME = "decompose_reductions"

SUMS = """
m, n = symbols("m n", lower=0)

@prim_func
def sums(x: Buffer[(m, n), i32], y: Out[(m,), i32]):
    for i in range(m):
        for k in range(n):
            with block("sum"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0
                y[vi] += x[vi, vk]
"""
UPDATE = SUMS.replace("                with init(): y[vi] = 0\n", "").replace("Out[", "InOut[")

TRIANGLE = """
@prim_func
def triangle(x: Buffer[(4, 4), i32], y: Out[(4,), i32]):
    for k in range(4):
        for i in range(4 - k):
            with block("sum"):
                vi, vk = spatial(4, i), reduce(k)
                with init(): y[vi] = 0
                y[vi] += x[vi, vk]
"""
"""The extent of the spatial loop depends on the reduction loop around it."""


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, SUMS, CPU))


@pytest.mark.parametrize("m", [0, 1, 3])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_results(m, n):
    (found,) = same_results(*both(NAME, SUMS, CPU), m=m, n=n)
    if n == 0:
        np.testing.assert_array_equal(found, np.zeros(m))


def test_a_reduction_loop_around_a_spatial_loop():
    text = SUMS.replace(
        "for i in range(m):\n        for k in range(n):",
        "for k in range(n):\n        for i in range(m):",
    )
    first, second = both(NAME, text, CPU)
    assert "for i_init in range(m):" in text_of(second)
    same_results(first, second, m=3, n=5)


def test_an_update_without_init_is_not_changed():
    first, second = both(NAME, UPDATE, CPU)
    assert second is first


def test_a_spatial_loop_in_the_reduction_gets_its_largest_extent():
    first, second = both(NAME, TRIANGLE, CPU)
    assert "for i_init in range(4):" in text_of(second)
    same_results(first, second)
