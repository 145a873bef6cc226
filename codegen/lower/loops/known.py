"""What holds where a statement stands, and conditions decided by it.

This is no prover: lowering asks thousands of small linear questions that follow from one loop
bound or one guard, so each is answered by one subtraction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....ir.loop.nodes import For
from ....ir.symbolic import (
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
    all_of,
    any_of,
    negate,
)


@dataclass(frozen=True, slots=True)
class Bound:
    """``lower <= term``, and ``term <= upper`` where that is known."""

    term: Expr
    lower: int | None
    upper: int | None


@dataclass(frozen=True, slots=True)
class Known:
    """Bounds of terms that hold here.

    Examples
    --------
    >>> from ....ir.symbolic import var
    >>> i, n = var("i"), var("n")
    >>> Known().assuming(i * 4 + 3 < n).decide(i * 4 < n)
    True
    """

    bounds: tuple[Bound, ...] = ()

    @staticmethod
    def of(facts: Facts) -> Known:
        """Start from the facts of a function."""
        known = Known()
        for fact in facts:
            known = known.assuming(fact.predicate)
        return known

    def assuming(self, claim: Bool) -> Known:
        """Add what a predicate says, as far as it is a conjunction of comparisons."""
        new = tuple(bound for part in conjuncts(claim) for bound in _bounds(part))
        return Known((*new, *self.bounds)) if new else self

    def inside(self, loop: For) -> Known:
        """Add what the body of a loop may rely on."""
        last = loop.extent.args if isinstance(loop.extent, Min) else (loop.extent,)
        upper = tuple(Bound(e - 1 - loop.var, 0, None) for e in last)
        return Known((Bound(loop.var, 0, None), *upper, *self.bounds))

    def decide(self, claim: Bool) -> Bool:
        """Simplify a predicate: what is known to hold or not to hold is gone from it."""
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

    def range_of(self, term: Expr) -> tuple[int | None, int | None]:
        """Give constant bounds of a term."""
        lower, upper = term.lower, term.upper
        for bound in self.bounds:
            if bound.term.free.isdisjoint(term.free):
                continue
            rest = term - bound.term
            lower = _greater(lower, _plus(rest.lower, bound.lower))
            upper = _less(upper, _plus(rest.upper, bound.upper))
            rest = term + bound.term
            lower = _greater(lower, _minus(rest.lower, bound.upper))
            upper = _less(upper, _minus(rest.upper, bound.lower))
        return lower, upper

    def _positive(self, claim: Bool, slack: Expr) -> Bool:
        lower, upper = self.range_of(slack)
        if lower is not None and lower >= 0:
            return TRUE
        return FALSE if upper is not None and upper < 0 else claim

    def _zero(self, claim: Bool, difference: Expr) -> Bool:
        lower, upper = self.range_of(difference)
        if lower is not None and lower == upper:
            return TRUE if lower == 0 else FALSE
        apart = (lower is not None and lower > 0) or (upper is not None and upper < 0)
        return FALSE if apart else claim


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


def conjuncts(claim: Bool) -> tuple[Bool, ...]:
    """Give the parts of a conjunction."""
    if isinstance(claim, And):
        return tuple(part for a in claim.args for part in conjuncts(a))
    return () if claim is TRUE else (claim,)


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
