"""Constant bounds of differences, against enumeration."""

from __future__ import annotations

import itertools

from hypothesis import given, settings

from tilewright.ir.analysis.differences import has_choice, largest_difference
from tilewright.ir.symbolic import Facts, as_expr, evaluate, maximum, minimum, var

from tests.ir.analysis.index_terms import OUTER, A, B, indices

N, I = var("n", lower=1), var("i", lower=0)
FACTS = Facts().with_loop(I, N)


@settings(max_examples=200)
@given(indices(), indices())
def test_no_difference_exceeds_the_bound(first, second):
    found = largest_difference(first, second, Facts())
    for outer, a, b in itertools.product((0, 1, 7, 20), range(4), range(3)):
        at = {OUTER: outer, A: a, B: b}
        assert found is not None
        assert evaluate(first, at) - evaluate(second, at) <= found


def test_indices_near_the_edges_differ_by_constants():
    first, last = maximum(I - 2, 0), minimum(I + 1, N - 1)
    assert [largest_difference(x, I, FACTS) for x in (first, last)] == [0, 1]
    assert [largest_difference(I, x, FACTS) for x in (first, last)] == [2, 0]
    assert largest_difference(last, first, FACTS) == 3
    clamped = [minimum(maximum(I + k, 0), N - 1) for k in (-1, 4)]
    assert largest_difference(clamped[1], clamped[0], FACTS) == 5
    assert largest_difference(clamped[0], clamped[1], FACTS) == 0


def test_a_difference_of_unrelated_terms_has_no_bound():
    m = var("m", lower=0)
    assert largest_difference(minimum(I, m), maximum(I, N), FACTS) == 0
    assert largest_difference(maximum(I, m), I, FACTS) is None
    assert largest_difference(N, I, FACTS) is None


def test_terms_of_many_arguments_are_not_compared():
    """The number of comparisons is limited: minima of maxima multiply."""
    term = I
    for k in range(64):
        term = maximum(minimum(term + k, N * (k + 2)), N - term)
    assert largest_difference(term, I, FACTS) is None


def test_a_choice_is_a_minimum_or_maximum_in_a_sum():
    assert has_choice(minimum(I, 3))
    assert has_choice(N - 2 * maximum(I, 3))
    assert not has_choice(minimum(I, 3) * N + as_expr(1))
