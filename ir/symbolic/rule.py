"""Rewrite rules, and queries on operands for their side conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from .base import Expr
from .terms import Mod, Mul, linear_terms

ApplyT = TypeVar("ApplyT", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Rule(Generic[ApplyT]):
    """An identity of integer arithmetic and the function that rewrites by it.

    ``identity`` is the identity in Python syntax over free integers, valid under
    ``side_condition``; tests check both with z3 and by random evaluation. Symbolic divisors are
    assumed to be nonzero. ``apply`` returns the simpler term, or None if the pattern does not match
    or the side condition is not proved.
    """

    name: str
    identity: str
    side_condition: str
    apply: ApplyT


class Knowledge:
    """Queries on the bounds and congruences that terms store.

    `FactKnowledge` extends it by facts about a program.
    """

    __slots__ = ()

    def at_least(self, e: Expr, bound: int) -> bool:
        """Return whether ``e >= bound`` is proved."""
        return e.lower is not None and e.lower >= bound

    def at_most(self, e: Expr, bound: int) -> bool:
        """Return whether ``e <= bound`` is proved."""
        return e.upper is not None and e.upper <= bound

    def interval(self, e: Expr) -> tuple[int | None, int | None]:
        """Return constant bounds, both inclusive."""
        return e.lower, e.upper

    def non_negative(self, e: Expr) -> bool:
        """Return whether ``e >= 0`` is proved."""
        return self.at_least(e, 0)

    def below(self, a: Expr, b: Expr) -> bool:
        """Return whether ``a < b`` is proved."""
        least = _least_difference(b, a)
        return least is not None and least >= 1

    def not_above(self, a: Expr, b: Expr) -> bool:
        """Return whether ``a <= b`` is proved."""
        least = _least_difference(b, a)
        return least is not None and least >= 0


def _least_difference(b: Expr, a: Expr) -> int | None:
    """Return a lower bound of ``b - a``, if possible without building the difference."""
    terms, least = linear_terms(b)
    a_terms, a_constant = linear_terms(a)
    rest = dict(terms)
    for term, c in a_terms:
        rest[term] = rest.get(term, 0) - c
    least -= a_constant
    for term, c in rest.items():
        if c:
            end = term.lower if c > 0 else term.upper
            if end is None:
                above = ceiling(a)
                return None if above is a else (b - above).lower
            least += c * end
    return least


PLAIN = Knowledge()


def ceiling(e: Expr) -> Expr:
    """Return an upper bound of a term: remainders are replaced by their maximum."""
    result = e
    for term, coefficient in linear_terms(e)[0]:
        if coefficient > 0 and isinstance(term, (Mod, Mul)):
            result = result + coefficient * (_ceiling_of_product(term) - term)
    return result


def _ceiling_of_product(term: Expr) -> Expr:
    factors = term.factors if isinstance(term, Mul) else (term,)
    others = [f for f in factors if not isinstance(f, Mod)]
    remainders = [f for f in factors if isinstance(f, Mod)]
    if len(remainders) != 1 or any(f.lower is None or f.lower < 0 for f in others):
        return term
    divisor = remainders[0].divisor
    # A non-negative divisor is positive where the remainder is defined.
    if divisor.lower is None or divisor.lower < 0 or divisor.upper is not None:
        return term
    result = divisor - 1
    for factor in others:
        result = result * factor
    return result
