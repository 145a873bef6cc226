"""Saved traces with notes on their states."""

from __future__ import annotations

from tilewright.schedules import from_python
from tilewright.workbench.noted_trace import saved_trace

TRACE = from_python(
    """
block = sch.get_block(name='mm')
sch.get_buffers(block=block)
i, j = sch.get_loops(block=block)
sch.get_extent(loop=i)
sch.unroll(loop=j)
"""
)


def test_notes_move_with_the_steps() -> None:
    trace, notes = saved_trace(TRACE, {0: "start", 1: "block", 5: "end"})
    assert [step.op for step in trace.steps] == ["get_block", "get_loops", "unroll"]
    assert notes == {0: "start", 1: "block", 3: "end"}


def test_an_unused_query_with_a_note_is_kept() -> None:
    trace, notes = saved_trace(TRACE, {2: "buffers", 4: "extent"})
    assert [step.op for step in trace.steps] == [step.op for step in TRACE.steps]
    assert notes == {2: "buffers", 4: "extent"}


def test_without_notes_the_trace_is_pruned() -> None:
    assert saved_trace(TRACE, {}) == (TRACE.pruned(), {})
