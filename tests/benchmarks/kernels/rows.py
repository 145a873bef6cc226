"""Measured rows: whether the interval of a ratio is above or below its goal."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from ..harness import sampled
from .case import Case

Outcome: TypeAlias = Literal["reached", "missed", "undecided"]

ROUNDS = 3
"""The largest number of repetitions of a row that is undecided."""

SECONDS = 1.0
"""The time of the first repetition; each later one takes twice as long."""


@dataclass(frozen=True)
class Limits:
    """The peak rates of the machine.

    Parameters
    ----------
    gflops : float
        Operations per nanosecond.
    levels : tuple of tuple
        The capacity of each level of the memory and its bytes per nanosecond; 0 is unlimited.
    """

    gflops: float
    levels: tuple[tuple[int, float], ...]

    def seconds(self, case: Case) -> float:
        """Return the shortest time of a call that the roofline permits."""
        fitting = (rate for size, rate in self.levels if not size or case.bytes <= size)
        return max(case.operations / self.gflops, case.bytes / next(fitting)) * 1e-9


@dataclass(frozen=True)
class Row:
    """The measurement of one case.

    Parameters
    ----------
    case : Case
        The case.
    seconds : Mapping of str to float
        The median times of ``ours`` and of the peers.
    best : str
        The fastest peer.
    ratio : tuple of float
        The 95 % interval of the time of the best peer divided by that of Tilewright.
    roof : float
        The fraction of the roofline.
    outcome : str
        Whether the goal was reached.
    """

    case: Case
    seconds: Mapping[str, float]
    best: str
    ratio: tuple[float, float]
    roof: float
    outcome: Outcome

    @property
    def middle(self) -> float:
        """The median ratio."""
        return self.seconds[self.best] / self.seconds["ours"]


def measured(case: Case, limits: Limits, required: Sequence[str]) -> Row:
    """Check and measure a case until it is decided, or several times.

    Parameters
    ----------
    case : Case
        The case.
    limits : Limits
        The peak rates.
    required : sequence of str
        The peers that are compared with; the others are only listed.
    """
    case.check()
    times: dict[str, list[float]] = {}
    row: Row | None = None
    for attempt in range(ROUNDS):
        for name, found in sampled(
            {"ours": case.ours, **case.peers}, seconds=SECONDS * 2**attempt
        ).items():
            times.setdefault(name, []).extend(found)
        row = _row(case, times, limits, required)
        if row.outcome != "undecided":
            break
    assert row is not None
    return row


def _row(
    case: Case, times: Mapping[str, list[float]], limits: Limits, required: Sequence[str]
) -> Row:
    medians = {name: statistics.median(found) for name, found in times.items()}
    best = min((p for p in case.peers if p in required), key=lambda p: medians[p])
    ratios = [peer / own for peer, own in zip(times[best], times["ours"], strict=True)]
    low, high = interval(ratios)
    limit = limits.seconds(case)
    own = interval(times["ours"])
    row = Row(case, medians, best, (low, high), limit / medians["ours"], "undecided")
    goal = case.goal
    if low >= goal.peer or limit / own[1] >= goal.roof:
        return replace(row, outcome="reached")
    if high < goal.peer and limit / own[0] < goal.roof:
        return replace(row, outcome="missed")
    return row


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval of the median, from order statistics.

    Examples
    --------
    >>> interval([float(k) for k in range(1, 101)])
    (41.0, 60.0)
    """
    found = sorted(values)
    count = len(found)
    first = max(math.floor((count - 1.96 * math.sqrt(count)) / 2), 0)
    return found[first], found[count - 1 - first]


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(statistics.mean(map(math.log, values)))
