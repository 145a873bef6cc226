"""Register tiles of AVX512-BF16: ``avx512bf16.dot.{rows}x{columns}``.

Semantics
---------
``C[i, j] += sum(f32(A[i, k]) * f32(B[j, k]) for k in range(2))``. The instruction rounds each of
its two additions to nearest even, and flushes subnormals to zero. This is legal for a declared
reduction, whose terms may be added in any order.

Operands
--------
A : bf16, shape ``(rows, 2)``, row stride any, column stride 1
B : bf16, shape ``(columns, 2)``, compact
C : f32, shape ``(rows, columns)``, row stride any, column stride 1; updated in place

Requires
--------
``avx512bf16``.

Instruction
-----------
``vdpbf16ps`` on 512-bit registers, 16 sums at a time.

References
----------
Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, VDPBF16PS.
"""

from __future__ import annotations

from ...ir.dtype import bf16, f32, i32
from ...ir.script import parse
from ...ir.thread.nodes import Bitcast, Broadcast, MachineOp, Reg, Stmt, Value
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
    """Return a broadcast of two elements of A to all lanes."""
    word = Bitcast(VectorType(i32), pair)
    return Bitcast(VectorType(bf16, 2 * _LANES), Broadcast(word, _LANES))


def _combine(total: Value, a: Value, b: Value) -> tuple[tuple[Stmt, ...], Value]:
    result = Reg("dot", VectorType(f32, _LANES))
    return (MachineOp(VDPBF16PS_512, (total, a, b), (result,)),), result


def _tile(rows: int, columns: int) -> Intrinsic:
    return register(
        Intrinsic(
            name=f"avx512bf16.dot.{rows}x{columns}",
            summary=f"Add two bf16 products to each of {rows} x {columns} f32 sums, 16 at a time.",
            semantics=parse(_TILE.format(rows=rows, columns=columns)).prims[0],
            needs=VDPBF16PS_512.needs,
            expand=register_tile((bf16, bf16, f32), _LANES, 2, _everywhere, _combine),
            partial=frozenset({0, 1}),
        )
    )


AVX512BF16_14X32 = _tile(14, 32)
"""28 accumulators of 16 sums, 2 registers of B and 1 of A; there are 32 registers."""
