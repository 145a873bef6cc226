"""Prefetches, which LLVM has for all CPUs; one without the instruction ignores them."""

from __future__ import annotations

from collections.abc import Sequence

from ....ir.thread.operations.cpu import PREFETCH
from ..emitter import Emitter
from .handler import Handler


def _prefetch(em: Emitter, args: Sequence[str]) -> Sequence[str]:
    name = "@llvm.prefetch.p0"
    em.module.declare(name, f"void {name}(ptr, i32, i32, i32)")
    (address,) = args
    em.line(f"call void {name}(ptr {address}, i32 0, i32 3, i32 1)")
    return ()


CPU: dict[str, Handler] = {PREFETCH.name: _prefetch}
"""Reads of data that stays in all levels of the cache (LLVM Language Reference, llvm.prefetch)."""
