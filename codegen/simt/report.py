"""Reports of launches: findings, memory traffic, and executed statements."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import Json
from .findings import ERRORS, Finding, SimtError
from .frame import Point
from .traffic import Counter

_IN_MESSAGE = 4
"""Maximum number of findings in the text of an error; its details contain all."""


@dataclass(frozen=True, slots=True)
class Report:
    """The report of one launch.

    Parameters
    ----------
    kernel : str
        Name of the kernel.
    grid, block : tuple of int
        Number of thread blocks, and of threads per block, along x, y and z.
    findings : tuple of Finding
        Defects, errors first.
    counters : tuple of Counter
        Requests of every access to shared and global memory.
    executed : tuple of int
        Number of executions of each statement by its ordinal, summed over threads.
    seconds : float
        Duration of the emulation.
    """

    kernel: str
    grid: Point
    block: Point
    findings: tuple[Finding, ...]
    counters: tuple[Counter, ...]
    executed: tuple[int, ...]
    seconds: float

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that can affect results."""
        return tuple(f for f in self.findings if f.severity == "error")

    @property
    def work(self) -> int:
        """The number of executed statements, summed over threads."""
        return sum(self.executed)

    @property
    def throughput(self) -> float:
        """The number of executed statements per second, summed over threads."""
        return self.work / self.seconds if self.seconds else 0.0

    @property
    def bank_conflicts(self) -> int:
        """The number of additional cycles of shared memory caused by bank conflicts."""
        return sum(c.conflicts for c in self.counters)

    @property
    def excess_sectors(self) -> int:
        """The number of sectors of global memory beyond the minimum."""
        return sum(c.excess for c in self.counters if c.space == "global")

    def error(self) -> SimtError | None:
        """Return the first error as an exception with all findings; None without errors."""
        if not self.errors:
            return None
        first, rest = self.errors[0], len(self.errors) - 1
        more = f"; {rest} more finding{'s' if rest > 1 else ''}" if rest else ""
        hints = ["add a barrier between the two accesses"] if _needs_barrier(first) else []
        hints += [f"also: {f.message} (at {f.site})" for f in self.errors[1:_IN_MESSAGE]]
        return ERRORS[first.kind](
            first.message + more,
            where=f"{first.site} of kernel {self.kernel!r}"
            + ("" if first.other in (None, first.site) else f", and {first.other}"),
            hint="; ".join(hints),
            details={"kernel": self.kernel, "findings": [f.to_json() for f in self.findings]},
        )

    def table(self) -> str:
        """Render the memory traffic as a table with one line per statement."""
        rows = [("statement", "memory", "", "requests", "cycles", "conflicts", "sectors", "excess")]
        rows += [_row(c) for c in self.counters]
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if k < 3 else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        )

    def __str__(self) -> str:
        """Render findings and traffic as text."""
        head = f"kernel {self.kernel!r}, grid {self.grid}, block {self.block}: "
        found = len(self.findings)
        head += f"{found} finding{'' if found == 1 else 's'}"
        return "\n".join([head, *map(str, self.findings), self.table()])

    def to_json(self) -> dict[str, Json]:
        """Render as JSON data."""
        return {
            "kernel": self.kernel,
            "grid": list(self.grid),
            "block": list(self.block),
            "findings": [f.to_json() for f in self.findings],
            "traffic": [_counter_json(c) for c in self.counters],
            "work": self.work,
            "seconds": self.seconds,
        }


def _needs_barrier(finding: Finding) -> bool:
    if finding.kind != "race" or len(finding.threads) != 2:
        return False
    first, second = finding.threads
    return first.block == second.block and finding.site != finding.other


def _row(c: Counter) -> tuple[str, ...]:
    shared = c.space == "shared"
    name = c.site.name or c.site.kind
    path = "/".join((*c.site.loops, name))
    return (
        f"#{c.site.ordinal} {path}",
        f"{c.space} {c.buffer}",
        c.action,
        str(c.requests),
        str(c.cycles) if shared else "",
        str(c.conflicts) if shared else "",
        "" if shared else str(c.sectors),
        "" if shared else str(c.excess),
    )


def _counter_json(c: Counter) -> Json:
    return {
        "site": c.site.to_json(),
        "space": c.space,
        "action": c.action,
        "buffer": c.buffer,
        "requests": c.requests,
        "cycles": c.cycles,
        "sectors": c.sectors,
        "needed": c.needed,
    }
