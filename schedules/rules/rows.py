"""Default rule for kernels that reduce rows: softmax, norms, means, with fused neighbors.

All blocks process a row while it is in cache. Reductions keep partial results in vector lanes.
"""

from __future__ import annotations

from ...ir.symbolic import const_value
from ..handles import BlockRef, LoopRef
from ..primitives.placement.compute_inline import ComputeInline
from ..schedule import Schedule
from .elementwise import vectorize_loop
from .machine import Machine
from .patterns import Rows


def schedule_rows(schedule: Schedule, function: str, pattern: Rows, machine: Machine) -> None:
    """Move all blocks under the row loops of the last one, then vectorize their columns."""
    refs = schedule.get_blocks(function)
    if pattern.shared:
        refs = _gathered(schedule, refs, pattern.shared)
    for ref, block in zip(refs, pattern.blocks, strict=True):
        lanes = machine.lanes(block.writes[0].buffer.dtype)
        _columns(schedule, ref, schedule.get_loops(ref)[pattern.shared :], lanes)
    if not pattern.shared:
        return
    outer = schedule.get_loops(refs[-1])[0]
    if const_value(schedule.state.loop(outer).extent) != 1:
        schedule.parallel(outer)


def inline_into_rows(schedule: Schedule, function: str) -> bool:
    """Inline element-wise blocks with a single consumer; return whether any was inlined."""
    done = False
    for ref in schedule.get_blocks(function):
        consumers = schedule.get_consumers(ref)
        if schedule.state.block(ref).init is None and len(consumers) == 1:
            step = ComputeInline(ref)
            if not schedule.check(step):
                schedule.apply(step)
                done = True
    return done


def _gathered(schedule: Schedule, refs: tuple[BlockRef, ...], shared: int) -> tuple[BlockRef, ...]:
    """Move every block but the last under the innermost row loop of the last; return all blocks.

    A block without consumers is not moved.
    """
    *before, last = refs
    row = schedule.get_loops(last)[shared - 1]
    for block in reversed(before):
        if schedule.get_consumers(block):
            schedule.compute_at(block, row)
    return refs


def _columns(schedule: Schedule, block: BlockRef, loops: tuple[LoopRef, ...], lanes: int) -> None:
    """Vectorize the innermost column loop of a block; reductions keep one sum per lane."""
    if not loops:
        return
    if schedule.state.block(block).init is None:
        vectorize_loop(schedule, loops[-1], lanes)
        return
    outer, inner = schedule.split(loops[-1], factors=(None, lanes))
    first = loops[0] if len(loops) > 1 else outer
    schedule.decompose_reduction(block, first)
    schedule.vectorize(inner)
