"""Memory traffic: bank conflicts of shared memory, and sectors of global memory.

An access of a warp with up to 4 bytes per thread is one request, with 8 bytes two requests (half
warps), and with 16 bytes four requests (quarter warps); wider accesses are several instructions.
Shared memory has 32 banks of 4 bytes. A request takes as many cycles as the maximal number of
different words that it accesses in one bank. Global memory is transferred in sectors of 32 bytes; a
request transfers every sector that it accesses. (CUDA C++ Programming Guide, "Shared Memory" of
compute capability 5.x and later, and "Device Memory Accesses".)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .provenance import StatementSite

Ints: TypeAlias = NDArray[np.int64]
WARP: Final = 32
BANKS: Final = 32
WORD: Final = 4
SECTOR: Final = 32
WIDEST: Final = 16
KNOWN: Final = 4096
"""The number of patterns of addresses whose counts a launch keeps."""

_NO_ADDRESS: Final = np.int64(-1 << 40)


@dataclass(slots=True)
class Counter:
    """The requests of one statement to one buffer, summed over the launch.

    Parameters
    ----------
    site : StatementSite
        The statement.
    space, action : str
        The memory, ``shared`` or ``global``; ``read`` or ``write``.
    buffer : str
        Name of the buffer.
    requests : int
        Number of requests of warps.
    cycles : int
        For shared memory: cycles of the requests; equal to ``requests`` without conflicts.
    sectors : int
        For global memory: transferred sectors.
    needed : int
        For global memory: the minimal number of sectors that can hold the requested bytes.
    """

    site: StatementSite
    space: str
    action: str
    buffer: str
    requests: int = 0
    cycles: int = 0
    sectors: int = 0
    needed: int = 0

    @property
    def conflicts(self) -> int:
        """The number of additional cycles caused by bank conflicts."""
        return max(self.cycles - self.requests, 0) if self.space == "shared" else 0

    @property
    def excess(self) -> int:
        """The number of sectors beyond the minimum, caused by uncoalesced accesses."""
        return max(self.sectors - self.needed, 0)


def _rows(addresses: Ints, on: NDArray[np.bool_] | None, size: int) -> tuple[Ints, Ints]:
    """Return the addresses with one row per request, and the number of active threads per row."""
    group = max(1, WARP * WORD // max(size, WORD))
    rows = addresses.reshape(-1, group)
    if on is None:
        return rows, np.full(len(rows), group)
    active = on.reshape(-1, group)
    rows = np.where(active, rows, _NO_ADDRESS)
    counts = active.sum(axis=1)
    nonempty = counts > 0
    return rows[nonempty], counts[nonempty]


def _pieces(rows: Ints, size: int, unit: int) -> Ints:
    """Return the units (words or sectors) that the accesses of each row contain."""
    if size <= unit:
        return rows // unit
    steps = np.arange(0, size, unit, dtype=np.int64)
    return ((rows[:, :, None] + steps) // unit).reshape(len(rows), -1)


def bank_cycles(addresses: Ints, on: NDArray[np.bool_] | None, size: int) -> tuple[int, int]:
    """Return the requests and cycles of one access of shared memory by whole warps.

    Parameters
    ----------
    addresses : array of int64
        Byte address of every thread, warp by warp.
    on : array of bool, optional
        Active threads; None means all.
    size : int
        Bytes per thread: 1, 2, 4, 8 or 16.

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
    """Return the requests, transferred sectors and needed sectors of a global memory access.

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
    active = rows >= 0
    transferred = _changes(rows // SECTOR) & active
    requested = (_changes(rows) & active).sum(axis=1) * size
    return len(rows), int(transferred.sum()), int((-(-requested // SECTOR)).sum())


def _changes(rows: Any) -> Any:
    new = np.ones(rows.shape, np.bool_)
    new[:, 1:] = rows[:, 1:] != rows[:, :-1]
    return new


class Traffic:
    """The memory requests of every statement of a launch."""

    def __init__(self) -> None:
        """Start at zero."""
        self.counters: dict[tuple[int, str, str], Counter] = {}
        self._known: dict[tuple[object, ...], tuple[int, ...]] = {}

    def count(
        self,
        site: StatementSite,
        space: str,
        action: str,
        buffer: str,
        access: tuple[Ints, NDArray[np.bool_] | None, int],
    ) -> None:
        """Count one access, given as addresses, mask of active threads, and bytes per thread."""
        key = (site.ordinal, action, buffer)
        counter = self.counters.get(key)
        if counter is None:
            counter = self.counters[key] = Counter(site, space, action, buffer)
        if space == "shared":
            requests, cycles = self._counted(bank_cycles, *access)
            counter.cycles += cycles
        else:
            requests, transferred, needed = self._counted(sectors, *access)
            counter.sectors += transferred
            counter.needed += needed
        counter.requests += requests

    def _counted(
        self,
        count: Callable[[Ints, NDArray[np.bool_] | None, int], tuple[int, ...]],
        addresses: Ints,
        on: NDArray[np.bool_] | None,
        size: int,
    ) -> tuple[int, ...]:
        """Count an access, once for all accesses that differ by a multiple of the sector size.

        Such an offset keeps the sectors, and moves all words by the same number of banks.
        """
        first = addresses[0]
        active = None if on is None else on.tobytes()
        key = count, size, int(first) % SECTOR, (addresses - first).tobytes(), active
        found = self._known.get(key)
        if found is None:
            if len(self._known) == KNOWN:
                self._known.clear()
            found = self._known[key] = count(addresses, on, size)
        return found
