"""Options of measurements: caches, threads, pinning and the time limit of sampling."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from ...errors import TilewrightError
from ...target.target import Target
from ..sandbox.sampling_plan import Plan

Caches: TypeAlias = Literal["hot", "cold"]

WARM_UP_CALLS = 3
MIN_SAMPLES, MAX_SAMPLES = 10, 2000
PROFILED_CALLS = 15
MAX_BUDGET = 120.0
"""The maximum budget in seconds."""

FLUSH_FACTOR = 2
"""The memory that is written to flush the caches, as a multiple of the last-level cache."""


class MeasureOptionsError(TilewrightError):
    """Options of a measurement that are invalid or not supported by this machine."""

    title = "Invalid measurement options"


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """The options of a measurement.

    Parameters
    ----------
    caches : {"hot", "cold"}
        Whether caches keep the data of the previous call. For ``"cold"``, memory of twice the size
        of the last-level cache is written before each sample.
    threads : int
        The number of threads of parallel loops, at most the number that the program was compiled
        for; 0: all of them.
    pin : bool
        Whether to pin each thread to a separate core.
    budget : float
        The maximum duration of sampling in seconds. Sampling ends earlier if the confidence
        interval of the median is narrow.

    Raises
    ------
    MeasureOptionsError
        If a value is invalid.

    Examples
    --------
    >>> MeasureOptions(caches="cold", budget=0.5).text(threads=1)
    'cold caches, 1 thread, not pinned, 3 warm-up calls, at most 0.5 s'
    """

    caches: Caches = "hot"
    threads: int = 0
    pin: bool = False
    budget: float = 1.5

    def __post_init__(self) -> None:
        """Check each value."""
        if self.caches not in get_args(Caches):
            raise MeasureOptionsError(
                f"caches must be 'hot' or 'cold', got {self.caches!r}",
                where="option 'caches' of measure",
                hint="'cold' flushes the caches before each call",
            )
        _check_number("threads", self.threads, int, "an integer")
        _check_number("budget", self.budget, (int, float), "a number of seconds")
        if self.threads < 0:
            raise MeasureOptionsError(
                f"the number of threads must not be negative, got {self.threads}",
                where="option 'threads' of measure",
                hint="0 means as many as the program was compiled for",
            )
        if not (math.isfinite(self.budget) and 0 < self.budget <= MAX_BUDGET):
            raise MeasureOptionsError(
                f"the budget must be greater than 0 and at most {MAX_BUDGET:g} s, "
                f"got {self.budget:g} s",
                where="option 'budget' of measure",
                hint="pass the maximum sampling time in seconds, such as budget=1.5",
            )

    def plan(self, compiled_for: int, target: Target) -> Plan:
        """Return the sampling plan of a program.

        Parameters
        ----------
        compiled_for : int
            The maximum number of threads of the program.
        target : Target
            The target that it was compiled for.

        Raises
        ------
        MeasureOptionsError
            If the program has fewer threads, there are fewer cores than threads to pin, or an
            option does not apply because kernels run on a GPU.
        """
        from ...target.host import last_level_bytes

        if target.is_gpu and self != MeasureOptions(budget=self.budget):
            raise MeasureOptionsError(
                f"caches, threads and pinning apply to the CPU; {target} runs kernels on a GPU",
                hint="set only the budget",
            )
        if self.threads > compiled_for:
            raise MeasureOptionsError(
                f"got {self.threads} threads, but the program was compiled for {compiled_for}",
                hint=f"compile the program for Target({target.kind!r}, threads={self.threads})",
            )
        flush = FLUSH_FACTOR * last_level_bytes() if self.caches == "cold" else 0
        return Plan(
            WARM_UP_CALLS, MIN_SAMPLES, MAX_SAMPLES, self.budget, flush,
            self._cores(self.threads or compiled_for), self.threads, PROFILED_CALLS,
        )  # fmt: skip

    def _cores(self, threads: int) -> tuple[int, ...]:
        if not self.pin:
            return ()
        cores = sorted(os.sched_getaffinity(0))
        if threads > len(cores):
            raise MeasureOptionsError(
                f"cannot pin {threads} threads: this process may use {len(cores)} cores",
                hint=f"set threads={len(cores)}",
            )
        return tuple(cores[:threads])

    def text(self, threads: int = 0) -> str:
        """Return the options as text; ``threads`` is the number if the options do not limit it."""
        count = self.threads or threads
        words = [f"{self.caches} caches"]
        if count:
            words.append("1 thread" if count == 1 else f"{count} threads")
        words.append("pinned to separate cores" if self.pin else "not pinned")
        return ", ".join([*words, f"{WARM_UP_CALLS} warm-up calls", f"at most {self.budget:g} s"])


def _check_number(name: str, value: object, types: type | tuple[type, ...], expected: str) -> None:
    """Raise an error unless an option is a number."""
    if isinstance(value, bool) or not isinstance(value, types):
        raise MeasureOptionsError(
            f"{name} must be {expected}, got {value!r}",
            where=f"option {name!r} of measure",
            hint=f"write {name}={'2' if name == 'threads' else '1.5'}",
        )
