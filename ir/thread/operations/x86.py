"""Dot-product instructions of x86-64: VNNI, BF16 and AVX2."""

from __future__ import annotations

from ...dtype import bf16, f32, i8, i16, i32, u8
from ..types import VectorType
from .operation import Operation


def _dot_u8_i8(bits: int, needs: tuple[str, ...]) -> Operation:
    lanes = bits // 32
    total = VectorType(i32, lanes)
    return Operation(
        f"x86.vpdpbusd.{bits}",
        "thread",
        (total, VectorType(u8, 4 * lanes), VectorType(i8, 4 * lanes)),
        (total,),
        needs=needs,
    )


VPDPBUSD_512 = _dot_u8_i8(512, ("avx512vnni",))
"""``c[i] + sum(a[4i+k] * b[4i+k] for k in 4)`` with wrap-around; a is unsigned, b is signed."""

VPDPBUSD_256 = _dot_u8_i8(256, ("avx512vnni", "avx512vl"))
"""The 256-bit form of `VPDPBUSD_512`, with eight sums."""

_F32X16, _BF16X32 = VectorType(f32, 16), VectorType(bf16, 32)

VDPBF16PS_512 = Operation(
    "x86.vdpbf16ps.512",
    "thread",
    (_F32X16, _BF16X32, _BF16X32),
    (_F32X16,),
    needs=("avx512bf16",),
)
"""``c[i] + a[2i+1]*b[2i+1] + a[2i]*b[2i]``; flushes subnormals to zero, rounds to nearest even."""

_I16X16, _I32X8 = VectorType(i16, 16), VectorType(i32, 8)

VPMADDWD_256 = Operation(
    "x86.vpmaddwd.256", "thread", (_I16X16, _I16X16), (_I32X8,), needs=("avx2",)
)
"""``a[2i] * b[2i] + a[2i+1] * b[2i+1]`` in 32 bits with wrap-around."""

X86 = (VPDPBUSD_512, VPDPBUSD_256, VDPBF16PS_512, VPMADDWD_256)
