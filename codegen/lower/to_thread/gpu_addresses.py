"""Pointers of the buffers of a GPU kernel by memory scope, and alignment of accesses."""

from __future__ import annotations

from dataclasses import replace

from ....ir.loop.nodes import Buffer
from ....ir.symbolic import Expr
from ....ir.thread.nodes import Reg
from ....ir.thread.types import GLOBAL_POINTER, POINTER, SHARED_POINTER
from .buffer_addresses import BufferAddresses, ElementAddress
from .context import LoweringContext

POINTERS = {"global": GLOBAL_POINTER, "shared": SHARED_POINTER}


class GpuBufferAddresses(BufferAddresses):
    """Addresses of the buffers of a GPU kernel.

    While :attr:`aligned` is set, contiguous vector accesses are aligned to their size.
    """

    def __init__(self) -> None:
        """Initialize without buffers."""
        super().__init__()
        self.aligned = False

    def pointer(self, buffer: Buffer) -> Reg:
        """Return a new register for the address of a buffer."""
        return Reg(buffer.name, POINTERS.get(buffer.scope, POINTER))

    def access(
        self, buffer: Buffer, indices: tuple[Expr, ...], context: LoweringContext
    ) -> ElementAddress:
        """Return the address of an element, with the alignment of a vector access."""
        found = super().access(buffer, indices, context)
        if not self.aligned or not found.contiguous:
            return found
        return replace(found, alignment=context.count * buffer.dtype.bytes)
