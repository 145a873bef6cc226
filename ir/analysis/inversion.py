"""Inversion of bindings: loop variables as terms over the iteration variables they bind.

The binding of each iteration variable is an equation ``term == value``. A sum of loops is inverted
as a mixed-radix number: ``i0 * 8 + i1 == v`` gives ``i0 == v // 8`` and ``i1 == v % 8``. Quotients
and remainders of one source determine the source: ``f // 8 == a`` and ``f % 8 == b`` give
``f == a * 8 + b``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from ..symbolic import (
    Add,
    Bool,
    Expr,
    Facts,
    FloorDiv,
    Mod,
    Mul,
    Var,
    as_expr,
    const_value,
    eq,
    free_vars,
    is_proved,
    maximum,
    postorder,
    product,
    simplify,
    substitute,
)
from .intervals import Interval, interval_of

_ZERO, _ONE = as_expr(0), as_expr(1)


@dataclass(frozen=True, slots=True)
class Equation:
    """A term over loop variables that equals a term over iteration variables.

    With a ``size``, all values of both terms are in ``[0, size)``.
    """

    term: Expr
    value: Expr
    size: Expr | None = None


@dataclass(frozen=True, slots=True)
class Inverse:
    """The solution of some equations.

    Parameters
    ----------
    values : Mapping[Var, Expr]
        The values of loop variables; the solution does not include the ranges of the loops.
    claims : tuple of Bool
        Further conditions on the values, without which the equations have no solution.
    pending : tuple of Equation
        The equations that do not determine the values of their loop variables.
    dependent : tuple of Equation
        The equations whose loop variables are determined by other equations.
    """

    values: Mapping[Var, Expr]
    claims: tuple[Bool, ...]
    pending: tuple[Equation, ...]
    dependent: tuple[Equation, ...] = ()


@dataclass(frozen=True, slots=True)
class _Digit:
    """The equation ``(source // lower) % extent == value``; without an extent, no remainder."""

    lower: Expr
    extent: Expr | None
    equation: Equation


class _Solver:
    """The state of a solution.

    Divisors are positive in every iteration, but their values may be 0 if there is none; the terms
    of the solution divide by at least 1.
    """

    def __init__(self, extents: Mapping[Var, Expr], facts: Facts) -> None:
        self._facts = facts
        self._open = dict(extents)
        self._digits: dict[Expr, list[_Digit]] = {}
        self._new: list[Equation] = []
        self.values: dict[Var, Expr] = {}
        self.claims: list[Bool] = []
        self._dependent: list[Equation] = []

    def solve(self, equations: Iterable[Equation]) -> Inverse:
        left: tuple[Equation, ...] = tuple(equations)
        while True:
            pending = self._pending(left)
            left = _joined(pending)
            if len(left) == len(pending):
                return Inverse(self.values, tuple(self.claims), pending, tuple(self._dependent))

    def _pending(self, equations: tuple[Equation, ...]) -> tuple[Equation, ...]:
        """Use all equations that can be used; return the others, in order."""
        left = list(equations)
        while True:
            before = len(self.values), len(left)
            kept = [e for e in map(self._known, left) if not self._solved(e)]
            left = kept + self._new
            self._new = []
            if (len(self.values), len(left)) == before:
                break
        digits = [self._known(d.equation) for found in self._digits.values() for d in found]
        self._digits.clear()
        closed = [d for d in digits if free_vars(d.term).isdisjoint(self._open)]
        digits = [d for d in digits if d not in closed or not self._solved(d)]
        order = {e.value: k for k, e in enumerate(equations)}
        return tuple(sorted((*left, *digits), key=lambda e: order.get(e.value, len(order))))

    def _known(self, equation: Equation) -> Equation:
        term = substitute(equation.term, self.values) if self.values else equation.term
        return equation if term is equation.term else replace(equation, term=term)

    def _solved(self, equation: Equation) -> bool:
        """Use an equation, as values, digits or further equations; return whether it is used."""
        term, value = equation.term, equation.value
        if free_vars(term).isdisjoint(self._open):
            if term is not value:
                self.claims.append(eq(term, value))
            if const_value(term) is None:
                self._dependent.append(equation)
            return True
        match term:
            case Var():
                self._set(term, value)
                return True
            case Add() | Mul():
                return self._number(term, value)
            case FloorDiv() | Mod():
                return self._digit(equation, term)
            case _:
                return False

    def _set(self, variable: Var, value: Expr) -> None:
        del self._open[variable]
        step = {variable: value}
        self._open = {v: substitute(extent, step) for v, extent in self._open.items()}
        self.values[variable] = value

    def _number(self, term: Add | Mul, value: Expr) -> bool:
        """Use an equation with a sum as mixed-radix number."""
        parts: list[tuple[Expr, Expr]] = []
        pairs = term.terms if isinstance(term, Add) else ((term, 1),)
        for summand, count in pairs:
            if free_vars(summand).isdisjoint(self._open):
                value = value - count * summand
                continue
            factors = summand.factors if isinstance(summand, Mul) else (summand,)
            varying = [f for f in factors if not free_vars(f).isdisjoint(self._open)]
            if len(varying) > 1:
                return False
            fixed = product(tuple(f for f in factors if free_vars(f).isdisjoint(self._open)))
            parts.append((fixed * count, varying[0]))
        if isinstance(term, Add):
            value = value - term.constant
        if len(parts) == 1:
            return self._scaled(*parts[0], value)
        ordered = self._ordered(parts)
        if ordered is None:
            return False
        self._split(ordered, value)
        return True

    def _scaled(self, scale: Expr, part: Expr, value: Expr) -> bool:
        size = const_value(scale)
        if size is not None and size < 0:
            scale, value = -scale, -value
        if not is_proved(scale >= 1, self._facts):
            return False
        if scale is not _ONE:
            self.claims += [scale >= 1, eq(value % maximum(scale, 1), 0)]
            value = value // maximum(scale, 1)
        self._new.append(Equation(part, value))
        return True

    def _ordered(self, parts: list[tuple[Expr, Expr]]) -> list[tuple[Expr, Expr, Expr]] | None:
        """Return scale, term and extent of the digits, lowest first; None if digits overlap."""
        left, ordered, reach = list(parts), list[tuple[Expr, Expr, Expr]](), _ONE
        while left:
            following = self._least(left, reach)
            if following is None:
                return None
            left.remove(following)
            scale, part = following
            extent = self._extent(part)
            if left and extent is None:
                return None
            extent = _ZERO if extent is None else extent
            ordered.append((scale, part, extent))
            reach = scale * extent
        return ordered

    def _least(self, parts: list[tuple[Expr, Expr]], reach: Expr) -> tuple[Expr, Expr] | None:
        exact = next((p for p in parts if p[0] is reach), None)
        if exact is not None:
            return exact
        constant = [(c, p) for p in parts if (c := const_value(p[0])) is not None]
        candidates = [min(constant, key=lambda x: x[0])[1]] if constant else parts
        wide = (p for p in candidates if is_proved(p[0] >= 1, self._facts))
        return next((p for p in wide if is_proved(p[0] >= reach, self._facts)), None)

    def _extent(self, part: Expr) -> Expr | None:
        """Return ``e`` if a term is in ``[0, e)`` in every iteration and ``e`` is positive."""
        if isinstance(part, Var):
            extent = self._open[part]
        else:
            ranges = {v: Interval.full(e) for v, e in self._open.items()}
            found = interval_of(part, ranges, self._facts)
            if found is None or found.start != 0:
                return None
            extent = found.extent
        return extent if is_proved(extent >= 1, self._facts) else None

    def _split(self, ordered: list[tuple[Expr, Expr, Expr]], value: Expr) -> None:
        """Add an equation for each digit of a mixed-radix number."""
        if ordered[0][0] is not _ONE:
            self.claims.append(eq(value % maximum(ordered[0][0], 1), 0))
        following = [*(scale for scale, _, _ in ordered[1:]), None]
        for (scale, part, extent), above in zip(ordered, following, strict=True):
            if above is None:
                digit = value // maximum(scale, 1)
            elif above is scale * extent:
                digit = (value // maximum(scale, 1)) % maximum(extent, 1)
            else:
                digit = (value % maximum(above, 1)) // maximum(scale, 1)
            if above is not None:
                self.claims.append(extent >= 1)
            self._new.append(Equation(part, digit))

    def _digit(self, equation: Equation, term: FloorDiv | Mod) -> bool:
        """Use an equation with a quotient or remainder as digit of its source."""
        value = equation.value
        digit = self._as_digit(term)
        if digit is None:
            return False
        source, lower, extent = digit
        self.claims.append(lower >= 1)
        if extent is not None:
            self.claims += [value >= 0, value < extent]
        found = _Digit(lower, extent, equation)
        self._digits.setdefault(source, []).append(found)
        self._close(source)
        return True

    def _as_digit(self, term: FloorDiv | Mod) -> tuple[Expr, Expr, Expr | None] | None:
        inner, divisor = term.numerator, term.divisor
        if not free_vars(divisor).isdisjoint(self._open):
            return None
        if not is_proved(divisor >= 1, self._facts):
            return None
        if isinstance(term, Mod):
            if isinstance(inner, FloorDiv):
                found = self._as_digit(inner)
                if found is not None and found[2] is None:
                    return found[0], found[1], divisor
            return inner, _ONE, divisor
        nested = self._as_digit(inner) if isinstance(inner, Mod) else None
        if nested is not None:
            source, lower, extent = nested
            if extent is not None and is_proved(eq(extent % divisor, 0), self._facts):
                return source, lower * divisor, simplify(extent // divisor, self._facts)
        return inner, divisor, None

    def _close(self, source: Expr) -> None:
        """Add the equation of a source whose digits are complete."""
        digits = self._digits[source]
        used: list[_Digit] = []
        reach, value = _ONE, _ZERO
        while True:
            following = next((d for d in digits if d.lower is reach and d not in used), None)
            if following is None:
                return
            used.append(following)
            value = value + following.equation.value * reach
            if following.extent is None:
                break
            reach = simplify(reach * following.extent, self._facts)
            if self._below(source, reach):
                break
        self._digits[source] = [d for d in digits if d not in used]
        self._new.append(Equation(source, value))

    def _below(self, source: Expr, limit: Expr) -> bool:
        """Return whether a term is in ``[0, limit)`` in every iteration."""
        if isinstance(source, Var):
            return is_proved(self._open[source] <= limit, self._facts)
        return is_proved(source >= 0, self._facts) and is_proved(source < limit, self._facts)


def _joined(equations: tuple[Equation, ...]) -> tuple[Equation, ...]:
    """Join two adjacent equations if the number of which they are digits has a simpler term.

    For example, ``f * 2 + g // 5 == a`` and ``g % 5 == b`` give ``f * 10 + g == a * 5 + b``.
    """
    for k, (high, low) in enumerate(pairwise(equations)):
        if low.size is None or free_vars(high.term).isdisjoint(free_vars(low.term)):
            continue
        term = high.term * low.size + low.term
        if _divisions(term) < _divisions(high.term) + _divisions(low.term):
            value = high.value * low.size + low.value
            size = None if high.size is None else high.size * low.size
            joined = Equation(term, value, size)
            return (*equations[:k], joined, *equations[k + 2 :])
    return equations


def _divisions(term: Expr) -> int:
    return sum(isinstance(part, FloorDiv | Mod) for part in postorder(term))


def invert(equations: Iterable[Equation], extents: Mapping[Var, Expr], facts: Facts) -> Inverse:
    """Return loop variables as terms over iteration variables.

    Parameters
    ----------
    equations : iterable of Equation
        The bindings, with the iteration variables as values.
    extents : Mapping[Var, Expr]
        The loop variables with their extents.
    facts : Facts
        The facts in every iteration, such as the ranges of the loops.

    Examples
    --------
    >>> from ..symbolic import var
    >>> f, a, b = var("f", lower=0, upper=31), var("a", lower=0), var("b", lower=0, upper=7)
    >>> found = invert([Equation(f // 8, a), Equation(f % 8, b)], {f: as_expr(32)}, Facts())
    >>> found.values[f], found.pending
    (a * 8 + b, ())
    """
    return _Solver(extents, facts).solve(equations)
