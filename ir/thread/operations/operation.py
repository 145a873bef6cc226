"""What an operation of one family of machines is: types, who performs it, what it touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..types import ExecutionScope, Space, Type

Action: TypeAlias = Literal["read", "write"]
Moment: TypeAlias = Literal["issue", "completion"]


@dataclass(frozen=True, slots=True)
class Effect:
    """Memory that an operation touches: through which operand, how, and when it is done with it.

    ``bytes`` are touched by each thread from the address that operand number ``operand`` is. An
    effect at ``completion`` may happen long after the operation was issued.
    """

    action: Action
    operand: int
    bytes: int
    space: Space
    moment: Moment = "issue"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the thread IR beyond what every machine has.

    Parameters
    ----------
    name : str
        Unique, the machine first: ``x86.vpdpbusd.512``.
    scope : ExecutionScope
        Whose threads perform it together.
    operands, results : tuple of Type
        What it takes and gives, in every thread.
    effects : tuple of Effect
        The memory it touches; none: it only computes.
    needs : tuple of str
        What the target has to have, in the words of :func:`tilewright.ir.target.provides`.
    """

    name: str
    scope: ExecutionScope
    operands: tuple[Type, ...]
    results: tuple[Type, ...]
    effects: tuple[Effect, ...] = ()
    needs: tuple[str, ...] = ()
