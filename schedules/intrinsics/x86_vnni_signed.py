"""Register tiles of AVX512-VNNI: ``avx512vnni.dot.i8i8.{rows}x{columns}``.

The left operand of ``vpdpbusd`` is unsigned. The expansion adds 128 to the bytes of A by flipping
their sign bits, and subtracts the excess, the dot product of B with 128 in every byte, which is
shared by all rows.

Semantics
---------
``C[i, j] += sum(i32(A[i, k]) * i32(B[j, k]) for k in range(4))``, exact modulo ``2**32``.

Operands
--------
A : i8, shape ``(rows, 4)``, row stride any, column stride 1
B : i8, shape ``(columns, 4)``, compact
C : i32, shape ``(rows, columns)``, row stride any, column stride 1; updated in place

Requires
--------
``avx512vnni``.

Instruction
-----------
``vpdpbusd`` on 512-bit registers, 16 sums at a time.

References
----------
Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, VPDPBUSD.
"""

from __future__ import annotations

from ...ir.dtype import i8, i32, u8
from ...ir.script import parse
from ...ir.thread.nodes import Binary, Bitcast, Broadcast, Const, MachineOp, Reg, Stmt, Value
from ...ir.thread.operations.x86 import VPDPBUSD_512
from ...ir.thread.types import VectorType
from .contract import Intrinsic
from .registry import register
from .tiles import register_tile

_TILE = """
a, c = symbols("a c")

@prim_func
def dot(
    A: Buffer(({rows}, 4), i8, strides=(a, 1)),
    B: Buffer(({columns}, 4), i8, strides=(4, 1)),
    C: InOut(({rows}, {columns}), i32, strides=(c, 1)),
):
    for i in unrolled({rows}):
        for j in vectorized({columns}):
            for k in unrolled(4):
                with block("dot"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    C[vi, vj] += i32(A[vi, vk]) * i32(B[vj, vk])
"""

_LANES = 16
_SUMS, _BYTES = VectorType(i32, _LANES), VectorType(u8, 4 * _LANES)
_SIGN = Const(-128, VectorType(i8))
"""The sign bit of a byte; read as an unsigned byte, 128."""


def _everywhere(group: Value) -> Value:
    """Return a broadcast of four bytes of A, each increased by 128, to all lanes."""
    # The sign bits are flipped before the broadcast: LLVM 22 does not terminate otherwise.
    flipped = Binary("xor", group, Broadcast(_SIGN, 4))
    return Bitcast(_BYTES, Broadcast(Bitcast(VectorType(i32), flipped), _LANES))


def _combine(total: Value, a: Value, b: Value) -> tuple[tuple[Stmt, ...], Value]:
    dot, added = Reg("dot", _SUMS), Reg("added", _SUMS)
    signs = Bitcast(_BYTES, Broadcast(_SIGN, 4 * _LANES))
    statements = (
        MachineOp(VPDPBUSD_512, (Broadcast(Const(0, VectorType(i32)), _LANES), signs, b), (added,)),
        MachineOp(VPDPBUSD_512, (total, a, b), (dot,)),
    )
    return statements, Binary("sub", dot, added)


def _tile(rows: int, columns: int) -> Intrinsic:
    return register(
        Intrinsic(
            name=f"avx512vnni.dot.i8i8.{rows}x{columns}",
            summary=f"Add four byte products to each of {rows} x {columns} sums, 16 at a time.",
            semantics=parse(_TILE.format(rows=rows, columns=columns)).prims[0],
            needs=VPDPBUSD_512.needs,
            expand=register_tile((i8, i8, i32), _LANES, 4, _everywhere, _combine),
            partial=frozenset({0, 1}),
        )
    )


AVX512VNNI_I8I8_12X32 = _tile(12, 32)
"""24 accumulators of 16 sums, and registers for B (2), the excess (2), sign bits (1) and A (1)."""
