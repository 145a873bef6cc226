"""Sampling plans, and the outcomes of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
OnSample = Callable[[Sequence[int]], bool]
"""A callback that receives new samples in nanoseconds, and returns whether more are needed."""

OnRounds = Callable[[Sequence[Sequence[int]]], bool]
"""The same for several interleaved programs: a round is one sample of each."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A sampling plan.

    Parameters
    ----------
    warmup : int
        The number of calls before the first sample.
    least, most : int
        The minimum and maximum number of samples; ``most`` of 0 runs the program once, untimed.
    seconds : float
        The maximum duration of sampling.
    flush : int
        The number of bytes written before each sample to flush the caches; 0: hot caches.
    cores : tuple of int
        The cores to pin the threads to, one each; empty: not pinned.
    threads : int
        The number of threads of parallel loops; 0: as many as the program was compiled for.
    profiled : int
        The number of additional calls in which each launch is timed separately.
    """

    warmup: int = 2
    least: int = 5
    most: int = 1000
    seconds: float = 1.0
    flush: int = 0
    cores: tuple[int, ...] = ()
    threads: int = 0
    profiled: int = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of a run, its samples, and the launch times per repetition, in nanoseconds."""

    results: tuple[Array, ...]
    samples: tuple[int, ...] = ()
    kernels: tuple[tuple[int, ...], ...] = ()
