"""Read and write regions of block bodies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..symbolic import Expr, Var, as_expr, free_vars
from .nodes import Block, Buffer, For, Let, Range, Region, Stmt
from .visit import allocations, loads, stores, walk

_ZERO, _ONE = as_expr(0), as_expr(1)


def _range(index: Expr, size: Expr, inner: frozenset[Var]) -> Range:
    """Return the range of an index: all of the dimension if it depends on an inner variable."""
    return Range(_ZERO, size) if free_vars(index) & inner else Range(index, _ONE)


def _regions(
    accesses: Iterable[tuple[Buffer, tuple[Expr, ...]]], inner: frozenset[Var]
) -> tuple[Region, ...]:
    seen: dict[Region, None] = {}
    for buffer, indices in accesses:
        pairs = zip(indices, buffer.shape, strict=False)  # ill-formed functions are printed too
        seen[Region(buffer, tuple(_range(i, d, inner) for i, d in pairs))] = None
    return tuple(seen)


def _bound_in(body: Stmt) -> Iterator[Var]:
    for statement in walk(body):
        match statement:
            case For(var=var) | Let(var=var):
                yield var
            case Block(iters=iters):
                yield from (v.var for v in iters)
            case _:
                pass


def access_regions(
    body: Stmt, init: Stmt | None = None
) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    """Return the read and write regions of a block's body and init, one region per access.

    The range of an index that depends on a variable bound inside the body, such as a loaded
    integer, is the whole dimension. Buffers that the body allocates are omitted. The read of the
    output by a reduction update is not listed: the write region covers it. For bodies that contain
    loops, :mod:`tilewright.ir.analysis` computes smaller boxes.
    """
    parts = (body,) if init is None else (body, init)
    own = {alloc.buffer for part in parts for alloc in allocations(part)}
    bound = frozenset(v for part in parts for v in _bound_in(part))
    written = [(s.buffer, s.indices) for part in parts for s in stores(part)]
    read = [(r.buffer, r.indices) for part in parts for r in loads(part)]
    if own:
        read, written = ([x for x in found if x[0] not in own] for found in (read, written))
    return (
        _regions((access for access in read if access not in written), bound),
        _regions(written, bound),
    )
