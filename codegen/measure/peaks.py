"""Peak rates of this machine: the roof of the roofline, measured once and cached on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from ...target.host import (
    available_threads,
    last_level_bytes,
    machine_facts,
    second_level_bytes,
    with_level,
)
from ...target.target import Target
from ..build.build_objects import versions
from ..build.object_cache import DiskCache
from ..build.worker_pool import CancelToken
from ..sandbox.peaks_process import peak_rates
from .measurement_lock import exclusive_measurement

_MEMORY_FACTOR = 4
"""The size of the memory that is read, in last-level caches."""

_LARGEST = 512 << 20
"""The largest number of bytes that are read; and at most an eighth of the memory."""

_SHARED = 32 << 20
"""The largest number of bytes that are read from a last-level cache, which machines may share."""

_FACTS = ("processor", "cores", "governor", "last_level_cache", "memory")


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the memory hierarchy: its capacity for all threads, and bytes per nanosecond.

    The capacity of the memory is 0, for unlimited.
    """

    name: str
    capacity: int
    gbytes: float


@dataclass(frozen=True, slots=True)
class Peaks:
    """The peak rates of a number of threads: operations per nanosecond, and levels from L2 on.

    ``gflops`` counts multiply-adds on 32-bit floats as two operations.
    """

    instruction: str
    threads: int
    gflops: float
    levels: tuple[Level, ...]


def machine_peaks(
    target: Target,
    threads: int = 0,
    *,
    again: bool = False,
    cache: DiskCache | None = None,
    report: Callable[[float, str], None] | None = None,
    cancel: CancelToken | None = None,
) -> Peaks:
    """Return the peak rates of this machine, measured in a sandbox unless they are cached.

    Parameters
    ----------
    target : Target
        A CPU that this machine can run code for.
    threads : int
        The number of threads; 0 means all.
    again : bool
        True to measure cached rates again, for example those of a machine that was busy; the
        higher ones are the peaks.
    cache : DiskCache, optional
        The cache; by default the user's.
    report : callable, optional
        The progress callback, called only if the rates are measured.
    cancel : CancelToken, optional
        A token that stops the measurement.

    Raises
    ------
    RunError
        If the measurement fails or is canceled.
    """
    target, threads = with_level(target), threads or target.threads or available_threads()
    cache = cache or DiskCache()
    facts = {name: value for name, value in machine_facts().items() if name in _FACTS}
    key = cache.key(
        b"peaks-1", json.dumps([facts, versions(), *map(str, (target.features, threads))]).encode()
    )
    stored = cache.get(key)
    known = None if stored is None else _from_json(json.loads(stored))
    if known is not None and not again:
        return known
    (report or _ignore)(-1.0, "measuring the peak rates of this machine")
    names, capacities, sizes = zip(*_levels(threads), strict=True)
    with exclusive_measurement(cancel) as alone:
        found = peak_rates(target, threads, sizes, cancel=cancel)
    # A busy machine may delay the reads of a level; it is not slower than the levels below it.
    rates = [max(found.bytes[k:]) / 1e9 for k in range(len(names))]
    levels = tuple(map(Level, names, capacities, rates))
    peaks = _highest(Peaks(found.instruction, threads, found.operations / 1e9, levels), known)
    if alone:
        cache.put(key, json.dumps(asdict(peaks)).encode())
    return peaks


def _highest(peaks: Peaks, known: Peaks | None) -> Peaks:
    """Return the higher one of each rate."""
    if known is None:
        return peaks
    pairs = zip(peaks.levels, known.levels, strict=True)
    levels = tuple(replace(a, gbytes=max(a.gbytes, b.gbytes)) for a, b in pairs)
    return replace(peaks, gflops=max(peaks.gflops, known.gflops), levels=levels)


def _levels(threads: int) -> list[tuple[str, int, int]]:
    """Return the name, the capacity, and the bytes to read of each level."""
    second, last = second_level_bytes() * threads, last_level_bytes()
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    levels = [("memory", 0, min(_MEMORY_FACTOR * last, _LARGEST, memory // 8))]
    if 2 * second < last:
        levels.insert(0, ("last-level cache", last, max(2 * second, min(last // 4, _SHARED))))
    if second:
        levels.insert(0, ("L2 cache", second, second // 2))
    return levels


def _from_json(data: dict[str, Any]) -> Peaks:
    levels = tuple(Level(**level) for level in data["levels"])
    return Peaks(data["instruction"], data["threads"], data["gflops"], levels)


def _ignore(_fraction: float, _message: str) -> None:
    """Ignore a progress report."""
