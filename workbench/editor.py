"""Editing of a schedule: the open function, the selection, its steps, and moves of the head."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from ..ir.graph.nodes import CallTIR, GraphFunc, LaunchKernel
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
)
from ..schedules.apply import Composite
from ..schedules.handles import HANDLE_TYPES
from ..schedules.registry import step_type
from ..schedules.values import Result
from ..target.target import Target
from . import protocol
from .bench import Bench
from .default_rules import (
    DefaultRules,
    path_to,
    relation,
)
from .graph_index import index_of
from .history_view import HistoryView
from .jobs import Jobs, Progress, Work
from .menus import Menus
from .page_view import PageView, PageViews
from .pending import Jump, Pending
from .previews import previewed
from .problem_view import error_view
from .protocol import Applied, JobKind
from .protocol_steps import Selected, Tone
from .rates import predicted_rates
from .render import Samples
from .requests import (
    Apply,
    Check,
    Navigate,
    Preview,
    Sample,
    Select,
)
from .selection import enclosing, exists, properties_of, to_handle, to_view
from .serialization import ProtocolError
from .session_document import SessionDocument
from .step_data import to_step
from .step_menu import checked_view, takes_long
from .symbols import checked_sample, samples_of

_T = TypeVar("_T")

_MAX_PROBLEMS = 20


class Editor:
    """The schedule of a session, and the views that its pages have of it.

    The document is shared, and each page has a view. Requests and jobs work for one of them.

    Parameters
    ----------
    schedule : Schedule
        The schedule to edit; notebook cells may edit it too.
    bench : Bench
        The compiler and measuring service.
    title : str
        The name of the program in the history.
    """

    def __init__(self, schedule: Schedule, bench: Bench, title: str = "") -> None:
        """Open the program's ``main``, or its only loop-level function."""
        self.schedule = schedule
        self.history_view = HistoryView()
        self.document = SessionDocument()
        self.views = PageViews(PageView(open=_default_function(schedule.module)))
        self.lock = threading.RLock()
        self._mover = 0
        self.jumps: dict[str, Jump] = {}
        """The result of an undo, by the state that was reached by a jump."""
        self._bench = bench
        if schedule.state.target is None:
            schedule.retarget(bench.target)  # so that steps are checked for the machine
        self._title = title or schedule.module.attributes.get("name", "")
        self._keys = itertools.count(1)
        self._preview_job = ""
        self.jobs = Jobs(self.refresh, self._job_failed, self.report_progress)
        self.rules = DefaultRules(bench.target, self.refresh)
        self.menus = Menus()
        if self.graph is not None:
            self._set_selection(FunctionRef(self.graph.name))

    def refresh(self) -> None:
        """Publish the sections that changed without a request, after work on another thread."""

    def report_progress(self) -> None:
        """Publish the progress of the jobs."""

    @contextmanager
    def _moves(self) -> Generator[None]:
        """Mark the moves of the head by this thread as made, and announced, by this session."""
        before, self._mover = self._mover, threading.get_ident()
        try:
            yield
        finally:
            self._mover = before

    @property
    def view(self) -> PageView:
        """The view of the request or job of this thread, else of the last request."""
        return self.views.current

    @property
    def client(self) -> str:
        """The client of the request of this thread; empty if none has sent one."""
        return next((name for name, view in self.views if view is self.view), "")

    @property
    def state(self) -> State:
        """The state at the head."""
        return self.schedule.state

    @property
    def title(self) -> str:
        """The name of the program."""
        return self._title

    @property
    def stem(self) -> str:
        """The name of files of the program, without an extension."""
        return self.title or (self.view.open if self.graph is None else self.graph.name)

    @property
    def target(self) -> str:
        """The target as text."""
        return self._bench.target_text

    @property
    def machine(self) -> Target:
        """The target that the session compiles for."""
        return self._bench.target

    @property
    def function(self) -> Function:
        """The open function."""
        return self.displayed.functions[self.view.open]

    @property
    def displayed(self) -> Module:
        """The program that contains the open function: the head, else the measured program."""
        module, profile = self.state.module, self.document.profile
        if self.view.open in module.functions or profile is None:
            return module
        return profile.compiled.module

    @property
    def graph(self) -> GraphFunc | None:
        """The graph-level function of the diagram: the open one, else ``main``, else the first."""
        module = self.state.module
        opened = module.functions.get(self.view.open)
        if isinstance(opened, GraphFunc):
            return opened
        main = module.functions.get("main")
        return main if isinstance(main, GraphFunc) else next(iter(module.graphs), None)

    def samples(self, function: Function) -> Samples:
        """Return the sample values of a function's symbols."""
        known = function.name in self.state.module.functions
        module = self.state.module if known else self.displayed
        return samples_of(module, function, self.document.samples)

    def rule(self) -> protocol.KernelRule:
        """Return the relation of the open function to its default rule."""
        name, profile = self.view.open, self.document.profile
        if name not in self.state.module.functions and profile is not None:
            found = relation(profile.compiled, name)
            return protocol.KernelRule(
                name, "compiled", found.base, found.rule, None, None, None, None
            )
        samples = self.samples(self.function)
        found = self.rules.view(path_to(self.schedule), name, samples)
        measured = self.document.measurement
        if measured is None or measured.roof is None:
            return found
        cold = measured.conditions.startswith("cold")
        rates = predicted_rates(self.state.module, name, samples, measured.roof, cold=cold)
        return found if rates is None else replace(found, gflops=rates[0], gbytes=rates[1])

    def _open(self, name: str) -> None:
        profile = self.document.profile
        in_head = name in self.state.module.functions
        if not in_head and (profile is None or name not in profile.compiled.module.functions):
            raise ProtocolError(f"no function {name!r} in the module")
        self.view.open = name
        self._set_selection(FunctionRef(name) if in_head else None)

    def _select(self, request: Select) -> None:
        kind = request.kind
        handle = to_handle(self.state, kind, request.function, request.uid) if kind else None
        if isinstance(handle, BindingRef):
            self.view.open = self._callee(handle) or self.view.open
        elif handle is not None:
            self.view.open = handle.function
        self._set_selection(handle)

    def _callee(self, handle: BindingRef) -> str:
        """Return the name of the loop-level function that a binding calls, if any."""
        graph = self.state.module.graph(handle.function)
        found = index_of(graph).bindings.get(handle.uid)
        right = None if found is None else found.right
        return right.function if isinstance(right, CallTIR | LaunchKernel) else ""

    def _set_selection(self, handle: Handle | None) -> None:
        self.view.selection = handle

    def selected(self) -> Selected:
        """Return the selection with the parts that enclose it and its properties."""
        handle, state = self.view.selection, self.state
        if handle is None:
            return Selected(None, [], {})
        samples = self.samples(state.module.functions[handle.function])
        return Selected(
            to_view(state, handle),
            enclosing(state, handle),
            properties_of(state, handle, samples),
        )

    def _suggest(self) -> None:
        """Send the menu of the selection with the next update, also if it was sent before."""
        view, head = self.view, self.schedule.head
        view.suggested = head.state, view.selection
        if view.selection is None:
            view.menu = None
        else:
            view.menu = replace(self.menus.menu(head.state, head.id, view.selection))

    def _recall_menu(self) -> None:
        """Send the menu of the selection with the next update if it is known."""
        view, state = self.view, self.state
        if view.selection is None or view.suggested == (state, view.selection):
            return
        known = self.menus.known(state, view.selection)
        if known is not None:
            view.menu, view.suggested = known, (state, view.selection)

    def _check(self, request: Check) -> None:
        self.view.checked = checked_view(request.step, self.state)

    def _preview(self, request: Preview) -> None:
        """Show the program after a step; a composite step is tried by a job."""
        state, head, view = self.state, self.schedule.head.id, self.view
        self.jobs.cancel(self._preview_job)
        if not issubclass(step_type(request.step.op), Composite):
            view.previewed = previewed(state, head, request.key, request.step)
            return

        def work(progress: Progress) -> None:
            progress(-1.0, "trying the step")
            found = previewed(state, head, request.key, request.step)
            if not progress.canceled:
                view.previewed = found

        self._preview_job = self._start(f"Preview {request.step.op}", work, "lower")

    @property
    def entry(self) -> Function:
        """The function that is compiled and measured as a whole: the graph, else the open one."""
        return self.graph or self.function

    def _set_sample(self, request: Sample) -> None:
        name, value = request.symbol, request.value
        function = self.displayed.functions.get(request.function)
        if function is None:
            raise ProtocolError(f"no function {request.function!r} in the module")
        checked_sample(function, name, value)
        self.document.samples = {**self.document.samples, (function.name, name): value}

    def _apply(self, request: Apply) -> None:
        step = to_step(request.step, self.state)
        if takes_long(step):
            self._apply_in_background(step, request.head)
        else:
            self.apply(step, expected=request.head)

    def _apply_in_background(self, step: Step, expected: str) -> None:
        """Start a job that applies a step to a branch, and moves the head there at the end."""
        started = time.perf_counter()

        def applied(outcome: Outcome, before: Module) -> None:
            self._applied(step, outcome, before, started)

        self._edit_in_background(step.verb(), expected, lambda branch: branch.apply(step), applied)

    def _edit_in_background(
        self,
        title: str,
        expected: str,
        edit: Callable[[Schedule], _T],
        announce: Callable[[_T, Module], None],
    ) -> None:
        """Start a job that edits a branch, moves the head there, and announces the outcome."""
        self._check_head(expected)
        self._check_idle()
        branch = self.schedule.branch()

        def work(progress: Progress) -> None:
            progress(-1.0, "applying the steps")
            outcome = edit(branch)
            with self.lock:
                progress(1.0, "applied")
                self._check_head(expected)
                before = self.state.module
                with self._moves():
                    self.schedule.goto(branch.head.id)
                announce(outcome, before)

        self._start(title, work)

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
        self._select_result(outcome.results)
        decisions = ", ".join(f"{k}: {v}" for k, v in outcome.rewrite.decisions.items())
        title = step.verb() if isinstance(step, Query) else step.title()
        self._announce(f"{title} applied{f' ({decisions})' if decisions else ''}", "good", before)

    def _navigate(self, request: Navigate) -> None:
        self._check_head(request.head)
        before = self.state.module
        start = self.schedule.head.id
        match request.action:
            case "undo" if start in self.jumps:
                self._undo_jump(start)
            case "undo":
                self.schedule.undo()
            case "redo":
                self.schedule.redo()
            case "jump":
                self.schedule.goto(request.node)
                self._jumped_from(start)
        self._sync_selection()
        action = request.action.capitalize()
        self._announce(f"{action}: the head is {self._head_text()}", "info", before)

    def _jumped_from(self, start: str, pending: Pending | None = None) -> None:
        """Let an undo at the head return to the state before a move that is not one step.

        The pending steps before the move are given if it replaces them.
        """
        head = self.schedule.head.id
        if head != start:
            self.jumps[head] = Jump(start, pending)

    def _undo_jump(self, head: str) -> None:
        jump = self.jumps.pop(head)
        self.schedule.goto(jump.start)
        if jump.pending is not None:
            self.document.pending = jump.pending

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
        old = self.view.selection
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
        old = self.view.selection
        removed = old is not None and not exists(self.state, old)
        known = self.view.open in self.state.module.functions
        opened = FunctionRef(self.view.open) if known else None
        self._set_selection(opened if removed or (old is None and known) else old)

    def _reopen(self) -> None:
        if self.view.open not in self.displayed.functions:
            self.view.open = _default_function(self.state.module)

    def _announce(self, message: str, tone: Tone, before: Module | None = None) -> None:
        after = self.state.module
        old = after if before is None else before
        changed = [n for n, f in after.functions.items() if old.functions.get(n) is not f]
        self.view.applied = Applied(message, tone, changed)

    def _start(self, title: str, work: Work, kind: JobKind = "run") -> str:
        """Start a job for the view of the request, and return its key."""
        view = self.view

        def run(progress: Progress) -> None:
            self.views.use(view)
            work(progress)

        return self.jobs.start(title, run, kind)

    def _check_idle(self) -> None:
        if self.jobs.busy:
            raise ProtocolError("a job is running", hint="wait until it finishes, or cancel it")

    def _job_failed(self, title: str, error: Exception) -> None:
        with self.lock:
            self._add_problem(error, title)

    def _add_problem(self, error: Exception, job: str = "") -> None:
        problem = error_view(error, f"p{next(self._keys)}", job=job, state=self.state)
        self.document.problems = (problem, *self.document.problems)[:_MAX_PROBLEMS]
        first, _, _ = problem.message.partition("\n")
        self._announce(f"{problem.title}: {first}", problem.tone)


def _default_function(module: Module) -> str:
    """Return the name of the function to open: ``main``, else the first one."""
    if "main" in module.functions:
        return "main"
    return next(iter(module.functions), "")
