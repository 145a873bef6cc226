"""Blocks whose writes are disjoint across the threads of a thread block."""

from __future__ import annotations

from dataclasses import replace

from ....ir.analysis import injective_in
from ....ir.identity import Uid
from ....ir.loop.nodes import Block, For, PrimFunc, Stmt, Store
from ....ir.loop.visit import children
from ....ir.symbolic import Facts, const_value
from ....target.gpus import BLOCK_AXES
from ....target.target import Target
from ..annotations import DISJOINT
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
    access is an address with symbolic strides.
    """

    targets = GPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Return the function with the attribute ``disjoint``."""
        del target
        found: dict[Uid, bool] = {}
        _collect(func.body, (), None, func.facts, found)
        uids = tuple(uid for uid, disjoint in found.items() if disjoint)
        return replace(func, attributes=(*func.attributes, (DISJOINT, uids)))


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
    injective = injective_in(store.indices, {x.var: x.extent for x in moving}, facts)
    return all(x.var in injective for x in moving)
