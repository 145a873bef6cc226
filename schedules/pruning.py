"""Traces without lookups whose results no step uses."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from .apply import Query
from .registry import STEPS
from .trace import DROPPED, Group, ResultOf, Trace, TraceStep


def pruned(trace: Trace, keep: Collection[int] = ()) -> Trace:
    """Return a trace without the queries whose results no step or group uses.

    The program after a replay is the same. A group that contained only such queries is removed,
    too. The steps with the indices ``keep`` are not removed.

    Examples
    --------
    >>> from .python_text import from_python
    >>> trace = from_python("b = sch.get_block('mm')" + chr(10) + "sch.unroll('i')")
    >>> print(pruned(trace))
    sch.unroll(loop='i')
    """
    order = kept_steps(trace, keep)
    if len(order) == len(trace):
        return trace
    position = {old: new for new, old in enumerate(order)}
    steps = tuple(trace.renumbered(trace.steps[k], position) for k in order)
    groups = (_moved(g, position, trace) for g in trace.groups)
    return Trace(steps, tuple(g for g in groups if len(g)))


def kept_steps(trace: Trace, keep: Collection[int] = ()) -> list[int]:
    """Return the indices of the steps of a pruned trace, in order.

    They are those that change the program, those whose results are used, and ``keep``.
    """
    used = set(keep)
    for group in trace.groups:
        used.update(ref.step for ref in group.call().operands())
        used.update(ref.step for ref in group.results if ref != DROPPED)
    for number in range(len(trace) - 1, -1, -1):
        step = trace.steps[number]
        if number in used or not _is_query(step):
            used.add(number)
            used.update(ref.step for ref in step.operands() if ref.step >= 0)
    return sorted(used)


def _is_query(step: TraceStep) -> bool:
    known = STEPS.get(step.op)
    return known is not None and issubclass(known, Query)


def _moved(group: Group, position: dict[int, int], trace: Trace) -> Group:
    first = sum(k < group.first for k in position)
    stop = sum(k < group.stop for k in position)
    call = trace.renumbered(group.call(), position)
    results = tuple(
        r if r == DROPPED else ResultOf(position[r.step], r.index) for r in group.results
    )
    return replace(group, arguments=call.arguments, first=first, stop=stop, results=results)
