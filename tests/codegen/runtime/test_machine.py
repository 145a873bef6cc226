"""What is recorded of the machine with a measurement."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.codegen.runtime import machine


def test_every_fact_is_told() -> None:
    facts = machine.machine_facts()
    assert all(isinstance(value, str) and value for value in facts.values())
    assert "llvm" in facts["compiler"]
    assert facts["memory"].endswith("GiB")


def test_what_the_system_hides_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(*_args: object, **_kwargs: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", hidden)
    assert machine._line("/sys/anything") == machine.UNKNOWN
    assert machine.machine_facts()["governor"] == machine.UNKNOWN
