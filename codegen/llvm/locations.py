"""Debug locations: the statement that each machine instruction belongs to.

The "source file" of the debug information is a list of :class:`Source`; line ``k`` is the ``k``-th
element. Locations are best effort: LLVM merges instructions and drops ambiguous locations.
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
        """Initialize without lines."""
        self.sources: list[Source] = []
        self._lines: dict[Source, int] = {}
        self._nodes = list(_HEADER)
        self._locations: dict[tuple[int, int], int] = {}

    def add(self, node: str) -> int:
        """Add a metadata node; return its number."""
        self._nodes.append(f"!{len(self._nodes)} = {node}")
        return len(self._nodes) - 1

    @property
    def count(self) -> int:
        """The number of metadata nodes."""
        return len(self._nodes)

    def function(self, name: str) -> int:
        """Return the metadata number of the scope of a function."""
        return self.add(
            f'distinct !DISubprogram(name: "{name}", scope: !1, file: !1, line: 0, type: !3,'
            " scopeLine: 0, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)"
        )

    def location(self, source: Source, scope: int) -> int:
        """Return the metadata number of the location of a statement."""
        line = self._lines.get(source)
        if line is None:
            self.sources.append(source)
            line = self._lines[source] = len(self.sources)
        key = (line, scope)
        if key not in self._locations:
            self._locations[key] = self.add(f"!DILocation(line: {line}, scope: !{scope})")
        return self._locations[key]

    def text(self) -> str:
        """Return the metadata of the module."""
        return "\n".join(("!llvm.dbg.cu = !{!0}", "!llvm.module.flags = !{!2}", *self._nodes))


Provenance: TypeAlias = Literal["statement", "merged", "none"]


@dataclass(frozen=True, slots=True)
class Instruction:
    """A machine instruction with the statement that it belongs to, if known.

    ``provenance`` is ``merged`` if LLVM combined or moved code of several statements, and ``none``
    if the instruction belongs to no statement: it saves registers of the caller, or the register
    allocator inserted it (spills, reloads, and copies). In both cases ``source`` is None.
    """

    text: str
    source: Source | None
    provenance: Provenance


_LOCATION = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_FUNCTION = re.compile(r"\s*\.cfi_startproc")
_INSTRUCTION = re.compile(r"\s+([a-z][^\s:]*)(\s|$)")
# A move between x86 registers and stack slots; instructions of a statement carry its location.
_REGISTER_MOVE = re.compile(r"v?mov\w*\s+(%\w+|-?\d*\(%rsp\)),\s*(%\w+|-?\d*\(%rsp\))(\s*#.*)?$")


def instructions(assembly: str, sources: tuple[Source, ...]) -> tuple[Instruction, ...]:
    r"""Return the instructions of assembly text with debug locations.

    Parameters
    ----------
    assembly : str
        The result of :func:`assembly` for a module with locations.
    sources : tuple of Source
        The statements of the module; line ``k`` of the debug information is the ``k``-th.

    Returns
    -------
    tuple of Instruction
        The instructions in order; ``source`` is None for an instruction without a single statement.

    Examples
    --------
    >>> text = "\t.cfi_startproc\n\tpushq\t%rbx\n\t.loc\t1 1 0\n\taddq\t%rax, %rbx\n"
    >>> text += "\t.loc\t1 0 0\n\tmovq\t8(%rsp), %rax\n\tretq\n"
    >>> for found in instructions(text, (Source(7),)):
    ...     print(found.provenance, found.text.split()[0])
    none pushq
    statement addq
    none movq
    merged retq
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
    if line is None or (line == 0 and _REGISTER_MOVE.match(text)):
        return Instruction(text, None, "none")
    source = sources[line - 1] if 0 < line <= len(sources) else NO_SOURCE
    known = source.uid is not None
    return Instruction(text, source if known else None, "statement" if known else "merged")
