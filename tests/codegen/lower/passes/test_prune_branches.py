"""Branches decided at compile time."""

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

NAME = "prune_branches"

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
BRANCH = """
m, n = symbols("m n", lower=1)

@prim_func
def branch(x: Buffer[(m,), i32], y: InOut[(n,), i32]):
    fact(n <= 64)
    for i in unrolled(n):
        {body}
"""


def lines_without_blocks(function):
    """Return the text of a function without the lines and the indentation of its blocks."""
    lines, depth = [], []
    for line in text_of(function).splitlines():
        indent = len(line) - len(line.lstrip())
        while depth and indent <= depth[-1]:
            depth.pop()
        if "with block(" in line:
            depth.append(indent)
        else:
            lines.append(line[4 * len(depth) :])
    return "\n".join(lines)


def branch(body):
    """Return a program with a loop around a body."""
    return BRANCH.format(body=body)


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, COPY, CPU))


@pytest.mark.parametrize("n", [1, 3, 4, 9])
def test_results(n):
    same_results(*both(NAME, COPY, CPU), n=n)


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("if i < n: y[i] = 1", "y[i] = 1"),
        ("if n <= 64: y[i] = 1", "y[i] = 1"),
        ("if i >= n: y[i] = 1\n        else: y[i] = 2", "y[i] = 2"),
        ("if i < m and i < n: y[i] = 1", "if i < m:\n            y[i] = 1"),
        ("if i < m:\n            if i < m + 1: y[i] = 1", "if i < m:\n            y[i] = 1"),
    ],
    ids=["loop", "fact", "else", "one of two", "nested"],
)
def test_a_condition_that_follows_from_its_assumptions(body, left):
    first, second = both(NAME, branch(body), CPU)
    assert lines_without_blocks(second).endswith(f"    for i in unrolled(n):\n        {left}")
    same_results(first, second, m=3, n=5)


def test_a_loop_without_statements_is_removed():
    first, second = both(NAME, branch("if i >= n: y[i] = 1"), CPU)
    assert "for" not in text_of(second)
    same_results(first, second, m=3, n=5)


@pytest.mark.parametrize("condition", ["i < m", "i < 63", "i == 1"])
def test_an_undecided_condition_is_not_changed(condition):
    assert unchanged(NAME, branch(f"if {condition}: y[i] = 1"), CPU)
