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


PASSES = ("--target", "cpu", "--arch", "x86_64", "--features", "avx2")


def test_passes_are_listed_without_a_program(run) -> None:
    ran = run("show", "--passes")
    assert ran.code == 0
    assert ran.out.splitlines()[0].split() == ["pass", "result", "targets", "summary"]
    names = [line.split()[0] for line in ran.out.splitlines()[2:]]
    assert names[0] == "scheduled"
    assert {"strip_mine", "insert_barriers", "to_thread", "host", "llvm"} <= set(names)


def test_passes_of_a_target(run) -> None:
    listed = run("show", "--passes", "--target", "cpu", "--json").data["passes"]
    assert all("cpu" in one["targets"] for one in listed)
    assert "insert_barriers" not in [one["name"] for one in listed]
    assert {"name", "level", "targets", "summary"} == set(listed[0])


def test_show_after_a_pass(run, matmul: Path) -> None:
    ran = run("show", matmul, "--after", "realize_blocks", *PASSES)
    assert ran.code == 0
    assert ran.out.count("def matmul(") == 1
    assert "spatial(" not in ran.out
    assert not ran.err


def test_show_after_a_pass_applies_a_trace(run, matmul: Path, trace: Path) -> None:
    ran = run("show", matmul, "--trace", trace, "--after", "scheduled", *PASSES)
    assert "for j_1 in vectorized(8):" in ran.out


def test_show_one_kernel_of_several(run, matmul: Path) -> None:
    every = run("show", matmul, "--after", "to_thread", *PASSES).out
    headings = [line for line in every.splitlines() if line.endswith(" after to_thread")]
    assert headings == ["# matmul after to_thread", "# matmul_n1 after to_thread"]
    one = run("show", matmul, "--after", "to_thread", "--kernel", "matmul_n1", *PASSES).out
    assert one.startswith("def matmul_n1(")
    assert one.strip() in every


def test_show_the_change_by_a_pass(run, matmul: Path) -> None:
    options = ("--after", "realize_blocks", "--kernel", "matmul", "--diff", *PASSES)
    lines = run("show", matmul, *options).out.splitlines()
    assert lines[:2] == ["--- after decompose_reductions", "+++ after realize_blocks"]
    data = run("show", matmul, *options, "--json").data
    assert data["functions"] == [{"name": "matmul", "diff": "\n".join(lines)}]


def test_show_after_a_pass_as_json(run, matmul: Path) -> None:
    data = run("show", matmul, "--after", "to_thread", "--json", *PASSES).data
    assert data["stage"] == "to_thread"
    assert data["functions"][0]["name"] == "matmul"
    assert data["functions"][0]["text"].startswith("def matmul(")


def test_show_for_a_gpu(run, matmul: Path) -> None:
    ran = run("show", matmul, "--after", "insert_barriers", "--target", "cuda")
    assert "# blockIdx.x: " in ran.out


def test_a_misspelled_pass_is_rejected_before_the_file_is_read(run) -> None:
    ran = run("show", "no such file", "--after", "strip_mined")
    assert ran.code == 1
    assert ran.err.startswith("Unknown pass: no pass 'strip_mined'; did you mean 'strip_mine'?\n")
    assert "passes for cpu are scheduled, " in ran.err


def test_a_misspelled_kernel_is_rejected(run, matmul: Path) -> None:
    ran = run("show", matmul, "--after", "strip_mine", "--kernel", "matmull", "--json", *PASSES)
    assert ran.code == 1
    assert ran.data["error"]["kind"] == "UnknownKernelError"
    assert ran.data["error"]["details"]["kernels"] == ["matmul", "matmul_n1"]
    assert "did you mean 'matmul'?" in ran.data["error"]["message"]


@pytest.mark.parametrize("option", [("--kernel", "matmul"), ("--diff",)])
def test_options_of_a_pass_require_it(run, matmul: Path, option: tuple[str, ...]) -> None:
    ran = run("show", matmul, *option)
    assert ran.code == 1
    assert f"{option[0]} requires --after PASS" in ran.err


@pytest.mark.parametrize("option", [("--function", "matmul"), ("--list",)])
def test_options_of_the_program_do_not_apply_to_passes(run, matmul: Path, option) -> None:
    ran = run("show", matmul, "--after", "strip_mine", *option)
    assert ran.code == 1
    assert f"{option[0]} does not apply to --after\n  choose a function with --kernel" in ran.err


def test_show_without_a_program_is_rejected(run) -> None:
    ran = run("show")
    assert ran.code == 1
    assert ran.err == (
        "Invalid command: no program\n  name a file, or list the passes with --passes\n"
    )


def test_an_empty_name_of_a_pass_is_rejected(run, matmul: Path) -> None:
    ran = run("show", matmul, "--after", "")
    assert ran.code == 1
    assert "Unknown pass: no pass ''" in ran.err


@pytest.mark.parametrize("option", [("--after", "host"), ("--kernel", "mm"), ("--diff",)])
def test_options_of_a_pass_do_not_apply_to_the_list(run, option) -> None:
    ran = run("show", "--passes", *option)
    assert ran.code == 1
    assert f"{option[0]} does not apply to --passes" in ran.err
