"""One person's work on one program: schedule, selection, samples, jobs. Knows of no browser.

Requests come in through :meth:`Session.handle`, from whichever thread; what changed goes out
through the function the session was given. The head of the schedule moves by compare-and-swap, so
an edit of a program that somebody else changed meanwhile changes nothing and says so.
"""

from __future__ import annotations

import itertools
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..codegen.runtime.isolated.conditions import Conditions
from ..ir.errors import TilewrightError
from ..ir.graph.memory import Launch
from ..ir.graph.nodes import CallTIR, GraphFunc
from ..ir.module import Function, Module
from ..schedules import (
    BindingRef,
    FunctionRef,
    LoopRef,
    Primitive,
    Ref,
    Schedule,
    StaleEditError,
    State,
    Step,
    StepError,
    TraceStep,
    from_json,
    to_json,
    to_python,
)
from .jobs import Jobs, Progress
from .menus import Offers
from .places import around, exists, facts_about, to_handle, to_view
from .protocol import (
    VERSION,
    Applied,
    Apply,
    Cancel,
    Check,
    Condition,
    Conditions as ConditionsView,
    Dismiss,
    Document,
    Hello,
    LoadTrace,
    Lower,
    Lowered,
    Menu,
    Open,
    Report,
    Request,
    Run,
    Sample,
    SaveTrace,
    Select,
    TextKind,
    Timing,
    Tone,
    Travel,
    Update,
    Verdict,
)
from .render import Samples
from .runs import Bench
from .sections import Sections
from .story import Story
from .symbols import checked_sample, samples_of
from .wire import ProtocolError, decode

Publish = Callable[[Update, list[bytes]], None]

_REPORTS = 20

_TONES: dict[bool, Tone] = {True: "good", False: "bad"}

FOLLOW = 0.05
"""Seconds after which the view follows a head that somebody else moved."""


def _nobody(_update: Update, _buffers: list[bytes]) -> None:
    """Publish to nobody: a session may be used without a browser."""


@dataclass(slots=True)
class Shown:
    """What the session shows beside the schedule; each is replaced as a whole, never changed."""

    open: str = ""
    selection: Ref | None = None
    offers: Offers = field(default_factory=Offers)
    menu: Menu = field(default_factory=lambda: Menu(None, [], {}, []))
    chosen: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    reports: tuple[Report, ...] = ()
    pending: tuple[TraceStep, ...] = ()
    lowered: Lowered | None = None
    document: Document | None = None
    applied: Applied | None = None
    conditions: Conditions = field(default_factory=Conditions)
    timing: Timing | None = None
    verdict: Verdict | None = None


class Session:
    """A schedule under edit, and everything a person sees of it.

    Parameters
    ----------
    schedule : Schedule
        What is edited; cells of a notebook may edit it too.
    bench : Bench
        Compiles and times it.
    title : str
        What the program is called in the history.
    publish : function
        Takes updates and their binary buffers, from any thread.
    """

    def __init__(
        self, schedule: Schedule, bench: Bench, *, title: str = "", publish: Publish = _nobody
    ) -> None:
        """Open the program's ``main``, or its only loop-level function."""
        self.schedule = schedule
        self.publish = publish
        self.story = Story()
        self.shown = Shown(open=_first(schedule.module))
        self._bench = bench
        self._title = title or schedule.module.attributes.get("name", "")
        self._lock = threading.RLock()
        self._sections = Sections()
        self._numbers = itertools.count(1)
        self._seen = schedule.head.id
        self.jobs = Jobs(self.refresh, self._job_failed)
        self._busy = False
        self._timer: threading.Timer | None = None
        schedule.subscribe(self._moved)
        if self.graph is not None:
            self._choose(FunctionRef(self.graph.name))

    # ------------------------------------------------------------ messages

    def handle(self, message: Mapping[str, object]) -> Update:
        """Do what a request asks and publish the answer; errors become reports."""
        started = time.perf_counter()
        number = message.get("id")
        with self._lock:
            self._busy = True
            try:
                self._do(decode(message))
            except TilewrightError as error:
                self._complain(error)
            except Exception as error:  # noqa: BLE001 - a fault must not silence the workbench
                self._complain(error)
            finally:
                self._busy = False
            return self._send(number if isinstance(number, int) else 0, started)

    def refresh(self) -> None:
        """Publish what changed, without having been asked: another thread did something."""
        with self._lock:
            if self.schedule.head.id != self._seen:
                self._settle()
            self._send(0, time.perf_counter())

    def _moved(self, _head: object) -> None:
        """Follow edits made elsewhere, such as in a cell; a burst of them is told once."""
        if self._busy or self._timer is not None:
            return
        self._timer = threading.Timer(FOLLOW, self._follow)
        self._timer.daemon = True
        self._timer.start()

    def _follow(self) -> None:
        """Publish; a move that comes meanwhile starts another timer."""
        self._timer = None
        self.refresh()

    def _send(self, reply: int, started: float) -> Update:
        self._seen = self.schedule.head.id
        update, buffers = self._sections.update(self, reply, started)
        self.publish(update, buffers)
        return update

    def _do(self, request: Request) -> None:
        match request:
            case Hello(version=version):
                self._hello(version)
            case Open(function=name):
                self._open(name)
            case Select():
                self._select(request)
            case Check(key=key, values=values):
                self.shown.offers.change(key, values, self.state)
                self._show_menu()
            case Apply():
                self._apply(request)
            case Travel():
                self._travel(request)
            case Sample(symbol=name, value=value):
                self._sample(name, value)
            case Run(what="time", function=name) if name:
                self._time_kernel(name)
            case Run(what=what):
                self._run(what)
            case Condition(caches=caches, threads=threads, pin=pin, budget=budget):
                self.conditions = Conditions(caches, threads, pin, float(budget))
            case Cancel(job=job):
                self.jobs.cancel(job)
            case Lower(kind=kind):
                self._lower(kind)
            case SaveTrace(format=kind):
                self._save(kind)
            case LoadTrace(text=text):
                self._load(text)
            case Dismiss(key=key):
                self.shown.reports = tuple(r for r in self.shown.reports if r.key != key)

    # ------------------------------------------------------------ reading

    @property
    def state(self) -> State:
        """The state at the head."""
        return self.schedule.state

    @property
    def title(self) -> str:
        """What the program is called."""
        return self._title

    @property
    def target(self) -> str:
        """What is compiled for, in words."""
        return self._bench.target_text

    @property
    def function(self) -> Function:
        """The open function."""
        return self.state.module.functions[self.shown.open]

    @property
    def graph(self) -> GraphFunc | None:
        """The graph-level function of the diagram: the open one, else ``main``, else the first."""
        module = self.state.module
        opened = module.functions.get(self.shown.open)
        if isinstance(opened, GraphFunc):
            return opened
        main = module.functions.get("main")
        return main if isinstance(main, GraphFunc) else next(iter(module.graphs), None)

    @property
    def conditions(self) -> Conditions:
        """How the next measurement is taken."""
        return self.shown.conditions

    @conditions.setter
    def conditions(self, chosen: Conditions) -> None:
        self._bench.check(chosen)
        self.shown.conditions = chosen

    def conditions_view(self) -> ConditionsView:
        """The same for the browser, with what there is to choose from."""
        chosen = self.conditions
        most = self._bench.threads
        return ConditionsView(chosen.caches, chosen.threads, most, chosen.pin, chosen.budget)

    def samples(self, function: Function) -> Samples:
        """The sample values of a function's symbols."""
        return samples_of(self.state.module, function, self.shown.chosen)

    # ------------------------------------------------------------ looking

    def _hello(self, version: int) -> None:
        if version != VERSION:
            raise ProtocolError(
                f"the page speaks version {version} of the protocol, this is {VERSION}",
                hint="reload the page",
            )
        self._sections.forget()
        self._settle()

    def _open(self, name: str) -> None:
        if name not in self.state.module.functions:
            raise ProtocolError(f"no function {name!r} in the module")
        self.shown.open = name
        self._choose(FunctionRef(name))

    def _select(self, request: Select) -> None:
        kind = request.kind
        handle = to_handle(self.state, kind, request.function, request.uid) if kind else None
        if isinstance(handle, BindingRef):
            self.shown.open = self._callee(handle) or self.shown.open
        elif handle is not None:
            self.shown.open = handle.function
        self._choose(handle)

    def _callee(self, ref: BindingRef) -> str:
        """The loop-level function that a binding calls, shown beside it."""
        bindings = self.state.module.graph(ref.function).bindings
        right = next((b.right for b in bindings if b.value.uid == ref.uid), None)
        return right.function if isinstance(right, CallTIR | Launch) else ""

    def _choose(self, handle: Ref | None) -> None:
        self.shown.selection = handle
        self.shown.offers = Offers() if handle is None else Offers.of(self.state, handle)
        self._show_menu()

    def _show_menu(self) -> None:
        handle, state = self.shown.selection, self.state
        if handle is None:
            self.shown.menu = Menu(None, [], {}, [])
            return
        facts = facts_about(state, handle, self.samples(state.module.functions[handle.function]))
        candidates = self.shown.offers.to_view(state)
        self.shown.menu = Menu(to_view(state, handle), around(state, handle), facts, candidates)

    def _sample(self, name: str, value: int) -> None:
        function = self.function
        checked_sample(function, name, value)
        self.shown.chosen = {**self.shown.chosen, (function.name, name): value}
        self._show_menu()

    # ------------------------------------------------------------ editing

    def _apply(self, request: Apply) -> None:
        step = self.shown.offers.step(request.key, request.values, self.state)
        self.apply(step, expected=request.head)

    def apply(self, step: Step, *, expected: str | None = None) -> None:
        """Apply a step at the head that was seen, select what it made, and say what it did."""
        before, started = self.state.module, time.perf_counter()
        outcome = self.schedule.apply(step, expected=expected)
        self.story.milliseconds[self.schedule.head.id] = (time.perf_counter() - started) * 1e3
        self.shown.pending = ()
        self._after(outcome.results)
        decided = ", ".join(f"{k}: {v}" for k, v in outcome.rewrite.decisions.items())
        title = step.title() if isinstance(step, Primitive) else step.verb()
        self._say(f"{title} applied{f' ({decided})' if decided else ''}", "good", before)

    def _travel(self, request: Travel) -> None:
        head = self.schedule.head.id
        if request.head != head:
            raise StaleEditError(
                f"the history moved from {request.head[:12]} to {head[:12]} meanwhile",
                hint="look at the new head and try again",
                details={"expected": request.head, "head": head},
            )
        before = self.state.module
        match request.how:
            case "undo":
                self.schedule.undo()
            case "redo":
                self.schedule.redo()
            case "jump":
                self.schedule.goto(request.to)
        self.shown.pending = ()
        self._settle()
        self._say(f"{request.how}: at {self._where()}", "info", before)

    def _where(self) -> str:
        head = self.schedule.head
        return "the start" if head.parent is None else f"{head.step.op} ({head.id[:7]})"

    def _after(self, results: tuple[Ref, ...]) -> None:
        """Keep the selection if it is still there, else select what the step made."""
        self._reopen()
        old = self.shown.selection
        if old is not None and exists(self.state, old):
            self._choose(old)
            return
        loops = [r for r in results if isinstance(r, LoopRef)]
        made = loops[-1] if loops else next(iter(results), None)
        if made is None and old is not None:
            made = next(iter(self.state.follow(old)), None)
        self._choose(made if made is not None and exists(self.state, made) else None)

    def _settle(self) -> None:
        """Bring selection and open function in line with the head, wherever it went."""
        self._reopen()
        old = self.shown.selection
        gone = old is not None and not exists(self.state, old)
        self._choose(FunctionRef(self.shown.open) if gone else old)

    def _reopen(self) -> None:
        if self.shown.open not in self.state.module.functions:
            self.shown.open = _first(self.state.module)

    def _say(self, message: str, tone: Tone, before: Module | None = None) -> None:
        after = self.state.module
        old = after if before is None else before
        changed = [n for n, f in after.functions.items() if old.functions.get(n) is not f]
        self.shown.applied = Applied(message, tone, changed)

    # ------------------------------------------------------------ traces

    def _save(self, kind: str) -> None:
        trace = self.schedule.trace
        stem = self.title or self.shown.open
        if kind == "json":
            self.shown.document = Document(f"{stem}.trace.jsonl", "json", to_json(trace) + "\n")
        else:
            self.shown.document = Document(f"{stem}.py", "python", to_python(trace) + "\n")

    def _load(self, text: str) -> None:
        trace = from_json(text)
        before = self.state.module
        root = next(node for node in self.schedule.history if node.parent is None)
        self.schedule.goto(root.id)
        outcome = self.schedule.replay(trace)
        self.shown.pending = outcome.pending
        self._settle()
        total = f"{outcome.done} of {len(trace)} steps"
        if outcome.error is None:
            self._say(f"trace replayed: {total}", "good", before)
        else:
            self._complain(outcome.error)
            self._say(f"trace stopped: {total} apply", "warn", before)

    # ------------------------------------------------------------ running

    def _run(self, what: str) -> None:
        self._check_idle()
        head, function = self.schedule.head, self._runnable()
        samples, conditions = self.samples(function), self.conditions
        root = next(n for n in self.schedule.history if n.parent is None).state.module

        def work(progress: Progress) -> None:
            if what == "compile":
                verdict = self._bench.verify(head, root, function.name, samples, progress)
                self.story.judged(head.id, agrees=verdict.agrees)
                self.shown.verdict = verdict
                said = "matches" if verdict.agrees else "differs from"
                self._say(f"compiled: {said} the interpreter", _TONES[verdict.agrees])
            else:
                timing = self._bench.time(head, function.name, samples, progress, conditions)
                self.story.measured(head.id, timing.median)
                self.shown.timing = timing
                self._say_time(timing)

        self.jobs.start("Time" if what == "time" else "Compile", work)

    def _time_kernel(self, name: str) -> None:
        """Time one kernel by itself, at the sizes its caller gives it."""
        self._check_idle()
        head, function = self.schedule.head, self.state.module.prim(name)
        samples, conditions = self.samples(function), self.conditions

        def work(progress: Progress) -> None:
            timing = self._bench.time_kernel(head, name, samples, progress, conditions)
            self.shown.timing = timing
            self._say_time(timing)

        self.jobs.start(f"Time {name}", work)

    def _say_time(self, timing: Timing) -> None:
        self._say(f"timed: {timing.function} takes {timing.median / 1e3:.3g} ms", "good")

    def _check_idle(self) -> None:
        if self.jobs.busy:
            raise ProtocolError("a job is under way", hint="wait for it, or cancel it")

    def _runnable(self) -> Function:
        """What is run: the graph of the diagram, else the open loop-level function."""
        return self.graph or self.function

    def _lower(self, kind: TextKind) -> None:
        head, name = self.schedule.head, self.shown.open

        def work(progress: Progress) -> None:
            text = self._bench.lower(head, name, kind, progress)
            self.shown.lowered = Lowered(head.id, name, kind, text)

        self.jobs.start(f"Lower {name}", work)

    def _job_failed(self, title: str, error: Exception) -> None:
        with self._lock:
            self._complain(error, title)

    # ------------------------------------------------------------ errors

    def _complain(self, error: Exception, doing: str = "") -> None:
        known = error if isinstance(error, TilewrightError) else None
        tone: Tone = "warn" if isinstance(error, StepError | StaleEditError) else "bad"
        report = Report(
            key=f"r{next(self._numbers)}",
            tone=tone,
            title=_title(known) if known else f"Fault in Tilewright: {type(error).__name__}",
            message=known.message if known else str(error),
            where=(known.where if known else "") or doing,
            hint=known.hint if known else "",
            trace="".join(traceback.format_exception(error)),
        )
        self.shown.reports = (report, *self.shown.reports)[:_REPORTS]
        self._say(f"{report.title}: {report.message.splitlines()[0]}", tone)


def _title(error: TilewrightError) -> str:
    """What is told in one phrase: of an error in another process, what it was called there."""
    return str(error.details.get("title") or error.title)


def _first(module: Module) -> str:
    """The function to open: ``main``, else the first one."""
    if "main" in module.functions:
        return "main"
    return next(iter(module.functions), "")
