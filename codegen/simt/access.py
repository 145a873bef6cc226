"""Reads and writes of memory by all active threads at once, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import spread, where
from .findings import FindingKind
from .frame import WARP, Frame
from .memory import Segment
from .shadow import Conflict, repeat
from .sites import Site
from .spots import Access, Bits, Request, Spot

# ---------------------------------------------------------------- reading


def load(request: Request, address: Any) -> Any:
    """Read; lanes that are off, and those outside the buffer, give zero."""
    fast = _load_local(request, address)
    if fast is not None:
        return fast
    access = request.access
    result: Any = None
    for spot, mine in request.spots(address):
        value = spot.segment.view(access.dtype)[spot.flat // access.width]
        if spot.on is not None:
            value = where(spot.on, value, access.dtype.type(0))
        _note_read(spot)
        if result is None and mine is None:
            return value
        base = np.zeros(request.shape, access.dtype) if result is None else result
        result = where(spread(mine, request.shape), value, base)
    if result is None:
        return np.zeros((access.lanes, 1) if access.vector else (), access.dtype)[()]
    return result


def _load_local(request: Request, address: Any) -> Any:
    """Read a thread's own memory at one offset for all: no index arrays are needed.

    None where that is not what is asked for, or something is to be reported.
    """
    frame, access = request.frame, request.access
    if not isinstance(address, int) or request.mask is not None or access.strided:
        return None
    ((segment, offset, _),) = frame.memory.resolve(address)
    if segment is None or segment.space != "local":
        return None
    last = offset + access.lanes * access.width
    if offset < 0 or last > segment.size or offset % access.wanted:
        return None
    if segment.stride % access.width or not _all_defined(frame, segment, offset, last):
        return None
    rows = segment.view(access.dtype).reshape(frame.count, -1)
    at = offset // access.width
    return rows[:, at : at + access.lanes].T.copy() if access.vector else rows[:, at].copy()


def _all_defined(frame: Frame, segment: Segment, first: int, last: int) -> bool:
    if segment.defined is None:
        return True
    rows = segment.defined.reshape(frame.count, -1)
    known = rows[:, first // segment.granule : -(-last // segment.granule)].all(axis=1)
    return bool(known.all() if frame.active is None else (known | ~frame.active).all())


def _note_read(spot: Spot) -> None:
    segment, order = spot.segment, spot.request.frame.order
    spot.count("read")
    if segment.shadow is None and segment.defined is None:
        return
    cells, threads = spot.touched()
    if segment.shadow is not None:
        conflict = segment.shadow.read(cells, threads, order.next(spot.access.site))
        _Touched(spot, cells, threads).race(conflict)
    _check_defined(spot, cells, threads)


def _check_defined(spot: Spot, cells: Any, threads: Any) -> None:
    if spot.segment.defined is None:
        return
    bad = np.flatnonzero(~spot.segment.defined[cells])
    if bad.size:
        message = "is read before anything was written there"
        _Touched(spot, cells, threads).report("uninitialized read", message, bad)


def read_rows(frame: Frame, site: Site, addresses: Any, lanes: Bits, receivers: Any) -> Any:
    """Read eight 16-bit elements at the addresses of some lanes, received by others.

    Parameters
    ----------
    frame : Frame
        Who reads.
    site : Site
        The statement.
    addresses : array of int64
        One a thread.
    lanes : array of bool
        Whose address is used.
    receivers : array of int64
        The lane that receives each element of a lane's row: ``(8, 32)``.

    Returns
    -------
    array of uint16
        ``(threads, 8)``.
    """
    access = Access(site, np.dtype(np.uint16), 8, vector=True, alignment=16)
    steps = np.arange(8, dtype=np.int64)[:, None] * 2
    warps = frame.threads.reshape(-1, WARP)[:, :1]
    threads = (warps + receivers[:, None, :]).reshape(8, -1).astype(np.int32)
    request = Request(frame, access, "read", steps, lanes, threads)
    value = load(request, spread(addresses, (frame.count,)))
    return np.ascontiguousarray(spread(value, request.shape).T)


# ---------------------------------------------------------------- writing


def store(request: Request, address: Any, value: Any) -> None:
    """Write the lanes that are on and inside the buffer."""
    for spot, _ in request.spots(address):
        if _may_write(spot):
            _write(spot, value)


def _may_write(spot: Spot) -> bool:
    if spot.segment.writable:
        return True
    bad = np.ones(spot.request.shape, np.bool_) if spot.on is None else spot.on
    place = spot.place_of(bad, spot.offsets)
    spot.request.report("out of bounds", f"{place} is written, but it is read-only", bad, place)
    return False


def _write(spot: Spot, value: Any) -> None:
    segment, access, shape = spot.segment, spot.access, spot.request.shape
    index, values = spread(spot.flat // access.width, shape), spread(value, shape)
    if spot.on is not None:
        index, values = index[spot.on], values[spot.on]
    segment.view(access.dtype)[index] = values
    spot.count("write")
    if segment.shadow is None and segment.defined is None:
        return
    cells, threads = spot.touched()
    if segment.defined is not None:
        segment.defined[cells] = True
    if segment.shadow is not None:
        order = spot.request.frame.order
        conflict = segment.shadow.write(cells, threads, order.next(access.site))
        touched = _Touched(spot, cells, threads)
        touched.race(conflict)
        touched.doubled(index, values)


# ---------------------------------------------------------------- atomics


def atomic(request: Request, address: Any, change: Callable[[Any, int], Any] | None) -> Any:
    """Read, and write what ``change`` makes of it, one thread after the other; give the old.

    Atomic accesses do not race with each other, but with all others they do.
    """
    frame, access = request.frame, request.access
    old = np.zeros(frame.count, access.dtype)
    for spot, _ in request.spots(address):
        if change is not None and not _may_write(spot):
            continue
        index = spread(spot.flat // access.width, (frame.count,))
        on = np.ones(frame.count, np.bool_) if spot.on is None else spot.on
        view = spot.segment.view(access.dtype)
        for thread in np.flatnonzero(on):
            at = int(index[thread])
            old[thread] = view[at]
            if change is not None:
                view[at] = change(view[at], int(thread))
        _note_atomic(spot, writes=change is not None)
    return old


def _note_atomic(spot: Spot, *, writes: bool) -> None:
    segment, order = spot.segment, spot.request.frame.order
    cells, threads = spot.touched()
    _check_defined(spot, cells, threads)
    if writes and segment.defined is not None:
        segment.defined[cells] = True
    if segment.shadow is not None:
        touch = segment.shadow.write if writes else segment.shadow.read
        conflict = touch(cells, threads, order.next(spot.access.site), atomic=True)
        _Touched(spot, cells, threads).race(conflict)


# ---------------------------------------------------------------- findings


@dataclass(frozen=True, slots=True)
class _Touched:
    """The cells that an access touched, and by whom."""

    spot: Spot
    cells: Any
    threads: Any

    def report(self, kind: FindingKind, message: str, bad: Any) -> None:
        """Report the first of some positions."""
        spot, at = self.spot, int(bad[0])
        frame = spot.request.frame
        who, place = frame.thread(int(self.threads[at])), spot.place_at(int(self.cells[at]))
        text = f"{place} {message}, by {who}"
        site = spot.access.site
        frame.findings.add(kind, site, text, count=len(bad), threads=(who,), place=place)

    def race(self, conflict: Conflict | None) -> None:
        """Report a race with earlier accesses."""
        if conflict is None:
            return
        spot = self.spot
        frame, site = spot.request.frame, spot.access.site
        other = frame.order.sites.get(int(conflict.serials[0]))
        count = len(conflict.positions)
        if frame.findings.known("race", site, other, count):
            return
        at = int(conflict.positions[0])
        place = spot.place_at(int(self.cells[at]))
        mine, theirs = (frame.thread(int(t)) for t in (self.threads[at], conflict.threads[0]))
        orders = "no barrier" if mine.block == theirs.block else "nothing, they are of two blocks,"
        message = (
            f"{place} is {spot.request.how} by {mine} and {conflict.earlier} by {theirs}; "
            f"{orders} orders them"
        )
        threads = (mine, theirs)
        frame.findings.add(
            "race", site, message, count=count, threads=threads, place=place, other=other
        )

    def doubled(self, index: Any, values: Any) -> None:
        """Report threads that write one cell together: a race, unless they write the same."""
        spot = self.spot
        shadow, access = spot.segment.shadow, spot.access
        if shadow is None:
            return
        doubled = shadow.doubled(self.cells, self.threads)
        if not doubled.size:
            return
        bits = f"u{access.width}"
        kept = spot.segment.view(access.dtype)[index.reshape(-1)].view(bits)
        same = kept == np.ascontiguousarray(values.reshape(-1)).view(bits)
        per_cell = repeat(same, len(self.cells) // len(same))
        differing = doubled[~per_cell[doubled]]
        others = shadow.writer[self.cells]
        if differing.size:
            serials = shadow.written[self.cells[differing]]
            self.race(Conflict(differing, others[differing], serials, "written"))
            return
        twin = spot.request.frame.thread(int(others[doubled[0]]))
        self.report("redundant write", f"is also written, with the same value by {twin}", doubled)
