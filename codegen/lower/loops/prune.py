"""Branches that are decided where they stand, taken or dropped for good."""

from __future__ import annotations

from ....ir.loop.nodes import For, If, Seq, Stmt
from ....ir.loop.visit import children, seq, with_children
from ....ir.symbolic import FALSE, TRUE, negate
from .known import Known

NOTHING = Seq(())


def prune(statement: Stmt, known: Known) -> Stmt:
    """Resolve every branch whose condition follows from what is known."""
    match statement:
        case If():
            return _branch(statement, known)
        case For(body=body):
            inner = prune(body, known.inside(statement))
            return NOTHING if _is_nothing(inner) else with_children(statement, (inner,))
        case Seq(body=parts):
            return seq(*(prune(p, known) for p in parts))
        case _:
            below = children(statement)
            return with_children(statement, tuple(prune(c, known) for c in below))


def _branch(branch: If, known: Known) -> Stmt:
    claim = known.decide(branch.condition)
    if claim is TRUE:
        return prune(branch.then, known)
    otherwise = NOTHING if branch.otherwise is None else branch.otherwise
    if claim is FALSE:
        return prune(otherwise, known)
    then = prune(branch.then, known.assuming(claim))
    other = prune(otherwise, known.assuming(negate(claim)))
    if _is_nothing(then) and _is_nothing(other):
        return NOTHING
    return If(claim, then, None if _is_nothing(other) else other)


def _is_nothing(statement: Stmt) -> bool:
    return isinstance(statement, Seq) and not statement.body
