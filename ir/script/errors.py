"""Errors of the text format: parse errors with locations, and printing errors."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import Excerpt, Mark, TilewrightError


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A location in a program text.

    ``line`` and ``column`` count from 1; ``width`` is the number of characters to underline and
    ``text`` the content of the line.
    """

    line: int
    column: int
    width: int
    text: str

    def __str__(self) -> str:
        """Return the location as text."""
        return f"line {self.line}, column {self.column}"

    def excerpt(self) -> Excerpt:
        """Return the line as an excerpt with the located part underlined.

        Examples
        --------
        >>> print(SourceLocation(1, 5, 3, "y = foo + 1").excerpt())
        1 | y = foo + 1
          |     ^^^
        """
        mark = Mark(self.line, self.column, self.column + max(self.width, 1))
        return Excerpt("", ((self.line, self.text),), (mark,))


class ParseError(TilewrightError):
    """An invalid program text; the excerpt underlines ``location``.

    Examples
    --------
    >>> print(
    ...     ParseError(
    ...         "no buffer 'D'; buffers are A, B", location=SourceLocation(7, 5, 1, "x = D[i]")
    ...     )
    ... )
    no buffer 'D'; buffers are A, B
      at line 7, column 5
        7 | x = D[i]
          |     ^
    """

    title = "Parse error"

    def __init__(self, message: str, *, location: SourceLocation, hint: str = "") -> None:
        """Store the message and the location; both are also stored as data."""
        self.location = location
        self.line, self.column = location.line, location.column
        super().__init__(
            message,
            where=str(location),
            hint=hint,
            details={
                "line": location.line,
                "column": location.column,
                "width": location.width,
                "text": location.text,
            },
            excerpts=(location.excerpt(),),
        )


class BufferScopeError(ParseError):
    """A use of a temporary before or after the statements in which it exists."""

    title = "Buffer out of scope"


class ScriptSyntaxError(ParseError):
    """Text that is not valid Python, or Python syntax that the text format does not support."""

    title = "Syntax error"


class UnknownNameError(ParseError):
    """A name that is not defined in scope; the message lists the defined names."""

    title = "Unknown name"


class DuplicateNameError(ParseError):
    """A second definition of a name that must be unique."""

    title = "Duplicate name"


class ScriptTypeError(ParseError):
    """An expression whose dtype or annotation cannot be inferred or does not match."""

    title = "Type error"


class TextTooLargeError(ParseError):
    """A text that exceeds the size or nesting limit of the parser."""

    title = "Text too large"


class UnprintableProgramError(TilewrightError):
    """A program with names that the text format cannot represent unambiguously."""

    title = "Unprintable program"


class ConstantMismatchError(TilewrightError):
    """A constant passed to ``parse`` that differs from its declaration."""

    title = "Constant mismatch"


class SourceUnavailableError(TilewrightError):
    """A decorated function whose source code is not available."""

    title = "Source unavailable"
