"""Interval and congruence arithmetic against enumeration."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from tilewright.ir.symbolic import ranges
from tilewright.ir.symbolic.base import Known
from tilewright.ir.symbolic.ranges import Interval

REACH = 60
SMALL: list[Known] = [
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


def members(known: Known) -> list[int]:
    """The integers near zero that fit."""
    lower, upper, modulus, remainder = known
    return [v for v in range(-REACH, REACH + 1) if fits(v, (lower, upper, modulus, remainder))]


def fits(value: int, known: Known) -> bool:
    lower, upper, modulus, remainder = known
    same = value == remainder if modulus == 0 else value % modulus == remainder
    return Interval(lower, upper).contains(value) and same


BINARY: dict[str, tuple[Callable, Callable[[int, int], int]]] = {
    "*": (ranges.known_of_product, lambda a, b: a * b),
    "//": (ranges.known_of_floordiv, lambda a, b: a // b),
    "%": (ranges.known_of_mod, lambda a, b: a % b),
    "min": (ranges.known_of_least, min),
    "max": (ranges.known_of_greatest, max),
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_operations_cover_all_results(name: str) -> None:
    known_of, operation = BINARY[name]
    for a, b in product(SMALL, repeat=2):
        known = known_of(a, b)
        for p, q in product(members(a)[::3], members(b)[::2]):
            if name not in ("//", "%") or q != 0:
                assert fits(operation(p, q), known), (a, b, p, q, known)


@pytest.mark.parametrize("name", [name for name in BINARY if name != "%"])
def test_bounds_are_reached(name: str) -> None:
    """Where both intervals are finite and whole, no tighter interval would do."""
    known_of, operation = BINARY[name]
    whole: list[Known] = [(0, 5, 1, 0), (-4, 3, 1, 0), (1, 6, 1, 0), (-9, -2, 1, 0)]
    for a, b in product(whole, repeat=2):
        pairs = [(p, q) for p, q in product(members(a), members(b)) if name != "//" or q != 0]
        results = [operation(p, q) for p, q in pairs]
        assert known_of(a, b)[:2] == (min(results), max(results)), (a, b)


def test_choice_covers_both() -> None:
    for a, b in product(SMALL, repeat=2):
        known = ranges.known_of_choice(a, b)
        assert all(fits(v, known) for v in members(a) + members(b))


def test_sums_cover_all_results() -> None:
    for a, b in product(SMALL, repeat=2):
        for c, d in ((1, 1), (2, -3), (-1, 4)):
            known = ranges.known_of_sum([(a, c), (b, d)], 7)
            for p, q in product(members(a)[::3], members(b)[::3]):
                assert fits(c * p + d * q + 7, known)


def test_squares_are_not_negative() -> None:
    for a in SMALL:
        known = ranges.known_of_square(a, (1, 1, 0, 1))
        assert all(fits(v * v, known) for v in members(a))
        assert known[0] is not None
        assert known[0] >= 0
