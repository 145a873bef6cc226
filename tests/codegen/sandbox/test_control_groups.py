"""Memory limits of control groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tilewright.codegen.sandbox import memory_limit
from tilewright.codegen.sandbox.control_groups import group_memory_limit
from tilewright.codegen.sandbox.memory_limit import usable_memory

if TYPE_CHECKING:
    from pathlib import Path


def limit(folder: Path, membership: str, files: dict[str, str]) -> int | None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "membership").write_text(membership)
    return group_memory_limit(folder, folder / "membership")


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/\n", {"memory.max": "4096\n"}, 4096),
        ("0::/\n", {"memory.max": "max\n"}, None),
        ("0::/a/b\n", {"a/b/memory.max": "max\n", "a/memory.max": "8192\n"}, 8192),
        ("0::/a/b\n", {"a/b/memory.max": "4096\n", "a/memory.max": "8192\n"}, 4096),
        (
            "3:cpu,memory:/docker/x\n1:name=systemd:/y\n",
            {"memory/memory.limit_in_bytes": "4096\n", "memory.max": "1\n"},
            4096,
        ),
        ("2:pids:/\n", {"memory/memory.limit_in_bytes": "4096\n"}, None),
        ("", {}, None),
    ],
)
def test_the_lowest_limit_of_the_groups(
    tmp_path: Path, membership: str, files: dict[str, str], expected: int | None
) -> None:
    assert limit(tmp_path, membership, files) == expected


def test_a_missing_file_system_has_no_limit(tmp_path: Path) -> None:
    assert group_memory_limit(tmp_path / "missing", tmp_path / "missing") is None


def test_usable_memory_is_limited_by_the_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limit, "group_memory_limit", lambda: None)
    physical = usable_memory()
    monkeypatch.setattr(memory_limit, "group_memory_limit", lambda: 1 << 20)
    assert usable_memory() == 1 << 20
    monkeypatch.setattr(memory_limit, "group_memory_limit", lambda: 1 << 62)
    assert usable_memory() == physical
