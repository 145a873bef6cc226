"""Requests of the browser; :mod:`.protocol` describes the answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .protocol import TraceFormat
from .protocol_runs import CostKind
from .protocol_steps import HandleKind, StepData


@dataclass(frozen=True, slots=True)
class Hello:
    """The first request of a page; its answer contains all sections."""

    type: Literal["hello"]
    version: int


@dataclass(frozen=True, slots=True)
class Open:
    """A request to show a function."""

    type: Literal["open"]
    function: str


@dataclass(frozen=True, slots=True)
class Select:
    """A request to select a part of the program, or nothing (``kind`` empty)."""

    type: Literal["select"]
    kind: HandleKind | Literal[""]
    function: str
    uid: int


@dataclass(frozen=True, slots=True)
class Suggest:
    """A request for the menu of the selection, after an update that was not an answer."""

    type: Literal["suggest"]


@dataclass(frozen=True, slots=True)
class Check:
    """A request to check a step, for example a suggestion with the values of its form."""

    type: Literal["check"]
    step: StepData


@dataclass(frozen=True, slots=True)
class Preview:
    """A request for the program after a step, without applying it.

    A newer request cancels the older one. ``key`` is repeated in the answer.
    """

    type: Literal["preview"]
    key: str
    step: StepData


@dataclass(frozen=True, slots=True)
class Apply:
    """A request to apply a step, rejected if the head is not ``head``."""

    type: Literal["apply"]
    step: StepData
    head: str


@dataclass(frozen=True, slots=True)
class Navigate:
    """A request to move the head of the history: undo, redo, or jump to ``node``."""

    type: Literal["navigate"]
    action: Literal["undo", "redo", "jump"]
    node: str
    head: str


@dataclass(frozen=True, slots=True)
class Sample:
    """A request to set the sample value of a symbol of a function."""

    type: Literal["sample"]
    function: str
    symbol: str
    value: int


@dataclass(frozen=True, slots=True)
class EditSizeSet:
    """A request to keep the sample sizes as a named set, to remove a set, or to use its sizes."""

    type: Literal["edit_size_set"]
    action: Literal["add", "remove", "use"]
    name: str


@dataclass(frozen=True, slots=True)
class SetTarget:
    """A request to schedule, compile and measure for another target, by its key.

    The trace is replayed for the target: steps that are not legal on it become pending. Rejected
    if the head is not ``head``.
    """

    type: Literal["set_target"]
    target: str
    head: str


@dataclass(frozen=True, slots=True)
class Run:
    """A request to start a job: compile and verify, compile and measure, or measure the ``roof``.

    ``measure_sets`` measures the entire program with each set of sizes.
    ``function`` is a kernel to measure in isolation; empty means the entire program.
    """

    type: Literal["run"]
    action: Literal["compile", "measure", "measure_sets", "roof"]
    function: str


@dataclass(frozen=True, slots=True)
class SetMeasureOptions:
    """A request to set the options of the next measurement."""

    type: Literal["set_measure_options"]
    caches: Literal["hot", "cold"]
    threads: int
    pin: bool
    budget: float


@dataclass(frozen=True, slots=True)
class Cancel:
    """A request to cancel a job."""

    type: Literal["cancel"]
    job: str


@dataclass(frozen=True, slots=True)
class Lower:
    """A request for the text of the open function after a stage of lowering.

    A newer request cancels the older one.
    """

    type: Literal["lower"]
    stage: str


@dataclass(frozen=True, slots=True)
class CountCosts:
    """A request for the costs of the operations of the displayed graph, at the sample sizes.

    A newer request of the client cancels the older one.
    """

    type: Literal["count_costs"]
    kind: CostKind


@dataclass(frozen=True, slots=True)
class EditGroup:
    """A request to replace a composite step of the trace, rejected if the head is not ``head``.

    ``ungroup`` keeps its steps as individual ones. ``change`` runs it again with other ``values``,
    and replays the steps after it; the ones that do not apply are kept as pending.
    """

    type: Literal["edit_group"]
    action: Literal["ungroup", "change"]
    index: int
    values: dict[str, str]
    head: str


@dataclass(frozen=True, slots=True)
class EditTrace:
    """A request to edit steps of the trace, rejected if the head is not ``head``.

    ``change`` replaces the step ``index`` by ``text``, and replays the steps after it. The other
    actions are about the pending steps: ``resume`` tries them again, ``skip`` leaves out the first
    one and those that use its results, and ``discard`` removes them.
    """

    type: Literal["edit_trace"]
    action: Literal["change", "resume", "skip", "discard"]
    index: int
    text: str
    head: str


@dataclass(frozen=True, slots=True)
class UseRule:
    """A request about the default schedule, rejected if the head is not ``head``.

    ``lower`` lowers the graph, so that ``function`` can be edited. ``take`` applies the default
    rule of a kernel as editable steps, after lowering the graph if necessary. ``return`` removes
    all steps that schedule a kernel, so that it gets the default rule when it is compiled.
    """

    type: Literal["use_rule"]
    action: Literal["lower", "take", "return"]
    function: str
    head: str


@dataclass(frozen=True, slots=True)
class ApplyToSimilar:
    """A request to apply the steps of a kernel to all kernels that accept them.

    With ``preview``, the kernels are tried and nothing changes. Rejected if the head is not
    ``head``.
    """

    type: Literal["apply_to_similar"]
    function: str
    preview: bool
    head: str


@dataclass(frozen=True, slots=True)
class SaveTrace:
    """A request for the trace as a document."""

    type: Literal["save"]
    format: TraceFormat


@dataclass(frozen=True, slots=True)
class LoadTrace:
    """A request to replay a trace, as JSON or Python, on the initial module of the session.

    ``notes`` are kept for the states with these keys. ``name`` is that of the file, for errors.
    """

    type: Literal["load"]
    text: str
    notes: dict[str, str]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class SetNote:
    """A request to write a note on a state of the history; an empty text removes it."""

    type: Literal["set_note"]
    node: str
    text: str


@dataclass(frozen=True, slots=True)
class ShowMeasurement:
    """A request to show a measurement that the session keeps."""

    type: Literal["show_measurement"]
    key: str


@dataclass(frozen=True, slots=True)
class Dismiss:
    """A request to remove an entry of the Problems panel."""

    type: Literal["dismiss"]
    key: str


Request: TypeAlias = (
    Hello
    | Open
    | Select
    | Suggest
    | Check
    | Preview
    | Apply
    | Navigate
    | Sample
    | EditSizeSet
    | SetTarget
    | Run
    | SetMeasureOptions
    | Cancel
    | Lower
    | CountCosts
    | EditGroup
    | EditTrace
    | UseRule
    | ApplyToSimilar
    | SaveTrace
    | LoadTrace
    | SetNote
    | ShowMeasurement
    | Dismiss
)
