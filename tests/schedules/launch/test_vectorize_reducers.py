"""Partial results per lane of reductions by declared reducers."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.interpreter.loops import call_prim
from tilewright.ir.script import parse

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


def _with_reducer(loops):
    lines = []
    for line in loops.splitlines():
        indent, both, _ = line.partition("BOTH")
        if both:
            lines.append(f"{indent}@reducer(identity=(0.0, 0.0))")
            lines.append(f"{indent}def both(a: f32, b: f32, c: f32, d: f32):")
            lines.append(f"{indent}    return a + c, b + d")
        else:
            lines.append(line)
    return "\n".join(lines)


OTHER_LOOPS = {
    "a unit loop": """
    for i in thread(32, "threadIdx.x"):
        for r in vectorized(2):
            for unit in range(1):
                with block("y"):
                    vi, vr = spatial(32, i), reduce(r)
                    BOTH
                    y[vi], p[vi] = both(x[vi + vr], x[vi + vr] + 1.0)
""",
    "a loop of the results": """
    for r in vectorized(2):
        for i in range(16):
            for unit in thread(2, "threadIdx.x"):
                with block("y"):
                    vi, vr = spatial(32, i * 2 + unit), reduce(r)
                    BOTH
                    y[vi], p[vi] = both(x[vi + vr], x[vi + vr] + 1.0)
""",
    "an extent of a reduction loop": """
    for i in thread(32, "threadIdx.x"):
        for r in range(3):
            for k in vectorized(r % 2 * 2):
                with block("y"):
                    vi, vr, vk = spatial(32, i), reduce(r), reduce(k)
                    BOTH
                    y[vi], p[vi] = both(x[vi + vk], x[vi + vr] + 1.0)
""",
    "an extent outside of the lanes": """
    for i in thread(32, "threadIdx.x"):
        for r in range(3):
            for j_k in range(r % 2 * 2):
                for k in vectorized(2):
                    with block("y"):
                        vi, vr, vk = spatial(32, i), reduce(r), reduce(r % 2 * 3, j_k * 2 + k)
                        guard(j_k * 2 + k < r % 2 * 3)
                        BOTH
                        y[vi], p[vi] = both(x[vi + vk], x[vi + vr] + 1.0)
""",
}


@pytest.mark.parametrize("loops", OTHER_LOOPS)
def test_lanes_around_other_loops(loops):
    head = """
@prim_func(scheduled=True)
def f(x: Buffer[(40,), f32], y: InOut[(32,), f32], p: InOut[(32,), f32]):"""
    module = parse(head + _with_reducer(OTHER_LOOPS[loops]))
    start = (np.arange(40, dtype=np.float32), *np.ones((2, 32), np.float32))
    expected = call_prim(module.prim("f"), tuple(a.copy() for a in start))
    compile(module, "simt")(*start)
    for a, b in zip(expected, start[1:], strict=True):
        np.testing.assert_array_equal(a, b)
