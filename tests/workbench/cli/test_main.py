"""Entry point of the command line: usage, errors and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.workbench.cli.main import COMMANDS, main


def test_commands() -> None:
    names = [command.name for command in COMMANDS]
    assert names == [
        "lab", "compile", "run", "export", "replay", "show", "bench", "cache", "doctor",
    ]  # fmt: skip


def test_unknown_command_prints_the_usage(capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["unknown"])
    assert ended.value.code == 2
    assert "invalid choice: 'unknown'" in capsys.readouterr().err


def test_closed_pipe_is_not_an_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = "from tilewright.workbench.cli import main; raise SystemExit(main(['cache']))"
    ended = subprocess.run(
        [sys.executable, "-c", command], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_unknown_target_lists_the_targets(run, matmul: Path) -> None:
    ran = run("compile", matmul, "--target", "abacus")
    assert ran.code == 1
    assert "targets are 'cpu'" in ran.err


def test_missing_file_and_syntax_error_are_named_errors(run, tmp_path: Path) -> None:
    assert "no file" in run("show", tmp_path / "missing.tw").err
    broken = tmp_path / "broken.tw"
    broken.write_text("@prim_func\ndef f(x: Buffer[(4,) f32]):\n    pass\n")
    data = run("show", broken, "--json").data
    assert data["error"]["title"]
    assert "line 2" in json.dumps(data) or "2:" in json.dumps(data)
