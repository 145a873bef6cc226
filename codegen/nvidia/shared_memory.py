"""The layout of the shared memory of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...ir.thread.function import ThreadFunc
from ...ir.thread.nodes import Allocate, Reg
from ...ir.thread.types import SHARED_POINTER
from ...ir.thread.visit import walk
from ...target.gpus import STATIC_SHARED


@dataclass(frozen=True, slots=True)
class SharedLayout:
    """The offset of each shared memory allocation, and the total size and alignment in bytes.

    Memory above the static limit is ``dynamic``: the launch requests it.
    """

    offsets: Mapping[Reg, int]
    size: int
    alignment: int

    @property
    def dynamic(self) -> bool:
        """Whether the launch must request the memory."""
        return self.size > STATIC_SHARED


def shared_layout(function: ThreadFunc) -> SharedLayout:
    """Return the layout of the shared memory of a kernel: consecutive, in program order."""
    offsets: dict[Reg, int] = {}
    end, alignment = 0, 1
    for statement in walk(function.body):
        if isinstance(statement, Allocate) and statement.reg.type == SHARED_POINTER:
            start = -(-end // statement.alignment) * statement.alignment
            offsets[statement.reg] = start
            end = start + statement.size
            alignment = max(alignment, statement.alignment)
    return SharedLayout(offsets, end, alignment)


def dynamic_bytes(function: ThreadFunc) -> int:
    """Return the dynamic shared memory in bytes that a launch must request."""
    layout = shared_layout(function)
    return layout.size if layout.dynamic else 0
