"""Bounded search for a proof of ``e >= 0`` from inequalities and bounds.

A term without a lower bound is canceled by an inequality that bounds it, times a non-negative
factor; quotients, minima and maxima are expanded. Each step replaces ``e`` by a lower bound of a
positive multiple of ``e``, so a success is a proof.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from math import gcd
from typing import NamedTuple

from .base import Bool, Expr, Var
from .predicates import Cmp, Eq, Le, Lt
from .rule import ceiling
from .rules.comparison import common_factors
from .rules.splits import combine, divide_product
from .terms import FloorDiv, Max, Min, Select, factors_of, linear_terms

_DEPTH = 6
_WORK = 120
_MEMORY = 10_000
GOAL_WORK = 2_000
"""The limit of visited terms per goal, about 20 µs per term."""
_WIDTH = 10


class Search:
    """Searches under one set of comparisons; results are cached.

    ``budget`` limits the work for one goal, which may need many searches.
    """

    __slots__ = ("_answers", "_orders", "budget")

    def __init__(self, comparisons: Iterable[Cmp]) -> None:
        """Index the inequalities by their terms."""
        self.budget = GOAL_WORK
        self._answers: dict[Expr, bool] = {}
        self._orders: dict[Expr, list[tuple[Expr, int, Expr]]] = {}
        for p in comparisons:
            for delta in deltas_of(p):
                for term, c in linear_terms(delta)[0]:
                    lead = factors_of(term)[0]
                    self._orders.setdefault(lead, []).append((term, c, delta))

    def non_negative(self, e: Expr) -> bool:
        """Return whether ``e >= 0`` is proved; False means that no proof was found."""
        if e.lower is not None and e.lower >= 0:
            return True
        known = self._answers.get(e)
        if known is not None:
            return known
        attempt = _Attempt(self._orders, min(_WORK, self.budget))
        found = attempt.prove(e, _DEPTH)
        self.budget -= min(_WORK, self.budget) - max(attempt.work, 0)
        if (found or self.budget > 0) and len(self._answers) < _MEMORY:
            self._answers[e] = found
        return found


def deltas_of(p: Bool) -> tuple[Expr, ...]:
    """Return the terms that are ``<= 0`` by a condition; none if it is not a comparison."""
    if isinstance(p, (Le, Lt)):
        return (p.delta,)
    return (p.delta, -p.delta) if isinstance(p, Eq) else ()


class _Attempt:
    """A search with a work limit."""

    def __init__(self, orders: dict[Expr, list[tuple[Expr, int, Expr]]], work: int) -> None:
        self.orders = orders
        self.work = work
        self.seen: set[Expr] = set()

    def prove(self, e: Expr, depth: int) -> bool:
        e = _primitive(e)
        if e.lower is not None and e.lower >= 0:
            return True
        floor = _floor(e)
        if floor.lower is not None and floor.lower >= 0:
            return True
        terms = linear_terms(e)[0]
        self.work -= len(terms)
        if depth == 0 or e in self.seen or self.work <= 0 or len(terms) > _WIDTH:
            return False
        self.seen.add(e)
        for parts in self.reductions(e):
            if all(self.prove(part, depth - 1) for part in parts):
                return True
            if self.work <= 0:
                return False
        return False

    def reductions(self, e: Expr) -> Iterator[tuple[Expr, ...]]:
        """Yield sets of terms; ``e >= 0`` follows if all terms of one set are ``>= 0``.

        Every term without a lower bound must be canceled, so only the one with the fewest
        cancellations is tried.
        """
        terms = linear_terms(e)[0]
        loose = [(t, c) for t, c in terms if (t.lower if c > 0 else t.upper) is None]
        ways = [found for t, c in loose if (found := self.cancellations(t, c))]
        for way in min(ways, key=len) if ways else ():
            yield (way.applied(e),)
        if not loose:
            ways = [way for term, c in terms for way in self.cancellations(term, c)]
            for candidate in sorted(map(partial(_apply, e), ways), key=_sort_key):
                yield (candidate,)
        worst = _with_worst_values(e)
        if worst is not e:
            yield (worst,)
        for term, c in terms:
            yield from _expansions(e, term, c)

    def cancellations(self, term: Expr, c: int) -> list[_Cancellation]:
        """Return all ways to cancel a term by adding ``m * delta``, ``delta <= 0``, ``m >= 0``."""
        ways: list[_Cancellation] = []
        for lead in dict.fromkeys(factors_of(term)):
            for inside, a, delta in self.orders.get(lead, ()):
                cofactor = divide_product(term, inside) if (a > 0) != (c > 0) else None
                if cofactor is not None and cofactor.lower is not None and cofactor.lower >= 0:
                    g = gcd(a, c)
                    ways.append(_Cancellation(abs(a) // g, abs(c) // g * cofactor, delta))
        return ways


class _Cancellation(NamedTuple):
    """``scale * e + multiplier * delta``, which is at most ``scale * e``."""

    scale: int
    multiplier: Expr
    delta: Expr

    def applied(self, e: Expr) -> Expr:
        return self.scale * e + self.multiplier * self.delta


def _primitive(e: Expr) -> Expr:
    """Divide a term by positive common factors, which preserves its sign."""
    terms, constant = linear_terms(e)
    if not terms:
        return e
    g = gcd(*[c for _, c in terms])
    if g > 1:
        e = combine([(t, c // g) for t, c in terms], constant // g)
    found = next(common_factors(e), None) if len(terms) > 1 and constant == 0 else None
    if found is not None and found[0].lower is not None and found[0].lower >= 0:
        return found[1]
    return e


def _with_worst_values(e: Expr) -> Expr:
    """Replace symbols of finite range by the bound that minimizes ``e``."""
    terms, constant = linear_terms(e)
    finite = [(t, c) for t, c in terms if isinstance(t, Var) and None not in (t.lower, t.upper)]
    if not finite or len(finite) == len(terms):
        return e
    ends = [(t.lower if c > 0 else t.upper, c) for t, c in finite]
    worst = sum(c * end for end, c in ends if end is not None)
    return combine([(t, c) for t, c in terms if (t, c) not in finite], constant + worst)


def _apply(e: Expr, way: _Cancellation) -> Expr:
    return way.applied(e)


def _sort_key(e: Expr) -> tuple[int, int]:
    """Return a sort key: fewer terms first, then the higher lower bound."""
    return len(linear_terms(e)[0]), -(e.lower if e.lower is not None else -sys.maxsize)


def _floor(e: Expr) -> Expr:
    """Return a lower bound of a term: subtracted remainders are replaced by their maximum."""
    if any(c < 0 and term.has_sum_rules for term, c in linear_terms(e)[0]):
        return -ceiling(-e)
    return e


def _without_quotient(rest: Expr, c: int, a: Expr, d: Expr) -> Expr:
    """Return a lower bound of ``(rest + c * (a // d)) * d`` for ``d > 0``."""
    if c == 1:
        return rest * d + a
    if c == -1:
        return (rest + 1) * d - a - 1
    return rest * d + (c * a if c < 0 else c * (a - d + 1))


def _expansions(e: Expr, term: Expr, c: int) -> Iterator[tuple[Expr, ...]]:
    """Yield replacements of a quotient by its bounds, or of a choice by its alternatives."""
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
