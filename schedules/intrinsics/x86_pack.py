"""Packing for dot products on x86-64: ``{avx512,avx2}.pack.{dtype}.{columns}x{group}``.

A dot-product instruction reads consecutive elements along k from one lane. In a row-major matrix,
these elements are in consecutive rows. The expansion loads the rows of a group as vectors and
interleaves them.

Semantics
---------
``P[j, k] = B[k, j]``, a transposed copy.

Operands
--------
B : i8 or bf16, shape ``(group, columns)``, row stride any, column stride 1
P : dtype of B, shape ``(columns, group)``, compact; written

Requires
--------
``avx512bw`` or ``avx2``.

Instruction
-----------
Shuffles, which LLVM selects (``vpunpcklbw``, ``vpunpckhbw``, ``vpermt2w``, ...).

References
----------
Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, PUNPCKLBW.
"""

from __future__ import annotations

from ...ir.dtype import DType, bf16, i8
from ...ir.script import parse
from ...ir.thread.nodes import Load, Shuffle, Stmt, Store, Value
from ...ir.thread.types import VectorType
from .contract import Expansion, ExpansionSite, Intrinsic
from .registry import register
from .tiles import address, column_mask

_PACK = """
b = symbols("b")

@prim_func
def pack(
    B: Buffer(({group}, {columns}), {of}, strides=(b, 1)),
    P: Out(({columns}, {group}), {of}, strides=({group}, 1)),
):
    for j in vectorized({columns}):
        for k in unrolled({group}):
            with block("pack"):
                vj, vk = spatial(j), spatial(k)
                P[vj, vk] = B[vk, vj]
"""


def interleaved(rows: list[Value], lanes: int) -> Value:
    """Return vectors interleaved lane by lane; their number is a power of two."""
    if len(rows) == 1:
        return rows[0]
    even, odd = interleaved(rows[::2], lanes), interleaved(rows[1::2], lanes)
    width = lanes * len(rows) // 2
    return Shuffle(even, odd, tuple(k // 2 + k % 2 * width for k in range(2 * width)))


def _expand(of: DType, columns: int, group: int) -> Expansion:
    def expand(site: ExpansionSite) -> tuple[Stmt, ...]:
        source, packed = site.operands
        mask = column_mask(site, 0, columns, 1, site.extents[0])
        vector = VectorType(of, columns)
        rows: list[Value] = [
            Load(vector, address(source, of, k, 0), mask=mask) for k in range(group)
        ]
        every = column_mask(site, 0, columns, group, site.extents[0])
        return (Store(address(packed, of, 0, 0), interleaved(rows, columns), mask=every),)

    return expand


def _tile(level: str, need: str, of: DType, columns: int, group: int) -> Intrinsic:
    return register(
        Intrinsic(
            name=f"{level}.pack.{of}.{columns}x{group}",
            summary=f"Interleave {group} rows of {columns} columns into {columns} groups.",
            semantics=parse(_PACK.format(of=of, columns=columns, group=group)).prims[0],
            needs=(need,),
            expand=_expand(of, columns, group),
            partial=frozenset({0}),
        )
    )


AVX512_PACK_I8_32X4 = _tile("avx512", "avx512bw", i8, 32, 4)
"""The packing for ``vpdpbusd``."""

AVX512_PACK_BF16_32X2 = _tile("avx512", "avx512bw", bf16, 32, 2)
"""The packing for ``vdpbf16ps``."""

AVX2_PACK_I8_16X2 = _tile("avx2", "avx2", i8, 16, 2)
"""The packing for ``vpmaddwd``."""
