"""Assumptions in scope during lowering, and conditions decided by them.

Lowering decides thousands of small linear conditions that follow from one loop bound or one guard,
so each is decided by a subtraction instead of a prover.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from . import (
    FALSE,
    TRUE,
    And,
    Bool,
    Eq,
    Expr,
    Facts,
    Le,
    Lt,
    Min,
    Ne,
    Or,
    Var,
    all_of,
    any_of,
    const_value,
    linear_form,
    negate,
)
from .predicates import conjuncts


@dataclass(frozen=True, slots=True)
class Bound:
    """Constant bounds of a term, ``lower <= term <= upper``; None means unbounded."""

    term: Expr
    lower: int | None
    upper: int | None


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The bounds of terms that are assumed in a scope.

    Examples
    --------
    >>> from . import var
    >>> i, n = var("i"), var("n")
    >>> Assumptions().assuming(i * 4 + 3 < n).decide(i * 4 < n)
    True
    """

    bounds: tuple[Bound, ...] = ()
    _decided: dict[Bool, Bool] = field(default_factory=dict[Bool, Bool], compare=False, repr=False)

    @staticmethod
    def of(facts: Facts) -> Assumptions:
        """Return the assumptions given by the facts of a function."""
        assumptions = Assumptions()
        for fact in facts:
            assumptions = assumptions.assuming(fact.predicate)
        return assumptions

    def assuming(self, claim: Bool) -> Assumptions:
        """Add the comparisons of a conjunction; other conditions are ignored."""
        new = tuple(bound for part in conjuncts(claim) for bound in _bounds(part))
        return Assumptions((*new, *self.bounds)) if new else self

    def iterating(self, var: Var, extent: Expr) -> Assumptions:
        """Add the range ``0 <= var < extent`` of a loop variable."""
        last = extent.args if isinstance(extent, Min) else (extent,)
        upper = tuple(Bound(e - 1 - var, 0, None) for e in last)
        own = var.lower
        lower = () if own is not None and own >= 0 else (Bound(var, 0, None),)
        return Assumptions((*lower, *upper, *self.bounds))

    def decide(self, claim: Bool) -> Bool:
        """Simplify a predicate: decided comparisons are replaced by their truth value."""
        found = self._decided.get(claim)
        if found is None:
            found = self._decided[claim] = self._decide(claim)
        return found

    def _decide(self, claim: Bool) -> Bool:
        match claim:
            case And(args=args):
                return all_of(*(self.decide(a) for a in args))
            case Or(args=args):
                return any_of(*(self.decide(a) for a in args))
            case Lt(left=left, right=right):
                return self._positive(claim, right - left - 1)
            case Le(left=left, right=right):
                return self._positive(claim, right - left)
            case Eq(left=left, right=right):
                return self._zero(claim, right - left)
            case Ne(left=left, right=right):
                equal = self._zero(negate(claim), right - left)
                return negate(equal)
            case _:
                return claim

    def _ranges(self, term: Expr) -> Iterator[tuple[int | None, int | None]]:
        """Yield constant bounds of a term: its own, then those implied by each assumption."""
        yield term.lower, term.upper
        related = [b for b in self.bounds if not b.term.free.isdisjoint(term.free)]
        for bound in related:
            rest = term - bound.term
            yield _plus(rest.lower, bound.lower), _plus(rest.upper, bound.upper)
        for bound in related:
            rest = term + bound.term
            yield _minus(rest.lower, bound.upper), _minus(rest.upper, bound.lower)
        for bound in related:
            factor = _ratio(term, bound.term)
            if factor is not None:
                rest = term - bound.term * factor
                low, high = _times(bound.lower, factor), _times(bound.upper, factor)
                yield _plus(rest.lower, low), _plus(rest.upper, high)

    def _positive(self, claim: Bool, slack: Expr) -> Bool:
        for lower, upper in self._ranges(slack):
            if lower is not None and lower >= 0:
                return TRUE
            if upper is not None and upper < 0:
                return FALSE
        return claim

    def _zero(self, claim: Bool, difference: Expr) -> Bool:
        least: int | None = None
        most: int | None = None
        for lower, upper in self._ranges(difference):
            least, most = _greater(least, lower), _less(most, upper)
            if (least is not None and least > 0) or (most is not None and most < 0):
                return FALSE
        return TRUE if least == most == 0 else claim


def _ratio(term: Expr, other: Expr) -> int | None:
    """Return the integer factor, at least 2, between the coefficients of a common symbol."""
    common = min(term.free & other.free, key=lambda v: v.serial)
    forms = [linear_form(t, (common,)) for t in (term, other)]
    factors = [None if f is None else const_value(f.coefficients[common]) for f in forms]
    whole, part = factors
    if not whole or not part or whole % part or whole // part < 2:
        return None
    return whole // part


def _times(a: int | None, factor: int) -> int | None:
    return None if a is None else a * factor


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _minus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a - b


def _greater(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return max(a, b)


def _less(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)


def _bounds(part: Bool) -> Iterator[Bound]:
    match part:
        case Lt(left=left, right=right):
            yield Bound(right - left, 1, None)
        case Le(left=left, right=right):
            yield Bound(right - left, 0, None)
        case Eq(left=left, right=right):
            yield Bound(right - left, 0, 0)
        case _:
            return
