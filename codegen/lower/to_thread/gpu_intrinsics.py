"""Warp-level tensor instructions: the addresses of their operands and their expansion."""

from __future__ import annotations

from dataclasses import replace

from ....ir.kernel_errors import KernelStatementError
from ....ir.loop import nodes as loop
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
from ....schedules.intrinsics.contract import ExpansionSite, Intrinsic, Operand
from ....schedules.intrinsics.match import unify
from ....schedules.intrinsics.nest import ImperfectNest, nest_of
from ....schedules.intrinsics.registry import intrinsic_of
from ....schedules.intrinsics.windows import Window
from ....target.gpus import WARP
from .buffer_addresses import BufferAddresses
from .context import LoweringContext

ALIGNED = 16
"""The alignment in bytes of the first element of a buffer."""


def expand(
    block: loop.Block, context: LoweringContext, memory: BufferAddresses, lane: Expr
) -> tuple[Stmt, ...]:
    """Return the statements of a tensorized block.

    Raises
    ------
    KernelStatementError
        If the body of the block does not match the semantics of its instruction.
    """
    intrinsic = intrinsic_of(block)
    if intrinsic is None:
        raise TypeError(f"block {block.name!r} is not tensorized")
    body = substitute_in(block.body, context.values)
    nest = nest_of(body, Facts())
    if isinstance(nest, ImperfectNest):
        raise _changed(block, intrinsic, nest.reason)
    found = unify(nest, intrinsic)
    if found.differences or nest.guards:
        reason = found.differences[0].message if found.differences else "it has guards"
        raise _changed(block, intrinsic, reason)
    operands = tuple(_operand(w, memory) for w in found.windows if w is not None)
    extents = tuple(const_value(x.extent) or 1 for x in found.loops)
    statements = intrinsic.expand(ExpansionSite(operands, extents, lane=lane))
    return tuple(replace(s, source=context.source) for s in statements)


def _changed(block: loop.Block, intrinsic: Intrinsic, reason: str) -> KernelStatementError:
    return KernelStatementError(
        f"the body of block {block.name!r} no longer matches instruction {intrinsic.name}: "
        f"{reason}",
        where=f"block {block.name!r}",
        hint="apply tensorize last, after all steps on the loops, layouts, and scopes of the block",
    )


def _operand(window: Window, memory: BufferAddresses) -> Operand:
    buffer, width = window.buffer, window.buffer.dtype.alignment
    base = memory.add(buffer)
    if buffer.scope == "fragment":
        return Operand(base, _tile(buffer, window.start) * width, (), width)
    offset = window.offset * width
    strides = tuple(s * width for s in window.steps)
    return Operand(base, offset, strides, _alignment(offset, buffer))


def _alignment(offset: Expr, buffer: loop.Buffer) -> int:
    """Return the provable alignment of an address in bytes."""
    if buffer.scope == "global":
        return buffer.dtype.alignment
    modulus, rest = congruence(offset)
    size = ALIGNED
    while size > buffer.dtype.alignment and (modulus % size or rest % size):
        size //= 2
    return size


def registers_of(layout: loop.IndexMap) -> int:
    """Return the number of elements per lane of a tile."""
    last = bounds(layout.outputs[-1]).upper
    return 1 if last is None else last + 1


def fragment_size(buffer: loop.Buffer) -> int:
    """Return the number of elements per lane of a fragment."""
    if buffer.layout is None:
        return -(-(const_value(product(buffer.shape)) or 0) // WARP)
    tiles = product(_tiles(buffer, buffer.layout))
    return (const_value(tiles) or 0) * registers_of(buffer.layout)


def _tiles(buffer: loop.Buffer, layout: loop.IndexMap) -> tuple[Expr, ...]:
    """Return the number of tiles along each dimension."""
    last = {v: d - 1 for v, d in zip(layout.inputs, buffer.shape, strict=True)}
    return tuple(substitute(o, last) + 1 for o in layout.outputs[:-2])


def _tile(buffer: loop.Buffer, start: tuple[Expr, ...]) -> Expr:
    """Return the index of the first register of a tile, in elements."""
    layout = buffer.layout
    if layout is None:
        raise KernelStatementError(
            f"buffer {buffer.name!r} has scope 'fragment' but no layout",
            where=f"buffer {buffer.name!r}",
            hint="tensorize every block that accesses the buffer",
            parts=(buffer.name,),
        )
    at = dict(zip(layout.inputs, start, strict=True))
    number = as_expr(0)
    for output, count in zip(layout.outputs[:-2], _tiles(buffer, layout), strict=True):
        number = number * count + substitute(output, at)
    return number * registers_of(layout)
