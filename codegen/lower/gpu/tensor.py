"""Tensor instructions of a warp: where their operands lie, and what they expand to."""

from __future__ import annotations

from dataclasses import replace

from ....ir.gpu import WARP
from ....ir.loop import nodes as loop
from ....ir.loop.nodes import INTRINSIC
from ....ir.loop.visit import substitute_in
from ....ir.symbolic import (
    Expr,
    Facts,
    as_expr,
    bounds,
    congruence,
    const_value,
    product,
    substitute,
)
from ....ir.thread.nodes import Stmt
from ....schedules.intrinsics.contract import Intrinsic, Operand, Site
from ....schedules.intrinsics.match import unify
from ....schedules.intrinsics.nest import Stray, nest_of
from ....schedules.intrinsics.registry import get_intrinsic
from ....schedules.intrinsics.windows import Window
from ..kernel.context import Context
from ..kernel.memory import Memory
from .errors import KernelStatementError

ALIGNED = 16
"""Bytes that every buffer's first element is aligned to."""


def intrinsic_of(block: loop.Block) -> Intrinsic | None:
    """Give the instruction that a block was tensorized with."""
    name = dict(block.annotations).get(INTRINSIC)
    return get_intrinsic(name) if isinstance(name, str) else None


def expand(block: loop.Block, context: Context, memory: Memory, lane: Expr) -> tuple[Stmt, ...]:
    """Write the statements of a tensorized block.

    Raises
    ------
    KernelStatementError
        If the block no longer is what its instruction computes.
    """
    intrinsic = intrinsic_of(block)
    if intrinsic is None:
        raise TypeError(f"block {block.name!r} is not tensorized")
    body = substitute_in(block.body, context.values)
    nest = nest_of(body, Facts())
    if isinstance(nest, Stray):
        raise _changed(block, intrinsic, nest.reason)
    found = unify(nest, intrinsic)
    if found.differences or nest.guards:
        reason = found.differences[0].message if found.differences else "it has guards"
        raise _changed(block, intrinsic, reason)
    operands = tuple(_operand(w, memory) for w in found.windows if w is not None)
    extents = tuple(const_value(x.extent) or 1 for x in found.loops)
    statements = intrinsic.expand(Site(operands, extents, lane=lane))
    return tuple(replace(s, source=context.source) for s in statements)


def _changed(block: loop.Block, intrinsic: Intrinsic, reason: str) -> KernelStatementError:
    return KernelStatementError(
        f"block {block.name!r} is not what {intrinsic.name} computes: {reason}",
        where=f"block {block.name!r}",
        hint="tensorize last, once loops, layouts and scopes are as the instruction wants them",
    )


def _operand(window: Window, memory: Memory) -> Operand:
    buffer, width = window.buffer, window.buffer.dtype.bytes
    base = memory.add(buffer)
    if buffer.scope == "fragment":
        return Operand(base, _tile(buffer, window.start) * width, (), width)
    offset = window.offset * width
    strides = tuple(s * width for s in window.steps)
    return Operand(base, offset, strides, _alignment(offset, buffer))


def _alignment(offset: Expr, buffer: loop.Buffer) -> int:
    """Give what an address is a multiple of, as far as that shows."""
    if buffer.scope == "global":
        return buffer.dtype.bytes
    modulus, rest = congruence(offset)
    size = ALIGNED
    while size > buffer.dtype.bytes and (modulus % size or rest % size):
        size //= 2
    return size


# ---------------------------------------------------------------- fragments


def registers_of(layout: loop.IndexMap) -> int:
    """Give the elements of a tile that each lane holds."""
    last = bounds(layout.outputs[-1]).upper
    return 1 if last is None else last + 1


def fragment_size(buffer: loop.Buffer) -> int:
    """Give the elements of a fragment that each lane holds."""
    if buffer.layout is None:
        return -(-(const_value(product(buffer.shape)) or 0) // WARP)
    tiles = product(_tiles(buffer, buffer.layout))
    return (const_value(tiles) or 0) * registers_of(buffer.layout)


def _tiles(buffer: loop.Buffer, layout: loop.IndexMap) -> tuple[Expr, ...]:
    """Give the tiles along each dimension."""
    last = {v: d - 1 for v, d in zip(layout.inputs, buffer.shape, strict=True)}
    return tuple(substitute(o, last) + 1 for o in layout.outputs[:-2])


def _tile(buffer: loop.Buffer, start: tuple[Expr, ...]) -> Expr:
    """Give where a tile's first register lies, in elements."""
    layout = buffer.layout
    if layout is None:
        raise KernelStatementError(
            f"{buffer.name!r} is a fragment without a layout",
            where=f"buffer {buffer.name!r}",
            hint="tensorize every block that accesses it",
        )
    at = dict(zip(layout.inputs, start, strict=True))
    number = as_expr(0)
    for output, count in zip(layout.outputs[:-2], _tiles(buffer, layout), strict=True):
        number = number * count + substitute(output, at)
    return number * registers_of(layout)
