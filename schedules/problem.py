"""Problems of steps, and the errors of schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ..errors import Json, TilewrightError
from .handles import FunctionRef, Handle, kind_of
from .step import Step

_NOTHING: Mapping[str, Json] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Problem:
    """A violated requirement of a step.

    Parameters
    ----------
    requirement : int
        The number in the "Requires" list of the primitive's documentation. Number 0 is "the
        handles of the step exist, and are not inside a block that the step cannot change".
    message : str
        The violation, with names, actual and expected values.
    where : tuple of Handle
        The parts of the program that violate the requirement.
    numbers : Mapping[str, Json]
        The values in the message, as data.
    counterexample : Mapping[str, int] or None
        Values of the symbols for which the requirement is violated; None if none were found.
    fixes : tuple of Step
        Filled-in steps; each is legal in this state and removes this problem.
    """

    requirement: int
    message: str
    where: tuple[Handle, ...] = ()
    numbers: Mapping[str, Json] = field(default_factory=lambda: _NOTHING)
    counterexample: Mapping[str, int] | None = None
    fixes: tuple[Step, ...] = ()

    def __str__(self) -> str:
        """Render as text: message, counter-example, fixes, each on its own line."""
        lines = [f"{self.message} [requirement {self.requirement}]"]
        if self.counterexample:
            values = ", ".join(f"{k} = {v}" for k, v in self.counterexample.items())
            lines.append(f"  for example at {values}")
        lines += [f"  fix: {fix.title()}" for fix in self.fixes]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Json]:
        """Return the problem as JSON data."""
        return {
            "requirement": self.requirement,
            "message": self.message,
            "where": [handle_json(ref) for ref in self.where],
            "numbers": dict(self.numbers),
            "counterexample": None if self.counterexample is None else {**self.counterexample},
            "fixes": [fix.title() for fix in self.fixes],
        }


def handle_json(ref: Handle) -> Json:
    """Return a handle as JSON data."""
    if isinstance(ref, FunctionRef):
        return {"kind": "function", "function": ref.function}
    return {"kind": kind_of(ref), "function": ref.function, "uid": ref.uid}


class StepError(TilewrightError):
    """A step with violated requirements; ``problems`` lists them, with fixes."""

    title = "Illegal step"

    def __init__(self, step: str, problems: tuple[Problem, ...]) -> None:
        """Store the problems, and build the message from them."""
        self.step = step
        self.problems = problems
        super().__init__(
            "\n".join([f"{step} does not apply:", *(f"- {p}" for p in problems)]),
            details={"step": step, "problems": [p.to_json() for p in problems]},
        )


class ScheduleError(TilewrightError):
    """An invalid use of a schedule."""

    title = "Schedule error"


class UnknownStepError(ScheduleError):
    """The name of a step that is not registered; the hint lists the registered ones."""

    title = "Unknown step"


class ParameterError(ScheduleError):
    """An argument that a step's parameter does not accept."""

    title = "Invalid parameter"


class StaleEditError(ScheduleError):
    """An edit of a version that is no longer the head; nothing was applied."""

    title = "Stale edit"


class TraceError(ScheduleError):
    """A trace whose text is invalid, or that does not apply to the program it is replayed on."""

    title = "Trace error"
