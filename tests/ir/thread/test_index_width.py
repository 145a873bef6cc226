"""Offsets in units, prefixes of lanes, and values of limits."""

from __future__ import annotations

import random

from tilewright.ir.symbolic import as_expr, evaluate, var
from tilewright.ir.thread.function import LONG, ThreadFunc
from tilewright.ir.thread.index_width import MAX_SCALE, IndexWidth, largest, prefix_length, scaled

I, N = var("i", lower=0), var("n", lower=0)


def test_an_offset_is_its_units_times_its_scale():
    rng = random.Random(3)
    for _ in range(200):
        scale = 2 ** rng.randrange(7)
        offset = (
            I * N * rng.randrange(1, 9) + I * rng.randrange(-9, 9) + rng.randrange(-99, 99)
        ) * scale
        found = scaled(offset)
        values = {I: rng.randrange(50), N: rng.randrange(50)}
        assert evaluate(found.index * found.scale, values) == evaluate(offset, values)
        assert found.scale >= min(scale, MAX_SCALE)


def test_a_constant_offset_has_no_units():
    found = scaled(as_expr(36))
    assert (found.units, found.constant, found.scale) == (as_expr(0), 9, 4)


def test_a_prefix_of_lanes():
    lane = var("l", lower=0, upper=15)
    length = prefix_length(I * 16 + lane <= N, lane)
    assert length is not None
    assert evaluate(length, {I: 2, N: 40}) == 9
    assert prefix_length(I * 16 + lane * 2 < N, lane) is None
    assert prefix_length(I + lane >= 1, lane) is None


def test_a_limit_uses_absolute_values():
    assert largest(N * I * 3 + (N + 7) // 8 + 1, {N: -9, I: 2}) == 57


def test_a_function_has_a_second_version_only_with_limits():
    plain = ThreadFunc("f", (N,), ())
    assert plain.versions == (plain,)
    assert plain.width is LONG
    both = ThreadFunc("f", (N,), (), width=IndexWidth(frozenset({I}), frozenset({N}), (N,)))
    wide, narrow = both.versions
    assert wide is both
    assert narrow.name == "f$i32"
    assert narrow.width == IndexWidth(frozenset({I, N}))
