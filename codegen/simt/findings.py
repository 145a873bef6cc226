"""What the checker found, as data: kinds, places, numbers, and the errors they become."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from ...ir.errors import Json
from ..runtime.errors import KernelError
from .sites import Site

FindingKind: TypeAlias = Literal[
    "race",
    "redundant write",
    "divergent barrier",
    "divergent operation",
    "uninitialized read",
    "out of bounds",
    "misaligned",
    "illegal operand",
]

Severity: TypeAlias = Literal["error", "warning"]

WARNINGS: Final = frozenset[FindingKind]({"redundant write"})
"""Kinds that change no result: several threads write the same value to one place."""


class SimtError(KernelError):
    """A kernel does what no kernel may; ``details`` holds all findings of the launch."""

    title = "Kernel fault"


class TrapError(SimtError):
    """A thread aborted the launch, because of a mistake in the data."""

    title = "Launch aborted"


class DataRaceError(SimtError):
    """Two threads touch the same memory, one of them writes, and nothing orders them."""

    title = "Data race"


class DivergentBarrierError(SimtError):
    """Some threads of a block reach a barrier that others do not."""

    title = "Divergent barrier"


class DivergentOperationError(SimtError):
    """Some threads of a warp do an operation that the whole warp has to do together."""

    title = "Divergent operation"


class UninitializedReadError(SimtError):
    """Memory is read that nothing has written."""

    title = "Uninitialized read"


class OutOfBoundsAccessError(SimtError):
    """Memory outside a buffer is accessed."""

    title = "Out of bounds"


class MisalignedAccessError(SimtError):
    """An access is not aligned as its instruction demands."""

    title = "Misaligned access"


class IllegalOperandError(SimtError):
    """An operation is handed what it has no meaning for."""

    title = "Illegal operand"


ERRORS: Final[dict[FindingKind, type[SimtError]]] = {
    "race": DataRaceError,
    "divergent barrier": DivergentBarrierError,
    "divergent operation": DivergentOperationError,
    "uninitialized read": UninitializedReadError,
    "out of bounds": OutOfBoundsAccessError,
    "misaligned": MisalignedAccessError,
    "illegal operand": IllegalOperandError,
}


@dataclass(frozen=True, slots=True)
class ThreadId:
    """A thread of the grid: its block and its place in it, each as (x, y, z)."""

    block: tuple[int, int, int]
    thread: tuple[int, int, int]

    def __str__(self) -> str:
        """Print short: axes of one index are left out where all are zero."""
        return f"thread {_point(self.thread)} of block {_point(self.block)}"


def _point(point: tuple[int, int, int]) -> str:
    x, y, z = point
    shown = point if z else point[:2] if y else point[:1]
    return str(x) if len(shown) == 1 else f"({', '.join(map(str, shown))})"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in memory: buffer, byte offset in it, and the element by its indices."""

    buffer: str
    space: str
    offset: int
    element: tuple[int, ...]

    def __str__(self) -> str:
        """Print as an element of the buffer, with the byte offset."""
        indices = ", ".join(map(str, self.element))
        return f"{self.space} {self.buffer}[{indices}] (byte {self.offset})"


@dataclass(frozen=True, slots=True)
class Finding:
    """One defect, at one statement (or a pair of them), with the first instance's numbers.

    Parameters
    ----------
    kind : str
        What is wrong.
    kernel : str
        The function.
    site : Site
        The statement: its loops, what it was lowered from, the schedule step that made that.
    message : str
        What happened, with the numbers of the first instance.
    count : int
        How many instances there were.
    threads : tuple of ThreadId
        Who was involved in the first.
    place : Place, optional
        The memory that it is about.
    other : Site, optional
        The earlier statement, for a race.
    """

    kind: FindingKind
    kernel: str
    site: Site
    message: str
    count: int = 1
    threads: tuple[ThreadId, ...] = ()
    place: Place | None = None
    other: Site | None = None

    @property
    def severity(self) -> Severity:
        """Whether it makes the kernel wrong."""
        return "warning" if self.kind in WARNINGS else "error"

    def __str__(self) -> str:
        """Render as text: what, where, and since which step."""
        lines = [f"{self.kind} in kernel {self.kernel!r}: {self.message}", f"  at {self.site}"]
        if self.other is not None and self.other != self.site:
            lines.append(f"  and {self.other}")
        if self.count > 1:
            lines.append(f"  {self.count} times")
        return "\n".join(lines)

    def to_json(self) -> Json:
        """Render as plain data."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "kernel": self.kernel,
            "message": self.message,
            "count": self.count,
            "site": self.site.to_json(),
            "other": None if self.other is None else self.other.to_json(),
            "threads": [{"block": list(t.block), "thread": list(t.thread)} for t in self.threads],
            "place": None
            if self.place is None
            else {
                "buffer": self.place.buffer,
                "space": self.place.space,
                "offset": self.place.offset,
                "element": list(self.place.element),
            },
        }


@dataclass(slots=True)
class _Open:
    finding: Finding
    count: int


@dataclass(slots=True)
class Findings:
    """Collects findings of one launch; equal kinds at equal places are counted, not repeated."""

    kernel: str
    _open: dict[tuple[FindingKind, Site, Site | None], _Open] = field(
        default_factory=dict[tuple[FindingKind, Site, Site | None], _Open]
    )

    def known(self, kind: FindingKind, site: Site, other: Site | None, count: int) -> bool:
        """Count instances of a finding that is there already; tell whether it is."""
        found = self._open.get((kind, site, other))
        if found is not None:
            found.count += count
        return found is not None

    def add(
        self,
        kind: FindingKind,
        site: Site,
        message: str,
        *,
        count: int = 1,
        threads: tuple[ThreadId, ...] = (),
        place: Place | None = None,
        other: Site | None = None,
    ) -> None:
        """Keep a finding, or count it with the one of its kind and place."""
        if not self.known(kind, site, other, count):
            finding = Finding(kind, self.kernel, site, message, 1, threads, place, other)
            self._open[kind, site, other] = _Open(finding, count)

    def all(self) -> tuple[Finding, ...]:
        """Give what was found, errors first, each with its count."""
        from dataclasses import replace

        found = [replace(o.finding, count=o.count) for o in self._open.values()]
        return tuple(sorted(found, key=lambda f: f.severity != "error"))
