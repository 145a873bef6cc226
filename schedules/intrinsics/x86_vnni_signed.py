"""Register tiles of AVX512-VNNI: s8 times s8, four products at once, sums in 32 bits.

``vpdpbusd`` wants its left bytes unsigned. So 128 is added to them, by turning over their sign
bits, and what that adds to the sums, 128 times the bytes of B, is taken away again: a dot product
of B with 128 in every byte, one for all rows. Everything is exact modulo ``2**32``.
"""

from __future__ import annotations

from ...ir.dtype import i8, i32, u8
from ...ir.script import parse
from ...ir.thread.nodes import Binary, Bitcast, Broadcast, Const, Perform, Reg, Stmt, Value
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
    """Repeat four bytes of A, 128 added to each, in every lane."""
    # Turned over before they are repeated: LLVM 22 never ends where the repeated word is.
    turned = Binary("xor", group, Broadcast(_SIGN, 4))
    return Bitcast(_BYTES, Broadcast(Bitcast(VectorType(i32), turned), _LANES))


def _combine(total: Value, a: Value, b: Value) -> tuple[tuple[Stmt, ...], Value]:
    dot, added = Reg("dot", _SUMS), Reg("added", _SUMS)
    signs = Bitcast(_BYTES, Broadcast(_SIGN, 4 * _LANES))
    statements = (
        Perform(VPDPBUSD_512, (Broadcast(Const(0, VectorType(i32)), _LANES), signs, b), (added,)),
        Perform(VPDPBUSD_512, (total, a, b), (dot,)),
    )
    return statements, Binary("sub", dot, added)


def _tile(rows: int, columns: int) -> Intrinsic:
    return register(
        Intrinsic(
            name=f"avx512vnni.dot.i8i8.{rows}x{columns}",
            summary=f"{rows} x {columns} sums get four products of bytes each, 16 sums at a time.",
            semantics=parse(_TILE.format(rows=rows, columns=columns)).prims[0],
            needs=VPDPBUSD_512.needs,
            expand=register_tile((i8, i8, i32), _LANES, 4, _everywhere, _combine),
            partial=frozenset({0, 1}),
        )
    )


AVX512VNNI_I8I8_12X32 = _tile(12, 32)
"""24 accumulators of 16 sums, two of B, two of what 128 adds, sign bits, one of A."""
