"""Fragments of TypeScript, JavaScript, CSS, C, TOML, Makefiles, shell, Markdown and notebooks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, cast

from . import python_source
from .fragments import Domain, Fragment, identifiers, prose

STRINGS = r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
C_LIKE = re.compile(
    rf"(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<string>{STRINGS}|`(?:[^`\\]|\\.)*`)"
    r"|(?P<name>(?<![.\w])[A-Za-z_$][\w$]*)",
    re.DOTALL,
)
CSS = re.compile(
    r"(?P<comment>/\*.*?\*/)|(?P<name>(?<=[.#])[A-Za-z][\w-]*|--[a-z][\w-]*)", re.DOTALL
)
HASH = re.compile(
    r"(?P<comment>(?<!\S)#[^\n]*(?:\n[ \t]*#[^\n]*)*)"
    rf"|(?P<string>\"\"\"(?:.*?)\"\"\"|'''(?:.*?)'''|{STRINGS})"
    r"|(?P<name>^[A-Za-z_][\w-]*(?=\s*(?::?=|:|\(\))))",
    re.DOTALL | re.MULTILINE,
)
JSX_TEXT = re.compile(r"(?<=[>}])\s*([A-Za-z][^<>{}=;()|&]*?)\s*(?=[<{])")
TEMPLATE_HOLE = re.compile(r"\$\{[^{}]*\}")
COMMENT_MARK = re.compile(r"^[ \t]*(?:/\*+|\*+/|//+|\*|#+!?)|\*+/$", re.MULTILINE)
FENCE = re.compile(r"^[ \t]*(```+|~~~+)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
ESCAPE = re.compile(r"\\[nrt]")


def blanked(text: str, pattern: re.Pattern[str]) -> str:
    """Return the text with each match replaced by spaces, line breaks kept."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def tokens(text: str, pattern: re.Pattern[str]) -> Iterator[Fragment]:
    """Yield comments, string literals and names, each found by a group of the pattern."""
    names: list[tuple[str, int]] = []
    end_of_comment, block = -1, ""
    first = 0
    for match in pattern.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        match match.lastgroup:
            case "comment":
                between = text[end_of_comment : match.start()] if end_of_comment >= 0 else "x"
                joins = not match[0].startswith("/*") and between.count("\n") == 1
                if block and joins and not between.strip():
                    block += "\n" + blanked(match[0], COMMENT_MARK)
                else:
                    if block:
                        yield from prose(block, first)
                    block, first = blanked(match[0], COMMENT_MARK), line
                # A block comment is a text of its own.
                end_of_comment = -1 if match[0].startswith("/*") else match.end()
            case "string":
                yield from string(match[0], line, names)
            case _:
                names.append((match[0].replace("-", "_"), line))
    if block:
        yield from prose(block, first)
    yield from identifiers(names)


def string(raw: str, line: int, names: list[tuple[str, int]]) -> Iterator[Fragment]:
    """Yield a literal as a message, or add it to the names where it is one word."""
    text = raw.strip("\"'`")
    if re.fullmatch(r"[A-Za-z_][\w-]*", text):
        names.append((text.replace("-", "_"), line))
        return
    text = TEMPLATE_HOLE.sub("{}", ESCAPE.sub("  ", text))
    yield Fragment(Domain.MESSAGE, line, text, line + text.count("\n"))


def python(text: str) -> Iterator[Fragment]:
    """Yield the fragments of Python."""
    yield from python_source.fragments(python_source.parse(text))


def c_like(text: str) -> Iterator[Fragment]:
    """Yield the fragments of C, JavaScript and TypeScript."""
    yield from tokens(text, C_LIKE)


def tsx(text: str) -> Iterator[Fragment]:
    """Yield the fragments of TypeScript with elements, their text included."""
    yield from tokens(text, C_LIKE)
    for match in JSX_TEXT.finditer(text):
        line = text.count("\n", 0, match.start(1)) + 1
        yield Fragment(Domain.MESSAGE, line, match[1], line + match[1].count("\n"))


def css(text: str) -> Iterator[Fragment]:
    """Yield the comments and class names of a style sheet."""
    yield from tokens(text, CSS)


def hashed(text: str) -> Iterator[Fragment]:
    """Yield the fragments of TOML, Makefiles and shell scripts."""
    yield from tokens(text, HASH)


def markdown(text: str, line: int = 1) -> Iterator[Fragment]:
    """Yield the prose of Markdown; of code blocks, the comments and names."""
    for match in FENCE.finditer(text):
        start = line + text.count("\n", 0, match.start(2))
        yield from moved(tokens(match[2], HASH), start - 1)
    yield from prose(blanked(text, FENCE), line)


def moved(pieces: Iterator[Fragment], lines: int) -> Iterator[Fragment]:
    """Yield fragments as many lines further down."""
    for piece in pieces:
        yield Fragment(
            piece.domain, piece.line + lines, piece.text, piece.end and piece.end + lines
        )


def notebook(text: str) -> Iterator[Fragment]:
    """Yield the fragments of the cells of a notebook; outputs are made by running it."""
    cells = cast("list[dict[str, Any]]", json.loads(text)["cells"])
    cursor = 1
    lines = text.splitlines()
    for cell in cells:
        source = "".join(cell["source"])
        cursor = line_of(lines, source, cursor)
        if cell["cell_type"] == "markdown":
            yield from markdown(source, cursor)
        elif cell["cell_type"] == "code":
            code = re.sub(r"^[%!].*$", "", source, flags=re.MULTILINE)
            yield from moved(python(code), cursor - 1)


def line_of(lines: list[str], source: str, start: int) -> int:
    """Return the line of the notebook's file where the source of a cell begins."""
    first = json.dumps(source.split("\n", 1)[0], ensure_ascii=False)[1:-1]
    for number in range(start, len(lines) + 1):
        if first in lines[number - 1]:
            return number
    return start


PARSERS: dict[str, Callable[[str], Iterator[Fragment]]] = {
    ".py": python,
    ".pyi": python,
    ".ts": c_like,
    ".js": c_like,
    ".mjs": c_like,
    ".c": c_like,
    ".h": c_like,
    ".tsx": tsx,
    ".css": css,
    ".toml": hashed,
    ".md": markdown,
    ".ipynb": notebook,
    "": hashed,
}
