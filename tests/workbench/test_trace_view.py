"""Composite steps in the trace, the history and the menu."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tilewright as tw
from tilewright.workbench.step_data import to_step

if TYPE_CHECKING:
    from tilewright.workbench.protocol import Trace, Update

    from tests.workbench.conftest import Client


def tiled(client: Client) -> Update:
    client.select_loop("i")
    return client.apply("tile", sizes="(4, 8)")


def trace(client: Client) -> Trace:
    return next(u.trace for u, _ in reversed(client.received) if u.trace is not None)


def test_composite_step_is_suggested_like_a_primitive(matmul: Client) -> None:
    matmul.select_loop("i")
    tile = matmul.suggestion("tile")
    assert (tile.composite, tile.family, tile.problems) == (True, "library", [])
    assert [field.name for field in tile.fields] == ["i", "j", "sizes"]
    assert tile.steps is None, "the steps are counted when the form is opened"
    assert matmul.check(tile).steps == len(trace_of("tile", matmul))


def trace_of(step: str, client: Client) -> range:
    """Return the steps that a composite step records, found by applying it to a branch."""
    branch = client.session.schedule.branch()
    branch.apply(to_step(client.suggestion(step).data, client.session.state))
    (group,) = branch.trace.groups
    return range(group.first, group.stop)


def test_composite_step_is_one_group_and_one_row_of_the_history(matmul: Client) -> None:
    update = tiled(matmul)
    (group,) = trace(matmul).groups
    lines = trace(matmul).lines[group.first : group.stop]
    assert [line.step for line in lines] == ["split", "split", "reorder"]
    assert "sch.tile(i=i, j=j, sizes=(4, 8))" in group.text
    assert group.text.startswith("i_0, j_0, i_1, j_1 = ")
    assert group.milliseconds is not None
    assert {line.milliseconds for line in lines} == {None}
    assert update.history is not None
    node = next(n for n in update.history.nodes if n.key == update.history.head)
    assert (node.label, node.steps) == ("tile", 3)
    assert node.detail == "(i=i, j=j, sizes=(4, 8))"
    matmul.send("navigate", action="undo", node="", head=update.history.head)
    assert trace(matmul).lines == []


def test_saved_trace_is_exact(matmul: Client) -> None:
    tiled(matmul)
    head = matmul.session.schedule.head.id
    document = matmul.send("save", format="json").document
    assert document is not None
    matmul.send("load", text=document.text, notes={})
    assert matmul.session.schedule.head.id == head
    (group,) = trace(matmul).groups
    assert group.step == "tile"


def test_ungrouped_steps_stay(matmul: Client) -> None:
    tiled(matmul)
    text, count = matmul.latest("matmul"), len(trace(matmul).lines)
    head = matmul.session.schedule.head.id
    update = matmul.send("edit_group", action="ungroup", index=0, values={}, head=head)
    assert update.problems is None
    assert trace(matmul).groups == []
    assert len(trace(matmul).lines) == count
    assert matmul.latest("matmul") == text
    assert matmul.session.schedule.head.id != head


def test_changed_composite_step_is_run_again(matmul: Client) -> None:
    tiled(matmul)
    (field,) = (f for f in trace(matmul).groups[0].fields if f.name == "sizes")
    assert field.value == "(4, 8)"
    head = matmul.session.schedule.head.id
    values = {"sizes": "(2, 6)"}
    update = matmul.send("edit_group", action="change", index=0, values=values, head=head)
    assert update.problems is None
    assert "for j_1 in range(6):" in matmul.latest("matmul")
    assert "sizes=(2, 6)" in trace(matmul).groups[0].text


def test_edited_composite_steps_keep_the_notes(matmul: Client) -> None:
    root = matmul.session.schedule.head.id
    tiled(matmul)
    matmul.send("set_note", node=root, text="as written")
    matmul.send("set_note", node=matmul.session.schedule.head.id, text="tiled")
    for action, values in (("change", {"sizes": "(2, 6)"}), ("ungroup", {})):
        head = matmul.session.schedule.head.id
        matmul.send("edit_group", action=action, index=0, values=values, head=head)
        assert matmul.session.schedule.head.id != head
        assert list(matmul.session.notes().values()) == ["as written", "tiled"]


def test_edit_of_another_head_is_rejected(matmul: Client) -> None:
    tiled(matmul)
    head = matmul.session.schedule.head.id
    update = matmul.send("edit_group", action="ungroup", index=0, values={}, head="0" * 64)
    assert update.problems is not None
    assert update.problems[0].title == "Stale edit"
    update = matmul.send("edit_group", action="ungroup", index=7, values={}, head=head)
    assert update.problems is not None
    assert "no composite step 7" in update.problems[0].message
    values = {"depth": "3"}
    update = matmul.send("edit_group", action="change", index=0, values=values, head=head)
    assert update.problems is not None
    assert "has no parameter 'depth'" in update.problems[0].message
    assert matmul.session.schedule.head.id == head


def test_nested_composite_steps_are_nested_groups(matmul: Client) -> None:
    @tw.composite
    def tile_twice(sch, i: tw.schedules.LoopRef, j: tw.schedules.LoopRef) -> None:
        _, _, inner, column = sch.tile(i, j, sizes=(4, 8))
        sch.tile(inner, column, sizes=(2, 2))

    schedule = matmul.session.schedule
    i, j, _ = schedule.get_loops(schedule.get_block("C"))
    schedule.tile_twice(i, j)
    matmul.session.refresh()
    outer, first, second = trace(matmul).groups
    assert (outer.step, first.step, second.step) == ("tile_twice", "tile", "tile")
    assert outer.first == first.first
    assert first.stop == second.first
    assert second.stop == outer.stop
    assert outer.text == "sch.tile_twice(i=i, j=j)"


def start_default_schedule(client: Client) -> Update:
    client.send("select", kind="function", function="main", uid=0)
    return client.apply("default_schedule")


def test_default_schedule_is_a_step_that_runs_as_a_job(network: Client) -> None:
    update = start_default_schedule(network)
    (job,) = update.jobs or ()
    assert (job.title, job.state) == ("default_schedule", "running")
    network.session.jobs.wait(60)
    assert network.session.document.problems == ()
    head = network.session.schedule.head
    assert head.step.op == "default_schedule"
    history = next(u.history for u, _ in reversed(network.received) if u.history)
    assert history.nodes[-1].steps == len(trace(network).lines)
    groups = [group.step for group in trace(network).groups]
    assert groups[0] == "default_schedule"
    assert "schedule_kernel" in groups
    assert network.session.view.applied is not None
    assert network.session.view.applied.message == "default_schedule() applied"


def test_canceled_default_schedule_leaves_the_head(network: Client) -> None:
    before = network.session.schedule.head.id
    with network.session.lock:  # the job cannot end before it is canceled
        update = start_default_schedule(network)
        network.send("cancel", job=(update.jobs or ())[-1].key)
    network.session.jobs.wait(60)
    assert [job.state for job in network.session.jobs.view()] == ["canceled"]
    assert network.session.schedule.head.id == before


def test_default_schedule_of_an_outdated_head_is_rejected(network: Client) -> None:
    with network.session.lock:
        start_default_schedule(network)
        network.session.schedule.dead_code("main")
        head = network.session.schedule.head.id
    network.session.jobs.wait(60)
    assert network.session.schedule.head.id == head
    assert [problem.title for problem in network.session.document.problems] == ["Stale edit"]
