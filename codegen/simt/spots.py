"""Where an access of all active threads goes: segment, offsets, and who is let through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .arrays import spread, where
from .findings import FindingKind, Place
from .frame import Frame
from .memory import Segment
from .shadow import expand, repeat
from .sites import Site
from .traffic import WIDEST

Bits: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Access:
    """What is known of an access before it runs.

    Parameters
    ----------
    site : Site
        The statement.
    dtype : numpy.dtype
        How an element lies in memory.
    lanes : int
        Elements a thread; 1 for a scalar.
    vector : bool
        Whether the value has a lane axis.
    alignment : int
        Bytes that the address of contiguous elements is a multiple of.
    strided : bool
        Whether lanes lie apart, each an access of its own.
    """

    site: Site
    dtype: np.dtype[Any]
    lanes: int = 1
    vector: bool = False
    alignment: int = 1
    strided: bool = False

    @property
    def width(self) -> int:
        """Bytes of one element."""
        return int(self.dtype.itemsize)

    @property
    def chunk(self) -> int:
        """Bytes that one instruction moves for a thread."""
        if self.strided:
            return self.width
        whole = self.lanes * self.width
        return max(self.width, min(whole & -whole, self.alignment & -self.alignment, WIDEST))

    @property
    def wanted(self) -> int:
        """Bytes that the address has to be a multiple of; of an element in any case."""
        return self.width if self.strided else max(self.alignment, self.width)


@dataclass(frozen=True, slots=True)
class Request:
    """One execution of an access by the active threads.

    Parameters
    ----------
    frame : Frame
        Who executes it.
    access : Access
        What it is.
    how : str
        ``read`` or ``written``, for messages.
    steps : array of int64
        Byte offset of every lane from the first.
    mask : array of bool, optional
        Lanes that take part.
    receivers : array of int32, optional
        Threads that the elements are read for, where not for those that give the address.
    """

    frame: Frame
    access: Access
    how: str
    steps: Any = 0
    mask: Any = None
    receivers: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Lanes, where there are, and threads."""
        frame, access = self.frame, self.access
        return (access.lanes, frame.count) if access.vector else (frame.count,)

    def spots(self, address: Any) -> Iterator[tuple[Spot, Any]]:
        """Split by segment: each part with the lanes it is for (None: all)."""
        for segment, offset, mine in self.frame.memory.resolve(address):
            mask = mine if self.mask is None else self.mask
            if mine is not None and self.mask is not None:
                mask = self.mask & mine
            spot = self._spot(segment, offset, mask)
            if spot is not None:
                yield spot, mine

    def _spot(self, segment: Segment | None, offset: Any, mask: Any) -> Spot | None:
        """Find the cells, reporting what lies outside or is crooked; None: nothing is left."""
        on = self._active(mask)
        if on is not None and not on.any():
            return None
        if segment is None:
            bad = np.ones(self.shape, np.bool_) if on is None else on
            self.report("out of bounds", f"an address of no buffer is {self.how}", bad)
            return None
        offsets = offset + self.steps if self.access.vector else offset
        spot = Spot(self, segment, offset, offsets, on)
        spot.keep_inside()
        spot.keep_straight()
        if spot.on is not None and not spot.on.any():
            return None
        spot.settle()
        return spot

    def _active(self, mask: Any) -> Bits | None:
        active = self.frame.active
        if mask is None:
            return None if active is None else spread(active, self.shape)
        bits = mask if active is None else mask & active
        return None if np.all(bits) else spread(bits, self.shape)

    def report(
        self, kind: FindingKind, message: str, bad: Bits, place: Place | None = None
    ) -> None:
        """Report the first of some threads."""
        frame = self.frame
        at = np.unravel_index(int(np.argmax(bad)), self.shape)
        who = frame.thread(int(frame.threads[at[-1]]))
        count = int(np.count_nonzero(bad))
        text = f"{message}, by {who}"
        site = self.access.site
        frame.findings.add(kind, site, text, count=count, threads=(who,), place=place)


@dataclass(slots=True)
class Spot:
    """A request's part in one segment; ``flat`` are byte offsets in all of the segment's copies."""

    request: Request
    segment: Segment
    offset: Any
    offsets: Any
    on: Bits | None
    flat: Any = None

    @property
    def access(self) -> Access:
        """What is accessed."""
        return self.request.access

    def settle(self) -> None:
        """Compute where the bytes lie; lanes that are off go to the first."""
        frame, segment = self.request.frame, self.segment
        match segment.space:
            case "global":
                flat = self.offsets
            case "shared":
                flat = self.offsets + frame.unit * segment.stride
            case "local":
                flat = self.offsets + frame.number * segment.stride
        if self.on is not None:
            flat = where(self.on, spread(flat, self.request.shape), 0)
        self.flat = flat

    def keep_inside(self) -> None:
        """Take out, and report, the lanes that lie outside the buffer."""
        last = self.segment.size - self.access.width
        bad = self._chosen((np.asarray(self.offsets) < 0) | (np.asarray(self.offsets) > last))
        if bad is None:
            return
        place = self.place_of(bad, self.offsets)
        elements = self.segment.size // self.segment.element
        message = f"{place} is {self.request.how} outside the {elements} elements of it"
        self.request.report("out of bounds", message, bad, place)
        self._take_out(bad)

    def keep_straight(self) -> None:
        """Report addresses that are not aligned; take out elements that are not, themselves."""
        access = self.access
        bad = self._chosen(np.asarray(self.offset) % access.wanted != 0)
        if bad is None:
            return
        place = self.place_of(bad, self.offset)
        message = f"{place} is {self.request.how}, its address is no multiple of {access.wanted}"
        self.request.report("misaligned", f"{message} bytes", bad, place)
        broken = self._chosen(np.asarray(self.offset) % access.width != 0)
        if broken is not None:
            self._take_out(broken)

    def _chosen(self, bits: Any) -> Bits | None:
        """Give the lanes of some bits that are on; None: there are none."""
        if not bits.any():
            return None
        bad: Bits = spread(bits, self.request.shape)
        bad = bad if self.on is None else bad & self.on
        return bad if bad.any() else None

    def _take_out(self, bad: Bits) -> None:
        self.on = ~bad if self.on is None else self.on & ~bad

    # ------------------------------------------------------------ what it touches

    def touched(self) -> tuple[Any, Any]:
        """Give the cells that are touched, and the threads that do it, one after the other."""
        request, segment = self.request, self.segment
        who = request.frame.threads if request.receivers is None else request.receivers
        cells = spread(self.flat // segment.granule, request.shape)
        threads = spread(who, request.shape)
        if self.on is None:
            cells, threads = cells.reshape(-1), threads.reshape(-1)
        else:
            cells, threads = cells[self.on], threads[self.on]
        count = self.access.width // segment.granule
        return expand(cells, count), repeat(threads, count)

    def count(self, action: str) -> None:
        """Count its requests: a wide access is several instructions, lanes apart one each."""
        frame, access, segment = self.request.frame, self.access, self.segment
        if not frame.checks.traffic or segment.space == "local":
            return
        shape = (access.lanes, frame.count)
        offsets = spread(self.offsets, shape)
        on = None if self.on is None else spread(self.on, shape)
        step = access.chunk // access.width
        for first in range(0, access.lanes, step):
            bits = None if on is None else on[first : first + step].any(axis=0)
            given = (offsets[first], bits, access.chunk)
            frame.traffic.count(access.site, segment.space, action, segment.name, given)

    # ------------------------------------------------------------ places

    def place_of(self, bad: Bits, offsets: Any) -> Place:
        """Name the place of the first of some lanes."""
        at = np.unravel_index(int(np.argmax(bad)), bad.shape)
        return self._place(int(spread(offsets, bad.shape)[at]))

    def place_at(self, cell: int) -> Place:
        """Name the place of a cell."""
        offset = cell * self.segment.granule
        return self._place(offset % self.segment.stride if self.segment.stride else offset)

    def _place(self, offset: int) -> Place:
        segment = self.segment
        return Place(segment.name, segment.space, offset, segment.element_of(offset))
