"""Sessions: the schedule, selection, samples and jobs of one workbench, without a browser.

:meth:`Session.handle` accepts requests from any thread. Updates are passed to the ``publish``
function. The head of the schedule moves by compare-and-swap, so an edit that is based on an
outdated head is rejected and changes nothing.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..codegen.measure.measure_options import MeasureOptions
from ..errors import TilewrightError
from ..ir.graph.nodes import CallTIR, GraphFunc, LaunchKernel
from ..ir.graph.regions import binding_of
from ..ir.module import Function, Module
from ..schedules import (
    Applied as Outcome,
    BindingRef,
    FunctionRef,
    Handle,
    LoopRef,
    Query,
    Schedule,
    StaleEditError,
    State,
    Step,
    Trace,
    from_json,
    to_json,
    to_python,
)
from ..schedules.handles import HANDLE_TYPES
from ..schedules.values import Result
from . import protocol
from .bench import Bench
from .history_view import HistoryView
from .jobs import Jobs, Progress
from .lowered_texts import LoweredTexts
from .problem_view import error_view
from .protocol import (
    VERSION,
    Applied,
    Document,
    Measurement,
    Menu,
    Tone,
    Update,
)
from .render import Samples
from .requests import (
    Apply,
    Cancel,
    Check,
    Dismiss,
    EditGroup,
    Hello,
    LoadTrace,
    Lower,
    Navigate,
    Open,
    Request,
    Run,
    Sample,
    SaveTrace,
    Select,
    SetMeasureOptions,
)
from .selection import enclosing, exists, properties_of, to_handle, to_view
from .serialization import ProtocolError, decode, is_message
from .shown import Shown
from .step_menu import StepMenu, takes_long
from .symbols import checked_sample, samples_of
from .trace_view import group_values
from .view_diff import ViewDiff

Publish = Callable[[Update, list[bytes]], None]

_MAX_PROBLEMS = 20

_TONES: dict[bool, Tone] = {True: "good", False: "bad"}

FOLLOW_DELAY = 0.05
"""The delay in seconds before the view follows a head that was moved elsewhere."""


def _discard(_update: Update, _buffers: list[bytes]) -> None:
    """Discard an update, for sessions without a browser."""


class Session:
    """A schedule and the view of it that a browser displays.

    Parameters
    ----------
    schedule : Schedule
        The schedule to edit; notebook cells may edit it too.
    bench : Bench
        The compiler and measuring service.
    title : str
        The name of the program in the history.
    publish : function
        A function of an update and its binary buffers, called from any thread.
    """

    def __init__(
        self, schedule: Schedule, bench: Bench, *, title: str = "", publish: Publish = _discard
    ) -> None:
        """Open the program's ``main``, or its only loop-level function."""
        self.schedule = schedule
        self.publish = publish
        self.history_view = HistoryView()
        self.shown = Shown(open=_default_function(schedule.module))
        self._bench = bench
        self._title = title or schedule.module.attributes.get("name", "")
        self.lock = threading.RLock()
        self._diff = ViewDiff()
        self._keys = itertools.count(1)
        self._seen = schedule.head.id
        self.jobs = Jobs(self.refresh, self._job_failed)
        self._lowered_texts = LoweredTexts(bench.target)
        self._lower_job = ""
        self._busy = False
        self._timer: threading.Timer | None = None
        schedule.subscribe(self._head_moved)
        if self.graph is not None:
            self._set_selection(FunctionRef(self.graph.name))

    def handle(self, message: Mapping[str, object]) -> Update:
        """Execute a request and publish the answer; errors become problems.

        A message that is not a mapping is an invalid request, because browsers can send any JSON.
        """
        started = time.perf_counter()
        number = message.get("id") if is_message(message) else None
        with self.lock:
            self._busy = True
            try:
                self._execute(decode(message))
            except TilewrightError as error:
                self._add_problem(error)
            except Exception as error:  # noqa: BLE001 - every request must be answered
                self._add_problem(error)
            finally:
                self._busy = False
            return self._send(number if isinstance(number, int) else 0, started)

    def refresh(self) -> None:
        """Publish the sections that changed without a request, after work on another thread."""
        with self.lock:
            if self.schedule.head.id != self._seen:
                self._sync_selection()
            self._send(0, time.perf_counter())

    def _head_moved(self, _head: object) -> None:
        """Follow edits made elsewhere, such as in a cell, with one update per burst."""
        if self._busy or self._timer is not None:
            return
        self._timer = threading.Timer(FOLLOW_DELAY, self._follow)
        self._timer.daemon = True
        self._timer.start()

    def _follow(self) -> None:
        """Publish; a later move starts another timer."""
        self._timer = None
        self.refresh()

    def _send(self, reply: int, started: float) -> Update:
        self._seen = self.schedule.head.id
        update, buffers = self._diff.update(self, reply, started)
        self.publish(update, buffers)
        return update

    def _execute(self, request: Request) -> None:
        match request:
            case Hello(version=version):
                self._hello(version)
            case Open(function=name):
                self._open(name)
            case Select():
                self._select(request)
            case Check(key=key, values=values):
                self.shown.steps.change(key, values, self.state)
                self._show_menu()
            case Apply():
                self._apply(request)
            case Navigate():
                self._navigate(request)
            case Sample(symbol=name, value=value):
                self._set_sample(name, value)
            case Run(action="measure", function=name) if name:
                self._measure_kernel(name)
            case Run(action="measure"):
                self._measure()
            case Run():
                self._compile()
            case SetMeasureOptions(caches=caches, threads=threads, pin=pin, budget=budget):
                limited = min(budget, sys.float_info.max)  # JSON may contain any integer
                self.measure_options = MeasureOptions(caches, threads, pin, float(limited))
            case Cancel(job=job):
                self.jobs.cancel(job)
            case Lower(stage=stage):
                self._lower(stage)
            case EditGroup():
                self._edit_group(request)
            case SaveTrace(format=kind):
                self._save(kind)
            case LoadTrace(text=text):
                self._load(text)
            case Dismiss(key=key):
                self.shown.problems = tuple(p for p in self.shown.problems if p.key != key)

    @property
    def state(self) -> State:
        """The state at the head."""
        return self.schedule.state

    @property
    def title(self) -> str:
        """The name of the program."""
        return self._title

    @property
    def target(self) -> str:
        """The target as text."""
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
    def measure_options(self) -> MeasureOptions:
        """The options of the next measurement."""
        return self.shown.measure_options

    @measure_options.setter
    def measure_options(self, options: MeasureOptions) -> None:
        self._bench.check(options)
        self.shown.measure_options = options

    def measure_options_view(self) -> protocol.MeasureOptions:
        """Return the options for the browser, with the maximum number of threads."""
        options = self.measure_options
        return protocol.MeasureOptions(
            options.caches, options.threads, self._bench.threads, options.pin, options.budget
        )

    def samples(self, function: Function) -> Samples:
        """Return the sample values of a function's symbols."""
        return samples_of(self.state.module, function, self.shown.samples)

    def _hello(self, version: int) -> None:
        if version != VERSION:
            raise ProtocolError(
                f"the page uses version {version} of the protocol; expected version {VERSION}",
                hint="reload the page",
            )
        self._diff.reset()
        self._sync_selection()

    def _open(self, name: str) -> None:
        if name not in self.state.module.functions:
            raise ProtocolError(f"no function {name!r} in the module")
        self.shown.open = name
        self._set_selection(FunctionRef(name))

    def _select(self, request: Select) -> None:
        kind = request.kind
        handle = to_handle(self.state, kind, request.function, request.uid) if kind else None
        if isinstance(handle, BindingRef):
            self.shown.open = self._callee(handle) or self.shown.open
        elif handle is not None:
            self.shown.open = handle.function
        self._set_selection(handle)

    def _callee(self, handle: BindingRef) -> str:
        """Return the name of the loop-level function that a binding calls, if any."""
        found = binding_of(self.state.module.graph(handle.function), handle.uid)
        right = None if found is None else found.right
        return right.function if isinstance(right, CallTIR | LaunchKernel) else ""

    def _set_selection(self, handle: Handle | None) -> None:
        self.shown.selection = handle
        self.shown.steps = StepMenu() if handle is None else StepMenu.of(self.state, handle)
        self._show_menu()

    def _show_menu(self) -> None:
        handle, state = self.shown.selection, self.state
        if handle is None:
            self.shown.menu = Menu(None, [], {}, [])
            return
        samples = self.samples(state.module.functions[handle.function])
        self.shown.menu = Menu(
            to_view(state, handle),
            enclosing(state, handle),
            properties_of(state, handle, samples),
            self.shown.steps.to_view(state),
        )

    def _set_sample(self, name: str, value: int) -> None:
        function = self.function
        checked_sample(function, name, value)
        self.shown.samples = {**self.shown.samples, (function.name, name): value}
        self._show_menu()

    def _apply(self, request: Apply) -> None:
        step = self.shown.steps.step(request.key, request.values, self.state)
        if takes_long(step):
            self._apply_in_background(step, request.head)
        else:
            self.apply(step, expected=request.head)

    def _apply_in_background(self, step: Step, expected: str) -> None:
        """Start a job that applies a step to a branch, and moves the head there at the end."""
        self._check_head(expected)
        self._check_idle()
        branch, started = self.schedule.branch(), time.perf_counter()

        def work(progress: Progress) -> None:
            progress(-1.0, "applying the steps")
            outcome = branch.apply(step, expected=expected)
            with self.lock:
                progress(1.0, "applied")
                self._check_head(expected)
                before = self.state.module
                self.schedule.goto(branch.head.id)
                self._applied(step, outcome, before, started)

        self.jobs.start(step.verb(), work)

    def apply(self, step: Step, *, expected: str | None = None) -> None:
        """Apply a step if the head is as expected, select its result and announce it."""
        before, started = self.state.module, time.perf_counter()
        outcome = self.schedule.apply(step, expected=expected)
        self._applied(step, outcome, before, started)

    def _applied(self, step: Step, outcome: Outcome, before: Module, started: float) -> None:
        """Record the duration of an applied step, select its result and announce it."""
        self.history_view.milliseconds[self.schedule.head.id] = (
            time.perf_counter() - started
        ) * 1e3
        self.shown.pending = ()
        self._select_result(outcome.results)
        decisions = ", ".join(f"{k}: {v}" for k, v in outcome.rewrite.decisions.items())
        title = step.verb() if isinstance(step, Query) else step.title()
        self._announce(f"{title} applied{f' ({decisions})' if decisions else ''}", "good", before)

    def _navigate(self, request: Navigate) -> None:
        self._check_head(request.head)
        before = self.state.module
        match request.action:
            case "undo":
                self.schedule.undo()
            case "redo":
                self.schedule.redo()
            case "jump":
                self.schedule.goto(request.node)
        self.shown.pending = ()
        self._sync_selection()
        action = request.action.capitalize()
        self._announce(f"{action}: the head is {self._head_text()}", "info", before)

    def _check_head(self, expected: str) -> None:
        """Reject an edit of another head than the current one."""
        head = self.schedule.head.id
        if expected != head:
            raise StaleEditError(
                f"the head is {head[:12]}; the request expected {expected[:12]}",
                hint="check the new head and try again",
                details={"expected": expected, "head": head},
            )

    def _head_text(self) -> str:
        head = self.schedule.head
        return "the initial state" if head.parent is None else f"{head.step.op} ({head.id[:7]})"

    def _select_result(self, results: tuple[Result, ...]) -> None:
        """Keep the selection if it still exists, else select a result of the step."""
        self._reopen()
        old = self.shown.selection
        if old is not None and exists(self.state, old):
            self._set_selection(old)
            return
        loops = [r for r in results if isinstance(r, LoopRef)]
        handles = (r for r in results if isinstance(r, HANDLE_TYPES))
        new = loops[-1] if loops else next(handles, None)
        if new is None and old is not None:
            new = next(iter(self.state.follow(old)), None)
        self._set_selection(new if new is not None and exists(self.state, new) else None)

    def _sync_selection(self) -> None:
        """Update the selection and the open function after the head moved."""
        self._reopen()
        old = self.shown.selection
        removed = old is not None and not exists(self.state, old)
        self._set_selection(FunctionRef(self.shown.open) if removed else old)

    def _reopen(self) -> None:
        if self.shown.open not in self.state.module.functions:
            self.shown.open = _default_function(self.state.module)

    def _announce(self, message: str, tone: Tone, before: Module | None = None) -> None:
        after = self.state.module
        old = after if before is None else before
        changed = [n for n, f in after.functions.items() if old.functions.get(n) is not f]
        self.shown.applied = Applied(message, tone, changed)

    def _save(self, kind: str) -> None:
        trace = self.schedule.trace.pruned()
        stem = self.title or self.shown.open
        if kind == "json":
            self.shown.document = Document(f"{stem}.trace.jsonl", "json", to_json(trace) + "\n")
        else:
            self.shown.document = Document(f"{stem}.py", "python", to_python(trace) + "\n")

    def _load(self, text: str) -> None:
        self._replay(from_json(text))

    def _edit_group(self, request: EditGroup) -> None:
        """Replace a composite step of the trace, and replay the trace from the initial state."""
        self._check_head(request.head)
        trace = self.schedule.trace
        if not 0 <= request.index < len(trace.groups):
            raise ProtocolError(f"no composite step {request.index} in the trace")
        if request.action == "ungroup":
            self._replay(trace.ungrouped(request.index))
        else:
            values = group_values(trace.groups[request.index], request.values)
            self._replay(trace.changed_group(request.index, **values))

    def _replay(self, trace: Trace) -> None:
        """Replay a trace on the initial state, and keep the steps that do not apply as pending."""
        before = self.state.module
        root = next(node for node in self.schedule.history if node.parent is None)
        self.schedule.goto(root.id)
        outcome = self.schedule.replay(trace)
        self.shown.pending = outcome.pending
        self._sync_selection()
        total = f"{outcome.done} of {len(trace)} steps"
        if outcome.error is None:
            self._announce(f"Trace replayed: {total}", "good", before)
        else:
            self._add_problem(outcome.error)
            self._announce(f"Trace replay stopped: {total} applied", "warn", before)

    def _compile(self) -> None:
        """Start a job that compiles the program and compares it with the interpreter."""
        self._check_idle()
        head, function = self.schedule.head, self._entry_function()
        samples = self.samples(function)
        root = next(n for n in self.schedule.history if n.parent is None).state.module

        def work(progress: Progress) -> None:
            verdict = self._bench.verify(head, root, function.name, samples, progress)
            self.history_view.record_verdict(head.id, agrees=verdict.agrees)
            self.shown.verdict = verdict
            result = "matches" if verdict.agrees else "differs from"
            self._announce(f"Compiled: {result} the interpreter", _TONES[verdict.agrees])

        self.jobs.start("Compile", work)

    def _measure(self) -> None:
        """Start a job that measures the entire program."""
        self._check_idle()
        head, function = self.schedule.head, self._entry_function()
        samples, options = self.samples(function), self.measure_options

        def work(progress: Progress) -> None:
            measurement = self._bench.measure(head, function.name, samples, progress, options)
            self.history_view.record_measurement(head.id, measurement.median)
            self.shown.measurement = measurement
            self._announce_measurement(measurement)

        self.jobs.start("Measure", work)

    def _measure_kernel(self, name: str) -> None:
        """Start a job that measures one kernel in isolation, at the sizes of its caller."""
        self._check_idle()
        head, function = self.schedule.head, self.state.module.prim(name)
        samples, options = self.samples(function), self.measure_options

        def work(progress: Progress) -> None:
            measurement = self._bench.measure_kernel(head, name, samples, progress, options)
            self.shown.measurement = measurement
            self._announce_measurement(measurement)

        self.jobs.start(f"Measure {name}", work)

    def _announce_measurement(self, measurement: Measurement) -> None:
        milliseconds = measurement.median / 1e3
        self._announce(f"Measured: {measurement.function} takes {milliseconds:.3g} ms", "good")

    def _check_idle(self) -> None:
        if self.jobs.busy:
            raise ProtocolError("a job is running", hint="wait until it finishes, or cancel it")

    def _entry_function(self) -> Function:
        """Return the function to run: the graph, else the open loop-level function."""
        return self.graph or self.function

    def stages(self) -> list[protocol.Stage]:
        """Return the stages of lowering of the open function."""
        return self._lowered_texts.stages(self.function)

    def _lower(self, stage: str) -> None:
        """Show the text of the open function after a stage, from the cache or by a job."""
        texts, head, name = self._lowered_texts, self.schedule.head, self.shown.open
        texts.check(stage)
        self.jobs.cancel(self._lower_job)
        cached = texts.cached(head, name, stage)
        if cached is not None:
            self.shown.lowered = replace(cached)  # a new object is sent again
            return

        def work(progress: Progress) -> None:
            lowered = texts.lower(head, name, stage, progress)
            if not progress.canceled:
                self.shown.lowered = lowered

        self._lower_job = self.jobs.start(f"Lower {name}", work, "lower")

    def _job_failed(self, title: str, error: Exception) -> None:
        with self.lock:
            self._add_problem(error, title)

    def _add_problem(self, error: Exception, job: str = "") -> None:
        problem = error_view(error, f"p{next(self._keys)}", job=job, state=self.state)
        self.shown.problems = (problem, *self.shown.problems)[:_MAX_PROBLEMS]
        first, _, _ = problem.message.partition("\n")
        self._announce(f"{problem.title}: {first}", problem.tone)


def _default_function(module: Module) -> str:
    """Return the name of the function to open: ``main``, else the first one."""
    if "main" in module.functions:
        return "main"
    return next(iter(module.functions), "")
