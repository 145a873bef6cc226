"""What a call costs: time by launch, and memory by storage."""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...ir.errors import Json
from ...ir.host import layout
from ...ir.host.support import planner
from ...ir.symbolic import UnboundSymbolError, Var, evaluate, parse_expr, var
from ..manifest import FunctionSpec
from .support import support_address

_PACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *([ctypes.c_void_p] * 4))


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """The time of one launch: median over the repeats, in µs."""

    kernel: str
    binding: str
    origins: tuple[str, ...]
    microseconds: float


@dataclass(frozen=True, slots=True)
class Profile:
    """Times of all launches of a function, in program order; not taken ones are left out.

    ``total`` is the median of their sums in µs, which leaves the host flow out.
    """

    launches: tuple[LaunchTime, ...]
    total: float
    repeats: int

    def __iter__(self) -> Iterator[LaunchTime]:
        """Iterate the launches."""
        return iter(self.launches)

    def slowest(self, count: int = 5) -> tuple[LaunchTime, ...]:
        """Give the launches that take longest."""
        return tuple(sorted(self.launches, key=lambda t: -t.microseconds)[:count])

    def by_kernel(self) -> dict[str, float]:
        """Add the times of each kernel up, in µs, the slowest first."""
        sums: dict[str, float] = {}
        for time in self.launches:
            sums[time.kernel] = sums.get(time.kernel, 0.0) + time.microseconds
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def to_json(self) -> dict[str, Json]:
        """Give plain data."""
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
        """Print a table, the slowest kernel first."""
        whole = sum(t.microseconds for t in self.launches) or 1.0
        lines = [f"{'kernel':<40} {'µs':>10} {'share':>7}"]
        lines += [f"{k:<40} {t:>10.1f} {t / whole:>6.1%}" for k, t in self.by_kernel().items()]
        return "\n".join([*lines, f"{'all launches':<40} {self.total:>10.1f}"])


def make_profile(spec: FunctionSpec, runs: Sequence[Sequence[int]]) -> Profile:
    """Combine the nanoseconds of several runs."""
    launches = [
        LaunchTime(launch.kernel, launch.binding, launch.origins, median / 1000)
        for k, launch in enumerate(spec.launches)
        if (median := statistics.median(run[k] for run in runs)) > 0
    ]
    total = statistics.median(sum(run) for run in runs) / 1000
    return Profile(tuple(launches), total, len(runs))


@dataclass(frozen=True, slots=True)
class StoragePlace:
    """A storage in the arena for given shapes; it lives from ``first`` to ``last`` (moments)."""

    name: str
    offset: int
    bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The arena for given shapes.

    ``arena`` is its size in bytes, ``peak`` the most that lives at one moment (no plan can take
    less), ``unshared`` what the storages take side by side.
    """

    arena: int
    peak: int
    unshared: int
    storages: tuple[StoragePlace, ...]


def memory_plan(spec: FunctionSpec, shapes: Mapping[str, int]) -> MemoryPlan:
    """Plan the arena for values of the symbols, by the planner that calls use.

    Raises
    ------
    UnboundSymbolError
        If a symbol is not given; the message lists those of the function.
    """
    missing = [name for name in spec.symbols if name not in shapes]
    if missing:
        raise UnboundSymbolError(
            f"no value for {', '.join(missing)}",
            hint=f"symbols of {spec.name!r} are {', '.join(spec.symbols)}",
        )
    symbols: dict[str, Var] = {name: var(name) for name in spec.symbols}
    values = {symbols[name]: int(shapes[name]) for name in spec.symbols}
    sizes = [_bytes(s.size, symbols, values) for s in spec.storages]
    total, offsets = _pack(spec, sizes)
    places = tuple(
        StoragePlace(s.name, offset, size, s.first, s.last)
        for s, offset, size in zip(spec.storages, offsets, sizes, strict=True)
    )
    moments = {m for s in spec.storages for m in (s.first, s.last)}
    peak = max((sum(p.bytes for p in places if p.first <= m <= p.last) for m in moments), default=0)
    return MemoryPlan(total, peak, sum(sizes), places)


def _bytes(text: str, symbols: Mapping[str, Var], values: Mapping[Var, int]) -> int:
    size = evaluate(parse_expr(text, symbols), values)
    return (int(size) + layout.ALIGNMENT - 1) // layout.ALIGNMENT * layout.ALIGNMENT


def _pack(spec: FunctionSpec, sizes: Sequence[int]) -> tuple[int, list[int]]:
    count = len(sizes)
    words = ctypes.c_int64 * max(count, 1)
    lives = (ctypes.c_int64 * max(2 * count, 1))(
        *(m for s in spec.storages for m in (s.first, s.last))
    )
    offsets, scratch = words(), (ctypes.c_int64 * max(2 * count, 1))()
    pack = _PACK(support_address(planner.pack))
    total = pack(count, words(*sizes), lives, offsets, scratch)
    return total, list(offsets)[:count]
