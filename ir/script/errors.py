"""What can be wrong with a text, each mistake with its name and its place."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import TilewrightError


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a text: ``line`` and ``column`` from 1, and the line's own words for the caret."""

    line: int
    column: int
    width: int
    text: str

    def __str__(self) -> str:
        """Say the place in words."""
        return f"line {self.line}, column {self.column}"

    def caret(self) -> str:
        """Quote the line with carets under the part that is meant.

        Examples
        --------
        >>> print(Place(1, 5, 3, "y = foo + 1").caret())
        y = foo + 1
            ^^^
        """
        blank = "".join("\t" if c == "\t" else " " for c in self.text[: self.column - 1])
        return f"{self.text}\n{blank}{'^' * max(self.width, 1)}"


class ParseError(TilewrightError):
    """A text is not a program. ``place`` tells where, and prints as a caret under the line.

    Examples
    --------
    >>> print(ParseError("no buffer 'D'; buffers are A, B", place=Place(7, 5, 1, "x = D[i]")))
    no buffer 'D'; buffers are A, B
      at line 7, column 5
        x = D[i]
            ^
    """

    title = "The text cannot be read"

    def __init__(self, message: str, *, place: Place, hint: str = "") -> None:
        """Keep the place as data beside the message."""
        self.place = place
        self.line, self.column = place.line, place.column
        super().__init__(
            message,
            where=str(place),
            hint=hint,
            details={
                "line": place.line,
                "column": place.column,
                "width": place.width,
                "text": place.text,
            },
        )

    def __str__(self) -> str:
        """Render message, place, the quoted line with its caret, and advice."""
        quoted = "\n".join(f"    {line}" for line in self.place.caret().splitlines())
        lines = [self.message, f"  at {self.where}", quoted]
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)


class ScriptSyntaxError(ParseError):
    """The text is not Python, or uses a part of Python that the script format does not have."""

    title = "Syntax error"


class UnknownNameError(ParseError):
    """A name that nothing in scope has; the message lists those there are."""

    title = "Unknown name"


class DuplicateNameError(ParseError):
    """A name is given twice where each may be used once."""

    title = "Duplicate name"


class ScriptTypeError(ParseError):
    """A literal or an expression cannot be given a dtype, or has one that does not fit."""

    title = "Dtype unclear"


class TextTooLargeError(ParseError):
    """The text is larger, or nested more deeply, than any program a person edits."""

    title = "Text too large"


class UnprintableProgramError(TilewrightError):
    """A program has names that cannot be written, so that its text would not mean the same."""

    title = "Program cannot be printed"


class ConstantMismatchError(TilewrightError):
    """A constant supplied to ``parse`` has another shape, dtype or digest than the text says."""

    title = "Constant does not match the text"


class SourceUnavailableError(TilewrightError):
    """Python does not know the source of a decorated function."""

    title = "Source not available"


class OutsideFunctionError(TilewrightError):
    """A word of the text format was called outside of a function that the parser reads."""

    title = "Word outside of a function"
