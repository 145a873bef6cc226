"""The memories of a launch: global buffers, shared memory of blocks, local memory of threads.

A pointer is an integer: the segment's number in the high bits, the byte offset in the low ones,
counted from the middle so that small negative offsets stay with their segment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .shadow import Order, Shadow

SegmentSpace: TypeAlias = Literal["global", "shared", "local"]
Bytes: TypeAlias = NDArray[np.uint8]

_SHIFT: Final = 40
_MIDDLE: Final = 1 << (_SHIFT - 1)
POISON: Final = 0xDB
"""Fills memory that nothing has written: wrong as an index, an integer and a float alike."""


@dataclass(slots=True)
class Segment:
    """One piece of memory, once (global), once a block (shared) or once a thread (local).

    Parameters
    ----------
    number : int
        Its place among the launch's segments.
    name : str
        The buffer.
    space : str
        Which memory.
    size : int
        Bytes, of one block's or thread's copy.
    data : array of uint8
        All copies one after the other, ``stride`` bytes apart.
    granule : int
        Bytes of a cell: the least element that is accessed.
    stride : int
        Bytes from one copy to the next; 0 for global memory.
    element : int
        Bytes of the elements that a person counts in.
    shape : tuple of int
        In elements.
    writable : bool
        Whether it may be written.
    shadow : Shadow, optional
        Who touched what; None where nothing writes, or races are not looked for.
    defined : array of bool, optional
        Cells that were written; None: all are defined from the start.
    """

    number: int
    name: str
    space: SegmentSpace
    size: int
    data: Bytes
    granule: int
    stride: int = 0
    element: int = 1
    shape: tuple[int, ...] = ()
    writable: bool = True
    shadow: Shadow | None = None
    defined: NDArray[np.bool_] | None = None
    _views: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def pointer(self) -> int:
        """The address of its first byte."""
        return (self.number << _SHIFT) + _MIDDLE

    def view(self, dtype: np.dtype[np.generic]) -> NDArray[Any]:
        """Give the memory as elements of a dtype."""
        found = self._views.get(dtype.name)
        if found is None:
            whole = self.data.size // dtype.itemsize * dtype.itemsize
            found = self.data[:whole].view(dtype)
            self._views[dtype.name] = found
        return found

    def element_of(self, offset: int) -> tuple[int, ...]:
        """Give the indices of the element at a byte offset; outside, one linear index."""
        linear = offset // self.element
        if not self.shape or not 0 <= linear < math.prod(self.shape):
            return (linear,)
        return tuple(int(k) for k in np.unravel_index(linear, self.shape))


@dataclass(frozen=True, slots=True, eq=False)
class BufferArgument:
    """Global memory handed to a kernel.

    Parameters
    ----------
    data : array of uint8
        The bytes, which the kernel reads and writes in place.
    element : int
        Bytes of an element.
    shape : tuple of int
        In elements.
    defined : bool
        Whether the content means something before the kernel runs.
    writable : bool
        Whether the kernel may write.
    """

    data: Bytes
    element: int
    shape: tuple[int, ...]
    defined: bool = True
    writable: bool = True

    @classmethod
    def of(cls, array: NDArray[Any], *, defined: bool = True) -> BufferArgument:
        """Hand over an array in row-major order; the kernel writes into it."""
        raw = array.reshape(-1).view(np.uint8)
        return cls(raw, array.itemsize, array.shape, defined, array.flags.writeable)


class Memory:
    """All segments of a launch, by number.

    Parameters
    ----------
    order : Order
        The launch's barriers.
    races, definedness : bool
        What is kept track of.
    """

    def __init__(self, order: Order, *, races: bool, definedness: bool) -> None:
        """Start empty."""
        self.order = order
        self.races = races
        self.definedness = definedness
        self.segments: list[Segment] = []

    def add_global(
        self, name: str, given: BufferArgument, granule: int, *, written: bool
    ) -> Segment:
        """Add a buffer that the caller owns."""
        cells = -(-given.data.size // granule)
        segment = Segment(
            len(self.segments), name, "global", given.data.size, given.data, granule,
            element=given.element, shape=given.shape, writable=given.writable,
        )  # fmt: skip
        if self.races and written:
            segment.shadow = Shadow(cells, self.order)
        if self.definedness and written and not given.defined:
            segment.defined = np.zeros(cells, np.bool_)
        self.segments.append(segment)
        return segment

    def add_copies(
        self, name: str, space: SegmentSpace, size: int, copies: int, granule: int
    ) -> Segment:
        """Add fresh memory, a copy for each of the blocks or threads that run together."""
        stride = -(-size // 16) * 16
        data = np.full(stride * copies, POISON, np.uint8)
        segment = Segment(
            len(self.segments), name, space, size, data, granule, stride,
            element=granule, shape=(size // granule,),
        )  # fmt: skip
        cells = stride * copies // granule
        if self.races and space == "shared":
            segment.shadow = Shadow(cells, self.order)
        if self.definedness:
            segment.defined = np.zeros(cells, np.bool_)
        self.segments.append(segment)
        return segment

    def truncate(self, count: int) -> None:
        """Forget the segments of the blocks that ran last."""
        del self.segments[count:]

    def resolve(self, address: Any) -> list[tuple[Segment | None, Any, Any]]:
        """Split addresses by segment: each with the offsets, and a mask unless all are in it."""
        if np.ndim(address) == 0:
            number = int(address) >> _SHIFT
            return [(self._segment(number), int(address) - (number << _SHIFT) - _MIDDLE, None)]
        numbers: Any = address >> _SHIFT
        first = int(numbers.flat[0])
        if (numbers == first).all():
            return [(self._segment(first), address - ((first << _SHIFT) + _MIDDLE), None)]
        kinds: list[int] = sorted({int(k) for k in numbers.flat})
        return [
            (self._segment(k), address - ((k << _SHIFT) + _MIDDLE), numbers == k) for k in kinds
        ]

    def _segment(self, number: int) -> Segment | None:
        return self.segments[number] if 0 <= number < len(self.segments) else None


Argument: TypeAlias = "BufferArgument | NDArray[Any] | int"


def as_buffers(arguments: Sequence[Argument]) -> list[BufferArgument | int]:
    """Accept arrays for buffers."""
    wrap: Callable[[NDArray[Any]], BufferArgument] = BufferArgument.of
    return [wrap(a) if isinstance(a, np.ndarray) else a for a in arguments]
