"""Which statement every instruction came from: debug locations in, assembly lines out.

The "source file" of the debug information is a list of :class:`Source`: line ``k`` is the ``k``-th.
It is best effort: LLVM merges instructions and drops locations it can no longer vouch for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ...ir.thread.nodes import Source

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
            f'distinct !DISubprogram(name: "{name}", scope: !1, file: !1, line: 1, type: !3,'
            " scopeLine: 1, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)"
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


@dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction, and the statement it came from where that is known."""

    text: str
    source: Source | None


_LOCATION = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
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
    >>> text = "f:\n\t.loc\t1 1 0\n\taddq\t%rax, %rbx\n\t.loc\t1 0 0\n\tretq\n"
    >>> [(i.text, i.source is None) for i in instructions(text, (Source(7),))]
    [('addq\t%rax, %rbx', False), ('retq', True)]
    """
    found: list[Instruction] = []
    line = 0
    for row in assembly.splitlines():
        location = _LOCATION.match(row)
        if location:
            line = int(location.group(1))
        elif _INSTRUCTION.match(row):
            source = sources[line - 1] if 0 < line <= len(sources) else None
            found.append(Instruction(row.strip(), source))
    return tuple(found)
