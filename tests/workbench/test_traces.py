"""Traces leave a session and come back, on the same program."""

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


def test_a_saved_trace_is_one_step_a_line(matmul: Client) -> None:
    split_and_vectorize(matmul)
    lines = [json.loads(line) for line in saved(matmul, "json").splitlines()]
    assert lines[0]["trace"] == "tilewright"
    assert [line["op"] for line in lines[1:]] == ["get_block", "get_loops", "split", "vectorize"]


def test_saving_twice_answers_twice(matmul: Client) -> None:
    assert saved(matmul, "json") == saved(matmul, "json")


def test_python_text_runs(matmul: Client) -> None:
    split_and_vectorize(matmul)
    text = saved(matmul, "python")
    expected = matmul.latest("matmul")
    schedule = matmul.session.schedule
    schedule.goto(next(n.id for n in schedule.history if n.parent is None))
    exec(text, {"sch": schedule})
    matmul.session.refresh()
    assert str(schedule).strip() == expected.strip()


def test_a_trace_is_loaded_on_the_start(matmul: Client) -> None:
    split_and_vectorize(matmul)
    text, expected = saved(matmul, "json"), matmul.latest("matmul")
    head = matmul.session.schedule.head.id
    matmul.send("travel", how="undo", to="", head=head)
    update = matmul.send("load", text=text)
    assert str(matmul.session.schedule).strip() == expected.strip()
    assert update.applied is not None
    assert update.applied.message == "trace replayed: 4 of 4 steps"


def test_a_trace_that_stops_keeps_the_rest_as_pending(matmul: Client) -> None:
    split_and_vectorize(matmul)
    lines = saved(matmul, "json").splitlines()
    lines.insert(3, json.dumps({"op": "transmogrify", "args": {"depth": 3}}))
    update = matmul.send("load", text="\n".join(shifted(lines, 3)))
    assert update.trace is not None
    assert [line.status for line in update.trace] == [
        "query",
        "query",
        "pending",
        "pending",
        "pending",
    ]
    assert update.reports is not None
    assert "transmogrify" in update.reports[0].message


def shifted(lines: list[str], at: int) -> list[str]:
    """Renumber the references of the steps after an inserted one."""
    out = []
    for number, line in enumerate(lines):
        data = json.loads(line)
        for name, value in data.get("args", {}).items():
            if number > at and isinstance(value, dict) and value["ref"][0] >= at - 1:
                data["args"][name] = {"ref": [value["ref"][0] + 1, value["ref"][1]]}
        out.append(json.dumps(data))
    return out


def test_a_file_that_is_no_trace_is_a_named_error(matmul: Client) -> None:
    update = matmul.send("load", text="hello")
    assert update.reports is not None
    assert update.reports[0].title == "Trace error"
