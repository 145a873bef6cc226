"""Steps as the inspector shows them: candidates with their forms, reasons and fixes."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ..ir.errors import TilewrightError
from ..ir.target import Target
from ..schedules import (
    Candidate as Suggested,
    Primitive,
    Problem,
    ScheduleError,
    State,
    explain_match,
    suggest,
)
from ..schedules.coerce import type_text
from ..schedules.intrinsics.registry import has_intrinsic, intrinsics_for
from ..schedules.primitive import Parameter
from ..schedules.primitives.tensorize.tensorize import Tensorize
from ..schedules.refs import Ref
from ..schedules.values import Value, value_text
from .places import find_by_name, to_view
from .protocol import Candidate, Field, Fix, Issue, MatchMark, MatchRow, MatchView

_NUMBERS = itertools.count(1)


class FormError(TilewrightError):
    """A text in a form that is no value."""

    title = "Wrong parameter"


@dataclass(frozen=True, slots=True)
class Offer:
    """A candidate as it was suggested, and as its form changed it."""

    step: Primitive
    problems: tuple[Problem, ...]
    offered: Primitive
    applies: bool


@dataclass(slots=True)
class Offers:
    """The steps offered for one selection, by key; fixes have keys too.

    No key is ever used again, so a click on a menu that is gone cannot mean another step.
    """

    selection: Ref | None = None
    by_key: dict[str, Offer] = field(default_factory=dict[str, Offer])
    fixes: dict[str, Primitive] = field(default_factory=dict[str, Primitive])

    @classmethod
    def of(cls, state: State, selection: Ref) -> Offers:
        """Ask every primitive."""
        offers = cls(selection)
        for found in suggest(state, selection):
            offers.add(found)
        return offers

    def add(self, found: Suggested) -> None:
        """Offer a candidate under a key of its own."""
        offer = Offer(found.step, found.problems, found.step, applies=not found.problems)
        self.by_key[f"c{next(_NUMBERS)}"] = offer

    def step(self, key: str, values: Mapping[str, str], state: State) -> Primitive:
        """The step of a key, with the values of its form.

        Raises
        ------
        FormError
            If the key is of another menu, or a value cannot be read.
        """
        if key in self.fixes:
            return self.fixes[key]
        return filled(self._offer(key).offered, values, state)

    def change(self, key: str, values: Mapping[str, str], state: State) -> None:
        """Check a candidate with the values of its form, and keep it so.

        What cannot be read is a reason beside the form, as a violated requirement is.
        """
        offer = self._offer(key)
        try:
            step = filled(offer.offered, values, state)
        except (FormError, ScheduleError) as error:
            said = "; ".join(filter(None, (error.message, error.hint)))
            self.by_key[key] = replace(offer, problems=(Problem(0, said),))
            return
        self.by_key[key] = replace(offer, step=step, problems=state.check(step))

    def _offer(self, key: str) -> Offer:
        if key not in self.by_key:
            raise FormError("this step is of a menu that is gone", hint="select again")
        return self.by_key[key]

    def to_view(self, state: State) -> list[Candidate]:
        """Everything as the browser shows it."""
        self.fixes = {}
        return [self._candidate(key, offer, state) for key, offer in self.by_key.items()]

    def _candidate(self, key: str, offer: Offer, state: State) -> Candidate:
        step = offer.step
        return Candidate(
            key=key,
            step=step.verb(),
            family=step.family,
            applies=offer.applies,
            label=self._label(step),
            summary=step.summary(),
            fields=[_field(p, step, state) for p in step.parameters()],
            issues=[self._issue(problem, state) for problem in offer.problems[:_TOLD]],
            more_issues=max(0, len(offer.problems) - _TOLD),
            match=_match(step, state),
        )

    def _label(self, step: Primitive) -> str:
        """What tells a candidate apart: the values that are neither selected nor the default."""
        pairs = step.values()
        usual = {p.name: p.default for p in step.parameters() if not p.required}
        telling = [
            (name, value)
            for name, value in pairs
            if value != self.selection and (name not in usual or value != usual[name])
        ]
        return ", ".join(f"{name}={value_text(value)}" for name, value in telling or pairs)

    def _issue(self, problem: Problem, state: State) -> Issue:
        return Issue(
            requirement=problem.requirement,
            message=problem.message,
            numbers={name: str(value) for name, value in problem.numbers.items()},
            counterexample={k: str(v) for k, v in (problem.counterexample or {}).items()},
            where=[to_view(state, ref) for ref in problem.where],
            fixes=[self._fix(fix) for fix in problem.fixes],
        )

    def _fix(self, fix: Primitive) -> Fix:
        key = f"f{next(_NUMBERS)}"
        self.fixes[key] = fix
        return Fix(key, fix.title())


def _match(step: Primitive, state: State) -> MatchView | None:
    """What a step puts an instruction in the place of, side by side with the instruction."""
    if not isinstance(step, Tensorize) or not has_intrinsic(step.intrinsic):
        return None
    if any(True for _ in step.structural(state)):
        return None
    match = explain_match(state, step.target, step.intrinsic, fixes=False)
    return MatchView(
        match.intrinsic,
        match.summary,
        [MatchRow(row.program, row.pattern, list(row.marks)) for row in match.rows],
        [MatchMark(m.kind, m.program, m.pattern, m.message) for m in match.mismatches],
    )


def _field(parameter: Parameter, step: Primitive, state: State) -> Field:
    value: Value = getattr(step, parameter.name)
    instruction = isinstance(step, Tensorize) and parameter.name == "intrinsic"
    return Field(
        name=parameter.name,
        type=type_text(parameter.type),
        doc=parameter.doc,
        value=value_text(value),
        choices=_instructions(state) if instruction else _choices(value),
        required=parameter.required,
    )


def _instructions(state: State) -> list[str]:
    """The instructions of the machine that the schedule is for."""
    return [repr(i.name) for i in intrinsics_for(state.target or Target())]


def _choices(value: Value) -> list[str]:
    """Texts worth offering for a value: other tile sizes in the place of an integer."""
    match value:
        case int() if not isinstance(value, bool) and value > 1:
            return [str(n) for n in _SIZES]
        case (None, int()):
            return [f"(None, {n})" for n in _SIZES]
        case (int(), None):
            return [f"({n}, None)" for n in _SIZES]
        case _:
            return []


_TOLD = 3
"""Reasons that are told in full; a step on a whole model may have hundreds."""

_LONGEST = 500
"""Characters of a value that are read; a permutation of many indices is shorter."""

_SIZES = (4, 6, 8, 16, 32, 64)


def filled(step: Primitive, values: Mapping[str, str], state: State) -> Primitive:
    """Put the texts of a form into a step.

    Raises
    ------
    FormError
        If a text is no literal, no name of the selection's and no term over symbols.
    """
    changed: dict[str, object] = {}
    for name, text in values.items():
        old = getattr(step, name, None)
        if text.strip() != value_text(old):
            changed[name] = _read(name, text.strip(), _names(step), state)
    return state.prepared(replace(cast("Any", step), **changed)) if changed else step


def _names(step: Primitive) -> dict[str, Ref]:
    return {value_text(ref): ref for ref in step.refs()}


def _read(name: str, text: str, refs: Mapping[str, Ref], state: State) -> object:
    """Read a literal; names are those of the step's own handles, anything else stays text."""
    if text in refs:
        return refs[text]
    if not text or len(text) > _LONGEST:
        said = f"{len(text)} characters are no value" if text else "a value is missing"
        raise FormError(f"{name}: {said}")
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise FormError(f"{name}: {text!r} cannot be read: {error.msg}") from None
    return _literal(node, text, refs, state)


def _literal(node: ast.expr, text: str, refs: Mapping[str, Ref], state: State) -> object:
    match node:
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(_literal(item, ast.unparse(item), refs, state) for item in items)
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Name(id=name) if name in refs:
            return refs[name]
        case ast.Name(id=name) if (found := _by_name(name, refs.values(), state)) is not None:
            return found
        case _:
            return text


def _by_name(name: str, near: Iterable[Ref], state: State) -> Ref | None:
    """A loop, block or buffer of that name in the function of the step's other handles."""
    functions = dict.fromkeys(ref.function for ref in near)
    return next((r for f in functions if (r := find_by_name(state, f, name)) is not None), None)
