"""``tilewright inspect``: text, JSON, files, needs, and exit codes of comparisons."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

MORE = """

@prim_func
def one(y: Out[(4,), f32]):
    for i in range(4):
        y[i] = 1.0
"""


@pytest.fixture
def made(run, matmul: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "made"
    ran = run("export", matmul, "-o", folder, "--name", "product", "--metadata", "version=1.2")
    assert ran.code == 0, ran.err
    return folder


def test_a_directory_and_a_library_have_one_text(run, made: Path) -> None:
    ran = run("inspect", made)
    assert ran.code == 0
    assert ran.out.splitlines()[0].startswith("model 'product': shared, ABI version 2")
    assert "version: 1.2" in ran.out.splitlines()
    assert run("inspect", made / "libproduct.so").out == ran.out
    data = run("inspect", made, "--json").data
    assert data == json.loads((made / "product.json").read_text())


def test_verify_has_an_exit_code(run, made: Path) -> None:
    ran = run("inspect", made, "--verify")
    assert (ran.code, ran.out.strip()) == (0, "6 files have the listed sha256")
    (made / "product.h").write_text("")
    ran = run("inspect", made, "--verify", "--json")
    assert ran.code == 1
    assert ran.data["altered"][0].startswith("product.h: expected sha256")


def test_needs_are_printed(run, made: Path) -> None:
    ran = run("inspect", made, "--needs", "n=8,m=4,k=3")
    assert ran.code == 0, ran.err
    assert ": workspace " in ran.out
    assert run("inspect", made, "--needs", "n").err.startswith("Invalid command: --needs 'n'")


def test_the_exit_code_is_that_of_the_verdict(run, made: Path, matmul: Path, tmp_path) -> None:
    text = matmul.read_text()
    more = (
        "\n\n@prim_func\ndef one(y: Out[(4,), f32]):\n    for i in range(4):\n        y[i] = 1.0\n"
    )
    (tmp_path / "more.tw").write_text(text + more)
    for name, source in (("same", matmul), ("more", tmp_path / "more.tw")):
        assert run("export", source, "-o", tmp_path / name, "--name", "product").code == 0
    ran = run("inspect", made, "--against", tmp_path / "same" / "libproduct.so")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "compatible")
    ran = run("inspect", made, "--against", tmp_path / "more")
    assert ran.code == 3
    assert ran.out.splitlines()[:2] == ["additive", "  additive: function 'one' is added"]
    ran = run("inspect", tmp_path / "more", "--against", made, "--json")
    assert ran.code == 4
    assert ran.data["verdict"] == "breaking"
    assert ran.data["differences"][0] == {
        "verdict": "breaking",
        "text": "function 'one' is removed",
    }


def test_errors(run, made: Path, matmul: Path, tmp_path: Path) -> None:
    assert "contains no description" in run("inspect", matmul).err
    assert "contains 0 manifests" in run("inspect", tmp_path).err
    ran = run("export", matmul, "-o", tmp_path / "x", "--metadata", "version")
    assert ran.err.startswith("Invalid command: --metadata 'version' does not have the form")
