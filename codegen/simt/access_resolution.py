"""Resolution of the addresses of an access: segment, offsets, and mask of valid lanes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .arrays import spread, where
from .findings import FindingKind, MemoryCell
from .frame import Frame
from .memory_model import Segment
from .provenance import StatementSite
from .race_detector import expand, repeat
from .traffic import WIDEST

Bits: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class AccessSpec:
    """The static properties of an access.

    Parameters
    ----------
    site : StatementSite
        The statement.
    dtype : numpy.dtype
        Storage type of an element.
    lanes : int
        Elements per thread; 1 for a scalar.
    vector : bool
        Whether the value has a lane axis.
    alignment : int
        Alignment of contiguous elements, in bytes.
    strided : bool
        Whether each lane is a separate access, because lanes are not contiguous.
    """

    site: StatementSite
    dtype: np.dtype[Any]
    lanes: int = 1
    vector: bool = False
    alignment: int = 1
    strided: bool = False

    @property
    def width(self) -> int:
        """The size of one element, in bytes."""
        return int(self.dtype.itemsize)

    @property
    def instruction_width(self) -> int:
        """The bytes that one instruction accesses per thread."""
        if self.strided:
            return self.width
        total = self.lanes * self.width
        return max(self.width, min(total & -total, self.alignment & -self.alignment, WIDEST))

    @property
    def required_alignment(self) -> int:
        """The required alignment of the address in bytes, at least the size of an element."""
        return self.width if self.strided else max(self.alignment, self.width)


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """One execution of an access by the active threads.

    Parameters
    ----------
    frame : Frame
        The executing threads.
    access : AccessSpec
        The static properties of the access.
    action : {"read", "write"}
        The kind of the access, for messages.
    lane_offsets : array of int64
        Byte offset of every lane from the first lane.
    mask : array of bool, optional
        Lanes that take part.
    receivers : array of int32, optional
        Threads that receive the elements, if they are not the threads that provide the addresses.
    """

    frame: Frame
    access: AccessSpec
    action: Literal["read", "write"]
    lane_offsets: Any = 0
    mask: Any = None
    receivers: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the access: lanes, if the value has a lane axis, and threads."""
        frame, access = self.frame, self.access
        return (access.lanes, frame.count) if access.vector else (frame.count,)

    def resolve(self, address: Any) -> Iterator[tuple[ResolvedAccess, Any]]:
        """Yield the part of the access in each segment, with the mask of its lanes (None: all)."""
        for segment, offset, selected in self.frame.memory.resolve(address):
            mask = selected if self.mask is None else self.mask
            if selected is not None and self.mask is not None:
                mask = self.mask & selected
            resolved = self._resolve(segment, offset, mask)
            if resolved is not None:
                yield resolved, selected

    def _resolve(self, segment: Segment | None, offset: Any, mask: Any) -> ResolvedAccess | None:
        """Return the access to one segment after its checks; None if no lane remains."""
        on = self._active(mask)
        if on is not None and not on.any():
            return None
        if segment is None:
            bad = np.ones(self.shape, np.bool_) if on is None else on
            problem = "is out of bounds: the address is not in any buffer"
            self.report("out of bounds", self.action, problem, bad)
            return None
        offsets = offset + self.lane_offsets if self.access.vector else offset
        resolved = ResolvedAccess(self, segment, offset, offsets, on)
        resolved.mask_out_of_bounds()
        resolved.mask_misaligned()
        if resolved.on is not None and not resolved.on.any():
            return None
        resolved.resolve()
        return resolved

    def _active(self, mask: Any) -> Bits | None:
        active = self.frame.active
        if mask is None:
            return None if active is None else spread(active, self.shape)
        bits = mask if active is None else mask & active
        return None if np.all(bits) else spread(bits, self.shape)

    def report(
        self,
        kind: FindingKind,
        access: str,
        problem: str,
        bad: Bits,
        cell: MemoryCell | None = None,
    ) -> None:
        """Report a finding of some lanes, with the numbers of the first one.

        The message is "<access> by <thread> <problem>".
        """
        frame = self.frame
        at = np.unravel_index(int(np.argmax(bad)), self.shape)
        thread = frame.thread(int(frame.threads[at[-1]]))
        count = int(np.count_nonzero(bad))
        text = f"{access} by {thread} {problem}"
        site = self.access.site
        frame.findings.add(kind, site, text, count=count, threads=(thread,), cell=cell)


@dataclass(slots=True)
class ResolvedAccess:
    """The part of an access in one segment.

    Parameters
    ----------
    request : AccessRequest
        The access.
    segment : Segment
        The segment.
    offset : array of int64
        Byte offset of the first lane in one copy of the segment.
    offsets : array of int64
        Byte offset of every lane in one copy of the segment.
    on : array of bool, optional
        Lanes that take part; None means all.
    flat : array of int64
        Byte offset of every lane in the memory of all copies, after :meth:`resolve`.
    """

    request: AccessRequest
    segment: Segment
    offset: Any
    offsets: Any
    on: Bits | None
    flat: Any = None

    @property
    def access(self) -> AccessSpec:
        """The static properties of the access."""
        return self.request.access

    def resolve(self) -> None:
        """Compute the flat offsets; those of lanes that are off are 0."""
        frame, segment = self.request.frame, self.segment
        match segment.space:
            case "global":
                flat = self.offsets
            case "shared":
                flat = self.offsets + frame.block_index * segment.stride
            case "local":
                flat = self.offsets + frame.thread_index * segment.stride
        if self.on is not None:
            flat = where(self.on, spread(flat, self.request.shape), 0)
        self.flat = flat

    def mask_out_of_bounds(self) -> None:
        """Report and mask lanes outside of the buffer."""
        last = self.segment.size - self.access.width
        bad = self._selected((np.asarray(self.offsets) < 0) | (np.asarray(self.offsets) > last))
        if bad is None:
            return
        cell = self.cell_of(bad, self.offsets)
        elements = self.segment.size // self.segment.element
        problem = f"is out of bounds: the buffer has {elements} elements"
        self.request.report("out of bounds", f"{self.request.action} of {cell}", problem, bad, cell)
        self._mask(bad)

    def mask_misaligned(self) -> None:
        """Report misaligned addresses; mask lanes that are misaligned for a single element."""
        access = self.access
        bad = self._selected(np.asarray(self.offset) % access.required_alignment != 0)
        if bad is None:
            return
        cell = self.cell_of(bad, self.offset)
        problem = (
            f"is misaligned: the address is not a multiple of {access.required_alignment} bytes"
        )
        self.request.report("misaligned", f"{self.request.action} of {cell}", problem, bad, cell)
        misaligned = self._selected(np.asarray(self.offset) % access.width != 0)
        if misaligned is not None:
            self._mask(misaligned)

    def _selected(self, bits: Any) -> Bits | None:
        """Return the selected lanes that take part; None if there are none."""
        if not bits.any():
            return None
        bad: Bits = spread(bits, self.request.shape)
        bad = bad if self.on is None else bad & self.on
        return bad if bad.any() else None

    def _mask(self, bad: Bits) -> None:
        self.on = ~bad if self.on is None else self.on & ~bad

    def accessed_cells(self) -> tuple[Any, Any]:
        """Return the accessed cells and the thread that accesses each, as flat arrays."""
        request, segment = self.request, self.segment
        accessing = request.frame.threads if request.receivers is None else request.receivers
        cells = spread(self.flat // segment.granule, request.shape)
        threads = spread(accessing, request.shape)
        if self.on is None:
            cells, threads = cells.reshape(-1), threads.reshape(-1)
        else:
            cells, threads = cells[self.on], threads[self.on]
        count = self.access.width // segment.granule
        return expand(cells, count), repeat(threads, count)

    def count_traffic(self) -> None:
        """Count the memory requests: one per instruction of a wide access or strided lane."""
        frame, access, segment = self.request.frame, self.access, self.segment
        if not frame.checks.traffic or segment.space == "local":
            return
        shape = (access.lanes, frame.count)
        offsets = spread(self.offsets, shape)
        on = None if self.on is None else spread(self.on, shape)
        step = access.instruction_width // access.width
        action = self.request.action
        for first in range(0, access.lanes, step):
            bits = None if on is None else on[first : first + step].any(axis=0)
            addresses = (offsets[first], bits, access.instruction_width)
            frame.traffic.count(access.site, segment.space, action, segment.name, addresses)

    def cell_of(self, bad: Bits, offsets: Any) -> MemoryCell:
        """Return the memory cell of the first of some lanes."""
        at = np.unravel_index(int(np.argmax(bad)), bad.shape)
        return self._cell(int(spread(offsets, bad.shape)[at]))

    def cell_at(self, number: int) -> MemoryCell:
        """Return the memory cell with a number."""
        offset = number * self.segment.granule
        return self._cell(offset % self.segment.stride if self.segment.stride else offset)

    def _cell(self, offset: int) -> MemoryCell:
        segment = self.segment
        return MemoryCell(segment.name, segment.space, offset, segment.element_of(offset))
