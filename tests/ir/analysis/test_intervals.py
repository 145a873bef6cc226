"""Intervals of index terms, partly against enumeration."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings

from tilewright.ir.analysis import Interval, covers, interval_of, union, within_dimension
from tilewright.ir.symbolic import (
    Facts,
    as_expr,
    ceildiv,
    evaluate,
    maximum,
    minimum,
    substitute,
    var,
)

from tests.ir.analysis.index_terms import INNER, LOADED, LOADED_INNER, OUTER, A, B, indices


@settings(max_examples=200)
@given(indices())
def test_intervals_contain_all_values_and_exhaustive_ones_no_others(index):
    interval = interval_of(index, INNER, Facts())
    if interval is None:
        return
    for outer in (0, 1, 7, 20):
        values = {
            evaluate(index, {OUTER: outer, A: a, B: b})
            for a, b in itertools.product(range(4), range(3))
        }
        start, stop = (
            evaluate(interval.start, {OUTER: outer}),
            evaluate(interval.stop, {OUTER: outer}),
        )
        assert start <= min(values)
        assert max(values) < stop
        if interval.exhaustive:
            assert values == set(range(start, stop))


@pytest.mark.parametrize("offset", [0, 1, 2, 5, 7, -3])
@pytest.mark.parametrize("divisor", [2, 3, 4])
@pytest.mark.parametrize("step", [1, 2])
def test_quotients_and_remainders_of_shifted_indices(offset, divisor, step):
    """The number of quotients is exact; a loop without iterations has none."""
    n, i = var("n", lower=0), var("i", lower=0)
    for extent in (1, 2, 3, 9, n):
        inner = {i: Interval.full(as_expr(extent))}
        numerator = i * step + offset
        pair = (numerator // divisor, numerator % divisor)
        for index in (x for x in pair if i in x.free):
            found = interval_of(index, inner, Facts())
            for size in range(7) if extent is n else (extent,):
                values = {evaluate(index, {i: k}) for k in range(size)}
                start, stop = evaluate(found.start, {n: size}), evaluate(found.stop, {n: size})
                assert values <= set(range(start, stop))
                if found.exhaustive:
                    assert values == set(range(start, stop))
    whole = interval_of((i + offset) // divisor, {i: Interval.full(as_expr(9))}, Facts())
    assert whole.exhaustive
    assert whole.extent == (offset + 8) // divisor - offset // divisor + 1


def test_a_tile_of_a_symbolic_loop_has_a_constant_extent():
    n = var("n", lower=1)
    i0, i1 = var("i0", lower=0), var("i1", lower=0, upper=13)
    facts = Facts().with_loop(i0, ceildiv(n, 14))
    interval = interval_of(i0 * 14 + i1, {i1: Interval.full(as_expr(14))}, facts)
    assert interval == Interval(i0 * 14, as_expr(14), exhaustive=True)
    assert covers(interval, Interval(i0 * 14 + 2, as_expr(12)), facts)
    assert not covers(interval, Interval(i0 * 14 + 2, as_expr(13)), facts)


def test_union_of_overlapping_intervals():
    i = var("i", lower=0)
    joined = union([Interval(i, as_expr(2)), Interval(i + 1, as_expr(2))], Facts())
    assert joined == Interval(i, as_expr(3), exhaustive=True)
    assert union([Interval(i, as_expr(2)), Interval(i * 2, as_expr(2))], Facts()) is None


def test_the_union_of_intervals_near_the_edges_has_a_constant_extent():
    n, i = var("n", lower=1), var("i", lower=0)
    facts, one = Facts().with_loop(i, n), as_expr(1)
    joined = union([Interval(x, one) for x in (maximum(i - 1, 0), i, minimum(i + 1, n - 1))], facts)
    assert joined == Interval(maximum(i - 1, 0), as_expr(3), exhaustive=False)
    turned = union([Interval(x, one) for x in (minimum(i + 2, n - 1), i)], facts)
    assert turned == Interval(i, as_expr(3), exhaustive=False)
    limited = Interval(i + 1, minimum(4, n - i - 1))
    assert union([Interval(maximum(i, 1), one), limited], facts) == Interval(
        maximum(i, 1), as_expr(5), exhaustive=False
    )
    far = var("m", lower=0)
    assert union([Interval(maximum(i, far), one), Interval(i, one)], facts) is None


@settings(max_examples=200)
@given(indices(), indices())
def test_a_union_contains_both_intervals(first, second):
    parts = [interval_of(x, INNER, Facts()) for x in (first, second)]
    joined = union([p for p in parts if p is not None], Facts())
    if joined is None:
        return
    for outer in range(21):
        start, stop = (evaluate(x, {OUTER: outer}) for x in (joined.start, joined.stop))
        for part in parts:
            if part is not None:
                assert start <= evaluate(part.start, {OUTER: outer})
                assert evaluate(part.stop, {OUTER: outer}) <= stop


def test_an_extent_may_contain_another_variable():
    n, i, k = var("n", lower=1), var("i", lower=0), var("k", lower=0)
    inner = {i: Interval.full(n), k: Interval.full(i + 1)}
    assert interval_of(k, inner, Facts()) == Interval(as_expr(0), n, exhaustive=False)
    assert interval_of(k, {k: Interval.full(i + 1)}, Facts()) == Interval(as_expr(0), i + 1)


@settings(max_examples=200)
@given(indices())
def test_intervals_contain_all_values_of_loaded_integers(index):
    index = substitute(index, {A: LOADED})
    interval = interval_of(index, LOADED_INNER, Facts())
    if interval is None:
        return
    for outer in (0, 1, 7, 20):
        values = {
            evaluate(index, {OUTER: outer, LOADED: loaded, B: b})
            for loaded, b in itertools.product(range(-2, 2), range(3))
        }
        start, stop = (
            evaluate(interval.start, {OUTER: outer}),
            evaluate(interval.stop, {OUTER: outer}),
        )
        assert start <= min(values)
        assert max(values) < stop
        if interval.exhaustive:
            assert LOADED not in index.free
            assert values == set(range(start, stop))


def test_the_lower_bound_of_a_loaded_integer_is_kept():
    p = var("p", lower=-2, upper=1)
    found = interval_of(p + 2, {p: Interval(as_expr(-2), as_expr(4), exhaustive=False)}, Facts())
    assert found == Interval(as_expr(0), as_expr(4), exhaustive=False)


def test_an_unknown_interval_of_a_dimension_is_not_exhaustive():
    assert not within_dimension(None, as_expr(8), Facts()).exhaustive
