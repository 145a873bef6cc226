"""View of violated requirements and of errors: text, excerpts and location."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from dataclasses import replace

from .. import errors
from ..errors import TilewrightError
from ..ir.loop.nodes import PrimFunc
from ..ir.module import Function
from ..schedules import Problem, StaleEditError, State, StepError
from ..schedules.excerpts import excerpts_of
from ..schedules.launchable import launchable
from ..target.target import Target
from . import protocol_steps
from .protocol_steps import CodeLine, Excerpt, Fix, Mark, Tone
from .selection import exists, to_view


def requirement_view(
    problem: Problem, state: State, fixes: Iterable[Fix]
) -> protocol_steps.Problem:
    """Return a violated requirement with excerpts of the program and its fixes."""
    return protocol_steps.Problem(
        key="",
        tone="warn",
        title="",
        message=problem.message,
        location="",
        hint="",
        requirement=problem.requirement.key,
        requires=problem.requirement.text,
        numbers={name: str(value) for name, value in problem.numbers.items()},
        counterexample={k: str(v) for k, v in (problem.counterexample or {}).items()},
        where=[to_view(state, handle) for handle in problem.where],
        excerpts=[excerpt_view(found) for found in excerpts_of(state.module, problem.where)],
        fixes=list(fixes),
        traceback="",
    )


def launch_problems(
    state: State, function: Function, target: Target, *, fixes: bool
) -> tuple[Problem, ...]:
    """Return the problems of launching the open kernel on the target of the session.

    A kernel without a schedule has none: it gets its default schedule when it is compiled. One of
    the measured program has none: it was launched.
    """
    if not isinstance(function, PrimFunc) or ("scheduled", True) not in function.attributes:
        return ()
    if state.module.functions.get(function.name) is not function:
        return ()
    return launchable(state, target, function.name, fixes=fixes)


def launch_view(
    problem: Problem, state: State, function: str, target: Target
) -> protocol_steps.Problem:
    """Return a problem of a launch as an entry of the Problems panel."""
    return replace(
        requirement_view(problem, state, []),
        key=launch_key(problem, function),
        title="Launch problem",
        location=f"kernel {function!r} on target {target.kind} {target.arch}".rstrip(),
        hint=_fixes((problem,)),
    )


def launch_key(problem: Problem, function: str) -> str:
    """Return the key of the entry of a problem of a launch."""
    return f"launch {function}: {problem.message}"


def error_view(
    error: Exception, key: str, *, job: str = "", state: State | None = None
) -> protocol_steps.Problem:
    """Return an error as an entry of the Problems panel.

    Parameters
    ----------
    error : Exception
        The error; other errors than :class:`TilewrightError` are internal errors.
    key : str
        The key of the entry.
    job : str
        The title of the job that failed, displayed if the error has no location.
    state : State, optional
        The state whose parts the entry links to; None if the error belongs to an earlier one.
    """
    expected = error if isinstance(error, TilewrightError) else None
    problems = tuple(error.problems) if isinstance(error, StepError) else ()
    handles = dict.fromkeys(handle for problem in problems for handle in problem.where)
    return protocol_steps.Problem(
        key=key,
        tone=_tone(error),
        title=_title(expected) if expected else f"Internal error: {type(error).__name__}",
        message=_message(error),
        location=(expected.where if expected else "") or job,
        hint=expected.hint or _fixes(problems) if expected else "",
        requirement=problems[0].requirement.key if len(problems) == 1 else "",
        requires=problems[0].requirement.text if len(problems) == 1 else "",
        numbers={},
        counterexample={},
        where=[to_view(state, h) for h in handles if exists(state, h)] if state else [],
        excerpts=[excerpt_view(found) for found in expected.excerpts()] if expected else [],
        fixes=[],
        traceback="".join(traceback.format_exception(error)),
    )


def invalid_value_view(error: TilewrightError) -> protocol_steps.Problem:
    """Return an invalid value of a form as a problem of the step."""
    message = "; ".join(filter(None, (error.message, error.hint)))
    view = error_view(error, "")
    return replace(view, tone="warn", title="", message=message, location="", hint="", traceback="")


def excerpt_view(found: errors.Excerpt) -> Excerpt:
    """Return an excerpt as a message of the protocol, with its marks."""
    lines = [CodeLine(number, text) for number, text in found.lines]
    return Excerpt(found.function, lines, [Mark(*mark) for mark in found.marks])


def _message(error: Exception) -> str:
    """Return the message; of an illegal step without the requirements, which have own elements."""
    if not isinstance(error, StepError):
        return error.message if isinstance(error, TilewrightError) else str(error)
    first, _, _ = error.message.partition("\n")
    messages = [problem.message for problem in error.problems]
    if len(messages) == 1:
        return f"{first} {messages[0]}"
    return "\n".join([first, *(f"- {message}" for message in messages)])


def _fixes(problems: Iterable[Problem]) -> str:
    """Return the fixes of problems as text, each once."""
    titles = dict.fromkeys(fix.title() for problem in problems for fix in problem.fixes)
    return "" if not titles else f"fix: {'; or '.join(titles)}"


def _tone(error: Exception) -> Tone:
    return "warn" if isinstance(error, StepError | StaleEditError) else "bad"


def _title(error: TilewrightError) -> str:
    """Return the title of an error; an error of another process keeps its original title."""
    return str(error.details.get("title") or error.title)
