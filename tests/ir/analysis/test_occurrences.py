"""Loads and stores with the statements around them, and which elements they access."""

from __future__ import annotations

import itertools

import pytest

from tilewright.ir.analysis.occurrences import never_equal, occurrences, separated_by
from tilewright.ir.script import parse

HEAD = """
n = symbols("n", lower=1)

@prim_func
def f(at: Buffer[(n,), i32], x: Buffer[(n,), f32], y: InOut[(2 * n + 8,), f32]):
"""


def found_in(body: str):
    """Return the function and the accesses of its body, which has no blocks."""
    func = parse(HEAD + body, check=False).prim("f")
    return func, list(occurrences(func.body))


def test_the_statements_around_an_access():
    _, found = found_in("""
    for i in range(n):
        with checked(at[i], 0, n) as p:
            if p < 4:
                y[p] = x[i]
            else:
                y[p] = 0.0
""")
    assert [(o.buffer.name, o.writes) for o in found] == [
        ("at", False),
        ("y", True),
        ("x", False),
        ("y", True),
    ]
    _, then, _, other = found
    assert [str(g) for g in (*then.guards, *other.guards)] == ["p < 4", "p >= 4"]
    assert [b.var.name for b in then.binders] == ["i", "p"]
    assert [b.var.name for b in then.loops] == ["i"]
    assert {v.name for v in then.loaded} == {"p"}


@pytest.mark.parametrize(
    ("first", "second", "disjoint"),
    [
        ("y[i] = 0.0", "y[n + i] = 0.0", True),
        ("y[i] = 0.0", "y[i + 1] = 0.0", False),
        ("y[2 * i] = 0.0", "y[2 * i + 1] = 0.0", True),
        ("if i < 4: y[i] = 0.0", "if i >= 4: y[i] = 0.0", True),
        ("if i < 5: y[i] = 0.0", "if i >= 4: y[i] = 0.0", False),
    ],
)
def test_accesses_to_different_elements(first, second, disjoint):
    """Each access has its own iteration, also if both are in one loop."""
    func, found = found_in(f"""
    for i in range(n):
        {first}
        {second}
""")
    assert never_equal(*found, func.facts) == disjoint


def test_each_access_has_its_own_loaded_integer():
    """Two iterations may load different integers, so ``p`` may equal another ``p + 1``."""
    func, found = found_in("""
    for i in range(n):
        with checked(at[i], 0, n) as p:
            y[p] = 0.0
            y[p + 1] = 0.0
            y[p + n + 1] = 0.0
""")
    first, second, third = (o for o in found if o.writes)
    assert not never_equal(first, second, func.facts)
    assert never_equal(first, third, func.facts)


@pytest.mark.parametrize(
    ("index", "names"),
    [("i * 4 + j", "ij"), ("i * 3 + j", ""), ("i", "i"), ("j", "j"), ("i + p", ""), ("p", "")],
)
def test_variables_that_separate_elements(index, names):
    """Iterations that load the same integer access the same element."""
    func, found = found_in(f"""
    for i in range(2):
        for j in range(4):
            with checked(at[i], 0, n) as p:
                y[{index}] = 0.0
""")
    (write,) = (o for o in found if o.writes)
    separated = separated_by(write.indices, write.binders, func.facts)
    assert {v.name for v in separated} - {"p"} == set(names)


def test_separated_iterations_write_different_elements():
    """The answer agrees with an enumeration of all pairs of iterations."""
    for scale, shift in itertools.product(range(1, 6), range(3)):
        func, found = found_in(f"""
    for i in range(3):
        for j in range(4):
            y[i * {scale} + j + {shift}] = 0.0
""")
        (write,) = found
        separated = {v.name for v in separated_by(write.indices, write.binders, func.facts)}
        points = list(itertools.product(range(3), range(4)))
        equal = [
            (a, b)
            for a, b in itertools.combinations(points, 2)
            if a[0] * scale + a[1] == b[0] * scale + b[1]
        ]
        for k, name in enumerate("ij"):
            if name in separated:
                assert all(a[k] == b[k] for a, b in equal)
