"""Problems of steps, and the errors of schedules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from types import MappingProxyType
from typing import Final, Self

from ..errors import Excerpt, Json, TilewrightError, escaped_lines
from ..ir.module import Module
from .excerpts import excerpts_of
from .handles import FunctionRef, Handle, kind_of
from .requirement import Requirement
from .step import Step

_NOTHING: Mapping[str, Json] = MappingProxyType({})
_COLUMNS: Final = 100
_QUIET: Final = "opacity:.7"
_LIST: Final = "margin:4px 0;padding-left:20px"


@dataclass(frozen=True, slots=True)
class Problem:
    """A violated requirement of a step.

    Parameters
    ----------
    requirement : Requirement
        The violated requirement: a member of the primitive's ``Requires``, or of
        :class:`~.requirement.CommonRequirement`.
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

    requirement: Requirement
    message: str
    where: tuple[Handle, ...] = ()
    numbers: Mapping[str, Json] = field(default_factory=lambda: _NOTHING)
    counterexample: Mapping[str, int] | None = None
    fixes: tuple[Step, ...] = ()

    def __str__(self) -> str:
        """Render as text: message, requirement, counter-example, fixes, each on its own line."""
        return "\n".join(self.lines())

    def lines(self, excerpts: Sequence[Excerpt] = ()) -> list[str]:
        """Return the lines of the text, with excerpts of the program before the fixes."""
        made = [self.message, *_wrapped(self._requires())]
        if self.counterexample:
            made.append(f"  for example at {_values(self.counterexample)}")
        for excerpt in excerpts:
            made += [f"    {line}" for line in str(excerpt).splitlines()]
        return made + [f"  fix: {fix.title()}" for fix in self.fixes]

    def to_html(self, excerpts: Sequence[Excerpt] = ()) -> str:
        """Return the same as static HTML."""
        requires = escaped_lines(self._requires())
        parts = [escaped_lines(self.message), f'<span style="{_QUIET}">{requires}</span>']
        if self.counterexample:
            values = escaped_lines(_values(self.counterexample))
            parts.append(f"for example at <code>{values}</code>")
        parts += [excerpt.to_html() for excerpt in excerpts]
        parts += [f"fix: <code>{escaped_lines(fix.title())}</code>" for fix in self.fixes]
        return "".join(f"<div>{part}</div>" for part in parts)

    def _requires(self) -> str:
        return f"requires: {self.requirement.text} [{self.requirement.key}]"

    def to_json(self) -> dict[str, Json]:
        """Return the problem as JSON data."""
        return {
            "requirement": self.requirement.key,
            "requires": self.requirement.text,
            "message": self.message,
            "where": [handle_json(ref) for ref in self.where],
            "numbers": dict(self.numbers),
            "counterexample": None if self.counterexample is None else {**self.counterexample},
            "fixes": [fix.title() for fix in self.fixes],
        }


def _wrapped(text: str) -> list[str]:
    return wrap(
        text,
        _COLUMNS,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _values(found: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in found.items())


def handle_json(ref: Handle) -> Json:
    """Return a handle as JSON data."""
    if isinstance(ref, FunctionRef):
        return {"kind": "function", "function": ref.function}
    return {"kind": kind_of(ref), "function": ref.function, "uid": ref.uid}


class Problems(tuple[Problem, ...]):  # noqa: SLOT001 - a tuple cannot have further slots
    """The violated requirements of a step, with the program that they refer to.

    Excerpts of the program are made only when the problems are displayed, because most problems are
    not: suggestions and default schedules try steps that are illegal.
    """

    module: Module | None

    def __new__(cls, problems: Iterable[Problem] = (), module: Module | None = None) -> Self:
        """Store the problems and the program; without a program there are no excerpts."""
        made = super().__new__(cls, problems)
        made.module = module
        return made

    def excerpts(self) -> tuple[tuple[Excerpt, ...], ...]:
        """Return the excerpts of each problem. An excerpt that a former problem has is omitted."""
        seen: set[Excerpt] = set()
        made: list[tuple[Excerpt, ...]] = []
        for problem in self:
            found = excerpts_of(self.module, problem.where) if self.module is not None else ()
            made.append(tuple(x for x in found if x not in seen))
            seen.update(found)
        return tuple(made)

    def __str__(self) -> str:
        """Render as text: each problem with its excerpts and fixes."""
        found = zip(self, self.excerpts(), strict=True)
        return "\n".join(_item(p.lines(excerpts)) for p, excerpts in found) or "no problems"

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self) -> str:
        """Render as static HTML, also for notebooks."""
        found = zip(self, self.excerpts(), strict=True)
        items = "".join(f"<li>{p.to_html(excerpts)}</li>" for p, excerpts in found)
        return f'<ul style="{_LIST}">{items}</ul>' if items else "no problems"

    def to_json(self) -> list[Json]:
        """Return the problems with their excerpts as JSON data."""
        found = zip(self, self.excerpts(), strict=True)
        made: list[Json] = []
        for problem, excerpts in found:
            made.append({**problem.to_json(), "excerpts": [x.to_json() for x in excerpts]})
        return made


def _item(lines: list[str]) -> str:
    return "- " + "\n".join(lines)


class StepError(TilewrightError):
    """A step with violated requirements; ``problems`` lists them, with fixes.

    Parameters
    ----------
    step : str
        The step as a call.
    problems : tuple of Problem
        The violated requirements.
    module : Module, optional
        The program, of which the text shows excerpts.
    """

    title = "Illegal step"

    def __init__(
        self, step: str, problems: tuple[Problem, ...], module: Module | None = None
    ) -> None:
        """Store the problems, and build the message from them."""
        self.step = step
        self.problems = Problems(problems, module)
        super().__init__(
            "\n".join([f"{step} does not apply:", *(_item(p.lines()) for p in problems)]),
            details={"step": step, "problems": [p.to_json() for p in problems]},
        )

    def excerpts(self) -> tuple[Excerpt, ...]:
        """Return lines of the program with the parts at fault underlined."""
        return tuple(x for found in self.problems.excerpts() for x in found)

    def __str__(self) -> str:
        """Render as text: each problem with its requirement, excerpts and fixes."""
        return f"{self.step} does not apply:\n{self.problems}"

    def _repr_html_(self) -> str:
        """Render as static HTML for notebooks."""
        step = escaped_lines(self.step)
        heading = f"<strong>{self.title}</strong>: <code>{step}</code> does not apply"
        return f"<div><div>{heading}</div>{self.problems.to_html()}</div>"

    def to_json(self) -> dict[str, Json]:
        """Render as JSON data; each problem contains its excerpts."""
        details: dict[str, Json] = {**self.details, "problems": self.problems.to_json()}
        return {**super().to_json(), "details": details}


class ScheduleError(TilewrightError):
    """An invalid use of a schedule."""

    title = "Schedule error"


class RuleNotApplicableError(ScheduleError):
    """A program that a rule for default schedules does not support."""

    title = "Rule not applicable"


class UnknownStepError(ScheduleError):
    """The name of a step that is not registered; the hint lists the registered ones."""

    title = "Unknown step"


class ParameterError(ScheduleError):
    """An argument that a step's parameter does not accept."""

    title = "Invalid parameter"


class StaleEditError(ScheduleError):
    """An edit of a version that is no longer the head; nothing was applied."""

    title = "Stale edit"

    @classmethod
    def of(cls, step: Step, expected: str, head: str) -> Self:
        """Return the error about a step that was created for another version than the head."""
        return cls(
            f"{step.title()} was created for version {expected[:12]}, but the head is {head[:12]}",
            hint="apply the step again at the new head, or branch from the old one",
            details={"expected": expected, "head": head, "step": step.title()},
        )


class TraceError(ScheduleError):
    """A trace whose text is invalid, or that does not apply to the program it is replayed on."""

    title = "Trace error"

    def __init__(
        self,
        message: str,
        *,
        where: str = "trace",
        hint: str = "",
        details: Mapping[str, Json] | None = None,
        excerpts: Sequence[Excerpt] = (),
    ) -> None:
        """Store the parts; the hint is by default how to save a trace."""
        saved = "to_json(sch.trace) and to_python(sch.trace) save a trace as text"
        super().__init__(
            message, where=where, hint=hint or saved, details=details, excerpts=excerpts
        )
