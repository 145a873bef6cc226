"""Times of recorded kernels of a page, and how they were taken."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...codegen.measure.statistics import confidence, narrow
from ...durations import duration
from ..jobs import Progress
from ..protocol_gpu import GpuSamples
from ..protocol_runs import KernelTime
from .gpu import Item, PageGpu

ROUND: Final = 0.25
"""The seconds of a call that takes samples, between two looks at the cancellation."""

MOST_SAMPLES: Final = 2000
LEAST_SAMPLES: Final = 5

KERNEL_SAMPLES: Final = 5
"""The number of samples of each kernel."""

CALL_SHARE: Final = 0.6
"""The share of the samples of entire calls in the progress; kernels take the rest."""


@dataclass(frozen=True, slots=True)
class PageTimes:
    """Times of calls and of kernels in µs.

    Parameters
    ----------
    samples : tuple of float
        All samples; with repeated submissions each is the mean of several calls.
    kernels : tuple of KernelTime
        The kernels, slowest first, with a share of 0.
    clock_text : str
        How the times were taken.
    repeats : int
        The number of calls of which each sample is the mean.
    """

    samples: tuple[float, ...]
    kernels: tuple[KernelTime, ...]
    clock_text: str
    repeats: int = 1

    @property
    def median(self) -> float:
        """The median of the samples."""
        return statistics.median(self.samples)

    @property
    def low(self) -> float:
        """The lower bound of the median."""
        return confidence(self.samples)[0]

    @property
    def high(self) -> float:
        """The upper bound of the median."""
        return confidence(self.samples)[1]


def clock_text(samples: GpuSamples, step: float) -> str:
    """Return how times were taken, equal for all measurements of a page.

    Parameters
    ----------
    samples : GpuSamples
        Samples.
    step : float
        The resolution of timestamps in ns; 0 if there are none.

    Examples
    --------
    >>> clock_text(GpuSamples("timestamps", 1, [5.0], 1), 1.0)
    'timestamp queries'
    >>> clock_text(GpuSamples("submissions", 40, [5.0], 1), 65536.0)
    'repeated submissions, because the browser rounds timestamps to 65.5 µs'
    """
    if samples.clock == "timestamps":
        return "timestamp queries"
    reason = "the GPU of the page takes no timestamps"
    if step:
        reason = f"the browser rounds timestamps to {duration(step / 1e3)}"
    return f"repeated submissions, because {reason}"


def taken_times(gpu: PageGpu, budget: float, progress: Progress) -> PageTimes:
    """Time the recorded calls for some seconds, then each different kernel.

    A call without launches takes no time on the GPU, and has one sample of 0.
    """
    items, step = list(gpu.recorded), gpu.facts.step
    if not items:
        return PageTimes((0.0,), (), "no kernels")
    end = time.monotonic() + budget
    first = gpu.time(0, len(items), repeats=0, most=1, seconds=ROUND)
    samples = list(first.nanoseconds)
    while len(samples) < MOST_SAMPLES and not narrow(samples):
        left = end - time.monotonic()
        if left <= 0 and len(samples) >= LEAST_SAMPLES:
            break
        seconds = min(ROUND, max(left, 0.0))
        most = MOST_SAMPLES - len(samples)
        more = gpu.time(0, len(items), repeats=first.repeats, most=most, seconds=seconds)
        samples += more.nanoseconds
        median = duration(statistics.median(samples) / 1e3)
        share = min(1.0, 1.0 - left / budget)
        progress(CALL_SHARE * max(share, 0.0), f"timing in the page: {median}")
    kernels = _kernels(gpu, items, progress)
    return PageTimes(
        tuple(s / 1e3 for s in samples), kernels, clock_text(first, step), first.repeats
    )


def _kernels(gpu: PageGpu, items: Sequence[Item], progress: Progress) -> tuple[KernelTime, ...]:
    """Return the times of the kernels, slowest first; equal launches are timed once."""
    known: dict[tuple[object, ...], float] = {}
    sums: dict[str, list[float]] = {}
    for k, item in enumerate(items):
        if not item.name:
            continue
        if item.key not in known:
            share = CALL_SHARE + (1 - CALL_SHARE) * k / len(items)
            progress(share, f"timing {item.name} in the page")
            found = gpu.time(k, k + 1, repeats=0, most=KERNEL_SAMPLES, seconds=ROUND)
            known[item.key] = statistics.median(found.nanoseconds) / 1e3
        sums.setdefault(item.name, []).append(known[item.key])
    rows = (KernelTime(name, len(each), sum(each), 0.0) for name, each in sums.items())
    return tuple(sorted(rows, key=lambda row: -row.microseconds))
