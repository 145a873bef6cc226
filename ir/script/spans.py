"""Which characters of a printed text stand for which node, so that a selection can be linked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..identity import Uid
from .printing.lines import Lines, Mark, Span

# A string, or a word with the character behind it: `exp(` and `axis=` are no nodes.
_WORDS: Final = re.compile(
    r"""(?P<block>\bblock\()?(?:"(?P<text>(?:[^"\\]|\\.)*)"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<word>[^\W\d]\w*)(?P<next>[\[(=]?)"""
)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A text and the places of its nodes, in the order of the text."""

    text: str
    spans: tuple[Span, ...]

    def at(self, line: int, column: int) -> Span | None:
        """Give the span at a place, counted from 1.

        Where no word is meant, it is the innermost definition around the line.
        """
        exact = (s for s in self.spans if s.line == line and s.column <= column < s.end)
        inside = [s for s in self.spans if s.role == "defined" and s.line <= line <= s.last_line]
        return next(exact, inside[-1] if inside else None)

    def of(self, function: str, uid: Uid) -> tuple[Span, ...]:
        """Give all spans of a node, its definition and its uses."""
        return tuple(s for s in self.spans if s.function == function and s.uid == uid)


def spans_of(function: str, lines: Lines) -> tuple[Span, ...]:
    """Find the nodes of one function in its lines."""
    if not lines.spans:
        lines.spans.extend(_Finder(function, lines.marks).find(lines.lines))
    return tuple(lines.spans)


def shifted(spans: Iterable[Span], lines: int) -> Iterator[Span]:
    """Move spans down."""
    return (s._replace(line=s.line + lines, last_line=s.last_line + lines) for s in spans)


class _Word(NamedTuple):
    """A word that may name a node, from a column counted from 0."""

    name: str
    column: int
    is_block: bool
    indexed: bool


class _Finder:
    """Looks for the names of nodes, line by line."""

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
        """Give what the match may name."""
        if match["block"] is not None:
            return _Word(match["text"], match.start("text"), is_block=True, indexed=False)
        word = match["word"]
        if word is None or match["next"] in ("(", "="):
            return None
        indexed = match["next"] == "["
        return _Word(word, match.start("word"), is_block=False, indexed=indexed)

    def _span(self, number: int, word: _Word) -> Iterator[Span]:
        known = self._nodes.get((word.is_block, word.name), ())
        marks = [m for m in known if m.first <= number]
        loops_apart = [m for m in marks if (m.kind == "loop") != word.indexed]
        for mark in (loops_apart or marks)[-1:]:
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
