"""Register tiles of AVX2 without VNNI: ``avx2.dot.{u8,i8}i8.{rows}x{columns}``.

The expansion widens bytes to 16 bits for ``vpmaddwd``. The instruction ``vpmaddubsw`` is not used,
because its 16-bit sums saturate (255 * 127 * 2 does not fit).

Semantics
---------
``C[i, j] += sum(i32(A[i, k]) * i32(B[j, k]) for k in range(2))``, exact modulo ``2**32``.

Operands
--------
A : u8 or i8, shape ``(rows, 2)``, row stride any, column stride 1
B : i8, shape ``(columns, 2)``, compact
C : i32, shape ``(rows, columns)``, row stride any, column stride 1; updated in place

Requires
--------
``avx2``.

Instruction
-----------
``vpmaddwd`` on 256-bit registers, 8 sums at a time, after ``vpmovzxbw`` or ``vpmovsxbw``.

References
----------
Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, PMADDWD.
"""

from __future__ import annotations

from ...ir.dtype import DType, i8, i16, i32, u8
from ...ir.script import parse
from ...ir.thread.nodes import Binary, Bitcast, Broadcast, Cast, MachineOp, Reg, Stmt, Value
from ...ir.thread.operations.x86 import VPMADDWD_256
from ...ir.thread.types import VectorType
from .contract import Intrinsic
from .registry import register
from .tiles import register_tile

_TILE = """
a, c = symbols("a c")

@prim_func
def dot(
    A: Buffer(({rows}, 2), {left}, strides=(a, 1)),
    B: Buffer(({columns}, 2), i8, strides=(2, 1)),
    C: InOut(({rows}, {columns}), i32, strides=(c, 1)),
):
    for i in unrolled({rows}):
        for j in vectorized({columns}):
            for k in unrolled(2):
                with block("dot"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    C[vi, vj] += i32(A[vi, vk]) * i32(B[vj, vk])
"""

_LANES = 8
_WORDS = VectorType(i16, 2 * _LANES)


def _everywhere(pair: Value) -> Value:
    """Return a broadcast of two bytes of A, widened to 16 bits, to all lanes."""
    word = Bitcast(VectorType(i32), Cast(VectorType(i16, 2), pair))
    return Bitcast(_WORDS, Broadcast(word, _LANES))


def _combine(total: Value, a: Value, b: Value) -> tuple[tuple[Stmt, ...], Value]:
    pairs = Reg("pairs", VectorType(i32, _LANES))
    return (MachineOp(VPMADDWD_256, (a, Cast(_WORDS, b)), (pairs,)),), Binary("add", total, pairs)


def _tile(left: DType, rows: int, columns: int) -> Intrinsic:
    return register(
        Intrinsic(
            name=f"avx2.dot.{left}i8.{rows}x{columns}",
            summary=f"Add two byte products to each of {rows} x {columns} sums, 8 at a time.",
            semantics=parse(_TILE.format(left=left, rows=rows, columns=columns)).prims[0],
            needs=VPMADDWD_256.needs,
            expand=register_tile((left, i8, i32), _LANES, 2, _everywhere, _combine),
            partial=frozenset({0, 1}),
        )
    )


AVX2_U8I8_6X16 = _tile(u8, 6, 16)
"""12 accumulators of 8 sums, and registers for B (2), A (1) and products (1), of 16."""

AVX2_I8I8_6X16 = _tile(i8, 6, 16)
"""The same tile for signed A."""
