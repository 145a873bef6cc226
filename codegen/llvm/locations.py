"""Which statement every instruction came from: debug locations in, assembly lines out.

The "source file" of the debug information is a list of :class:`Source`: line ``k`` is the ``k``-th.
It is best effort: LLVM merges instructions and drops locations it can no longer vouch for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ...ir.thread.nodes import NO_SOURCE, Source

_HEADER: Final[tuple[str, ...]] = (
    (
        '!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, producer: "tilewright",'
        " isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)"
    ),
    '!1 = !DIFile(filename: "statements", directory: "")',
    '!2 = !{i32 2, !"Debug Info Version", i32 3}',
    "!3 = !DISubroutineType(types: !4)",
    "!4 = !{}",
)


class Locations:
    """The debug information of one module."""

    def __init__(self) -> None:
        """Start with line 1 still to be given."""
        self.sources: list[Source] = []
        self._lines: dict[Source, int] = {}
        self._nodes = list(_HEADER)
        self._places: dict[tuple[int, int], int] = {}

    def _add(self, node: str) -> int:
        self._nodes.append(f"!{len(self._nodes)} = {node}")
        return len(self._nodes) - 1

    def function(self, name: str) -> int:
        """Give the number of a function's scope."""
        return self._add(
            f'distinct !DISubprogram(name: "{name}", scope: !1, file: !1, line: 0, type: !3,'
            " scopeLine: 0, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)"
        )

    def place(self, source: Source, scope: int) -> int:
        """Give the number of a statement's location."""
        line = self._lines.get(source)
        if line is None:
            self.sources.append(source)
            line = self._lines[source] = len(self.sources)
        key = (line, scope)
        if key not in self._places:
            self._places[key] = self._add(f"!DILocation(line: {line}, scope: !{scope})")
        return self._places[key]

    def text(self) -> str:
        """Write the metadata of the module."""
        return "\n".join(("!llvm.dbg.cu = !{!0}", "!llvm.module.flags = !{!2}", *self._nodes))


Provenance: TypeAlias = Literal["statement", "merged", "none"]


@dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction, and the statement it came from where that is known.

    ``provenance`` says why there is no ``source``: ``merged`` where LLVM made one instruction of
    several statements', ``none`` where it serves the function as a whole (saving registers).
    """

    text: str
    source: Source | None
    provenance: Provenance


_LOCATION = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_FUNCTION = re.compile(r"\s*\.cfi_startproc")
_INSTRUCTION = re.compile(r"\s+([a-z][^\s:]*)(\s|$)")


def instructions(assembly: str, sources: tuple[Source, ...]) -> tuple[Instruction, ...]:
    r"""Read assembly text that was made with locations.

    Parameters
    ----------
    assembly : str
        What :func:`assembly` gives for a located module.
    sources : tuple of Source
        The located module's statements; line ``k`` of the debug information is the ``k``-th.

    Returns
    -------
    tuple of Instruction
        In order; ``source`` is None where LLVM merged statements or made something up.

    Examples
    --------
    >>> text = "\t.cfi_startproc\n\tpushq\t%rbx\n\t.loc\t1 1 0\n\taddq\t%rax, %rbx\n"
    >>> text += "\t.loc\t1 0 0\n\tretq\n"
    >>> [(i.text, i.provenance) for i in instructions(text, (Source(7),))]
    [('pushq\t%rbx', 'none'), ('addq\t%rax, %rbx', 'statement'), ('retq', 'merged')]
    """
    found: list[Instruction] = []
    line: int | None = None
    for row in assembly.splitlines():
        location = _LOCATION.match(row)
        if location:
            line = int(location.group(1))
        elif _FUNCTION.match(row):
            line = None
        elif _INSTRUCTION.match(row):
            found.append(_instruction(row.strip(), line, sources))
    return tuple(found)


def _instruction(text: str, line: int | None, sources: tuple[Source, ...]) -> Instruction:
    if line is None:
        return Instruction(text, None, "none")
    source = sources[line - 1] if 0 < line <= len(sources) else NO_SOURCE
    known = source.uid is not None
    return Instruction(text, source if known else None, "statement" if known else "merged")
