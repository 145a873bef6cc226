"""Blocks realized as branches and stores on loop variables."""

from __future__ import annotations

from dataclasses import replace

from ....ir.loop.nodes import Block, If, PrimFunc, Stmt
from ....ir.loop.visit import seq, substitute_in, transform
from ....ir.symbolic import TRUE, Add, Bool, Expr, all_of, eq
from ....target.target import Target
from ..annotations import INIT
from ..lowering_pass import Pass


class RealizeBlocks(Pass):
    """Replace iteration variables by their bindings, and predicates and ``init`` by branches.

    Before::
        block C: vi = i0 * 4 + i1; vk = k; where i0 * 4 + i1 < n
            init: C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]
    After::
        if i0 * 4 + i1 < n:
            block C:
                if k == 0: C[i0 * 4 + i1] = 0
                C[i0 * 4 + i1] = C[i0 * 4 + i1] + A[i0 * 4 + i1, k]

    The block itself remains, without iteration variables, to keep the provenance of its
    statements.
    """

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Realize all blocks."""
        del target
        return replace(func, body=transform(func.body, _realize))


def _realize(statement: Stmt) -> Stmt:
    if not isinstance(statement, Block):
        return statement
    bindings = {v.var: v.binding for v in statement.iters}
    body = statement.body
    if statement.init is not None:
        firsts = [is_zero(v.binding) for v in statement.iters if v.kind == "reduce"]
        first = _guarded(all_of(*firsts), substitute_in(statement.init, bindings))
        init = replace(_shell(statement, first), annotations=((INIT, True),))
        body = seq(init, substitute_in(body, bindings))
    else:
        body = substitute_in(body, bindings)
    return _guarded(statement.predicate, _shell(statement, body))


def _shell(block: Block, body: Stmt) -> Block:
    """Return the block without iteration variables, around a realized body."""
    return replace(block, iters=(), reads=(), writes=(), init=None, predicate=TRUE, body=body)


def _guarded(condition: Bool, body: Stmt) -> Stmt:
    return body if condition is TRUE else If(condition, body)


def is_zero(term: Expr) -> Bool:
    """Return the condition that a term is 0; for a sum of non-negative terms, that each is 0."""
    if isinstance(term, Add) and term.constant == 0:
        parts = [t for t, c in term.terms if c > 0 and t.lower is not None and t.lower >= 0]
        if len(parts) == len(term.terms):
            return all_of(*(eq(t, 0) for t in parts))
    return eq(term, 0)
