"""Ranges of terms against all values, and limits at the boundary of 32 bits."""

from __future__ import annotations

import random
from itertools import product

import pytest

from tilewright.codegen.lower.analysis.index_width import (
    Fit,
    expression,
    index_width,
    lane_variables,
    ranges_of,
)
from tilewright.ir.dtype import i32, i64
from tilewright.ir.symbolic import Facts, as_expr, evaluate, maximum, minimum, select, var
from tilewright.ir.symbolic.assumptions import Assumptions
from tilewright.ir.thread.function import LaunchGrid, ThreadAxis, ThreadFunc
from tilewright.ir.thread.index_width import largest
from tilewright.ir.thread.nodes import Address, Cast, Index, Let, Load, Loop, Reg, Store
from tilewright.ir.thread.types import POINTER, VectorType

N, M, A = var("n", lower=0), var("m", lower=0), var("a")
I, J = var("i", lower=0), var("j", lower=0)
NONE = Assumptions()


def loops(*, step=1):
    """Return a function with the loops ``i`` below ``n`` and ``j`` from ``i`` to ``m``."""
    inner = Loop(J, I, M, (), step)
    return ThreadFunc("f", (N, M, A), (Loop(I, as_expr(0), N, (inner,)),))


def ranges(function=None):
    return ranges_of(function or loops(), NONE, ())


def random_term(rng, depth):
    if depth == 0:
        return rng.choice([I, J, N, M, A, as_expr(rng.randrange(-9, 9))])
    x, y = random_term(rng, depth - 1), random_term(rng, depth - 1)
    c = rng.choice([1, 2, 3, 7])
    return rng.choice(
        [
            lambda: x + y * rng.randrange(-3, 4),
            lambda: x * y,
            lambda: x // c,
            lambda: x % c,
            lambda: x // (M + 1),
            lambda: x % (N + 1),
            lambda: minimum(x, y),
            lambda: maximum(x, y),
            lambda: select(x < y, x, y),
        ]
    )()


def holds(found, term, values):
    value = evaluate(term, values)
    low, high = (largest(expression(b), values) for b in (found.low, found.high))
    return -low <= value <= high


def test_ranges_contain_all_values():
    rng = random.Random(1)
    found = ranges()
    checked = 0
    for _ in range(300):
        term = random_term(rng, rng.randrange(1, 4))
        interval = found.of(term)
        assert interval is not None
        for n, m, a in product((0, 1, 5), (0, 2, 7), (-4, 0, 6)):
            for i in range(n + 1):
                for j in range(i, max(i, m) + 1):
                    values = {N: n, M: m, A: a, I: i, J: j}
                    assert holds(interval, term, values), (term, values)
                    checked += 1
    assert checked > 10000


def test_a_fused_index_that_is_split_again_has_the_bound_of_the_array():
    found = ranges(ThreadFunc("f", (N, M), (Loop(I, as_expr(0), N * M, ()),)))
    width = index_width(found, [I // M * M + I % M, I // M, I % M])
    assert width.limits == (N * M, M) or set(width.limits) >= {N * M}
    assert all(largest(limit, {N: 1 << 15, M: 1 << 15}) < 1 << 31 for limit in width.limits)


@pytest.mark.parametrize(
    ("extent", "fit"), [(2**31 - 1, Fit.PROVED), (2**31, Fit.NO), (0, Fit.PROVED)]
)
def test_a_constant_loop_fits_up_to_the_largest_integer(extent, fit):
    found = ranges(ThreadFunc("f", (), (Loop(I, as_expr(0), as_expr(extent), ()),)))
    assert found.fit(I) is fit


def test_the_counter_after_the_last_iteration_counts():
    counter = Loop(I, as_expr(0), as_expr(2**31 - 1), (), 2)
    assert ranges(ThreadFunc("f", (), (counter,))).fit(I) is Fit.NO


def test_a_limit_is_exact_at_the_boundary():
    width = index_width(ranges(ThreadFunc("f", (A,), ())), [A + 15])
    (limit,) = width.limits
    assert largest(limit, {A: 2**31 - 16}) == 2**31 - 1
    assert largest(limit, {A: 2**31 - 15}) == 2**31


def test_the_factors_of_a_product_must_fit_although_one_is_zero():
    width = index_width(ranges(), [N * M])
    sizes = {N: 2**40, M: 0}
    assert largest(N * M, sizes) == 0
    assert max(largest(limit, sizes) for limit in width.limits) == 2**40


def test_partial_sums_must_fit_although_the_sum_does():
    width = index_width(ranges(), [N * 3 - M * 3])
    sizes = {N: 2**30, M: 2**30}
    assert max(largest(limit, sizes) for limit in width.limits) >= 2**31


def test_the_operand_of_a_remainder_must_fit():
    width = index_width(ranges(), [(N * M) % 8])
    assert N * M in width.limits


def test_negative_sizes_count_with_their_absolute_value():
    width = index_width(ranges(), [A * 4])
    (limit,) = width.limits
    assert largest(limit, {A: -(2**29)}) == 2**31
    assert largest(limit, {A: -(2**29) + 1}) < 2**31


def test_a_limit_that_another_implies_is_omitted():
    width = index_width(ranges(), [N * 4 + M + k for k in range(8)])
    assert width.limits == (N * 4 + M + 7,)


def test_bounds_of_symbols_and_facts_prove_terms():
    k = var("k", lower=0, upper=2**20)
    found = ranges_of(ThreadFunc("f", (k, N), ()), NONE, ())
    assert found.fit(k * 2047) is Fit.PROVED
    assert found.fit(k * 2048) is Fit.NO
    assert found.fit(N) is Fit.GUARDED
    facts = Assumptions.of(Facts()).assuming(N <= 1000)
    assert ranges_of(ThreadFunc("f", (N,), ()), facts, ()).fit(N * 8) is Fit.PROVED


def test_the_index_of_a_block_fits_but_not_its_multiples():
    block = var("b", lower=0)
    launch = LaunchGrid((ThreadAxis("blockIdx.x", block, N * M),))
    found = ranges_of(ThreadFunc("f", (N, M), (), launch=launch), NONE, ())
    assert found.fit(block) is Fit.PROVED
    assert found.fit(block * 256) is Fit.GUARDED


def loaded(dtype, limits=None):
    p = Reg("p", POINTER)
    value = Load(VectorType(dtype), Address(p, as_expr(0), dtype.alignment))
    value = value if dtype is i64 else Cast(VectorType(i64), value)
    return ThreadFunc("f", (p, N), (Let(J, value, limits=limits),))


def test_a_loaded_integer_has_the_range_of_its_check_or_dtype():
    assert ranges(loaded(i64)).fit(J) is Fit.NO
    assert ranges(loaded(i32)).fit(J) is Fit.PROVED
    assert ranges(loaded(i32)).fit(J + 1) is Fit.NO
    found = ranges(loaded(i64, (as_expr(0), N)))
    assert index_width(found, [J * 3]).limits == (N * 3,)


def test_a_variable_bound_by_two_loops_has_both_ranges():
    body = (Loop(I, as_expr(0), as_expr(8), ()), Loop(I, as_expr(0), N, ()))
    found = ranges(ThreadFunc("f", (N,), body))
    assert found.fit(I) is Fit.GUARDED
    assert found.fit(var("unknown")) is Fit.NO


def test_lanes_have_their_declared_range():
    lane = var("l", lower=0, upper=15)
    p = Reg("p", POINTER)
    value = Index(I * 16 + lane, lane, 16)
    body = (Loop(I, as_expr(0), as_expr(4), (Store(Address(p, I * 4, 4), value),)),)
    function = ThreadFunc("f", (p,), body)
    assert lane_variables(function) == {lane}
    found = ranges_of(function, NONE, lane_variables(function))
    interval = found.of(I * 16 + lane)
    assert interval is not None
    assert expression(interval.high) == as_expr(79)
