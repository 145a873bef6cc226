"""Facts in scope inside loops and branches."""

from __future__ import annotations

from collections.abc import Iterable, Set as AbstractSet

from ..loop.nodes import For, Let
from ..symbolic import (
    FALSE,
    Bool,
    Discharge,
    Expr,
    Fact,
    Facts,
    Origin,
    Var,
    conjuncts,
    const_value,
)

_HERE = Origin("enclosing loop, branch, or let", None)


def within_loop(facts: Facts, variable: Var, extent: Expr) -> Facts:
    """Add the range of a loop variable, unless the bounds of the variable imply it.

    Examples
    --------
    >>> from ..symbolic import as_expr, var
    >>> within_loop(Facts(), var("i", lower=0, upper=7), as_expr(8)) == Facts()
    True
    """
    size = const_value(extent)
    if size is not None and variable.upper is not None and variable.upper <= size - 1:
        return facts
    return facts.with_loop(variable, extent)


def within_loops(facts: Facts, loops: Iterable[For | Let]) -> Facts:
    """Add the ranges of the variables of several loops and lets, outermost first."""
    for loop in loops:
        if isinstance(loop, For):
            facts = within_loop(facts, loop.var, loop.extent)
        else:
            facts = assuming(facts, loop.var >= loop.lower, loop.var < loop.upper)
    return facts


def assuming(facts: Facts, *claims: Bool) -> Facts:
    """Add conditions that hold by construction, without a check for contradictions.

    Examples
    --------
    >>> from ..symbolic import is_proved, var
    >>> n = var("n")
    >>> is_proved(n + 1 > 4, assuming(Facts(), n >= 4))
    True
    """
    parts = (p for claim in claims for p in conjuncts(claim))
    return Facts((*facts, *(Fact(p, _HERE, Discharge.PROOF) for p in parts)))


def outside_loops(facts: Facts, variables: AbstractSet[Var]) -> Facts:
    """Return the facts that hold where some loops, branches, and lets are omitted.

    These are the facts without the loop ranges and conditions that mention the variables, and
    without the contradiction that the range of an empty loop simplifies to.

    Examples
    --------
    >>> from ..symbolic import is_proved, var
    >>> k, n = var("k", lower=0), var("n")
    >>> inside = within_loop(Facts(), k, n)
    >>> is_proved(n >= 1, inside), is_proved(n >= 1, outside_loops(inside, {k}))
    (True, False)
    """
    if not variables:
        return facts
    kept = [
        f
        for f in facts
        if f.discharge is not Discharge.PROOF
        or (f.predicate.free.isdisjoint(variables) and f.predicate is not FALSE)
    ]
    return facts if len(kept) == len(facts) else Facts(kept, facts.hints)
