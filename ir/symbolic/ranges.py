"""Interval and congruence arithmetic on value ranges.

All functions work on plain integers and `ValueRange` tuples, so they can be tested by enumeration.
A missing bound is None. ``value % modulus == remainder``; modulus 0 means exactly the remainder.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd, inf
from typing import NamedTuple

from .base import ValueRange

Bound = int | None


class Bounds(NamedTuple):
    """The integers from ``lower`` to ``upper``, both inclusive; None means unbounded.

    Examples
    --------
    >>> Bounds(0, None).contains(5)
    True
    """

    lower: int | None
    upper: int | None

    def contains(self, value: int) -> bool:
        """Return whether the interval contains an integer."""
        below = self.lower is not None and value < self.lower
        above = self.upper is not None and value > self.upper
        return not (below or above)


def range_of_symbol(lower: Bound, upper: Bound, multiple_of: int) -> ValueRange:
    """Return the range of a symbol; bounds are tightened to multiples."""
    if multiple_of != 1:
        lower = None if lower is None else -(-lower // multiple_of) * multiple_of
        upper = None if upper is None else upper // multiple_of * multiple_of
    return (lower, upper, multiple_of, 0)


def exact(value_range: ValueRange) -> ValueRange:
    """Set the modulus of a range to 0 if its interval contains one integer."""
    lower, upper, _, _ = value_range
    return (lower, upper, 0, lower) if lower is not None and lower == upper else value_range


def range_of_sum(terms: Iterable[tuple[ValueRange, int]], constant: int) -> ValueRange:
    """Return the range of ``sum(coefficient * part) + constant``; coefficients are not zero."""
    lower: Bound = constant
    upper: Bound = constant
    modulus, remainder = 0, constant
    for (low, high, part_modulus, part_remainder), coefficient in terms:
        if coefficient < 0:
            low, high = high, low  # noqa: PLW2901 - a negative factor swaps the bounds
        lower = None if lower is None or low is None else lower + coefficient * low
        upper = None if upper is None or high is None else upper + coefficient * high
        modulus = gcd(modulus, part_modulus * coefficient)
        remainder += coefficient * part_remainder
    return exact((lower, upper, modulus, remainder % modulus if modulus else remainder))


def _congruence(modulus: int, remainder: int) -> tuple[int, int]:
    """Return a congruence with a normalized remainder."""
    return modulus, remainder % modulus if modulus else remainder


def _times(a: float, b: float) -> float:
    """Return the product of bounds that may be infinite; zero times infinity is zero."""
    if a == 0 or b == 0:
        return 0
    if isinstance(a, float) or isinstance(b, float):
        return inf if (a > 0) == (b > 0) else -inf
    return a * b


def _low(bound: Bound) -> float:
    return -inf if bound is None else bound


def _high(bound: Bound) -> float:
    return inf if bound is None else bound


def _bound(end: float) -> Bound:
    return end if isinstance(end, int) else None


def range_of_product(a: ValueRange, b: ValueRange) -> ValueRange:
    """Return the range of a product of independent factors."""
    if a[0] is not None and b[0] is not None and a[0] >= 0 and b[0] >= 0:
        upper = _bound(_times(_high(a[1]), _high(b[1])))
        return exact((a[0] * b[0], upper, *_product_congruence(a, b)))
    ends = [_times(p, q) for p in (_low(a[0]), _high(a[1])) for q in (_low(b[0]), _high(b[1]))]
    return exact((_bound(min(ends)), _bound(max(ends)), *_product_congruence(a, b)))


def _product_congruence(a: ValueRange, b: ValueRange) -> tuple[int, int]:
    if a[2] == 1 and b[2] == 1:
        return 1, 0
    return _congruence(gcd(a[2] * b[2], a[2] * b[3], b[2] * a[3]), a[3] * b[3])


def range_of_square(base: ValueRange, rest: ValueRange) -> ValueRange:
    """Return the range of ``base * base * rest``; the square is never negative."""
    lower, upper, modulus, remainder = range_of_product(base, base)
    straddles = _low(base[0]) < 0 < _high(base[1])
    floor = 0 if lower is None or straddles else max(lower, 0)
    return range_of_product((floor, upper, modulus, remainder), rest)


def _divide(a: float, d: float) -> float:
    """Return the floored quotient of bounds that may be infinite; the divisor is positive."""
    if isinstance(a, float):
        return a
    if isinstance(d, float):
        return 0 if a >= 0 else -1
    return a // d


def _signed_divisors(divisor: ValueRange) -> list[tuple[int, float, float]]:
    """Split the interval of a divisor at zero: (sign, least, greatest magnitude)."""
    low, high = _low(divisor[0]), _high(divisor[1])
    parts: list[tuple[int, float, float]] = []
    if high >= 1:
        parts.append((1, max(low, 1), high))
    if low <= -1:
        parts.append((-1, max(-high, 1), -low))
    return parts


def range_of_floordiv(a: ValueRange, d: ValueRange) -> ValueRange:
    """Return the range of ``a // d``; the divisor is not zero."""
    low, high = inf, -inf
    for sign, least, greatest in _signed_divisors(d):
        first, last = (_low(a[0]), _high(a[1])) if sign > 0 else (-_high(a[1]), -_low(a[0]))
        low = min(low, _divide(first, least), _divide(first, greatest))
        high = max(high, _divide(last, least), _divide(last, greatest))
    modulus, remainder = 1, 0
    if d[2] == 0 and d[3] > 0 and a[2] % d[3] == 0:
        modulus, remainder = _congruence(a[2] // d[3], a[3] // d[3])
    return exact((_bound(low), _bound(high), modulus, remainder))


def range_of_mod(a: ValueRange, d: ValueRange) -> ValueRange:
    """Return the range of ``a % d``; the divisor is not zero."""
    low, high = 0, 0
    for sign, _, greatest in _signed_divisors(d):
        if sign > 0:
            high = max(high, greatest - 1)
        else:
            low = min(low, 1 - greatest)
    if low == 0 and _low(a[0]) >= 0:
        high = min(high, _high(a[1]))
    modulus, remainder = _congruence(gcd(a[2], d[2], d[3]), a[3])
    return exact((_bound(low), _bound(high), modulus, remainder))


def range_of_select(a: ValueRange, b: ValueRange) -> ValueRange:
    """Return the range of either of two values."""
    low, high = min(_low(a[0]), _low(b[0])), max(_high(a[1]), _high(b[1]))
    return exact((_bound(low), _bound(high), *_congruence(gcd(a[2], b[2], a[3] - b[3]), a[3])))


def range_of_minimum(a: ValueRange, b: ValueRange) -> ValueRange:
    """Return the range of ``min(a, b)``."""
    low, high = min(_low(a[0]), _low(b[0])), min(_high(a[1]), _high(b[1]))
    return exact((_bound(low), _bound(high), *_congruence(gcd(a[2], b[2], a[3] - b[3]), a[3])))


def range_of_maximum(a: ValueRange, b: ValueRange) -> ValueRange:
    """Return the range of ``max(a, b)``."""
    low, high = max(_low(a[0]), _low(b[0])), max(_high(a[1]), _high(b[1]))
    return exact((_bound(low), _bound(high), *_congruence(gcd(a[2], b[2], a[3] - b[3]), a[3])))
