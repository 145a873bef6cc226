"""What an attempt to tensorize tells: a comparison side by side, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ...ir.errors import Json
from ..primitive import Primitive
from ..problem import ref_json
from ..refs import Ref
from .difference import Kind

_NOTHING: Mapping[str, Json] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One way in which a part of a program is not what an instruction computes.

    Parameters
    ----------
    kind : str
        ``extent``, ``dtype``, ``layout``, ``access``, ``reduction``, ``scope``, ``target`` or
        ``predicate``.
    program, pattern : str
        The texts that differ, of the program and of the instruction; empty where there is nothing.
    message : str
        What is wrong, with names and numbers.
    where : tuple of Ref
        The parts of the program at fault.
    numbers : Mapping[str, Json]
        The quantities of the message as data.
    fixes : tuple of Primitive
        Filled-in steps; each is legal now and removes this mismatch.
    """

    kind: Kind
    program: str
    pattern: str
    message: str
    where: tuple[Ref, ...] = ()
    numbers: Mapping[str, Json] = field(default_factory=lambda: _NOTHING)
    fixes: tuple[Primitive, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Render as plain data."""
        return {
            "kind": self.kind,
            "program": self.program,
            "pattern": self.pattern,
            "message": self.message,
            "where": [ref_json(ref) for ref in self.where],
            "numbers": dict(self.numbers),
            "fixes": [fix.title() for fix in self.fixes],
        }


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the program beside the one of the instruction that it should be.

    ``marks`` are positions in the mismatches.
    """

    program: str
    pattern: str
    marks: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Render as plain data."""
        return {"program": self.program, "pattern": self.pattern, "marks": [*self.marks]}


@dataclass(frozen=True, slots=True)
class Match:
    """A part of a program side by side with what an instruction computes.

    Parameters
    ----------
    intrinsic, summary : str
        The instruction's name, and what it does.
    rows : tuple of Row
        Both sides, line by line: loops, guards, the store, buffers, the target.
    mismatches : tuple of Mismatch
        What differs; none: the instruction can do this work.
    """

    intrinsic: str
    summary: str
    rows: tuple[Row, ...]
    mismatches: tuple[Mismatch, ...]

    @property
    def matches(self) -> bool:
        """Whether the instruction can do this work."""
        return not self.mismatches

    def table(self) -> str:
        """Print the two sides, marked lines with the numbers of their mismatches."""
        width = max((len(r.program) for r in self.rows), default=0)
        lines = [f"{'':6}{'program':{width}}   {self.intrinsic}"]
        for row in self.rows:
            marks = ",".join(str(m + 1) for m in row.marks)
            lines.append(f"{marks:>4}  {row.program:{width}} | {row.pattern}".rstrip())
        return "\n".join(lines)

    def __str__(self) -> str:
        """Print the two sides, then each mismatch with the steps that mend it."""
        lines = [self.table()]
        for number, mismatch in enumerate(self.mismatches, 1):
            lines.append(f"{number}. {mismatch.kind}: {mismatch.message}")
            lines += [f"   fix: {fix.title()}" for fix in mismatch.fixes]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Json]:
        """Render as plain data."""
        return {
            "intrinsic": self.intrinsic,
            "summary": self.summary,
            "rows": [row.to_json() for row in self.rows],
            "mismatches": [mismatch.to_json() for mismatch in self.mismatches],
        }
