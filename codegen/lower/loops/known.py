"""What holds where a statement stands, and conditions decided by it.

This is no prover: lowering asks thousands of small linear questions that follow from one loop
bound or one guard, so each is answered by one subtraction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

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
    const_value,
    linear_form,
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
    _decided: dict[Bool, Bool] = field(default_factory=dict[Bool, Bool], compare=False, repr=False)

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
        own = loop.var.lower
        lower = () if own is not None and own >= 0 else (Bound(loop.var, 0, None),)
        return Known((*lower, *upper, *self.bounds))

    def decide(self, claim: Bool) -> Bool:
        """Simplify a predicate: what is known to hold or not to hold is gone from it."""
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
        """Iterate constant bounds of a term: its own, then those that follow from each fact."""
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
    """Give how often one term holds another, where that is more than once."""
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
