"""Distances of two accesses, compared with an enumeration of all values."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings, strategies as st

from tilewright.ir.analysis.distances import equal_pairs, never_overlap
from tilewright.ir.symbolic import as_expr, evaluate, var

LOOSE = 40
"""The largest value of a variable without a declared upper bound in an enumeration."""


def numbered(name: str, upper: int | None):
    return var(name, lower=0, upper=upper)


@st.composite
def distances(draw):
    """Draw a linear distance, its variables, and two pairs of variables with equal ranges."""
    extents = [draw(st.integers(0, 4)) for _ in range(2)]
    pairs = [(numbered("a", e), numbered("b", e)) for e in extents]
    free = [numbered("f", draw(st.sampled_from([0, 1, 3, None]))) for _ in range(2)]
    scale = st.integers(-9, 9)
    distance = as_expr(draw(st.integers(-6, 6)))
    for mine, other in pairs:
        weight = draw(scale)
        distance = distance + weight * mine - weight * other
    for one in free:
        distance = distance + draw(scale) * one
    return distance, pairs, free


def values(distance, pairs, free):
    """Yield all values of the variables of a distance, and the distance."""
    names = [v for v in (*free, *itertools.chain(*pairs)) if v in distance.free]
    ranges = [range((LOOSE if v.upper is None else v.upper) + 1) for v in names]
    for found in itertools.product(*ranges):
        known = dict(zip(names, found, strict=True))
        yield known, evaluate(distance, known)


@settings(max_examples=40, deadline=None)
@given(distances(), st.tuples(st.integers(1, 4), st.integers(1, 4)))
def test_accesses_that_never_overlap(drawn, sizes):
    distance, pairs, free = drawn
    if never_overlap(distance, sizes):
        for known, found in values(distance, pairs, free):
            assert not -sizes[1] < found < sizes[0], known


@settings(max_examples=40, deadline=None)
@given(distances(), st.integers(1, 4))
def test_pairs_that_are_equal_where_accesses_overlap(drawn, size):
    distance, pairs, free = drawn
    equal = equal_pairs(distance, pairs, size)
    for known, found in values(distance, pairs, free):
        if -size < found < size:
            assert all(known.get(a, 0) == known.get(b, 0) for a, b in equal), known


A, B = numbered("a", 3), numbered("b", 3)
X, Y = numbered("x", 15), numbered("y", 15)
I, J = numbered("i", None), numbered("j", None)


@pytest.mark.parametrize(
    ("distance", "equal"),
    [
        (A - B, {(A, B)}),
        (16 * A + X - 16 * B - Y, {(A, B), (X, Y)}),
        (64 * I + 16 * A + X - 64 * J - 16 * B - Y, {(A, B), (X, Y)}),
        (17 * A + X - 17 * B - Y + 1, {(A, B)}),
        (16 * A + X - 16 * B - Y + 1, set()),
        (63 * I + 16 * A + X - 63 * J - 16 * B - Y, set()),
        (8 * A + X - 8 * B - Y, set()),
        (16 * A + X - 15 * B - Y, set()),
        (4 * A + X - 4 * B, set()),
        (as_expr(0), set()),
    ],
)
def test_the_digits_of_a_distance_of_zero(distance, equal):
    """Rows that overlap, or that a neighbor shares, determine nothing."""
    assert equal_pairs(distance, [(A, B), (X, Y)]) == equal
