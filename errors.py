"""The base class of all errors that Tilewright raises for users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


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
    ) -> None:
        """Store the parts, from which text, HTML and JSON are rendered."""
        self.message = message
        self.where = where
        self.hint = hint
        self.details: dict[str, Json] = dict(details or {})
        super().__init__(message)

    def __str__(self) -> str:
        """Render as text: message, location and hint, each on its own line."""
        lines = [self.message]
        if self.where:
            lines.append(f"  at {self.where}")
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Json]:
        """Render as JSON data; ``kind`` is the name of the error class."""
        return {
            "kind": type(self).__name__,
            "title": self.title,
            "message": self.message,
            "where": self.where,
            "hint": self.hint,
            "details": self.details,
        }


class MalformedProgramError(TilewrightError):
    """A program that violates a well-formedness rule of its level."""

    title = "Malformed program"


class ShapeMismatchError(TilewrightError):
    """Dimensions that must be equal differ: of operands, or of an argument and its annotation."""

    title = "Shape mismatch"


class UnsupportedOperatorsError(TilewrightError):
    """Operators of an imported model that Tilewright does not support; the error lists all."""

    title = "Unsupported operators"
