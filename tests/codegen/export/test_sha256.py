"""The sha256 that `open` computes equals that of Python, for all instruction sets."""

from __future__ import annotations

import hashlib
import subprocess

import numpy as np
import pytest

from tilewright.codegen.export.link import NATIVE, run_linker

from tests.codegen.export.test_cross import emulator
from tests.codegen.export.test_shared import PROGRAMS

LENGTHS = (0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 129, 1000, 65536, 100_003)


def digests() -> str:
    data = (np.arange(max(LENGTHS)) * 7 + 3).astype(np.uint8).tobytes()
    return "".join(f"{n} {hashlib.sha256(data[:n]).hexdigest()}\n" for n in LENGTHS)


@pytest.mark.parametrize(
    ("arch", "cpu", "form"),
    [
        ("x86_64", "", ""),
        ("x86_64", "Nehalem", "plain"),
        ("aarch64", "max", "native"),
        ("riscv64", "rv64", "plain"),
    ],
)
def test_digests_are_those_of_python(tmp_path, arch, cpu, form):
    program = tmp_path / "program"
    system = ["gnu"] if arch == "x86_64" else ["musl", "-static"]
    run_linker(
        [
            "cc", "-target", f"{arch}-linux-{system[0]}", *system[1:], "-O2", "-std=c11", "-Wall",
            "-Wextra", "-Werror", f"-I{NATIVE}", str(PROGRAMS / "digest.c"), "-o", str(program),
        ]
    )  # fmt: skip
    command = [emulator(arch), "-cpu", cpu, program] if cpu else [program]
    done = subprocess.run(command, input=digests(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *differing, used = done.stdout.split()
    assert differing == []
    assert not form or used == form
