"""Updates that several threads may apply to one element at the same time."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ...ir.analysis import (
    OWN,
    Tree,
    bound_kinds,
    is_private,
    outermost_inside,
    reduction_update,
    tree_of,
    writes_disjoint,
)
from ...ir.analysis.races import axis_conflicts
from ...ir.analysis.scatter import scatter_updates
from ...ir.kernel_errors import MemoryScopeError
from ...ir.loop.decompose import around
from ...ir.loop.memory_scopes import COMMON, PRIVATE
from ...ir.loop.nodes import Block, Buffer, For, PrimFunc, Stmt
from ...ir.loop.thread_roles import Atomic
from ...ir.loop.visit import transform
from ...ir.symbolic import const_value
from ...target.gpus import BLOCK_AXES, THREAD_AXES
from ...target.target import Target
from .combine_cross_thread_reductions import repeated_part, spatial_loops
from .lowering_pass import GPU, Pass
from .machine_dtypes import require_machine_dtype

_SHARED: Final = frozenset({"shared"})


class MarkAtomicUpdates(Pass):
    """Record the buffers that a block updates atomically.

    Before::
        for i in thread(64, "threadIdx.x"):
            block s: y[p] = y[p] + x[i]
    After::
        for i in thread(64, "threadIdx.x"):
            block s, atomic y: y[p] = y[p] + x[i]

    An update in place is atomic if iterations of a loop that is bound to thread blocks or threads
    may update the same element. A reduction over threads of one thread block is not: the pass
    ``combine_cross_thread_reductions`` combines its partial results. It cannot do so if several
    iterations of other loops inside the reduction update one element, as in ``spatial(i + k)``.

    Raises
    ------
    MemoryScopeError
        If iterations of such a loop may update the same element of a buffer that is private to a
        thread.
    """

    targets = GPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Return the function with annotated blocks."""
        del target
        tree = tree_of(func)

        def change(statement: Stmt) -> Stmt:
            if not isinstance(statement, Block) or statement not in tree.order:
                return statement
            names = tuple(b.name for b in _atomic_buffers(tree, statement))
            if not names:
                return statement
            for buffer in _atomic_buffers(tree, statement):
                require_machine_dtype(
                    buffer, statement, func.name, "atomic update", "a loop that exchanges a word"
                )
            return replace(statement, threads=Atomic(names))

        return replace(func, body=transform(func.body, change))


def _atomic_buffers(tree: Tree, block: Block) -> list[Buffer]:
    loops = [
        x
        for x in tree.ancestors(block)
        if isinstance(x, For)
        and x.thread in (*BLOCK_AXES, *THREAD_AXES)
        and const_value(x.extent) != 1
    ]
    updates = scatter_updates(replace(block, init=None))
    found = [
        buffer
        for buffer in updates
        if buffer.scope in COMMON and _shared(tree, block, buffer, loops)
    ]
    for buffer in updates:
        if buffer.scope in PRIVATE and block.init is None:
            _check_private(tree, block, buffer, loops)
    return found


def _check_private(tree: Tree, block: Block, buffer: Buffer, loops: list[For]) -> None:
    """Check that a block does not add the terms of several threads to a buffer of each thread."""
    combined = reduction_update(block) is not None
    for loop in loops:
        if combined and _is_reduction_over_threads(loop, block):
            continue
        inner = outermost_inside(tree, loop, block)
        if writes_disjoint(tree, loop, inner, buffer) or is_private(tree, loop, buffer):
            continue
        raise MemoryScopeError(
            f"{buffer.name!r} has scope {buffer.scope!r} (private to a thread), but iterations of "
            f"loop {loop.var.name!r}, which is bound to {loop.thread}, may update the same element",
            where=f"block {block.name!r} of function {tree.function.name!r}",
            hint=f"use set_scope({buffer.name!r}, 'shared')",
            parts=(buffer.name, loop.var.name, block.name),
        )


def _shared(tree: Tree, block: Block, buffer: Buffer, loops: list[For]) -> bool:
    """Return whether iterations of thread-bound loops may update the same element."""
    overlapping = [
        x
        for x in loops
        if not writes_disjoint(tree, x, outermost_inside(tree, x, block), buffer)
        and not _is_copied(tree, x, buffer)
        and any(c.buffer is buffer for c in axis_conflicts(tree, x, x.thread))
    ]
    reduced = reduction_update(block) is not None and all(
        _is_reduction_over_threads(x, block) for x in overlapping
    )
    if not overlapping:
        return False
    if reduced:
        return not _is_combined_once(tree, block, buffer)
    return block.init is None


def _is_copied(tree: Tree, loop: For, buffer: Buffer) -> bool:
    """Return whether each iteration of a thread-bound loop has its own copy of a temporary."""
    if buffer.scope == "shared" and loop.thread not in BLOCK_AXES:
        return False
    return is_private(tree, loop, buffer, OWN | _SHARED if buffer.scope == "shared" else OWN)


def _is_reduction_over_threads(loop: For, block: Block) -> bool:
    return loop.thread in THREAD_AXES and bound_kinds(loop, block) == frozenset({"reduce"})


def _is_combined_once(tree: Tree, block: Block, buffer: Buffer) -> bool:
    """Return whether one iteration at most of the loops inside a reduction updates an element."""
    path = around(tree.function.body, block)
    inner = spatial_loops(block, repeated_part(block, path))
    return all(writes_disjoint(tree, x, block, buffer) for x in inner)
