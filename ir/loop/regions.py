"""Which parts of which buffers a block body reads and writes."""

from __future__ import annotations

from collections.abc import Iterable

from ..symbolic import Expr, Var, as_expr, free_vars
from .nodes import Buffer, Let, Range, Region, Stmt
from .visit import loads, stores, walk

_ZERO, _ONE = as_expr(0), as_expr(1)


def _range(index: Expr, size: Expr, read: frozenset[Var]) -> Range:
    """An index that rests on an integer read from memory may be any of the dimension."""
    return Range(_ZERO, size) if free_vars(index) & read else Range(index, _ONE)


def _regions(
    accesses: Iterable[tuple[Buffer, tuple[Expr, ...]]], read: frozenset[Var]
) -> tuple[Region, ...]:
    seen: dict[Region, None] = {}
    for buffer, indices in accesses:
        pairs = zip(indices, buffer.shape, strict=True)
        seen[Region(buffer, tuple(_range(i, d, read) for i, d in pairs))] = None
    return tuple(seen)


def access_regions(body: Stmt) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    """Give the regions that a loop-free block body reads and writes, one an access.

    Where an index is read from memory, the region is the whole dimension. A reduction's read of
    its own output is not listed: it belongs to the write. Bodies with loops of their own need
    :mod:`tilewright.ir.analysis`, which widens points to boxes.
    """
    bound = frozenset(s.var for s in walk(body) if isinstance(s, Let))
    written = [(s.buffer, s.indices) for s in stores(body)]
    read = [(r.buffer, r.indices) for r in loads(body)]
    return (
        _regions((access for access in read if access not in written), bound),
        _regions(written, bound),
    )
