"""Atomic operations: LLVM instructions, loops of exchanges, and PTX that assembles."""

from __future__ import annotations

import pytest

from tilewright.codegen.llvm import emit_module
from tilewright.ir.dtype import bf16, bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from tilewright.ir.thread.nodes import Address, AtomicUpdate, Load
from tilewright.ir.thread.types import VectorType
from tilewright.target.target import Target

from tests.codegen.llvm.gpu import INDEX, X, Y, assembled, kernel, ptx

INTEGERS = (i8, i16, i32, i64, u8, u16, u32, u64)
FLOATS = (f16, bf16, f32, f64)
OPS = ("add", "mul", "min", "max", "and", "or", "xor")
CASES = [(dtype, op) for dtype in INTEGERS for op in OPS]
CASES += [(dtype, op) for dtype in FLOATS for op in OPS[:4]]
CASES += [(bool_, op) for op in ("and", "or")]


def update(dtype, op):
    """Return a kernel in which every thread updates the first element of y."""
    of = VectorType(dtype)
    value = Load(of, Address(X, INDEX * dtype.alignment, dtype.alignment))
    return kernel([AtomicUpdate(op, Address(Y, INDEX * 0, dtype.alignment), value, relaxed=True)])


def llvm(dtype, op):
    return emit_module([update(dtype, op)], Target("cuda", arch="sm_80"))


@pytest.mark.parametrize(("dtype", "op"), CASES, ids=lambda x: str(x))
def test_every_update_assembles(dtype, op):
    assert assembled(update(dtype, op)).cubin


@pytest.mark.parametrize(
    ("dtype", "op", "instruction"),
    [
        (i32, "add", "atomicrmw add"),
        (u64, "max", "atomicrmw umax"),
        (i64, "min", "atomicrmw min"),
        (u32, "xor", "atomicrmw xor"),
        (f32, "add", "atomicrmw fadd"),
        (f64, "add", "atomicrmw fadd"),
        (f32, "max", "cmpxchg"),
        (f32, "mul", "cmpxchg"),
        (f16, "add", "cmpxchg"),
        (bf16, "add", "cmpxchg"),
        (i8, "add", "cmpxchg"),
        (i32, "mul", "cmpxchg"),
        (bool_, "or", "cmpxchg"),
    ],
    ids=lambda x: str(x).replace(" ", "-"),
)
def test_an_update_without_an_instruction_is_a_loop_of_exchanges(dtype, op, instruction):
    text = llvm(dtype, op)
    assert f"{instruction} " in text
    assert ("br i1" in text) == (instruction == "cmpxchg")


def test_updates_of_a_kernel_have_no_fences():
    text = ptx(update(f32, "add"))
    assert (
        "red.relaxed.gpu.global.add.f32" in text
        or "atom.global.add.f32" in text
        or ("atom.relaxed.gpu.global.add.f32" in text)
    )
    assert "fence" not in text
    assert "membar" not in text


def test_the_maximum_propagates_nan():
    assert "maximum" in llvm(f32, "max")
