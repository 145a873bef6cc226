"""Pointers of the buffers of a GPU kernel by memory scope, and alignment of accesses."""

from __future__ import annotations

from dataclasses import replace

from ....ir.loop.nodes import Buffer
from ....ir.symbolic import TRUE, Expr, as_expr, eq
from ....ir.thread.nodes import Reg
from ....ir.thread.types import GLOBAL_POINTER, POINTER, SHARED_POINTER
from .buffer_addresses import BufferAddresses, ElementAddress
from .context import LoweringContext

POINTERS = {"global": GLOBAL_POINTER, "shared": SHARED_POINTER}


class GpuBufferAddresses(BufferAddresses):
    """Addresses of the buffers of a GPU kernel.

    While :attr:`aligned` is set, contiguous vector accesses of global and shared memory are aligned
    to their size. Those of other memory are aligned if their offset is provably a multiple of their
    size: a thread usually keeps it in registers, so they need no condition.
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
        width = context.count * buffer.dtype.alignment
        if buffer.scope not in POINTERS and not _is_multiple(found.offset, width, context):
            return found
        return replace(found, alignment=width)


def _is_multiple(offset: Expr, width: int, context: LoweringContext) -> bool:
    """Return whether an offset is provably a multiple of the width of a vector."""
    rest = offset % width
    return rest == as_expr(0) or context.assumptions.decide(eq(rest, 0)) is TRUE
