"""Loop bounds tightened by the guards in the loop body."""

from __future__ import annotations

import pytest

from tests.codegen.lower.passes.running import (
    CPU,
    both,
    comparison,
    same_results,
    text_of,
    unchanged,
)

NAME = "tighten_loop_bounds"

COPY = """
n = symbols("n", lower=1)

@prim_func
def copy(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i0 in range(ceildiv(n, 4)):
        for i1 in range(4):
            with block("copy"):
                vi = spatial(n, i0 * 4 + i1)
                guard(i0 * 4 + i1 < n)
                y[vi] = x[vi]
"""
GUARDED = """
m, n = symbols("m n", lower=1)

@prim_func
def guarded(s: Buffer[(m,), i32], y: InOut[(n,), i32]):
    for i in {kind}(n):
        {body}
"""


def guarded(body, kind="range"):
    """Return a program with a loop around a body."""
    return GUARDED.format(body=body, kind=kind)


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, COPY, CPU))


@pytest.mark.parametrize("n", [1, 3, 4, 9])
def test_results(n):
    same_results(*both(NAME, COPY, CPU), n=n)


@pytest.mark.parametrize(
    ("condition", "loop"),
    [
        ("i < m", "for i in range(min(m, n)):"),
        ("i * 2 < m", "for i in range(min(ceildiv(m, 2), n)):"),
        ("i >= m", "for i in range(n - m):"),
        ("i < m and i < 7", "for i in range(min(7, m, n)"),
    ],
)
@pytest.mark.parametrize("sizes", [(1, 1), (3, 9), (9, 3), (20, 20)])
def test_upper_and_lower_limits(condition, loop, sizes):
    first, second = both(NAME, guarded(f"if {condition}: y[i] = 1"), CPU)
    assert loop in text_of(second)
    same_results(first, second, m=sizes[0], n=sizes[1])


def test_a_guard_of_all_statements_of_a_sequence():
    body = "if i < m: y[i] = 1\n        if i < m: y[i] += 1"
    first, second = both(NAME, guarded(body), CPU)
    assert "for i in range(min(m, n)):" in text_of(second)
    same_results(first, second, m=3, n=5)


@pytest.mark.parametrize(
    "body",
    [
        "y[i] = 1",
        "if i % 2 < 1: y[i] = 1",
        "if i < n: y[i] = 1",
        "if i < m: y[i] = 1\n        y[i] = 2",
        "if i < m: y[i] = 1\n        else: y[i] = 2",
    ],
    ids=["no guard", "not linear", "implied", "one of two", "other side"],
)
def test_a_loop_that_cannot_be_shortened_is_not_changed(body):
    assert unchanged(NAME, guarded(body), CPU)


@pytest.mark.parametrize("kind", ["vectorized", "unrolled"])
def test_loops_of_a_fixed_number_of_iterations_are_not_changed(kind):
    text = guarded("if i < m: y[i] = 1", kind).replace("(n)", "(8)").replace("(n,)", "(8,)")
    assert unchanged(NAME, text, CPU)


def test_a_limit_that_differs_between_lanes_is_not_used():
    text = """
@prim_func
def triangle(y: InOut[(4, 4), i32]):
    for v in vectorized(4):
        for k in range(4):
            if k < v:
                y[k, v] += k
"""
    assert unchanged(NAME, text, CPU)
    assert not unchanged(NAME, text.replace("vectorized", "range"), CPU)
