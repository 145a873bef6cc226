"""The base class of all errors that Tilewright raises for users, and excerpts of programs."""

from __future__ import annotations

import html
import linecache
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias, cast

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

# Control characters, characters that change the direction of the text around them, and code points
# that UTF-8 or XML cannot represent.
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069"
    "\ud800-\udfff\ufeff\ufffe\uffff]"
)

_PRE: Final = (
    "margin:4px 0;padding:6px 10px;overflow:auto;border-left:3px solid #c33;"
    "background:rgba(128,128,128,.1);font:12px/1.5 ui-monospace,monospace"
)
_MARK: Final = "color:inherit;background:rgba(204,51,51,.18);text-decoration:underline wavy #c33"


def visible(text: str) -> str:
    r"""Return a text with escapes in place of control and direction-changing characters.

    Tabs and line feeds are kept.

    Examples
    --------
    >>> print(visible("a" + chr(27) + "[31m" + chr(0x202E)))
    a\x1b[31m\u202e
    """
    return _INVISIBLE.sub(lambda m: _escape(ord(m[0])), text)


def escaped(text: str) -> str:
    """Return a text as HTML, with escapes in place of markup and invisible characters.

    Examples
    --------
    >>> escaped("<b>")
    '&lt;b&gt;'
    """
    return html.escape(visible(text))


def escaped_lines(text: str) -> str:
    """Return a text as HTML like `escaped`, with line breaks."""
    return escaped(text).replace("\n", "<br/>")


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


class Mark(NamedTuple):
    """Characters of a text to underline: a line, a column, and the column after the last one.

    All count from 1.
    """

    line: int
    column: int
    end: int


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a program with underlined parts, for error messages.

    Parameters
    ----------
    function : str
        The name of the function that the lines belong to; empty if unknown.
    lines : tuple of (int, str)
        Line numbers, which count from 1, and texts. Missing numbers are omitted lines.
    marks : tuple of Mark
        The underlined parts.

    Examples
    --------
    >>> print(Excerpt("f", ((1, "def f(n):"), (7, "    for i in range(n):")), (Mark(7, 9, 10),)))
    1 | def f(n):
      | ...
    7 |     for i in range(n):
      |         ^
    """

    function: str
    lines: tuple[tuple[int, str], ...]
    marks: tuple[Mark, ...]

    def __str__(self) -> str:
        """Return numbered lines, with carets under the marks."""
        return "\n".join(self._text_lines())

    def _text_lines(self) -> list[str]:
        width = len(str(self.lines[-1][0])) if self.lines else 1
        blank = " " * width
        made: list[str] = []
        last = None
        for number, text in self.lines:
            if last is not None and number != last + 1:
                made.append(f"{blank} | ...")
            made.append(f"{number:>{width}} | {visible(text)}".rstrip())
            carets = _carets(text, self._marks_of(number))
            if carets:
                made.append(f"{blank} | {carets}")
            last = number
        return made

    def _marks_of(self, number: int) -> list[Mark]:
        return sorted(m for m in self.marks if m.line == number)

    def to_html(self) -> str:
        """Return static HTML: escaped text, with the marked parts underlined."""
        width = len(str(self.lines[-1][0])) if self.lines else 1
        made: list[str] = []
        last = None
        for number, text in self.lines:
            if last is not None and number != last + 1:
                made.append(f'<span style="opacity:.5">{" " * width}   ...</span>')
            gutter = f'<span style="opacity:.5">{number:>{width}}</span>   '
            made.append(gutter + _marked_html(text, self._marks_of(number)))
            last = number
        return f'<pre style="{_PRE}">{chr(10).join(made)}</pre>'

    def to_json(self) -> dict[str, Json]:
        """Return the excerpt as JSON data."""
        return {
            "function": self.function,
            "lines": [[number, text] for number, text in self.lines],
            "marks": [list(mark) for mark in self.marks],
        }


def _carets(text: str, marks: list[Mark]) -> str:
    """Return the line of carets under the marked parts of a line; empty without marks."""
    made = ""
    for mark in marks:
        start = max(mark.column - 1, 0)
        lead = visible(text[:start])
        blank = "".join("\t" if c == "\t" else " " for c in lead[len(made) :])
        made += blank + "^" * max(len(visible(text[start : mark.end - 1])), 1)
    return made


def _marked_html(text: str, marks: list[Mark]) -> str:
    made, position = "", 0
    for mark in marks:
        start, end = max(mark.column - 1, position), max(mark.end - 1, position)
        made += escaped(text[position:start])
        inner = escaped(text[start:end]) or " "
        made += f'<mark style="{_MARK}">{inner}</mark>'
        position = end
    return made + escaped(text[position:])


FULL_TRACEBACK: Final = "TILEWRIGHT_FULL_TRACEBACK"
"""The environment variable that, if it is not empty, adds all frames to errors in notebooks."""


class TilewrightError(Exception):
    """The base class of user errors and exceeded machine limits.

    Parameters
    ----------
    message : str
        The problem, with the actual and the expected values.
    where : str
        The location: a function, parameter, loop, step or file position. Empty if unknown.
    hint : str
        The legal values, or a suggested fix. Empty if there is none.
    details : Mapping[str, Json]
        The same information as data, for the user interface and ``--json``.
    excerpts : Sequence of Excerpt
        Lines of the program with the parts at fault underlined.

    Examples
    --------
    >>> error = TilewrightError("extent 7 is not a multiple of 8", where="loop 'i'", hint="pad it")
    >>> print(error)
    extent 7 is not a multiple of 8
      at loop 'i'
      pad it
    """

    title: ClassVar[str] = "Error"

    def __init__(
        self,
        message: str,
        *,
        where: str = "",
        hint: str = "",
        details: Mapping[str, Json] | None = None,
        excerpts: Sequence[Excerpt] = (),
    ) -> None:
        """Store the parts, from which text, HTML and JSON are rendered."""
        self.message = message
        self.where = where
        self.hint = hint
        self.details: dict[str, Json] = dict(details or {})
        self._excerpts = tuple(excerpts)
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the attributes, for copies: a subclass may have other parameters than ``args``."""
        return _restored, (type(self), self.args), dict(self.__dict__)

    def excerpts(self) -> tuple[Excerpt, ...]:
        """Return lines of the program with the parts at fault underlined."""
        return self._excerpts

    def __str__(self) -> str:
        """Render as text: message, location, excerpts and hint, each on its own lines."""
        lines = [self.message]
        if self.where:
            lines.append(f"  at {self.where}")
        for excerpt in self.excerpts():
            lines += [f"    {line}" for line in str(excerpt).splitlines()]
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Render as static HTML for notebooks."""
        parts = [f"<strong>{escaped(self.title)}</strong>: {escaped_lines(self.message)}"]
        if self.where:
            parts.append(f"at {escaped_lines(self.where)}")
        parts += [excerpt.to_html() for excerpt in self.excerpts()]
        if self.hint:
            parts.append(escaped_lines(self.hint))
        return f"<div>{''.join(f'<div>{part}</div>' for part in parts)}</div>"

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython prints for an uncaught error.

        The frames are those of the user's code; with :data:`FULL_TRACEBACK`, they are all.
        """
        frames = list(_frames(self.__traceback__))
        if not os.environ.get(FULL_TRACEBACK):
            frames = [frame for frame in frames if not _is_internal(frame)]
        lines = [line for frame in frames for line in _frame_lines(frame)]
        return [*lines, f"{type(self).__name__}: {visible(str(self))}"]

    def to_json(self) -> dict[str, Json]:
        """Render as JSON data; ``kind`` is the name of the error class."""
        return {
            "kind": type(self).__name__,
            "title": self.title,
            "message": self.message,
            "where": self.where,
            "hint": self.hint,
            "details": self.details,
            "excerpts": [excerpt.to_json() for excerpt in self.excerpts()],
        }


def _restored(cls: type[TilewrightError], args: tuple[object, ...]) -> TilewrightError:
    """Return a copied error without its attributes, which ``copy`` adds."""
    return cls.__new__(cls, *args)


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_internal(traceback: TracebackType) -> bool:
    """Return whether a frame belongs to this package, to IPython or to Python itself."""
    package = str(traceback.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
    own = __name__.partition(".")[0]
    return package in (own, "IPython", "ipykernel") or (
        package in sys.stdlib_module_names and package != "__main__"
    )


def _frame_lines(traceback: TracebackType) -> Iterator[str]:
    """Yield the location and the line of a frame; a cell of a notebook by its number."""
    code, line = traceback.tb_frame.f_code, traceback.tb_lineno
    source = linecache.getlines(code.co_filename, traceback.tb_frame.f_globals)
    cells: object = traceback.tb_frame.f_globals.get("In")
    text = "".join(source).rstrip("\n")
    inputs = cast("list[object]", cells) if isinstance(cells, list) else []
    numbers = [k for k, cell in enumerate(inputs) if k and cell == text]
    location = f"Cell In[{numbers[-1]}]" if numbers and text else f'File "{code.co_filename}"'
    yield f"{location}, line {line}, in {code.co_name}"
    if 0 < line <= len(source):
        yield f"----> {line} {visible(source[line - 1].rstrip())}"


class MalformedProgramError(TilewrightError):
    """A program that violates a well-formedness rule of its level."""

    title = "Malformed program"


class ShapeMismatchError(TilewrightError):
    """Dimensions that must be equal differ: of operands, or of an argument and its annotation."""

    title = "Shape mismatch"


class UnpicklableError(TilewrightError, TypeError):
    """An object that cannot be pickled or copied, because it belongs to this process."""

    title = "Unpicklable object"


class UnsupportedOperatorsError(TilewrightError):
    """Operators of an imported model that Tilewright does not support; the error lists all."""

    title = "Unsupported operators"
