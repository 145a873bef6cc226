"""Serialization of updates and requests."""

from __future__ import annotations

import json

import pytest

from tilewright.workbench.protocol import Handle, Menu, Suggestion, Update
from tilewright.workbench.requests import Apply, Hello, Select
from tilewright.workbench.serialization import ProtocolError, decode, to_plain, update_to_plain


def test_update_omits_unchanged_sections() -> None:
    plain = update_to_plain(Update(2, 7, 0.5, open="f"))
    assert plain == {"version": 2, "reply": 7, "server_ms": 0.5, "open": "f"}
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
    step = Suggestion("c0", "split", "loops", True, "", "", [], [], 0, composite=False, steps=1)
    plain = to_plain(step)
    assert isinstance(plain, dict)
    assert "match" not in plain


def test_field_without_default_is_serialized_as_null() -> None:
    menu = to_plain(Menu(None, [], {}, []))
    assert menu == {"selection": None, "path": [], "properties": {}, "suggestions": []}


def test_requests_are_decoded() -> None:
    assert decode({"type": "hello", "version": 2, "id": 3}) == Hello("hello", 2)
    message = {"type": "apply", "key": "c0", "values": {"factors": "(None, 8)"}, "head": "ab"}
    assert decode(message) == Apply("apply", "c0", {"factors": "(None, 8)"}, "ab")
    empty = {"type": "select", "kind": "", "function": "", "uid": 0}
    assert decode(empty) == Select("select", "", "", 0)


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
        ({"type": "apply", "key": "c0", "values": {"a": 1}, "head": ""}, "field 'values'"),
        ({"type": "run", "action": "destroy"}, "field 'action'"),
    ],
)
def test_invalid_message_is_rejected(message: dict[str, object], expected: str) -> None:
    with pytest.raises(ProtocolError, match=expected):
        decode(message)
