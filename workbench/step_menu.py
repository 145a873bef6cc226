"""The step menu of a selection: suggestions with their forms, problems and fixes."""

from __future__ import annotations

import ast
import itertools
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast, get_args, get_origin

from ..errors import TilewrightError
from ..locks import parse_expression
from ..schedules import (
    Primitive,
    Problem,
    ScheduleError,
    State,
    Step,
    explain_match,
    suggest,
)
from ..schedules.apply import Composite, check, prepared
from ..schedules.coerce import type_text
from ..schedules.handles import FunctionRef, Handle
from ..schedules.intrinsics.registry import has_intrinsic, intrinsics_for
from ..schedules.primitives.tensorize.tensorize import Tensorize
from ..schedules.record import located
from ..schedules.step import Parameter
from ..schedules.values import Value, value_text
from ..target.target import Target
from . import protocol
from .problem_view import invalid_value_view, requirement_view
from .selection import find_by_name
from .targets import missing_features

_KEYS = itertools.count(1)

Suggestable: TypeAlias = Primitive | Composite
"""A step that a menu suggests."""


class FormError(TilewrightError):
    """A form field whose text is not a valid value, or a form of an outdated menu."""

    title = "Invalid parameter"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A suggested step, and the step with the values of its form.

    ``invalid`` is the error of a value that is not valid. ``count`` is the number of steps that a
    composite step records, None if it was not computed.
    """

    suggested: Suggestable
    applicable: bool
    step: Suggestable
    problems: tuple[Problem, ...]
    invalid: TilewrightError | None = None
    count: int | None = None


@dataclass(slots=True)
class StepMenu:
    """The suggestions and fixes for one selection, by key.

    Keys are never reused, so a click on an outdated menu cannot apply a different step.
    """

    selection: Handle | None = None
    suggestions: dict[str, Suggestion] = field(default_factory=dict[str, Suggestion])
    fixes: dict[str, Step] = field(default_factory=dict[str, Step])

    @classmethod
    def of(cls, state: State, selection: Handle) -> StepMenu:
        """Return the menu of a selection, with the suggestions of all steps.

        Steps that may take long are not checked, so that a selection is answered at once.
        """
        menu = cls(selection)
        for found in suggest(state, selection, checked=lambda step: not takes_long(step)):
            menu.suggestions[f"c{next(_KEYS)}"] = Suggestion(
                found.step, found.applicable, found.step, found.problems
            )
        return menu

    def step(self, key: str, values: Mapping[str, str], state: State) -> Step:
        """Return the step with a key, with the values of its form.

        Raises
        ------
        FormError
            If the key belongs to an outdated menu, or if a value is invalid.
        """
        if key in self.fixes:
            return self.fixes[key]
        return filled(self._suggestion(key).suggested, values, state)

    def change(self, key: str, values: Mapping[str, str], state: State) -> None:
        """Check a suggestion with the values of its form, and store both.

        An invalid value is reported as a problem of the step, like a violated requirement.
        """
        suggestion = self._suggestion(key)
        try:
            step = filled(suggestion.suggested, values, state)
        except (FormError, ScheduleError) as error:
            self.suggestions[key] = replace(suggestion, problems=(), invalid=error)
            return
        problems = () if takes_long(step) else check(state, step)
        self.suggestions[key] = replace(
            suggestion,
            step=step,
            problems=problems,
            invalid=None,
            count=None if problems else _count(step, state),
        )

    def _suggestion(self, key: str) -> Suggestion:
        if key not in self.suggestions:
            raise FormError("the menu is out of date", hint="select again")
        return self.suggestions[key]

    def to_view(self, state: State) -> list[protocol.Suggestion]:
        """Return the suggestions as messages of the protocol."""
        self.fixes = {}
        return [self._view(key, item, state) for key, item in self.suggestions.items()]

    def _view(self, key: str, suggestion: Suggestion, state: State) -> protocol.Suggestion:
        step = suggestion.step
        return protocol.Suggestion(
            key=key,
            step=step.verb(),
            family=step.family,
            applicable=suggestion.applicable,
            label=self._label(step),
            summary=step.summary(),
            fields=[_field(p, step, state) for p in step.parameters()],
            problems=list(self._problems(suggestion, state)),
            more_problems=max(0, len(suggestion.problems) - _MAX_PROBLEMS),
            composite=isinstance(step, Composite),
            steps=suggestion.count if isinstance(step, Composite) else 1,
            match=_match(step, state),
        )

    def _label(self, step: Suggestable) -> str:
        """Return the values that are neither the selection, nor its function, nor a default."""
        own = None if self.selection is None else FunctionRef(self.selection.function)
        defaults = {p.name: p.default for p in step.parameters() if not p.required}
        distinctive = [
            (name, value)
            for name, value in step.values()
            if value not in (self.selection, own)
            and (name not in defaults or value != defaults[name])
        ]
        return ", ".join(f"{name}={value_text(value)}" for name, value in distinctive)

    def _problems(self, suggestion: Suggestion, state: State) -> Iterator[protocol.Problem]:
        if suggestion.invalid is not None:
            yield invalid_value_view(suggestion.invalid)
        for problem in suggestion.problems[:_MAX_PROBLEMS]:
            yield requirement_view(problem, state, [self._fix(fix) for fix in problem.fixes])

    def _fix(self, fix: Step) -> protocol.Fix:
        key = f"f{next(_KEYS)}"
        self.fixes[key] = fix
        return protocol.Fix(key, fix.title())


def takes_long(step: Step) -> bool:
    """Return whether a step may take seconds: a composite step on entire functions."""
    return isinstance(step, Composite) and all(isinstance(h, FunctionRef) for h in step.handles())


def _count(step: Suggestable, state: State) -> int | None:
    """Return the number of steps of a legal composite step; None if it may take long to run."""
    if not isinstance(step, Composite) or takes_long(step):
        return None
    before = located(state, step)
    after, _ = step.compose(before)
    return len(after.trace) - len(before.trace)


def _match(step: Suggestable, state: State) -> protocol.MatchView | None:
    """Return the match of the program with the intrinsic of a tensorize step, if any."""
    if not isinstance(step, Tensorize) or not has_intrinsic(step.intrinsic):
        return None
    if any(True for _ in step.structural(state)):
        return None
    match = explain_match(state, step.target, step.intrinsic, fixes=False)
    return protocol.MatchView(
        match.intrinsic,
        match.summary,
        [protocol.MatchRow(row.program, row.pattern, list(row.marks)) for row in match.rows],
        [protocol.Mismatch(m.kind, m.program, m.pattern, m.message) for m in match.mismatches],
    )


def _field(parameter: Parameter, step: Suggestable, state: State) -> protocol.Field:
    value: Value = getattr(step, parameter.name)
    intrinsic = isinstance(step, Tensorize) and parameter.name == "intrinsic"
    lacking = _unavailable(step, state) if isinstance(step, Tensorize) and intrinsic else {}
    return protocol.Field(
        name=parameter.name,
        type=type_text(parameter.type),
        doc=parameter.doc,
        value=value_text(value),
        choices=sorted(lacking, key=lambda name: lacking[name] != "")
        if intrinsic
        else _choices(value, parameter.type),
        required=parameter.required,
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


_MAX_PROBLEMS = 3
"""The number of problems sent per step; a step on an entire model may have hundreds."""

_MAX_VALUE_LENGTH = 500
"""The maximum length of a field's text; a permutation of many indices is shorter."""

_SIZES = (4, 6, 8, 16, 32, 64)


def filled(step: Suggestable, values: Mapping[str, str], state: State) -> Suggestable:
    """Return a step with the values of its form.

    Raises
    ------
    FormError
        If a text is not a literal, the name of a handle, or a term over symbols, or if the step
        has no parameter of a name.
    """
    known = [p.name for p in step.parameters()]
    unknown = next((name for name in values if name not in known), None)
    if unknown is not None:
        raise FormError(
            f"{step.verb()} has no parameter {reprlib.repr(unknown)}",
            hint=f"its parameters are {', '.join(known) or 'none'}",
        )
    changed: dict[str, object] = {}
    for name, text in values.items():
        old = getattr(step, name, None)
        if text.strip() != value_text(old):
            changed[name] = _read(name, text.strip(), _names(step), state)
    return prepared(state, replace(cast("Any", step), **changed)) if changed else step


def _names(step: Suggestable) -> dict[str, Handle]:
    return {value_text(handle): handle for handle in step.handles()}


def _read(name: str, text: str, handles: Mapping[str, Handle], state: State) -> object:
    """Return the value of a literal or of the name of a handle; other text stays text."""
    if text in handles:
        return handles[text]
    if not text:
        raise FormError(f"{name}: a value is required")
    if len(text) > _MAX_VALUE_LENGTH:
        raise FormError(
            f"{name}: the value has {len(text)} characters; at most {_MAX_VALUE_LENGTH} are allowed"
        )
    try:
        node = parse_expression(text).body
    except SyntaxError as error:
        raise FormError(f"{name}: {text!r} is not a valid value: {error.msg}") from None
    return _literal(node, text, handles, state)


def _literal(node: ast.expr, text: str, handles: Mapping[str, Handle], state: State) -> object:
    match node:
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(_literal(item, ast.unparse(item), handles, state) for item in items)
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Name(id=name) if name in handles:
            return handles[name]
        case ast.Name(id=name) if (found := _by_name(name, handles.values(), state)) is not None:
            return found
        case _:
            return text


def _by_name(name: str, handles: Iterable[Handle], state: State) -> Handle | None:
    """Return the part with a name in the functions of the handles, if any."""
    functions = dict.fromkeys(handle.function for handle in handles)
    return next((r for f in functions if (r := find_by_name(state, f, name)) is not None), None)
