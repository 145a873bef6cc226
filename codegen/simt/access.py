"""Reads and writes of memory by all active threads at once, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .findings import FindingKind, Place
from .frame import Frame
from .memory import POISON, Segment
from .shadow import Conflict, expand, repeat
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


@dataclass(slots=True)
class _Spot:
    """One access in one segment: offsets, cells and threads that take part."""

    segment: Segment
    offsets: Any
    on: Bits | None
    flat: Any
    threads: Any = None


def load(frame: Frame, access: Access, address: Any, lane_steps: Any, mask: Any) -> Any:
    """Read; lanes that are off, and those outside the buffer, give zero."""
    result: Any = None
    for segment, offset, mine in frame.memory.resolve(address):
        part = _load_segment(frame, access, segment, offset, lane_steps, _joined(mask, mine))
        result = part if result is None else np.where(_for(part, mine), part, result)
    return result


def store(
    frame: Frame, access: Access, address: Any, lane_steps: Any, mask: Any, value: Any
) -> None:
    """Write the lanes that are on and inside the buffer."""
    for segment, offset, mine in frame.memory.resolve(address):
        spot = _spot(frame, access, segment, offset, lane_steps, _joined(mask, mine), "written")
        if spot is not None:
            _write(frame, access, spot, value)


def _joined(mask: Any, mine: Any) -> Any:
    if mine is None:
        return mask
    return mine if mask is None else mask & mine


def _for(part: Any, mine: Any) -> Any:
    return True if mine is None else np.broadcast_to(mine, np.shape(part))


# ---------------------------------------------------------------- where


def _spot(
    frame: Frame,
    access: Access,
    segment: Segment | None,
    offset: Any,
    lane_steps: Any,
    mask: Any,
    how: str,
) -> _Spot | None:
    """Find the cells, reporting what lies outside or is not aligned; None: nothing is left."""
    shape = (access.lanes, frame.count) if access.vector else (frame.count,)
    offsets = offset + lane_steps if access.vector else offset
    on = _active(frame, mask, shape)
    if on is not None and not on.any():
        return None
    if segment is None:
        _report(frame, access, "out of bounds", f"an address of no buffer is {how}", on, shape)
        return None
    on = _inside(frame, access, segment, offsets, on, shape, how)
    on = _aligned(frame, access, segment, offset, on, shape)
    if on is not None and not on.any():
        return None
    flat = _based(frame, segment, offsets)
    if on is not None:
        flat = np.where(on, np.broadcast_to(flat, shape), 0)
    return _Spot(segment, offsets, on, flat)


def _active(frame: Frame, mask: Any, shape: tuple[int, ...]) -> Bits | None:
    if mask is None:
        return None if frame.active is None else np.broadcast_to(frame.active, shape)
    bits = mask if frame.active is None else mask & frame.active
    return None if np.all(bits) else np.broadcast_to(bits, shape)


def _based(frame: Frame, segment: Segment, offsets: Any) -> Any:
    """Give offsets in the segment's memory, where each block or thread has its copy."""
    match segment.space:
        case "global":
            return offsets
        case "shared":
            return offsets + frame.unit * segment.stride
        case "local":
            return offsets + frame.number * segment.stride


def _inside(
    frame: Frame,
    access: Access,
    segment: Segment,
    offsets: Any,
    on: Bits | None,
    shape: tuple[int, ...],
    how: str,
) -> Bits | None:
    if isinstance(offsets, int):
        outside: Any = not 0 <= offsets <= segment.size - access.width
    else:
        outside = (offsets < 0) | (offsets > segment.size - access.width)
    if not np.any(outside):
        return on
    bad = np.broadcast_to(outside, shape)
    bad = bad if on is None else bad & on
    if bad.any():
        elements = segment.size // segment.element
        message = f"{how} outside the {elements} elements of it"
        if how == "written" and not segment.writable:
            message = f"{message}, which is read-only"
        _report(frame, access, "out of bounds", message, bad, shape, (segment, offsets))
    on = np.ones(shape, np.bool_) if on is None else on
    return on & ~bad


def _aligned(
    frame: Frame,
    access: Access,
    segment: Segment,
    offset: Any,
    on: Bits | None,
    shape: tuple[int, ...],
) -> Bits | None:
    """Check the address of contiguous elements; an element itself has to be aligned as well."""
    wanted = access.width if access.strided else max(access.alignment, access.width)
    crooked = (offset % wanted) != 0
    if not np.any(crooked):
        return on
    bad = np.broadcast_to(crooked, shape)
    bad = bad if on is None else bad & on
    if not bad.any():
        return on
    message = f"the address is no multiple of {wanted} bytes"
    _report(frame, access, "misaligned", message, bad, shape, (segment, offset))
    broken = np.broadcast_to((offset % access.width) != 0, shape)
    return ~broken if on is None else on & ~broken


# ---------------------------------------------------------------- reading


def _load_segment(
    frame: Frame,
    access: Access,
    segment: Segment | None,
    offset: Any,
    lane_steps: Any,
    mask: Any,
) -> Any:
    if segment is not None and segment.space == "local" and isinstance(offset, int):
        fast = _load_local(frame, access, segment, offset, mask)
        if fast is not None:
            return fast
    spot = _spot(frame, access, segment, offset, lane_steps, mask, "read")
    if spot is None:
        shape = (access.lanes, 1) if access.vector else ()
        return np.zeros(shape, access.dtype)[()]
    view = spot.segment.view(access.dtype)
    value = view[spot.flat // access.width]
    if spot.on is not None:
        value = np.where(spot.on, value, access.dtype.type(0))
    _note_read(frame, access, spot)
    return value


def _load_local(frame: Frame, access: Access, segment: Segment, offset: int, mask: Any) -> Any:
    """Read a thread's own memory at one offset for all: no index arrays are needed."""
    last = offset + access.lanes * access.width
    plain = mask is None and not access.strided
    if not plain or offset < 0 or last > segment.size or offset % access.alignment:
        return None
    if offset % access.width or segment.stride % access.width:
        return None
    if segment.defined is not None:
        rows = segment.defined.reshape(frame.count, -1)
        known = rows[:, offset // segment.granule : -(-last // segment.granule)].all(axis=1)
        if frame.active is not None:
            known = known | ~frame.active
        if not known.all():
            return None
    rows = segment.view(access.dtype).reshape(frame.count, -1)
    at = offset // access.width
    if access.vector:
        return rows[:, at : at + access.lanes].T.copy()
    return rows[:, at].copy()


def _note_read(frame: Frame, access: Access, spot: _Spot) -> None:
    segment = spot.segment
    if frame.checks.traffic and segment.space != "local":
        _count(frame, access, spot, "read")
    if segment.shadow is None and segment.defined is None:
        return
    cells, threads = _touched(frame, access, spot)
    if segment.shadow is not None:
        conflict = segment.shadow.read(cells, threads, frame.order.next(access.site))
        if conflict is not None:
            _report_race(frame, access, segment, conflict, cells, threads, "read")
    _check_defined(frame, access, segment, cells, threads)


def _check_defined(
    frame: Frame, access: Access, segment: Segment, cells: Any, threads: Any
) -> None:
    if segment.defined is None:
        return
    known = segment.defined[cells]
    if known.all():
        return
    bad = np.flatnonzero(~known)
    _report_cell(
        frame, access, "uninitialized read", "read before anything was written there",
        (segment, int(cells[bad[0]])), int(threads[bad[0]]), len(bad),
    )  # fmt: skip


def read_rows(frame: Frame, site: Site, addresses: Any, lanes: Bits, receivers: Any) -> Any:
    """Read eight 16-bit elements at the addresses of some lanes, received by others.

    Parameters
    ----------
    addresses : array of int64
        One a thread.
    lanes : array of bool
        Whose address is used.
    receivers : array of int64
        The lane that receives each element of a lane's row: ``(8, 32)``.
    """
    access = Access(site, np.dtype(np.uint16), 8, vector=True, alignment=16)
    steps = np.arange(8, dtype=np.int64)[:, None] * 2
    found = np.zeros((8, frame.count), np.uint16)
    warps = frame.threads.reshape(-1, 32)[:, :1]
    threads = (warps + receivers[:, None, :]).reshape(8, -1).astype(np.int32)
    for segment, offset, mine in frame.memory.resolve(np.broadcast_to(addresses, (frame.count,))):
        spot = _spot(frame, access, segment, offset, steps, _joined(lanes, mine), "read")
        if spot is None:
            continue
        spot.threads = threads
        value = spot.segment.view(access.dtype)[spot.flat // 2]
        on = True if spot.on is None else spot.on
        found = np.where(on, value, found)
        _note_read(frame, access, spot)
    return np.ascontiguousarray(found.T)


# ---------------------------------------------------------------- writing


def _write(frame: Frame, access: Access, spot: _Spot, value: Any) -> None:
    segment = spot.segment
    if not segment.writable:
        shape = (access.lanes, frame.count) if access.vector else (frame.count,)
        message = "written, but it is read-only"
        _report(frame, access, "out of bounds", message, spot.on, shape, (segment, spot.offsets))
        return
    shape = (access.lanes, frame.count) if access.vector else (frame.count,)
    index = np.broadcast_to(spot.flat // access.width, shape)
    values = np.broadcast_to(value, shape)
    if spot.on is not None:
        index, values = index[spot.on], values[spot.on]
    view = segment.view(access.dtype)
    view[index] = values
    if frame.checks.traffic and segment.space != "local":
        _count(frame, access, spot, "write")
    if segment.shadow is None and segment.defined is None:
        return
    cells, threads = _touched(frame, access, spot)
    if segment.defined is not None:
        segment.defined[cells] = True
    if segment.shadow is not None:
        conflict = segment.shadow.write(cells, threads, frame.order.next(access.site))
        if conflict is not None:
            _report_race(frame, access, segment, conflict, cells, threads, "written")
        _check_doubled(frame, access, segment, cells, threads, (index, values))


def _check_doubled(
    frame: Frame,
    access: Access,
    segment: Segment,
    cells: Any,
    threads: Any,
    wrote: tuple[Any, Any],
) -> None:
    """Report threads that write one cell together: a race, unless they write the same."""
    shadow = segment.shadow
    if shadow is None:
        return
    doubled = shadow.doubled(cells, threads)
    if not doubled.size:
        return
    index, values = (x.reshape(-1) for x in wrote)
    kept = segment.view(access.dtype)[index]
    same = kept.view(f"u{access.width}") == np.ascontiguousarray(values).view(f"u{access.width}")
    per_cell = repeat(same, len(cells) // len(same))
    others = shadow.writer[cells]
    differing = doubled[~per_cell[doubled]]
    if differing.size:
        at = differing[:1]
        found = Conflict(
            np.repeat(at, differing.size), others[at].repeat(differing.size),
            shadow.written[cells[at]], "written",
        )  # fmt: skip
        _report_race(frame, access, segment, found, cells, threads, "written")
        return
    at = int(doubled[0])
    message = f"also written, with the same value, by {frame.thread(int(others[at]))}"
    _report_cell(
        frame, access, "redundant write", message,
        (segment, int(cells[at])), int(threads[at]), len(doubled),
    )  # fmt: skip


# ---------------------------------------------------------------- bookkeeping


def _touched(frame: Frame, access: Access, spot: _Spot) -> tuple[Any, Any]:
    """Give the cells that are touched, and by whom, one after the other."""
    shape = (access.lanes, frame.count) if access.vector else (frame.count,)
    granule = spot.segment.granule
    cells = np.broadcast_to(spot.flat // granule, shape)
    who = frame.threads if spot.threads is None else spot.threads
    threads = np.broadcast_to(who, shape)
    if spot.on is not None:
        cells, threads = cells[spot.on], threads[spot.on]
    else:
        cells, threads = cells.reshape(-1), threads.reshape(-1)
    count = access.width // granule
    return expand(cells, count), repeat(threads, count)


def _count(frame: Frame, access: Access, spot: _Spot, action: str) -> None:
    """Count the requests: a wide access is several instructions, each lane apart its own."""
    segment = spot.segment
    lanes = access.chunk // access.width
    offsets = np.broadcast_to(spot.offsets, (access.lanes, frame.count))
    on = None if spot.on is None else np.broadcast_to(spot.on, offsets.shape)
    for first in range(0, access.lanes, lanes):
        bits = None if on is None else on[first : first + lanes].any(axis=0)
        given = (offsets[first], bits, access.chunk)
        frame.traffic.count(access.site, segment.space, action, segment.name, given)


def _report(
    frame: Frame,
    access: Access,
    kind: FindingKind,
    message: str,
    bad: Bits | None,
    shape: tuple[int, ...],
    where: tuple[Segment, Any] | None = None,
) -> None:
    bits = np.ones(shape, np.bool_) if bad is None else bad
    at = np.unravel_index(int(np.argmax(bits)), shape)
    who = frame.thread(int(frame.threads[at[-1]]))
    place = None
    if where is not None:
        segment, offsets = where
        wide = np.broadcast_to(offsets, shape)
        offset = int(wide[at])
        place = Place(segment.name, segment.space, offset, segment.element_of(offset))
        message = (
            f"{place} is {message} by {who}"
            if kind != "misaligned"
            else (f"{place}: {message}, for {who}")
        )
    count = int(np.count_nonzero(bits))
    frame.findings.add(kind, access.site, message, count=count, threads=(who,), place=place)


def _place(segment: Segment, cell: int) -> Place:
    offset = cell * segment.granule
    if segment.stride:
        offset %= segment.stride
    return Place(segment.name, segment.space, offset, segment.element_of(offset))


def _report_cell(
    frame: Frame,
    access: Access,
    kind: FindingKind,
    message: str,
    where: tuple[Segment, int],
    thread: int,
    count: int,
) -> None:
    who, place = frame.thread(thread), _place(*where)
    text = f"{place} is {message}" + ("" if kind == "redundant write" else f", by {who}")
    frame.findings.add(kind, access.site, text, count=count, threads=(who,), place=place)


def _report_race(
    frame: Frame,
    access: Access,
    segment: Segment,
    conflict: Conflict,
    cells: Any,
    threads: Any,
    how: str,
) -> None:
    other = frame.order.sites.get(int(conflict.serials[0]))
    count = len(conflict.positions)
    if frame.findings.known("race", access.site, other, count):
        return
    at = int(conflict.positions[0])
    place = _place(segment, int(cells[at]))
    mine, theirs = frame.thread(int(threads[at])), frame.thread(int(conflict.threads[0]))
    orders = "no barrier" if mine.block == theirs.block else "nothing, they are of two blocks,"
    message = f"{place} is {how} by {mine} and {conflict.earlier} by {theirs}; {orders} orders them"
    frame.findings.add(
        "race", access.site, message, count=count, threads=(mine, theirs), place=place, other=other
    )


def poison(dtype: np.dtype[Any]) -> Any:
    """Give what unwritten memory reads as."""
    return np.full(dtype.itemsize, POISON, np.uint8).view(dtype)[0]


# ---------------------------------------------------------------- atomics


def atomic(
    frame: Frame, access: Access, address: Any, change: Callable[[Any, int], Any] | None
) -> Any:
    """Read, and write what ``change`` makes of it, one thread after the other; give the old.

    Atomic accesses do not race with each other, but with all others they do.
    """
    old = np.zeros(frame.count, access.dtype)
    how = "read" if change is None else "written"
    for segment, offset, mine in frame.memory.resolve(address):
        spot = _spot(frame, access, segment, offset, 0, mine, how)
        if spot is None:
            continue
        index = np.broadcast_to(spot.flat // access.width, (frame.count,))
        on = np.ones(frame.count, np.bool_) if spot.on is None else spot.on
        view = spot.segment.view(access.dtype)
        for thread in np.flatnonzero(on):
            at = int(index[thread])
            old[thread] = view[at]
            if change is not None:
                view[at] = change(view[at], int(thread))
        _note_atomic(frame, access, spot, writes=change is not None)
    return old


def _note_atomic(frame: Frame, access: Access, spot: _Spot, *, writes: bool) -> None:
    segment = spot.segment
    cells, threads = _touched(frame, access, spot)
    _check_defined(frame, access, segment, cells, threads)
    if writes and segment.defined is not None:
        segment.defined[cells] = True
    if segment.shadow is None:
        return
    serial = frame.order.next(access.site)
    touch = segment.shadow.write if writes else segment.shadow.read
    conflict = touch(cells, threads, serial, atomic=True)
    if conflict is not None:
        how = "written" if writes else "read"
        _report_race(frame, access, segment, conflict, cells, threads, how)
