"""Suggestions: filled-in steps for a selected part of the program."""

from __future__ import annotations

from dataclasses import dataclass

from .apply import Primitive, check
from .handles import Handle
from .problem import Problem
from .registry import primitives
from .state import State


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A filled-in step with its problems."""

    step: Primitive
    problems: tuple[Problem, ...]

    @property
    def applicable(self) -> bool:
        """Whether the step is legal."""
        return not self.problems


def suggest(state: State, selection: Handle) -> tuple[Suggestion, ...]:
    """Return the suggestions of all primitives, legal ones first."""
    found = [
        Suggestion(step, check(state, step))
        for cls in primitives()
        for step in cls.suggest(state, selection)
    ]
    return tuple(sorted(found, key=lambda c: not c.applicable))
