"""Blocks that write every element of a result once, so that threads never meet in it."""

from __future__ import annotations

from dataclasses import replace

from ....ir.analysis import determined
from ....ir.gpu import BLOCK_AXES
from ....ir.identity import Uid
from ....ir.loop.nodes import Block, For, PrimFunc, Stmt, Store
from ....ir.loop.visit import children
from ....ir.symbolic import Facts, const_value

APART = "apart"
"""The attribute of a function with the uids of such blocks."""


def mark_apart(func: PrimFunc) -> PrimFunc:
    """Note the blocks whose iterations in a thread block all write different elements.

    That is seen here, index by index; once an index is an address, with strides of unknown
    length, it no longer is.
    """
    found: dict[Uid, bool] = {}
    _collect(func.body, (), None, func.facts, found)
    apart = tuple(uid for uid, holds in found.items() if holds)
    return replace(func, attributes=(*func.attributes, (APART, apart)))


def apart_blocks(func: PrimFunc) -> frozenset[Uid]:
    """Give what :func:`mark_apart` found."""
    noted = dict(func.attributes).get(APART, ())
    return (
        frozenset(u for u in noted if isinstance(u, int))
        if isinstance(noted, tuple)
        else frozenset()
    )


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
                # A block with several stores is left to the analysis of addresses.
                found[block] = block not in found and _is_apart(statement, loops, facts)
        case For():
            _collect(statement.body, (*loops, statement), block, facts, found)
        case Block():
            _collect(statement.body, loops, statement.uid, facts, found)
        case _:
            for child in children(statement):
                _collect(child, loops, block, facts, found)


def _is_apart(store: Store, loops: tuple[For, ...], facts: Facts) -> bool:
    moving = [x for x in loops if x.thread not in BLOCK_AXES and const_value(x.extent) != 1]
    told = determined(store.indices, {x.var: x.extent for x in moving}, facts)
    return all(x.var in told for x in moving)
