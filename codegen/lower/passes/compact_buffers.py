"""Temporaries shrunk to the part that is live at a time."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from ....ir.analysis import Tree, tree_of
from ....ir.analysis.allocations import loops_around
from ....ir.analysis.occurrences import Occurrence
from ....ir.identity import Uid
from ....ir.loop.nodes import Buffer, PrimFunc
from ....schedules.launch.annotations import with_notes, with_own_iterations
from ....schedules.launch.compaction import (
    Rebase,
    buffer_accesses,
    by_age,
    common_loops,
    placement_note,
    unproved,
)
from ....schedules.launch.lowering_pass import CPU, Pass
from ....schedules.launch.worker_buffers import worker_buffers
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
        new = worker_buffers(func)
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
