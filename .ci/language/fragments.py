"""Pieces of a file that the rules apply to: prose, messages and identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class Domain(StrEnum):
    """The kind of text that a rule applies to."""

    PROSE = "prose"
    MESSAGE = "message"
    IDENTIFIER = "identifier"


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of text with the line it starts at.

    The text of prose keeps the line breaks of the file. A message may join several literals: its
    lines are `line` to `end`.
    """

    domain: Domain
    line: int
    text: str
    end: int = 0


CODE_SPAN = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
DOCTEST = re.compile(r"^[ \t]*(?:>>>|\.\.\.)(?: .*)?$", re.MULTILINE)
LINK_TARGET = re.compile(r"\]\([^)\s]*\)|https?://\S+|<[a-z/!][^>]*>", re.IGNORECASE)
NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
MASK = "·"


def masked(text: str, pattern: re.Pattern[str]) -> str:
    """Return the text with each match replaced by as many neutral characters."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", MASK, match[0]), text)


def words_of(name: str) -> str:
    """Return the words of an identifier, separated by spaces and in lower case.

    >>> words_of("HostIRView.max_row2")
    'host ir view max row2'
    """
    return " ".join(CAMEL.sub(" ", name).replace("_", " ").replace(".", " ").lower().split())


def identifiers(names: Iterable[tuple[str, int]]) -> Iterator[Fragment]:
    """Yield one fragment per name, at its first line."""
    seen: set[str] = set()
    for name, line in names:
        if name not in seen:
            seen.add(name)
            yield Fragment(Domain.IDENTIFIER, line, words_of(name))


def prose(text: str, line: int) -> Iterator[Fragment]:
    """Yield prose without its code, and the identifiers that the code mentions."""
    names = [
        (name, line + text.count("\n", 0, match.start()))
        for match in CODE_SPAN.finditer(text)
        for name in NAME.findall(match[2])
    ]
    yield from identifiers(names)
    for pattern in (CODE_SPAN, DOCTEST, LINK_TARGET):
        text = masked(text, pattern)
    yield Fragment(Domain.PROSE, line, text)
