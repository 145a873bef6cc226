"""Selection of the GPU rule of a kernel: the rule of its kind, else a fallback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from ...problem import StepError
from ...schedule import Schedule
from ..patterns import Elementwise, Matmul, Other, Rows, classify
from ..rows import inline_into_rows
from .fallback import schedule_loops, schedule_nested, schedule_serial
from .matmul import schedule_tiles
from .rows import schedule_row_blocks

Rule: TypeAlias = Callable[[Schedule, str], None]


def schedule_for_gpu(schedule: Schedule, name: str) -> None:
    """Bind the loops of a kernel to thread blocks and threads.

    Parameters
    ----------
    schedule : Schedule
        The schedule to extend.
    name : str
        The name of an unscheduled loop-level function.
    """
    inline_into_rows(schedule, name)
    for rule in _rules(schedule, name):
        attempt = schedule.branch()
        try:
            rule(attempt, name)
        except StepError:
            continue
        schedule.goto(attempt.head.id)
        return


def _rules(schedule: Schedule, name: str) -> Iterator[Rule]:
    match pattern := classify(schedule.module.prim(name)):
        case Matmul():
            yield lambda attempt, name: schedule_tiles(attempt, name, pattern)
            yield schedule_row_blocks
        case Rows():
            yield schedule_row_blocks
        case Elementwise() | Other():
            pass
    yield from (schedule_loops, schedule_nested, schedule_serial)
