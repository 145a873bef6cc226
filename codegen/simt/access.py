"""Checked reads and writes of memory by all active threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .access_resolution import AccessRequest, AccessSpec, Bits, ResolvedAccess
from .arrays import spread, where
from .findings import FindingKind
from .frame import WARP, Frame
from .memory_model import Segment
from .provenance import StatementSite
from .race_detector import Conflict, expand, repeat


def load(request: AccessRequest, address: Any) -> Any:
    """Return the loaded values; lanes that are masked or out of bounds are zero."""
    return _load(request, address, None)


def load_moved(request: AccessRequest, address: Any) -> tuple[Any, Any]:
    """Return the loaded values, and the uninitialized reads among them, without a finding.

    The second result has the shape of the first: numbers as in `Segment.origins`, or None if all
    values are initialized.
    """
    origins: list[Any] = []
    value = _load(request, address, origins)
    found = [(numbers, selected) for numbers, selected in origins if numbers is not None]
    if not found:
        return value, None
    result = np.zeros(request.shape, np.int32)
    for numbers, selected in found:
        result = where(
            spread(True if selected is None else selected, request.shape), numbers, result
        )
    return value, result


def _load(request: AccessRequest, address: Any, origins: list[Any] | None) -> Any:
    fast = _load_local(request, address)
    if fast is not None:
        return fast
    access = request.access
    result: Any = None
    for resolved, selected in request.resolve(address):
        value = resolved.segment.view(access.dtype)[resolved.flat // access.width]
        if resolved.on is not None:
            value = where(resolved.on, value, access.dtype.type(0))
        _record_read(resolved, moved=origins is not None)
        if origins is not None:
            origins.append((_origins(resolved), selected))
        if result is None and selected is None:
            return value
        base = np.zeros(request.shape, access.dtype) if result is None else result
        result = where(spread(selected, request.shape), value, base)
    if result is None:
        return np.zeros((access.lanes, 1) if access.vector else (), access.dtype)[()]
    return result


def _load_local(request: AccessRequest, address: Any) -> Any:
    """Load local memory at the same offset in all threads, without index arrays.

    Returns None for any other access, or if the access has a finding.
    """
    frame, access = request.frame, request.access
    if not isinstance(address, int) or request.mask is not None or access.strided:
        return None
    ((segment, offset, _),) = frame.memory.resolve(address)
    if segment is None or segment.space != "local":
        return None
    last = offset + access.lanes * access.width
    if offset < 0 or last > segment.size or offset % access.required_alignment:
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
    defined = rows[:, first // segment.granule : -(-last // segment.granule)].all(axis=1)
    return bool(defined.all() if frame.active is None else (defined | ~frame.active).all())


def _origins(resolved: ResolvedAccess) -> Any:
    """Return which lanes of a read are uninitialized: numbers as in `Segment.origins`, or None."""
    segment, request = resolved.segment, resolved.request
    if segment.defined is None:
        return None
    cells = spread(resolved.flat // segment.granule, request.shape)
    parts = [cells + k for k in range(resolved.access.width // segment.granule)]
    bad = ~np.logical_and.reduce([segment.defined[part] for part in parts])
    if resolved.on is not None:
        bad = bad & resolved.on
    if not bad.any():
        return None
    found = np.zeros(request.shape, np.int32)
    if segment.origins is not None:
        found = np.maximum.reduce([segment.origins[part] for part in parts])
    if (bad & (found == 0)).any():
        known = request.frame.memory.uninitialized
        cell = resolved.cell_of(bad & (found == 0), resolved.offsets)
        known.append(f"{cell}, which no thread has written, by {resolved.access.site}")
        found = np.where(found == 0, np.int32(len(known) - 1), found)
    return np.where(bad, found, np.int32(0))


def report_uninitialized(
    frame: Frame, site: StatementSite, action: str, origins: Any, on: Any = None
) -> None:
    """Report a use of values that were copied from uninitialized elements.

    Parameters
    ----------
    frame : Frame
        The executing threads.
    site : StatementSite
        The statement that uses the values.
    action : str
        The action of the statement, for the message.
    origins : array of int32
        Numbers as in `Segment.origins`, per lane and thread.
    on : array of bool, optional
        The lanes and threads that take part; None means all active threads.
    """
    active = frame.active if on is None else on
    bad = origins != 0 if active is None else (origins != 0) & active
    if not bad.any():
        return
    at = np.unravel_index(int(np.argmax(bad)), bad.shape)
    thread = frame.thread(int(frame.threads[at[-1]]))
    source = frame.memory.uninitialized[int(origins[at])]
    text = f"{action} by {thread} uses an uninitialized value: a copy of {source}"
    count = int(np.count_nonzero(bad))
    frame.findings.add("uninitialized read", site, text, count=count, threads=(thread,))


def _record_read(resolved: ResolvedAccess, *, moved: bool = False) -> None:
    segment, order = resolved.segment, resolved.request.frame.order
    resolved.count_traffic()
    if segment.shadow is None and segment.defined is None:
        return
    cells, threads = resolved.accessed_cells()
    if segment.shadow is not None:
        conflict = segment.shadow.read(cells, threads, order.next(resolved.access.site))
        _CellAccesses(resolved, cells, threads).report_race(conflict)
    if not moved:
        _check_defined(resolved, cells, threads)


def _check_defined(resolved: ResolvedAccess, cells: Any, threads: Any) -> None:
    if resolved.segment.defined is None:
        return
    bad = np.flatnonzero(~resolved.segment.defined[cells])
    if bad.size:
        problem = "accesses uninitialized memory: no thread has written this element"
        origins = resolved.segment.origins
        source = 0 if origins is None else int(origins[cells[bad[0]]])
        if source:
            text = resolved.request.frame.memory.uninitialized[source]
            problem = f"accesses an uninitialized value: a copy of {text}"
        _CellAccesses(resolved, cells, threads).report("uninitialized read", "read", problem, bad)


def read_rows(
    frame: Frame, site: StatementSite, addresses: Any, lanes: Bits, receivers: Any
) -> Any:
    """Read a row of eight 16-bit elements at the address of every selected lane.

    Parameters
    ----------
    frame : Frame
        The executing threads.
    site : StatementSite
        The statement.
    addresses : array of int64
        Address of each thread.
    lanes : array of bool
        Lanes whose addresses are read.
    receivers : array of int64
        Lane that receives each element of a lane's row, with shape ``(8, 32)``.

    Returns
    -------
    array of uint16
        The rows, with shape ``(threads, 8)``.
    """
    access = AccessSpec(site, np.dtype(np.uint16), 8, vector=True, alignment=16)
    offsets = np.arange(8, dtype=np.int64)[:, None] * 2
    warps = frame.threads.reshape(-1, WARP)[:, :1]
    threads = (warps + receivers[:, None, :]).reshape(8, -1).astype(np.int32)
    request = AccessRequest(frame, access, "read", offsets, lanes, threads)
    value = load(request, spread(addresses, (frame.count,)))
    return np.ascontiguousarray(spread(value, request.shape).T)


def store(request: AccessRequest, address: Any, value: Any, origins: Any = None) -> None:
    """Store the lanes that are active and in bounds.

    ``origins`` are the uninitialized reads among the values, as in `Segment.origins`; storing one
    in a temporary is a copy, storing it elsewhere is a use.
    """
    for resolved, _ in request.resolve(address):
        if _check_writable(resolved):
            _write(resolved, value)
            if origins is not None:
                _write_origins(resolved, origins)


def _write_origins(resolved: ResolvedAccess, origins: Any) -> None:
    segment, request = resolved.segment, resolved.request
    numbers = spread(origins, request.shape)
    on = np.ones(request.shape, np.bool_) if resolved.on is None else resolved.on
    bad = on & (numbers != 0)
    if not segment.temporary or segment.defined is None:
        if bad.any():
            action = f"write of {resolved.cell_of(bad, resolved.offsets)}"
            report_uninitialized(request.frame, resolved.access.site, action, numbers, on)
        return
    count = resolved.access.width // segment.granule
    cells = expand(spread(resolved.flat // segment.granule, request.shape)[bad], count)
    if segment.origins is None:
        segment.origins = np.zeros(segment.defined.shape, np.int32)
    segment.defined[cells] = False
    segment.origins[cells] = repeat(numbers[bad], count)


def _check_writable(resolved: ResolvedAccess) -> bool:
    if resolved.segment.writable:
        return True
    request = resolved.request
    bad = np.ones(request.shape, np.bool_) if resolved.on is None else resolved.on
    cell = resolved.cell_of(bad, resolved.offsets)
    problem = "is not allowed: the buffer is read-only"
    request.report("out of bounds", f"write of {cell}", problem, bad, cell)
    return False


def _write(resolved: ResolvedAccess, value: Any) -> None:
    segment, access, shape = resolved.segment, resolved.access, resolved.request.shape
    index, values = spread(resolved.flat // access.width, shape), spread(value, shape)
    if resolved.on is not None:
        index, values = index[resolved.on], values[resolved.on]
    segment.view(access.dtype)[index] = values
    resolved.count_traffic()
    if segment.shadow is None and segment.defined is None:
        return
    cells, threads = resolved.accessed_cells()
    if segment.defined is not None:
        segment.defined[cells] = True
        if segment.origins is not None:
            segment.origins[cells] = 0
    if segment.shadow is not None:
        order = resolved.request.frame.order
        conflict = segment.shadow.write(cells, threads, order.next(access.site))
        accesses = _CellAccesses(resolved, cells, threads)
        accesses.report_race(conflict)
        accesses.report_duplicate_writes(index, values)


def atomic(request: AccessRequest, address: Any, change: Callable[[Any, int], Any] | None) -> Any:
    """Apply ``change`` to memory one thread after the other; return the old values.

    Without ``change``, memory is only read. Atomic accesses do not race with each other, but they
    race with other accesses.
    """
    frame, access = request.frame, request.access
    old = np.zeros(frame.count, access.dtype)
    for resolved, _ in request.resolve(address):
        if change is not None and not _check_writable(resolved):
            continue
        index = spread(resolved.flat // access.width, (frame.count,))
        on = np.ones(frame.count, np.bool_) if resolved.on is None else resolved.on
        view = resolved.segment.view(access.dtype)
        for thread in np.flatnonzero(on):
            at = int(index[thread])
            old[thread] = view[at]
            if change is not None:
                view[at] = change(view[at], int(thread))
        _record_atomic(resolved, writes=change is not None)
    return old


def _record_atomic(resolved: ResolvedAccess, *, writes: bool) -> None:
    segment, order = resolved.segment, resolved.request.frame.order
    cells, threads = resolved.accessed_cells()
    _check_defined(resolved, cells, threads)
    if writes and segment.defined is not None:
        segment.defined[cells] = True
    if segment.shadow is not None:
        record = segment.shadow.write if writes else segment.shadow.read
        conflict = record(cells, threads, order.next(resolved.access.site), atomic=True)
        _CellAccesses(resolved, cells, threads).report_race(conflict)


@dataclass(frozen=True, slots=True)
class _CellAccesses:
    """The cells of an access, and the thread that accesses each."""

    resolved: ResolvedAccess
    cells: Any
    threads: Any

    def report(self, kind: FindingKind, action: str, problem: str, bad: Any) -> None:
        """Report a finding of some positions, with the numbers of the first one."""
        resolved, at = self.resolved, int(bad[0])
        frame = resolved.request.frame
        thread = frame.thread(int(self.threads[at]))
        cell = resolved.cell_at(int(self.cells[at]))
        text = f"{action} of {cell} by {thread} {problem}"
        site = resolved.access.site
        frame.findings.add(kind, site, text, count=len(bad), threads=(thread,), cell=cell)

    def report_race(self, conflict: Conflict | None) -> None:
        """Report a race with earlier accesses."""
        if conflict is None:
            return
        resolved = self.resolved
        frame, site = resolved.request.frame, resolved.access.site
        other = frame.order.sites.get(int(conflict.serials[0]))
        count = len(conflict.positions)
        if frame.findings.count_known("race", site, other, count):
            return
        at = int(conflict.positions[0])
        cell = resolved.cell_at(int(self.cells[at]))
        later, earlier = (frame.thread(int(t)) for t in (self.threads[at], conflict.threads[0]))
        reason = (
            "no barrier orders the two accesses"
            if later.block == earlier.block
            else "accesses of different thread blocks are not ordered"
        )
        message = (
            f"{resolved.request.action} of {cell} by {later} races with the {conflict.action} "
            f"by {earlier}: {reason}"
        )
        threads = (later, earlier)
        frame.findings.add(
            "race", site, message, count=count, threads=threads, cell=cell, other=other
        )

    def report_duplicate_writes(self, index: Any, values: Any) -> None:
        """Report several threads that write one cell: a race, unless the values are equal."""
        resolved = self.resolved
        shadow, access = resolved.segment.shadow, resolved.access
        if shadow is None:
            return
        duplicates = shadow.duplicate_writes(self.cells, self.threads)
        if not duplicates.size:
            return
        bits = f"u{access.width}"
        stored = resolved.segment.view(access.dtype)[index.reshape(-1)].view(bits)
        same = stored == np.ascontiguousarray(values.reshape(-1)).view(bits)
        per_cell = repeat(same, len(self.cells) // len(same))
        differing = duplicates[~per_cell[duplicates]]
        others = shadow.writer[self.cells]
        if differing.size:
            serials = shadow.written[self.cells[differing]]
            self.report_race(Conflict(differing, others[differing], serials, "write"))
            return
        other = resolved.request.frame.thread(int(others[duplicates[0]]))
        problem = f"is redundant: {other} writes the same value"
        self.report("redundant write", "write", problem, duplicates)
