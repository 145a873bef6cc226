"""Ranked, filled-in steps for what a person selected."""

from __future__ import annotations

from dataclasses import dataclass

from .primitive import Primitive, primitives
from .problem import Problem
from .refs import Ref
from .state import State


@dataclass(frozen=True, slots=True)
class Candidate:
    """A filled-in step, and what keeps it from applying."""

    step: Primitive
    problems: tuple[Problem, ...]

    @property
    def applicable(self) -> bool:
        """Whether the step is legal."""
        return not self.problems


def suggest(state: State, selection: Ref) -> tuple[Candidate, ...]:
    """Ask every primitive for candidates; applicable ones come first, else by registration."""
    found = [
        Candidate(step, state.check(step))
        for cls in primitives()
        for step in cls.suggest(state, selection)
    ]
    return tuple(sorted(found, key=lambda c: not c.applicable))
