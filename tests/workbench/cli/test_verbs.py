"""Each verb does what it says, as text and as JSON, and says what is wrong otherwise."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.workbench.cli.main import VERBS, main
from tilewright.workbench.cli.service import lab_command

from tests.workbench.conftest import MATMUL


def test_the_verbs_are_those_promised() -> None:
    names = [verb.name for verb in VERBS]
    assert names == [
        "lab", "compile", "run", "export", "replay", "show", "bench", "cache", "doctor",
    ]  # fmt: skip


def test_an_unknown_verb_ends_with_usage(capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["fly"])
    assert ended.value.code == 2
    assert "invalid choice: 'fly'" in capsys.readouterr().err


def test_a_reader_that_stops_early_is_no_fault() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = "from tilewright.workbench.cli import main; raise SystemExit(main(['cache']))"
    ended = subprocess.run(
        [sys.executable, "-c", command], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")


# ---------------------------------------------------------------- show


def test_show_prints_what_parses_back(run, matmul: Path) -> None:
    ran = run("show", matmul)
    assert ran.code == 0
    assert list(tw.parse(ran.out).functions) == ["matmul"]


def test_show_with_a_trace_shows_the_result(run, matmul: Path, trace: Path) -> None:
    ran = run("show", matmul, "--trace", trace)
    assert "for j_1 in vectorized(8):" in ran.out


def test_show_lists(run, network: Path) -> None:
    ran = run("show", network, "--list")
    assert ran.out.split("\n")[:2] == ["loop   twice  [n]", "graph  main  [n]"]


def test_show_json_has_symbols_and_facts(run, network: Path) -> None:
    (main_,) = run("show", network, "--function", "main", "--json").data["functions"]
    assert main_["symbols"]["rows"][0]["likely"] == [6]
    assert main_["symbols"]["facts"][0]["knowledge"] == "checked"


def test_a_program_from_standard_input(run, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(MATMUL))
    assert "def matmul" in run("show", "-").out


# ---------------------------------------------------------------- replay


def test_replay_writes_and_verifies(run, matmul: Path, trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tw"
    ran = run("replay", matmul, trace, "--verify", "-o", out)
    assert ran.code == 0
    assert ran.out.startswith("4 of 4 steps applied")
    assert "vectorized(8)" in out.read_text()


def test_replay_on_another_program_says_where_it_stops(run, network: Path, trace: Path) -> None:
    ran = run("replay", network, trace, "--json")
    assert ran.code == 1
    assert ran.data["applied"] == 0
    assert "'matmul'" in ran.data["error"]["message"]
    assert [step["op"] for step in ran.data["pending"]][:2] == ["get_block", "get_loops"]


# ---------------------------------------------------------------- compile, run, bench


def test_compile_lists_kernels_and_writes_the_artefact(run, matmul: Path, tmp_path: Path) -> None:
    out = tmp_path / "matmul.artefact"
    ran = run("compile", matmul, "-o", out)
    assert ran.code == 0
    assert "matmul" in ran.out
    assert out.stat().st_size > 1000


def test_compile_emits_assembly(run, matmul: Path, trace: Path) -> None:
    ran = run("compile", matmul, "--trace", trace, "--emit", "assembly", "--kernel", "matmul")
    assert "ret" in ran.out


def test_run_takes_arguments_from_a_file(run, matmul: Path, tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    a = draw.standard_normal((5, 16), np.float32)
    b = draw.standard_normal((16, 24), np.float32)
    given, saved = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(given, A=a, B=b)
    ran = run("run", matmul, "--inputs", given, "--save", saved, "--json")
    assert ran.data["results"][0]["shape"] == [5, 24]
    np.testing.assert_allclose(np.load(saved)["result_0"], a @ b, atol=1e-5)


def test_run_says_which_arguments_are_missing(run, matmul: Path, tmp_path: Path) -> None:
    given = tmp_path / "in.npz"
    np.savez(given, A=np.ones((5, 16), np.float32))
    ran = run("run", matmul, "--inputs", given)
    assert ran.code == 1
    assert "has no B" in ran.err


def test_run_says_that_a_file_holds_no_arguments(run, matmul: Path) -> None:
    ran = run("run", matmul, "--inputs", matmul)
    assert ran.code == 1
    assert "is no .npz file" in ran.err


def test_run_at_a_chosen_size(run, network: Path) -> None:
    ran = run("run", network, "--size", "n=10", "--json")
    assert ran.data["results"][0]["shape"] == [10, 8]


@pytest.mark.parametrize(
    ("size", "said"), [("n", "not of the form n=4"), ("q=3", "symbols are n"), ("n=x", "form n=4")]
)
def test_a_wrong_size_is_explained(run, network: Path, size: str, said: str) -> None:
    ran = run("run", network, "--size", size)
    assert ran.code == 1
    assert said in ran.err


def test_bench_tells_the_same_as_the_workbench(run, network: Path) -> None:
    data = run("bench", network, "--size", "n=4", "--json").data
    assert data["shapes"] == "n = 4"
    assert sum(kernel["share"] for kernel in data["kernels"]) == pytest.approx(1.0)
    assert data["low"] <= data["median"] <= data["high"]
    assert data["machine"]["cores"]


def test_bench_keeps_to_conditions_and_judges(run, network: Path) -> None:
    chosen = ("--caches", "cold", "--threads", "1", "--pin", "--budget", "0.2")
    data = run("bench", network, "--size", "n=4", *chosen, "--json").data
    assert data["conditions"].startswith("cold caches, 1 thread, each on a core of its own")
    assert data["verdict"]["agrees"]
    assert data["verdict"]["error"] <= data["verdict"]["bound"]
    assert data["machine"]["processor"]
    assert data["low"] <= data["median"] <= data["high"]


def test_a_target_that_does_not_exist_lists_those_that_do(run, matmul: Path) -> None:
    ran = run("compile", matmul, "--target", "abacus")
    assert ran.code == 1
    assert "targets are 'cpu'" in ran.err


# ---------------------------------------------------------------- errors


def test_a_missing_file_and_a_syntax_error_are_named(run, tmp_path: Path) -> None:
    assert "no file" in run("show", tmp_path / "nothing.tw").err
    broken = tmp_path / "broken.tw"
    broken.write_text("@prim_func\ndef f(x: Buffer[(4,) f32]):\n    pass\n")
    data = run("show", broken, "--json").data
    assert data["error"]["title"]
    assert "line 2" in json.dumps(data) or "2:" in json.dumps(data)


# ---------------------------------------------------------------- lab, cache, doctor


def test_cache_counts_and_clears(run, monkeypatch, tmp_path: Path, matmul: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TILEWRIGHT_CACHE_LIMIT", "4096")
    assert run("cache", "--json").data["entries"] == 0
    (tmp_path / "cache" / "ab").mkdir(parents=True)
    (tmp_path / "cache" / "ab" / "abcd").write_bytes(b"x" * 100)
    assert run("cache", "info", "--json").data == {
        "folder": str(tmp_path / "cache"),
        "entries": 1,
        "bytes": 100,
        "limit": 4096,
    }
    assert run("cache", "clear", "--json").data == {"removed": 1}


def test_doctor_finds_what_is_required(run) -> None:
    ran = run("doctor", "--json")
    found = {finding["name"]: finding for finding in ran.data["findings"]}
    assert ran.code == 0
    assert found["compile and run"]["found"] == "works"
    assert found["processor"]["ok"]


def test_lab_opens_the_path_that_is_asked_for() -> None:
    options = Namespace(path="notebooks", port=9999, no_browser=True)
    command = lab_command(options)
    assert command[1:4] == ["-m", "jupyterlab", "notebooks"]
    assert {"--port=9999", "--no-browser"} <= set(command)
