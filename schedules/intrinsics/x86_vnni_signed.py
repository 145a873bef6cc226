"""Register tiles of AVX512-VNNI: s8 times s8, two products at once, sums in 32 bits.

``vpdpbusd`` wants its left bytes unsigned. So bytes are widened to 16 bits, and ``vpdpwssd`` adds
the products of pairs: half as many at once, and as exact.
"""

from __future__ import annotations

from ...ir.dtype import i8, i16, i32
from ...ir.script import parse
from ...ir.thread.nodes import Bitcast, Broadcast, Cast, Perform, Reg, Stmt, Value
from ...ir.thread.operations.x86 import VPDPWSSD_512
from ...ir.thread.types import VectorType
from .contract import Intrinsic
from .registry import register
from .tiles import register_tile

_TILE = """
a, c = symbols("a c")

@prim_func
def dot(
    A: Buffer(({rows}, 2), i8, strides=(a, 1)),
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

_LANES = 16
_WORDS = VectorType(i16, 2 * _LANES)


def _everywhere(pair: Value) -> Value:
    """Widen two bytes of A to words, and repeat them in every lane."""
    word = Bitcast(VectorType(i32), Cast(VectorType(i16, 2), pair))
    return Bitcast(_WORDS, Broadcast(word, _LANES))


def _combine(total: Value, a: Value, b: Value) -> tuple[tuple[Stmt, ...], Value]:
    result = Reg("dot", VectorType(i32, _LANES))
    return (Perform(VPDPWSSD_512, (total, a, Cast(_WORDS, b)), (result,)),), result


def _tile(rows: int, columns: int) -> Intrinsic:
    return register(
        Intrinsic(
            name=f"avx512vnni.dot.i8i8.{rows}x{columns}",
            summary=f"{rows} x {columns} sums get two products of bytes each, 16 sums at a time.",
            semantics=parse(_TILE.format(rows=rows, columns=columns)).prims[0],
            needs=VPDPWSSD_512.needs,
            expand=register_tile((i8, i8, i32), _LANES, 2, _everywhere, _combine),
            partial=frozenset({0, 1}),
        )
    )


AVX512VNNI_I8I8_14X32 = _tile(14, 32)
"""28 accumulators of 16 sums, two of B, one of A, of 32 registers."""
