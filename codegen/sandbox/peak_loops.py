"""Loops that run at the peak rates of a processor: operations on registers, and reads of memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from ...ir.dtype import bf16, f32, i8, i16, i32, u8
from ...ir.symbolic import as_expr, var
from ...ir.thread.function import ThreadFunc
from ...ir.thread.nodes import (
    Address,
    Assign,
    Binary,
    Bitcast,
    Fma,
    Load,
    Loop,
    MachineOp,
    Reg,
    Return,
    Stmt,
    Store,
)
from ...ir.thread.operations.operation import Operation
from ...ir.thread.operations.x86 import VDPBF16PS_512, VPDPBUSD_512, VPMADDWD_256
from ...ir.thread.types import POINTER, VectorType
from ...target.target import Target
from ..llvm.processor import resolve

OPERATE, READ = "peak", "read"
"""The names of the two loops."""

READS = 8
"""The vectors that an iteration of the reading loop loads, one per accumulator."""

_RESERVED = {16: 4, 32: 8}
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

    def fma(total: Reg, a: Reg, b: Reg) -> tuple[Stmt, ...]:
        return (Assign(total, Fma(a, b, total)),)

    def dot(operation: Operation) -> Callable[[Reg, Reg, Reg], tuple[Stmt, ...]]:
        return lambda total, a, b: (MachineOp(operation, (total, a, b), (total,)),)

    def multiply_pairs(total: Reg, _a: Reg, b: Reg) -> tuple[Stmt, ...]:
        # The accumulator is a factor: LLVM moves a product of two constants out of the loop.
        pairs = Reg("pairs", total.type)
        product = MachineOp(VPMADDWD_256, (Bitcast(b.type, total), b), (pairs,))
        return product, Assign(total, Binary("add", total, pairs))

    f32x8, f32x16, i32x16 = VectorType(f32, 8), VectorType(f32, 16), VectorType(i32, 16)
    i16x16, bf16x32 = VectorType(i16, 16), VectorType(bf16, 32)
    bytes_ = (VectorType(u8, 64), VectorType(i8, 64))
    return {
        "f32": (
            Instruction("vfmadd.512", ("avx512f",), f32x16, (f32x16, f32x16), 32, fma),
            Instruction("vfmadd.256", ("avx2", "fma"), f32x8, (f32x8, f32x8), 16, fma),
        ),
        "bytes": (
            Instruction(
                "vpdpbusd.512", VPDPBUSD_512.needs, i32x16, bytes_, 128, dot(VPDPBUSD_512)
            ),
            Instruction(
                "vpmaddwd.256", VPMADDWD_256.needs, VectorType(i32, 8),
                (i16x16, i16x16), 32, multiply_pairs,
            ),
        ),
        "bf16": (
            Instruction(
                "vdpbf16ps.512", VDPBF16PS_512.needs, f32x16, (bf16x32, bf16x32), 64,
                dot(VDPBF16PS_512),
            ),
        ),
    }  # fmt: skip


def vector(target: Target) -> Instruction:
    """Return the widest multiply-add on 32-bit floats of a target.

    Examples
    --------
    >>> vector(Target("cpu", features=("avx2",))).name
    'vfmadd.256'
    """
    wide, narrow = instructions()["f32"]
    return wide if resolve(target).registers == max(_RESERVED) else narrow


def peak_kernel(instruction: Instruction, target: Target) -> tuple[ThreadFunc, int]:
    """Return a loop of independent updates, and how many of them an iteration executes.

    There are as many accumulators as the registers of the target hold beside the factors, so that
    the loop is limited by the throughput of the instruction, not by its latency or by spills.
    """
    registers = resolve(target).registers
    count = registers - _RESERVED[registers]
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
    return ThreadFunc(OPERATE, (out, rounds), body), count


def read_kernel(instruction: Instruction) -> tuple[ThreadFunc, int]:
    """Return a loop that reads memory in order, and the bytes that an iteration reads.

    The vectors are summed, so that no load is left out; the sums are stored at ``out``.
    """
    out, data = Reg("out", POINTER), Reg("data", POINTER)
    rounds, round_ = var("rounds", lower=0), var("round", lower=0)
    kind = instruction.total
    size = kind.lanes * kind.width
    totals = [Reg(f"t{k}", kind) for k in range(READS)]

    def load(k: int) -> Load:
        return Load(kind, Address(data, round_ * (READS * size) + k * size))

    reads = [Assign(t, Binary("add", t, load(k))) for k, t in enumerate(totals)]
    first = totals[0]
    body = (
        *(Assign(t, Load(kind, Address(out, as_expr(0)))) for t in totals),
        Loop(round_, as_expr(0), rounds, tuple(reads)),
        *(Assign(first, Binary("add", first, t)) for t in totals[1:]),
        Store(Address(out, as_expr(0)), first),
        Return(),
    )
    return ThreadFunc(READ, (out, data, rounds), body), READS * size
