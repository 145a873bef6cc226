"""Blocks whose writes are disjoint across the threads of a thread block."""

from __future__ import annotations

from dataclasses import replace

from ....ir.analysis import injective_in, ranges_of
from ....ir.identity import Uid
from ....ir.loop.nodes import Block, For, PrimFunc, Stmt, Store
from ....ir.loop.visit import children, loads, stores, walk
from ....ir.symbolic import Facts, const_value
from ....target.gpus import BLOCK_AXES
from ....target.target import Target
from ..annotations import DISJOINT, IN_PLACE
from ..lowering_pass import GPU, Pass


class MarkDisjointWrites(Pass):
    """Record the blocks whose iterations within a thread block write different elements.

    Before::
        for tx in thread(64, "threadIdx.x"):
            block B: C[tx] = A[tx]
    After::
        attributes: disjoint = (uid of B,)
        for tx in thread(64, "threadIdx.x"):
            block B: C[tx] = A[tx]

    The proof needs the indices of each dimension. It is no longer possible after lowering, when an
    access is an address with symbolic strides. The attribute ``in_place`` records those blocks that
    only read the elements that they write.
    """

    targets = GPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Return the function with the attribute ``disjoint``."""
        del target
        found: dict[Uid, bool] = {}
        _collect(func.body, (), None, func.facts, found)
        uids = tuple(uid for uid, disjoint in found.items() if disjoint)
        attributes = (*func.attributes, (DISJOINT, uids))
        blocks = (s for s in walk(func.body) if isinstance(s, Block) and s.uid in uids)
        own = tuple(block.uid for block in blocks if _is_in_place(block))
        return replace(func, attributes=(*attributes, (IN_PLACE, own)) if own else attributes)


def _is_in_place(block: Block) -> bool:
    """Return whether a block reads elements of the buffers that it writes, only those it writes."""
    written = {s.buffer: s.indices for s in stores(block.body)}
    read = [load for load in loads(block.body) if load.buffer in written]
    return bool(read) and all(load.indices == written[load.buffer] for load in read)


def _collect(
    statement: Stmt,
    loops: tuple[For, ...],
    block: Uid | None,
    facts: Facts,
    found: dict[Uid, bool],
) -> None:
    match statement:
        case Store():
            if block is not None and statement.buffer.scope == "global":
                # A block with several stores is left to the address analysis.
                found[block] = block not in found and _is_disjoint(statement, loops, facts)
        case For():
            _collect(statement.body, (*loops, statement), block, facts, found)
        case Block():
            _collect(statement.body, loops, statement.uid, facts, found)
        case _:
            for child in children(statement):
                _collect(child, loops, block, facts, found)


def _is_disjoint(store: Store, loops: tuple[For, ...], facts: Facts) -> bool:
    moving = [x for x in loops if x.thread not in BLOCK_AXES and const_value(x.extent) != 1]
    injective = injective_in(store.indices, ranges_of(moving), facts)
    return all(x.var in injective for x in moving)
