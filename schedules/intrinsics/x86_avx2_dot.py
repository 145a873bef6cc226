"""Register tiles of AVX2: bytes times s8, two products at once, exact where VNNI is missing.

``vpmaddubsw`` would take four bytes at once, but its 16-bit sums saturate (255 * 127 * 2 does not
fit). So bytes are widened to 16 bits, and ``vpmaddwd`` sums pairs in 32.
"""

from __future__ import annotations

from ...ir.dtype import DType, i8, i16, i32, u8
from ...ir.script import parse
from ...ir.thread.nodes import Binary, Bitcast, Broadcast, Cast, Perform, Reg, Stmt, Value
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
    """Widen two bytes of A to words, and repeat them in every lane."""
    word = Bitcast(VectorType(i32), Cast(VectorType(i16, 2), pair))
    return Bitcast(_WORDS, Broadcast(word, _LANES))


def _combine(total: Value, a: Value, b: Value) -> tuple[tuple[Stmt, ...], Value]:
    pairs = Reg("pairs", VectorType(i32, _LANES))
    return (Perform(VPMADDWD_256, (a, Cast(_WORDS, b)), (pairs,)),), Binary("add", total, pairs)


def _tile(left: DType, rows: int, columns: int) -> Intrinsic:
    return register(
        Intrinsic(
            name=f"avx2.dot.{left}i8.{rows}x{columns}",
            summary=f"{rows} x {columns} sums get two products of bytes each, 8 sums at a time.",
            semantics=parse(_TILE.format(left=left, rows=rows, columns=columns)).prims[0],
            needs=VPMADDWD_256.needs,
            expand=register_tile((left, i8, i32), _LANES, 2, _everywhere, _combine),
            partial=frozenset({0, 1}),
        )
    )


AVX2_U8I8_6X16 = _tile(u8, 6, 16)
"""12 accumulators of 8 sums, two of B, one of A, one of products, of 16 registers."""

AVX2_I8I8_6X16 = _tile(i8, 6, 16)
"""The same for a signed left side."""
