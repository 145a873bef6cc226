"""Interval and congruence arithmetic against enumeration."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from tilewright.ir.symbolic import ranges
from tilewright.ir.symbolic.base import ValueRange
from tilewright.ir.symbolic.ranges import Bounds

REACH = 60
SMALL: list[ValueRange] = [
    (0, 0, 0, 0),
    (3, 3, 0, 3),
    (-2, -2, 0, -2),
    (0, 5, 1, 0),
    (-4, 3, 1, 0),
    (1, 9, 4, 1),
    (-8, 8, 4, 0),
    (-7, -1, 3, 2),
    (2, None, 1, 0),
    (None, -3, 1, 0),
    (None, 4, 2, 0),
    (None, None, 1, 0),
    (None, None, 6, 5),
]


def members(value_range: ValueRange) -> list[int]:
    """Return the integers near zero that the range contains."""
    lower, upper, modulus, remainder = value_range
    return [v for v in range(-REACH, REACH + 1) if fits(v, (lower, upper, modulus, remainder))]


def fits(value: int, value_range: ValueRange) -> bool:
    lower, upper, modulus, remainder = value_range
    same = value == remainder if modulus == 0 else value % modulus == remainder
    return Bounds(lower, upper).contains(value) and same


BINARY: dict[str, tuple[Callable, Callable[[int, int], int]]] = {
    "*": (ranges.range_of_product, lambda a, b: a * b),
    "//": (ranges.range_of_floordiv, lambda a, b: a // b),
    "%": (ranges.range_of_mod, lambda a, b: a % b),
    "min": (ranges.range_of_minimum, min),
    "max": (ranges.range_of_maximum, max),
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_operations_cover_all_results(name: str) -> None:
    range_of, operation = BINARY[name]
    for a, b in product(SMALL, repeat=2):
        value_range = range_of(a, b)
        for p, q in product(members(a)[::3], members(b)[::2]):
            if name not in ("//", "%") or q != 0:
                assert fits(operation(p, q), value_range), (a, b, p, q, value_range)


@pytest.mark.parametrize("name", [name for name in BINARY if name != "%"])
def test_bounds_are_reached(name: str) -> None:
    """Check that results are tight for finite intervals without congruences."""
    range_of, operation = BINARY[name]
    whole: list[ValueRange] = [(0, 5, 1, 0), (-4, 3, 1, 0), (1, 6, 1, 0), (-9, -2, 1, 0)]
    for a, b in product(whole, repeat=2):
        pairs = [(p, q) for p, q in product(members(a), members(b)) if name != "//" or q != 0]
        results = [operation(p, q) for p, q in pairs]
        assert range_of(a, b)[:2] == (min(results), max(results)), (a, b)


def test_choice_covers_both() -> None:
    for a, b in product(SMALL, repeat=2):
        value_range = ranges.range_of_select(a, b)
        assert all(fits(v, value_range) for v in members(a) + members(b))


def test_sums_cover_all_results() -> None:
    for a, b in product(SMALL, repeat=2):
        for c, d in ((1, 1), (2, -3), (-1, 4)):
            value_range = ranges.range_of_sum([(a, c), (b, d)], 7)
            for p, q in product(members(a)[::3], members(b)[::3]):
                assert fits(c * p + d * q + 7, value_range)


def test_squares_are_not_negative() -> None:
    for a in SMALL:
        value_range = ranges.range_of_square(a, (1, 1, 0, 1))
        assert all(fits(v * v, value_range) for v in members(a))
        assert value_range[0] is not None
        assert value_range[0] >= 0
