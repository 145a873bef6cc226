"""The menu of steps for a selection: suggestions with their forms, problems and fixes.

A suggestion is a step as data (:mod:`.step_data`), which the browser sends back to check, preview
or apply it, with other values if its form was edited. Nothing is kept between requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, Literal, get_args, get_origin

from ..schedules import Primitive, Problem, ScheduleError, State, Step, explain_match, suggest
from ..schedules.apply import Composite, check
from ..schedules.coerce import type_text
from ..schedules.handles import FunctionRef, Handle
from ..schedules.intrinsics.registry import has_intrinsic, intrinsics_for
from ..schedules.primitives.tensorize.tensorize import Tensorize
from ..schedules.record import located
from ..schedules.step import Parameter
from ..schedules.suggest import Suggestion
from ..schedules.suggest_names import NotFoundError
from ..schedules.values import Value, value_text
from ..target.target import Target
from . import protocol_steps
from .problem_view import invalid_value_view, requirement_view
from .protocol_steps import StepData
from .selection import to_view
from .step_data import FormError, Suggestable, all_steps, handle_kinds, to_data, to_step
from .targets import missing_features

_MAX_PROBLEMS = 3
"""The number of problems sent per step; a step on an entire model may have hundreds."""

_SIZES = (4, 6, 8, 16, 32, 64)


def menu_view(state: State, head: str, selection: Handle) -> protocol_steps.Menu:
    """Return the suggestions of all steps for a selection, legal ones first.

    Steps that may take long are not checked, so that a selection is answered at once.
    """
    found = suggest(state, selection, checked=lambda step: not takes_long(step))
    names: Counter[str] = Counter()
    views: list[protocol_steps.Suggestion] = []
    for suggestion in found:
        view = _suggestion(suggestion, selection, state)
        name = f"{view.step} {view.label}"
        names[name] += 1
        views.append(replace(view, key=f"{name} {names[name]}"))
    return protocol_steps.Menu(head, to_view(state, selection), views)


def _suggestion(found: Suggestion, selection: Handle, state: State) -> protocol_steps.Suggestion:
    step = found.step
    return protocol_steps.Suggestion(
        key="",
        step=step.verb(),
        family=step.family,
        applicable=found.applicable,
        label=_label(step, selection),
        summary=step.summary(),
        data=to_data(step, selection.function, state),
        fields=[_field(p, step, state) for p in step.parameters()],
        problems=list(_problem_views(found.problems, state)),
        more_problems=max(0, len(found.problems) - _MAX_PROBLEMS),
        composite=isinstance(step, Composite),
        steps=None if isinstance(step, Composite) else 1,
    )


def _label(step: Suggestable, selection: Handle) -> str:
    """Return the values that are neither the selection, nor its function, nor a default."""
    own = FunctionRef(selection.function)
    defaults = {p.name: p.default for p in step.parameters() if not p.required}
    distinctive = [
        (name, value)
        for name, value in step.values()
        if value not in (selection, own) and (name not in defaults or value != defaults[name])
    ]
    return ", ".join(f"{name}={value_text(value)}" for name, value in distinctive)


def _problem_views(problems: tuple[Problem, ...], state: State) -> Iterator[protocol_steps.Problem]:
    for problem in problems[:_MAX_PROBLEMS]:
        yield requirement_view(problem, state, [_fix(fix, problem, state) for fix in problem.fixes])


def _fix(fix: Step, problem: Problem, state: State) -> protocol_steps.Fix:
    """Return a fix; its parts are in the function of the problem."""
    if not isinstance(fix, Primitive | Composite):
        raise TypeError(f"the fix {fix.title()} changes nothing")
    handles = (*fix.handles(), *problem.where)
    function = next((handle.function for handle in handles), "")
    return protocol_steps.Fix(fix.title(), to_data(fix, function, state))


def checked_view(data: StepData, state: State) -> protocol_steps.Checked:
    """Return the problems of a step, and the details that are computed only on request.

    An invalid value is reported as a problem of the step, like a violated requirement.
    """
    try:
        step = to_step(data, state)
    except (FormError, ScheduleError, NotFoundError) as error:
        return protocol_steps.Checked([invalid_value_view(error)], 0, None, None)
    problems = () if takes_long(step) else check(state, step)
    return protocol_steps.Checked(
        problems=list(_problem_views(tuple(problems), state)),
        more_problems=max(0, len(problems) - _MAX_PROBLEMS),
        steps=None if problems else _count(step, state),
        match=_match(step, state),
    )


def takes_long(step: Step) -> bool:
    """Return whether a step may take seconds: a composite step on entire functions."""
    return isinstance(step, Composite) and all(isinstance(h, FunctionRef) for h in step.handles())


def _count(step: Suggestable, state: State) -> int | None:
    """Return the number of steps that a legal step records; None if it may take long to run."""
    if not isinstance(step, Composite):
        return 1
    if takes_long(step):
        return None
    before = located(state, step)
    after, _ = step.compose(before)
    return len(after.trace) - len(before.trace)


def _match(step: Suggestable, state: State) -> protocol_steps.MatchView | None:
    """Return the match of the program with the intrinsic of a tensorize step, if any."""
    if not isinstance(step, Tensorize) or not has_intrinsic(step.intrinsic):
        return None
    if any(True for _ in step.structural(state)):
        return None
    match = explain_match(state, step.target, step.intrinsic, fixes=False)
    return protocol_steps.MatchView(
        match.intrinsic,
        match.summary,
        [protocol_steps.MatchRow(row.program, row.pattern, list(row.marks)) for row in match.rows],
        [
            protocol_steps.Mismatch(m.kind, m.program, m.pattern, m.message)
            for m in match.mismatches
        ],
    )


def _field(parameter: Parameter, step: Suggestable, state: State) -> protocol_steps.Field:
    value: Value = getattr(step, parameter.name)
    intrinsic = isinstance(step, Tensorize) and parameter.name == "intrinsic"
    lacking = _unavailable(step, state) if isinstance(step, Tensorize) and intrinsic else {}
    return protocol_steps.Field(
        name=parameter.name,
        type=type_text(parameter.type),
        doc=parameter.doc,
        value=value_text(value),
        choices=sorted(lacking, key=lambda name: lacking[name] != "")
        if intrinsic
        else _choices(value, parameter.type),
        required=parameter.required,
        kinds=handle_kinds(parameter.type),
        unavailable={name: reason for name, reason in lacking.items() if reason},
    )


def _unavailable(step: Tensorize, state: State) -> dict[str, str]:
    """Return the intrinsics of machines of the target's kind, each with the missing features."""
    own = state.target_of(step.target.function)
    target = Target("cpu") if own is None else own
    return {
        repr(intrinsic.name): missing_features(state.target or target, intrinsic.needs)
        for intrinsic in intrinsics_for(None)
        if all(need.startswith("sm_") == target.is_gpu for need in intrinsic.needs)
    }


def _choices(value: Value, kind: Any) -> list[str]:
    """Return alternative texts for a value: the values of an enumeration, or other tile sizes."""
    if get_origin(kind) is Literal:
        return [repr(choice) for choice in get_args(kind)]
    match value:
        case int() if not isinstance(value, bool) and value > 1:
            return [str(n) for n in _SIZES]
        case (None, int()):
            return [f"(None, {n})" for n in _SIZES]
        case (int(), None):
            return [f"({n}, None)" for n in _SIZES]
        case _:
            return []


@cache
def catalog() -> tuple[protocol_steps.StepInfo, ...]:
    """Return all steps that change a program, with their parameters at their defaults."""
    return tuple(
        protocol_steps.StepInfo(
            step=cls.verb(),
            family=cls.family,
            summary=cls.summary(),
            composite=issubclass(cls, Composite),
            fields=[_default_field(parameter) for parameter in cls.parameters()],
        )
        for cls in all_steps()
    )


def _default_field(parameter: Parameter) -> protocol_steps.Field:
    return protocol_steps.Field(
        name=parameter.name,
        type=type_text(parameter.type),
        doc=parameter.doc,
        value="" if parameter.required else value_text(parameter.default),
        choices=_choices(parameter.default, parameter.type),
        required=parameter.required,
        kinds=handle_kinds(parameter.type),
        unavailable={},
    )
