"""Plain rule: all spatial loops of a nest as one, cut into blocks of threads.

Nests that hand each other temporaries need their threads to wait, and thread blocks do not: such
a kernel runs as one block.
"""

from __future__ import annotations

from typing import Final

from ....ir.analysis import feeds_kind
from ...primitives.placement.compute_inline import ComputeInline
from ...refs import BlockRef, LoopRef
from ...schedule import Schedule

THREADS: Final = 256
BLOCKS: Final = 128
"""Blocks of nests that differ in size, each of which then takes several turns."""


def schedule_loops(schedule: Schedule, name: str) -> None:
    """Bind the spatial loops of every nest; reductions stay serial in a thread."""
    for block in schedule.get_blocks(name):
        step = ComputeInline(block)
        if not schedule.check(step):
            schedule.apply(step)
    blocks = schedule.get_blocks(name)
    dependent = bool(schedule.module.prim(name).buffers)
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


def flatten_spatial(schedule: Schedule, block: BlockRef) -> LoopRef:
    """Make one loop of a block's spatial loops, outermost; one of one iteration where none is."""
    loops = schedule.get_loops(block)
    state = schedule.state
    node = state.block(block)
    spatial = [x for x in loops if feeds_kind(state.loop(x), node) <= {"spatial"}]
    if not spatial:
        return schedule.add_unit_loop(loops[0] if loops else block)
    rest = [x for x in loops if x not in spatial]
    if rest and tuple(loops) != (*spatial, *rest):
        schedule.reorder((*spatial, *rest))
    return schedule.fuse(tuple(spatial)) if len(spatial) > 1 else spatial[0]
