"""What a simplification rule is, and what it may ask about its operands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from .base import Expr
from .terms import Mod, Mul, linear_terms

ApplyT = TypeVar("ApplyT", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Rule(Generic[ApplyT]):
    """One identity of integer arithmetic and the function that uses it.

    ``identity`` is the claim in Python syntax over free integers, ``given`` its side condition.
    Both are checked by z3 and by random evaluation (``tests/ir/symbolic/test_rules.py``); with
    divisors that are not constant they hold wherever no divisor is zero. ``apply`` returns the
    simpler term, or None where the rule does not fit or its side condition is not known.
    """

    name: str
    identity: str
    given: str
    apply: ApplyT


class Knowledge:
    """What holds of terms by themselves: the bounds and congruences they carry.

    Facts about a program extend it (`knowledge.FactKnowledge`).
    """

    __slots__ = ()

    def at_least(self, e: Expr, bound: int) -> bool:
        """Whether ``e >= bound`` is certain."""
        return e.lower is not None and e.lower >= bound

    def at_most(self, e: Expr, bound: int) -> bool:
        """Whether ``e <= bound`` is certain."""
        return e.upper is not None and e.upper <= bound

    def interval(self, e: Expr) -> tuple[int | None, int | None]:
        """Constant bounds, both included."""
        return e.lower, e.upper

    def non_negative(self, e: Expr) -> bool:
        """Whether ``e >= 0`` is certain."""
        return self.at_least(e, 0)

    def below(self, a: Expr, b: Expr) -> bool:
        """Whether ``a < b`` is certain."""
        least = _least_difference(b, a)
        return least is not None and least >= 1

    def not_above(self, a: Expr, b: Expr) -> bool:
        """Whether ``a <= b`` is certain."""
        least = _least_difference(b, a)
        return least is not None and least >= 0


def _least_difference(b: Expr, a: Expr) -> int | None:
    """A lower bound of ``b - a``, found without building the difference if that succeeds."""
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
    """Replace remainders by the most they can be where that only enlarges the term."""
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
    # A divisor that may be zero is positive wherever the remainder means anything.
    if divisor.lower is None or divisor.lower < 0 or divisor.upper is not None:
        return term
    result = divisor - 1
    for factor in others:
        result = result * factor
    return result
