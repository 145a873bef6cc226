"""Guards of tiles lifted to conditions that are uniform across a thread block."""

from __future__ import annotations

from dataclasses import replace

from ....ir.loop.nodes import For, PrimFunc, Stmt
from ....ir.symbolic.assumptions import Assumptions
from ....schedules.launch.lowering_pass import GPU, Pass
from ....target.gpus import THREAD_AXES
from ....target.target import Target
from .lift_tail_guards import lift_tail_guards


class LiftUniformGuards(Pass):
    """Test once per thread block whether a whole tile is in bounds.

    Before::
        for blockIdx_x in thread(ceildiv(n, 64), "blockIdx.x"):
            for threadIdx_x in thread(64, "threadIdx.x"):
                for k in range(m):
                    if blockIdx_x * 64 + threadIdx_x < n: body
    After::
        for blockIdx_x in thread(ceildiv(n, 64), "blockIdx.x"):
            for threadIdx_x in thread(64, "threadIdx.x"):
                if n - blockIdx_x * 64 >= 64:
                    for k in range(m):
                        body
                else:
                    for k in range(m):
                        if blockIdx_x * 64 + threadIdx_x < n:
                            body

    A lifted condition does not depend on the thread, so its branches may contain barriers.
    """

    targets = GPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Lift all uniform guards."""
        del target
        axes: list[For] = []
        body: Stmt = func.body
        assumptions = Assumptions.of(func.facts)
        while isinstance(body, For) and body.kind == "thread":
            axes.append(body)
            assumptions = assumptions.iterating(body.var, body.extent)
            body = body.body
        threads = tuple(a for a in axes if a.thread in THREAD_AXES)
        body = lift_tail_guards(body, assumptions, threads)
        for axis in reversed(axes):
            body = replace(axis, body=body)
        return replace(func, body=body)
