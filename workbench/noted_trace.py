"""Traces to save, with the notes on their states."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from ..schedules import Trace
from ..schedules.pruning import kept_steps


def saved_trace(trace: Trace, notes: Mapping[int, str]) -> tuple[Trace, dict[int, str]]:
    """Return a trace without unused queries, and the notes by the number of its steps.

    A query that leads to a state with a note is kept.

    Parameters
    ----------
    trace : Trace
        The steps.
    notes : mapping of int to str
        The notes on its states, by the number of steps before each.

    Examples
    --------
    >>> from ..schedules import from_python
    >>> trace = from_python("sch.get_block('mm')" + chr(10) + "sch.unroll('i')")
    >>> saved_trace(trace, {0: "as written", 2: "faster"})[1]
    {0: 'as written', 1: 'faster'}
    """
    keep = [count - 1 for count in notes if count > 0]
    order = kept_steps(trace, keep)
    found = {bisect_right(order, count - 1): note for count, note in notes.items()}
    return trace.pruned(keep), found
