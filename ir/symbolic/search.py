"""Is ``e >= 0``? A small search over sums of products, using inequalities and bounds.

A term that could make ``e`` negative is cancelled against an inequality that bounds it, times a
factor that is not negative; quotients, least and greatest values are opened. Each step replaces
``e`` by something that is at most a positive multiple of it, so a success is a proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import gcd

from .base import Expr
from .predicates import Cmp, Eq, Le, Lt
from .rule import ceiling
from .rules.splits import divide_product
from .terms import FloorDiv, Max, Min, Select, factors_of, linear_terms

_DEPTH = 6
_STEPS = 150


class Search:
    """Answers for one set of comparisons; answers are remembered."""

    __slots__ = ("_answers", "_orders")

    def __init__(self, comparisons: Iterable[Cmp]) -> None:
        """Index the inequalities by their terms."""
        self._answers: dict[Expr, bool] = {}
        self._orders: dict[Expr, list[tuple[Expr, int, Expr]]] = {}
        for p in comparisons:
            for delta in _deltas(p):
                for term, c in linear_terms(delta)[0]:
                    lead = factors_of(term)[0]
                    self._orders.setdefault(lead, []).append((term, c, delta))

    def non_negative(self, e: Expr) -> bool:
        """Whether ``e >= 0`` is certain. False means that no proof was found."""
        if e.lower is not None and e.lower >= 0:
            return True
        known = self._answers.get(e)
        if known is None:
            known = _Attempt(self._orders).prove(e, _DEPTH)
            if len(self._answers) < 10_000:
                self._answers[e] = known
        return known


def _deltas(p: Cmp) -> tuple[Expr, ...]:
    """The differences that are not positive."""
    if isinstance(p, (Le, Lt)):
        return (p.delta,)
    return (p.delta, -p.delta) if isinstance(p, Eq) else ()


class _Attempt:
    """One bounded search."""

    def __init__(self, orders: dict[Expr, list[tuple[Expr, int, Expr]]]) -> None:
        self.orders = orders
        self.steps = _STEPS
        self.seen: set[Expr] = set()

    def prove(self, e: Expr, depth: int) -> bool:
        if e.lower is not None and e.lower >= 0:
            return True
        floor = -ceiling(-e)
        if floor.lower is not None and floor.lower >= 0:
            return True
        if depth == 0 or e in self.seen or self.steps <= 0:
            return False
        self.seen.add(e)
        self.steps -= 1
        return any(
            all(self.prove(part, depth - 1) for part in parts) for parts in self.reductions(e)
        )

    def reductions(self, e: Expr) -> Iterator[tuple[Expr, ...]]:
        """Sets of terms of which each set, not negative, makes ``e`` not negative."""
        for term, c in linear_terms(e)[0]:
            yield from self.cancellations(e, term, c)
        for term, c in linear_terms(e)[0]:
            yield from _openings(e, term, c)

    def cancellations(self, e: Expr, term: Expr, c: int) -> Iterator[tuple[Expr]]:
        """Add ``m * delta`` with ``delta <= 0``, ``m >= 0`` such that the term disappears."""
        for lead in dict.fromkeys(factors_of(term)):
            for inside, a, delta in self.orders.get(lead, ()):
                if (a > 0) == (c > 0):
                    continue
                cofactor = divide_product(term, inside)
                if cofactor is None or cofactor.lower is None or cofactor.lower < 0:
                    continue
                g = gcd(a, c)
                yield (abs(a) // g * e + abs(c) // g * cofactor * delta,)


def _without_quotient(rest: Expr, c: int, a: Expr, d: Expr) -> Expr:
    """``rest + c * (a // d)`` times ``d > 0``, or something that is negative whenever that is."""
    if c == 1:
        return rest * d + a
    if c == -1:
        return (rest + 1) * d - a - 1
    return rest * d + (c * a if c < 0 else c * (a - d + 1))


def _openings(e: Expr, term: Expr, c: int) -> Iterator[tuple[Expr, ...]]:
    """Replace a quotient by its bounds, or a choice by its alternatives."""
    match term:
        case FloorDiv(a, d) if d.lower is not None and d.lower >= 0:
            yield (_without_quotient(e - c * term, c, a, d),)
        case Min(args):
            parts = tuple([e + c * (arg - term) for arg in args])
            if c > 0:
                yield parts
            else:
                yield from ((part,) for part in parts)
        case Max(args):
            parts = tuple([e + c * (arg - term) for arg in args])
            if c < 0:
                yield parts
            else:
                yield from ((part,) for part in parts)
        case Select(_, a, b):
            yield e + c * (a - term), e + c * (b - term)
        case _:
            return
