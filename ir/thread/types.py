"""Types and execution scopes of thread-level values and operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..dtype import BYTE, DType, bool_, i64

ExecutionScope: TypeAlias = Literal["thread", "warp", "warpgroup", "block", "cluster"]
Space: TypeAlias = Literal["generic", "global", "shared"]
"""The memory space of an address; CPUs have only ``generic``."""


@dataclass(frozen=True, slots=True)
class VectorType:
    """A vector of ``lanes`` elements of one dtype; one lane is a scalar. A boolean is one bit."""

    dtype: DType
    lanes: int = 1

    @property
    def width(self) -> int:
        """The distance of elements in memory, in bytes; a boolean is one byte there."""
        return self.dtype.bits // BYTE

    def __str__(self) -> str:
        """Return the type as text: ``f32`` or ``f32x16``."""
        return str(self.dtype) if self.lanes == 1 else f"{self.dtype}x{self.lanes}"


@dataclass(frozen=True, slots=True)
class PointerType:
    """The address type of one memory space."""

    space: Space = "generic"

    def __str__(self) -> str:
        """Return the type as text: ``ptr`` or ``ptr.shared``."""
        return "ptr" if self.space == "generic" else f"ptr.{self.space}"


Type: TypeAlias = "VectorType | PointerType"

POINTER = PointerType()
GLOBAL_POINTER = PointerType("global")
SHARED_POINTER = PointerType("shared")
INDEX = VectorType(i64)
BIT = VectorType(bool_)
