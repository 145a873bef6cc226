"""Injectivity of index terms, partly against enumeration."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings

from tilewright.ir.analysis import Interval, injective_in
from tilewright.ir.symbolic import Facts, as_expr, ceildiv, evaluate, substitute, var

from tests.ir.analysis.index_terms import INNER, LOADED, LOADED_INNER, OUTER, A, B, indices


@pytest.mark.parametrize(
    ("make", "known"),
    [
        (lambda i, j: (i, j), "ij"),
        (lambda i, _: (i,), "i"),
        (lambda i, j: (i * 4 + j,), "ij"),
        (lambda i, j: (i * 3 + j,), ""),
        (lambda i, j: (j * 8 + i,), "ij"),
        (lambda i, j: ((i * 4 + j) // 8, (i * 4 + j) % 8), "ij"),
        (lambda i, j: (i // 2, j), "j"),
        (lambda i, j: (i // 2, i % 2, j // 3), "i"),
        (lambda i, j: (7 - i, j + 5), "ij"),
        (lambda i, j: (i + j,), ""),
    ],
)
def test_indices_are_injective_in_these_variables(make, known):
    i, j = var("i", lower=0, upper=7), var("j", lower=0, upper=3)
    found = injective_in(
        make(i, j), {i: Interval.full(as_expr(8)), j: Interval.full(as_expr(4))}, Facts()
    )
    assert {v.name for v in found} == set(known)


def test_a_variable_of_one_value_does_not_hide_another():
    n = var("n", lower=1)
    i, j, k = var("i", lower=0), var("j", lower=0), var("k", lower=0)
    loops = {i: Interval.full(n), j: Interval.full(as_expr(1)), k: Interval.full(as_expr(4))}
    assert injective_in((i + j, j * 4 + k), loops, Facts()) == {i, j, k}


@settings(max_examples=200)
@given(indices(), indices())
def test_injectivity_agrees_with_enumeration(first, second):
    found = injective_in((first, second), INNER, Facts())
    for outer in (0, 7):
        seen: dict[tuple[int, ...], tuple[int, ...]] = {}
        for a, b in itertools.product(range(4), range(3)):
            env = {OUTER: outer, A: a, B: b}
            key = (evaluate(first, env), evaluate(second, env))
            value = tuple(env[v] for v in (A, B) if v in found)
            assert seen.setdefault(key, value) == value


@settings(max_examples=200)
@given(indices(), indices())
def test_injectivity_agrees_with_enumeration_for_loaded_integers(first, second):
    first, second = (substitute(i, {A: LOADED}) for i in (first, second))
    found = injective_in((first, second), LOADED_INNER, Facts())
    seen: dict[tuple[int, ...], tuple[int, ...]] = {}
    for loaded, b in itertools.product(range(-2, 2), range(3)):
        env = {OUTER: 7, LOADED: loaded, B: b}
        key = (evaluate(first, env), evaluate(second, env))
        value = tuple(env[v] for v in (LOADED, B) if v in found)
        assert seen.setdefault(key, value) == value


def test_an_index_loaded_in_a_loop_is_not_injective_in_the_loop():
    i, p = var("i", lower=0, upper=7), var("p", lower=0, upper=7)
    values = Interval(as_expr(0), as_expr(8), exhaustive=False)
    loops = {i: Interval.full(as_expr(8)), p: values}
    assert injective_in((p,), loops, Facts()) == {p}
    assert injective_in((i * 8 + p,), loops, Facts()) == {i, p}


@pytest.mark.parametrize(("divisor", "threads"), [(5, 256), (3, 32), (7, 256), (6, 64)])
def test_a_quotient_that_the_divisor_divides_in_parts(divisor, threads):
    """``(256 * i + j) // 5`` is ``51 * i + (i + j) // 5``, and its remainder ``(i + j) % 5``."""
    n, i, j = var("n", lower=0), var("i", lower=0), var("j", lower=0, upper=threads - 1)
    count = ceildiv(n * divisor, threads)
    loops = {i: Interval.full(count), j: Interval.full(as_expr(threads))}
    number, facts = i * threads + j, Facts().with_loop(i, count)
    quotient, remainder = number // divisor, number % divisor
    assert injective_in((quotient, remainder), loops, facts) == {i, j}
    assert injective_in((remainder, quotient), loops, facts) == {i, j}
    assert not injective_in((quotient,), loops, facts)
    assert not injective_in((quotient, number % (divisor - 1)), loops, facts)
    assert not injective_in((quotient, (3 * i + j) % divisor), loops, facts)


@pytest.mark.parametrize("inner", [2, 7, 11])
def test_a_quotient_of_a_quotient_that_the_divisor_divides_in_parts(inner):
    """The digits of ``(256 * i + j) // 5`` are those of ``51 * i + (i + j) // 5``."""
    i, j = var("i", lower=0, upper=7), var("j", lower=0, upper=255)
    loops = {i: Interval.full(as_expr(8)), j: Interval.full(as_expr(256))}
    quotient, remainder = (i * 256 + j) // 5, (i * 256 + j) % 5
    digits = (51 * i + (i + j) // 5) // inner, (51 * i + (i + j) // 5) % inner
    found = injective_in((*digits, remainder), loops, Facts())
    values = set()
    for a, b in itertools.product(range(8), range(256)):
        env = {i: a, j: b}
        values.add(tuple(evaluate(index, env) for index in (*digits, remainder)))
        assert evaluate(digits[0] * inner + digits[1], env) == evaluate(quotient, env)
    assert len(values) == 8 * 256
    assert found == {i, j}
    assert not injective_in(digits, loops, Facts())
