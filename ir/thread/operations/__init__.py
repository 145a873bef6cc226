"""Thread-IR operations of specific machines, one file per machine family.

Each operation has an LLVM handler in ``codegen/llvm/operations`` and a simulator handler in
``codegen/simt/operations``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .aarch64 import AARCH64
from .cpu import CPU
from .nvidia import NVIDIA
from .operation import Action, Effect, Moment, Operation
from .x86 import X86

OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {op.name: op for op in (*CPU, *X86, *AARCH64, *NVIDIA)}
)
"""All operations by name."""

__all__ = ["OPERATIONS", "Action", "Effect", "Moment", "Operation"]
