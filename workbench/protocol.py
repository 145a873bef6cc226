"""Messages between a session and the browser, version 9 of the protocol.

The browser sends a **request** with an ``id`` and the name of its ``client``: each page is one.
The session answers with exactly one :class:`Update` whose ``reply`` is the ``id`` of the request.
It also sends updates without a request, when a job makes progress, or another page or thread edits
the schedule. The menu of the selection takes longer than the answer that changes the selection or
the state: it follows in an update of its own, unless it was computed before. After other updates,
the browser asks for it.

The **document** is shared by all pages: schedule, history, sample sizes, measurements, and errors.
The **view** belongs to one client: the open function, the selection with its menu, texts that were
asked for, and the outcome of the last request. An update contains only the sections that changed
since the last one for the same client. Sections that take long are sent only on request: the
details of a step, previews, and texts of the stages of lowering. The text of a function is sent
once per content hash (:class:`Pane`), never as part of the entire module.

Long lists are sent as changes: an update contains the elements of the list other than the first
``keep`` and the last ``tail`` ones of the list that the client has; without these numbers, it
contains the entire list.

The spans of a pane are sent in binary form: little-endian int32, :data:`SPAN_FIELDS` numbers per
span. So are overlays of the graph.

Messages about steps are in :mod:`.protocol_steps`, those about measurements in
:mod:`.protocol_runs`, and requests in :mod:`.requests`. The
TypeScript types are generated from the classes of these modules (:mod:`.typescript`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .protocol_runs import (
    GraphCosts,
    KernelRule,
    Measurement,
    MeasurementRecords,
    MeasureOptions,
    Overlay,
    SimilarKernels,
    SizeSet,
    TargetOption,
    Verdict,
)
from .protocol_steps import (
    Checked,
    Field,
    Menu,
    Previewed,
    Problem,
    Selected,
    StepInfo,
    Tone,
)

VERSION = 9

SPAN_KINDS = ("loop", "block", "buffer", "binding")
"""The kinds of spans; the binary form stores the position in this tuple."""

SPAN_FIELDS = 7
"""The number of fields per span: kind, uid, 1 for a definition and 0 for a use, first line, first
column, last line, end column. Lines and columns start at 0."""

Level: TypeAlias = Literal["graph", "loop"]
JobState: TypeAlias = Literal["running", "canceling", "done", "failed", "canceled"]
JobKind: TypeAlias = Literal["run", "lower"]
FactStatus: TypeAlias = Literal["proved", "assumed", "checked", "unknown", "likely"]
StageLevel: TypeAlias = Literal["loop", "thread", "host", "llvm", "assembly", "wgsl"]
TraceFormat: TypeAlias = Literal["python", "json"]
TraceStatus: TypeAlias = Literal["done", "query", "opaque", "pending"]


@dataclass(frozen=True, slots=True)
class FunctionItem:
    """An entry of the function list. ``hash`` identifies its pane; ``calls`` counts call sites."""

    name: str
    level: Level
    hash: str
    calls: int
    scheduled: bool


@dataclass(frozen=True, slots=True)
class FunctionList:
    """The functions of the program, then the open one if only the measured program has it."""

    items: list[FunctionItem]
    keep: int | None = None
    tail: int | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a loop or block, with the label displayed after its line.

    ``value`` is the extent at the samples, null where a symbol has no sample.
    """

    uid: int
    kind: str
    name: str
    extent: str
    value: int | None
    label: str


@dataclass(frozen=True, slots=True)
class Pane:
    """The text of one function. Its spans are in the binary buffer with index ``buffer``.

    ``origins`` maps a uid to positions in ``origin_names``: the operations that the part computes.
    """

    hash: str
    function: str
    level: Level
    text: str
    buffer: int
    origin_names: list[str]
    origins: dict[str, list[int]]
    headers: list[Header]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A value of a graph-level function. ``path`` is its namespace, outermost first.

    A loop or branch ``y`` is a namespace ``loop y`` or ``if y`` with its bindings and its value;
    the branches of ``if y`` are the namespaces ``then`` and ``else`` in it. The values that each
    iteration of a loop defines are of kind ``carried``.
    """

    uid: int
    name: str
    op: str
    kind: Literal["param", "carried", "call", "kernel", "library", "other", "result"]
    detail: str
    callee: str
    path: list[str]
    inputs: list[int]
    origins: list[str]


@dataclass(frozen=True, slots=True)
class GraphView:
    """The dataflow of one graph-level function, in program order."""

    function: str
    nodes: list[GraphNode]
    keep: int | None = None
    tail: int | None = None


@dataclass(frozen=True, slots=True)
class TraceLine:
    """A step of the trace as Python text, with the decisions it recorded."""

    index: int
    text: str
    step: str
    status: TraceStatus
    decisions: str
    milliseconds: float | None


@dataclass(frozen=True, slots=True)
class TraceGroup:
    """The lines of one composite step: ``stop`` is exclusive. ``text`` is its folded form.

    Groups are properly nested, outer ones before inner ones. ``index`` is the position in the list
    of groups. ``fields`` are the parameters whose values can be changed.
    """

    index: int
    first: int
    stop: int
    step: str
    text: str
    status: TraceStatus
    milliseconds: float | None
    fields: list[Field]


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps from the root to the head, then the pending ones, and their groups.

    ``reason`` is the reason why the first pending step does not apply, empty if there is none.
    """

    lines: list[TraceLine]
    groups: list[TraceGroup]
    reason: str
    keep: int | None = None
    tail: int | None = None


@dataclass(frozen=True, slots=True)
class TraceCopy:
    """The trace as a file, which the browser keeps: ``keep`` lines of the last one, then ``lines``.

    ``program`` identifies the program at the root, ``process`` the Jupyter kernel. The file is
    named ``name``, and ``steps`` counts its steps. ``notes`` are those of all states, by key.
    """

    name: str
    program: str
    process: str
    steps: int
    keep: int
    lines: list[str]
    notes: dict[str, str]


@dataclass(frozen=True, slots=True)
class HistoryNode:
    """A state of the history. ``parent`` is the key of the previous state, empty at the root.

    ``note`` is a text of the user, empty without one. ``steps`` counts the recorded steps if the
    state is the result of a composite step, else it is 1.
    """

    key: str
    parent: str
    label: str
    detail: str
    steps: int
    verified: bool | None
    note: str


@dataclass(frozen=True, slots=True)
class History:
    """The tree of all states, oldest first, and the key of the head."""

    head: str
    nodes: list[HistoryNode]
    can_undo: bool
    can_redo: bool
    keep: int | None = None
    tail: int | None = None


@dataclass(frozen=True, slots=True)
class FactRow:
    """A condition on the symbols, with its status and origin."""

    text: str
    status: FactStatus
    origin: str


@dataclass(frozen=True, slots=True)
class SymbolRow:
    """A symbol with its range, divisibility, sample value, and likely values (its hints)."""

    name: str
    lower: int | None
    upper: int | None
    multiple_of: int
    sample: int
    likely: list[int]


@dataclass(frozen=True, slots=True)
class Derived:
    """An expression over the symbols and its value at the samples."""

    label: str
    text: str
    value: str


@dataclass(frozen=True, slots=True)
class Symbols:
    """The symbols of the open function, the facts about them, and derived expressions."""

    rows: list[SymbolRow]
    facts: list[FactRow]
    derived: list[Derived]


@dataclass(frozen=True, slots=True)
class Setup:
    """The target, the function that *Measure* runs, and the sample sizes of its symbols.

    ``sets`` are the named sets of sizes.
    ``missing`` states why this machine cannot run code for the target; it is empty if it can.
    """

    target: str
    targets: list[TargetOption]
    missing: str
    function: str
    sizes: list[SymbolRow]
    sets: list[SizeSet]


@dataclass(frozen=True, slots=True)
class Job:
    """Work on a background thread. ``progress`` is in 0..1, or -1 if it is unknown.

    ``seconds`` is the elapsed time at the last report. Jobs that ``lower`` only produce text.
    """

    key: str
    kind: JobKind
    title: str
    state: JobState
    progress: float
    message: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of lowering: the scheduled program, a pass, or a form of the generated code."""

    name: str
    level: StageLevel
    summary: str


@dataclass(frozen=True, slots=True)
class Lowered:
    """The text of a function after a stage of lowering, and the state it was lowered from.

    ``previous`` is the text before the stage, empty if the stage translates to another form. If
    lowering failed, ``problem`` is the error and ``text`` the last text of this stage, empty if
    there is none.
    """

    state: str
    function: str
    stage: str
    text: str
    previous: str
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A text that the browser copies or saves: the trace as Python or JSON."""

    name: str
    format: TraceFormat
    text: str


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of a request or job, announced in the status bar.

    ``functions`` are the functions that changed.
    """

    message: str
    tone: Tone
    functions: list[str]


@dataclass(frozen=True, slots=True)
class Update:
    """The sections that changed, for one client.

    ``revision`` counts the updates of a client since its hello. ``server_ms`` is the time that the
    session spent on the request.
    """

    version: int
    client: str
    reply: int
    revision: int
    server_ms: float
    catalog: list[StepInfo] | None = None
    target: str | None = None
    open: str | None = None
    functions: FunctionList | None = None
    panes: list[Pane] | None = None
    graph: GraphView | None = None
    selected: Selected | None = None
    menu: Menu | None = None
    checked: Checked | None = None
    previewed: Previewed | None = None
    trace: Trace | None = None
    copy: TraceCopy | None = None
    history: History | None = None
    symbols: Symbols | None = None
    setup: Setup | None = None
    measure_options: MeasureOptions | None = None
    measurement: Measurement | None = None
    records: MeasurementRecords | None = None
    heat: Overlay | None = None
    costs: GraphCosts | None = None
    rule: KernelRule | None = None
    similar: SimilarKernels | None = None
    verdict: Verdict | None = None
    jobs: list[Job] | None = None
    problems: list[Problem] | None = None
    stages: list[Stage] | None = None
    lowered: Lowered | None = None
    document: Document | None = None
    applied: Applied | None = None
