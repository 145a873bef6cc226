"""Messages about steps: parts of the program, menus, forms, problems, and previews."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

HandleKind: TypeAlias = Literal["function", "loop", "block", "buffer", "binding"]
Tone: TypeAlias = Literal["info", "good", "warn", "bad"]
MismatchKind: TypeAlias = Literal[
    "extent", "dtype", "layout", "access", "reduction", "scope", "target", "predicate"
]


@dataclass(frozen=True, slots=True)
class Handle:
    """A handle of a selectable part of the program, with its printed name."""

    kind: HandleKind
    function: str
    uid: int
    name: str


@dataclass(frozen=True, slots=True)
class StepData:
    """A step as data: its name, and its arguments by parameter.

    ``handles`` are arguments that are parts of the program, and ``values`` the text of others. A
    text from a form is used instead of the handles of its parameter, and names parts of
    ``function``. A parameter in neither has its default.
    """

    op: str
    function: str
    handles: dict[str, list[Handle]]
    values: dict[str, str]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a step's form: one parameter. ``value`` is Python text.

    ``kinds`` are the kinds of parts of the program that the parameter accepts; it is empty for
    other values. ``unavailable`` contains the choices that the target does not have, each with the
    missing features.
    """

    name: str
    type: str
    doc: str
    value: str
    choices: list[str]
    required: bool
    kinds: list[HandleKind]
    unavailable: dict[str, str]


@dataclass(frozen=True, slots=True)
class Fix:
    """A filled-in step that removes a problem."""

    label: str
    data: StepData


@dataclass(frozen=True, slots=True)
class Mark:
    """An underlined part of a line. The columns count from 1; ``end`` is exclusive."""

    line: int
    column: int
    end: int


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of code with its number, which counts from 1."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a function with marks. A gap between line numbers is an omission."""

    function: str
    lines: list[CodeLine]
    marks: list[Mark]


@dataclass(frozen=True, slots=True)
class Problem:
    """A violated requirement of a step, or an error listed in the Problems panel.

    ``requirement`` is the name of the violated requirement and ``requires`` its text; both are
    empty for an error. ``where`` lists the parts of the program at fault, which the ``excerpts``
    underline. ``location`` describes the location of an error. Errors have a ``title`` and a
    ``traceback``, which is displayed on request.
    """

    key: str
    tone: Tone
    title: str
    message: str
    location: str
    hint: str
    requirement: str
    requires: str
    numbers: dict[str, str]
    counterexample: dict[str, str]
    where: list[Handle]
    excerpts: list[Excerpt]
    fixes: list[Fix]
    traceback: str


@dataclass(frozen=True, slots=True)
class MatchRow:
    """A line of the program and the corresponding line of an intrinsic's semantics.

    ``marks`` are positions in :attr:`MatchView.mismatches`.
    """

    program: str
    pattern: str
    marks: list[int]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A difference between program and intrinsic: its kind, the two texts, and a message."""

    kind: MismatchKind
    program: str
    pattern: str
    message: str


@dataclass(frozen=True, slots=True)
class MatchView:
    """A side-by-side view of a part of the program and the semantics of an intrinsic."""

    intrinsic: str
    summary: str
    rows: list[MatchRow]
    mismatches: list[Mismatch]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A filled-in step for the selection, legal if ``problems`` is empty.

    ``key`` identifies the suggestion among those of a selection, also after an edit. ``data`` is
    the step without edits of its form. ``more_problems`` counts the problems that were left out.
    ``steps`` is 1; for a composite step it is null, and computed by a check.
    """

    key: str
    step: str
    family: str
    applicable: bool
    label: str
    summary: str
    data: StepData
    fields: list[Field]
    problems: list[Problem]
    more_problems: int
    composite: bool
    steps: int | None


@dataclass(frozen=True, slots=True)
class Selected:
    """The selected part, the parts that enclose it, outermost first, and its properties."""

    selection: Handle | None
    path: list[Handle]
    properties: dict[str, str]


@dataclass(frozen=True, slots=True)
class Menu:
    """The steps for a selection at a state of the history, legal ones first."""

    state: str
    selection: Handle
    suggestions: list[Suggestion]


@dataclass(frozen=True, slots=True)
class Checked:
    """The answer to a check of a step: its problems, of which ``more_problems`` were left out.

    A step that replaces loops by an intrinsic has the ``match`` of the two. ``steps`` is the number
    of steps that a legal step records, null if counting them takes long.
    """

    problems: list[Problem]
    more_problems: int
    steps: int | None
    match: MatchView | None


@dataclass(frozen=True, slots=True)
class FunctionChange:
    """A function that a step would change: its text without and with the step.

    Equal lines at the begin and at the end of long texts are left out: ``first`` is the number of
    the first line. A text is empty if the step adds or removes the function.
    """

    function: str
    first: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Previewed:
    """The program after a step that was not applied. ``key`` is that of the request.

    ``state`` is the state that the step was tried on. ``more`` counts the ``changes`` that were
    left out. ``problem`` is the reason why the step is illegal; there are no changes then.
    """

    key: str
    state: str
    changes: list[FunctionChange]
    more: int
    problem: Problem | None


@dataclass(frozen=True, slots=True)
class StepInfo:
    """A step that changes programs, with its parameters at their defaults."""

    step: str
    family: str
    summary: str
    composite: bool
    fields: list[Field]
