"""Serialization of updates and requests."""

from __future__ import annotations

import json

import pytest

from tilewright.workbench.protocol import Update
from tilewright.workbench.protocol_runs import KernelTime
from tilewright.workbench.protocol_steps import Handle, Selected, StepData
from tilewright.workbench.requests import Apply, Hello, LoadTrace, Select
from tilewright.workbench.serialization import (
    ProtocolError,
    client_of,
    decode,
    to_plain,
    update_to_plain,
)

STEP = {"op": "split", "function": "f", "handles": {}, "values": {}}


def test_update_omits_unchanged_sections() -> None:
    plain = update_to_plain(Update(2, "page", 7, 1, 0.5, open="f"))
    head = {"version": 2, "client": "page", "reply": 7, "revision": 1, "server_ms": 0.5}
    assert plain == {**head, "open": "f"}
    assert json.loads(json.dumps(plain)) == plain


def test_handle_is_serialized_with_all_fields() -> None:
    assert to_plain(Handle("loop", "f", 1, "i")) == {
        "kind": "loop",
        "function": "f",
        "uid": 1,
        "name": "i",
    }


def test_optional_field_within_a_section_is_omitted() -> None:
    """The TypeScript type of an optional field does not allow null."""
    plain = to_plain(KernelTime("f", 1, 2.0, 0.5))
    assert isinstance(plain, dict)
    assert "roof" not in plain


def test_field_without_default_is_serialized_as_null() -> None:
    selected = to_plain(Selected(None, [], {}))
    assert selected == {"selection": None, "path": [], "properties": {}}


def test_requests_are_decoded() -> None:
    assert decode({"type": "hello", "version": 2, "id": 3}) == Hello("hello", 2)
    handle = {"kind": "loop", "function": "f", "uid": 3, "name": "i"}
    values = {"factors": "(None, 8)"}
    step = {"op": "split", "function": "f", "handles": {"loop": [handle]}, "values": values}
    data = StepData("split", "f", {"loop": [Handle("loop", "f", 3, "i")]}, values)
    assert decode({"type": "apply", "step": step, "head": "ab"}) == Apply("apply", data, "ab")
    empty = {"type": "select", "kind": "", "function": "", "uid": 0}
    assert decode(empty) == Select("select", "", "", 0)


def test_a_field_that_defaults_to_none_may_be_missing() -> None:
    message = {"type": "load", "text": "{}", "notes": {}}
    assert decode(message) == LoadTrace("load", "{}", {}, None)
    assert decode({**message, "name": "a.jsonl"}) == LoadTrace("load", "{}", {}, "a.jsonl")
    with pytest.raises(ProtocolError, match="field 'name'"):
        decode({**message, "name": 3})


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"type": "explode"}, "unknown request 'explode'"),
        ({}, "unknown request None"),
        ({"type": "hello"}, "has no field 'version'"),
        (
            {"type": "hello", "version": "1"},
            "field 'version' of request 'hello' is '1'; expected int",
        ),
        ({"type": "hello", "version": True}, "is True"),
        ({"type": "apply", "step": {"op": "split"}, "head": ""}, "field 'step'"),
        ({"type": "check", "step": {**STEP, "values": {"a": 1}}}, "field 'step'"),
        ({"type": "check", "step": {**STEP, "handles": {"a": [1]}}}, "field 'step'"),
        ({"type": "run", "action": "destroy"}, "field 'action'"),
    ],
)
def test_invalid_message_is_rejected(message: dict[str, object], expected: str) -> None:
    with pytest.raises(ProtocolError, match=expected):
        decode(message)


def test_the_name_of_a_client_is_a_short_text() -> None:
    assert client_of({"client": "a"}) == "a"
    assert client_of({}) == ""
    for name in (None, 5, "a" * 65):
        with pytest.raises(ProtocolError, match="is not a text of at most 64 characters"):
            client_of({"client": name})
