"""Mapping between characters of a printed text and IR nodes, for selections in the UI."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..identity import Uid
from .printer.lines import Lines, Mark, Span

# A string, or a word with the next character: `exp(` and `axis=` do not name nodes, but a nested
# `def y(` names the value of a loop.
_WORDS: Final = re.compile(
    r"""(?P<block>\bblock\()?(?:"(?P<text>(?:[^"\\]|\\.)*)"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<word>[^\W\d]\w*)(?P<next>[\[(=]?)"""
)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A text and the spans of its nodes, in the order of the text."""

    text: str
    spans: tuple[Span, ...]

    def at(self, line: int, column: int) -> Span | None:
        """Return the span at a line and column, both counted from 1.

        If no span contains the position, return the innermost definition that contains the line.
        """
        exact = (s for s in self.spans if s.line == line and s.column <= column < s.end)
        inside = [s for s in self.spans if s.role == "defined" and s.line <= line <= s.last_line]
        return next(exact, inside[-1] if inside else None)

    def of(self, function: str, uid: Uid) -> tuple[Span, ...]:
        """Return all spans of a node, its definition and its uses."""
        return tuple(s for s in self.spans if s.function == function and s.uid == uid)


def spans_of(function: str, lines: Lines) -> tuple[Span, ...]:
    """Return the spans of the nodes of one function."""
    if not lines.spans:
        lines.spans.extend(_Finder(function, lines.marks).find(lines.lines))
    return tuple(lines.spans)


def shifted(spans: Iterable[Span], lines: int) -> Iterator[Span]:
    """Yield the spans moved down by a number of lines."""
    return (s._replace(line=s.line + lines, last_line=s.last_line + lines) for s in spans)


class _Word(NamedTuple):
    """A word that may name a node, with its column counted from 0."""

    name: str
    column: int
    is_block: bool
    indexed: bool


class _Finder:
    """Finds the names of nodes in lines of text."""

    def __init__(self, function: str, marks: list[Mark]) -> None:
        self._function = function
        self._nodes: dict[tuple[bool, str], list[Mark]] = {}
        self._defined: set[Mark] = set()
        for mark in marks:
            self._nodes.setdefault((mark.kind == "block", mark.name), []).append(mark)

    def find(self, lines: list[str]) -> Iterator[Span]:
        for number, line in enumerate(lines):
            for match in _WORDS.finditer(line):
                found = self._named(match)
                if found is not None:
                    yield from self._span(number, found)

    @staticmethod
    def _named(match: re.Match[str]) -> _Word | None:
        """Return the word of a match if it can name a node."""
        if match["block"] is not None:
            return _Word(match["text"], match.start("text"), is_block=True, indexed=False)
        word = match["word"]
        loop = match.string.startswith(" ") and match.string[: match.start()].strip() == "def"
        if word is None or match["next"] == "=" or (match["next"] == "(" and not loop):
            return None
        indexed = match["next"] == "["
        return _Word(word, match.start("word"), is_block=False, indexed=indexed)

    def _span(self, number: int, word: _Word) -> Iterator[Span]:
        known = self._nodes.get((word.is_block, word.name), ())
        marks = [m for m in known if m.first <= number]
        matching_kind = [m for m in marks if (m.kind == "loop") != word.indexed]
        for mark in (matching_kind or marks)[-1:]:
            first = mark not in self._defined
            self._defined.add(mark)
            last = max(mark.end, number + 1) if first else number + 1
            yield Span(
                self._function,
                mark.kind,
                mark.uid,
                word.name,
                "defined" if first else "used",
                number + 1,
                word.column + 1,
                word.column + 1 + len(word.name),
                last,
            )
