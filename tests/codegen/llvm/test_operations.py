"""Machine operations: each has a handler, is selected by LLVM, and equals its emulation."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tilewright.codegen.llvm import assembly, emit_module
from tilewright.codegen.llvm.operations import HANDLERS
from tilewright.codegen.simt.operations import HANDLERS as MEANINGS
from tilewright.ir.symbolic import as_expr
from tilewright.ir.thread.function import ThreadFunc
from tilewright.ir.thread.nodes import Address, Assign, Load, MachineOp, Reg, Return, Store
from tilewright.ir.thread.operations import OPERATIONS
from tilewright.ir.thread.types import POINTER
from tilewright.target.host import host_features
from tilewright.target.target import Target

from tests.codegen.kernels import load
from tests.codegen.simt.test_operations import group

X86 = [op for op in OPERATIONS.values() if op.name.startswith("x86.")]
HERE = [op for op in X86 if host_features().issuperset(op.needs)]
"""The operations that this machine can run."""


def test_every_operation_has_a_handler() -> None:
    assert set(HANDLERS) == set(OPERATIONS)


@pytest.mark.parametrize("operation", X86, ids=lambda op: op.name)
def test_operation_becomes_its_instruction(operation) -> None:
    params = tuple(Reg(f"a{k}", t) for k, t in enumerate(operation.operands))
    results = tuple(Reg(f"r{k}", t) for k, t in enumerate(operation.results))
    function = ThreadFunc(
        "f", params, (MachineOp(operation, params, results), Return(results[0])), results[0].type
    )
    extra = ("avx512vnni", "avx512bf16")
    text = emit_module([function], Target("cpu", features=("avx512", *extra)))
    assert operation.name.split(".")[1] in assembly(
        text, Target("cpu", features=("avx512", *extra))
    )


def numbers(rng, of, count: int) -> np.ndarray:
    """Return random lanes, including extreme values."""
    shape, dtype = (count, of.lanes), of.dtype.numpy
    if of.dtype.is_integer:
        info = np.iinfo(dtype)
        made = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        return np.where(rng.random(shape) < 0.3, rng.choice([info.min, info.max], shape), made)
    # Powers of two down to subnormals, zeros, and numbers that round.
    scale = 2.0 ** rng.integers(-140, 20, shape).astype(np.float64)
    return np.where(rng.random(shape) < 0.2, 0, rng.standard_normal(shape) * scale)


@pytest.mark.parametrize("operation", HERE, ids=lambda op: op.name)
def test_the_cpu_agrees_with_the_emulation(operation) -> None:
    zero, count = as_expr(0), 200
    pointers = [Reg(f"p{k}", POINTER) for k in range(len(operation.operands) + 1)]
    values = [Reg(f"a{k}", t) for k, t in enumerate(operation.operands)]
    (of,) = operation.results
    result = Reg("r", of)
    body = [
        Assign(v, Load(v.type, Address(p, zero))) for v, p in zip(values, pointers[1:], strict=True)
    ]
    body += [
        MachineOp(operation, tuple(values), (result,)),
        Store(Address(pointers[0], zero), result),
    ]
    target = Target("cpu", features=("avx512", *(n for n in operation.needs if n != "avx2")))
    if operation.needs == ("avx2",):
        target = Target("cpu", features=operation.needs)
    text = emit_module([ThreadFunc("f", tuple(pointers), (*body, Return()))], target)
    engine, address = load("f", text, target)
    run = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p for _ in pointers))(address)
    rng = np.random.default_rng(6)
    given = [
        np.ascontiguousarray(numbers(rng, t, count).astype(t.dtype.numpy))
        for t in operation.operands
    ]
    made = np.empty((count, of.lanes), of.dtype.numpy)
    for row in range(count):
        run(made[row].ctypes.data, *(x[row].ctypes.data for x in given))
    del engine
    (expected,) = MEANINGS[operation.name](group(), [x.T for x in given])
    np.testing.assert_array_equal(made, expected.T)
