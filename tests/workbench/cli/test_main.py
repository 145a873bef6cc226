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
        "lab", "compile", "run", "export", "inspect", "weights", "replay", "show", "bench",
        "cache", "doctor",
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


def test_a_misspelled_command_is_reported_with_a_similar_one(run, capsys) -> None:
    with pytest.raises(SystemExit):
        run("shw", "program.tw")
    assert "did you mean 'show'?" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run("compile", "program.tw", "--emit", "assembley")
    assert "did you mean 'assembly'?" in capsys.readouterr().err


def test_a_misspelled_file_is_reported_with_a_similar_one(run, tmp_path: Path) -> None:
    (tmp_path / "matmul.tw").write_text("")
    assert "did you mean 'matmul.tw'?" in run("show", tmp_path / "matmull.tw").err
    assert "is a folder" in run("show", tmp_path).err
    assert "does not exist" in run("show", tmp_path / "none" / "a.tw").err


def test_an_error_in_a_file_is_located_in_it(run, tmp_path: Path) -> None:
    (tmp_path / "broken.tw").write_text("x = 1")
    assert (
        f"  at {tmp_path / 'broken.tw'}, line 1, column 1\n"
        in run("show", tmp_path / "broken.tw").err
    )
    (tmp_path / "good.tw").write_text("")
    (tmp_path / "trace.json").write_text("[[[")
    shown = run("replay", tmp_path / "good.tw", tmp_path / "trace.json").err
    assert f"  at {tmp_path / 'trace.json'}, line 1\n" in shown


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    program = tmp_path / "program.tw"
    program.write_text("@prim_func\ndef f(y: Out[(8,), f32]):\n    for i in range(8): y[i] = 0.0")
    code = "import sys; from tilewright.workbench.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "show", str(program)]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.startswith("Invalid output file: cannot write to standard output: No space")
    assert "Traceback" not in ran.stderr


def test_output_with_half_of_a_character_is_valid_json(run, tmp_path: Path) -> None:
    (tmp_path / "f.tw").write_text(
        "@prim_func\ndef f(y: Out[(8,), f32]):\n    for i in range(8): y[i] = 0.0"
    )
    header = '{"trace": "tilewright", "schema": 1}'
    step = '{"op": "split", "args": {"loop": "\\ud800", "factors": [null, 8]}}'
    (tmp_path / "trace.json").write_text(f"{header}\n{step}\n")
    ran = run("replay", tmp_path / "f.tw", tmp_path / "trace.json", "--json")
    assert ran.data["pending"][0]["args"]["loop"] == "\ud800"
    assert ran.out.encode("utf-8").decode("utf-8") == ran.out


LONG = "a" * 100_000
COMMANDS_WITH_FILES = [
    ("show", "FILE"), ("show", "PROGRAM", "--trace", "FILE"), ("replay", "PROGRAM", "FILE"),
    ("run", "PROGRAM", "--inputs", "FILE"), ("run", "PROGRAM", "--save", "FILE"),
    ("compile", "PROGRAM", "-o", "FILE"), ("export", "PROGRAM", "-o", "FILE"),
]  # fmt: skip


@pytest.mark.parametrize("name", [LONG, "a\0b", "file/name"], ids=lambda n: ascii(n)[:12])
@pytest.mark.parametrize("command", COMMANDS_WITH_FILES, ids=lambda c: " ".join(c[:1] + c[2:]))
def test_a_name_that_no_file_can_have(
    run, matmul: Path, name: str, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(matmul.parent)
    Path("file").write_text("not a folder")
    ran = run(*(str(matmul) if a == "PROGRAM" else name if a == "FILE" else a for a in command))
    assert ran.code == 1
    assert ran.err.startswith("Invalid ")


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        (("run", "PROGRAM", "--size", "n=99999999999999999999"), "Out of memory"),
        (("run", "PROGRAM", "--size", "n=1000000000000"), "Out of memory"),
        (("run", "PROGRAM", "--size", "n=-1"), "Invalid sample value"),
        (("run", "PROGRAM", "--size", "n=" + "9" * 100), "Invalid command"),
        (("bench", "PROGRAM", "--no-check", "--size", "n=-3"), "Invalid sample value"),
        (("bench", "PROGRAM", "--no-check", "--budget", "nan"), "Invalid measurement options"),
        (("show", "PROGRAM", "--function", "\ud800"), "Invalid command"),
        (("compile", "PROGRAM", "--arch", "\ud800"), "Unknown target"),
        (("compile", "PROGRAM", "--features", "\0"), "Unsupported platform"),
        (("compile", "PROGRAM", "--emit", "llvm", "--kernel", "\n"), "Unknown function"),
        (("export", "PROGRAM", "-o", "out", "--name", "../a"), "Export failure"),
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_invalid_arguments_are_named_errors(
    run, matmul: Path, arguments: tuple[str, ...], title: str
) -> None:
    ran = run(*(str(matmul) if a == "PROGRAM" else a for a in arguments))
    assert ran.code == 1
    assert ran.err.startswith(f"{title}: ")


def test_hostile_traces_are_named_errors(run, matmul: Path, tmp_path: Path) -> None:
    header = '{"trace":"tilewright","schema":1}\n'
    number = '{"op":"split","args":{"loop":{"ref":[0,' + "9" * 100_000 + "]}}}"
    path = tmp_path / "trace.json"
    for text in ("[" * 100_000, header + '{"a":' * 20_000, header + number, "", "\0"):
        path.write_text(text)
        ran = run("replay", matmul, path)
        assert ran.code == 1
        assert ran.err.startswith("Trace error: ")
