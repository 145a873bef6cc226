"""Profiles of calls: time by launch, and memory by storage."""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...errors import Json
from ...ir.symbolic import UnboundSymbolError, Var, evaluate, parse_expr, var
from ..build.rtlib_object import rtlib_address
from ..manifest import FunctionSpec
from ..rtlib import layout, planner

_PACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *([ctypes.c_void_p] * 4))


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """The median time of one launch over the repeats, in µs."""

    kernel: str
    binding: str
    origins: tuple[str, ...]
    microseconds: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Times of the launches of a function, in program order, without launches that did not run.

    ``total`` is the median over the repeats of the sum of all launches, in µs. It does not include
    the host flow.
    """

    launches: tuple[LaunchTime, ...]
    total: float
    repeats: int

    def __iter__(self) -> Iterator[LaunchTime]:
        """Yield the launches."""
        return iter(self.launches)

    def slowest(self, count: int = 5) -> tuple[LaunchTime, ...]:
        """Return the ``count`` slowest launches, slowest first."""
        return tuple(sorted(self.launches, key=lambda t: -t.microseconds)[:count])

    def by_kernel(self) -> dict[str, float]:
        """Return the total time of each kernel in µs, slowest first."""
        sums: dict[str, float] = {}
        for time in self.launches:
            sums[time.kernel] = sums.get(time.kernel, 0.0) + time.microseconds
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def to_json(self) -> dict[str, Json]:
        """Return the profile as JSON data."""
        launches: list[Json] = [
            {
                "kernel": t.kernel,
                "binding": t.binding,
                "origins": list(t.origins),
                "us": t.microseconds,
            }
            for t in self.launches
        ]
        return {"launches": launches, "total_us": self.total, "repeats": self.repeats}

    def __str__(self) -> str:
        """Return a table of kernels, slowest first."""
        total = sum(t.microseconds for t in self.launches) or 1.0
        lines = [f"{'kernel':<40} {'µs':>10} {'share':>7}"]
        lines += [f"{k:<40} {t:>10.1f} {t / total:>6.1%}" for k, t in self.by_kernel().items()]
        return "\n".join([*lines, f"{'all launches':<40} {self.total:>10.1f}"])


def make_profile(spec: FunctionSpec, runs: Sequence[Sequence[int]]) -> Profile:
    """Return the profile of several runs, from the nanoseconds of their launches."""
    launches = [
        LaunchTime(launch.kernel, launch.binding, launch.origins, median / 1000)
        for k, launch in enumerate(spec.launches)
        if (median := statistics.median(run[k] for run in runs)) > 0
    ]
    total = statistics.median(sum(run) for run in runs) / 1000
    return Profile(tuple(launches), total, len(runs))


@dataclass(frozen=True, slots=True)
class StorageAllocation:
    """A storage in the arena for given shapes, with its live range from ``first`` to ``last``.

    Offset and size are in bytes; the live range is in positions of the program.
    """

    name: str
    offset: int
    bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The arena for given shapes.

    ``arena`` is its size in bytes. ``peak`` is the maximum of live bytes at any position of the
    program, a lower bound of every plan. ``unshared`` is the sum of all storages.
    """

    arena: int
    peak: int
    unshared: int
    storages: tuple[StorageAllocation, ...]


def memory_plan(spec: FunctionSpec, shapes: Mapping[str, int]) -> MemoryPlan:
    """Plan the arena for values of the symbols, with the same planner as calls.

    Raises
    ------
    UnboundSymbolError
        If ``shapes`` lacks a symbol; the hint lists the symbols of the function.
    """
    missing = [name for name in spec.symbols if name not in shapes]
    if missing:
        raise UnboundSymbolError(
            f"no value for symbol {', '.join(map(repr, missing))}",
            hint=f"symbols of {spec.name!r} are {', '.join(map(repr, spec.symbols))}",
        )
    symbols: dict[str, Var] = {name: var(name) for name in spec.symbols}
    values = {symbols[name]: int(shapes[name]) for name in spec.symbols}
    sizes = [_bytes(s.size, symbols, values) for s in spec.storages]
    total, offsets = _pack(spec, sizes)
    storages = tuple(
        StorageAllocation(s.name, offset, size, s.first, s.last)
        for s, offset, size in zip(spec.storages, offsets, sizes, strict=True)
    )
    moments = {m for s in spec.storages for m in (s.first, s.last)}
    live = (sum(s.bytes for s in storages if s.first <= m <= s.last) for m in moments)
    return MemoryPlan(total, max(live, default=0), sum(sizes), storages)


def _bytes(text: str, symbols: Mapping[str, Var], values: Mapping[Var, int]) -> int:
    size = evaluate(parse_expr(text, symbols), values)
    return (int(size) + layout.ALIGNMENT - 1) // layout.ALIGNMENT * layout.ALIGNMENT


def _pack(spec: FunctionSpec, sizes: Sequence[int]) -> tuple[int, list[int]]:
    count = len(sizes)
    words = ctypes.c_int64 * max(count, 1)
    live_ranges = (ctypes.c_int64 * max(2 * count, 1))(
        *(m for s in spec.storages for m in (s.first, s.last))
    )
    offsets, scratch = words(), (ctypes.c_int64 * max(2 * count, 1))()
    pack = _PACK(rtlib_address(planner.pack))
    total = pack(count, words(*sizes), live_ranges, offsets, scratch)
    return total, list(offsets)[:count]
