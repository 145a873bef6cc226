"""Pointers of a kernel's buffers by the memory they live in, and what accesses are aligned to."""

from __future__ import annotations

from dataclasses import replace

from ....ir.loop.nodes import Buffer
from ....ir.symbolic import Expr
from ....ir.thread.nodes import Reg
from ....ir.thread.types import GLOBAL_POINTER, POINTER, SHARED_POINTER
from ..kernel.context import Context
from ..kernel.memory import Access, Memory

POINTERS = {"global": GLOBAL_POINTER, "shared": SHARED_POINTER}


class GpuMemory(Memory):
    """Memory of a kernel. While :attr:`aligned`, lanes side by side are known to be aligned."""

    def __init__(self) -> None:
        """Start without buffers."""
        super().__init__()
        self.aligned = False

    def pointer(self, buffer: Buffer) -> Reg:
        """Make the register of a buffer's address."""
        return Reg(buffer.name, POINTERS.get(buffer.scope, POINTER))

    def access(self, buffer: Buffer, indices: tuple[Expr, ...], context: Context) -> Access:
        """Turn indices into a byte offset, a distance between lanes, and an alignment."""
        found = super().access(buffer, indices, context)
        if not self.aligned or not found.contiguous:
            return found
        return replace(found, alignment=context.count * buffer.dtype.bytes)
