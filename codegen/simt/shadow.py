"""Who touched each cell of memory last, and whether anything orders two accesses.

Every execution of an access has a serial number. A block (a warp) keeps the serial of its last
barrier: what has a smaller one happened before everything that its threads do now. Two accesses
of one cell by different threads, one of them a write, race unless the earlier one is ordered
before the later one this way. One representative of the readers is enough, with how far apart the
readers are (one thread, one warp, one block, several blocks): distance in that tree is an
ultrametric, so the farthest reader from any thread is as far as the representative or the spread.

Atomic reads are not remembered: a plain write that follows one, unordered, is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .sites import Site

Ints: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.int32]

NOBODY: Final = -1
SAME, WARP, BLOCK, GRID = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two unordered accesses of one cell: positions in the access, and the earlier ones."""

    positions: Ints
    threads: Numbers
    serials: Numbers
    earlier: str


@dataclass(frozen=True, slots=True)
class _Earlier:
    """Earlier accesses of the cells at hand: how, by whom, when, and how far away at most."""

    how: str
    threads: Numbers
    serials: Numbers
    distance: NDArray[np.int8]


class Order:
    """The barriers that threads of a launch have passed.

    Parameters
    ----------
    threads : int
        Threads of a block, warps padded to 32.
    blocks : int
        Blocks of the grid.
    """

    def __init__(self, threads: int, blocks: int) -> None:
        """Start: nobody has passed any barrier."""
        self.per_block = threads
        self.block = np.zeros(blocks, np.int32)
        self.warp = np.zeros(blocks * threads // 32, np.int32)
        self.serial = 0
        self.sites: dict[int, Site] = {}

    def next(self, site: Site) -> int:
        """Number an access of a statement."""
        self.serial += 1
        self.sites[self.serial] = site
        return self.serial

    def pass_block(self, blocks: Ints) -> None:
        """All threads of these blocks are at a barrier."""
        self.serial += 1
        self.block[blocks] = self.serial
        warps = self.per_block // 32
        self.warp.reshape(-1, warps)[blocks] = self.serial

    def pass_warp(self, warps: Ints) -> None:
        """All threads of these warps are at a barrier."""
        self.serial += 1
        self.warp[warps] = self.serial

    def distance(self, a: Numbers, b: Numbers) -> NDArray[np.int8]:
        """Tell how far threads are apart: the same, one warp, one block, or several blocks."""
        far = (a != b).astype(np.int8)
        far += a // 32 != b // 32
        far += a // self.per_block != b // self.per_block
        return far

    def ordered(
        self, distance: NDArray[np.int8], threads: Numbers, serials: Numbers
    ) -> NDArray[np.bool_]:
        """Tell whether accesses so far away, of those serials, come before the threads' now."""
        same = distance == SAME
        warp = (distance <= WARP) & (serials < self.warp[threads // 32])
        block = (distance <= BLOCK) & (serials < self.block[threads // self.per_block])
        return same | warp | block


class Shadow:
    """The last writer and the readers since, of every cell of one memory.

    Parameters
    ----------
    cells : int
        How many cells.
    order : Order
        The launch's barriers.
    """

    def __init__(self, cells: int, order: Order) -> None:
        """Start: nobody touched anything."""
        self.order = order
        self.writer = np.full(cells, NOBODY, np.int32)
        self.written = np.zeros(cells, np.int32)
        self.atomic = np.zeros(cells, np.bool_)
        self.reader = np.full(cells, NOBODY, np.int32)
        self.read_at = np.zeros(cells, np.int32)
        self.spread = np.zeros(cells, np.int8)

    def read(
        self, cells: Ints, threads: Numbers, serial: int, *, atomic: bool = False
    ) -> Conflict | None:
        """Threads read cells, all at once; give the first writes that they race with."""
        conflict = self._against_writer(cells, threads, atomic=atomic)
        if not atomic:
            self._note_readers(cells, threads, serial)
        return conflict

    def write(
        self, cells: Ints, threads: Numbers, serial: int, *, atomic: bool = False
    ) -> Conflict | None:
        """Threads write cells, all at once; give what they race with."""
        conflict = self._against_writer(cells, threads, atomic=atomic)
        conflict = conflict or self._against_readers(cells, threads)
        self.writer[cells] = threads
        self.written[cells] = serial
        self.atomic[cells] = atomic
        self.reader[cells] = NOBODY
        return conflict

    def doubled(self, cells: Ints, threads: Numbers) -> Ints:
        """Give the positions of a write just made whose cell another thread wrote with it."""
        return np.flatnonzero(self.writer[cells] != threads)

    # ------------------------------------------------------------ the rule

    def _against_writer(self, cells: Ints, threads: Numbers, *, atomic: bool) -> Conflict | None:
        writer = self.writer[cells]
        suspects = (writer != threads) & (writer != NOBODY)
        if atomic:
            suspects &= ~self.atomic[cells]
        at = np.flatnonzero(suspects)
        distance = self.order.distance(threads[at], writer[at])
        earlier = _Earlier("written", writer[at], self.written[cells[at]], distance)
        return self._unordered(at, threads[at], earlier)

    def _against_readers(self, cells: Ints, threads: Numbers) -> Conflict | None:
        reader, spread = self.reader[cells], self.spread[cells]
        at = np.flatnonzero((reader != NOBODY) & ((reader != threads) | (spread != SAME)))
        distance = np.maximum(self.order.distance(threads[at], reader[at]), spread[at])
        earlier = _Earlier("read", reader[at], self.read_at[cells[at]], distance)
        return self._unordered(at, threads[at], earlier)

    def _unordered(self, at: Ints, threads: Numbers, earlier: _Earlier) -> Conflict | None:
        bad = ~self.order.ordered(earlier.distance, threads, earlier.serials)
        if not bad.any():
            return None
        return Conflict(at[bad], earlier.threads[bad], earlier.serials[bad], earlier.how)

    def _note_readers(self, cells: Ints, threads: Numbers, serial: int) -> None:
        old, spread = self.reader[cells], self.spread[cells]
        apart = np.maximum(self.order.distance(threads, old), spread)
        gone = (old == NOBODY) | self.order.ordered(apart, threads, self.read_at[cells])
        # Only reads that are ordered before *this* thread may be forgotten; a single thread's
        # own earlier read is one of them.
        apart[gone] = SAME
        self.reader[cells] = threads
        self.read_at[cells] = serial
        np.maximum(apart, self.order.distance(threads, self.reader[cells]), out=apart)
        self.spread[cells] = SAME
        for level in (WARP, BLOCK, GRID):
            reached = apart >= level
            if not reached.any():
                break
            self.spread[cells[reached]] = level


def expand(cells: Ints, count: int) -> Ints:
    """Give ``count`` neighbouring cells for each: an access wider than a cell."""
    if count == 1:
        return cells
    return (cells[:, None] + np.arange(count, dtype=np.int64)).reshape(-1)


def repeat(threads: Any, count: int) -> Any:
    """Repeat the threads of accesses that were expanded."""
    return threads if count == 1 else np.repeat(threads, count)
