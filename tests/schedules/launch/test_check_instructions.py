"""Rejection of tensor instructions that a target lacks."""

from __future__ import annotations

import pytest

from tilewright.ir.kernel_errors import MissingInstructionError
from tilewright.target import host
from tilewright.target.target import Target

from tests.codegen.lower.passes.running import CPU, GPU, after, check_comparison, program, rejected

NAME = "check_instructions"

TILE = """
@prim_func
def multiply_add(A: Buffer[(6,), f32], B: Buffer[(16,), f32], C: InOut[(6, 16), f32]):
    with block("tile", intrinsic="avx2.fma.f32.6x16"):
        for i in unrolled(6):
            for j in vectorized(16):
                with block("fma"):
                    vi, vj = spatial(i), spatial(j)
                    C[vi, vj] += A[vi] * B[vj]
"""
PLAIN = TILE.replace(', intrinsic="avx2.fma.f32.6x16"', "")
LACKING = {
    "aarch64": Target("cpu", arch="aarch64"),
    "gpu": GPU,
}


def test_golden(golden):
    """A CPU with the instruction, and one without it."""
    lacking = (TILE, LACKING["aarch64"])
    golden(f"{NAME}.txt", check_comparison(NAME, (TILE, CPU), lacking, MissingInstructionError))


@pytest.mark.parametrize("target", LACKING.values(), ids=LACKING)
def test_an_instruction_that_the_target_lacks(target):
    error = rejected(
        NAME, TILE, target, MissingInstructionError, "avx2.fma.f32.6x16 requires fma", str(target)
    )
    assert error.where == "block 'tile' of function 'multiply_add'"
    assert "sch.unannotate(sch.get_block('tile'), 'intrinsic')" in error.hint


@pytest.mark.parametrize("target", LACKING.values(), ids=LACKING)
def test_a_block_without_an_instruction_runs_on_any_target(target):
    func = program(PLAIN)
    assert after(NAME, func, target) is func


@pytest.mark.parametrize("features", [frozenset(), frozenset({"fma"})])
def test_the_host_decides_for_a_target_without_features(monkeypatch, features):
    monkeypatch.setattr(host, "host_features", lambda: features)
    if features:
        func = program(TILE)
        assert after(NAME, func, Target("cpu")) is func
    else:
        rejected(NAME, TILE, Target("cpu"), MissingInstructionError, "requires fma")
