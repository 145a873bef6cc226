"""Measurements: times with confidence intervals, verdicts, conditions and machine facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...errors import Json
from ...ir.interpreter.oracle import Verdict
from .measure_options import MeasureOptions


@dataclass(frozen=True, slots=True)
class Compared:
    """A program that was timed interleaved with the measured one.

    ``ratio`` is the median of its time divided by that of the measured program, with the 95 %
    confidence interval ``low`` to ``high``; above 1 it is slower. ``samples`` and ``median`` are
    in µs.
    """

    name: str
    ratio: float
    low: float
    high: float
    median: float
    samples: tuple[float, ...]
    verdict: Verdict | None

    def __str__(self) -> str:
        """Return one line of text."""
        result = "slower" if self.low > 1 else "faster" if self.high < 1 else "no clear difference"
        return (
            f"{self.name}: {self.median:.1f} µs, ratio {self.ratio:.3f} "
            f"({self.low:.3f} to {self.high:.3f}: {result}){_verdict_text(self.verdict)}"
        )


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measured times of a function, in µs.

    ``low`` to ``high`` is the 95 % confidence interval of the median. ``verdict`` is the comparison
    of the results with those of the interpreter, or None if they were not compared. ``kernels``
    contains the median time of each kernel, summed over its launches, which ``launches`` counts.
    ``alone`` is true if no other measurement ran on the machine at the same time. ``machine``
    lists the facts about the machine that affect the times.
    """

    function: str
    median: float
    low: float
    high: float
    samples: tuple[float, ...]
    verdict: Verdict | None
    kernels: Mapping[str, float]
    conditions: MeasureOptions
    threads: int
    alone: bool
    machine: Mapping[str, str]
    compare: tuple[Compared, ...] = ()
    launches: Mapping[str, int] = field(default_factory=dict[str, int])

    def __str__(self) -> str:
        """Return the time, the conditions and the verdict, and one line per compared program."""
        head = (
            f"{self.function}: median {self.median:.1f} µs of {len(self.samples)} calls, "
            f"95 % confidence interval {self.low:.1f} to {self.high:.1f}"
            f"{_verdict_text(self.verdict)}"
        )
        conditions = self.conditions.text(self.threads)
        busy = "" if self.alone else "; another measurement ran at the same time"
        return "\n".join([head, f"  {conditions}{busy}", *(f"  {c}" for c in self.compare)])

    def to_json(self) -> dict[str, Json]:
        """Return JSON data."""
        return {
            "function": self.function,
            "median": self.median,
            "low": self.low,
            "high": self.high,
            "samples": list(self.samples),
            "verdict": verdict_json(self.verdict),
            "kernels": dict(self.kernels),
            "conditions": conditions_json(self.conditions, self.threads),
            "alone": self.alone,
            "machine": dict(self.machine),
            "compare": [
                {
                    "name": c.name,
                    "ratio": c.ratio,
                    "low": c.low,
                    "high": c.high,
                    "median": c.median,
                    "samples": list(c.samples),
                    "verdict": verdict_json(c.verdict),
                }
                for c in self.compare
            ],
        }


def verdict_json(verdict: Verdict | None) -> Json:
    """Return a verdict as JSON data."""
    if verdict is None:
        return None
    return {
        "agrees": verdict.agrees,
        "error": verdict.error,
        "allowed": verdict.allowed,
        "result": verdict.result,
        "index": list(verdict.index),
        "message": str(verdict),
        "derivation": verdict.derivation,
    }


def conditions_json(conditions: MeasureOptions, threads: int) -> Json:
    """Return conditions as JSON data."""
    return {
        "caches": conditions.caches,
        "threads": conditions.threads or threads,
        "pinned": conditions.pin,
        "budget": conditions.budget,
        "text": conditions.text(threads),
    }


def _verdict_text(verdict: Verdict | None) -> str:
    if verdict is None:
        return "; not checked"
    return "; correct" if verdict.agrees else f"; WRONG: {verdict}"
