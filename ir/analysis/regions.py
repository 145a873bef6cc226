"""Recomputation of the regions that blocks declare, from their bodies."""

from __future__ import annotations

from collections.abc import Iterable

from ..copies import replace
from ..loop.nodes import Block, Buffer, Range, Region, Stmt
from ..loop.visit import transform
from ..symbolic import Expr, Facts, as_expr
from .accesses import Access, reads, writes
from .intervals import Interval, interval_of, union, within_dimension

_ONE = as_expr(1)


def with_regions(block: Block) -> Block:
    """Return a block with recomputed read and write regions, including nested blocks.

    Reads of the accumulator do not count as reads.
    """
    init = None if block.init is None else transform(block.init, _refreshed)
    block = replace(block, init=init, body=transform(block.body, _refreshed))
    return with_own_regions(block)


def _refreshed(statement: Stmt) -> Stmt:
    return with_own_regions(statement) if isinstance(statement, Block) else statement


def with_own_regions(block: Block) -> Block:
    """Return a block with recomputed read and write regions, without changes of nested blocks."""
    return replace(block, reads=_regions(reads(block)), writes=_regions(writes(block)))


def _regions(found: Iterable[Access]) -> tuple[Region, ...]:
    points: dict[tuple[Buffer, tuple[Expr, ...]], Region] = {}
    widened: dict[Buffer, list[Access]] = {}
    for access in found:
        if access.inner:
            widened.setdefault(access.buffer, []).append(access)
        else:
            ranges = tuple(Range(i, _ONE) for i in access.indices)
            points.setdefault((access.buffer, access.indices), Region(access.buffer, ranges))
    return (*points.values(), *(_bounding_region(b, found) for b, found in widened.items()))


def _bounding_region(buffer: Buffer, found: list[Access]) -> Region:
    facts = Facts()
    each = [tuple(interval_of(i, a.inner, facts) for i in a.indices) for a in found]
    intervals = (
        _joined(dimension, size, facts)
        for dimension, size in zip(zip(*each, strict=True), buffer.shape, strict=True)
    )
    return Region(buffer, tuple(Range(s.start, s.extent) for s in intervals))


def _joined(intervals: tuple[Interval | None, ...], size: Expr, facts: Facts) -> Interval:
    known = [s for s in intervals if s is not None]
    joined = union(known, facts) if len(known) == len(intervals) else None
    return within_dimension(joined, size, facts)
