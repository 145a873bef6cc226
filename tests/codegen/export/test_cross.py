"""The exported model on emulated processors: the same C program and results."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.export.link import run_linker
from tilewright.ir.interpreter import run_graph

from tests.codegen.export.test_shared import PROGRAMS, filled

SIZES = (1, 7, 33)


def emulator(arch: str) -> str:
    """Return the path of qemu, which CI installs; a missing qemu fails the test."""
    found = shutil.which(f"qemu-{arch}-static") or shutil.which(f"qemu-{arch}")
    if found is None:
        pytest.fail(f"no qemu-{arch}-static: `make test` installs qemu-user-static")
    return found


@pytest.mark.parametrize("arch", ["aarch64", "riscv64"])
def test_emulated_results_agree(module, tmp_path, arch):
    target = tw.Target("cpu", arch=arch)
    made = tw.export(module, tmp_path / "small", target=target, kind="static", name="small")
    program, out = tmp_path / "program", tmp_path / "out"
    run_linker(
        [
            "cc", "-target", f"{arch}-linux-musl", "-static", "-O1", "-std=c11",
            f"-I{made.directory}", str(PROGRAMS / "small.c"),
            str(made.directory / "libsmall.a"), "-o", str(program),
        ]
    )  # fmt: skip
    done = subprocess.run(
        [emulator(arch), program, made.directory / "small.safetensors", out, *map(str, SIZES)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    got = np.fromfile(out, np.float32)
    for n in SIZES:
        for array in run_graph(module, (filled((n, 24), 1), filled((n, 40), 2))):
            part, got = got[: array.size], got[array.size :]
            np.testing.assert_allclose(part.reshape(array.shape), array, rtol=2e-5, atol=2e-5)
    assert got.size == 0
