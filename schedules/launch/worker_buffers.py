"""Temporaries of CPU kernels, shrunk to the live part, with one copy per worker or for all."""

from __future__ import annotations

from ...ir.analysis import Tree, tree_of, written_before_read
from ...ir.analysis.allocations import loops_around
from ...ir.analysis.occurrences import Occurrence
from ...ir.kernel_errors import MemoryScopeError
from ...ir.loop.nodes import Alloc, Buffer, For, PrimFunc, Scope
from ...ir.loop.visit import walk
from ...ir.symbolic import const_value
from .compaction import (
    CompactedBuffer,
    buffer_accesses,
    by_age,
    common_loops,
    hoisted,
    live_scope,
    shrunk,
)
from .own_parts import writes_own_part


def worker_buffers(func: PrimFunc) -> dict[Buffer, CompactedBuffer | None]:
    """Return the shrunken form of each accessed temporary; None if it is unchanged.

    Raises
    ------
    MemoryScopeError
        If the workers of a parallel loop share a temporary whose elements are not proved to be
        private, or the largest size of a temporary is unknown when the kernel starts.
    """
    found, tree = buffer_accesses(func.body), tree_of(func)
    return {b: _compacted(b, found[b], tree) for b in by_age(tree) if b in found}


def may_share_buffers(func: PrimFunc) -> bool:
    """Return whether a function has temporaries in parallel loops, or allocated in loops."""
    nodes = tuple(walk(func.body))
    if any(isinstance(x, Alloc) for x in nodes):
        return True
    return bool(func.buffers) and any(isinstance(x, For) and x.kind == "parallel" for x in nodes)


def _compacted(buffer: Buffer, accesses: list[Occurrence], tree: Tree) -> CompactedBuffer | None:
    shared = common_loops(accesses)
    scope, outer = buffer.scope, loops_around(tree, buffer)
    loops, intervals = live_scope(buffer, accesses, shared, tree, fresh=outer)
    if not loops:  # lanes beyond the edge of the whole buffer need no elements
        intervals = [
            None if i is not None and (const_value(size) or i.size + 1) <= i.size else i
            for i, size in zip(intervals, buffer.shape, strict=True)
        ]
    region = next((x for x in shared if x.kind == "parallel"), None)
    if region is not None:
        shrinks = region in loops
        scope = _scope_in(region, buffer, accesses, tree, shrinks=shrinks)
    elif scope == "local" and _is_shared(buffer, accesses, tree):
        scope = "global"
    if tree.allocs[buffer] is not None:
        return hoisted(shrunk(buffer, intervals, scope), accesses, tree, buffer)
    sides = zip(intervals, buffer.shape, strict=True)
    if scope == buffer.scope and all(i is None or size == 1 for i, size in sides):
        return None
    return shrunk(buffer, intervals, scope)


def _scope_in(
    region: For, buffer: Buffer, accesses: list[Occurrence], tree: Tree, *, shrinks: bool
) -> Scope:
    """Return ``local`` if each worker of a parallel loop gets a copy of a temporary."""
    private = bool(written_before_read(region.body, [buffer], tree.facts(region.body)))
    if private and shrinks:
        return "local"
    if writes_own_part(region, accesses, tree):
        return "global" if buffer.scope == "local" else buffer.scope
    if private:
        return "local"
    raise MemoryScopeError(
        f"iterations of parallel loop {region.var.name!r} share temporary {buffer.name!r}: they "
        "may write the same elements, and may read elements that they did not write",
        where=f"function {tree.function.name!r}",
        hint="run the loop serially, or compute the writer of the temporary inside the loop "
        "(compute_at)",
        parts=(buffer.name, region.var.name),
    )


def _is_shared(buffer: Buffer, accesses: list[Occurrence], tree: Tree) -> bool:
    """Return whether a value may enter or leave one of several parallel loops in a temporary."""
    regions = {next((x for x in a.loops if x.kind == "parallel"), None) for a in accesses}
    inside = [x.body for x in regions if x is not None]
    alone = len(inside) == len(regions) and all(
        written_before_read(body, [buffer], tree.facts(body)) for body in inside
    )
    return bool(inside) and not alone
