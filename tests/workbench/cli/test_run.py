"""The commands ``compile``, ``run`` and ``bench``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


def test_compile_lists_kernels_and_writes_the_artifact(run, matmul: Path, tmp_path: Path) -> None:
    out = tmp_path / "matmul.artifact"
    ran = run("compile", matmul, "-o", out)
    assert ran.code == 0
    assert "matmul" in ran.out
    assert out.stat().st_size > 1000


def test_compile_emits_assembly(run, matmul: Path, trace: Path) -> None:
    ran = run("compile", matmul, "--trace", trace, "--emit", "assembly", "--kernel", "matmul")
    assert "ret" in ran.out


def test_run_reads_arguments_from_a_file(run, matmul: Path, tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    a = draw.standard_normal((5, 16), np.float32)
    b = draw.standard_normal((16, 24), np.float32)
    given, saved = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(given, A=a, B=b)
    ran = run("run", matmul, "--inputs", given, "--save", saved, "--json")
    assert ran.data["results"][0]["shape"] == [5, 24]
    np.testing.assert_allclose(np.load(saved)["result_0"], a @ b, atol=1e-5)


def test_run_reports_missing_arguments(run, matmul: Path, tmp_path: Path) -> None:
    given = tmp_path / "in.npz"
    np.savez(given, A=np.ones((5, 16), np.float32))
    ran = run("run", matmul, "--inputs", given)
    assert ran.code == 1
    assert "does not contain B" in ran.err


def test_run_rejects_a_file_without_arguments(run, matmul: Path) -> None:
    ran = run("run", matmul, "--inputs", matmul)
    assert ran.code == 1
    assert "is not an .npz file" in ran.err


def test_run_at_a_given_size(run, network: Path) -> None:
    ran = run("run", network, "--size", "n=10", "--json")
    assert ran.data["results"][0]["shape"] == [10, 8]


@pytest.mark.parametrize(
    ("size", "expected"),
    [("n", "the form SYMBOL=VALUE"), ("q=3", "symbols are n"), ("n=x", "such as n=4")],
)
def test_invalid_size_is_rejected(run, network: Path, size: str, expected: str) -> None:
    ran = run("run", network, "--size", size)
    assert ran.code == 1
    assert expected in ran.err


def test_bench_reports_the_measurement(run, network: Path) -> None:
    data = run("bench", network, "--size", "n=4", "--json").data
    assert data["shapes"] == "n = 4"
    assert sum(kernel["share"] for kernel in data["kernels"]) == pytest.approx(1.0)
    assert data["low"] <= data["median"] <= data["high"]
    assert data["machine"]["cores"]


def test_bench_with_options_and_verdict(run, network: Path) -> None:
    chosen = ("--caches", "cold", "--threads", "1", "--pin", "--budget", "0.2")
    data = run("bench", network, "--size", "n=4", *chosen, "--json").data
    assert data["conditions"].startswith("cold caches, 1 thread, pinned to separate cores")
    assert data["verdict"]["agrees"]
    assert data["verdict"]["error"] <= data["verdict"]["bound"]
    assert data["machine"]["processor"]
    assert data["low"] <= data["median"] <= data["high"]
