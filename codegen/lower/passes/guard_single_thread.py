"""Statements outside of thread loops guarded so that one thread executes them."""

from __future__ import annotations

from dataclasses import replace

from ....ir.loop.nodes import Block, If, PrimFunc, Stmt
from ....ir.loop.visit import stores, transform
from ....ir.symbolic import all_of, eq
from ....target.target import Target
from ..analysis.launch_axes import launch_axes
from ..annotations import ONCE
from ..lowering_pass import GPU, Pass


class GuardSingleThread(Pass):
    """Execute a statement outside of some thread axes in thread 0 of these axes only.

    Before::
        for threadIdx_x in thread(64, "threadIdx.x"):
            once per threadIdx.x: S[0] = 0
    After::
        for threadIdx_x in thread(64, "threadIdx.x"):
            if threadIdx_x == 0:
                S[0] = 0

    Every thread executes a statement that writes registers.
    """

    targets = GPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Guard all statements that ``unify_thread_bindings`` annotated."""
        del target
        axes, _ = launch_axes(func)
        variables = {a.tag: a.var for a in axes}

        def change(statement: Stmt) -> Stmt:
            if not isinstance(statement, Block) or statement.name != ONCE:
                return statement
            tags = dict(statement.annotations)[ONCE]
            inner = statement.body
            if next(stores(inner)).buffer.scope in ("local", "fragment"):
                return inner
            names = tags if isinstance(tags, tuple) else ()
            return If(all_of(*(eq(variables[str(t)], 0) for t in names)), inner)

        return replace(func, body=transform(func.body, change))
