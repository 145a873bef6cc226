"""Both sides of the protocol agree, and a bad message is a named error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tilewright.workbench.protocol import Apply, Candidate, Hello, Menu, Ref, Select, Update
from tilewright.workbench.typescript import typescript
from tilewright.workbench.wire import ProtocolError, decode, to_plain, update_to_plain

if TYPE_CHECKING:
    from pathlib import Path


def test_the_typescript_types_are_those_of_python(root: Path) -> None:
    checked_in = (root / "extensions" / "core" / "protocol.ts").read_text()
    assert checked_in == typescript(), (
        "run: python -m tilewright.workbench.typescript > extensions/core/protocol.ts"
    )


def test_an_update_leaves_out_what_did_not_change() -> None:
    plain = update_to_plain(Update(1, 7, 0.5, open="f"))
    assert plain == {"version": 1, "reply": 7, "server_ms": 0.5, "open": "f"}
    assert json.loads(json.dumps(plain)) == plain


def test_null_survives_inside_of_a_section() -> None:
    assert to_plain(Ref("loop", "f", 1, "i")) == {
        "kind": "loop",
        "function": "f",
        "uid": 1,
        "name": "i",
    }


def test_an_optional_field_inside_of_a_section_is_left_out_as_its_type_says() -> None:
    """A step without an instruction came with ``match: null``; opening its form drew nothing."""
    step = Candidate("c0", "split", "loops", True, "", "", [], [], 0)
    plain = to_plain(step)
    assert isinstance(plain, dict)
    assert "match" not in plain


def test_null_travels_where_a_field_has_no_default() -> None:
    menu = to_plain(Menu(None, [], {}, []))
    assert menu == {"selection": None, "path": [], "facts": {}, "candidates": []}


def test_requests_are_read() -> None:
    assert decode({"type": "hello", "version": 1, "id": 3}) == Hello("hello", 1)
    message = {"type": "apply", "key": "c0", "values": {"factors": "(None, 8)"}, "head": "ab"}
    assert decode(message) == Apply("apply", "c0", {"factors": "(None, 8)"}, "ab")
    empty = {"type": "select", "kind": "", "function": "", "uid": 0}
    assert decode(empty) == Select("select", "", "", 0)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"type": "explode"}, "no request 'explode'"),
        ({}, "no request None"),
        ({"type": "hello"}, "has no field 'version'"),
        ({"type": "hello", "version": "1"}, "field 'version' of request 'hello' is '1'"),
        ({"type": "hello", "version": True}, "is True"),
        ({"type": "apply", "key": "c0", "values": {"a": 1}, "head": ""}, "field 'values'"),
        ({"type": "run", "what": "destroy"}, "field 'what'"),
    ],
)
def test_a_bad_message_says_what_is_wrong(message: dict[str, object], said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        decode(message)
