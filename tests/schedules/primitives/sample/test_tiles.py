"""Divisors, and factorizations counted and drawn."""

from __future__ import annotations

import itertools
import math
from random import Random

import pytest

from tilewright.schedules.primitives.sample._tiles import divisors, drawn, ways


@pytest.mark.parametrize("number", [1, 2, 12, 36, 97, 1 << 20])
def test_divisors(number: int) -> None:
    assert divisors(number) == tuple(sorted(divisors(number)))
    assert all(number % k == 0 for k in divisors(number))
    if number < 100:
        assert len(divisors(number)) == sum(number % k == 0 for k in range(1, number + 1))


@pytest.mark.parametrize(("number", "parts"), [(12, 1), (12, 3), (16, 4), (7, 2)])
def test_every_factorization_is_counted_and_drawn(number: int, parts: int) -> None:
    every = {t for t in itertools.product(divisors(number), repeat=parts) if math.prod(t) == number}
    assert ways(number, parts) == len(every)
    random = Random(0)
    assert {drawn(random, number, parts) for _ in range(60 * len(every))} == every
