"""Checks of the independence of thread-bound loops, shared by ``bind`` and memory scopes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ..ir.analysis import (
    OWN,
    Conflict,
    Tree,
    bound_kinds,
    conflicts,
    is_private,
    reduction_update,
    tree_of,
    writes,
)
from ..ir.analysis.scatter import commutes
from ..ir.loop.nodes import For
from ..ir.symbolic import const_value
from ..target.gpus import BLOCK_AXES, THREAD_AXES
from .apply import Primitive
from .handles import Handle, loop_ref
from .problem import Problem
from .requirement import Requirement
from .state import State

_SHARED: Final = frozenset({"shared"})


def thread_conflicts(tree: Tree, loop: For, axis: str) -> Iterator[Conflict]:
    """Yield the conflicts between the iterations of a loop that is bound to a thread axis.

    Reductions that the threads combine and updates that they apply atomically do not conflict.

    Parameters
    ----------
    tree : Tree
        The index of the function.
    loop : For
        The loop.
    axis : str
        The axis, such as ``threadIdx.x``.
    """
    if axis in BLOCK_AXES:
        found = conflicts(tree, loop, own=OWN | _SHARED)
    else:
        found = conflicts(tree, loop, common=_SHARED)
    for conflict in found:
        combined = _is_combined(tree, loop, conflict)
        if not combined and not _is_atomic(tree, loop, axis, conflict):
            yield conflict


def _is_atomic(tree: Tree, loop: For, axis: str, conflict: Conflict) -> bool:
    """Return whether a conflict is only between updates that the threads apply atomically."""
    axes = (*BLOCK_AXES, *THREAD_AXES)
    return axis in axes and commutes(tree, loop, conflict.block, conflict.buffer)


def _is_combined(tree: Tree, loop: For, conflict: Conflict) -> bool:
    """Return whether a conflict is only in a reduction that the threads combine."""
    block, buffer = conflict.block, conflict.buffer
    if reduction_update(block) is None or "reduce" not in bound_kinds(loop, block):
        return False
    writers = [b for b in tree.blocks_in(loop.body) if writes(b, buffer)]
    return writers == [block]


def shared_scope_problems(
    state: State,
    step: Primitive,
    where: tuple[Handle, ...],
    requirement: Requirement,
    others: Iterable[Primitive],
) -> Iterator[Problem]:
    """Yield a problem if threads would conflict in the shared temporary that a step makes.

    Parameters
    ----------
    state : State
        The state before the step.
    step : Primitive
        A step that gives one temporary of a function the scope ``"shared"``.
    where : tuple of Handle
        The targets of the step.
    requirement : Requirement
        The requirement.
    others : iterable of Primitive
        The same step with scopes that are private to each thread. Those that are legal are the
        fixes if each thread reads only elements that it wrote.
    """
    function = where[0].function
    if all(x.kind != "thread" for x in state.tree(function).loops.values()):
        return
    before = set(state.module.prim(function).buffers)
    tree = tree_of(step.rewrite(state).module.prim(function))
    made = {b for b in tree.function.buffers if b not in before}
    for loop in tree.loops.values():
        if loop.kind != "thread" or loop.thread in BLOCK_AXES or const_value(loop.extent) == 1:
            continue
        for conflict in thread_conflicts(tree, loop, loop.thread or ""):
            if conflict.buffer in made:
                private = is_private(tree, loop, conflict.buffer, OWN | _SHARED)
                yield Problem(
                    requirement,
                    f"after this step, {conflict.reason}",
                    (*where, loop_ref(function, loop)),
                    fixes=tuple(x for x in others if private and not any(x.check(state))),
                )
                return
