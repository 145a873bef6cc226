"""The table of sections."""

from __future__ import annotations

from dataclasses import fields

from tilewright.workbench.protocol import Update
from tilewright.workbench.sections import SECTIONS


def test_each_section_of_an_update_has_one_entry() -> None:
    """Functions and panes depend on the rendered text, the copy on the trace; the others do not."""
    names = [section.name for section in SECTIONS]
    assert len(set(names)) == len(names)
    rest = {
        "version",
        "client",
        "reply",
        "revision",
        "server_ms",
        "functions",
        "panes",
        "copy",
        "heat",
    }
    assert {*names} | rest == {field.name for field in fields(Update)}
