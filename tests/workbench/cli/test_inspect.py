"""The commands ``show`` and ``replay``."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

import tilewright as tw

from tests.workbench.conftest import MATMUL


def test_show_output_can_be_parsed(run, matmul: Path) -> None:
    ran = run("show", matmul)
    assert ran.code == 0
    assert list(tw.parse(ran.out).functions) == ["matmul"]


def test_show_applies_a_trace(run, matmul: Path, trace: Path) -> None:
    ran = run("show", matmul, "--trace", trace)
    assert "for j_1 in vectorized(8):" in ran.out


def test_show_lists_functions(run, network: Path) -> None:
    ran = run("show", network, "--list")
    assert ran.out.split("\n")[:2] == ["loop   twice  [n]", "graph  main  [n]"]


def test_show_json_has_symbols_and_facts(run, network: Path) -> None:
    (main_,) = run("show", network, "--function", "main", "--json").data["functions"]
    assert main_["symbols"]["rows"][0]["likely"] == [6]
    assert main_["symbols"]["facts"][0]["status"] == "checked"


def test_program_from_standard_input(run, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(MATMUL))
    assert "def matmul" in run("show", "-").out


def test_replay_writes_and_verifies(run, matmul: Path, trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tw"
    ran = run("replay", matmul, trace, "--verify", "-o", out)
    assert ran.code == 0
    assert ran.out.startswith("4 of 4 steps applied")
    assert "vectorized(8)" in out.read_text()


def test_replay_on_another_program_reports_the_failed_step(run, network: Path, trace: Path) -> None:
    ran = run("replay", network, trace, "--json")
    assert ran.code == 1
    assert ran.data["applied"] == 0
    assert "'matmul'" in ran.data["error"]["message"]
    assert [step["op"] for step in ran.data["pending"]][:2] == ["get_block", "get_loops"]


@pytest.mark.parametrize("role", ["program", "trace"])
def test_file_that_is_not_utf8_is_rejected(run, matmul: Path, tmp_path: Path, role: str) -> None:
    binary = tmp_path / "binary.tw"
    binary.write_bytes(b"\x7fELF\xff\x00")
    files = (binary,) if role == "program" else (matmul, "--trace", binary)
    ran = run("show", *files)
    assert ran.code == 1
    assert ran.err.startswith(
        f"Invalid input file: expected UTF-8 text, got byte 0xff at offset 4\n  at {binary}\n"
    )


def test_standard_input_that_is_not_utf8_is_rejected(run, monkeypatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(b"n = \xff"), encoding="utf-8")
    monkeypatch.setattr("sys.stdin", stream)
    ran = run("show", "-")
    assert ran.code == 1
    assert "got byte 0xff at offset 4\n  at standard input" in ran.err


@pytest.mark.parametrize(
    ("members", "expected"),
    [((), "not a ZIP archive or is truncated"), (("other",), "PyTorch cannot load the exported")],
)
def test_corrupt_exported_program_is_rejected(
    run, tmp_path: Path, members: tuple[str, ...], expected: str
) -> None:
    model = tmp_path / "model.pt2"
    model.write_bytes(b"truncated")
    if members:
        with zipfile.ZipFile(model, "w") as archive:
            for member in members:
                archive.writestr(member, "")
    ran = run("show", model)
    assert ran.code == 1
    assert ran.err.startswith("Invalid input file: ")
    assert expected in ran.err
    assert f"at {model}\n  save the program with torch.export.save" in ran.err


def test_replay_reports_an_output_file_that_cannot_be_written(
    run, matmul: Path, trace: Path, tmp_path: Path
) -> None:
    out = tmp_path / "missing" / "out.tw"
    ran = run("replay", matmul, trace, "-o", out)
    assert ran.code == 1
    assert ran.err.startswith(
        f"Invalid output file: cannot write the output file: No such file or directory\n  at {out}"
    )
