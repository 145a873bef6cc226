"""The body of a prepared function as the thread-level kernel of a launch."""

from __future__ import annotations

from dataclasses import replace

from ....ir.loop.nodes import For, PrimFunc
from ....ir.symbolic import Expr, Var, as_expr
from ....ir.target import Target
from ....ir.thread.nodes import Allocate, Assign, Launch, Stmt, ThreadFunc
from ....ir.thread.types import SHARED_POINTER
from ....ir.thread.visit import uses
from ..kernel.context import Context
from ..kernel.scratch import Scratch
from ..loops.known import Known
from .apart import apart_blocks
from .axes import launch_axes
from .combine import Threads
from .memory import GpuMemory
from .statements import ThreadLowering
from .sync import insert_barriers
from .validate import check_launch, check_shared, check_warps


def lower_threads(
    func: PrimFunc, target: Target, symbols: tuple[Var, ...]
) -> tuple[ThreadFunc, Expr | None]:
    """Lower a function whose axes are around its whole body.

    Parameters
    ----------
    func : PrimFunc
        The loops of a launch, outermost, around loops of one thread.
    target : Target
        The GPU, whose limits the launch has to keep.
    symbols : tuple of Var
        The integer parameters.

    Returns
    -------
    tuple of ThreadFunc and Expr
        A kernel with its launch and its barriers, and the bytes of scratch that it wants; None
        where it takes none.
    """
    axes, body = launch_axes(func)
    check_launch(func.name, axes, target)
    memory = GpuMemory()
    pointers = tuple(memory.add(b) for b in func.buffer_params)
    threads = Threads(tuple(a for a in axes if a.tag.startswith("threadIdx")))
    lowering = ThreadLowering(
        memory, Scratch(replace(func, buffers=()), memory), threads, func.name
    )
    known = Known.of(func.facts)
    for axis in axes:
        known = known.inside(For(0, axis.var, axis.extent, body))
    lowering.allocate(func.buffers)
    statements = lowering.body(body, Context(known))
    scratch = (lowering.pointer,) if lowering.bytes != as_expr(0) else ()
    kernel = ThreadFunc(
        func.name,
        (*pointers, *symbols, *scratch),
        (*_used(lowering.allocations, statements), *statements),
        distinct=(*pointers, *scratch),
        launch=Launch(axes),
    )
    check_shared(kernel, target)
    check_warps(kernel)
    return insert_barriers(kernel, apart_blocks(func)), lowering.bytes if scratch else None


def _used(allocations: list[Allocate | Assign], body: tuple[Stmt, ...]) -> list[Allocate | Assign]:
    """Keep what is used, memory of the block first."""
    used = uses(body)
    kept = [a for a in allocations if a.reg in used]
    return sorted(kept, key=lambda a: a.reg.type != SHARED_POINTER)
