"""Unknown-name errors with suggestions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..errors import Excerpt
from ..ir.module import Module
from ..nearest import listed
from .excerpts import excerpts_of
from .handles import Handle
from .problem import ScheduleError

_MAX_PARTS: Final = 6
"""The number of parts that a message underlines."""


class NotFoundError(ScheduleError):
    """A name that matches no part of the program, or more than one; the message lists the names.

    Parameters
    ----------
    message : str
        The name, and the names that exist.
    where : str
        The part of the program that was searched.
    hint : str
        A similar name, or how to find the names.
    module : Module, optional
        The program.
    parts : Sequence of Handle
        The parts with a name, which the message underlines if they are few.
    """

    title = "Unresolved name"

    def __init__(
        self,
        message: str,
        *,
        where: str = "",
        hint: str = "",
        module: Module | None = None,
        parts: Sequence[Handle] = (),
    ) -> None:
        """Store the parts of the message; the excerpt is made when the error is displayed."""
        self._module = module
        self._parts = tuple(parts)
        super().__init__(message, where=where, hint=hint)

    def excerpts(self) -> tuple[Excerpt, ...]:
        """Return the lines that define the named parts; none if there are many."""
        if self._module is None or not 0 < len(self._parts) <= _MAX_PARTS:
            return ()
        return excerpts_of(self._module, self._parts)


def unknown(kind: str, name: str, names: list[str], scope: str) -> str:
    """Return the message for an unknown name; it lists the known names, the most similar first.

    Examples
    --------
    >>> unknown("loop", "q", ["i", "j"], "block 'matmul'")
    "no loop 'q'; loops of block 'matmul' are i, j"
    """
    return f"no {kind} {name!r}; {kind}s of {scope} are {listed(name, names)}"
