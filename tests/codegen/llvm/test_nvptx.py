"""NVIDIA GPU kernels: the PTX that LLVM generates, assembled by ``ptxas``."""

from __future__ import annotations

import itertools

import pytest

from tilewright.codegen.llvm import emit_module, image
from tilewright.codegen.llvm.nvptx import LaunchAxisError
from tilewright.codegen.llvm.statements import UnsupportedScopeError
from tilewright.codegen.lower.math import Code, apply_function
from tilewright.codegen.nvidia import shared_layout
from tilewright.ir.dtype import bf16, bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from tilewright.ir.loop.element_functions import FUNCTIONS
from tilewright.ir.symbolic import as_expr, var
from tilewright.ir.thread.function import LaunchGrid, ThreadAxis, ThreadFunc
from tilewright.ir.thread.nodes import (
    Address,
    Allocate,
    Assign,
    AtomicUpdate,
    Barrier,
    Binary,
    Bitcast,
    Cast,
    Compare,
    Const,
    Fma,
    Gather,
    If,
    Index,
    Load,
    Loop,
    MachineOp,
    Predicate,
    Reduce,
    Reg,
    Scatter,
    Select,
    Shuffle,
    Store,
    Unary,
)
from tilewright.ir.thread.operations import OPERATIONS
from tilewright.ir.thread.types import SHARED_POINTER, VectorType
from tilewright.target.target import GPU_ARCHS, Target

from tests.amounts import covering
from tests.codegen.llvm.gpu import INDEX, THREAD, N, X, Y, assembled, kernel, ptx

F32, F32X4 = VectorType(f32), VectorType(f32, 4)
FLOATS = (f16, bf16, f32, f64)
INTEGERS = (i8, i16, i32, i64, u8, u16, u32, u64)
NVIDIA = [op for op in OPERATIONS.values() if op.name.startswith("nvidia.")]


def at(pointer: Reg, size: int, alignment: int | None = None) -> Address:
    return Address(pointer, INDEX * size, alignment or size)


def test_axes_are_special_registers_and_the_block_size_is_declared() -> None:
    text = ptx(kernel([Store(at(Y, 4), Load(F32, at(X, 4)))]))
    assert ".visible .entry k(" in text
    assert ".maxntid 128, 1, 1" in text
    assert "%ctaid.x" in text
    assert "%tid.x" in text


def test_aligned_vectors_are_read_and_written_at_once() -> None:
    twice = Binary("mul", Load(F32X4, at(X, 16)), Const(3.0, F32X4))
    text = ptx(kernel([Store(at(Y, 16), twice)]))
    assert "ld.global.nc.v4" in text
    assert "st.global.v4" in text
    loose = ptx(kernel([Store(at(Y, 16, 4), Load(F32X4, at(X, 16, 4)))]))
    assert "v4" not in loose


def test_no_approximation_and_no_fused_rounding() -> None:
    x = Load(F32, at(X, 4))
    quotient = Binary("div", Unary("sqrt", x), Const(3.0, F32))
    text = ptx(kernel([Store(at(Y, 4), Binary("add", Binary("mul", quotient, x), x))]))
    assert "sqrt.rn.f32" in text
    assert "div.rn.f32" in text
    assert "mul.rn.f32" in text
    assert "add.rn.f32" in text
    assert "approx" not in text
    assert "ftz" not in text
    assert "fma.rn.f32" in ptx(kernel([Store(at(Y, 4), Fma(x, x, Const(1.0, F32)))]))


def shared_kernel(size: int) -> ThreadFunc:
    near, far = Reg("near", SHARED_POINTER), Reg("far", SHARED_POINTER)
    return kernel(
        [
            Allocate(near, size, 16),
            Allocate(far, 512, 64),
            Store(Address(near, THREAD * 4, 4), Load(F32, at(X, 4))),
            Store(Address(far, THREAD * 4, 4), Const(1.0, F32)),
            Barrier("block"),
            Store(
                at(Y, 4),
                Binary(
                    "add",
                    Load(F32, Address(near, as_expr(508) - THREAD * 4, 4)),
                    Load(F32, Address(far, THREAD * 4, 4)),
                ),
            ),
        ]
    )


def test_shared_memory_is_of_the_block() -> None:
    function = shared_kernel(520)
    text = ptx(function)
    assert ".shared" in text
    assert "st.shared" in text
    assert "bar.sync" in text
    placed = shared_layout(function)
    assert list(placed.offsets.values()) == [0, 576]
    assert not placed.dynamic
    used = assembled(function).resources
    assert used is not None
    assert used.shared == placed.size == 576 + 512
    assert used.barriers == 1


def test_large_shared_memory_is_dynamic() -> None:
    function = shared_kernel(60_000)
    assert ".extern .shared" in ptx(function)
    assert shared_layout(function).dynamic
    used = assembled(function, "sm_90a").resources
    assert used is not None
    assert used.shared == 0


def test_masks_of_one_element_are_branches() -> None:
    mask = Predicate(N > INDEX)
    load = Load(F32, at(X, 4), mask=mask)
    function = kernel([Store(at(Y, 4), load, mask=mask)])
    text = emit_module([function], Target("cuda"))
    assert "llvm.masked" not in text
    assert "bra" in ptx(function)
    assert assembled(function).cubin


@pytest.mark.parametrize("arch", GPU_ARCHS)
def test_every_arch_is_assembled(arch: str) -> None:
    made = assembled(shared_kernel(520), arch)
    assert made.arch == arch
    assert f".target {arch}" in made.ptx
    assert made.cubin.startswith(b"\x7fELF")


# ---------------------------------------------------------------- element types


def functions_of(dtype, lanes: int):
    """Yield an application of every function that is defined for a dtype, and its statements."""
    of = VectorType(dtype, lanes)
    size = max(dtype.bits // 8, 1) * lanes
    x, y = Load(of, at(X, size, dtype.bits // 8)), Load(of, at(Y, size, dtype.bits // 8))
    for function in FUNCTIONS.values():
        if function.accepts(dtype) and function.result in ("operand", "part"):
            before = []
            operands = (x, y, y)[: function.arity]
            if function.second is not None:
                operands = (x, Load(VectorType(function.second, lanes), at(Y, 4 * lanes, 4)))
            yield function.name, apply_function(function.name, operands, Code(before)), before


ARCHS = ("sm_75", "sm_80", "sm_90a")
"""Architectures with different instructions for numbers of 16 bits."""


@pytest.mark.parametrize(
    ("dtype", "arch"),
    [
        *itertools.product((f16, bf16), ARCHS),
        *covering((f32, f64, i8, i32, u64), ARCHS),
    ],
    ids=str,
)
def test_every_function_of_every_type_is_assembled(dtype, arch: str) -> None:
    functions = []
    for lanes in (1, 2):
        for op, value, before in functions_of(dtype, lanes):
            size = dtype.bits // 8 * lanes
            write = Store(at(Y, size, dtype.bits // 8), value)
            functions.append(kernel([*before, write], f"k_{op}_{lanes}"))
    target = Target("cuda", arch=arch)
    made = image(emit_module(functions, target), target)
    assert made.ptx.count(".entry") == len(functions) > 20
    assert made.cubin


@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, bool_], ids=str)
def test_every_conversion_is_assembled(source) -> None:
    x = Load(VectorType(source), at(X, max(source.bits // 8, 1)))
    targets = [*FLOATS, *INTEGERS, bool_]
    functions = [
        kernel([Store(at(Y, max(t.bits // 8, 1)), Cast(VectorType(t), x))], f"k_{t}")
        for t in targets
    ]
    target = Target("cuda")
    made = image(emit_module(functions, target), target)
    assert made.ptx.count(".entry") == len(targets)


def test_other_values_are_assembled() -> None:
    of = VectorType(f32, 4)
    k = var("k")
    offsets = Index(INDEX * 16 + k * 8, k, 4)
    x = Load(of, at(X, 16), mask=Predicate(INDEX * 4 + k < N, k, 4))
    y = Gather(of, X, offsets, Predicate(INDEX * 8 + k < N, k, 4))
    picked = Shuffle(x, y, (0, 5, 2, 7))
    chosen = Select(Compare("lt", x, y), x, picked)
    total = Reg("total", F32)
    step = var("step")
    function = kernel(
        [
            Scatter(Y, offsets, chosen, Predicate(INDEX + k < N, k, 4)),
            Assign(total, Const(0.0, F32)),
            Loop(
                step, as_expr(0), N,
                (Assign(total, Binary("add", total, Reduce("max", x))),),
            ),
            If(Predicate(N > INDEX), (Store(at(Y, 4), total),)),
            AtomicUpdate("add", at(Y, 8), Const(1, VectorType(i64))),
            Store(at(Y, 8), Bitcast(VectorType(i64), Y)),
        ]
    )  # fmt: skip
    for arch in ("sm_80", "sm_90a"):
        assert assembled(function, arch).cubin


# ---------------------------------------------------------------- operations


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("operation", NVIDIA, ids=lambda op: op.name)
def test_operation_becomes_its_instruction(operation, arch: str) -> None:
    shared = Reg("shared", SHARED_POINTER)
    args, before = [], []
    for n, of in enumerate(operation.operands):
        if of == SHARED_POINTER:
            before.append(Allocate(shared, 512, 16))
            args.append(shared)
        else:
            size = of.dtype.bits // 8 * of.lanes
            args.append(Load(of, Address(X, INDEX * size + 1024 * n, size)))
    results = tuple(Reg(f"r{n}", of) for n, of in enumerate(operation.results))
    writes = [Store(Address(Y, INDEX * 4 + 4096 * n, 4), reg) for n, reg in enumerate(results)]
    function = kernel([*before, MachineOp(operation, tuple(args), results), *writes])
    words = operation.name.split(".")
    wanted = {
        "shfl": f"shfl.sync.{words[-2]}.b32", "ldmatrix": "ldmatrix.sync.aligned.m8n8",
        "mma": "mma.sync.aligned.m16n8k16.row.col", "trap": "trap;",
    }  # fmt: skip
    name = wanted[words[1]]
    made = assembled(function, arch)
    assert name in made.ptx
    assert (".trans" in made.ptx) == ("trans" in words)
    assert made.resources is not None
    assert made.resources.spill_stores == 0


# ---------------------------------------------------------------- bad input


def test_an_axis_that_no_gpu_has() -> None:
    function = ThreadFunc("k", (X,), (), launch=LaunchGrid((ThreadAxis("laneIdx.x", N, N),)))
    with pytest.raises(LaunchAxisError, match=r"'laneIdx\.x' is not a launch axis"):
        emit_module([function], Target("cuda"))


def test_the_number_of_threads_is_a_constant() -> None:
    function = ThreadFunc(
        "k", (X, N), (), launch=LaunchGrid((ThreadAxis("threadIdx.x", THREAD, N),))
    )
    with pytest.raises(LaunchAxisError, match=r"threadIdx\.x has extent n"):
        emit_module([function], Target("cuda"))


def test_a_barrier_that_a_gpu_lacks() -> None:
    with pytest.raises(UnsupportedScopeError, match="'cluster'"):
        emit_module([kernel([Barrier("cluster")])], Target("cuda"))
