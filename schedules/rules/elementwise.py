"""Default rule for kernels without reductions: vectorize the last dimension."""

from __future__ import annotations

from ...ir.symbolic import const_value
from ..handles import BlockRef, LoopRef
from ..schedule import Schedule
from .machine import Machine
from .patterns import Elementwise


def schedule_elementwise(
    schedule: Schedule, function: str, pattern: Elementwise, machine: Machine
) -> None:
    """Inline temporaries; vectorize the last loop of each result, parallelize the first."""
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
    """Vectorize the last loop around a block, and parallelize the first one."""
    loops = schedule.get_loops(block)
    if not loops:
        return
    lanes = machine.lanes(schedule.state.block(block).writes[0].buffer.dtype)
    vectorize_loop(schedule, loops[-1], lanes)
    outer = schedule.get_loops(block)[0]
    if schedule.state.loop(outer).kind == "serial":
        schedule.parallel(outer)


def vectorize_loop(schedule: Schedule, loop: LoopRef, lanes: int) -> None:
    """Vectorize a loop; it is split by ``lanes`` unless its extent is at most ``lanes``."""
    extent = const_value(schedule.state.loop(loop).extent)
    if extent is not None and extent <= 1:
        return
    if extent is not None and extent <= lanes:
        schedule.vectorize(loop)
        return
    _, inner = schedule.split(loop, factors=(None, lanes))
    schedule.vectorize(inner)
