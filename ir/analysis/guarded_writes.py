"""Writes under conditions, and the elements that they write for certain.

A copy that several threads make has two kinds of conditions: the elements exist, and the number of
the copied element is below their count, as in ``guard(a * 32 + b < 34)`` for 34 elements that 32
threads copy in two rounds. The first kind excludes nothing inside of the buffer. For the second
kind, the loops are replaced by one variable, the number, whose range the condition states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from ..loop.nodes import Buffer
from ..symbolic import (
    TRUE,
    Bool,
    Expr,
    Facts,
    Le,
    Lt,
    Var,
    ceildiv,
    conjuncts,
    const_value,
    is_proved,
    linear_form,
    minimum,
    negate,
    simplify,
    substitute,
    total,
    var,
)
from .facts_at import assuming
from .intervals import Interval


@dataclass(frozen=True, slots=True)
class Write:
    """A write of the elements ``indices`` for all values of the closed variables.

    Parameters
    ----------
    indices : tuple of Expr
        The indices.
    closed : Mapping[Var, Interval]
        Variables of which the write takes all values, with the intervals of their values.
    guards : tuple of Bool
        Conditions. The write is certain only for values that satisfy them.
    limits : tuple of Bool
        Conditions that exclude no element of the buffer.
    """

    indices: tuple[Expr, ...]
    closed: Mapping[Var, Interval]
    guards: tuple[Bool, ...] = ()
    limits: tuple[Bool, ...] = ()

    def mentions(self, variable: Var) -> bool:
        """Return whether a variable occurs in the indices, the intervals, or the conditions."""
        sides = (t for i in self.closed.values() for t in (i.start, i.extent))
        return any(variable in term.free for term in (*self.indices, *sides, *self.guards))

    def substitute(self, values: Mapping[Var, Expr]) -> Write:
        """Return the write with closed variables replaced by terms, without their intervals."""
        return Write(
            tuple(substitute(i, values) for i in self.indices),
            {
                v: interval.substitute(values)
                for v, interval in self.closed.items()
                if v not in values
            },
            tuple(substitute(g, values) for g in self.guards),
            tuple(substitute(g, values) for g in self.limits),
        )


def guarded(write: Write, claim: Bool, buffer: Buffer, facts: Facts) -> Write:
    """Return a write under a condition, without the parts that hold or exclude no element."""
    if claim is TRUE:
        return write
    known = _within(write, facts)
    parts = conjuncts(claim)
    limits = tuple(p for p in parts if _excludes_outside(p, write, buffer, known))
    guards = (p for p in parts if p not in limits)
    return replace(write, guards=(*write.guards, *guards), limits=(*write.limits, *limits))


def settled(write: Write, buffer: Buffer, facts: Facts) -> Write:
    """Return a write of the same elements with fewer conditions.

    Parameters
    ----------
    write : Write
        The write. Its closed variables may have other values where the result is used; the
        result has new variables.
    buffer : Buffer
        The buffer.
    facts : Facts
        Facts about the variables that are not closed.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..symbolic import as_expr
    >>> a, b, t = var("a", lower=0), var("b", lower=0), Buffer(1, "t", (as_expr(64),), f32)
    >>> closed = {a: Interval.full(as_expr(2)), b: Interval.full(as_expr(32))}
    >>> found = settled(Write((a * 32 + b,), closed, (a * 32 + b < 34,)), buffer=t, facts=Facts())
    >>> [interval.extent for interval in found.closed.values()], found.guards
    ([34], ())
    """
    write = _renamed(write)
    write = replace(write, guards=(*write.guards, *write.limits), limits=())
    while (merged := _merged(write, facts)) is not None:
        write = merged
    write = _narrowed(write, facts, constant=True)
    for part in write.guards:
        others = tuple(g for g in write.guards if g is not part)
        if _excludes_outside(part, write, buffer, assuming(_within(write, facts), *others)):
            write = replace(write, guards=others)
    return _narrowed(write, facts, constant=False)


def _within(write: Write, facts: Facts) -> Facts:
    """Add the ranges of the closed variables."""
    for variable, values in write.closed.items():
        facts = assuming(facts, variable >= values.start, variable < values.stop)
    return facts


def _excludes_outside(part: Bool, write: Write, buffer: Buffer, facts: Facts) -> bool:
    """Return whether a condition holds, or excludes only indices outside of the buffer."""
    sides = tuple(zip(write.indices, buffer.shape, strict=True))
    if any(part is (index < size) for index, size in sides):
        return True
    if is_proved(part, facts):
        return True
    otherwise = assuming(facts, negate(part))
    return any(is_proved(i >= size, otherwise) or is_proved(i < 0, otherwise) for i, size in sides)


def _renamed(write: Write) -> Write:
    """Replace the closed variables by new ones, about which no facts are known."""
    names: dict[Var, Expr] = {}
    closed: dict[Var, Interval] = {}
    for variable, values in write.closed.items():
        names[variable] = new = _below(variable.name, values.extent)
        closed[new] = values
    found = write.substitute(names)
    return replace(found, closed={v: i.substitute(names) for v, i in closed.items()})


def _below(name: str, extent: Expr) -> Var:
    """Return a new variable for the values from 0 to an extent."""
    size = const_value(extent)
    return var(name, lower=0, upper=None if size is None or size < 1 else size - 1)


def _limit(part: Bool, write: Write) -> tuple[Mapping[Var, int], Expr] | None:
    """Return the positive coefficients of closed variables whose sum is below a limit.

    The result is None unless the condition has this form.
    """
    if not isinstance(part, (Lt, Le)):
        return None
    form = linear_form(part.left - part.right, tuple(write.closed))
    if form is None:
        return None
    found: dict[Var, int] = {}
    for variable, coefficient in form.coefficients.items():
        value = const_value(coefficient)
        if value is None or value < 1:
            return None
        found[variable] = value
    return found, -form.rest if isinstance(part, Lt) else 1 - form.rest


def _merged(write: Write, facts: Facts) -> Write | None:
    """Return a write with one variable in place of several that a condition sums up.

    These are the digits of a number, which takes all values below their product.
    """
    for part in write.guards:
        limit = _limit(part, write)
        if limit is None or len(limit[0]) < 2:
            continue
        digits = sorted(limit[0].items(), key=lambda d: d[1], reverse=True)
        count = _count(digits, write, facts)
        if count is None:
            continue
        unit = digits[-1][1]
        number = _below("number", count)
        last = number - total(tuple(v * (c // unit) for v, c in digits[:-1]))
        found = write.substitute({digits[-1][0]: last})
        found = found.substitute({v: number // (c // unit) for v, c in digits[:1]})
        rest = {v: number // (c // unit) % write.closed[v].extent for v, c in digits[1:-1]}
        found = found.substitute(rest)
        return replace(found, closed={**found.closed, number: Interval.full(count)})
    return None


def _count(digits: list[tuple[Var, int]], write: Write, facts: Facts) -> Expr | None:
    """Return the number of values of digits, largest scale first; None if they are not digits."""
    each = [write.closed[v] for v, _ in digits]
    if any(
        i.start != 0 or not i.exhaustive or not i.extent.free.isdisjoint(write.closed) for i in each
    ):
        return None
    for (_, larger), (v, smaller) in pairwise(digits):
        if simplify(write.closed[v].extent, facts) * smaller != larger:
            return None
    return each[0].extent * (digits[0][1] // digits[-1][1])


def _narrowed(write: Write, facts: Facts, *, constant: bool) -> Write:
    """Return a write with smaller ranges of variables, in place of conditions that limit them.

    With ``constant``, only by conditions with a constant limit.
    """
    for part in write.guards:
        limit = _limit(part, write)
        if limit is None or len(limit[0]) != 1:
            continue
        ((variable, scale),) = limit[0].items()
        values, stop = write.closed[variable], ceildiv(limit[1], scale)
        if values.start != 0 or (constant and const_value(stop) is None):
            continue
        extent = stop if is_proved(stop <= values.extent, facts) else minimum(stop, values.extent)
        write = Write(
            write.indices,
            {**write.closed, variable: replace(values, extent=extent)},
            tuple(g for g in write.guards if g is not part),
        )
    return write
