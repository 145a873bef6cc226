"""Suggestions: filled-in steps for a selected part of the program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

from ..display import Table
from .apply import Composite, Primitive, check
from .block_scope import selected
from .handles import HANDLE_TYPES, Handle
from .problem import ParameterError, Problem
from .registry import composites, primitives
from .state import State

MAX_MESSAGE: Final = 100
"""The number of characters of a problem that the table shows."""


@dataclass(frozen=True, slots=True, repr=False)
class Suggestion:
    """A filled-in step with its problems."""

    step: Primitive | Composite
    problems: tuple[Problem, ...]

    @property
    def applicable(self) -> bool:
        """Whether the step is legal."""
        return not self.problems

    def __repr__(self) -> str:
        """Return the step as a call, and the number of problems."""
        count = len(self.problems)
        state = "legal" if self.applicable else f"{count} problem{'' if count == 1 else 's'}"
        return f"<Suggestion {self.step.title()}: {state}>"


class Suggestions(tuple[Suggestion, ...]):  # noqa: SLOT001 - a tuple cannot have further slots
    """Suggestions for a part of the program; ``print`` shows a table."""

    def table(self) -> Table:
        """Return the steps with the first problem of each, legal ones first."""
        rows = tuple(
            (s.step.title(), "yes" if s.applicable else "no", _first(s.problems)) for s in self
        )
        return Table(("step", "legal", "first problem"), rows)

    def __str__(self) -> str:
        """Return the table as text."""
        return str(self.table())

    def _repr_html_(self) -> str:
        """Return the table as static HTML."""
        return self.table().to_html()


def _first(problems: tuple[Problem, ...]) -> str:
    message = problems[0].message if problems else ""
    return message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 4]} ..."


def suggest(
    state: State,
    selection: Handle,
    *,
    checked: Callable[[Primitive | Composite], bool] = lambda _: True,
) -> Suggestions:
    """Return the suggestions of all primitives and composite steps, legal ones first.

    Parameters
    ----------
    state : State
        The program.
    selection : Handle
        The selected part of the program.
    checked : function of a step, optional
        Return whether to check a step. Other steps are listed as legal; applying one may fail. By
        default all steps are checked, which for a composite step takes as long as applying it.
    """
    if not isinstance(cast("object", selection), HANDLE_TYPES):
        raise ParameterError(
            f"expected a handle, got {type(selection).__name__}",
            where="argument 'selection' of suggest",
            hint='pass a handle, such as sch.get_loop("i") or sch.get_block("mm")',
        )
    found = [
        Suggestion(step, check(state, step) if checked(step) else ())
        for cls in (*primitives(), *composites())
        for step in cls.suggest(selected(state, cls, selection), selection)
    ]
    return Suggestions(sorted(found, key=lambda c: not c.applicable))
