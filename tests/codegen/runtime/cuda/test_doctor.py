"""``tilewright doctor`` for GPUs: the components found, and hints for missing ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.codegen import nvidia
from tilewright.workbench.cli.environment import Finding, diagnose

ROOT = Path(__file__).parents[4]
RUN = "import sys; from tilewright.workbench.cli import main; sys.exit(main(sys.argv[1:]))"
GPU = ("llvm for gpus", "ptxas", "nvidia-cuda-nvdisasm", "cuda driver", "pycuda", "gpu")


def findings() -> dict[str, Finding]:
    return {f.name: f for f in diagnose() if f.name in GPU}


def test_a_gpu_is_listed_with_its_targets(driver) -> None:
    found = findings()
    assert tuple(found) == GPU
    assert all(f.ok for f in found.values()), found
    assert found["gpu"].found == "Fake GPU, sm_80, 1 GiB; targets sm_75, sm_80"
    assert found["cuda driver"].found == "CUDA 13.5"
    assert found["ptxas"].found.startswith("ptxas 1")


def test_no_assembler(driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "assembler", lambda: None)
    missing = findings()["ptxas"]
    assert not missing.ok
    assert missing.found == "not installed: pip install nvidia-cuda-nvcc"
    assert missing.needed == "machine code for GPUs, and its register counts"


def test_a_machine_without_a_gpu_is_not_a_failure() -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, "doctor", "--json"],
        capture_output=True, text=True, cwd=ROOT, check=True,
    )  # fmt: skip
    found = {f["name"]: f for f in json.loads(done.stdout)["findings"]}
    for name in ("cuda driver", "gpu"):
        assert not found[name]["ok"]
        assert found[name]["needed"] == "running on a GPU"
        assert "install the NVIDIA driver" in found[name]["found"]
    assert found["llvm for gpus"]["ok"]
