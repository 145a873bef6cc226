"""Default rule for kernels without reductions: one nest, vectors along the last dimension."""

from __future__ import annotations

from ...ir.symbolic import const_value
from ..refs import BlockRef, LoopRef
from ..schedule import Schedule
from .machine import Machine
from .patterns import Elementwise


def schedule_elementwise(
    schedule: Schedule, function: str, pattern: Elementwise, machine: Machine
) -> None:
    """Inline temporaries; vectorize the last loop of each result, run its first in parallel."""
    temporaries = schedule.module.prim(function).buffers
    kept: list[BlockRef] = []
    for ref, block in zip(schedule.get_blocks(function), pattern.blocks, strict=True):
        if block.writes[0].buffer in temporaries:
            schedule.compute_inline(ref)
        else:
            kept.append(ref)
    for ref in kept:
        vectorize_last(schedule, ref, machine)


def vectorize_last(schedule: Schedule, block: BlockRef, machine: Machine) -> None:
    """Make the last loop of a block's nest a vector, and the first one parallel."""
    loops = schedule.get_loops(block)
    if not loops:
        return
    lanes = machine.lanes(schedule.state.block(block).writes[0].buffer.dtype)
    vectorize_loop(schedule, loops[-1], lanes)
    outer = schedule.get_loops(block)[0]
    if schedule.state.loop(outer).kind == "serial":
        schedule.parallel(outer)


def vectorize_loop(schedule: Schedule, loop: LoopRef, lanes: int) -> None:
    """Vectorize a loop of any extent: whole where it is short, else in pieces of ``lanes``."""
    extent = const_value(schedule.state.loop(loop).extent)
    if extent is not None and extent <= 1:
        return
    if extent is not None and extent <= lanes:
        schedule.vectorize(loop)
        return
    _, inner = schedule.split(loop, factors=(None, lanes))
    schedule.vectorize(inner)
