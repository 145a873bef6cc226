"""Default rule for kernels that reduce rows: softmax, norms, means, stitched with what surrounds.

All blocks of a row run one after the other while the row is in cache; reductions keep partial
results in the lanes of a vector.
"""

from __future__ import annotations

from ...ir.symbolic import const_value
from ..refs import BlockRef
from ..schedule import Schedule
from .elementwise import vectorize_loop
from .machine import Machine
from .patterns import Rows


def schedule_rows(schedule: Schedule, function: str, pattern: Rows, machine: Machine) -> None:
    """Move all blocks under the row loops of the last, then vectorize each block's columns."""
    refs = schedule.get_blocks(function)
    if pattern.shared:
        refs = _gathered(schedule, refs, pattern.shared)
    for ref, block in zip(refs, pattern.blocks, strict=True):
        loops = schedule.get_loops(ref)[pattern.shared :]
        if loops:
            vectorize_loop(schedule, loops[-1], machine.lanes(block.writes[0].buffer.dtype))
    outer = schedule.get_loops(refs[-1])[0]
    if pattern.shared and const_value(schedule.state.loop(outer).extent) != 1:
        schedule.parallel(outer)


def _gathered(
    schedule: Schedule, refs: tuple[BlockRef, ...], shared: int
) -> tuple[BlockRef, ...]:
    """Put every block but the last under the innermost row loop of the last."""
    *before, last = refs
    row = schedule.get_loops(last)[shared - 1]
    for block in reversed(before):
        schedule.compute_at(block, row)
    return refs
