"""Masked accesses of vectors that are wider than a register."""

from __future__ import annotations

import pytest

from tilewright.codegen.llvm import compile_text, emit_module
from tilewright.ir.dtype import f32, f64, i8
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.thread.function import ThreadFunc
from tilewright.ir.thread.nodes import Address, Load, Predicate, Reg, Store
from tilewright.ir.thread.types import POINTER, VectorType
from tilewright.target.target import Target

X, Y = Reg("x", POINTER), Reg("y", POINTER)
N, LANE = var("n", lower=0), var("lane", lower=0)


def masked_copy(dtype, lanes):
    """Return a function that copies the first ``n`` of some elements."""
    of, start = VectorType(dtype, lanes), as_expr(0)
    mask = Predicate(LANE < N, LANE, lanes)
    value = Load(of, Address(X, start, dtype.alignment), mask=mask)
    store = Store(Address(Y, start, dtype.alignment), value, mask=mask)
    return ThreadFunc("copy", (X, Y, N), (store,), None, distinct=(X, Y))


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("dtype", [i8, f32, f64], ids=str)
def test_a_masked_copy_compiles_for_a_cpu_with_registers_of_64_bits(dtype, lanes):
    """The smallest part of a vector has two lanes: one lane is not a vector in LLVM IR."""
    target = Target("cpu", arch="riscv64")
    text = emit_module([masked_copy(dtype, lanes)], target)
    assert "<1 x " not in text
    assert compile_text(text, target)
