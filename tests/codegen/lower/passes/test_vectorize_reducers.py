"""Partial results per lane of reductions by declared reducers."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.interpreter.loops import call_prim

from tests.codegen.lower.passes.running import (
    CPU,
    both,
    comparison,
    same_results,
    text_of,
    unchanged,
)

NAME = "vectorize_reducers"

ROWS = """
m, n = symbols("m n", lower=1)

@prim_func
def rows(n: Int, x: Buffer[(m, n * 16), f32], y: InOut[(m,), f32], p: InOut[(m,), i64]):
    for i in range(m):
        for k0 in range(n):
            for k1 in vectorized(16):
                with block("find"):
                    vi, vk = spatial(i), reduce(n * 16, k0 * 16 + k1)
                    y[vi], p[vi] = argmax(x[vi, vk], vk)
"""

UPDATE = "y[vi], p[vi] = argmax(x[vi, vk], vk)"
BOUND = ROWS.replace(
    UPDATE, f"t = x[vi, vk] * 2.0\n{' ' * 20}{UPDATE.replace('x[vi, vk]', 't * t')}"
)


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, ROWS, CPU))


@pytest.mark.parametrize("text", [ROWS, BOUND])
@pytest.mark.parametrize("n", [1, 3])
def test_results(text, n):
    same_results(*both(NAME, text, CPU), m=2, n=n)


def test_sums_and_scalar_loops_are_not_changed():
    sums = ROWS.replace(UPDATE, "y[vi] += x[vi, vk]").replace(", p: InOut[(m,), i64]", "")
    assert unchanged(NAME, sums, CPU)
    assert unchanged(NAME, ROWS.replace("vectorized(16)", "range(16)"), CPU)


WELFORD = """
m, n = symbols("m n", lower=1)

@prim_func
def moments(n: Int, x: Buffer[(m, n), f32], c: InOut[(m,), f32], y: InOut[(m,), f32],
            p: InOut[(m,), f32]):
    for i in range(m):
        for k0 in range(ceildiv(n, 4)):
            for k1 in vectorized(4):
                with block("reduce"):
                    vi, vk = spatial(i), reduce(n, k0 * 4 + k1)
                    guard(k0 * 4 + k1 < n)
                    c[vi], y[vi], p[vi] = welford(1.0, x[vi, vk], 0.0)
"""


@pytest.mark.parametrize("n", [1, 7, 4 * 64 + 1, 4 * 64 * 65 + 3])
def test_blocks_of_terms_are_reduced_on_their_own(n):
    """The text of the result has two levels of blocks, which start at the identity."""
    _, second = both(NAME, WELFORD, CPU)
    assert text_of(second).count("_block") > 2
    x = np.random.default_rng(n).normal(3, 2, (1, n)).astype(np.float32)
    results = call_prim(second, [x, *(np.zeros(1, np.float32) for _ in range(3))], {"n": n})
    assert results[0] == n
    np.testing.assert_allclose(results[1], x.mean(1), rtol=1e-5)
    np.testing.assert_allclose(results[2] / n, x.astype(np.float64).var(1), rtol=1e-5, atol=1e-9)


INDICES = {
    "of another step": ("vk)", "vk * 3)", True),
    "in descending order": ("vk)", "0 - vk)", False),
    "from memory": ("vk)", "at[vk])", False),
}


@pytest.mark.parametrize("case", INDICES)
def test_iterations_are_numbered_if_the_indices_increase(case):
    old, new, counted = INDICES[case]
    text = ROWS.replace(f"x[vi, vk], {old}", f"x[vi, vk], {new}")
    text = text.replace("n: Int,", "n: Int, at: Buffer[(n * 16,), i64],")
    first, second = both(NAME, text, CPU)
    assert ("number" in text_of(second)) is counted
    x = np.zeros((2, 48), np.float32)
    x[1] = -np.inf
    at = np.arange(48)[::-1].copy()
    start = [np.full(2, -np.inf, np.float32), np.full(2, np.iinfo(np.int64).max)]
    results = [call_prim(f, [at, x, *start], {"n": 3}) for f in (first, second)]
    np.testing.assert_array_equal(*(made[1] for made in results))
