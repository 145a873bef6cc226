"""Register tiles of AVX512-BF16: two products of bfloat16 at once, sums in f32.

The instruction rounds each of its two additions to nearest even and takes subnormals for zero;
a declared reduction may be summed in any order, and its numbers are those of bfloat16 already.
"""

from __future__ import annotations

from ...ir.dtype import bf16, f32, i32
from ...ir.script import parse
from ...ir.thread.nodes import Bitcast, Broadcast, Perform, Reg, Stmt, Value
from ...ir.thread.operations.x86 import VDPBF16PS_512
from ...ir.thread.types import VectorType
from .contract import Intrinsic
from .registry import register
from .tiles import register_tile

_TILE = """
a, c = symbols("a c")

@prim_func
def dot(
    A: Buffer(({rows}, 2), bf16, strides=(a, 1)),
    B: Buffer(({columns}, 2), bf16, strides=(2, 1)),
    C: InOut(({rows}, {columns}), f32, strides=(c, 1)),
):
    for i in unrolled({rows}):
        for j in vectorized({columns}):
            for k in unrolled(2):
                with block("dot"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    C[vi, vj] += f32(A[vi, vk]) * f32(B[vj, vk])
"""

_LANES = 16


def _everywhere(pair: Value) -> Value:
    """Repeat two elements of A in every lane."""
    word = Bitcast(VectorType(i32), pair)
    return Bitcast(VectorType(bf16, 2 * _LANES), Broadcast(word, _LANES))


def _combine(total: Value, a: Value, b: Value) -> tuple[tuple[Stmt, ...], Value]:
    result = Reg("dot", VectorType(f32, _LANES))
    return (Perform(VDPBF16PS_512, (total, a, b), (result,)),), result


def _tile(rows: int, columns: int) -> Intrinsic:
    return register(
        Intrinsic(
            name=f"avx512bf16.dot.{rows}x{columns}",
            summary=f"{rows} x {columns} f32 sums get two products of bf16 each, 16 at a time.",
            semantics=parse(_TILE.format(rows=rows, columns=columns)).prims[0],
            needs=VDPBF16PS_512.needs,
            expand=register_tile((bf16, bf16, f32), _LANES, 2, _everywhere, _combine),
            partial=frozenset({0, 1}),
        )
    )


AVX512BF16_14X32 = _tile(14, 32)
"""28 accumulators of 16 sums, two of B, one of A, of 32 registers."""
