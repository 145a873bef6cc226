"""The memory of a launch: global buffers, shared memory of blocks, local memory of threads.

A pointer is an integer with the number of the segment in the high bits and the byte offset in the
low bits. Offsets are biased by half their range, so that small negative offsets keep their segment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .race_detector import BarrierOrder, ShadowMemory

SegmentSpace: TypeAlias = Literal["global", "shared", "local"]
Bytes: TypeAlias = NDArray[np.uint8]

_SHIFT: Final = 40
_MIDDLE: Final = 1 << (_SHIFT - 1)
POISON: Final = 0xDB
"""The byte that fills uninitialized memory: implausible as an index, an integer, and a float."""


@dataclass(slots=True)
class Segment:
    """A buffer in memory: one copy (global), one per block (shared), or one per thread (local).

    Parameters
    ----------
    number : int
        Number of the segment in the launch.
    name : str
        Name of the buffer.
    space : str
        Memory space.
    size : int
        Size of one copy, in bytes.
    data : array of uint8
        All copies, ``stride`` bytes apart.
    granule : int
        Size of a cell of the shadow memory, the smallest element that is accessed, in bytes.
    stride : int
        Bytes from one copy to the next; 0 for global memory.
    element : int
        Size of an element in messages, in bytes.
    shape : tuple of int
        Shape, in elements.
    writable : bool
        Whether the buffer may be written.
    temporary : bool
        Whether only the kernel reads the buffer.
    shadow : ShadowMemory, optional
        Accesses of the cells; None if the buffer is never written, or races are not checked.
    defined : array of bool, optional
        Cells that contain a value; None if all are initialized from the start.
    origins : array of int32, optional
        The uninitialized read whose value was copied to each cell, by its number in
        `SimtMemory.uninitialized`, or 0; None if no such value was copied.
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
    temporary: bool = True
    shadow: ShadowMemory | None = None
    defined: NDArray[np.bool_] | None = None
    origins: NDArray[np.int32] | None = None
    _views: dict[np.dtype[np.generic], Any] = field(default_factory=dict[np.dtype[np.generic], Any])

    @property
    def pointer(self) -> int:
        """The address of the first byte."""
        return (self.number << _SHIFT) + _MIDDLE

    def view(self, dtype: np.dtype[np.generic]) -> NDArray[Any]:
        """Return the memory as elements of a dtype."""
        found = self._views.get(dtype)
        if found is None:
            size = self.data.size // dtype.itemsize * dtype.itemsize
            found = self.data[:size].view(dtype)
            self._views[dtype] = found
        return found

    def element_of(self, offset: int) -> tuple[int, ...]:
        """Return the indices of the element at a byte offset, or its linear index if outside."""
        linear = offset // self.element
        if not self.shape or not 0 <= linear < math.prod(self.shape):
            return (linear,)
        return tuple(int(k) for k in np.unravel_index(linear, self.shape))


@dataclass(frozen=True, slots=True, eq=False)
class BufferArgument:
    """A global buffer passed to a kernel.

    Parameters
    ----------
    data : array of uint8
        The bytes, which the kernel reads and writes in place.
    element : int
        Size of an element, in bytes.
    shape : tuple of int
        Shape, in elements.
    defined : bool
        Whether the content is initialized before the kernel runs.
    writable : bool
        Whether the kernel may write.
    temporary : bool
        Whether only the kernel reads the buffer.
    """

    data: Bytes
    element: int
    shape: tuple[int, ...]
    defined: bool = True
    writable: bool = True
    temporary: bool = False

    @classmethod
    def of(cls, array: NDArray[Any], *, defined: bool = True) -> BufferArgument:
        """Return an argument for an array in row-major order, which the kernel writes in place."""
        raw = array.reshape(-1).view(np.uint8)
        return cls(raw, array.itemsize, array.shape, defined, array.flags.writeable)


class SimtMemory:
    """The segments of a launch.

    ``uninitialized`` describes the reads of uninitialized elements that statements copied.

    Parameters
    ----------
    order : BarrierOrder
        The happens-before order of the launch.
    races, definedness : bool
        The checks for which accesses are recorded.
    """

    def __init__(self, order: BarrierOrder, *, races: bool, definedness: bool) -> None:
        """Start without segments."""
        self.order = order
        self.races = races
        self.definedness = definedness
        self.segments: list[Segment] = []
        self.uninitialized: list[str] = ["an element that no thread has written"]

    def add_global(
        self, name: str, buffer: BufferArgument, granule: int, *, written: bool
    ) -> Segment:
        """Add a buffer of the caller."""
        cells = -(-buffer.data.size // granule)
        segment = Segment(
            len(self.segments), name, "global", buffer.data.size, buffer.data, granule,
            element=buffer.element, shape=buffer.shape, writable=buffer.writable,
            temporary=buffer.temporary,
        )  # fmt: skip
        if self.races and written:
            segment.shadow = ShadowMemory(cells, self.order)
        if self.definedness and written and not buffer.defined:
            segment.defined = np.zeros(cells, np.bool_)
        self.segments.append(segment)
        return segment

    def add_copies(
        self, name: str, space: SegmentSpace, size: int, copies: int, granule: int
    ) -> Segment:
        """Add uninitialized memory with one copy per block or thread of the batch."""
        stride = -(-size // 16) * 16
        data = np.full(stride * copies, POISON, np.uint8)
        segment = Segment(
            len(self.segments), name, space, size, data, granule, stride,
            element=granule, shape=(size // granule,),
        )  # fmt: skip
        cells = stride * copies // granule
        if self.races and space == "shared":
            segment.shadow = ShadowMemory(cells, self.order)
        if self.definedness:
            segment.defined = np.zeros(cells, np.bool_)
        self.segments.append(segment)
        return segment

    def truncate(self, count: int) -> None:
        """Remove all but the first ``count`` segments, after a batch of blocks."""
        del self.segments[count:]

    def resolve(self, address: Any) -> list[tuple[Segment | None, Any, Any]]:
        """Return the segments of addresses, each with byte offsets and a mask (None: all)."""
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
    """Return arguments with arrays converted to buffer arguments."""
    wrap: Callable[[NDArray[Any]], BufferArgument] = BufferArgument.of
    return [wrap(a) if isinstance(a, np.ndarray) else a for a in arguments]
