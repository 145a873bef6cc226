"""Register tiles of f32 multiply-adds on x86-64: ``{avx512,avx2}.fma.f32.{rows}x{columns}``.

Semantics
---------
``C[i, j] += A[i] * B[j]``, an outer product of a column of A and a row of B. Each product and its
addition are rounded once.

Operands
--------
A : f32, shape ``(rows,)``, any stride
B : f32, shape ``(columns,)``, stride 1
C : f32, shape ``(rows, columns)``, row stride any, column stride 1; updated in place

Requires
--------
``avx512f`` (16 lanes) or ``fma`` (8 lanes).

Instruction
-----------
``vfmadd231ps`` with a broadcast operand.

References
----------
Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, VFMADD231PS.
"""

from __future__ import annotations

from ...ir.dtype import f32
from ...ir.script import parse
from ...ir.thread.nodes import Broadcast, Fma, Stmt, Value
from .contract import Expansion, Intrinsic
from .registry import register
from .tiles import register_tile

_TILE = """
a, c = symbols("a c")

@prim_func
def fma(
    A: Buffer(({rows},), f32, strides=(a,)),
    B: Buffer(({columns},), f32, strides=(1,)),
    C: InOut(({rows}, {columns}), f32, strides=(c, 1)),
):
    for i in unrolled({rows}):
        for j in vectorized({columns}):
            with block("fma"):
                vi, vj = spatial(i), spatial(j)
                C[vi, vj] += A[vi] * B[vj]
"""


def _expand(lanes: int) -> Expansion:
    """Return the expansion with one multiply-add per row and vector of B."""

    def combine(total: Value, a: Value, b: Value) -> tuple[tuple[Stmt, ...], Value]:
        return (), Fma(a, b, total)

    return register_tile((f32, f32, f32), lanes, 1, lambda a: Broadcast(a, lanes), combine)


def _tile(level: str, need: str, rows: int, columns: int, lanes: int) -> Intrinsic:
    return register(
        Intrinsic(
            name=f"{level}.fma.f32.{rows}x{columns}",
            summary=f"Add one f32 product to each of {rows} x {columns} sums, {lanes} at a time.",
            semantics=parse(_TILE.format(rows=rows, columns=columns)).prims[0],
            needs=(need,),
            expand=_expand(lanes),
            partial=frozenset({0, 1}),
        )
    )


AVX512_FMA_12X32 = _tile("avx512", "avx512f", 12, 32, 16)
"""24 accumulators, for sizes where most of the last tile of 14 rows would be empty."""

AVX512_FMA_14X32 = _tile("avx512", "avx512f", 14, 32, 16)
"""28 accumulators of 16 lanes, 2 registers of B and 1 of A; there are 32 registers."""

AVX2_FMA_6X16 = _tile("avx2", "fma", 6, 16, 8)
"""12 accumulators of 8 lanes, 2 registers of B and 1 of A; there are 16 registers."""
