"""Packing for dot products on x86-64: rows next to each other become groups, one in each lane.

A dot product takes elements that follow each other along k from one lane, where a row-major matrix
has them a row apart. So as many rows as a group has are read as vectors, and interleaved.
"""

from __future__ import annotations

from ...ir.dtype import DType, bf16, i8
from ...ir.script import parse
from ...ir.thread.nodes import Load, Shuffle, Stmt, Store, Value
from ...ir.thread.types import VectorType
from .contract import Expansion, Intrinsic, Site
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
    """Interleave vectors of ``lanes``, whose number is a power of two: first lanes first."""
    if len(rows) == 1:
        return rows[0]
    even, odd = interleaved(rows[::2], lanes), interleaved(rows[1::2], lanes)
    width = lanes * len(rows) // 2
    return Shuffle(even, odd, tuple(k // 2 + k % 2 * width for k in range(2 * width)))


def _expand(of: DType, columns: int, group: int) -> Expansion:
    def expand(site: Site) -> tuple[Stmt, ...]:
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
            summary=f"{group} rows of {columns} columns become {columns} groups of {group}.",
            semantics=parse(_PACK.format(of=of, columns=columns, group=group)).prims[0],
            needs=(need,),
            expand=_expand(of, columns, group),
            partial=frozenset({0}),
        )
    )


AVX512_PACK_I8_32X4 = _tile("avx512", "avx512bw", i8, 32, 4)
"""For ``vpdpbusd``."""

AVX512_PACK_BF16_32X2 = _tile("avx512", "avx512bw", bf16, 32, 2)
"""For ``vdpbf16ps``."""

AVX2_PACK_I8_16X2 = _tile("avx2", "avx2", i8, 16, 2)
"""For ``vpmaddwd``."""
