"""Messages between a session and the browser, version 2 of the protocol.

The browser sends a **request**. The session answers it with exactly one :class:`Update` whose
``reply`` is the ``id`` of the request. The session also sends updates without a request, when a
job makes progress or another thread edits the schedule. An update contains only the sections that
changed. The text of a function is sent once per content hash (:class:`Pane`), never as part of
the entire module.

The spans of a pane are sent in binary form: little-endian int32, :data:`SPAN_FIELDS` numbers per
span.

The TypeScript types are generated from these classes (:mod:`.typescript`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

VERSION = 2

SPAN_KINDS = ("loop", "block", "buffer", "binding")
"""The kinds of spans; the binary form stores the position in this tuple."""

SPAN_FIELDS = 7
"""The number of fields per span: kind, uid, 1 for a definition and 0 for a use, first line, first
column, last line, end column. Lines and columns start at 0."""

Level: TypeAlias = Literal["graph", "loop"]
HandleKind: TypeAlias = Literal["function", "loop", "block", "buffer", "binding"]
Tone: TypeAlias = Literal["info", "good", "warn", "bad"]
JobState: TypeAlias = Literal["running", "canceling", "done", "failed", "canceled"]
FactStatus: TypeAlias = Literal["proved", "assumed", "checked", "unknown", "likely"]
TextKind: TypeAlias = Literal["llvm", "assembly"]
TraceFormat: TypeAlias = Literal["python", "json"]
TraceStatus: TypeAlias = Literal["done", "query", "opaque", "pending"]
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
class FunctionItem:
    """An entry of the function list. ``hash`` identifies its pane; ``calls`` counts call sites."""

    name: str
    level: Level
    hash: str
    calls: int
    scheduled: bool


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
    """A value of a graph-level function. ``path`` is its namespace, outermost first."""

    uid: int
    name: str
    op: str
    kind: Literal["param", "call", "kernel", "library", "other", "result"]
    detail: str
    callee: str
    path: list[str]
    inputs: list[int]
    origins: list[str]


@dataclass(frozen=True, slots=True)
class GraphView:
    """The dataflow of one graph-level function, in program order."""

    hash: str
    function: str
    nodes: list[GraphNode]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a step's form: one parameter. ``value`` is Python text."""

    name: str
    type: str
    doc: str
    value: str
    choices: list[str]
    required: bool


@dataclass(frozen=True, slots=True)
class Fix:
    """A filled-in step that removes a problem."""

    key: str
    label: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A violated requirement of a step, or an error listed in the Problems panel.

    ``requirement`` is the number of the violated requirement, 0 for an error. ``where`` lists the
    parts of the program at fault, ``location`` describes the location of an error. Errors have a
    ``title`` and a ``traceback``, which is displayed on request.
    """

    key: str
    tone: Tone
    title: str
    message: str
    location: str
    hint: str
    requirement: int
    numbers: dict[str, str]
    counterexample: dict[str, str]
    where: list[Handle]
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

    ``applicable`` is true if the step was legal with the suggested parameters; edits in the form
    do not change it. ``more_problems`` counts the problems that were left out. A step that
    replaces loops by an intrinsic has the ``match`` of the two.
    """

    key: str
    step: str
    family: str
    applicable: bool
    label: str
    summary: str
    fields: list[Field]
    problems: list[Problem]
    more_problems: int
    match: MatchView | None = None


@dataclass(frozen=True, slots=True)
class Menu:
    """The steps for the selection, legal ones first. ``properties`` describe the selection."""

    selection: Handle | None
    path: list[Handle]
    properties: dict[str, str]
    suggestions: list[Suggestion]


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
class HistoryNode:
    """A state of the history. ``parent`` is the key of the previous state, empty at the root."""

    key: str
    parent: str
    label: str
    detail: str
    microseconds: float | None
    verified: bool | None


@dataclass(frozen=True, slots=True)
class History:
    """The tree of all states, oldest first, and the key of the head."""

    head: str
    nodes: list[HistoryNode]
    can_undo: bool
    can_redo: bool


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
class KernelTime:
    """The time of one kernel, summed over its calls, in microseconds."""

    function: str
    label: str
    calls: int
    microseconds: float
    share: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measured times of one call (all samples, microseconds) and of its kernels.

    Kernels are sorted by time, slowest first. ``state`` is the history node that was measured.
    ``compile_ms`` is not part of the samples. ``conditions`` describes how the samples were taken.
    ``alone`` is false if another measurement ran at the same time. ``machine`` lists the facts
    about the machine that affect the times.
    """

    state: str
    function: str
    shapes: str
    samples: list[float]
    median: float
    low: float
    high: float
    compile_ms: float
    kernels: list[KernelTime]
    conditions: str
    alone: bool
    machine: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The comparison of compiled and interpreted results at the sample shapes.

    ``error`` and ``bound`` belong to the element with the largest ratio of the two; ``message``
    identifies this element, ``derivation`` states how the bound was derived.
    """

    state: str
    agrees: bool
    error: float
    bound: float
    shapes: str
    message: str
    derivation: str


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """The options of the next measurement.

    ``threads`` is at most ``max_threads``; 0 means all of them. ``budget`` is in seconds.
    """

    caches: Literal["hot", "cold"]
    threads: int
    max_threads: int
    pin: bool
    budget: float


@dataclass(frozen=True, slots=True)
class Job:
    """Work on a background thread. ``progress`` is in 0..1, or -1 if it is unknown."""

    key: str
    title: str
    state: JobState
    progress: float
    message: str


@dataclass(frozen=True, slots=True)
class Lowered:
    """The text of a kernel below the loop level, and the state it was compiled from."""

    state: str
    function: str
    kind: TextKind
    text: str


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
    """The sections that changed. ``server_ms`` is the time the session spent on the request."""

    version: int
    reply: int
    server_ms: float
    target: str | None = None
    open: str | None = None
    functions: list[FunctionItem] | None = None
    panes: list[Pane] | None = None
    graph: GraphView | None = None
    menu: Menu | None = None
    trace: list[TraceLine] | None = None
    history: History | None = None
    symbols: Symbols | None = None
    measure_options: MeasureOptions | None = None
    measurement: Measurement | None = None
    verdict: Verdict | None = None
    jobs: list[Job] | None = None
    problems: list[Problem] | None = None
    lowered: Lowered | None = None
    document: Document | None = None
    applied: Applied | None = None


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
class Check:
    """A request to check a suggestion with the values of its form; the menu keeps them."""

    type: Literal["check"]
    key: str
    values: dict[str, str]


@dataclass(frozen=True, slots=True)
class Apply:
    """A request to apply a suggestion or fix, rejected if the head is not ``head``."""

    type: Literal["apply"]
    key: str
    values: dict[str, str]
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
    """A request to set the sample value of a symbol."""

    type: Literal["sample"]
    symbol: str
    value: int


@dataclass(frozen=True, slots=True)
class Run:
    """A request to start a job: compile and verify, or compile and measure.

    ``function`` is a kernel to measure in isolation; empty means the entire program.
    """

    type: Literal["run"]
    action: Literal["compile", "measure"]
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
    """A request for the LLVM or assembly text of the open function."""

    type: Literal["lower"]
    kind: TextKind


@dataclass(frozen=True, slots=True)
class SaveTrace:
    """A request for the trace as a document."""

    type: Literal["save"]
    format: TraceFormat


@dataclass(frozen=True, slots=True)
class LoadTrace:
    """A request to replay a JSON trace on the initial module of the session."""

    type: Literal["load"]
    text: str


@dataclass(frozen=True, slots=True)
class Dismiss:
    """A request to remove an entry of the Problems panel."""

    type: Literal["dismiss"]
    key: str


Request: TypeAlias = (
    Hello
    | Open
    | Select
    | Check
    | Apply
    | Navigate
    | Sample
    | Run
    | SetMeasureOptions
    | Cancel
    | Lower
    | SaveTrace
    | LoadTrace
    | Dismiss
)
