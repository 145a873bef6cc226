"""Pending steps of a session: kept by other actions, resumed, skipped, changed, discarded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tilewright.schedules import Trace, TraceError, from_json, from_python
from tilewright.workbench.pending import Pending, with_line

if TYPE_CHECKING:
    from tilewright.workbench.protocol import TraceCopy, Update

    from tests.workbench.conftest import Client

LINES = (
    "f = sch.get_function(name='matmul')",
    "C = sch.get_block(name='C', function=f)",
    "i, j, k = sch.get_loops(block=C)",
    "j_0, j_1 = sch.split(loop=j, factors=(None, 0))",
    "sch.vectorize(loop=j_1)",
    "sch.parallel(loop=i)",
)
"""A trace whose fourth step does not apply; the fifth uses its results."""


def stopped(client: Client) -> Update:
    from tilewright.schedules import to_json

    return client.send("load", text=to_json(from_python("\n".join(LINES))), notes={})


def edit(client: Client, action: str, index: int = 0, text: str = "") -> Update:
    head = client.session.schedule.head.id
    return client.send("edit_trace", action=action, index=index, text=text, head=head)


def statuses(client: Client) -> list[str]:
    update = next(u for u, _ in reversed(client.received) if u.trace is not None)
    assert update.trace is not None
    return [f"{line.step} {line.status}" for line in update.trace.lines]


def test_a_saved_file_has_the_pending_steps(matmul: Client) -> None:
    stopped(matmul)
    document = matmul.send("save", format="json").document
    assert document is not None
    edit(matmul, "discard")
    assert statuses(matmul) == [
        f"{step} query" for step in ("get_function", "get_block", "get_loops")
    ]
    matmul.send("load", text=document.text, notes={})
    assert statuses(matmul)[3:] == ["split pending", "vectorize pending", "parallel pending"]
    python = matmul.send("save", format="python").document
    assert python is not None
    assert "split" not in python.text


def test_pending_steps_survive_steps_undo_and_redo(matmul: Client) -> None:
    update = stopped(matmul)
    assert update.trace is not None
    assert "0" in update.trace.reason
    waiting = ["split pending", "vectorize pending", "parallel pending"]
    assert statuses(matmul)[3:] == waiting
    matmul.select_loop("k")
    matmul.apply("split", factors="(None, 4)")
    assert statuses(matmul)[-4:] == ["split done", *waiting]
    for action in ("undo", "redo"):
        head = matmul.session.schedule.head.id
        matmul.send("navigate", action=action, node="", head=head)
        assert statuses(matmul)[-3:] == waiting


def test_a_changed_step_resumes_the_trace(matmul: Client) -> None:
    stopped(matmul)
    matmul.select_loop("k")
    matmul.apply("split", factors="(None, 4)")
    number = len(matmul.session.schedule.trace)
    edit(matmul, "change", number, "j_0, j_1 = sch.split(j, factors=(None, 8))")
    assert not any("pending" in status for status in statuses(matmul))
    text = matmul.latest("matmul")
    assert "for i in parallel(n):" in text
    assert "in vectorized(8)" in text
    assert "for k_1 in range(4)" in text, "the step that was applied meanwhile is kept"


def test_skip_leaves_out_the_steps_that_use_the_results(matmul: Client) -> None:
    stopped(matmul)
    edit(matmul, "resume")
    assert statuses(matmul)[3] == "split pending"
    edit(matmul, "skip")
    assert statuses(matmul)[3:] == ["parallel done"]
    assert "for i in parallel(n):" in matmul.latest("matmul")


def test_discarded_steps_and_invalid_edits(matmul: Client) -> None:
    stopped(matmul)
    for index, text in ((99, "sch.parallel(i)"), (3, "import os"), (3, "a = 1"), (3, "f(")):
        rejected = edit(matmul, "change", index, text)
        assert rejected.problems is not None
        assert rejected.problems[0].title in ("Invalid request", "Trace error")
        assert matmul.session.document.pending.steps
    edit(matmul, "discard")
    assert statuses(matmul)[-1] == "get_loops query"
    rejected = edit(matmul, "resume")
    assert rejected.problems is not None
    assert rejected.problems[0].message == "no steps are pending"


def test_an_applied_step_can_be_changed(matmul: Client) -> None:
    matmul.select_loop("j")
    matmul.apply("split", "(None, 8)")
    matmul.apply("vectorize")
    edit(matmul, "change", 3, "j_0, j_1 = sch.split(j, factors=(None, 4))")
    assert "in vectorized(4)" in matmul.latest("matmul")


def test_a_dropped_result_is_reported(matmul: Client) -> None:
    """An undo removes a step whose results the pending steps use; a redo restores it."""
    stopped(matmul)
    head = matmul.session.schedule.head.id
    matmul.select_loop("i")
    key = matmul.session.schedule.history[1].id
    matmul.send("navigate", action="jump", node=key, head=head)
    update = edit(matmul, "resume")
    assert update.trace is None or "dropped" in update.trace.reason
    matmul.send("navigate", action="jump", node=head, head=matmul.session.schedule.head.id)
    edit(matmul, "skip")
    assert statuses(matmul)[-1] in ("parallel done", "parallel pending")


def test_one_line_is_one_step() -> None:
    trace = from_python("\n".join(LINES))
    with pytest.raises(TraceError, match="expected one step, got 2"):
        with_line(trace, 5, "sch.parallel(i); sch.parallel(j)")
    assert str(with_line(trace, 5, "sch.parallel(j)")[5]) != str(trace[5])
    assert Pending().after(trace) == Trace(trace.steps)


def copied(client: Client) -> str:
    """Return the file that a browser keeps, assembled from all updates."""
    lines: list[str] = []
    for update, _ in client.received:
        if update.copy is not None:
            lines = [*lines[: update.copy.keep], *update.copy.lines]
    return "\n".join(lines)


def last_copy(client: Client) -> TraceCopy:
    copy = next(u.copy for u, _ in reversed(client.received) if u.copy is not None)
    assert copy is not None
    return copy


def test_the_browser_has_a_copy_of_the_trace(matmul: Client) -> None:
    stopped(matmul)
    assert len(from_json(copied(matmul))) == last_copy(matmul).steps == len(LINES)
    edit(matmul, "skip")
    copy = last_copy(matmul)
    assert copy.keep > 0, "only the lines that changed are sent"
    assert [json.loads(line)["op"] for line in copy.lines] == ["parallel"]
    text = copied(matmul)
    expected = matmul.latest("matmul")
    root = matmul.session.schedule.history[0].id
    assert copy.program == root
    head = matmul.session.schedule.head.id
    matmul.send("navigate", action="jump", node=root, head=head)
    matmul.send("load", text=text, notes={})
    assert matmul.latest("matmul") == expected
