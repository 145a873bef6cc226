"""Peak rates of tensor instructions on this machine, measured on registers alone."""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.ir.thread.function import ThreadFunc
    from tilewright.ir.thread.nodes import Reg, Stmt
    from tilewright.ir.thread.types import VectorType
    from tilewright.target.target import Target

ROUNDS = 200_000
"""Iterations of the measured loop; a call takes milliseconds."""

RESERVED = {16: 4, 32: 8}
"""Vector registers that hold no accumulator, by the number of registers: inputs, temporaries."""


@dataclass(frozen=True)
class Instruction:
    """A multiply-accumulate instruction, or a short sequence that replaces one.

    Parameters
    ----------
    name : str
        The name in assembly, and the width of the registers in bits.
    needs : tuple of str
        The features of the processor that it needs.
    total : VectorType
        The type of an accumulator.
    inputs : tuple of VectorType
        The types of the two factors.
    operations : int
        Operations of one execution; a multiplication and an addition are two.
    update : callable
        Returns the statements that update an accumulator from the factors.
    """

    name: str
    needs: tuple[str, ...]
    total: VectorType
    inputs: tuple[VectorType, VectorType]
    operations: int
    update: Callable[[Reg, Reg, Reg], tuple[Stmt, ...]]


@cache
def instructions() -> dict[str, tuple[Instruction, ...]]:
    """Return the instructions of each kind of product, the fastest first."""
    from tilewright.ir.dtype import bf16, f32, i8, i16, i32, u8
    from tilewright.ir.thread.nodes import Assign, Binary, Bitcast, Fma, MachineOp, Reg
    from tilewright.ir.thread.operations.x86 import VDPBF16PS_512, VPDPBUSD_512, VPMADDWD_256
    from tilewright.ir.thread.types import VectorType

    def fma(total: Reg, a: Reg, b: Reg) -> tuple[Stmt, ...]:
        return (Assign(total, Fma(a, b, total)),)

    def dot(operation):
        return lambda total, a, b: (MachineOp(operation, (total, a, b), (total,)),)

    def multiply_pairs(total: Reg, _a: Reg, b: Reg) -> tuple[Stmt, ...]:
        # The accumulator is a factor: LLVM moves a product of two constants out of the loop.
        pairs = Reg("pairs", total.type)
        product = MachineOp(VPMADDWD_256, (Bitcast(b.type, total), b), (pairs,))
        return product, Assign(total, Binary("add", total, pairs))

    f32x8, f32x16, i32x16 = VectorType(f32, 8), VectorType(f32, 16), VectorType(i32, 16)
    bytes_ = (VectorType(u8, 64), VectorType(i8, 64))
    return {
        "f32": (
            Instruction("vfmadd.512", ("avx512f",), f32x16, (f32x16,) * 2, 32, fma),
            Instruction("vfmadd.256", ("avx2", "fma"), f32x8, (f32x8,) * 2, 16, fma),
        ),
        "bytes": (
            Instruction(
                "vpdpbusd.512", VPDPBUSD_512.needs, i32x16, bytes_, 128, dot(VPDPBUSD_512)
            ),
            Instruction(
                "vpmaddwd.256", VPMADDWD_256.needs, VectorType(i32, 8),
                (VectorType(i16, 16),) * 2, 32, multiply_pairs,
            ),
        ),
        "bf16": (
            Instruction(
                "vdpbf16ps.512", VDPBF16PS_512.needs, f32x16, (VectorType(bf16, 32),) * 2, 64,
                dot(VDPBF16PS_512),
            ),
        ),
    }  # fmt: skip


def fastest(kind: str) -> Instruction | None:
    """Return the fastest instruction of a kind that this machine has, if there is one."""
    from tilewright.target.host import host_features

    have = host_features()
    return next((i for i in instructions()[kind] if have.issuperset(i.needs)), None)


def missing(kind: str) -> list[str]:
    """Return the names of the instructions of a kind that this machine lacks."""
    from tilewright.target.host import host_features

    have = host_features()
    return [
        f"{i.name} ({', '.join(need for need in i.needs if need not in have)})"
        for i in instructions()[kind]
        if not have.issuperset(i.needs)
    ]


def peak_operations(instruction: Instruction) -> float:
    """Return the operations per second that an instruction reaches on one core."""
    from tilewright.codegen.build.native_library import Library
    from tilewright.codegen.llvm import compile_text, emit_module
    from tilewright.target.host import with_level
    from tilewright.target.target import Target

    target = with_level(Target("cpu", threads=1))
    function, count = peak_kernel(instruction, target)
    library = Library([compile_text(emit_module([function], target), target)], target)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library.address("peak"))
    out = (ctypes.c_char * 64)()
    times: list[float] = []
    for _ in range(15):
        start = perf_counter()
        run(ctypes.addressof(out), ROUNDS)
        times.append(perf_counter() - start)
    return instruction.operations * count * ROUNDS / statistics.median(sorted(times)[:5])


def peak_kernel(instruction: Instruction, target: Target) -> tuple[ThreadFunc, int]:
    """Return a loop of independent updates, and how many of them an iteration executes.

    There are as many accumulators as the registers of the target hold beside the factors, so that
    the loop is limited by the throughput of the instruction, not by its latency or by spills.
    """
    from tilewright.codegen.llvm.processor import resolve
    from tilewright.ir.symbolic import as_expr, var
    from tilewright.ir.thread.function import ThreadFunc
    from tilewright.ir.thread.nodes import Address, Assign, Binary, Load, Loop, Reg, Return, Store
    from tilewright.ir.thread.types import POINTER

    registers = resolve(target).registers
    count = registers - RESERVED[registers]
    out, rounds, round_ = Reg("out", POINTER), var("rounds", lower=0), var("round", lower=0)
    totals = [Reg(f"t{k}", instruction.total) for k in range(count)]
    a, b = (Reg(name, t) for name, t in zip("ab", instruction.inputs, strict=True))
    address = Address(out, as_expr(0))
    final = totals[0]
    updates = [s for total in totals for s in instruction.update(total, a, b)]
    body = (
        *(Assign(r, Load(r.type, address)) for r in (a, b, *totals)),
        Loop(round_, as_expr(0), rounds, tuple(updates)),
        *(Assign(final, Binary("add", final, t)) for t in totals[1:]),
        Store(address, final),
        Return(),
    )
    return ThreadFunc("peak", (out, rounds), body), count
