"""Dot products of x86-64."""

from __future__ import annotations

from collections.abc import Sequence

from ....ir.thread.operations.x86 import VDPBF16PS_512, VPDPBUSD_256, VPDPBUSD_512, VPMADDWD_256
from ..emitter import Emitter
from .handler import Handler


def _vpdpbusd(bits: int) -> Handler:
    count, total = bits // 8, f"<{bits // 32} x i32>"
    name = f"@llvm.x86.avx512.vpdpbusd.{bits}"

    def write(em: Emitter, args: Sequence[str]) -> Sequence[str]:
        acc, a, b = args
        em.module.declare(name, f"{total} {name}({total}, <{count} x i8>, <{count} x i8>)")
        operands = f"{total} {acc}, <{count} x i8> {a}, <{count} x i8> {b}"
        return (em.op(f"call {total} {name}({operands})"),)

    return write


def _vdpbf16ps(em: Emitter, args: Sequence[str]) -> Sequence[str]:
    name = "@llvm.x86.avx512bf16.dpbf16ps.512"
    signature = f"<16 x float> {name}(<16 x float>, <32 x bfloat>, <32 x bfloat>)"
    em.module.declare(name, signature)
    acc, *pairs = args
    a, b = (em.op(f"bitcast <32 x i16> {p} to <32 x bfloat>") for p in pairs)
    operands = f"<16 x float> {acc}, <32 x bfloat> {a}, <32 x bfloat> {b}"
    return (em.op(f"call <16 x float> {name}({operands})"),)


def _vpmaddwd(em: Emitter, args: Sequence[str]) -> Sequence[str]:
    name = "@llvm.x86.avx2.pmadd.wd"
    em.module.declare(name, f"<8 x i32> {name}(<16 x i16>, <16 x i16>)")
    a, b = args
    return (em.op(f"call <8 x i32> {name}(<16 x i16> {a}, <16 x i16> {b})"),)


X86: dict[str, Handler] = {
    VPDPBUSD_512.name: _vpdpbusd(512),
    VPDPBUSD_256.name: _vpdpbusd(256),
    VDPBF16PS_512.name: _vdpbf16ps,
    VPMADDWD_256.name: _vpmaddwd,
}
