"""The root of every error a user of Tilewright can meet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class TilewrightError(Exception):
    """A user's mistake, or a limit of the machine, told so that it can be mended.

    Parameters
    ----------
    message : str
        What is wrong, with the numbers.
    where : str
        The place in the program: function, parameter, loop, step or file position. Empty when
        there is none.
    hint : str
        What would be legal, or the next thing to try. Empty when there is none.
    details : Mapping[str, Json]
        The same facts as data, for the user interface and ``--json``.

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
        """Keep the parts, so that text, HTML and JSON are rendered from one object."""
        self.message = message
        self.where = where
        self.hint = hint
        self.details: dict[str, Json] = dict(details or {})
        super().__init__(message)

    def __str__(self) -> str:
        """Render as text: message, place, advice, each on its own line."""
        lines = [self.message]
        if self.where:
            lines.append(f"  at {self.where}")
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Json]:
        """Render as plain data, with the error's class as ``kind``."""
        return {
            "kind": type(self).__name__,
            "title": self.title,
            "message": self.message,
            "where": self.where,
            "hint": self.hint,
            "details": self.details,
        }


class MalformedProgramError(TilewrightError):
    """A program breaks a rule that every program of its level obeys."""

    title = "Malformed program"


class UnsupportedOperatorsError(TilewrightError):
    """An imported model uses operators that Tilewright does not have; all of them are listed."""

    title = "Unsupported operators"
