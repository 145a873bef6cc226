"""Read and write regions of loop-free block bodies."""

from __future__ import annotations

from collections.abc import Iterable

from ..symbolic import Expr, Var, as_expr, free_vars
from .nodes import Buffer, Let, Range, Region, Stmt
from .visit import loads, stores, walk

_ZERO, _ONE = as_expr(0), as_expr(1)


def _range(index: Expr, size: Expr, read: frozenset[Var]) -> Range:
    """Return the range of an index: all of the dimension if it depends on a loaded integer."""
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
    """Return the read and write regions of a loop-free block body, one region per access.

    The range of an index that is loaded from memory is the whole dimension. The read of the output
    by a reduction update is not listed: the write region covers it. For bodies that contain loops
    use :mod:`tilewright.ir.analysis`, which computes boxes.
    """
    bound = frozenset(s.var for s in walk(body) if isinstance(s, Let))
    written = [(s.buffer, s.indices) for s in stores(body)]
    read = [(r.buffer, r.indices) for r in loads(body)]
    return (
        _regions((access for access in read if access not in written), bound),
        _regions(written, bound),
    )
