"""Parallel loops whose iterations write whole bytes of packed elements."""

from __future__ import annotations

from ..handles import LoopRef
from ..primitives.loops.parallel import Parallel
from ..schedule import Schedule


def parallelize(sch: Schedule, loop: LoopRef) -> bool:
    """Run a loop in parallel, unless its iterations may write packed elements that share a byte.

    Returns
    -------
    bool
        Whether the loop is parallel now.
    """
    if packed_ranks(sch, loop) and sch.check(Parallel(loop)):
        return False
    sch.parallel(loop)
    return True


def packed_ranks(sch: Schedule, loop: LoopRef) -> dict[int, int]:
    """Return the most elements of a byte of the packed buffers that a loop writes, by rank."""
    tree = sch.state.tree(loop.function)
    written = [r.buffer for b in tree.blocks_in(sch.state.loop(loop).body) for r in b.writes]
    packed = [b for b in written if b.dtype.is_packed]
    return {b.rank: max(c.dtype.per_byte for c in packed if c.rank == b.rank) for b in packed}
