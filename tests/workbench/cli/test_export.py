"""``tilewright export``: what it writes, what it tells, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

from tilewright.workbench.cli import ship


def test_export_lists_the_files_it_wrote(run, matmul: Path, tmp_path: Path) -> None:
    ran = run("export", matmul, "-o", tmp_path / "made", "--name", "product")
    assert ran.code == 0
    assert "libproduct.so" in ran.out
    assert "made for Target('cpu') in" in ran.out
    assert (tmp_path / "made" / "product.h").is_file()


def test_export_json_has_sizes_of_what_lies_there(run, matmul: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    data = run("export", matmul, "-o", made, "--json").data
    assert data["directory"] == str(made)
    assert data["kind"] == "shared"
    assert data["files"] == {p.name: p.stat().st_size for p in made.iterdir()}


def test_export_applies_a_trace_first(run, matmul: Path, trace: Path, tmp_path: Path) -> None:
    plain = run("export", matmul, "-o", tmp_path / "plain", "--json").data
    ran = run("export", matmul, "--trace", trace, "-o", tmp_path / "made", "--json")
    assert ran.code == 0
    name = "libmodel.so"
    assert plain["files"].keys() == ran.data["files"].keys()
    assert (tmp_path / "made" / name).read_bytes() != (tmp_path / "plain" / name).read_bytes()


def test_a_directory_that_exists_is_left_alone(run, matmul: Path, tmp_path: Path) -> None:
    ran = run("export", matmul, "-o", tmp_path)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"Cannot write the export: {tmp_path} exists")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["matmul.tw"]


def test_errors_as_json(run, matmul: Path, tmp_path: Path) -> None:
    ran = run("export", matmul, "-o", tmp_path / "made", "--kind", "dylib", "--json")
    assert ran.code == 1
    assert ran.data["error"]["kind"] == "ExportError"


def test_progress_is_shown_on_a_terminal_alone(capsys, monkeypatch) -> None:
    ship._Meter().tell(0.5, "lowering")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    meter = ship._Meter()
    meter.tell(0.5, "lowering")
    meter.clear()
    said = capsys.readouterr().err
    assert " 50%  lowering" in said
    assert said.endswith("\r\x1b[K")


def test_the_manifest_is_the_one_the_verb_named(run, matmul: Path, tmp_path: Path) -> None:
    run("export", matmul, "-o", tmp_path / "made", "--name", "p", "--threads", "1")
    manifest = json.loads((tmp_path / "made" / "p.json").read_text())
    assert manifest["target"].endswith("threads=1)")
