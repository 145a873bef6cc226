"""Measurements: times with confidence intervals, verdicts, conditions and machine facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ...display import Cell, Table
from ...errors import Json
from ...ir.interpreter.oracle import Verdict
from .measure_options import MeasureOptions

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, repr=False)
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

    @property
    def result(self) -> str:
        """The result of the comparison: "slower", "faster" or "no clear difference"."""
        return "slower" if self.low > 1 else "faster" if self.high < 1 else "no clear difference"

    def __str__(self) -> str:
        """Return one line of text."""
        return (
            f"{self.name}: {self.median:.1f} µs, ratio {self.ratio:.3f} "
            f"({self.low:.3f} to {self.high:.3f}: {self.result}); {_verdict_text(self.verdict)}"
        )

    def __repr__(self) -> str:
        """Return one line of text without the samples."""
        return f"<Compared {self}>"


@dataclass(frozen=True, slots=True, repr=False)
class Measurement:
    """The measured times of a function, in µs.

    ``low`` to ``high`` is the 95 % confidence interval of the median. ``verdict`` is the comparison
    of the results with those of the interpreter, or None if they were not compared. ``kernels``
    contains the median time of each kernel, summed over its launches, which ``launches`` counts.
    ``alone`` is true if no other measurement ran on the machine at the same time. ``machine``
    lists the facts about the machine that affect the times. ``print`` shows a table.
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

    def table(self) -> Table:
        """Return the measured and the compared programs as a table."""
        first: tuple[Cell, ...] = (
            self.function, self.median, _interval(self.low, self.high), len(self.samples),
            None, None, _verdict_text(self.verdict),
        )  # fmt: skip
        columns = ("program", "median (µs)", "95 % interval", "calls", "ratio", "95 % interval",
                   "results")  # fmt: skip
        if not self.compare:
            columns, first = _without_ratio(columns), _without_ratio(first)
        rows = [first]
        for other in self.compare:
            interval = f"{_interval(other.low, other.high)}, {other.result}"
            rows.append(
                (other.name, other.median, None, len(other.samples), other.ratio, interval,
                 _verdict_text(other.verdict))
            )  # fmt: skip
        notes = [self.conditions.text(self.threads)]
        if self.compare:
            notes.append("a ratio above 1 is slower than the first program")
        if not self.alone:
            notes.append("another measurement ran at the same time")
        return Table(columns, tuple(rows), "", tuple(notes))

    def kernel_table(self) -> Table:
        """Return the time of each kernel as a table, slowest first."""
        total = sum(self.kernels.values()) or 1.0
        ordered = sorted(self.kernels.items(), key=lambda item: -item[1])
        rows = tuple(
            (name, self.launches.get(name), time, f"{time / total:.1%}") for name, time in ordered
        )
        return Table(("kernel", "launches", "time (µs)", "share"), rows)

    def __str__(self) -> str:
        """Return a table of the measured and the compared programs, with the conditions."""
        return str(self.table())

    def _repr_html_(self) -> str:
        """Return the table as static HTML, with the kernels and the facts of the machine folded."""
        parts = [self.table().to_html()]
        facts = Table(("property of the machine", "value"), tuple(self.machine.items()))
        for title, table in (("kernels", self.kernel_table()), ("machine", facts)):
            if table.rows:
                summary = f'<summary style="cursor:pointer">{title}</summary>'
                parts.append(f"<details>{summary}{table.to_html()}</details>")
        return f"<div>{''.join(parts)}</div>"

    def __repr__(self) -> str:
        """Return one line of text without the samples."""
        interval = _interval(self.low, self.high)
        verdict = _verdict_text(self.verdict)
        return f"<Measurement of {self.function}: {self.median:.1f} µs ({interval}); {verdict}>"

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
        return "not checked"
    return "correct" if verdict.agrees else f"WRONG: {verdict}"


def _interval(low: float, high: float) -> str:
    return f"{low:.4g} to {high:.4g}"


def _without_ratio(row: tuple[_T, ...]) -> tuple[_T, ...]:
    return (*row[:4], *row[6:])
