"""Tests mirror sources: `a/b.py` has `tests/a/test_b.py`."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

FOLDERS = ("ir", "schedules", "codegen", "workbench", "target")
PASSES = ("codegen/lower/passes", "codegen/lower/thread_passes", "schedules/launch")
SHARED = (
    "annotations", "compaction", "complex_functions", "complex_values", "counted_lanes",
    "lane_results", "launch_axes", "launch_limits", "lowering_pass", "machine_dtypes", "own_parts",
    "passes", "shared_memory", "threads", "worker_buffers",
)  # fmt: skip
"""The files of these folders that are not passes."""


@pytest.fixture(scope="module")
def listed(root: Path) -> dict:
    """The tests that mirror no source, with reasons: `tests/mirror.toml`."""
    return tomllib.loads((root / "tests" / "mirror.toml").read_text(encoding="utf-8"))


def unmirrored(root: Path) -> set[str]:
    """Return the test files for which no source of the same name is in the same folder."""
    found = set[str]()
    for folder in FOLDERS:
        for test in (root / "tests" / folder).rglob("test_*.py"):
            folder_of_source = root / test.parent.relative_to(root / "tests")
            name = test.stem.removeprefix("test_")
            names = (f"{name}.py", f"_{name}.py", f"{name}/__init__.py")
            if not any((folder_of_source / source).exists() for source in names):
                found.add(test.relative_to(root).as_posix())
    return found


def test_every_test_mirrors_a_source_or_is_listed(root: Path, listed: dict) -> None:
    allowed = {test for group in listed["exception"] for test in group["tests"]}
    assert unmirrored(root) - allowed == set(), "name the test like its source and move it there"


def test_the_list_has_no_unnecessary_entry(root: Path, listed: dict) -> None:
    tests = [test for group in listed["exception"] for test in group["tests"]]
    assert sorted(set(tests)) == sorted(tests)
    assert set(tests) - unmirrored(root) == set(), "remove the entries from tests/mirror.toml"


def test_the_list_only_shrinks(listed: dict) -> None:
    count = sum(len(group["tests"]) for group in listed["exception"])
    assert count == listed["count"], "set `count` in tests/mirror.toml, which may only decrease"


def test_every_group_of_the_list_has_a_reason(listed: dict) -> None:
    assert [g["tests"] for g in listed["exception"] if len(g["reason"]) < 20] == []


@pytest.mark.parametrize("folder", PASSES)
def test_every_pass_has_its_test_and_golden(root: Path, folder: str) -> None:
    passes = [p.stem for p in (root / folder).glob("*.py") if not p.stem.startswith("_")]
    passes = [name for name in passes if name not in SHARED]
    assert passes
    tests = root / "tests" / folder
    files = [f for name in passes for f in (f"test_{name}.py", f"goldens/{name}.txt")]
    assert [f for f in sorted(files) if not (tests / f).exists()] == []
