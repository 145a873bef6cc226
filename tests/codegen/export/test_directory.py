"""The output directory: replacement of earlier exports only, and moves that fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilewright.codegen.export.directory import MADE, install, temporary_folder
from tilewright.codegen.export.errors import ExportDirectoryError


def write_export(folder: Path, text: str) -> None:
    """Write a directory with one file and its manifest."""
    folder.mkdir()
    (folder / "file").write_text(text)
    manifest = {"schema": 1, "name": "model", "made_by": {}, "files": {"file": {}}}
    (folder / "model.json").write_text(json.dumps(manifest))


def replaced(made: Path) -> str:
    temporary = temporary_folder(made, force=True)
    write_export(temporary / MADE, "new")
    install(temporary, made, force=True)
    return (made / "file").read_text()


def test_force_replaces_an_earlier_export(tmp_path: Path) -> None:
    made = tmp_path / "made"
    write_export(made, "old")
    (made / "__pycache__").mkdir()  # of an imported loader
    with (made / "file").open() as running:
        assert replaced(made) == "new"
        assert running.read() == "old"
    assert sorted(p.name for p in made.iterdir()) == ["file", "model.json"]


@pytest.mark.parametrize("empty", [True, False])
def test_force_creates_a_directory_and_replaces_an_empty_one(tmp_path: Path, empty: bool) -> None:
    if empty:
        (tmp_path / "made").mkdir()
    assert replaced(tmp_path / "made") == "new"


def test_force_never_removes_other_files(tmp_path: Path) -> None:
    made = tmp_path / "made"
    write_export(made, "old")
    (made / "notes.txt").write_text("mine")
    with pytest.raises(ExportDirectoryError, match=r"contains 'notes.txt', which is not a file of"):
        temporary_folder(made, force=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["made"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": {"other.json": {}}}'])
def test_force_refuses_json_files_that_are_not_manifests(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(ExportDirectoryError, match=r"contains 'other.json'"):
        temporary_folder(tmp_path, force=True)


def test_force_refuses_files_and_links(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "link"):
        with pytest.raises(ExportDirectoryError, match="exists already and is not a directory"):
            temporary_folder(tmp_path / name, force=True)


def test_a_directory_that_appears_during_the_export_is_not_replaced(tmp_path: Path) -> None:
    made = tmp_path / "made"
    temporary = temporary_folder(made, force=False)
    write_export(temporary / MADE, "new")
    write_export(made, "other")
    with pytest.raises(ExportDirectoryError, match="exists already"):
        install(temporary, made, force=False)
    assert (made / "file").read_text() == "other"


def test_a_move_that_fails_restores_the_earlier_export(tmp_path: Path) -> None:
    made = tmp_path / "made"
    write_export(made, "old")
    with pytest.raises(OSError, match="No such file"):
        install(temporary_folder(made, force=True), made, force=True)
    assert (made / "file").read_text() == "old"
