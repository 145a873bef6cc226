"""The facts about the host machine that measurements record."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.target import host


def test_every_fact_has_a_value() -> None:
    facts = host.machine_facts()
    assert all(isinstance(value, str) and value for value in facts.values())
    assert facts["memory"].endswith("GiB")


def test_hidden_facts_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(*_args: object, **_kwargs: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", hidden)
    assert host._line("/sys/anything") == host.UNKNOWN
    assert host.machine_facts()["governor"] == host.UNKNOWN


def test_a_gpu_is_found_by_its_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(host, "NVIDIA_DEVICE", tmp_path / "nvidiactl")
    assert not host.has_nvidia_gpu()
    (tmp_path / "nvidiactl").touch()
    assert host.has_nvidia_gpu()
