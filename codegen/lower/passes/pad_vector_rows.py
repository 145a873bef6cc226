"""Rows of small temporaries padded to whole vectors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ....ir.loop.nodes import Buffer, For, PrimFunc, Stmt, Store
from ....ir.loop.visit import Rebuilder, children
from ....ir.symbolic import Expr, Var, as_expr, const_value, linear_form
from ....schedules.launch.lowering_pass import CPU, Pass
from ....target.target import Target
from ..vector_unit import vector_unit

MAX_BYTES: Final = 8192
"""The largest temporary with padded rows: all vector registers hold 2048 bytes."""


class PadVectorRows(Pass):
    """Store each row of a small temporary in whole vectors.

    Before::
        S = alloc((2, 14), f32, scope="local")
        for i in unrolled(2):
            for j in vectorized(16):
                if j < 14:
                    S[i, j] = S[i, j] + A[i, j]
    After::
        S = alloc((2, 14), f32, scope="local", strides=(16, 1))

    A vector of which a part is stored then shares no memory with other rows, so that LLVM keeps the
    row in a register. The shape does not change: accesses are checked against the same bounds.
    """

    targets = CPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Change the strides of all temporaries with partial vectors."""
        unit, widths = vector_unit(target), dict[Buffer, int]()
        local = {b for b in func.buffers if b.scope == "local" and b.strides is None}
        for buffer, lanes in _partial(func.body, None):
            if buffer in local:
                widths.setdefault(buffer, min(lanes, unit.lanes(buffer.dtype.bits)))
        padded = {b: new for b, width in widths.items() if (new := _padded(b, width)) is not None}
        if not padded:
            return func
        rows = _Rows(padded)
        buffers = tuple(map(rows.buffer, func.buffers))
        return replace(func, body=rows.statement(func.body), buffers=buffers)


def _partial(statement: Stmt, lanes: tuple[Var, int] | None) -> Iterator[tuple[Buffer, int]]:
    """Yield the buffers that vectors of another size than a row are stored to, with the size."""
    if isinstance(statement, For) and statement.kind == "vectorized":
        count = const_value(statement.extent)
        lanes = None if not count else (statement.var, count)
    if isinstance(statement, Store) and lanes is not None and statement.indices:
        variable, count = lanes
        *outer, last = statement.indices
        form = linear_form(last, (variable,))
        step = None if form is None else form.coefficients.get(variable)
        adjacent = step is not None and const_value(step) == 1
        alone = all(variable not in index.free for index in outer)
        if adjacent and alone and const_value(statement.buffer.shape[-1]) != count:
            yield statement.buffer, count
    for child in children(statement):
        yield from _partial(child, lanes)


def _padded(buffer: Buffer, width: int) -> Buffer | None:
    """Return a buffer whose rows are whole vectors; None if they are, or if it becomes large."""
    shape = [const_value(dim) for dim in buffer.shape]
    sizes = [size for size in shape if size is not None]
    if len(sizes) < len(shape) or not sizes or min(sizes) < 1 or buffer.dtype.is_packed:
        return None
    row = -(-sizes[-1] // width) * width
    count = math.prod(sizes[:-1])
    if row == sizes[-1] or count * row * buffer.dtype.bits > 8 * MAX_BYTES:
        return None
    strides: list[Expr] = [as_expr(1)]
    for size in [row, *reversed(sizes[1:-1])][: len(sizes) - 1]:
        strides.insert(0, strides[0] * size)
    return replace(buffer, strides=tuple(strides))


class _Rows(Rebuilder):
    def __init__(self, padded: dict[Buffer, Buffer]) -> None:
        self._padded = padded

    def buffer(self, buffer: Buffer) -> Buffer:
        return self._padded.get(buffer, buffer)
