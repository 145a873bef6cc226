"""Vectorized loops split into vectors of constant width."""

from __future__ import annotations

from dataclasses import replace

from ....ir.loop.nodes import For, If, PrimFunc, Stmt
from ....ir.loop.visit import loads, stores, substitute_in, transform
from ....ir.symbolic import as_expr, ceildiv, const_value, var
from ....schedules.launch.lowering_pass import Pass
from ....target.cpus import Cpu
from ....target.target import Target
from ..vector_unit import vector_unit

MAX_VECTOR_REGISTERS = 16
"""The number of registers above which a loop of constant extent is strip-mined, too."""


class StripMine(Pass):
    """Split vectorized loops of symbolic or large extent into vectors of constant width.

    Before::
        for j in vectorized(n): body(j)
    After, with 16 lanes::
        for j in range((n + 15) // 16):
            for lane in vectorized(16):
                if j * 16 + lane < n:
                    body(j * 16 + lane)
    """

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Strip-mine all vectorized loops."""
        unit = vector_unit(target)
        body = transform(func.body, lambda s: _strip(s, unit) if isinstance(s, For) else s)
        return replace(func, body=body)


def _strip(loop: For, cpu: Cpu) -> Stmt:
    if loop.kind != "vectorized":
        return loop
    buffers = [s.buffer for s in stores(loop.body)] + [r.buffer for r in loads(loop.body)]
    lanes = cpu.lanes(max((b.dtype.bits for b in buffers), default=32))
    count = const_value(loop.extent)
    if count is not None:
        if count <= MAX_VECTOR_REGISTERS * lanes:
            return loop
        lanes *= 4
    outer = var(loop.var.name, lower=0)
    inner = var(loop.var.name, lower=0, upper=lanes - 1)
    index = outer * lanes + inner
    body = substitute_in(loop.body, {loop.var: index})
    if count is None or count % lanes:
        body = If(index < loop.extent, body)
    strip = For(loop.uid, inner, as_expr(lanes), body, "vectorized", "", (), loop.origins)
    return For(loop.uid, outer, ceildiv(loop.extent, lanes), strip, origins=loop.origins)
