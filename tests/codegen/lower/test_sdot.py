"""The AArch64 instruction ``sdot``, emulated: sums of bytes are exact in every tail."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tilewright.codegen.export.link import run_linker
from tilewright.codegen.llvm import compile_text, emit_module
from tilewright.codegen.lower import LoweredKernel, lower_kernel
from tilewright.ir.module import Module
from tilewright.ir.script import parse, to_text
from tilewright.ir.symbolic import evaluate
from tilewright.ir.thread import runtime_table
from tilewright.schedules.rules import with_default_schedule

from tests.codegen.export.test_cross import emulator
from tests.codegen.tensorized import DOT_AARCH64

SLOTS = {
    "VERSION": runtime_table.VERSION,
    "THREADS": runtime_table.THREADS,
    "PARALLEL": runtime_table.PARALLEL,
}


def build(folder: Path, artifact: LoweredKernel) -> Path:
    """Link the kernel and the C program that calls it."""
    text = emit_module([artifact.function], DOT_AARCH64.target)
    (folder / "kernel.o").write_bytes(compile_text(text, DOT_AARCH64.target))
    source = Path(__file__).with_suffix("").with_name("sdot.c")
    run_linker(
        [
            "cc", "-target", "aarch64-linux-musl", "-static", "-O1", "-std=c11",
            *(f"-D{name}={slot // 8}" for name, slot in SLOTS.items()),
            str(source), str(folder / "kernel.o"), "-o", str(folder / "program"),
        ]
    )  # fmt: skip
    return folder / "program"


def run(program: Path, artifact: LoweredKernel, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    sizes = {"M": m, "N": n, "K": k}
    values = {v: sizes[v.name] for v in artifact.symbols} | {artifact.threads: 1}
    assert [v.name for v in artifact.symbols] == ["M", "K", "N"]
    scratch = 64 if artifact.scratch is None else evaluate(artifact.scratch, values)
    out = program.with_name("out")
    done = subprocess.run(
        [emulator("aarch64"), "-cpu", "max", program, *map(str, (m, n, k, scratch)), out],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    a = (np.arange(m * k) * 37 % 256 - 128).reshape(m, k)
    b = ((np.arange(k * n) * 101 + 7) % 256 - 128).reshape(k, n)
    np.testing.assert_array_equal(np.fromfile(out, np.int32).reshape(m, n), a @ b)


@pytest.mark.parametrize("by", ["hand", "default"])
def test_emulated_sums_are_exact(by: str, tmp_path: Path) -> None:
    func = DOT_AARCH64.scheduled().module.prims[0]
    if by == "default":
        func = with_default_schedule(parse(DOT_AARCH64.program), DOT_AARCH64.target).prims[0]
        assert 'intrinsic="aarch64.sdot.i8.6x16"' in to_text(Module().with_functions(func))
    artifact = lower_kernel(func, DOT_AARCH64.target)
    program = build(tmp_path, artifact)
    rng = random.Random(5)
    for m in range(1, 14):
        run(program, artifact, (m, rng.randint(1, 50), rng.randint(1, 40)))
    for n in (15, 16, 17, 31, 32, 33):
        run(program, artifact, (7, n, rng.randint(1, 9)))
