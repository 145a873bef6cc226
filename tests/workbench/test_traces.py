"""Saving and loading of traces in a session."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
