"""Register tiles of AArch64's ``sdot``: s8 times s8, four products at once, sums in 32 bits."""

from __future__ import annotations

from ...ir.dtype import i8, i32
from ...ir.script import parse
from ...ir.thread.nodes import Bitcast, Broadcast, Perform, Reg, Stmt, Value
from ...ir.thread.operations.aarch64 import SDOT_128
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

_LANES = 4


def _everywhere(group: Value) -> Value:
    """Repeat four bytes of A in every lane."""
    word = Bitcast(VectorType(i32), group)
    return Bitcast(VectorType(i8, 4 * _LANES), Broadcast(word, _LANES))


def _combine(total: Value, a: Value, b: Value) -> tuple[tuple[Stmt, ...], Value]:
    result = Reg("dot", VectorType(i32, _LANES))
    return (Perform(SDOT_128, (total, a, b), (result,)),), result


def _tile(rows: int, columns: int) -> Intrinsic:
    return register(
        Intrinsic(
            name=f"aarch64.sdot.i8.{rows}x{columns}",
            summary=f"{rows} x {columns} sums get four products of bytes each, 4 sums at a time.",
            semantics=parse(_TILE.format(rows=rows, columns=columns)).prims[0],
            needs=SDOT_128.needs,
            expand=register_tile((i8, i8, i32), _LANES, 4, _everywhere, _combine),
            partial=frozenset({0, 1}),
        )
    )


AARCH64_SDOT_6X16 = _tile(6, 16)
"""24 accumulators of 4 sums, four of B, one of A, of 32 registers."""
