"""Guards of tiles lifted to conditions that are uniform across a thread block."""

from __future__ import annotations

import pytest

from tests.codegen.lower.passes.running import (
    GPU,
    both,
    comparison,
    same_results,
    text_of,
    unchanged,
)

NAME = "lift_uniform_guards"

SUMS = """
m, n = symbols("m n", lower=1)

@prim_func
def sums(x: Buffer[(m, n), i32], y: InOut[(m,), i32]):
    for i0 in thread(ceildiv(m, {threads}), "blockIdx.x"):
        for i1 in thread({threads}, "threadIdx.x"):
            for k in range(n):
                with block("sum"):
                    vi, vk = spatial(m, i0 * {threads} + i1), reduce(k)
                    guard({guard})
                    y[vi] += x[vi, vk]
"""


def sums(threads=8, guard="i0 * 8 + i1 < m"):
    """Return a program that adds up rows, one row per thread."""
    return SUMS.format(threads=threads, guard=guard)


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, sums(), GPU))


@pytest.mark.parametrize("m", [1, 7, 8, 9, 20])
def test_results(m):
    same_results(*both(NAME, sums(), GPU), m=m, n=3)


def test_one_thread_per_block():
    """The guard always holds: there is no partial tile."""
    text = sums(1, "i0 + i1 < m")
    assert "if" not in text_of(both(NAME, text, GPU)[1])
    assert unchanged(NAME, text, GPU)


def test_a_guard_of_lanes_in_a_thread():
    text = """
n = symbols("n", lower=1)

@prim_func
def copy(x: Buffer[(n,), i32], y: Out[(n,), i32]):
    for i in thread(ceildiv(n, 32), "blockIdx.x"):
        for a in thread(8, "threadIdx.x"):
            for v in vectorized(4):
                with block("copy"):
                    vi = spatial(n, i * 32 + a * 4 + v)
                    guard(i * 32 + a * 4 + v < n)
                    y[vi] = x[vi]
"""
    first, second = both(NAME, text, GPU)
    assert "if blockIdx_x * 32 + 32 <= n:" in text_of(second)
    for n in (1, 31, 32, 33, 64):
        same_results(first, second, n=n)


def whole_tiles(guard):
    """Return a program whose tiles are full, with another guard."""
    text = sums(guard=guard).replace("(m, n)", "(m * 8, n)").replace("(m,)", "(m * 8,)")
    text = text.replace("def sums(", "def sums(m: Int, ")
    return text.replace("ceildiv(m, 8)", "m").replace("spatial(m,", "spatial(m * 8,")


def test_a_guard_that_is_not_a_limit_is_not_lifted():
    text = whole_tiles("(i0 * 8 + i1) % 3 < 2")
    assert unchanged(NAME, text, GPU)
    same_results(*both(NAME, text, GPU), m=2, n=3)


def test_a_guard_stays_inside_of_the_loop_it_depends_on():
    first, second = both(NAME, whole_tiles("i1 < k"), GPU)
    lines = [line.strip() for line in text_of(second).splitlines()]
    assert lines.index("for k in range(n):") < lines.index("if k >= 8:")
    same_results(first, second, m=2, n=10)
