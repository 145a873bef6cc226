"""The view-model protocol between a session and the browser, version 1.

A **request** comes from the browser and is answered by exactly one :class:`Update` whose ``reply``
is the request's ``id``. Updates also come unasked, when a job moves or another thread edits the
schedule. An update holds only the sections that changed; a section left out is as it was. The text
of a function is sent once for each content hash (:class:`Pane`), never the module as a whole.

The spans of a pane travel in binary: little-endian int32, :data:`SPAN_FIELDS` numbers each.

The TypeScript types are generated from these classes (:mod:`.typescript`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

VERSION = 1

SPAN_KINDS = ("loop", "block", "buffer", "binding")
"""What a span of text is of; the binary form holds the position in this tuple."""

SPAN_FIELDS = 7
"""Numbers of one span: kind, uid, 1 where it is defined (else mentioned), first line, first
column, last line, end column; all from 0."""

Level: TypeAlias = Literal["graph", "loop"]
RefKind: TypeAlias = Literal["function", "loop", "block", "buffer", "binding"]
Tone: TypeAlias = Literal["info", "good", "warn", "bad"]
JobState: TypeAlias = Literal["running", "cancelling", "done", "failed", "cancelled"]
Knowledge: TypeAlias = Literal["proved", "assumed", "checked", "unknown", "likely"]
TextKind: TypeAlias = Literal["llvm", "assembly"]
TraceFormat: TypeAlias = Literal["python", "json"]
TraceStatus: TypeAlias = Literal["done", "query", "opaque", "pending"]
MismatchKind: TypeAlias = Literal[
    "extent", "dtype", "layout", "access", "reduction", "scope", "target", "predicate"
]


# ---------------------------------------------------------------- what the browser shows


@dataclass(frozen=True, slots=True)
class Ref:
    """Something one can select, with the name it is printed by."""

    kind: RefKind
    function: str
    uid: int
    name: str


@dataclass(frozen=True, slots=True)
class FunctionItem:
    """One line of the list of functions. ``hash`` is that of its pane; ``calls`` counts uses."""

    name: str
    level: Level
    hash: str
    calls: int
    scheduled: bool


@dataclass(frozen=True, slots=True)
class LoopNote:
    """What is told at the end of a loop's or block's header line."""

    uid: int
    kind: str
    name: str
    extent: str
    size: int | None
    note: str


@dataclass(frozen=True, slots=True)
class Pane:
    """The text of one function. Its spans are in the binary buffer of number ``buffer``.

    ``origins`` maps a uid to positions in ``origin_names``: the operations it computes a part of.
    """

    hash: str
    function: str
    level: Level
    text: str
    buffer: int
    origin_names: list[str]
    origins: dict[str, list[int]]
    notes: list[LoopNote]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One value of a graph-level function. ``path`` is the namespace it folds into."""

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
    """One parameter of a step, for its form. ``value`` is Python text."""

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
class Issue:
    """Why a step does not apply: the numbered requirement, the numbers, and what mends it."""

    requirement: int
    message: str
    numbers: dict[str, str]
    counterexample: dict[str, str]
    where: list[Ref]
    fixes: list[Fix]


@dataclass(frozen=True, slots=True)
class MatchRow:
    """A line of a program beside the line of an instruction's semantics that it should be.

    ``marks`` are positions in :attr:`MatchView.mismatches`.
    """

    program: str
    pattern: str
    marks: list[int]


@dataclass(frozen=True, slots=True)
class MatchMark:
    """One difference: its kind, the two texts that differ, and what is wrong with them."""

    kind: MismatchKind
    program: str
    pattern: str
    message: str


@dataclass(frozen=True, slots=True)
class MatchView:
    """A part of the program side by side with what a tensor instruction computes."""

    intrinsic: str
    summary: str
    rows: list[MatchRow]
    mismatches: list[MatchMark]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A step filled in for the selection; legal if ``issues`` is empty.

    ``applies`` tells whether it was legal as it was offered, whatever its form says now.

    A step that puts an instruction in the place of loops comes with the ``match`` of the two.
    """

    key: str
    step: str
    family: str
    applies: bool
    label: str
    summary: str
    fields: list[Field]
    issues: list[Issue]
    more_issues: int
    match: MatchView | None = None


@dataclass(frozen=True, slots=True)
class Menu:
    """The steps for what is selected, applicable ones first. ``facts`` describe the selection."""

    selection: Ref | None
    path: list[Ref]
    facts: dict[str, str]
    candidates: list[Candidate]


@dataclass(frozen=True, slots=True)
class TraceLine:
    """One step of the trace, as Python."""

    index: int
    text: str
    step: str
    status: TraceStatus
    note: str
    milliseconds: float | None


@dataclass(frozen=True, slots=True)
class HistoryNode:
    """A state that was reached. ``parent`` is the one it was made from, empty at the root."""

    key: str
    parent: str
    label: str
    detail: str
    microseconds: float | None
    verified: bool | None


@dataclass(frozen=True, slots=True)
class History:
    """The states reached so far as a tree, oldest first, and where the head stands."""

    head: str
    nodes: list[HistoryNode]
    can_undo: bool
    can_redo: bool


@dataclass(frozen=True, slots=True)
class FactRow:
    """One thing known, or not known, of the symbols."""

    text: str
    knowledge: Knowledge
    origin: str


@dataclass(frozen=True, slots=True)
class SymbolRow:
    """One symbol with its range, and the sample value that sizes are shown at."""

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
    """What is known of the symbols of the open function."""

    rows: list[SymbolRow]
    facts: list[FactRow]
    derived: list[Derived]


@dataclass(frozen=True, slots=True)
class KernelTime:
    """Time of one kernel, summed over its calls, in microseconds."""

    function: str
    label: str
    calls: int
    microseconds: float
    share: float


@dataclass(frozen=True, slots=True)
class Timing:
    """One measurement: the whole call (all samples, microseconds) and its kernels, slowest first.

    ``state`` is the history node that was measured; ``compile_ms`` is apart from the time;
    ``conditions`` says how it was taken, ``alone`` whether nothing else measured meanwhile;
    ``machine`` are the facts of the machine that the times depend on.
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
    """Compiled result against the interpreter's, at sample shapes.

    ``error`` and ``bound`` are seen and allowed at the element where the error takes most of what
    is allowed; ``message`` says which one it is, ``derivation`` where the bound comes from.
    """

    state: str
    agrees: bool
    error: float
    bound: float
    shapes: str
    message: str
    derivation: str


@dataclass(frozen=True, slots=True)
class Conditions:
    """How the next measurement is taken. ``threads`` of 0 are all; ``most`` of them there are."""

    caches: Literal["hot", "cold"]
    threads: int
    most: int
    pin: bool
    budget: float


@dataclass(frozen=True, slots=True)
class Job:
    """Work off the main thread. ``progress`` is in 0..1, or -1 where it is not known."""

    key: str
    title: str
    state: JobState
    progress: float
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """An entry of the problems list; ``trace`` is the raw traceback, shown on request."""

    key: str
    tone: Tone
    title: str
    message: str
    where: str
    hint: str
    trace: str


@dataclass(frozen=True, slots=True)
class Lowered:
    """The text of a kernel below the loop level, at the state it was made of."""

    state: str
    function: str
    kind: TextKind
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A text the browser copies or saves: the trace as Python or JSON."""

    name: str
    format: TraceFormat
    text: str


@dataclass(frozen=True, slots=True)
class Applied:
    """What an edit did: said in the live region, and selected."""

    message: str
    tone: Tone
    functions: list[str]


@dataclass(frozen=True, slots=True)
class Update:
    """What changed. ``server_ms`` is the time that the request took in the session."""

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
    conditions: Conditions | None = None
    timing: Timing | None = None
    verdict: Verdict | None = None
    jobs: list[Job] | None = None
    reports: list[Report] | None = None
    lowered: Lowered | None = None
    document: Document | None = None
    applied: Applied | None = None


# ---------------------------------------------------------------- what the browser asks


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message of a page; it is answered with everything."""

    type: Literal["hello"]
    version: int


@dataclass(frozen=True, slots=True)
class Open:
    """Show a function."""

    type: Literal["open"]
    function: str


@dataclass(frozen=True, slots=True)
class Select:
    """Select a thing, or nothing (``kind`` empty); answered with a menu."""

    type: Literal["select"]
    kind: RefKind | Literal[""]
    function: str
    uid: int


@dataclass(frozen=True, slots=True)
class Check:
    """Check a candidate with the values of its form; answered with a menu that has it so."""

    type: Literal["check"]
    key: str
    values: dict[str, str]


@dataclass(frozen=True, slots=True)
class Apply:
    """Apply a candidate or a fix of the menu, with the values of its form, at ``head``."""

    type: Literal["apply"]
    key: str
    values: dict[str, str]
    head: str


@dataclass(frozen=True, slots=True)
class Travel:
    """Move in the history: undo, redo, or jump to the node ``to``."""

    type: Literal["travel"]
    how: Literal["undo", "redo", "jump"]
    to: str
    head: str


@dataclass(frozen=True, slots=True)
class Sample:
    """Give a symbol another sample value."""

    type: Literal["sample"]
    symbol: str
    value: int


@dataclass(frozen=True, slots=True)
class Run:
    """Start a job: compile and check, or compile and time.

    ``function`` is one kernel, timed by itself; empty means the whole program.
    """

    type: Literal["run"]
    what: Literal["compile", "time"]
    function: str


@dataclass(frozen=True, slots=True)
class Condition:
    """Choose how the next measurement is taken."""

    type: Literal["condition"]
    caches: Literal["hot", "cold"]
    threads: int
    pin: bool
    budget: float


@dataclass(frozen=True, slots=True)
class Cancel:
    """Cancel a job."""

    type: Literal["cancel"]
    job: str


@dataclass(frozen=True, slots=True)
class Lower:
    """Show the lower text of the open function."""

    type: Literal["lower"]
    kind: TextKind


@dataclass(frozen=True, slots=True)
class SaveTrace:
    """Ask for the trace as a document."""

    type: Literal["save"]
    format: TraceFormat


@dataclass(frozen=True, slots=True)
class LoadTrace:
    """Replay a trace, given as JSON, on the module the session began with."""

    type: Literal["load"]
    text: str


@dataclass(frozen=True, slots=True)
class Dismiss:
    """Drop an entry of the problems list."""

    type: Literal["dismiss"]
    key: str


Request: TypeAlias = (
    Hello
    | Open
    | Select
    | Check
    | Apply
    | Travel
    | Sample
    | Run
    | Condition
    | Cancel
    | Lower
    | SaveTrace
    | LoadTrace
    | Dismiss
)
