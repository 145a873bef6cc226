"""Steps carried over from one state to a later one."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, cast

from .primitive import Step
from .refs import REF_TYPES, Ref
from .state import State
from .values import Value

_S = TypeVar("_S", bound=Step)


def followed(step: _S, state: State) -> _S:
    """Point a step at what became of its operands, as after one of a problem's fixes.

    Where an operand became several, the last one is meant: the innermost of split loops.

    Parameters
    ----------
    step : Step
        A step made for an earlier state.
    state : State
        The state in which to use it.
    """
    moved = {ref: following[-1] for ref in step.refs() if (following := state.follow(ref))}
    changes = {name: _moved(value, moved) for name, value in step.values()}
    return cast("_S", dataclasses.replace(cast("Any", step), **changes))


def _moved(value: Value, moved: dict[Ref, Ref]) -> Value:
    if isinstance(value, REF_TYPES):
        return moved.get(value, value)
    if isinstance(value, tuple):
        return tuple(_moved(item, moved) for item in value)
    return value
