"""What a measurement tells: times with their intervals, a verdict, conditions, the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....ir.errors import Json
from ....ir.interpreter.oracle import Agreement
from .conditions import Conditions


@dataclass(frozen=True, slots=True)
class Compared:
    """Another program, timed in turns with the one that was measured.

    ``ratio`` is its time over that of the measured program, as the median of the rounds, with its
    95 % interval ``low`` to ``high``: above 1 it is slower. ``samples`` and ``median`` are in µs.
    """

    name: str
    ratio: float
    low: float
    high: float
    median: float
    samples: tuple[float, ...]
    verdict: Agreement | None

    def __str__(self) -> str:
        """One line."""
        said = f"{self.name}: {self.median:.1f} µs, {self.ratio:.3f} × the time"
        sure = "slower" if self.low > 1 else "faster" if self.high < 1 else "no clear difference"
        return f"{said} ({self.low:.3f} to {self.high:.3f}: {sure}){_judged(self.verdict)}"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement. Times are in µs.

    ``low`` to ``high`` is the 95 % interval of the median. ``verdict`` compares the result with the
    interpreter's, or is None where there was no program to interpret. ``kernels`` are the medians
    of each kernel, summed over its launches. ``alone`` tells whether no other measurement ran on
    the machine at the same time; ``machine`` are the facts that times depend on.
    """

    function: str
    median: float
    low: float
    high: float
    samples: tuple[float, ...]
    verdict: Agreement | None
    kernels: Mapping[str, float]
    conditions: Conditions
    threads: int
    alone: bool
    machine: Mapping[str, str]
    compare: tuple[Compared, ...] = ()

    def __str__(self) -> str:
        """Say the time, its interval, the conditions and the verdict; then one line each rival."""
        head = (
            f"{self.function}: median {self.median:.1f} µs of {len(self.samples)}, "
            f"95 % interval {self.low:.1f} to {self.high:.1f}{_judged(self.verdict)}"
        )
        under = self.conditions.text(self.threads)
        busy = "" if self.alone else "; another measurement ran at the same time"
        return "\n".join([head, f"  {under}{busy}", *(f"  {c}" for c in self.compare)])

    def to_json(self) -> dict[str, Json]:
        """Give plain data."""
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


def verdict_json(verdict: Agreement | None) -> Json:
    """Give a verdict as plain data."""
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


def conditions_json(conditions: Conditions, threads: int) -> Json:
    """Give conditions as plain data."""
    return {
        "caches": conditions.caches,
        "threads": conditions.threads or threads,
        "pinned": conditions.pin,
        "budget": conditions.budget,
        "text": conditions.text(threads),
    }


def _judged(verdict: Agreement | None) -> str:
    if verdict is None:
        return "; not checked"
    return "; right" if verdict.agrees else f"; WRONG: {verdict}"
