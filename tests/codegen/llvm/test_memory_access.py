"""Masked accesses: vectors that are wider than a register, and converted elements."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tilewright.codegen.llvm import compile_text, emit_module
from tilewright.ir.dtype import bf16, f16, f32, f64, i8, i16, i32, i64, u8
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.thread.function import ThreadFunc
from tilewright.ir.thread.nodes import Address, Cast, Load, Predicate, Reg, Return, Store
from tilewright.ir.thread.types import POINTER, VectorType
from tilewright.target.target import Target

from tests.codegen.kernels import LEVELS, load

CAST = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
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


def masked_cast(source, dtype, lanes, first, last):
    """Return a function that stores lanes ``first`` to ``last`` of converted elements."""
    of, start = VectorType(dtype, lanes), as_expr(0)
    value = Load(VectorType(source, lanes), Address(X, start, source.alignment))
    mask = Predicate((first <= LANE) & (last >= LANE), LANE, lanes)
    store = Store(Address(Y, start, dtype.alignment), Cast(of, value), mask=mask)
    return ThreadFunc("cast", (X, Y), (store, Return(None)), None, distinct=(X, Y))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 32])
@pytest.mark.parametrize(
    ("source", "dtype"),
    [(i32, i16), (i32, u8), (i16, i8), (i64, i32), (i64, u8), (f32, bf16), (f64, i32), (f32, f16)],
    ids=str,
)
def test_a_masked_store_of_converted_elements_writes_its_lanes_only(source, dtype, lanes, level):
    """LLVM 22 stores elements before truncation if one lane of a constant mask is set."""
    target = Target("cpu", features=(level,))
    given = np.arange(1, lanes + 1).astype(source.numpy)
    for first, last in ((0, 0), (1, 1), (lanes - 1, lanes - 1), (0, lanes - 1)):
        text = emit_module([masked_cast(source, dtype, lanes, first, last)], target)
        engine, address = load("cast", text, target)
        found = np.full(lanes + 8, 77).astype(dtype.numpy)
        wanted = found.copy()
        wanted[first : last + 1] = given[first : last + 1].astype(dtype.numpy)
        CAST(address)(given.ctypes.data, found.ctypes.data)
        np.testing.assert_array_equal(found.view(np.uint8), wanted.view(np.uint8))
        engine.close()
