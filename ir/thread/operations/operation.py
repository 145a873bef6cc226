"""Descriptions of machine operations: types, execution scope, and memory effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..types import ExecutionScope, Space, Type

Action: TypeAlias = Literal["read", "write"]
Moment: TypeAlias = Literal["issue", "completion"]


@dataclass(frozen=True, slots=True)
class Effect:
    """A memory access of an operation.

    Parameters
    ----------
    action : Action
        Whether the operation reads or writes.
    operand : int
        The position of the operand that is the address.
    bytes : int
        The number of bytes that each thread accesses.
    space : Space
        The memory space of the address.
    moment : Moment
        The time of the access: at issue, or at completion, which may be much later.
    """

    action: Action
    operand: int
    bytes: int
    space: Space
    moment: Moment = "issue"


@dataclass(frozen=True, slots=True)
class Operation:
    """A thread-IR operation that only some machines support.

    Parameters
    ----------
    name : str
        The unique name, which starts with the machine family: ``x86.vpdpbusd.512``.
    scope : ExecutionScope
        The threads that execute the operation together.
    operands, results : tuple of Type
        The types of the operands and results of each thread.
    effects : tuple of Effect
        The memory accesses; empty for pure computations.
    needs : tuple of str
        The required target features, as named by :func:`tilewright.target.target.provides`.
    """

    name: str
    scope: ExecutionScope
    operands: tuple[Type, ...]
    results: tuple[Type, ...]
    effects: tuple[Effect, ...] = ()
    needs: tuple[str, ...] = ()
