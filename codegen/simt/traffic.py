"""How well memory is used: bank conflicts of shared memory, sectors of global memory.

A warp's access of up to 4 bytes a thread is one request; of 8 bytes two (half warps), of 16 bytes
four (quarter warps), of more several instructions. Shared memory has 32 banks of 4 bytes: a
request takes as many cycles as the busiest bank has different words to give. Global memory moves
sectors of 32 bytes: a request moves every sector it touches. (CUDA C++ Programming Guide,
"Shared Memory" of compute capability 5.x and later, and "Device Memory Accesses".)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .sites import Site

Ints: TypeAlias = NDArray[np.int64]
WARP: Final = 32
BANKS: Final = 32
WORD: Final = 4
SECTOR: Final = 32
WIDEST: Final = 16
_NOWHERE: Final = np.int64(-1 << 40)


@dataclass(slots=True)
class Counter:
    """What one statement asked of one memory, summed over the launch.

    Parameters
    ----------
    site : Site
        The statement.
    space, action : str
        Which memory, read or written.
    buffer : str
        The buffer.
    requests : int
        Requests of warps.
    cycles : int
        Shared: cycles that the requests took; without conflicts as many as requests.
    sectors : int
        Global: sectors moved.
    needed : int
        Global: the fewest sectors that could hold the bytes asked for.
    """

    site: Site
    space: str
    action: str
    buffer: str
    requests: int = 0
    cycles: int = 0
    sectors: int = 0
    needed: int = 0

    @property
    def conflicts(self) -> int:
        """Cycles lost to bank conflicts."""
        return max(self.cycles - self.requests, 0) if self.space == "shared" else 0

    @property
    def excess(self) -> int:
        """Sectors moved beyond what was asked for: uncoalesced accesses."""
        return max(self.sectors - self.needed, 0)


def _rows(addresses: Ints, on: NDArray[np.bool_] | None, size: int) -> tuple[Ints, Ints]:
    """Lay accesses of ``size`` bytes out, a row a request; the second result counts the live."""
    group = max(1, WARP * WORD // max(size, WORD))
    rows = addresses.reshape(-1, group)
    if on is None:
        return rows, np.full(len(rows), group)
    live = on.reshape(-1, group)
    rows = np.where(live, rows, _NOWHERE)
    counts = live.sum(axis=1)
    kept = counts > 0
    return rows[kept], counts[kept]


def _pieces(rows: Ints, size: int, unit: int) -> Ints:
    """Give the units (words, sectors) that each access of a row touches."""
    if size <= unit:
        return rows // unit
    steps = np.arange(0, size, unit, dtype=np.int64)
    return ((rows[:, :, None] + steps) // unit).reshape(len(rows), -1)


def bank_cycles(addresses: Ints, on: NDArray[np.bool_] | None, size: int) -> tuple[int, int]:
    """Count requests and cycles of one access of shared memory by whole warps.

    Parameters
    ----------
    addresses : array of int64
        Byte address of every thread, warps one after the other.
    on : array of bool, optional
        Threads that take part.
    size : int
        Bytes a thread: 1, 2, 4, 8 or 16.

    Examples
    --------
    >>> threads = np.arange(32, dtype=np.int64)
    >>> bank_cycles(threads * 4, None, 4), bank_cycles(threads * 128, None, 4)
    ((1, 1), (1, 32))
    >>> bank_cycles(threads * 16, None, 16)
    (4, 4)
    """
    rows, _ = _rows(addresses, on, size)
    if not len(rows):
        return 0, 0
    words = np.sort(_pieces(rows, size, WORD), axis=1)
    new = np.ones(words.shape, np.bool_)
    new[:, 1:] = words[:, 1:] != words[:, :-1]
    new &= words >= 0
    at = np.broadcast_to(np.arange(len(rows))[:, None], words.shape)[new]
    used = np.bincount(at * BANKS + words[new] % BANKS, minlength=len(rows) * BANKS)
    return len(rows), int(used.reshape(-1, BANKS).max(axis=1).sum())


def sectors(addresses: Ints, on: NDArray[np.bool_] | None, size: int) -> tuple[int, int, int]:
    """Count requests, sectors moved and sectors needed of one access of global memory.

    Examples
    --------
    >>> threads = np.arange(32, dtype=np.int64)
    >>> sectors(threads * 4, None, 4), sectors(threads * 256, None, 4)
    ((1, 4, 4), (1, 32, 4))
    """
    rows, _ = _rows(addresses, on, size)
    if not len(rows):
        return 0, 0, 0
    rows = np.sort(rows, axis=1)
    moved = rows // SECTOR
    live = rows >= 0
    fresh = _changes(moved) & live
    asked = (_changes(rows) & live).sum(axis=1) * size
    return len(rows), int(fresh.sum()), int((-(-asked // SECTOR)).sum())


def _changes(rows: Any) -> Any:
    new = np.ones(rows.shape, np.bool_)
    new[:, 1:] = rows[:, 1:] != rows[:, :-1]
    return new


class Traffic:
    """Counts the requests of every statement."""

    def __init__(self) -> None:
        """Start at zero."""
        self.counters: dict[tuple[int, str, str], Counter] = {}

    def count(
        self,
        site: Site,
        space: str,
        action: str,
        buffer: str,
        access: tuple[Ints, NDArray[np.bool_] | None, int],
    ) -> None:
        """Count one access: addresses, who takes part, bytes a thread."""
        key = (site.ordinal, action, buffer)
        counter = self.counters.get(key)
        if counter is None:
            counter = self.counters[key] = Counter(site, space, action, buffer)
        if space == "shared":
            requests, cycles = bank_cycles(*access)
            counter.cycles += cycles
        else:
            requests, moved, needed = sectors(*access)
            counter.sectors += moved
            counter.needed += needed
        counter.requests += requests
