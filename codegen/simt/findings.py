"""Findings of the checker: kinds, threads, memory cells, statements, and errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from ...errors import Json
from ...ir.kernel_errors import DivergentBarrierError
from ..errors import KernelError
from .provenance import StatementSite

FindingKind: TypeAlias = Literal[
    "race",
    "redundant write",
    "divergent barrier",
    "divergent operation",
    "uninitialized read",
    "out of bounds",
    "misaligned",
]

Severity: TypeAlias = Literal["error", "warning"]

WARNINGS: Final = frozenset[FindingKind]({"redundant write"})
"""Kinds that do not affect results: several threads write the same value to one memory cell."""


class SimtError(KernelError):
    """An error found by the emulation of a GPU; ``details`` contains all findings of the launch."""

    title = "Kernel fault"


class TrapError(SimtError):
    """A launch that a thread aborted because of invalid data."""

    title = "Aborted launch"


class DataRaceError(SimtError):
    """Two unordered accesses of the same memory by different threads, at least one a write."""

    title = "Data race"


class SimtDivergentBarrierError(SimtError, DivergentBarrierError):
    """A barrier that only some threads of a block reach."""

    title = "Divergent barrier"


class DivergentOperationError(SimtError):
    """A warp operation that only some threads of the warp execute."""

    title = "Divergent operation"


class UninitializedReadError(SimtError):
    """A read of memory that no thread has written."""

    title = "Uninitialized read"


class OutOfBoundsAccessError(SimtError):
    """An access outside of a buffer, or a write of a read-only buffer."""

    title = "Out-of-bounds access"


class MisalignedAccessError(SimtError):
    """An access whose address is not a multiple of the required alignment."""

    title = "Misaligned access"


ERRORS: Final[dict[FindingKind, type[SimtError]]] = {
    "race": DataRaceError,
    "divergent barrier": SimtDivergentBarrierError,
    "divergent operation": DivergentOperationError,
    "uninitialized read": UninitializedReadError,
    "out of bounds": OutOfBoundsAccessError,
    "misaligned": MisalignedAccessError,
}


@dataclass(frozen=True, slots=True)
class ThreadId:
    """A thread of the grid: the index of its block and its index in the block, as (x, y, z)."""

    block: tuple[int, int, int]
    thread: tuple[int, int, int]

    def __str__(self) -> str:
        """Return the thread as text, without trailing zero axes."""
        return f"thread {_point(self.thread)} of block {_point(self.block)}"


def _point(point: tuple[int, int, int]) -> str:
    x, y, z = point
    shown = point if z else point[:2] if y else point[:1]
    return str(x) if len(shown) == 1 else f"({', '.join(map(str, shown))})"


@dataclass(frozen=True, slots=True)
class MemoryCell:
    """A location in memory: buffer, byte offset, and indices of the element."""

    buffer: str
    space: str
    offset: int
    element: tuple[int, ...]

    def __str__(self) -> str:
        """Return the element of the buffer as text, with the byte offset."""
        indices = ", ".join(map(str, self.element))
        return f"{self.space} {self.buffer}[{indices}] (byte {self.offset})"


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect of a statement, or of a pair of statements, with its first occurrence.

    Parameters
    ----------
    kind : str
        Kind of the defect.
    kernel : str
        Name of the kernel.
    site : StatementSite
        The statement, with its loops, its block, and the schedule step that created the block.
    message : str
        Description of the first occurrence, with threads, memory cell, and numbers.
    count : int
        Number of occurrences.
    threads : tuple of ThreadId
        Threads of the first occurrence.
    cell : MemoryCell, optional
        Memory cell of the first occurrence.
    other : StatementSite, optional
        The earlier statement of a race.
    """

    kind: FindingKind
    kernel: str
    site: StatementSite
    message: str
    count: int = 1
    threads: tuple[ThreadId, ...] = ()
    cell: MemoryCell | None = None
    other: StatementSite | None = None

    @property
    def severity(self) -> Severity:
        """``"error"`` if the defect can affect results, otherwise ``"warning"``."""
        return "warning" if self.kind in WARNINGS else "error"

    def __str__(self) -> str:
        """Render as text: kind, kernel, message, statements, and number of occurrences."""
        lines = [f"{self.kind} in kernel {self.kernel!r}: {self.message}", f"  at {self.site}"]
        if self.other is not None and self.other != self.site:
            lines.append(f"  and {self.other}")
        if self.count > 1:
            lines.append(f"  {self.count} occurrences")
        return "\n".join(lines)

    def to_json(self) -> Json:
        """Render as JSON data."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "kernel": self.kernel,
            "message": self.message,
            "count": self.count,
            "site": self.site.to_json(),
            "other": None if self.other is None else self.other.to_json(),
            "threads": [{"block": list(t.block), "thread": list(t.thread)} for t in self.threads],
            "cell": None
            if self.cell is None
            else {
                "buffer": self.cell.buffer,
                "space": self.cell.space,
                "offset": self.cell.offset,
                "element": list(self.cell.element),
            },
        }


@dataclass(slots=True)
class _Counted:
    finding: Finding
    count: int


@dataclass(slots=True)
class Findings:
    """The findings of one launch, one for each kind and statement, with counts."""

    kernel: str
    _counted: dict[tuple[FindingKind, StatementSite, StatementSite | None], _Counted] = field(
        default_factory=dict[tuple[FindingKind, StatementSite, StatementSite | None], _Counted]
    )

    def count_known(
        self, kind: FindingKind, site: StatementSite, other: StatementSite | None, count: int
    ) -> bool:
        """Add to the count of an existing finding; return whether the finding exists."""
        found = self._counted.get((kind, site, other))
        if found is not None:
            found.count += count
        return found is not None

    def add(
        self,
        kind: FindingKind,
        site: StatementSite,
        message: str,
        *,
        count: int = 1,
        threads: tuple[ThreadId, ...] = (),
        cell: MemoryCell | None = None,
        other: StatementSite | None = None,
    ) -> None:
        """Add a finding, or count it with the existing one of its kind and statements."""
        if not self.count_known(kind, site, other, count):
            finding = Finding(kind, self.kernel, site, message, 1, threads, cell, other)
            self._counted[kind, site, other] = _Counted(finding, count)

    def all(self) -> tuple[Finding, ...]:
        """Return the findings with their counts, errors first."""
        from dataclasses import replace

        found = [replace(c.finding, count=c.count) for c in self._counted.values()]
        return tuple(sorted(found, key=lambda f: f.severity != "error"))
