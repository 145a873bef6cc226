"""``python -m tests.gpu_check``, without a GPU and with the fake driver."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright as tw

from tests import gpu_check
from tests.benchmarks import gpu

ROOT = Path(__file__).parents[4]


def test_without_a_gpu_it_fails_with_a_message() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.gpu_check"], capture_output=True, text=True, cwd=ROOT,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "no GPU: no CUDA driver" in done.stderr


@pytest.mark.parametrize(
    ("capability", "arch"), [(75, "sm_75"), (80, "sm_80"), (90, "sm_90a"), (121, "sm_121a")]
)
def test_the_default_arch_is_the_arch_of_the_gpu(capability: int, arch: str) -> None:
    assert gpu_check.own_arch(capability) == arch


def only(number: int, monkeypatch: pytest.MonkeyPatch) -> gpu.Kernel:
    """Keep one kernel, with small sizes."""
    kernel = gpu.KERNELS[number]
    sizes = [s[: len(kernel.checked[0])] for s in ((3, 5, 7), (17, 33, 9))]
    kernel = dataclasses.replace(kernel, checked=sizes, timed=sizes[:1])
    monkeypatch.setattr(gpu, "KERNELS", (kernel,))
    return kernel


@pytest.mark.parametrize("number", range(3))
def test_correct_results_and_times_are_written(
    driver, number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kernel = only(number, monkeypatch)
    driver.emulate(kernel.schedule())
    path = tmp_path / "found.json"
    code = gpu_check.main(["--no-model", "--arch", "sm_80", "--json", str(path)])
    found = json.loads(path.read_text())
    assert code == 0, found["results"]
    assert [r["ok"] for r in found["results"]] == [True, True]
    assert found["times"][0]["us"] > 0
    assert found["machine"]["gpu"] == "Fake GPU"
    assert found["machine"]["versions"]["tilewright"]
    assert found["peers"] is False


def test_wrong_results_are_an_error(driver, monkeypatch, tmp_path: Path, capsys) -> None:
    only(1, monkeypatch)

    def wrong_results(_name: str, _dims: list[int], params: list[int]) -> int:
        address, rows, columns = (ctypes.c_int64.from_address(p).value for p in params[1:])
        memory = (ctypes.c_float * (rows * columns)).from_address(address)
        memory[:] = [7.0] * (rows * columns)
        return 0

    driver.on_launch(wrong_results, 4)
    code = gpu_check.main(["--no-model", "--arch", "sm_80", "--json", str(tmp_path / "f.json")])
    assert code == 1
    assert "2 results are WRONG" in capsys.readouterr().out


def test_a_failed_part_does_not_stop_the_others(driver, monkeypatch) -> None:
    kernel = only(0, monkeypatch)
    driver.on_launch(lambda *_: 700, 5)
    rows = gpu.attempt("x", lambda: gpu.check(kernel, tw.Target("cuda", arch="sm_80")))
    assert rows[0]["ok"] is False
    assert "illegal memory access" in rows[0]["failed"]
