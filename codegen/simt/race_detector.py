"""Race detection with shadow memory: the last writer and the readers of every memory cell.

Every execution of an access has a serial number. Each thread block and each warp stores the serial
number of its last barrier; accesses with smaller numbers happened before the current accesses of
its threads. Two accesses of one cell by different threads, at least one of them a write, race
unless the earlier one happened before the later one in this sense.

One reader per cell is stored, with the maximal distance between readers (same thread, same warp,
same block, different blocks). Distances in this hierarchy are an ultrametric, so the maximal
distance of any reader from a thread is the larger of the distance of the stored reader and the
distance between readers.

Atomic reads are not recorded: a race of an atomic read with a later plain write is not detected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .provenance import StatementSite

Ints: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.int32]

NO_THREAD: Final = -1
SAME, WARP, BLOCK, GRID = 0, 1, 2, 3
"""Distances of two threads."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Accesses that race with earlier accesses of the same cells.

    Parameters
    ----------
    positions : array of int64
        Positions in the arrays of the later access.
    threads, serials : array of int32
        Thread and serial number of the earlier access at each position.
    action : {"read", "write"}
        The kind of the earlier accesses.
    """

    positions: Ints
    threads: Numbers
    serials: Numbers
    action: Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class _Earlier:
    """Earlier accesses of some cells: action, threads, serial numbers, and maximal distances."""

    action: Literal["read", "write"]
    threads: Numbers
    serials: Numbers
    distance: NDArray[np.int8]


class BarrierOrder:
    """The happens-before order that barriers establish in a launch.

    Parameters
    ----------
    threads : int
        Threads per block, padded to whole warps.
    blocks : int
        Thread blocks of the grid.
    """

    def __init__(self, threads: int, blocks: int) -> None:
        """Start before any barrier."""
        self.per_block = threads
        self.block = np.zeros(blocks, np.int32)
        self.warp = np.zeros(blocks * threads // 32, np.int32)
        self.serial = 0
        self.sites: dict[int, StatementSite] = {}

    def next(self, site: StatementSite) -> int:
        """Return the serial number of a new access of a statement."""
        self.serial += 1
        self.sites[self.serial] = site
        return self.serial

    def pass_block(self, blocks: Ints) -> None:
        """Record a barrier of all threads of the blocks."""
        self.serial += 1
        self.block[blocks] = self.serial
        warps = self.per_block // 32
        self.warp.reshape(-1, warps)[blocks] = self.serial

    def pass_warp(self, warps: Ints) -> None:
        """Record a barrier of all threads of the warps."""
        self.serial += 1
        self.warp[warps] = self.serial

    def distance(self, a: Numbers, b: Numbers) -> NDArray[np.int8]:
        """Return the distances of threads: ``SAME``, ``WARP``, ``BLOCK``, or ``GRID``."""
        level = (a != b).astype(np.int8)
        level += a // 32 != b // 32
        level += a // self.per_block != b // self.per_block
        return level

    def ordered(
        self, distance: NDArray[np.int8], threads: Numbers, serials: Numbers
    ) -> NDArray[np.bool_]:
        """Return whether accesses with these distances and serial numbers happened before now."""
        same = distance == SAME
        warp = (distance <= WARP) & (serials < self.warp[threads // 32])
        block = (distance <= BLOCK) & (serials < self.block[threads // self.per_block])
        return same | warp | block


class ShadowMemory:
    """The last writer, and the readers since then, of every cell of a memory segment.

    Parameters
    ----------
    cells : int
        Number of cells.
    order : BarrierOrder
        The happens-before order of the launch.
    """

    def __init__(self, cells: int, order: BarrierOrder) -> None:
        """Start without any access."""
        self.order = order
        self.writer = np.full(cells, NO_THREAD, np.int32)
        self.written = np.zeros(cells, np.int32)
        self.atomic = np.zeros(cells, np.bool_)
        self.reader = np.full(cells, NO_THREAD, np.int32)
        self.read_at = np.zeros(cells, np.int32)
        self.spread = np.zeros(cells, np.int8)

    def read(
        self, cells: Ints, threads: Numbers, serial: int, *, atomic: bool = False
    ) -> Conflict | None:
        """Record simultaneous reads of cells; return their races with earlier writes."""
        conflict = self._against_writer(cells, threads, atomic=atomic)
        if not atomic:
            self._record_readers(cells, threads, serial)
        return conflict

    def write(
        self, cells: Ints, threads: Numbers, serial: int, *, atomic: bool = False
    ) -> Conflict | None:
        """Record simultaneous writes of cells; return their races with earlier accesses."""
        conflict = self._against_writer(cells, threads, atomic=atomic)
        conflict = conflict or self._against_readers(cells, threads)
        self.writer[cells] = threads
        self.written[cells] = serial
        self.atomic[cells] = atomic
        self.reader[cells] = NO_THREAD
        return conflict

    def duplicate_writes(self, cells: Ints, threads: Numbers) -> Ints:
        """Return the positions of the last write whose cells another thread wrote as well."""
        return np.flatnonzero(self.writer[cells] != threads)

    def _against_writer(self, cells: Ints, threads: Numbers, *, atomic: bool) -> Conflict | None:
        writer = self.writer[cells]
        candidates = (writer != threads) & (writer != NO_THREAD)
        if atomic:
            candidates &= ~self.atomic[cells]
        at = np.flatnonzero(candidates)
        if not at.size:
            return None
        distance = self.order.distance(threads[at], writer[at])
        earlier = _Earlier("write", writer[at], self.written[cells[at]], distance)
        return self._unordered(at, threads[at], earlier)

    def _against_readers(self, cells: Ints, threads: Numbers) -> Conflict | None:
        reader, spread = self.reader[cells], self.spread[cells]
        at = np.flatnonzero((reader != NO_THREAD) & ((reader != threads) | (spread != SAME)))
        if not at.size:
            return None
        distance = np.maximum(self.order.distance(threads[at], reader[at]), spread[at])
        earlier = _Earlier("read", reader[at], self.read_at[cells[at]], distance)
        return self._unordered(at, threads[at], earlier)

    def _unordered(self, at: Ints, threads: Numbers, earlier: _Earlier) -> Conflict | None:
        bad = ~self.order.ordered(earlier.distance, threads, earlier.serials)
        if not bad.any():
            return None
        return Conflict(at[bad], earlier.threads[bad], earlier.serials[bad], earlier.action)

    def _record_readers(self, cells: Ints, threads: Numbers, serial: int) -> None:
        old, spread = self.reader[cells], self.spread[cells]
        distance = np.maximum(self.order.distance(threads, old), spread)
        ordered = self.order.ordered(distance, threads, self.read_at[cells])
        # Only reads that happened before the current read of *this* thread may be dropped; earlier
        # reads of the same thread are among them.
        distance[(old == NO_THREAD) | ordered] = SAME
        self.reader[cells] = threads
        self.read_at[cells] = serial
        np.maximum(distance, self.order.distance(threads, self.reader[cells]), out=distance)
        self.spread[cells] = SAME
        for level in (WARP, BLOCK, GRID):
            reached = distance >= level
            if not reached.any():
                break
            self.spread[cells[reached]] = level


def expand(cells: Ints, count: int) -> Ints:
    """Return ``count`` neighboring cells for each cell, for accesses wider than a cell."""
    if count == 1:
        return cells
    return (cells[:, None] + np.arange(count, dtype=np.int64)).reshape(-1)


def repeat(threads: Any, count: int) -> Any:
    """Repeat the threads of expanded accesses."""
    return threads if count == 1 else np.repeat(threads, count)
