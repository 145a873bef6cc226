"""Which interval an index runs through while inner loops run and outer ones stand still.

This is what decides how much a block has to compute at a loop, and how large a tile is: outer
variables stay in the start, and the extent is a constant wherever the inner extents are, even
where everything outside is symbolic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..symbolic import (
    Add,
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
    total,
)

ZERO = as_expr(0)
ONE = as_expr(1)


@dataclass(frozen=True, slots=True)
class Span:
    """The interval ``[start, start + extent)``.

    ``filled`` tells that the index takes every value in it; otherwise the interval is a bound.
    """

    start: Expr
    extent: Expr
    filled: bool = True

    @property
    def stop(self) -> Expr:
        """The first value after the interval."""
        return self.start + self.extent


def span_of(index: Expr, inner: Mapping[Var, Expr], facts: Facts) -> Span | None:
    """Bound an index over the ranges of inner variables.

    Parameters
    ----------
    index : Expr
        A term of inner and outer variables.
    inner : Mapping[Var, Expr]
        The inner variables, each with its extent: it runs from 0 to below that.
    facts : Facts
        What holds of the outer variables.

    Returns
    -------
    Span or None
        None where no bound free of the inner variables was found.

    Examples
    --------
    >>> from ..symbolic import var
    >>> i0, i1 = var("i0", lower=0), var("i1", lower=0, upper=13)
    >>> span = span_of(i0 * 14 + i1, {i1: as_expr(14)}, Facts())
    >>> span.start, span.extent, span.filled
    (i0 * 14, 14, True)
    """
    found = _width(index, inner, facts)
    if found is None:
        return None
    low, width, filled = found
    return Span(simplify(low, facts), simplify(width + 1, facts), filled)


_Width = tuple[Expr, Expr, bool]
"""Least value, largest minus least value, and whether all between are taken."""


def _width(index: Expr, inner: Mapping[Var, Expr], facts: Facts) -> _Width | None:
    if free_vars(index).isdisjoint(inner):
        return index, ZERO, True
    match index:
        case Var():
            return ZERO, inner[index] - 1, True
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


def _constant_bounds(index: Expr) -> _Width | None:
    found = bounds(index)
    if found.lower is None or found.upper is None:
        return None
    return as_expr(found.lower), as_expr(found.upper - found.lower), False


def _sum(index: Add, inner: Mapping[Var, Expr], facts: Facts) -> _Width | None:
    low: Expr = as_expr(index.constant)
    steps: list[tuple[int, Expr]] = []
    filled = True
    for term, scale in index.terms:
        part = _width(term, inner, facts)
        if part is None:
            return _constant_bounds(index)
        start, width, whole = part
        low = low + scale * (start if scale > 0 else start + width)
        if width != 0:
            steps.append((abs(scale), width))
            filled = filled and whole
    width = total(tuple(scale * width for scale, width in steps))
    return low, width, filled and _apart(index, inner) and _gapless(steps, facts)


def _apart(index: Add, inner: Mapping[Var, Expr]) -> bool:
    """Whether no inner variable moves two terms at once."""
    moving = [v for term, _ in index.terms for v in free_vars(term) if v in inner]
    return len(moving) == len(set(moving))


def _gapless(steps: list[tuple[int, Expr]], facts: Facts) -> bool:
    """Whether sums of multiples take every value: each scale is at most the width below, plus 1."""
    reach: Expr = ZERO
    for scale, width in sorted(steps, key=lambda s: s[0]):
        if not is_proved(reach + 1 >= scale, facts):
            return False
        reach = reach + scale * width
    return True


def _product(factors: tuple[Expr, ...], inner: Mapping[Var, Expr], facts: Facts) -> _Width | None:
    moving = [f for f in factors if not free_vars(f).isdisjoint(inner)]
    still = product(tuple(f for f in factors if free_vars(f).isdisjoint(inner)))
    part = _width(moving[0], inner, facts) if len(moving) == 1 else None
    if part is None or not is_proved(still >= 0, facts):
        return None
    low, width, _ = part
    return low * still, width * still, False


def _quotient(
    numerator: Expr, divisor: Expr, inner: Mapping[Var, Expr], facts: Facts
) -> _Width | None:
    part = _divided(numerator, divisor, inner, facts)
    if part is None:
        return None
    low, width, filled = part
    aligned = simplify(low % divisor, facts) == 0
    return (
        low // divisor,
        width // divisor if aligned else ceildiv(width, divisor),
        filled and aligned,
    )


def _remainder(
    numerator: Expr, divisor: Expr, inner: Mapping[Var, Expr], facts: Facts
) -> _Width | None:
    part = _divided(numerator, divisor, inner, facts)
    if part is None:
        return None
    low, width, filled = part
    start = simplify(low % divisor, facts)
    if is_proved(start + width < divisor, facts):
        return start, width, filled
    return ZERO, divisor - 1, filled and start == 0


def _divided(
    numerator: Expr, divisor: Expr, inner: Mapping[Var, Expr], facts: Facts
) -> _Width | None:
    if not free_vars(divisor).isdisjoint(inner) or not is_proved(divisor >= 1, facts):
        return None
    return _width(numerator, inner, facts)


def _choice(
    index: Expr, args: tuple[Expr, ...], inner: Mapping[Var, Expr], facts: Facts
) -> _Width | None:
    parts = [_width(a, inner, facts) for a in args]
    known = [p for p in parts if p is not None]
    if len(known) < len(parts):
        return _constant_bounds(index)
    pick = minimum if isinstance(index, Min) else maximum
    return pick(*(p[0] for p in known)), maximum(*(p[1] for p in known)), False


def union(spans: Iterable[Span], facts: Facts) -> Span | None:
    """Give the least interval around several whose starts differ by known amounts.

    Examples
    --------
    >>> from ..symbolic import var
    >>> i = var("i", lower=0)
    >>> joined = union([Span(i, ONE), Span(i + 2, ONE)], Facts())
    >>> joined.start, joined.extent, joined.filled
    (i, 3, False)
    """
    joined: Span | None = None
    for span in spans:
        joined = span if joined is None else _join(joined, span, facts)
        if joined is None:
            return None
    return joined


def _join(a: Span, b: Span, facts: Facts) -> Span | None:
    if a.start is b.start and a.extent is b.extent:
        return Span(a.start, a.extent, a.filled or b.filled)
    gap = const_value(simplify(b.start - a.start, facts))
    if gap is None:
        return None
    first, second = (a, b) if gap >= 0 else (b, a)
    stretch = simplify(maximum(first.extent, second.extent + abs(gap)), facts)
    touching = is_proved(first.extent >= abs(gap), facts)
    return Span(first.start, stretch, first.filled and second.filled and touching)


def covers(outer: Span, inner: Span, facts: Facts, size: Expr | None = None) -> bool:
    """Whether one interval is provably inside another that is taken completely.

    With the ``size`` of a dimension, what the inner one has outside of ``[0, size)`` does not
    count: no access is there, and a tile may hang over the end.
    """
    if not outer.filled:
        return False
    below = is_proved(outer.start <= inner.start, facts)
    above = is_proved(inner.stop <= outer.stop, facts)
    if size is None:
        return below and above
    return (below or is_proved(outer.start <= maximum(inner.start, 0), facts)) and (
        above or is_proved(minimum(inner.stop, size) <= outer.stop, facts)
    )


def within_dimension(span: Span | None, dimension: Expr, facts: Facts) -> Span:
    """Replace an interval by the whole dimension where it is unknown or no smaller.

    Constant extents stay: a tile may hang over the end of its buffer.
    """
    if span is None:
        return Span(ZERO, dimension)
    if (
        const_value(span.extent) is None
        and span.start == 0
        and is_proved(span.extent >= dimension, facts)
    ):
        return Span(ZERO, dimension, span.filled)
    return span
