"""``tilewright export``: files, output and errors."""

from __future__ import annotations

import json
from pathlib import Path

from tilewright import progress


def test_export_lists_the_files_it_wrote(run, matmul: Path, tmp_path: Path) -> None:
    ran = run("export", matmul, "-o", tmp_path / "made", "--name", "product")
    assert ran.code == 0
    assert "libproduct.so" in ran.out
    assert "exported for Target('cpu') in" in ran.out
    assert (tmp_path / "made" / "product.h").is_file()


def test_json_output_contains_the_sizes_of_the_files(run, matmul: Path, tmp_path: Path) -> None:
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


def test_existing_directory_is_not_changed(run, matmul: Path, tmp_path: Path) -> None:
    ran = run("export", matmul, "-o", tmp_path)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"Invalid output directory: {tmp_path} exists")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["matmul.tw"]


def test_force_replaces_an_earlier_export_only(run, matmul: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    assert run("export", matmul, "-o", made, "--kind", "object").code == 0
    assert run("export", matmul, "-o", made, "--kind", "static").code == 1
    assert run("export", matmul, "-o", made, "--kind", "static", "--force").code == 0
    assert (made / "libmodel.a").is_file()
    assert not (made / "model.o").exists()
    ran = run("export", matmul, "-o", tmp_path, "--force")
    assert ran.code == 1
    assert "contains 'made', which is not a file of an export" in ran.err
    assert matmul.is_file()


def test_errors_as_json(run, matmul: Path, tmp_path: Path) -> None:
    ran = run("export", matmul, "-o", tmp_path / "made", "--kind", "dylib", "--json")
    assert ran.code == 1
    assert ran.data["error"]["kind"] == "ExportError"


def test_progress_is_displayed_only_on_a_terminal(
    run, matmul: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(progress, "DELAY", 0.0)
    ran = run("export", matmul, "-o", tmp_path / "plain", "--json")
    assert ran.err == ""
    monkeypatch.setattr(progress, "is_terminal", lambda: True)
    ran = run("export", matmul, "-o", tmp_path / "made", "--json")
    assert "exporting" in ran.err
    assert "exporting" not in ran.out


def test_manifest_has_the_chosen_name(run, matmul: Path, tmp_path: Path) -> None:
    run("export", matmul, "-o", tmp_path / "made", "--name", "p", "--threads", "1")
    manifest = json.loads((tmp_path / "made" / "p.json").read_text())
    assert manifest["target"].endswith("threads=1)")
