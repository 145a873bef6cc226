"""Directions of terms, and upper limits over ranges of variables."""

from __future__ import annotations

import itertools

import pytest

from tilewright.ir.symbolic import as_expr, evaluate, maximum, minimum, select, var
from tilewright.ir.symbolic.monotone import direction, upper_limit

I, J = var("i", lower=0, upper=6), var("j", lower=0, upper=6)
N = var("n", lower=1)
TERMS = [
    I + 1,
    N - 2 * I,
    minimum(I + 1, N - I),
    maximum(N - I, I * 2),
    (N + I % 3) // 4,
    (I * J + 3) // 2,
    select(J < 3, I, N - I),
    minimum(I, J) - I % 4,
    I * (N + 7 - I),
    (I % 3) * (N + 6 - I) + 1,
    (I % 3) * (J // 2) * N,
]


@pytest.mark.parametrize("term", TERMS, ids=str)
def test_no_value_exceeds_the_upper_limit(term):
    """The range of the second variable depends on the first one."""
    limit = upper_limit(term, [(I, as_expr(0), as_expr(6)), (J, as_expr(0), I)])
    assert limit is not None
    assert limit.free <= {N}
    for n, i in itertools.product((1, 2, 5, 11), range(7)):
        for j in range(i + 1):
            assert evaluate(term, {I: i, J: j, N: n}) <= evaluate(limit, {N: n})


def test_the_limit_of_a_monotonic_term_is_attained():
    limits = [(I, as_expr(0), N - 1)]
    assert upper_limit(N - I, limits) is N
    assert upper_limit(I + 1, limits) is N


def test_a_term_without_a_known_limit():
    k = var("k", lower=0)
    assert upper_limit(N % (k + 1), [(k, as_expr(0), N)]) is None


def test_a_remainder_is_less_than_a_divisor_that_may_be_zero():
    i, m = var("i", lower=0), var("m", lower=0)
    assert upper_limit(i % m + 1, [(i, as_expr(0), m * m)]) == m


def test_the_limit_of_a_product_has_a_limit_of_each_factor():
    i, n = var("i", lower=0), var("n", lower=0)
    limits = [(i, as_expr(0), n - 1)]
    assert upper_limit((i % 7) * n, limits) == 6 * n
    assert upper_limit((i % 7) * (n - i), limits) == 6 * n
    assert upper_limit((i % 7) * (n - 5), limits) == 6 * n
    k = var("k")
    assert upper_limit((i % 7) * k, limits) is None  # it may be negative


def test_directions():
    assert direction(I * 2 + N, I) == 1
    assert direction(N - I // 2, I) == -1
    assert direction(I % 3, I) is None
