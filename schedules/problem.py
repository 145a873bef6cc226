"""Why a step is not legal: the requirement, the place, the numbers, and steps that mend it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..ir.errors import Json, TilewrightError
from .refs import FunctionRef, Ref, kind_of

if TYPE_CHECKING:
    from .primitive import Primitive

_NOTHING: Mapping[str, Json] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Problem:
    """One violated requirement of one step.

    Parameters
    ----------
    requirement : int
        Its number in the "Requires" list of the primitive's documentation; 0 is "what the step
        points at exists, and is not inside of a block that the step may not look into".
    message : str
        What is wrong, with names and numbers.
    where : tuple of Ref
        The parts of the program at fault.
    numbers : Mapping[str, Json]
        The quantities of the message as data.
    counterexample : Mapping[str, int] or None
        Values of the symbols for which the requirement fails, where the prover found some.
    fixes : tuple of Primitive
        Filled-in steps; each is legal now and removes this problem.
    """

    requirement: int
    message: str
    where: tuple[Ref, ...] = ()
    numbers: Mapping[str, Json] = field(default_factory=lambda: _NOTHING)
    counterexample: Mapping[str, int] | None = None
    fixes: tuple[Primitive, ...] = ()

    def __str__(self) -> str:
        """Render as text: message, counter-example, fixes, each on its own line."""
        lines = [f"{self.message} [requirement {self.requirement}]"]
        if self.counterexample:
            values = ", ".join(f"{k} = {v}" for k, v in self.counterexample.items())
            lines.append(f"  for example at {values}")
        lines += [f"  fix: {fix.title()}" for fix in self.fixes]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Json]:
        """Render as plain data."""
        return {
            "requirement": self.requirement,
            "message": self.message,
            "where": [ref_json(ref) for ref in self.where],
            "numbers": dict(self.numbers),
            "counterexample": None if self.counterexample is None else {**self.counterexample},
            "fixes": [fix.title() for fix in self.fixes],
        }


def ref_json(ref: Ref) -> Json:
    """Render a handle as plain data."""
    if isinstance(ref, FunctionRef):
        return {"kind": "function", "function": ref.function}
    return {"kind": kind_of(ref), "function": ref.function, "uid": ref.uid}


class StepError(TilewrightError):
    """A step whose requirements do not hold; ``problems`` says which, with fixes."""

    title = "Step not applicable"

    def __init__(self, step: str, problems: tuple[Problem, ...]) -> None:
        """Keep the problems beside the message made of them."""
        self.step = step
        self.problems = problems
        super().__init__(
            "\n".join([f"{step} does not apply:", *(f"- {p}" for p in problems)]),
            details={"step": step, "problems": [p.to_json() for p in problems]},
        )


class ScheduleError(TilewrightError):
    """A mistake in the use of a schedule rather than in a step's operands."""

    title = "Schedule error"


class UnknownStepError(ScheduleError):
    """A step that this Tilewright does not know; the message lists those it does."""

    title = "Unknown step"


class ParameterError(ScheduleError):
    """A value that a step's parameter cannot take."""

    title = "Wrong parameter"


class StaleEditError(ScheduleError):
    """An edit of a program that somebody else changed meanwhile; nothing was applied."""

    title = "Stale edit"


class TraceError(ScheduleError):
    """A trace whose text cannot be read, or that does not fit the program it is replayed on."""

    title = "Trace error"
