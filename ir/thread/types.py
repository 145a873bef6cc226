"""The types of thread-level values, and who performs an operation together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..dtype import DType, bool_, i64

ExecutionScope: TypeAlias = Literal["thread", "warp", "warpgroup", "block", "cluster"]
Space: TypeAlias = Literal["generic", "global", "shared"]
"""Which memory an address points into; ``generic`` is all there is on a CPU."""


@dataclass(frozen=True, slots=True)
class VectorType:
    """``lanes`` elements of one dtype; one lane is a scalar. Truth values are single bits."""

    dtype: DType
    lanes: int = 1

    def __str__(self) -> str:
        """Print as ``f32`` or ``f32x16``."""
        return str(self.dtype) if self.lanes == 1 else f"{self.dtype}x{self.lanes}"


@dataclass(frozen=True, slots=True)
class PointerType:
    """An address in one of the machine's memories."""

    space: Space = "generic"

    def __str__(self) -> str:
        """Print as ``ptr`` or ``ptr.shared``."""
        return "ptr" if self.space == "generic" else f"ptr.{self.space}"


Type: TypeAlias = "VectorType | PointerType"

POINTER = PointerType()
GLOBAL_POINTER = PointerType("global")
SHARED_POINTER = PointerType("shared")
INDEX = VectorType(i64)
BIT = VectorType(bool_)
