"""GPU rule for kernels that reduce rows: one thread block per row, columns bound to threads."""

from __future__ import annotations

from typing import Final

from ....ir.loop.nodes import Buffer
from ....ir.symbolic import const_value, product
from ...handles import BlockRef, LoopRef
from ...primitives.placement.compute_inline import ComputeInline
from ...problem import Problem, StepError
from ...schedule import Schedule
from ..patterns import Rows, classify
from .fallback import THREADS, WARP, joined

LONGEST: Final = 4096
"""The largest number of elements of a row that a thread block keeps in shared memory."""


def schedule_row_blocks(schedule: Schedule, name: str) -> None:
    """Move all blocks of a row together; bind rows to thread blocks and columns to threads.

    Raises
    ------
    StepError
        If the kernel does not reduce rows.
    """
    _inline_columns(schedule, name)
    pattern = classify(schedule.module.prim(name))
    if not isinstance(pattern, Rows):
        raise StepError("bind", (Problem(0, f"{name!r} does not reduce rows"),))
    refs = schedule.get_blocks(name)
    if pattern.shared:
        *before, last = refs
        row = schedule.get_loops(last)[pattern.shared - 1]
        for block in reversed(before):
            schedule.compute_at(block, row)
    _scopes(schedule, name, pattern.shared)
    threads = _threads(schedule, refs, pattern.shared)
    for block in refs:
        _columns(schedule, block, schedule.get_loops(block)[pattern.shared :], threads)
    if pattern.shared:
        outer = schedule.get_loops(refs[-1])[: pattern.shared]
        schedule.bind(joined(schedule, outer), "blockIdx.x")


def _inline_columns(schedule: Schedule, name: str) -> None:
    """Inline temporaries of unknown size into their consumers."""
    for block in schedule.get_blocks(name):
        node = schedule.state.block(block)
        written = node.writes[0].buffer
        long = const_value(product(written.shape)) is None
        step = ComputeInline(block)
        if node.init is None and long and not schedule.check(step):
            schedule.apply(step)


def _scopes(schedule: Schedule, name: str, shared: int) -> None:
    """Set memory scopes: one value per row in registers of every thread, rows in shared memory."""
    for buffer in schedule.module.prim(name).buffers:
        size = const_value(product(buffer.shape[shared:]))
        if size is None or size > LONGEST:
            raise StepError("set_scope", (_too_long(buffer, size),))
        scope = "local" if size == 1 else "shared"
        schedule.set_scope(schedule.get_buffer(buffer.name, name), scope)


def _too_long(buffer: Buffer, size: int | None) -> Problem:
    length = "of unknown length" if size is None else f"of {size} elements"
    return Problem(
        0, f"a row {length} of {buffer.name!r} does not fit the limit of {LONGEST} elements"
    )


def _threads(schedule: Schedule, refs: tuple[BlockRef, ...], shared: int) -> int:
    """Return the number of threads per thread block: whole warps, up to the columns of a row."""
    longest = WARP
    for block in refs:
        loops = schedule.get_loops(block)[shared:]
        size = const_value(product(tuple(schedule.state.loop(x).extent for x in loops)))
        longest = max(longest, THREADS if size is None else size)
    threads = WARP
    while threads < min(longest, THREADS):
        threads *= 2
    return threads


def _columns(schedule: Schedule, block: BlockRef, loops: tuple[LoopRef, ...], threads: int) -> None:
    """Bind the innermost column loops of a block to threads.

    Spatial loops are bound if there are any, else the reduction loops.
    """
    node = schedule.state.block(block)
    reduces = {v.var for v in node.iters if v.kind == "reduce"}
    spatial = [x for x in loops if not _binds_reduction(schedule, block, x)]
    chosen = spatial if spatial or not reduces else list(loops)
    if not chosen:
        return
    if tuple(chosen) != tuple(loops[: len(chosen)]):
        schedule.reorder((*chosen, *(x for x in loops if x not in chosen)))
    _, thread = schedule.split(joined(schedule, tuple(chosen)), factors=(None, threads))
    schedule.bind(thread, "threadIdx.x")


def _binds_reduction(schedule: Schedule, block: BlockRef, loop: LoopRef) -> bool:
    """Return whether a loop binds a reduction of a block."""
    node, var = schedule.state.block(block), schedule.state.loop(loop).var
    return any(v.kind == "reduce" and var in v.binding.free for v in node.iters)
