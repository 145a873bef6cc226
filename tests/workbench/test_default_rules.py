"""The relation of kernels to their default rules, read from a trace."""

from __future__ import annotations

import tilewright as tw
from tilewright.workbench.default_rules import (
    edits_of,
    path_to,
    relation,
    unscheduled_version,
    without_schedule,
)

from tests.workbench.test_editor import KERNEL, MODEL


def lowered() -> tw.Schedule:
    schedule = tw.Schedule(tw.parse(MODEL), tw.Target("cpu", features=("avx2",)))
    schedule.lower_graph("main")
    return schedule


def test_functions_created_by_a_rule_name_their_kernel() -> None:
    schedule = lowered()
    schedule.schedule_kernel(KERNEL)
    created = [f.name for f in schedule.module.prims if relation(schedule.state, f.name).base]
    assert all(relation(schedule.state, name).base == KERNEL for name in created)
    assert relation(schedule.state, "main").status == ""


def test_default_schedule_counts_as_the_rule_of_each_kernel() -> None:
    schedule = tw.Schedule(tw.parse(MODEL), tw.Target("cpu", features=("avx2",)))
    schedule.default_schedule()
    assert {relation(schedule.state, f.name).status for f in schedule.module.prims} == {"taken"}
    assert "default_schedule" not in {edit.op for edit in edits_of(schedule.state)}


def test_changed_tile_leaves_the_rule() -> None:
    schedule = lowered()
    schedule.schedule_kernel(KERNEL)
    trace = schedule.trace
    index = next(k for k, g in enumerate(trace.groups) if g.op == "register_tile")
    rows = dict(trace.groups[index].arguments)["rows"]
    assert rows != 3
    schedule.goto(path_to(schedule)[0].id)
    outcome = schedule.replay(trace.changed_group(index, rows=3))
    assert outcome.error is None
    assert relation(schedule.state, KERNEL).status == "left"


def test_trace_without_the_schedule_of_a_kernel_replays() -> None:
    schedule = lowered()
    start = len(schedule.trace)
    schedule.schedule_kernel(KERNEL)
    trace = without_schedule(schedule.state, KERNEL, start)
    assert len(trace) == start
    again = tw.Schedule(tw.parse(MODEL), tw.Target("cpu", features=("avx2",)))
    assert again.replay(trace).error is None
    assert relation(again.state, KERNEL).status == "follows"


def test_version_as_written_is_found() -> None:
    schedule = lowered()
    before = schedule.head.id
    schedule.schedule_kernel(KERNEL)
    found = unscheduled_version(path_to(schedule), KERNEL)
    assert found is not None
    assert found.id == before
    assert unscheduled_version(path_to(schedule), "missing") is None
