"""Handles: the function and uid of a part of a program, unchanged by path copying.

The printed name is for display only; comparison ignores it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ..ir.identity import Uid
from ..ir.loop.nodes import Block, For


@dataclass(frozen=True, slots=True)
class FunctionRef:
    """The handle of a function of the module, by name."""

    function: str


@dataclass(frozen=True, slots=True)
class LoopRef:
    """The handle of a loop of a loop-level function."""

    function: str
    uid: Uid
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class BlockRef:
    """The handle of a block of a loop-level function."""

    function: str
    uid: Uid
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class BufferRef:
    """The handle of a buffer of a loop-level function: a parameter or a temporary."""

    function: str
    uid: Uid
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class BindingRef:
    """The handle of a binding or parameter of a graph-level function, by the uid of its value."""

    function: str
    uid: Uid
    name: str = field(default="", compare=False)


Handle: TypeAlias = "FunctionRef | LoopRef | BlockRef | BufferRef | BindingRef"

HANDLE_TYPES = (FunctionRef, LoopRef, BlockRef, BufferRef, BindingRef)


def kind_of(ref: Handle) -> str:
    """Return the kind of a handle's target as a word.

    Examples
    --------
    >>> kind_of(LoopRef("main", 3))
    'loop'
    """
    return type(ref).__name__.removesuffix("Ref").lower()


def label(ref: Handle) -> str:
    """Return the display name of a handle.

    Examples
    --------
    >>> label(LoopRef("main", 3, "i")), label(LoopRef("main", 3)), label(FunctionRef("main"))
    ('i', 'loop#3', 'main')
    """
    if isinstance(ref, FunctionRef):
        return ref.function
    return ref.name or f"{kind_of(ref)}#{ref.uid}"


@dataclass(frozen=True, slots=True)
class Removed:
    """The removal of a part by a step.

    Parameters
    ----------
    reason : str
        The action, as the end of the sentence "step 3 (split) ...".
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Move:
    """The replaced and removed handles of one step."""

    ordinal: int
    step: str
    moved: Mapping[Handle, tuple[Handle, ...] | Removed]


def loop_ref(function: str, loop: For) -> LoopRef:
    """Return the handle of a loop."""
    return LoopRef(function, loop.uid, loop.var.name)


def block_ref(function: str, block: Block) -> BlockRef:
    """Return the handle of a block."""
    return BlockRef(function, block.uid, block.name)
