"""Commuting updates in place, such as a scatter-add, whose iterations may run in any order."""

from __future__ import annotations

from collections.abc import Mapping

from ..loop.combiners import Combiner
from ..loop.nodes import Block, Buffer, For, Let, Store
from ..loop.visit import allocations, loads, stores, walk
from ..symbolic import free_vars
from .accesses import accesses
from .dependences import bound_kinds
from .tree import Tree
from .updates import update_of


def scatter_updates(block: Block) -> Mapping[Buffer, Combiner]:
    """Return the buffers that a block only updates in place, with the operator of the updates.

    The block has no init, and reads an element of such a buffer only to update it. The instances
    may then run in any order, and at the same time if each update is atomic, even if several of
    them update one element.

    Examples
    --------
    >>> from ..script import parse
    >>> f = parse('''
    ... @prim_func
    ... def f(at: Buffer[(64,), i32], x: Buffer[(64,), f32], y: InOut[(8,), f32]):
    ...     for i in range(64):
    ...         with checked(at[i], 0, 8) as p:
    ...             y[p] += x[i]
    ... ''').prim("f")
    >>> from .tree import tree_of
    >>> (block,) = tree_of(f).outermost_blocks()
    >>> {buffer.name: op for buffer, op in scatter_updates(block).items()}
    {'y': 'add'}
    """
    if block.init is not None:
        return {}
    found: dict[Buffer, Combiner | None] = {}
    count: dict[Buffer, int] = {}
    for store in stores(block.body):
        op = _combiner(store)
        found[store.buffer] = op if found.get(store.buffer, op) == op else None
        count[store.buffer] = count.get(store.buffer, 0) + 1
    for load in loads(block.body):
        if load.buffer in count:
            count[load.buffer] -= 1
    own = {alloc.buffer for alloc in allocations(block.body)}
    return {b: op for b, op in found.items() if op is not None and count[b] == 0 and b not in own}


def _combiner(store: Store) -> Combiner | None:
    found = update_of(store)
    return None if found is None or found[1] is not store.value else found[0]


def commutes(tree: Tree, loop: For, block: Block, buffer: Buffer) -> bool:
    """Return whether the iterations of a loop may update a buffer atomically, in any order.

    All blocks of the loop that access the buffer update it with the same operator, and none of
    them binds the loop to an ordered iteration variable.
    """
    op = scatter_updates(block).get(buffer)
    users = [b for b in tree.blocks_in(loop.body) if any(a.buffer is buffer for a in accesses(b))]
    return op is not None and all(
        scatter_updates(b).get(buffer) == op and "ordered" not in bound_kinds(loop, b)
        for b in users
    )


def is_scatter(block: Block) -> bool:
    """Return whether a block only updates elements at indices that are loaded from memory."""
    updates = scatter_updates(block)
    found = [a for a in accesses(block) if a.writes]
    loaded = {s.var for s in walk(block.body) if isinstance(s, Let)}
    return bool(found) and all(
        a.buffer in updates and any(not loaded.isdisjoint(free_vars(i)) for i in a.indices)
        for a in found
    )
