"""Handles: where a part of a program is, by function and uid, surviving path copying.

The printed name rides along for people to read; it takes no part in comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ..ir.identity import Uid
from ..ir.loop.nodes import Block, For


@dataclass(frozen=True, slots=True)
class FunctionRef:
    """A function of the module, by its name."""

    function: str


@dataclass(frozen=True, slots=True)
class LoopRef:
    """A loop of a loop-level function."""

    function: str
    uid: Uid
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A block of a loop-level function."""

    function: str
    uid: Uid
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class BufferRef:
    """A buffer of a loop-level function: a parameter or a temporary."""

    function: str
    uid: Uid
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class BindingRef:
    """A binding or a parameter of a graph-level function, by the uid of its value."""

    function: str
    uid: Uid
    name: str = field(default="", compare=False)


Ref: TypeAlias = "FunctionRef | LoopRef | BlockRef | BufferRef | BindingRef"

REF_TYPES = (FunctionRef, LoopRef, BlockRef, BufferRef, BindingRef)


def kind_of(ref: Ref) -> str:
    """The word for what a handle points at.

    Examples
    --------
    >>> kind_of(LoopRef("main", 3))
    'loop'
    """
    return type(ref).__name__.removesuffix("Ref").lower()


def label(ref: Ref) -> str:
    """The name a person knows a handle by.

    Examples
    --------
    >>> label(LoopRef("main", 3, "i")), label(LoopRef("main", 3)), label(FunctionRef("main"))
    ('i', 'loop#3', 'main')
    """
    if isinstance(ref, FunctionRef):
        return ref.function
    return ref.name or f"{kind_of(ref)}#{ref.uid}"


@dataclass(frozen=True, slots=True)
class Gone:
    """What became of a part that a step removed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Move:
    """What one step did to parts that did not persist."""

    ordinal: int
    step: str
    moved: Mapping[Ref, tuple[Ref, ...] | Gone]


def loop_ref(function: str, loop: For) -> LoopRef:
    """Make the handle of a loop."""
    return LoopRef(function, loop.uid, loop.var.name)


def block_ref(function: str, block: Block) -> BlockRef:
    """Make the handle of a block."""
    return BlockRef(function, block.uid, block.name)
