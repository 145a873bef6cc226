"""Distances of two accesses, compared with an enumeration of all values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tilewright.ir.analysis.distances import equal_pairs, never_overlap
from tilewright.ir.symbolic import as_expr, var

LOOSE = 40
"""The largest value of a variable without a declared upper bound in an enumeration."""


def numbered(name: str, upper: int | None):
    return var(name, lower=0, upper=upper)


@st.composite
def distances(draw):
    """Draw a linear distance, its coefficients, and two pairs of variables with equal ranges."""
    extents = [draw(st.integers(0, 4)) for _ in range(2)]
    pairs = [(numbered("a", e), numbered("b", e)) for e in extents]
    free = [numbered("f", draw(st.sampled_from([0, 1, 3, None]))) for _ in range(2)]
    scale = st.integers(-9, 9)
    offset, terms = draw(st.integers(-6, 6)), {}
    for mine, other in pairs:
        terms[mine] = draw(scale)
        terms[other] = -terms[mine]
    terms |= {one: draw(scale) for one in free}
    distance = sum((scale * v for v, scale in terms.items()), as_expr(offset))
    return distance, offset, terms, pairs


def values(offset, terms):
    """Return all values of the variables, and the distances, as arrays that broadcast."""
    ranges = [np.arange((LOOSE if v.upper is None else v.upper) + 1) for v in terms]
    grids = dict(zip(terms, np.ix_(*ranges), strict=True))
    return grids, offset + sum(scale * grids[v] for v, scale in terms.items())


@settings(max_examples=40, deadline=None)
@given(distances(), st.tuples(st.integers(1, 4), st.integers(1, 4)))
def test_accesses_that_never_overlap(drawn, sizes):
    distance, offset, terms, _ = drawn
    if never_overlap(distance, sizes):
        _, found = values(offset, terms)
        assert not np.any((-sizes[1] < found) & (found < sizes[0]))


@settings(max_examples=40, deadline=None)
@given(distances(), st.integers(1, 4))
def test_pairs_that_are_equal_where_accesses_overlap(drawn, size):
    distance, offset, terms, pairs = drawn
    equal = equal_pairs(distance, pairs, size)
    grids, found = values(offset, terms)
    overlap = (-size < found) & (found < size)
    for a, b in equal:
        assert not np.any(overlap & (grids[a] != grids[b])), (a, b)


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
