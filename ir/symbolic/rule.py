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
        return (b - ceiling(a)).lower is not None and self.at_least(b - ceiling(a), 1)

    def not_above(self, a: Expr, b: Expr) -> bool:
        """Whether ``a <= b`` is certain."""
        difference = b - ceiling(a)
        return difference.lower is not None and difference.lower >= 0


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
