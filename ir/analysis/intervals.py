"""Intervals of index values over inner variables, for fixed outer variables.

Intervals determine the region a block computes inside a loop, and the sizes of tiles. Outer
variables occur only in the start. The extent is a constant if the extents of the inner variables
are constants, even if all outer extents are symbolic. A variable with an interval that is not
exhaustive, such as an integer loaded from memory, takes arbitrary values of its interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..symbolic import (
    Add,
    Bool,
    Const,
    Expr,
    Facts,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Select,
    Var,
    as_expr,
    bounds,
    ceildiv,
    const_value,
    free_vars,
    is_proved,
    maximum,
    minimum,
    product,
    simplify,
    substitute,
    total,
)
from ..symbolic.build import weighted_sum
from .differences import has_choice, largest_difference

ZERO = as_expr(0)
ONE = as_expr(1)
_PLAIN = (Var, Const)


@dataclass(frozen=True, slots=True)
class Interval:
    """The interval ``[start, start + extent)`` of the values of an index.

    ``exhaustive`` means that the index takes every value of the interval; otherwise the interval
    is only a bound.
    """

    start: Expr
    extent: Expr
    exhaustive: bool = True

    @staticmethod
    def full(extent: Expr) -> Interval:
        """Return the interval ``[0, extent)`` of a variable that takes every value."""
        return Interval(ZERO, extent)

    @property
    def stop(self) -> Expr:
        """The first value after the interval."""
        return self.start + self.extent

    def contains(self, value: Expr) -> Bool:
        """Return the condition that a value is in the interval."""
        return (self.start <= value) & (value < self.stop)

    def substitute(self, values: Mapping[Var, Expr]) -> Interval:
        """Return the interval with variables replaced by terms."""
        if not values:
            return self
        start, extent = substitute(self.start, values), substitute(self.extent, values)
        return Interval(start, extent, self.exhaustive)


def interval_of(index: Expr, inner: Mapping[Var, Interval], facts: Facts) -> Interval | None:
    """Return an interval that contains all values of an index over inner variables.

    Parameters
    ----------
    index : Expr
        A term of inner and outer variables.
    inner : Mapping[Var, Interval]
        The inner variables with the intervals of their values. An interval may contain other
        inner variables.
    facts : Facts
        The facts in scope.

    Returns
    -------
    Interval or None
        None if no bound without inner variables was found.

    Examples
    --------
    >>> from ..symbolic import var
    >>> i0, i1 = var("i0", lower=0), var("i1", lower=0, upper=13)
    >>> found = interval_of(i0 * 14 + i1, {i1: Interval.full(as_expr(14))}, Facts())
    >>> found.start, found.extent, found.exhaustive
    (i0 * 14, 14, True)
    """
    found = _width(index, inner, facts)
    if found is None:
        return None
    low, width, exhaustive = found
    return Interval(simplify(low, facts), simplify(width + 1, facts), exhaustive)


_Width = tuple[Expr, Expr, bool]
"""The smallest value, the largest minus the smallest value, and whether all values are taken."""


def _width(index: Expr, inner: Mapping[Var, Interval], facts: Facts) -> _Width | None:
    if free_vars(index).isdisjoint(inner):
        return index, ZERO, True
    match index:
        case Var():
            return _values(index, inner, facts)
        case Add():
            return _sum(index, inner, facts)
        case Mul(factors=factors):
            return _product(factors, inner, facts)
        case FloorDiv(numerator=numerator, divisor=divisor):
            return _quotient(numerator, divisor, inner, facts)
        case Mod(numerator=numerator, divisor=divisor):
            return _remainder(numerator, divisor, inner, facts)
        case Min(args=args) | Max(args=args):
            return _choice(index, args, inner, facts)
        case Select():
            return _constant_bounds(index)
        case _:
            return _constant_bounds(index)


def _values(index: Var, inner: Mapping[Var, Interval], facts: Facts) -> _Width | None:
    """Return the values of an inner variable over all values of the others."""
    own = inner[index]
    if free_vars(own.start).isdisjoint(inner) and free_vars(own.extent).isdisjoint(inner):
        return own.start, own.extent - 1, own.exhaustive
    first, last = _width(own.start, inner, facts), _width(own.stop - 1, inner, facts)
    if first is None or last is None:
        return _constant_bounds(index)
    low = first[0]
    return low, last[0] + last[1] - low, False


def _constant_bounds(index: Expr) -> _Width | None:
    found = bounds(index)
    if found.lower is None or found.upper is None:
        return None
    return as_expr(found.lower), as_expr(found.upper - found.lower), False


def _sum(index: Add, inner: Mapping[Var, Interval], facts: Facts) -> _Width | None:
    starts: list[tuple[Expr, int]] = []
    steps: list[tuple[int, Expr]] = []
    exhaustive = True
    for term, scale in index.terms:
        part = _width(term, inner, facts)
        if part is None:
            return _constant_bounds(index)
        start, width, whole = part
        starts.append((start if scale > 0 else start + width, scale))
        if width is not ZERO:
            steps.append((abs(scale), width))
            exhaustive = exhaustive and whole
    low = _scaled_sum(starts, index.constant)
    if low is None:
        low = as_expr(index.constant)
        for start, scale in starts:
            low = low + scale * start
    width = total([scale * width for scale, width in steps])
    return low, width, exhaustive and _independent(index, inner) and _gapless(steps, facts)


def _scaled_sum(parts: list[tuple[Expr, int]], constant: int) -> Expr | None:
    """Return the sum of scaled symbols and constants; None if there are other terms.

    The rules for sums do not apply to them, so the order of the additions does not matter.
    """
    for part, _ in parts:
        if not isinstance(part, _PLAIN):
            return None
    return weighted_sum(parts, constant)


def _independent(index: Add, inner: Mapping[Var, Interval]) -> bool:
    """Return whether every inner variable occurs in at most one term."""
    varying = [v for term, _ in index.terms for v in free_vars(term) if v in inner]
    return len(varying) == len(set(varying))


def _gapless(steps: list[tuple[int, Expr]], facts: Facts) -> bool:
    """Return whether the sum of the scaled terms takes every value.

    Each scale must be at most 1 more than the width covered by the terms of smaller scale.
    """
    ordered, reach = sorted(steps, key=lambda s: s[0]), 0
    for k, (scale, width) in enumerate(ordered):
        if reach + 1 < scale:
            return False
        size = const_value(width)
        if size is None:
            return _gapless_after(as_expr(reach), ordered[k:], facts)
        reach += scale * size
    return True


def _gapless_after(reach: Expr, steps: list[tuple[int, Expr]], facts: Facts) -> bool:
    """Return whether the sum takes every value, given the width that earlier terms cover."""
    for scale, width in steps:
        if not is_proved(reach + 1 >= scale, facts):
            return False
        reach = reach + scale * width
    return True


def _product(
    factors: tuple[Expr, ...], inner: Mapping[Var, Interval], facts: Facts
) -> _Width | None:
    varying = [f for f in factors if not free_vars(f).isdisjoint(inner)]
    fixed = product(tuple(f for f in factors if free_vars(f).isdisjoint(inner)))
    part = _width(varying[0], inner, facts) if len(varying) == 1 else None
    if part is None or not is_proved(fixed >= 0, facts):
        return None
    low, width, _ = part
    return low * fixed, width * fixed, False


def _quotient(
    numerator: Expr, divisor: Expr, inner: Mapping[Var, Interval], facts: Facts
) -> _Width | None:
    part = _divided(numerator, divisor, inner, facts)
    if part is None:
        return None
    low, width, exhaustive = part
    rest = simplify(low % divisor, facts)
    if const_value(rest) is None:
        return low // divisor, ceildiv(width, divisor), False
    taken = rest == 0 or is_proved(width >= 0, facts)  # the least quotient of an empty interval
    return low // divisor, (rest + width) // divisor, exhaustive and taken


def _remainder(
    numerator: Expr, divisor: Expr, inner: Mapping[Var, Interval], facts: Facts
) -> _Width | None:
    part = _divided(numerator, divisor, inner, facts)
    if part is None:
        return None
    low, width, exhaustive = part
    start = simplify(low % divisor, facts)
    if is_proved(start + width < divisor, facts):
        return start, width, exhaustive
    return ZERO, divisor - 1, exhaustive and is_proved(width >= divisor - 1, facts)


def _divided(
    numerator: Expr, divisor: Expr, inner: Mapping[Var, Interval], facts: Facts
) -> _Width | None:
    if not free_vars(divisor).isdisjoint(inner) or not is_proved(divisor >= 1, facts):
        return None
    return _width(numerator, inner, facts)


def _choice(
    index: Expr, args: tuple[Expr, ...], inner: Mapping[Var, Interval], facts: Facts
) -> _Width | None:
    parts = [_width(a, inner, facts) for a in args]
    known = [p for p in parts if p is not None]
    if len(known) < len(parts):
        return _constant_bounds(index)
    pick = minimum if isinstance(index, Min) else maximum
    return pick(*(p[0] for p in known)), maximum(*(p[1] for p in known)), False


def union(intervals: Iterable[Interval], facts: Facts) -> Interval | None:
    """Return an interval around intervals whose starts differ by constants or bounded values.

    It is the smallest one if the starts differ by constants. Return None if the difference of two
    starts is neither a constant nor, for starts that are minima or maxima, between two constants.

    Examples
    --------
    >>> from ..symbolic import var
    >>> i = var("i", lower=0)
    >>> joined = union([Interval(i, ONE), Interval(i + 2, ONE)], Facts())
    >>> joined.start, joined.extent, joined.exhaustive
    (i, 3, False)
    """
    joined: Interval | None = None
    for interval in intervals:
        joined = interval if joined is None else _join(joined, interval, facts)
        if joined is None:
            return None
    return joined


def _join(a: Interval, b: Interval, facts: Facts) -> Interval | None:
    if a.start is b.start and a.extent is b.extent:
        return Interval(a.start, a.extent, a.exhaustive or b.exhaustive)
    gap = const_value(simplify(b.start - a.start, facts))
    if gap is None:
        return _around(a, b, facts)
    first, second = (a, b) if gap >= 0 else (b, a)
    stretch = simplify(maximum(first.extent, second.extent + abs(gap)), facts)
    adjacent = is_proved(first.extent >= abs(gap), facts)
    exhaustive = first.exhaustive and second.exhaustive and adjacent
    return Interval(first.start, stretch, exhaustive)


def _around(a: Interval, b: Interval, facts: Facts) -> Interval | None:
    """Return an interval around two intervals of which a start is a minimum or maximum."""
    if not has_choice(a.start) and not has_choice(b.start):
        return None
    after = largest_difference(b.start, a.start, facts)
    before = None if after is None else largest_difference(a.start, b.start, facts)
    if after is None or before is None:
        return None
    starts = (a.start,) if before <= 0 else (b.start,) if after <= 0 else (a.start, b.start)
    first, second = _constant_extent(a, facts), _constant_extent(b, facts)
    extent = maximum(first, second)
    if after > 0:  # unless b starts first
        extent = maximum(extent, second + after)
    if before > 0:
        extent = maximum(extent, first + before)
    return Interval(minimum(*starts), simplify(extent, facts), exhaustive=False)


def _constant_extent(interval: Interval, facts: Facts) -> Expr:
    """Return a constant that the extent of an interval does not exceed, or the extent."""
    found = largest_difference(interval.extent, ZERO, facts)
    return interval.extent if found is None else as_expr(found)


def covers(outer: Interval, inner: Interval, facts: Facts, size: Expr | None = None) -> bool:
    """Return whether an interval is provably contained in an exhaustive interval.

    With the ``size`` of a dimension, values of ``inner`` outside of ``[0, size)`` are ignored: a
    tile may extend past the end of its buffer, where no element is accessed.
    """
    if not outer.exhaustive:
        return False
    below = is_proved(outer.start <= inner.start, facts)
    above = is_proved(inner.stop <= outer.stop, facts)
    if size is None:
        return below and above
    return (below or is_proved(outer.start <= maximum(inner.start, 0), facts)) and (
        above or is_proved(minimum(inner.stop, size) <= outer.stop, facts)
    )


def within_dimension(interval: Interval | None, dimension: Expr, facts: Facts) -> Interval:
    """Return the whole dimension if an interval is unknown or not smaller, else the interval.

    Constant extents are kept: a tile may extend past the end of its buffer.
    """
    if interval is None:
        return Interval(ZERO, dimension, exhaustive=False)
    if (
        const_value(interval.extent) is None
        and interval.start == 0
        and is_proved(interval.extent >= dimension, facts)
    ):
        return Interval(ZERO, dimension, interval.exhaustive)
    return interval
