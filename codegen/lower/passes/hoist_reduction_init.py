"""Reduction initialization hoisted out of the reduction loops."""

from __future__ import annotations

from dataclasses import replace

from ....ir.loop.nodes import Block, For, If, Let, PrimFunc, Seq, Stmt, Store
from ....ir.loop.visit import children, seq, substitute_in, transform, walk, with_children
from ....ir.symbolic import TRUE, all_of, conjuncts, eq
from ....target.target import Target
from ..annotations import INIT
from ..lowering_pass import Pass
from .prune_branches import EMPTY


class HoistReductionInit(Pass):
    """Move reduction inits, which run in the first iteration of a loop, before the loop.

    Before::
        for k in range(n):
            for j in range(m):
                init: if k == 0: C[j] = 0
                C[j] = C[j] + A[k, j]
    After::
        for j in range(m):
            C[j] = 0
        for k in range(n):
            for j in range(m):
                C[j] = C[j] + A[k, j]

    An init also runs if the loop has no iterations, so a reduction over an empty domain yields its
    init, as a decomposed reduction does. Branches of the program are not moved.
    """

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Hoist the initialization of all reduction loops."""
        del target
        body = transform(func.body, lambda s: _hoist(s) if isinstance(s, For) else s)
        return replace(func, body=body)


def _hoist(loop: For) -> Stmt:
    if loop.kind in ("parallel", "thread") or not any(_has_first(s, loop) for s in walk(loop.body)):
        return loop
    first = substitute_in(_only_first(loop.body, loop), {loop.var: 0})
    return seq(first, replace(loop, body=_without_first(loop.body, loop)))


def _has_first(statement: Stmt, loop: For) -> bool:
    """Return whether a statement is a reduction init for the first iteration of the loop."""
    if not isinstance(statement, Block) or dict(statement.annotations).get(INIT) is not True:
        return False
    branch = statement.body
    return isinstance(branch, If) and eq(loop.var, 0) in conjuncts(branch.condition)


def _only_first(statement: Stmt, loop: For) -> Stmt:
    """Keep the inits for the first iteration, with the loops and branches around them."""
    match statement:
        case Block(body=If(condition=claim, then=then)) if _has_first(statement, loop):
            own = eq(loop.var, 0)
            left = all_of(*(p for p in conjuncts(claim) if p is not own))
            return replace(statement, body=then if left is TRUE else If(left, then))
        case Store():
            return EMPTY
        case Seq(body=parts):
            return seq(*(_only_first(p, loop) for p in parts))
        case If(condition=claim, then=then, otherwise=otherwise):
            inner = _only_first(then, loop)
            other = None if otherwise is None else _only_first(otherwise, loop)
            return EMPTY if _is_empty(inner) and other is None else If(claim, inner, other)
        case For() | Let() | Block():
            inner = tuple(_only_first(c, loop) for c in children(statement))
            return EMPTY if _is_empty(inner[-1]) else with_children(statement, inner)


def _without_first(statement: Stmt, loop: For) -> Stmt:
    if _has_first(statement, loop):
        return EMPTY
    return with_children(statement, tuple(_without_first(c, loop) for c in children(statement)))


def _is_empty(statement: Stmt) -> bool:
    return isinstance(statement, Seq) and not statement.body
