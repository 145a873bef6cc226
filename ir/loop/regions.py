"""Which parts of which buffers a block body reads and writes."""

from __future__ import annotations

from collections.abc import Iterable

from ..symbolic import Expr, as_expr
from .nodes import Buffer, Range, Region, Stmt
from .visit import loads, stores

_ONE = as_expr(1)


def _points(accesses: Iterable[tuple[Buffer, tuple[Expr, ...]]]) -> tuple[Region, ...]:
    seen: dict[tuple[Buffer, tuple[Expr, ...]], Region] = {}
    for buffer, indices in accesses:
        region = Region(buffer, tuple(Range(i, _ONE) for i in indices))
        seen.setdefault((buffer, indices), region)
    return tuple(seen.values())


def access_regions(body: Stmt) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    """Give the regions that a loop-free block body reads and writes, one an access.

    A reduction's read of its own output is not listed: it belongs to the write. Bodies with loops
    of their own need :mod:`tilewright.ir.analysis`, which widens points to boxes.
    """
    written = _points((s.buffer, s.indices) for s in stores(body))
    own = {(r.buffer, tuple(x.start for x in r.ranges)) for r in written}
    read = _points(
        (load.buffer, load.indices)
        for load in loads(body)
        if (load.buffer, load.indices) not in own
    )
    return read, written
