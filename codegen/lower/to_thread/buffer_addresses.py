"""The addresses of the buffers of a kernel and of their elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ....ir.loop.buffer_size import size_of
from ....ir.loop.nodes import Buffer
from ....ir.symbolic import Expr, Var, as_expr, const_value, linear_form, product, substitute
from ....ir.thread.nodes import Reg
from ....ir.thread.types import POINTER
from .context import LoweringContext

ZERO: Final = as_expr(0)

ALIGNMENT: Final = 64
"""The alignment of temporaries of a CPU in bytes."""


def strides_of(buffer: Buffer) -> tuple[Expr, ...]:
    """Return the strides in elements; row-major if the buffer has no explicit strides."""
    if buffer.strides is not None:
        return buffer.strides
    return tuple(product(buffer.shape[k + 1 :]) for k in range(buffer.rank))


def allocated_bytes(buffer: Buffer) -> int | None:
    """Return the bytes of a temporary in registers or on the stack; None if they are symbolic.

    The last row of a temporary with strides is allocated in whole vectors, as its other rows are.
    """
    size = const_value(size_of(buffer))
    if size is None or buffer.strides is None or buffer.scope != "local":
        return size
    return -(-size // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True, slots=True)
class ElementAddress:
    """The address of an element, or of one element per lane.

    ``offset`` is the offset of lane 0 in bytes. ``step`` is the distance between lanes in bytes: 0
    if all lanes access one element, None if the distance varies; then ``offset`` depends on the
    lane variable. ``alignment`` is the alignment of the address in bytes.

    Elements of a packed dtype share bytes: ``offset`` is that of the byte, ``element`` is the index
    of the element of lane 0, and ``distance`` is that of the elements of lanes, None if it varies.
    """

    buffer: Buffer
    base: Reg
    offset: Expr
    step: Expr | None
    alignment: int
    element: Expr = ZERO
    distance: Expr | None = None

    @property
    def contiguous(self) -> bool:
        """Whether consecutive lanes access consecutive elements."""
        return self.step is not None and self.step == as_expr(self.buffer.dtype.alignment)

    @property
    def shift(self) -> Expr:
        """The position of the lowest bit of a packed element in its byte."""
        dtype = self.buffer.dtype
        return self.element % dtype.per_byte * dtype.bits

    @property
    def uniform(self) -> bool:
        """Whether all lanes access the same element."""
        return self.step is not None and self.step == as_expr(0)

    def private(self, lanes: int) -> bool:
        """Return whether all lanes are in a register tile, so masked lanes may be accessed, too."""
        size = allocated_bytes(self.buffer)
        if self.buffer.scope != "local" or size is None or not self.contiguous:
            return False
        last = lanes * self.buffer.dtype.alignment
        lower, upper = self.offset.lower, self.offset.upper
        return lower is not None and lower >= 0 and upper is not None and upper + last <= size


class BufferAddresses:
    """The pointer registers of the buffers of a kernel."""

    def __init__(self) -> None:
        """Initialize without buffers."""
        self._bases: dict[Buffer, Reg] = {}
        self._strides: dict[Buffer, tuple[Expr, ...]] = {}

    def add(self, buffer: Buffer) -> Reg:
        """Return the pointer register of a buffer, created on first use."""
        if buffer not in self._bases:
            self._bases[buffer] = self.pointer(buffer)
            self._strides[buffer] = strides_of(buffer)
        return self._bases[buffer]

    def pointer(self, buffer: Buffer) -> Reg:
        """Return a new register for the address of a buffer."""
        return Reg(buffer.name, POINTER)

    def access(
        self, buffer: Buffer, indices: tuple[Expr, ...], context: LoweringContext
    ) -> ElementAddress:
        """Return the address of an element, or of one element per lane."""
        base = self.add(buffer)
        flat = as_expr(0)
        for index, stride in zip(indices, self._strides[buffer], strict=True):
            flat += index * stride
        if buffer.dtype.is_packed:
            return self._packed(buffer, base, context.term(flat), context)
        offset = context.term(flat) * buffer.dtype.alignment
        if context.lanes is None or not context.varies(offset):
            return ElementAddress(buffer, base, offset, ZERO, buffer.dtype.alignment)
        return self._by_lane(buffer, base, offset, context.lanes.var)

    @staticmethod
    def _by_lane(buffer: Buffer, base: Reg, offset: Expr, lane: Var) -> ElementAddress:
        form = linear_form(offset, (lane,))
        if form is None:
            return ElementAddress(buffer, base, offset, None, buffer.dtype.alignment)
        start = substitute(offset, {lane: 0})
        return ElementAddress(buffer, base, start, form.coefficients[lane], buffer.dtype.alignment)

    @staticmethod
    def _packed(
        buffer: Buffer, base: Reg, element: Expr, context: LoweringContext
    ) -> ElementAddress:
        """Return the address of the byte of an element, or of one byte per lane."""
        offset = element // buffer.dtype.per_byte
        if context.lanes is None or not context.varies(element):
            return ElementAddress(buffer, base, offset, ZERO, 1, element)
        lane = context.lanes.var
        form = linear_form(element, (lane,))
        distance = None if form is None else form.coefficients[lane]
        return ElementAddress(buffer, base, offset, None, 1, element, distance)
