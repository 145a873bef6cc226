"""Blocks realized as branches and stores on loop variables."""

from __future__ import annotations

from ...ir.copies import replace
from ...ir.loop.nodes import Block, If, PrimFunc, Stmt
from ...ir.loop.visit import substitute_in, transform
from ...ir.symbolic import TRUE
from ...target.target import Target
from .lowering_pass import Pass


class RealizeBlocks(Pass):
    """Replace iteration variables by their bindings, and predicates by branches.

    Before::
        block C: vi = i0 * 4 + i1; vk = k; where i0 * 4 + i1 < n
            C[vi] = C[vi] + A[vi, vk]
    After::
        if i0 * 4 + i1 < n:
            block C:
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
    if statement.init is not None:
        raise TypeError(f"the init of block {statement.name!r} is not decomposed")
    bindings = {v.var: v.binding for v in statement.iters}
    body = substitute_in(statement.body, bindings)
    bare = replace(statement, iters=(), reads=(), writes=(), predicate=TRUE, body=body)
    return bare if statement.predicate is TRUE else If(statement.predicate, bare)
