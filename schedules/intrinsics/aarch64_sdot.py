"""Register tiles of AArch64: ``aarch64.sdot.i8.{rows}x{columns}``.

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
``dotprod``.

Instruction
-----------
``sdot`` on 128-bit registers, 4 sums at a time.

References
----------
Arm Architecture Reference Manual for A-profile architecture, SDOT (vector).
"""

from __future__ import annotations

from ...ir.dtype import i8, i32
from ...ir.script import parse
from ...ir.thread.nodes import Bitcast, Broadcast, MachineOp, Reg, Stmt, Value
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
    """Return a broadcast of four bytes of A to all lanes."""
    word = Bitcast(VectorType(i32), group)
    return Bitcast(VectorType(i8, 4 * _LANES), Broadcast(word, _LANES))


def _combine(total: Value, a: Value, b: Value) -> tuple[tuple[Stmt, ...], Value]:
    result = Reg("dot", VectorType(i32, _LANES))
    return (MachineOp(SDOT_128, (total, a, b), (result,)),), result


def _tile(rows: int, columns: int) -> Intrinsic:
    return register(
        Intrinsic(
            name=f"aarch64.sdot.i8.{rows}x{columns}",
            summary=f"Add four byte products to each of {rows} x {columns} sums, 4 at a time.",
            semantics=parse(_TILE.format(rows=rows, columns=columns)).prims[0],
            needs=SDOT_128.needs,
            expand=register_tile((i8, i8, i32), _LANES, 4, _everywhere, _combine),
            partial=frozenset({0, 1}),
        )
    )


AARCH64_SDOT_6X16 = _tile(6, 16)
"""24 accumulators of 4 sums, 4 registers of B and 1 of A; there are 32 registers."""
