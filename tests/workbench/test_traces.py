"""Saving and loading of traces in a session."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tilewright.workbench.default_rules import path_to

from tests.workbench.conftest import MATMUL

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.workbench.conftest import Client


def split_and_vectorize(client: Client) -> None:
    client.select_loop("j")
    client.apply("split", "(None, 8)")
    client.apply("vectorize")


def saved(client: Client, format_: str) -> str:
    document = client.send("save", format=format_).document
    assert document is not None
    return document.text


def test_saved_trace_has_one_step_per_line(matmul: Client) -> None:
    split_and_vectorize(matmul)
    lines = [json.loads(line) for line in saved(matmul, "json").splitlines()]
    assert lines[0]["trace"] == "tilewright"
    assert [line["op"] for line in lines[1:]] == [
        "get_function",
        "get_block",
        "get_loops",
        "split",
        "vectorize",
    ]


def test_trace_can_be_saved_twice(matmul: Client) -> None:
    assert saved(matmul, "json") == saved(matmul, "json")


def test_python_text_is_executable(matmul: Client) -> None:
    split_and_vectorize(matmul)
    text = saved(matmul, "python")
    expected = matmul.latest("matmul")
    schedule = matmul.session.schedule
    schedule.goto(next(n.id for n in schedule.history if n.parent is None))
    exec(text, {"sch": schedule})
    matmul.session.refresh()
    assert str(schedule).strip() == expected.strip()


def test_trace_is_replayed_on_the_initial_state(matmul: Client) -> None:
    split_and_vectorize(matmul)
    text, expected = saved(matmul, "json"), matmul.latest("matmul")
    head = matmul.session.schedule.head.id
    matmul.send("navigate", action="undo", node="", head=head)
    update = matmul.send("load", text=text, notes={})
    assert str(matmul.session.schedule).strip() == expected.strip()
    assert update.applied is not None
    assert update.applied.message == "Trace replayed: 5 of 5 steps"


def test_steps_after_a_failed_step_stay_pending(matmul: Client) -> None:
    split_and_vectorize(matmul)
    lines = saved(matmul, "json").splitlines()
    lines.insert(4, json.dumps({"op": "transmogrify", "args": {"depth": 3}}))
    update = matmul.send("load", text="\n".join(shifted(lines, 4)), notes={})
    assert update.trace is not None
    assert [line.status for line in update.trace.lines] == [
        "query",
        "query",
        "query",
        "pending",
        "pending",
        "pending",
    ]
    assert update.problems is not None
    assert "transmogrify" in update.problems[0].message


def test_undo_of_a_loaded_trace_returns_the_pending_steps(matmul: Client) -> None:
    split_and_vectorize(matmul)
    whole = saved(matmul, "json")
    lines = whole.splitlines()
    lines.insert(4, json.dumps({"op": "transmogrify", "args": {"depth": 3}}))
    matmul.send("load", text="\n".join(shifted(lines, 4)), notes={})
    stopped = matmul.session.schedule.head.id
    pending = matmul.session.document.pending
    matmul.send("load", text=whole, notes={})
    assert not matmul.session.document.pending.steps
    head = matmul.session.schedule.head.id
    update = matmul.send("navigate", action="undo", node="", head=head)
    assert matmul.session.schedule.head.id == stopped
    assert matmul.session.document.pending == pending
    assert update.trace is not None
    assert [line.status for line in update.trace.lines][-3:] == ["pending"] * 3


def shifted(lines: list[str], at: int) -> list[str]:
    """Renumber the references of the steps after an inserted one."""
    result = []
    for number, line in enumerate(lines):
        data = json.loads(line)
        for name, value in data.get("args", {}).items():
            if number > at and isinstance(value, dict) and value["ref"][0] >= at - 1:
                data["args"][name] = {"ref": [value["ref"][0] + 1, value["ref"][1]]}
        result.append(json.dumps(data))
    return result


def test_invalid_trace_file_is_a_named_error(matmul: Client) -> None:
    update = matmul.send("load", text="hello", notes={})
    assert update.problems is not None
    assert update.problems[0].title == "Trace error"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "line 1: hello is not a step"),
        ("", "the trace is empty"),
        ("# no steps", "the text contains no steps"),
        ('{"model": 1}', "line 1 is not the header of a trace of schema 1"),
        ('{"trace": "tilewright", "schema": 1}\n{"op": 3}', 'line 2: "op" must be a string'),
        ("import os", "line 1: import os is not a step"),
        ("x = = 1", "line 1 is not valid Python"),
    ],
)
def test_a_bad_file_is_named_and_changes_nothing(matmul: Client, text: str, message: str) -> None:
    split_and_vectorize(matmul)
    head, before = matmul.session.schedule.head.id, matmul.latest("matmul")
    update = matmul.send("load", text=text, notes={}, name="model.jsonl")
    assert update.problems is not None
    assert update.problems[0].title == "Trace error"
    assert update.problems[0].message.startswith(f"model.jsonl: {message}")
    assert '{"trace": "tilewright", "schema": 1}, or Python' in update.problems[0].hint
    assert matmul.session.schedule.head.id == head
    assert matmul.latest("matmul") == before


def test_a_trace_is_loaded_from_python(matmul: Client) -> None:
    split_and_vectorize(matmul)
    text, expected = saved(matmul, "python"), matmul.latest("matmul")
    head = matmul.session.schedule.head.id
    matmul.send("navigate", action="undo", node="", head=head)
    update = matmul.send("load", text=text, notes={}, name="trace.py")
    assert update.applied is not None
    assert update.applied.message == "Trace replayed: 5 of 5 steps"
    assert matmul.session.schedule.head.id == head
    assert matmul.latest("matmul") == expected


def test_composite_steps_are_loaded_from_python(matmul: Client) -> None:
    matmul.select_loop("i")
    matmul.apply("tile", sizes="(4, 8)")
    head = matmul.session.schedule.head.id
    text = saved(matmul, "python")
    assert "sch.composite('tile'" in text
    matmul.send("load", text=text, notes={})
    assert matmul.session.schedule.head.id == head


def noted(connect: Callable[..., Client], texts: dict[int, str]) -> Client:
    """Open a session with two steps, and notes on the states before and after each."""
    client = connect(MATMUL)
    client.select_loop("j")
    client.apply("split", "(None, 8)")
    client.apply("vectorize")
    for number, text in texts.items():
        node = client.session.schedule.history[number].id
        client.send("set_note", node=node, text=text)
    return client


def notes(client: Client) -> list[str]:
    history = client.session.history_view.history(client.session.schedule, "")
    return [node.note for node in history.nodes]


def test_notes_are_saved_and_loaded_with_the_trace(connect: Callable[..., Client]) -> None:
    texts = {0: "as written", 1: "8 columns", 2: "<b>vectors</b>\nof 8"}
    first, second = noted(connect, texts), connect(MATMUL)
    second.send("load", text=saved(first, "json"), notes={})
    assert notes(second) == list(texts.values())
    ids = [node.id for node in first.session.schedule.history]
    assert [node.id for node in second.session.schedule.history] == ids
    assert saved(second, "json") == saved(first, "json")
    assert "vectors" not in saved(first, "python")


def test_a_state_without_a_note_is_not_a_version(connect: Callable[..., Client]) -> None:
    first, second = noted(connect, {2: "vectors"}), connect(MATMUL)
    second.send("load", text=saved(first, "json"), notes={})
    assert notes(second) == ["", "vectors"]


def test_a_file_without_notes_keeps_those_of_the_session(matmul: Client) -> None:
    split_and_vectorize(matmul)
    text = saved(matmul, "json")
    matmul.send("set_note", node=matmul.session.schedule.head.id, text="fast")
    matmul.send("load", text=text, notes={})
    assert notes(matmul) == ["", "", "fast"]


def test_a_note_that_is_too_long_loads_nothing(connect: Callable[..., Client]) -> None:
    text = saved(noted(connect, {1: "x", 2: "y"}), "json").replace('"y"', f'"{"y" * 3000}"')
    client = connect(MATMUL)
    client.send("load", text=text, notes={})
    assert "the note has 3000 characters" in client.session.document.problems[0].message
    assert notes(client) == [""]


def test_notes_on_pending_steps_return_when_they_apply(connect: Callable[..., Client]) -> None:
    texts = {0: "as written", 1: "8 columns", 2: "vectors"}
    lines = saved(noted(connect, texts), "json").splitlines()
    split = next(k for k, line in enumerate(lines) if '"op": "split"' in line)
    lines[split] = lines[split].replace("8]", "0]")
    client = connect(MATMUL)
    update = client.send("load", text="\n".join(lines), notes={})
    assert notes(client)[0] == "as written"
    assert "8 columns" not in notes(client)
    assert update.copy is not None
    assert "8 columns" in "\n".join(update.copy.lines)
    head = client.session.schedule.head.id
    text = "j_0, j_1 = sch.split(loop=j, factors=(None, 8))"
    client.send("edit_trace", action="change", index=split - 1, text=text, head=head)
    path = [node.id for node in path_to(client.session.schedule)]
    found = [client.session.history_view.notes[node] for node in path]
    assert found == list(texts.values())


def test_the_note_on_a_skipped_step_is_removed(connect: Callable[..., Client]) -> None:
    lines = saved(noted(connect, {1: "8 columns", 2: "vectors"}), "json").splitlines()
    lines[-1] = lines[-1].replace('"vectorize"', '"teleport"')
    lines.append(
        json.dumps({"op": "unroll", "args": {"loop": {"ref": [2, 2]}}, "note": "unrolled"})
    )
    client = connect(MATMUL)
    client.send("load", text="\n".join(lines), notes={})
    head = client.session.schedule.head.id
    client.send("edit_trace", action="skip", index=0, text="", head=head)
    assert sorted(filter(None, notes(client))) == ["8 columns", "unrolled"]


def test_notes_return_with_the_copy_of_the_browser(connect: Callable[..., Client]) -> None:
    """Those on states that the replay alone would not create, and those of other branches."""
    texts = {0: "as written", 1: "8 columns", 2: "vectors"}
    first, second = noted(connect, texts), connect(MATMUL)
    update = first.hello()
    assert update.copy is not None
    second.send("load", text="\n".join(update.copy.lines), notes=update.copy.notes)
    assert notes(second) == list(texts.values())
