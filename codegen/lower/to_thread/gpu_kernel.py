"""Lowering of a prepared function to a GPU kernel with its launch."""

from __future__ import annotations

from dataclasses import replace

from ....ir.loop.nodes import PrimFunc
from ....ir.symbolic import Expr, Var, as_expr
from ....ir.thread.function import LaunchGrid, ThreadFunc
from ....ir.thread.nodes import Allocate, Assign, Stmt
from ....ir.thread.types import SHARED_POINTER
from ....ir.thread.visit import uses
from ....schedules.launch.launch_axes import launch_axes
from ....schedules.launch.threads import Threads
from ....target.target import Target
from .bounds_checks import Access
from .context import LoweringContext
from .gpu_addresses import GpuBufferAddresses
from .gpu_statements import ThreadLowering
from .scratch import Scratch, ScratchTemporary


def lower_threads(
    func: PrimFunc,
    symbols: tuple[Var, ...],
    checked: frozenset[Access],
    context: LoweringContext,
    target: Target,
) -> tuple[ThreadFunc, Expr | None, tuple[ScratchTemporary, ...]]:
    """Lower a function with thread-bound loops around its whole body.

    Parameters
    ----------
    func : PrimFunc
        A function whose outermost loops are the axes of the launch.
    symbols : tuple of Var
        The integer parameters.
    checked : frozenset of tuple
        The accesses without a proof, which are checked.
    context : LoweringContext
        The context of the body, with the facts of the function.
    target : Target
        The GPU, which decides how threads exchange partial results.

    Returns
    -------
    tuple of ThreadFunc, Expr and tuple of ScratchTemporary
        A kernel with its launch but without barriers, the bytes of its scratch argument, or None
        if it has no such argument, and the temporaries in this argument.
    """
    axes, body = launch_axes(func)
    memory = GpuBufferAddresses()
    pointers = tuple(memory.add(b) for b in func.buffer_params)
    own = tuple(a for a in axes if a.tag.startswith("threadIdx"))
    threads = Threads(own, target.is_cuda)
    lowering = ThreadLowering(
        memory, Scratch(replace(func, buffers=()), memory), threads, func.name, checked=checked
    )
    assumptions = context.assumptions
    for axis in axes:
        assumptions = assumptions.iterating(axis.var, axis.extent)
    lowering.allocate(func.buffers)
    statements = lowering.body(body, replace(context, assumptions=assumptions))
    scratch = (lowering.pointer,) if lowering.bytes != as_expr(0) else ()
    kernel = ThreadFunc(
        func.name,
        (*pointers, *symbols, *scratch),
        (*_used(lowering.allocations, statements), *statements),
        distinct=(*pointers, *scratch),
        launch=LaunchGrid(axes),
    )
    return kernel, lowering.bytes if scratch else None, tuple(lowering.temporaries)


def _used(allocations: list[Allocate | Assign], body: tuple[Stmt, ...]) -> list[Allocate | Assign]:
    """Return the allocations in use, shared memory first."""
    used = uses(body)
    kept = [a for a in allocations if a.reg in used]
    return sorted(kept, key=lambda a: a.reg.type != SHARED_POINTER)
