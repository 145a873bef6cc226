"""Rule for kernels that reduce rows: a thread block a row, its threads share the columns."""

from __future__ import annotations

from typing import Final

from ....ir.loop.nodes import Buffer
from ....ir.symbolic import const_value, product
from ...primitives.placement.compute_inline import ComputeInline
from ...problem import Problem, StepError
from ...refs import BlockRef, LoopRef
from ...schedule import Schedule
from ..patterns import Rows, classify
from .loops import THREADS, WARP, joined

LONGEST: Final = 4096
"""Elements of a row that a thread block keeps in shared memory."""


def schedule_row_blocks(schedule: Schedule, name: str) -> None:
    """Gather all blocks of a row, bind rows to thread blocks and columns to threads.

    Raises
    ------
    StepError
        If the kernel is not made of rows.
    """
    _inline_columns(schedule, name)
    pattern = classify(schedule.module.prim(name))
    if not isinstance(pattern, Rows):
        raise StepError("bind", (Problem(0, f"{name!r} does not go row by row"),))
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
    """Compute again, in each of its readers, what a row of unknown length would have to hold."""
    for block in schedule.get_blocks(name):
        node = schedule.state.block(block)
        written = node.writes[0].buffer
        long = const_value(product(written.shape)) is None
        step = ComputeInline(block)
        if node.init is None and long and not schedule.check(step):
            schedule.apply(step)


def _scopes(schedule: Schedule, name: str, shared: int) -> None:
    """Keep results of a row in registers of every thread, rows in shared memory."""
    for buffer in schedule.module.prim(name).buffers:
        size = const_value(product(buffer.shape[shared:]))
        if size is None or size > LONGEST:
            raise StepError("set_scope", (_too_long(buffer, size),))
        scope = "local" if size == 1 else "shared"
        schedule.set_scope(schedule.get_buffer(buffer.name, name), scope)


def _too_long(buffer: Buffer, size: int | None) -> Problem:
    length = "of unknown length" if size is None else f"of {size} elements"
    return Problem(0, f"a row {length} of {buffer.name!r} is no part of shared memory")


def _threads(schedule: Schedule, refs: tuple[BlockRef, ...], shared: int) -> int:
    """Give the threads of a block: no more than the longest row has columns, in whole warps."""
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
    """Cut the innermost of a block's loops in the row among the threads.

    The columns of a result are shared where it has any, else the reduction is.
    """
    node = schedule.state.block(block)
    reduces = {v.var for v in node.iters if v.kind == "reduce"}
    spatial = [x for x in loops if not _feeds(schedule, block, x)]
    chosen = spatial if spatial or not reduces else list(loops)
    if not chosen:
        return
    if tuple(chosen) != tuple(loops[: len(chosen)]):
        schedule.reorder((*chosen, *(x for x in loops if x not in chosen)))
    _, thread = schedule.split(joined(schedule, tuple(chosen)), factors=(None, threads))
    schedule.bind(thread, "threadIdx.x")


def _feeds(schedule: Schedule, block: BlockRef, loop: LoopRef) -> bool:
    """Whether a loop feeds a reduction of a block."""
    node, var = schedule.state.block(block), schedule.state.loop(loop).var
    return any(v.kind == "reduce" and var in v.binding.free for v in node.iters)
