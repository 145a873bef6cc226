"""Under which conditions something is timed, as a person asks for them."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from ....ir.errors import TilewrightError
from ....ir.target import Target
from .plan import Plan

Caches: TypeAlias = Literal["hot", "cold"]

WARM_UP = 3
FEWEST, MOST = 10, 2000
PROFILED = 15
LONGEST = 120.0
"""Seconds that a budget may be."""

FLUSHED = 2
"""Between samples of cold caches, memory of so many times the last cache's size is written."""


class ConditionsError(TilewrightError):
    """Conditions of a measurement that make no sense, or that this machine does not have."""

    title = "Impossible conditions"


@dataclass(frozen=True, slots=True)
class Conditions:
    """How a measurement is taken.

    Parameters
    ----------
    caches : {"hot", "cold"}
        Whether what the program reads may be in the caches from the call before; for ``"cold"``
        twice the size of the last-level cache is written between any two samples.
    threads : int
        Workers of a parallel loop, at most those that the program was compiled for; 0: all these.
    pin : bool
        Hold each thread to a core of its own.
    budget : float
        Seconds of sampling; it ends sooner where the interval of the median is narrow.

    Raises
    ------
    ConditionsError
        If a value makes no sense here.

    Examples
    --------
    >>> Conditions(caches="cold", budget=0.5).text(threads=1)
    'cold caches, 1 thread, not pinned, 3 calls to warm up, at most 0.5 s'
    """

    caches: Caches = "hot"
    threads: int = 0
    pin: bool = False
    budget: float = 1.5

    def __post_init__(self) -> None:
        """Check each value."""
        if self.caches not in get_args(Caches):
            raise ConditionsError(f"caches are hot or cold, not {self.caches!r}")
        if self.threads < 0:
            raise ConditionsError(
                f"{self.threads} threads cannot run anything",
                hint="0 takes as many as the program was compiled for",
            )
        if not (math.isfinite(self.budget) and 0 < self.budget <= LONGEST):
            raise ConditionsError(
                f"a budget of {self.budget:g} s", hint=f"give more than 0 and up to {LONGEST:g} s"
            )

    def plan(self, compiled_for: int, target: Target) -> Plan:
        """Make the plan for a program.

        Parameters
        ----------
        compiled_for : int
            The most threads that it may use.
        target : Target
            What it was compiled for.

        Raises
        ------
        ConditionsError
            If it has fewer threads, or there are fewer cores to pin them to, or its kernels do
            not run on this processor, so that its threads and caches say nothing.
        """
        from ..machine import last_level_bytes

        if target.is_gpu and self != Conditions(budget=self.budget):
            raise ConditionsError(
                f"caches, threads and pins are the processor's; {target} runs elsewhere",
                hint="only a budget is chosen there",
            )
        if self.threads > compiled_for:
            raise ConditionsError(
                f"{self.threads} threads asked for, the program was compiled for {compiled_for}",
                hint=f"compile it for Target({target.kind!r}, threads={self.threads})",
            )
        flush = FLUSHED * last_level_bytes() if self.caches == "cold" else 0
        return Plan(
            WARM_UP, FEWEST, MOST, self.budget, flush,
            self._cores(self.threads or compiled_for), self.threads, PROFILED,
        )  # fmt: skip

    def _cores(self, threads: int) -> tuple[int, ...]:
        if not self.pin:
            return ()
        cores = sorted(os.sched_getaffinity(0))
        if threads > len(cores):
            raise ConditionsError(
                f"{threads} threads cannot have a core each: this process may use {len(cores)}",
                hint=f"threads={len(cores)}",
            )
        return tuple(cores[:threads])

    def text(self, threads: int = 0) -> str:
        """Tell them in words; ``threads`` are those of a program that may use all of its own."""
        count = self.threads or threads
        words = [f"{self.caches} caches"]
        if count:
            words.append("1 thread" if count == 1 else f"{count} threads")
        words.append("each on a core of its own" if self.pin else "not pinned")
        return ", ".join([*words, f"{WARM_UP} calls to warm up", f"at most {self.budget:g} s"])
