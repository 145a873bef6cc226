"""How a program is timed, and what that gave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
OnSample = Callable[[Sequence[int]], bool]
"""Told new samples in nanoseconds; answers whether more are wanted."""

OnRounds = Callable[[Sequence[Sequence[int]]], bool]
"""The same for several programs that are timed in turns: a round is one sample of each."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a program is timed.

    Parameters
    ----------
    warmup : int
        Calls before the first sample.
    least, most : int
        Samples; ``most`` of 0 only runs it once.
    seconds : float
        When to stop taking samples.
    flush : int
        Bytes that are written between samples, so that caches are cold; 0 leaves them hot.
    cores : tuple of int
        The cores that its threads are held to, one each; none: the system moves them.
    threads : int
        Workers that a parallel loop may use; 0: as many as it was compiled for.
    profiled : int
        Calls more in which each launch is timed by itself.
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
    """What a run gave: results, samples in nanoseconds, and each launch's time in every repeat."""

    results: tuple[Array, ...]
    samples: tuple[int, ...] = ()
    kernels: tuple[tuple[int, ...], ...] = ()
