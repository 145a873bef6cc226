"""Where every buffer of a kernel lives, and the byte offset of an element."""

from __future__ import annotations

from dataclasses import dataclass

from ....ir.loop.nodes import Buffer
from ....ir.symbolic import Expr, Var, as_expr, const_value, linear_form, product, substitute, total
from ....ir.thread.nodes import Reg
from ....ir.thread.types import POINTER
from .context import Context


def strides_of(buffer: Buffer) -> tuple[Expr, ...]:
    """Give the strides in elements, row-major where the buffer states none."""
    if buffer.strides is not None:
        return buffer.strides
    return tuple(product(buffer.shape[k + 1 :]) for k in range(buffer.rank))


def size_of(buffer: Buffer) -> Expr:
    """Give the bytes from the first element to the end of the last."""
    if buffer.strides is None:
        return product(buffer.shape) * buffer.dtype.bytes
    reach = total((d - 1) * s for d, s in zip(buffer.shape, buffer.strides, strict=True))
    return (reach + 1) * buffer.dtype.bytes


@dataclass(frozen=True, slots=True)
class Access:
    """An element, or one element a lane.

    ``offset`` is in bytes, of lane 0. ``step`` is the bytes from lane to lane: 0 where all lanes
    meet, None where the distance varies; then ``offset`` mentions the lane variable. ``alignment``
    is what the address is known to be a multiple of, in bytes.
    """

    buffer: Buffer
    base: Reg
    offset: Expr
    step: Expr | None
    alignment: int

    @property
    def contiguous(self) -> bool:
        """Whether the lanes are neighbours in memory."""
        return self.step is not None and self.step == as_expr(self.buffer.dtype.bytes)

    @property
    def uniform(self) -> bool:
        """Whether all lanes mean the same element."""
        return self.step is not None and self.step == as_expr(0)

    def private(self, lanes: int) -> bool:
        """Whether all lanes lie in a register tile, so that masked ones may be touched too."""
        size = const_value(size_of(self.buffer))
        if self.buffer.scope != "local" or size is None or not self.contiguous:
            return False
        last = lanes * self.buffer.dtype.bytes
        lower, upper = self.offset.lower, self.offset.upper
        return lower is not None and lower >= 0 and upper is not None and upper + last <= size


class Memory:
    """The pointer registers of a kernel's buffers."""

    def __init__(self) -> None:
        """Start without buffers."""
        self._bases: dict[Buffer, Reg] = {}
        self._strides: dict[Buffer, tuple[Expr, ...]] = {}

    def add(self, buffer: Buffer) -> Reg:
        """Give a buffer its pointer register."""
        if buffer not in self._bases:
            self._bases[buffer] = self.pointer(buffer)
            self._strides[buffer] = strides_of(buffer)
        return self._bases[buffer]

    def pointer(self, buffer: Buffer) -> Reg:
        """Make the register of a buffer's address."""
        return Reg(buffer.name, POINTER)

    def access(self, buffer: Buffer, indices: tuple[Expr, ...], context: Context) -> Access:
        """Turn indices into a byte offset and a distance between lanes."""
        base = self.add(buffer)
        flat = as_expr(0)
        for index, stride in zip(indices, self._strides[buffer], strict=True):
            flat += index * stride
        offset = context.term(flat) * buffer.dtype.bytes
        if context.lanes is None or not context.varies(offset):
            return Access(buffer, base, offset, as_expr(0), buffer.dtype.bytes)
        return self._by_lane(buffer, base, offset, context.lanes.var)

    @staticmethod
    def _by_lane(buffer: Buffer, base: Reg, offset: Expr, lane: Var) -> Access:
        form = linear_form(offset, (lane,))
        if form is None:
            return Access(buffer, base, offset, None, buffer.dtype.bytes)
        start = substitute(offset, {lane: 0})
        return Access(buffer, base, start, form.coefficients[lane], buffer.dtype.bytes)
