"""Profiles of calls: the time of every launch."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...display import Table
from ...errors import Json, TilewrightError
from ..entry_names import public_name
from ..manifest import FunctionSpec


class ProfileOptionsError(TilewrightError):
    """An option of a profile that is not valid."""

    title = "Invalid option of a profile"


MAX_NAMES = 2
"""The number of operations of a kernel that the table lists."""


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """The median time of one launch over the repeats, in µs."""

    kernel: str
    binding: str
    origins: tuple[str, ...]
    microseconds: float


@dataclass(frozen=True, slots=True, repr=False)
class Profile:
    """Times of the launches of a function, in program order, without launches that did not run.

    ``total`` is the median over the repeats of the sum of all launches, in µs. It does not include
    the host flow. ``print`` shows the time of each kernel, slowest first.
    """

    launches: tuple[LaunchTime, ...]
    total: float
    repeats: int
    function: str

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

    def table(self) -> Table:
        """Return the time of each kernel as a table, slowest first."""
        total = sum(t.microseconds for t in self.launches) or 1.0
        counts = Counter(t.kernel for t in self.launches)
        rows = tuple(
            (kernel, counts[kernel], time, f"{time / total:.1%}", self._computes(kernel))
            for kernel, time in self.by_kernel().items()
        )
        title = (
            f"profile of {self.function!r}: {self.total:.1f} µs in {len(self.launches)} "
            f"launch{'' if len(self.launches) == 1 else 'es'}"
        )
        times = f"median of {self.repeats} calls" if self.repeats > 1 else "time of one call"
        notes = (f"{times}; the time between launches is not included",)
        return Table(("kernel", "launches", "time (µs)", "share", "computes"), rows, title, notes)

    def _computes(self, kernel: str) -> str:
        """Return the bindings that a kernel computes, or the imported operations if known."""
        launches = [t for t in self.launches if t.kernel == kernel]
        names = dict.fromkeys(n for t in launches for n in t.origins or (t.binding,))
        shown = ", ".join(list(names)[:MAX_NAMES])
        return shown if len(names) <= MAX_NAMES else f"{shown}, {len(names) - MAX_NAMES} more"

    def __str__(self) -> str:
        """Return a table of kernels, slowest first."""
        return str(self.table())

    def _repr_html_(self) -> str:
        """Return the table as static HTML."""
        return self.table().to_html()

    def __repr__(self) -> str:
        """Return one line with the total."""
        return f"<Profile of {self.function}: {self.total:.1f} µs, {len(self.launches)} launches>"


def check_repeats(repeats: object) -> int:
    """Return a number of measured calls.

    Raises
    ------
    ProfileOptionsError
        If it is not an integer of at least 1.
    """
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise ProfileOptionsError(
            f"repeats must be an integer of at least 1, got {repeats!r}",
            where="argument 'repeats' of profile",
            hint="pass a number of calls, such as repeats=5",
        )
    return repeats


def make_profile(spec: FunctionSpec, runs: Sequence[Sequence[int]]) -> Profile:
    """Return the profile of several runs, from the nanoseconds of their launches.

    A launch without imported operations is known by the values that it computes.
    """
    launches = [
        LaunchTime(launch.kernel, launch.binding, launch.origins or launch.results, median / 1000)
        for k, launch in enumerate(spec.launches)
        if (median := statistics.median(run[k] for run in runs)) > 0
    ]
    total = statistics.median(sum(run) for run in runs) / 1000
    return Profile(tuple(launches), total, len(runs), public_name(spec.name))
