"""Fallback rules: all spatial loops of a nest are fused and bound to thread blocks and threads.

Nests that exchange temporaries require synchronization, which only the threads of one thread block
have. Such a kernel runs in one thread block.
"""

from __future__ import annotations

from typing import Final

from ....ir.analysis import bound_kinds
from ...handles import BlockRef, LoopRef
from ...primitives.placement.compute_inline import ComputeInline
from ...schedule import Schedule

THREADS: Final = 256
WARP: Final = 32
BLOCKS: Final = 128
"""The number of thread blocks of nests with different extents; each runs several iterations."""


def schedule_loops(schedule: Schedule, name: str) -> None:
    """Bind the spatial loops of every nest; reductions stay serial within a thread."""
    for block in schedule.get_blocks(name):
        step = ComputeInline(block)
        if not schedule.check(step):
            schedule.apply(step)
    blocks = schedule.get_blocks(name)
    dependent = is_dependent(schedule, name)
    flat = [flatten_spatial(schedule, block) for block in blocks]
    extents = {schedule.state.loop(x).extent for x in flat}
    for loop in flat:
        if dependent:
            _, thread = schedule.split(loop, factors=(None, THREADS))
        elif len(extents) == 1:
            outer, thread = schedule.split(loop, factors=(None, THREADS))
            schedule.bind(outer, "blockIdx.x")
        else:
            outer, _, thread = schedule.split(loop, factors=(BLOCKS, None, THREADS))
            schedule.bind(outer, "blockIdx.x")
        schedule.bind(thread, "threadIdx.x")


def schedule_nested(schedule: Schedule, name: str) -> None:
    """Bind the last spatial loop of every nest to threads, and the others to thread blocks."""
    blocks = schedule.get_blocks(name)
    dependent = is_dependent(schedule, name)
    for block in blocks:
        *outer, last = spatial_first(schedule, block)
        _, thread = schedule.split(last, factors=(None, WARP))
        schedule.bind(thread, "threadIdx.x")
        if outer and not dependent and len(blocks) == 1:
            schedule.bind(joined(schedule, tuple(outer)), "blockIdx.x")


def schedule_serial(schedule: Schedule, name: str) -> None:
    """Run every nest in one thread, for iterations that depend on each other."""
    for block in schedule.get_blocks(name):
        loops = schedule.get_loops(block)
        unit = schedule.add_unit_loop(loops[0] if loops else block)
        schedule.bind(unit, "threadIdx.x")


def is_dependent(schedule: Schedule, name: str) -> bool:
    """Return whether a nest accesses a buffer that another one writes."""
    nodes = [schedule.state.block(b) for b in schedule.get_blocks(name)]
    for node in nodes:
        written = {r.buffer for r in node.writes}
        for other in nodes:
            accessed = {r.buffer for r in (*other.reads, *other.writes)}
            if other is not node and written & accessed:
                return True
    return False


def flatten_spatial(schedule: Schedule, block: BlockRef) -> LoopRef:
    """Fuse the spatial loops of a block into one outermost loop; without any, add a unit loop."""
    spatial = spatial_first(schedule, block)
    return joined(schedule, spatial)


def joined(schedule: Schedule, loops: tuple[LoopRef, ...]) -> LoopRef:
    """Fuse directly nested loops into one."""
    first, *rest = loops
    return schedule.fuse(loops) if rest else first


def spatial_first(schedule: Schedule, block: BlockRef) -> tuple[LoopRef, ...]:
    """Move the spatial loops of a block outermost; without any, add a unit loop."""
    loops = schedule.get_loops(block)
    state = schedule.state
    node = state.block(block)
    spatial = tuple(x for x in loops if bound_kinds(state.loop(x), node) <= {"spatial"})
    if not spatial:
        return (schedule.add_unit_loop(loops[0] if loops else block),)
    rest = tuple(x for x in loops if x not in spatial)
    if rest and loops != (*spatial, *rest):
        schedule.reorder((*spatial, *rest))
    return spatial
