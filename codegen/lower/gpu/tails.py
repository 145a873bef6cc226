"""Guards lifted out of what the threads of a block do, where all of them agree."""

from __future__ import annotations

from dataclasses import replace

from ....ir.gpu import THREAD_AXES
from ....ir.loop.nodes import For, PrimFunc, Stmt
from ..loops.known import Known
from ..loops.tails import lift_tails


def lift_uniform(func: PrimFunc) -> PrimFunc:
    """Test once a block whether a whole tile fits, the threads' part of it included.

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

    No condition that is lifted depends on the thread, so barriers may stand inside.
    """
    axes: list[For] = []
    body: Stmt = func.body
    known = Known.of(func.facts)
    while isinstance(body, For) and body.kind == "thread":
        axes.append(body)
        known = known.inside(body)
        body = body.body
    threads = tuple(a for a in axes if a.thread in THREAD_AXES)
    body = lift_tails(body, known, threads)
    for axis in reversed(axes):
        body = replace(axis, body=body)
    return replace(func, body=body)
