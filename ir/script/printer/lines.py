"""Buffers of text lines with the IR nodes that the lines print."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal, NamedTuple, TypeAlias

from ...identity import Uid

NodeKind: TypeAlias = Literal["loop", "block", "buffer", "binding"]
Role: TypeAlias = Literal["defined", "used"]

WIDTH = 100
INDENT = "    "


class Mark(NamedTuple):
    """The lines ``[first, end)``, counted from 0, that print a node."""

    first: int
    end: int
    kind: NodeKind
    uid: Uid
    name: str


class Span(NamedTuple):
    """A word of the text that names a node.

    ``line`` and ``column`` count from 1; ``end`` is the column after the word. ``last_line`` is
    the last line of a definition (a loop with its body). ``function`` and ``uid`` together
    identify the node.
    """

    function: str
    kind: NodeKind
    uid: Uid
    name: str
    role: Role
    line: int
    column: int
    end: int
    last_line: int

    def __str__(self) -> str:
        """Return kind, name, role and location as text."""
        body = f" to line {self.last_line}" if self.last_line > self.line else ""
        return f"{self.kind} {self.name} {self.role} at {self.line}:{self.column}{body}"


class Lines:
    """A list of indented lines.

    Examples
    --------
    >>> out = Lines()
    >>> out.add("if x:")
    >>> with out.indented():
    ...     out.add("y")
    >>> out.lines
    ['if x:', '    y']
    """

    def __init__(self) -> None:
        """Start with no lines and no indentation."""
        self.lines: list[str] = []
        self.marks: list[Mark] = []
        self.spans: list[Span] = []
        self._prefix = ""

    def add(self, text: str) -> None:
        """Add one line at the current indentation."""
        self.lines.append(self._prefix + text)

    @contextmanager
    def indented(self) -> Generator[None]:
        """Indent the lines added in the context; an empty context adds ``pass``."""
        old, before = self._prefix, len(self.lines)
        self._prefix = old + INDENT
        yield
        if len(self.lines) == before:
            self.add("pass")
        self._prefix = old

    @contextmanager
    def marked(self, kind: NodeKind, uid: Uid, name: str) -> Generator[None]:
        """Record that the lines added in the context print a node."""
        first, slot = len(self.lines), len(self.marks)
        yield
        self.marks.insert(slot, Mark(first, len(self.lines), kind, uid, name))

    def call(
        self, head: str, arguments: list[str], tail: str = "", *, one_per_line: bool = False
    ) -> None:
        """Add ``head(arguments)tail``, wrapped if it exceeds the line width.

        All arguments go on one indented line if they fit; otherwise, or with ``one_per_line``,
        each argument gets its own line.
        """
        line = f"{head}({', '.join(arguments)}){tail}"
        if len(self._prefix) + len(line) <= WIDTH or not arguments:
            self.add(line)
            return
        self.add(f"{head}(")
        with self.indented():
            together = ", ".join(arguments)
            fits = self.fits(together) and not one_per_line
            for line in [together] if fits else [f"{a}," for a in arguments]:
                self.add(line)
        self.add(f"){tail}")

    def mark_from(self, line: int, kind: NodeKind, uid: Uid, name: str) -> None:
        """Record that a node is defined by its first occurrence at or after a line."""
        self.marks.append(Mark(line, line, kind, uid, name))

    def append(self, other: Lines) -> None:
        """Append the lines and marks of ``other``."""
        start = len(self.lines)
        self.lines.extend(other.lines)
        self.marks.extend(
            Mark(m.first + start, m.end + start, m.kind, m.uid, m.name) for m in other.marks
        )

    def fits(self, text: str) -> bool:
        """Return whether the text fits on one line at the current indentation."""
        return len(self._prefix) + len(text) <= WIDTH
