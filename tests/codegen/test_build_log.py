"""The log of a compilation with ``verbose=True``."""

from __future__ import annotations

import re

import pytest

from tilewright.codegen import compile
from tilewright.codegen.build_log import BuildLog, counted, duration
from tilewright.ir.script import parse

PROGRAM = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 24), f32], w: Tensor[(24, 8), f32]):
    a = matmul(x, w)
    b = softmax(a, axis=-1)
    return b
"""
TIME = re.compile(r"\d+\.\d+ m?s")


@pytest.fixture
def no_cache(monkeypatch, tmp_path):
    """An empty cache of machine code."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))


def test_phases_and_kernels_are_written_to_standard_error(no_cache, capsys):
    exe = compile(parse(PROGRAM), verbose=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = [line.removeprefix("tilewright: ") for line in captured.err.splitlines()]
    assert len(lines) == captured.err.count("tilewright: ")
    phases = [line.partition(":")[0] for line in lines if not line.startswith(" ")]
    assert phases == [
        "scheduling",
        "lowering",
        "lowering of the host flow",
        "code generation",
        "linking",
        "compilation for Target('cpu')",
    ]
    assert all(TIME.search(line) for line in lines)
    kernels = {line.partition(":")[0].strip() for line in lines if line.startswith(" ")}
    assert {f"lowering {name}" for name in exe.kernels} <= kernels
    assert {f"code generation of {name}" for name in (*exe.kernels, "host flow")} <= kernels
    count = len(exe.kernels) + 1
    assert any(line.endswith(f", {count} objects compiled, 0 in the cache") for line in lines)


def test_a_compilation_from_the_cache_reports_that(no_cache, capsys):
    compile(parse(PROGRAM))
    assert capsys.readouterr().err == ""
    compile(parse(PROGRAM), verbose=True)
    assert "tilewright: all machine code is in the cache\n" in capsys.readouterr().err


def test_a_failed_phase_is_written_too():
    lines = []
    log = BuildLog(lines.append)
    with pytest.raises(KeyboardInterrupt), log.phase("lowering"):
        log.kernel("lowering", "a\x1b[2J", 0.5)
        raise KeyboardInterrupt
    assert lines[0] == r"  lowering a\x1b[2J: 500.0 ms"
    assert lines[1].startswith("lowering: stopped after 0.")


def test_a_log_without_a_stream_writes_nothing(capsys):
    log = BuildLog()
    with log.phase("lowering") as phase, log.timed("lowering", "relu"):
        phase.note = counted(1, "kernel")
    assert capsys.readouterr() == ("", "")


def test_numbers_have_units():
    assert [duration(s) for s in (0, 0.9994, 59.999)] == ["0.0 ms", "999.4 ms", "60.00 s"]
    assert [counted(k, "step") for k in (0, 1, 2)] == ["0 steps", "1 step", "2 steps"]
