"""Dot products of AArch64."""

from __future__ import annotations

from collections.abc import Sequence

from ....ir.thread.operations.aarch64 import SDOT_128
from ..emitter import Emitter
from .handler import Handler


def _sdot(em: Emitter, args: Sequence[str]) -> Sequence[str]:
    name = "@llvm.aarch64.neon.sdot.v4i32.v16i8"
    em.module.declare(name, f"<4 x i32> {name}(<4 x i32>, <16 x i8>, <16 x i8>)")
    total, a, b = args
    return (em.op(f"call <4 x i32> {name}(<4 x i32> {total}, <16 x i8> {a}, <16 x i8> {b})"),)


AARCH64: dict[str, Handler] = {SDOT_128.name: _sdot}
