"""Forwarding of steps from one state to a later one."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, cast

from .handles import HANDLE_TYPES, Handle
from .state import State
from .step import Step
from .values import Value

_S = TypeVar("_S", bound=Step)


def followed(step: _S, state: State) -> _S:
    """Return a step with its handles replaced by their successors in a later state.

    If an operand has several successors, the last one is used: the innermost of split loops.

    Parameters
    ----------
    step : Step
        A step for an earlier state.
    state : State
        The later state, for example after a problem's fix.
    """
    moved = {ref: following[-1] for ref in step.handles() if (following := state.follow(ref))}
    changes = {name: _moved(value, moved) for name, value in step.values()}
    return cast("_S", dataclasses.replace(cast("Any", step), **changes))


def _moved(value: Value, moved: dict[Handle, Handle]) -> Value:
    if isinstance(value, HANDLE_TYPES):
        return moved.get(value, value)
    if isinstance(value, tuple):
        return tuple(_moved(item, moved) for item in value)
    return value
