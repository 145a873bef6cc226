"""Temporaries shrunk to the part that is live at a time."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from ....ir.analysis import Tree, tree_of, written_before_read
from ....ir.analysis.allocations import loops_around
from ....ir.analysis.occurrences import Occurrence
from ....ir.identity import Uid
from ....ir.kernel_errors import MemoryScopeError
from ....ir.loop.nodes import Buffer, For, PrimFunc, Scope
from ....ir.symbolic import const_value
from ....schedules.launch.annotations import with_notes, with_own_iterations
from ....schedules.launch.compaction import (
    CompactedBuffer,
    Rebase,
    buffer_accesses,
    by_age,
    common_loops,
    hoisted,
    live_scope,
    placement_note,
    shrunk,
    unproved,
)
from ....schedules.launch.lowering_pass import CPU, Pass
from ....schedules.launch.own_parts import writes_own_part
from ....target.target import Target
from ..analysis.lifetimes import on_stack


class CompactBuffers(Pass):
    """Shrink each temporary to the region that is live at a time.

    Before::
        for i in range(n):
            for j in range(m): T[i, j] = A[i, j]
            for j in range(m): B[i, j] = T[i, j]
    After::
        for i in range(n):
            for j in range(m):
                T[0, j] = A[i, j]
            for j in range(m):
                B[i, j] = T[0, j]

    The storage of a temporary is reused by the iterations of a loop only if each iteration provably
    writes every element before it reads the element. If that loop is in a parallel loop, the
    temporary gets scope ``local``: one copy per worker. A temporary in a parallel loop that does
    not get a copy per worker must have iterations that write different elements.

    Raises
    ------
    MemoryScopeError
        If neither is proved for a temporary in a parallel loop.
    """

    targets = CPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Compact all temporaries."""
        del target
        found, tree = buffer_accesses(func.body), tree_of(func)
        new = {b: _compacted(b, found[b], tree) for b in by_age(tree) if b in found}
        changed = {b: c for b, c in new.items() if c is not None}
        if not tree.temporaries:
            return func
        body = Rebase(changed, unproved(func, changed)).statement(func.body)
        kept = [b for b in by_age(tree) if b in found or tree.allocs[b] is None]
        buffers = tuple(changed[b].buffer if b in changed else b for b in kept)
        notes = {b.name: placement_note(b, new.get(b), found.get(b, []), tree) for b in kept}
        made = with_notes(replace(func, body=body, buffers=buffers), notes)
        stack = on_stack(buffers)
        if len(buffers) - len(stack) < 2:  # one temporary shares no memory
            return made
        pairs = zip(kept, buffers, strict=True)
        own = {b.name: _own_loops(b, c, found.get(b, []), tree) for b, c in pairs if c not in stack}
        return with_own_iterations(made, own)


def _own_loops(
    buffer: Buffer, made: Buffer, accesses: list[Occurrence], tree: Tree
) -> tuple[Uid, ...]:
    """Return the loops whose iterations run one after the other and have their own elements.

    The workers of a parallel loop run at the same time, but each one has its own elements if the
    scope of the temporary is ``local``.
    """
    loops = loops_around(tree, buffer)
    if made.scope == "local":
        region = next((x for x in common_loops(accesses) if x.kind == "parallel"), None)
        own = [x for x in loops if x.kind != "vectorized"]
        return tuple(x.uid for x in (*own, *(() if region is None else (region,))))
    around = takewhile(lambda x: x.kind not in {"parallel", "vectorized"}, loops)
    return tuple(x.uid for x in around)


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
