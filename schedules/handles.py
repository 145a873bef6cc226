"""Handles: the function and uid of a part of a program, unchanged by path copying.

The printed name is for display only; comparison ignores it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias, cast

from ..errors import visible
from ..ir.identity import Uid
from ..ir.loop.nodes import Block, Buffer, For
from ..nearest import missing_attribute


class _Ref:
    """A handle prints as one line, ``<loop i of matmul>``."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the kind, the name, and the function."""
        ref = cast("Handle", self)
        scope = "" if isinstance(ref, FunctionRef) else f" of {ref.function}"
        return visible(f"<{kind_of(ref)} {label(ref)}{scope}>")

    def __getattr__(self, name: str) -> NoReturn:
        """Report an unknown attribute; properties of a part belong to a version of the program."""
        kind = kind_of(cast("Handle", self))
        usage = f"sch.show(h) prints the properties of this {kind}"
        node = "" if kind in ("function", "binding") else f", and sch.state.{kind}(h) is its node"
        missing_attribute(self, name, hint=f"{usage}{node}")


@dataclass(frozen=True, slots=True, repr=False)
class FunctionRef(_Ref):
    """The handle of a function of the module, by name."""

    function: str


@dataclass(frozen=True, slots=True, repr=False)
class LoopRef(_Ref):
    """The handle of a loop of a loop-level function."""

    function: str
    uid: Uid
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, repr=False)
class BlockRef(_Ref):
    """The handle of a block of a loop-level function."""

    function: str
    uid: Uid
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, repr=False)
class BufferRef(_Ref):
    """The handle of a buffer of a loop-level function: a parameter or a temporary."""

    function: str
    uid: Uid
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, repr=False)
class BindingRef(_Ref):
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


def refs_of(function: str, *nodes: For | Block | Buffer) -> tuple[Handle, ...]:
    """Return the handles of loops, blocks and buffers of a function."""
    return tuple(_ref_of(function, node) for node in nodes)


def _ref_of(function: str, node: For | Block | Buffer) -> Handle:
    match node:
        case For():
            return loop_ref(function, node)
        case Block():
            return block_ref(function, node)
        case Buffer():
            return buffer_ref(function, node)


def buffer_ref(function: str, buffer: Buffer) -> BufferRef:
    """Return the handle of a buffer."""
    return BufferRef(function, buffer.uid, buffer.name)


def loop_ref(function: str, loop: For) -> LoopRef:
    """Return the handle of a loop."""
    return LoopRef(function, loop.uid, loop.var.name)


def block_ref(function: str, block: Block) -> BlockRef:
    """Return the handle of a block."""
    return BlockRef(function, block.uid, block.name)
