"""Checks of the independence of thread-bound loops, shared by ``bind`` and memory scopes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..ir.analysis import OWN, is_private, tree_of
from ..ir.analysis.races import thread_conflicts
from ..ir.loop.memory_scopes import OF_BLOCK
from ..ir.symbolic import const_value
from ..target.gpus import BLOCK_AXES
from .apply import Primitive
from .handles import Handle, loop_ref
from .problem import Problem
from .requirement import Requirement
from .state import State


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
    before = set(state.tree(function).temporaries)
    tree = tree_of(step.made(state).module.prim(function))
    made = {b for b in tree.temporaries if b not in before}
    for loop in tree.loops.values():
        if loop.kind != "thread" or loop.thread in BLOCK_AXES or const_value(loop.extent) == 1:
            continue
        for conflict in thread_conflicts(tree, loop, loop.thread or ""):
            if conflict.buffer in made:
                private = is_private(tree, loop, conflict.buffer, OWN | OF_BLOCK)
                yield Problem(
                    requirement,
                    f"after this step, {conflict.reason}",
                    (*where, loop_ref(function, loop)),
                    fixes=tuple(x for x in others if private and not any(x.check(state))),
                )
                return
