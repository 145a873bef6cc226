"""Parts of rules that keep strips of results in vector registers."""

from __future__ import annotations

from ...ir.loop.nodes import IndexMap, IterVar
from ...ir.symbolic import free_vars, var
from ..handles import BlockRef, LoopRef
from ..schedule import Schedule


def in_vectors(rank: int, dim: int, lanes: int) -> IndexMap:
    """Return the map that stores a dimension of a tile in whole vectors, which are aligned."""
    inputs = tuple(var(f"d{k}", lower=0) for k in range(rank))
    own, others = inputs[dim], (*inputs[:dim], *inputs[dim + 1 :])
    return IndexMap(inputs, (*others, own // lanes, own % lanes))


def loop_of(sch: Schedule, block: BlockRef, item: IterVar) -> LoopRef | None:
    """Return the innermost loop that binds an iteration variable; None if it has one value."""
    free = free_vars(item.binding)
    loops = reversed(sch.get_loops(block))
    return next((x for x in loops if sch.state.loop(x).var in free), None)
