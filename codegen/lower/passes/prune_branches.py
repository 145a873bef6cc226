"""Branches that are decided at compile time."""

from __future__ import annotations

from dataclasses import replace

from ....ir.loop.nodes import For, If, PrimFunc, Seq, Stmt
from ....ir.loop.visit import children, seq, with_children
from ....ir.symbolic import FALSE, TRUE, negate
from ....ir.symbolic.assumptions import Assumptions
from ....schedules.launch.lowering_pass import Pass
from ....target.target import Target

EMPTY = Seq(())


class PruneBranches(Pass):
    """Remove branches that the assumptions in scope decide, and loops without statements.

    Before::
        for i in range(n):
            if i < n: body
            if i >= n: other
    After::
        for i in range(n):
            body
    """

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Prune all branches."""
        del target
        return replace(func, body=prune(func.body, Assumptions.of(func.facts)))


def prune(statement: Stmt, assumptions: Assumptions) -> Stmt:
    """Replace each branch whose condition is decided by the assumptions by its taken side."""
    match statement:
        case If():
            return _branch(statement, assumptions)
        case For(var=var, extent=extent, body=body):
            inner = prune(body, assumptions.iterating(var, extent))
            return EMPTY if _is_empty(inner) else with_children(statement, (inner,))
        case Seq(body=parts):
            return seq(*(prune(p, assumptions) for p in parts))
        case _:
            below = children(statement)
            return with_children(statement, tuple(prune(c, assumptions) for c in below))


def _branch(branch: If, assumptions: Assumptions) -> Stmt:
    claim = assumptions.decide(branch.condition)
    if claim is TRUE:
        return prune(branch.then, assumptions)
    otherwise = EMPTY if branch.otherwise is None else branch.otherwise
    if claim is FALSE:
        return prune(otherwise, assumptions)
    then = prune(branch.then, assumptions.assuming(claim))
    other = prune(otherwise, assumptions.assuming(negate(claim)))
    if _is_empty(then) and _is_empty(other):
        return EMPTY
    return If(claim, then, None if _is_empty(other) else other)


def _is_empty(statement: Stmt) -> bool:
    return isinstance(statement, Seq) and not statement.body
