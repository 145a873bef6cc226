"""Side-by-side comparison of a program with the semantics of an instruction, with fixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ...errors import Json
from ..apply import Primitive
from ..handles import Handle
from ..problem import handle_json
from .difference import Kind

_NOTHING: Mapping[str, Json] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A difference between the program and the semantics of an instruction, with fixes.

    Parameters
    ----------
    kind : str
        ``extent``, ``dtype``, ``layout``, ``access``, ``reduction``, ``scope``, ``target`` or
        ``predicate``.
    program : str
        The text of the program; empty if it has no counterpart.
    pattern : str
        The text of the semantics; empty if it has no counterpart.
    message : str
        The difference, with names, actual and expected values.
    where : tuple of Handle
        The differing parts of the program.
    numbers : Mapping[str, Json]
        The values in the message, as data.
    fixes : tuple of Primitive
        Filled-in steps; each is legal in this state and removes this mismatch.
    """

    kind: Kind
    program: str
    pattern: str
    message: str
    where: tuple[Handle, ...] = ()
    numbers: Mapping[str, Json] = field(default_factory=lambda: _NOTHING)
    fixes: tuple[Primitive, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return the mismatch as JSON data."""
        return {
            "kind": self.kind,
            "program": self.program,
            "pattern": self.pattern,
            "message": self.message,
            "where": [handle_json(ref) for ref in self.where],
            "numbers": dict(self.numbers),
            "fixes": [fix.title() for fix in self.fixes],
        }


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the program beside the corresponding line of the semantics.

    ``marks`` are the positions of its mismatches.
    """

    program: str
    pattern: str
    marks: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return the row as JSON data."""
        return {"program": self.program, "pattern": self.pattern, "marks": [*self.marks]}


@dataclass(frozen=True, slots=True)
class Match:
    """The comparison of a part of a program with the semantics of an instruction.

    Parameters
    ----------
    intrinsic : str
        The name of the instruction.
    summary : str
        The summary of the instruction.
    rows : tuple of Row
        Both sides by line: loops, guards, the store, buffers, the target.
    mismatches : tuple of Mismatch
        The differences; empty if the instruction implements the program.
    """

    intrinsic: str
    summary: str
    rows: tuple[Row, ...]
    mismatches: tuple[Mismatch, ...]

    @property
    def matches(self) -> bool:
        """True if the instruction implements the program."""
        return not self.mismatches

    def table(self) -> str:
        """Return both sides as text; lines are marked with the numbers of their mismatches."""
        width = max((len(r.program) for r in self.rows), default=0)
        lines = [f"{'':6}{'program':{width}}   {self.intrinsic}"]
        for row in self.rows:
            marks = ",".join(str(m + 1) for m in row.marks)
            lines.append(f"{marks:>4}  {row.program:{width}} | {row.pattern}".rstrip())
        return "\n".join(lines)

    def __str__(self) -> str:
        """Return both sides as text, then each mismatch with its fixes."""
        lines = [self.table()]
        for number, mismatch in enumerate(self.mismatches, 1):
            lines.append(f"{number}. {mismatch.kind}: {mismatch.message}")
            lines += [f"   fix: {fix.title()}" for fix in mismatch.fixes]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Json]:
        """Return the comparison as JSON data."""
        return {
            "intrinsic": self.intrinsic,
            "summary": self.summary,
            "rows": [row.to_json() for row in self.rows],
            "mismatches": [mismatch.to_json() for mismatch in self.mismatches],
        }
