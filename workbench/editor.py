"""Editing of a schedule: the open function, the selection, its steps, and moves of the head."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

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
    Replay,
    Schedule,
    StaleEditError,
    State,
    Step,
    Trace,
    from_json,
)
from ..schedules.handles import HANDLE_TYPES
from ..schedules.similar import SimilarKernels, apply_to_similar, kernel_trace
from ..schedules.values import Result
from ..target.target import Target
from . import protocol, protocol_runs
from .bench import Bench
from .default_rules import (
    RULE,
    DefaultRules,
    lower_graphs,
    path_to,
    relation,
    unscheduled_version,
    without_schedule,
)
from .history_view import HistoryView
from .jobs import Jobs, Progress
from .pending import Pending, with_line
from .problem_view import error_view
from .protocol import (
    Applied,
    Menu,
    Tone,
)
from .render import Samples
from .requests import (
    Apply,
    ApplyToSimilar,
    EditGroup,
    EditTrace,
    Navigate,
    Sample,
    Select,
    UseRule,
)
from .selection import enclosing, exists, properties_of, to_handle, to_view
from .serialization import ProtocolError
from .shown import Shown
from .step_menu import StepMenu, takes_long
from .symbols import checked_sample, samples_of
from .trace_view import group_values

_T = TypeVar("_T")

_MAX_PROBLEMS = 20


class Editor:
    """The schedule of a session, with the open function and the selection.

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
        self.shown = Shown(open=_default_function(schedule.module))
        self.lock = threading.RLock()
        self._mover = 0
        self.jumps: dict[str, str] = {}
        """The state that an undo returns to, by the state that was reached by a jump."""
        self._bench = bench
        if schedule.state.target is None:
            schedule.retarget(bench.target)  # so that steps are checked for the machine
        self._title = title or schedule.module.attributes.get("name", "")
        self._keys = itertools.count(1)
        self.jobs = Jobs(self.refresh, self._job_failed)
        self.rules = DefaultRules(bench.target, self.refresh)
        if self.graph is not None:
            self._set_selection(FunctionRef(self.graph.name))

    def refresh(self) -> None:
        """Publish the sections that changed without a request, after work on another thread."""

    @contextmanager
    def _moves(self) -> Generator[None]:
        """Mark the moves of the head by this thread as made, and announced, by this session."""
        before, self._mover = self._mover, threading.get_ident()
        try:
            yield
        finally:
            self._mover = before

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
        return self.title or (self.shown.open if self.graph is None else self.graph.name)

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
        return self.displayed.functions[self.shown.open]

    @property
    def displayed(self) -> Module:
        """The program that contains the open function: the head, else the measured program."""
        module, profile = self.state.module, self.shown.profile
        if self.shown.open in module.functions or profile is None:
            return module
        return profile.compiled.module

    @property
    def graph(self) -> GraphFunc | None:
        """The graph-level function of the diagram: the open one, else ``main``, else the first."""
        module = self.state.module
        opened = module.functions.get(self.shown.open)
        if isinstance(opened, GraphFunc):
            return opened
        main = module.functions.get("main")
        return main if isinstance(main, GraphFunc) else next(iter(module.graphs), None)

    def samples(self, function: Function) -> Samples:
        """Return the sample values of a function's symbols."""
        known = function.name in self.state.module.functions
        module = self.state.module if known else self.displayed
        return samples_of(module, function, self.shown.samples)

    def rule(self) -> protocol.KernelRule:
        """Return the relation of the open function to its default rule."""
        name, profile = self.shown.open, self.shown.profile
        if name not in self.state.module.functions and profile is not None:
            found = relation(profile.compiled, name)
            return protocol.KernelRule(
                name, "compiled", found.base, found.rule, None, None, None, None
            )
        return self.rules.view(path_to(self.schedule), name, self.samples(self.function))

    def _open(self, name: str) -> None:
        profile = self.shown.profile
        in_head = name in self.state.module.functions
        if not in_head and (profile is None or name not in profile.compiled.module.functions):
            raise ProtocolError(f"no function {name!r} in the module")
        self.shown.open = name
        self._set_selection(FunctionRef(name) if in_head else None)

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

        self.jobs.start(title, work)

    def _use_rule(self, request: UseRule) -> None:
        """Lower the graph, take the default rule of a kernel, or return to it."""
        name = request.function
        profile = self.shown.profile
        created = profile is not None and name in profile.compiled.module.functions
        if name not in self.state.module.functions and not created:
            raise ProtocolError(f"no function {name!r} in the module")
        if request.action == "return":
            self._return_to_rule(name, request.head)
            return
        base = name
        if name not in self.state.module.functions and profile is not None:
            base = relation(profile.compiled, name).base or name

        def edit(branch: Schedule) -> str:
            lower_graphs(branch)
            if request.action == "take":
                branch.schedule_kernel(FunctionRef(base))
            return base

        def announce(kernel: str, before: Module) -> None:
            self.shown.open = name if name in self.state.module.functions else kernel
            self._reopen()
            self._set_selection(FunctionRef(self.shown.open))
            done = (
                "The graph is lowered" if request.action == "lower" else f"{RULE}({kernel}) applied"
            )
            self._announce(f"{done}: {self.shown.open} can be edited", "good", before)

        title = "Lower the graph" if request.action == "lower" else RULE
        self._edit_in_background(title, request.head, edit, announce)

    def _apply_to_similar(self, request: ApplyToSimilar) -> None:
        """Start a job that applies the steps of a kernel to similar ones, or tries to."""
        name, head = request.function, self.schedule.head.id
        kernel_trace(self.state, name)  # reports that no step changes the kernel

        def edit(branch: Schedule) -> SimilarKernels:
            return branch.apply_to_similar(name)

        def announce(found: SimilarKernels, before: Module) -> None:
            self._sync_selection()
            count = len(found.accepted)
            noun = "kernel" if count == 1 else "kernels"
            self._announce(f"Steps of {name} applied to {count} similar {noun}", "good", before)

        if not request.preview:
            self._edit_in_background("Apply to similar kernels", request.head, edit, announce)
            return
        self._check_head(request.head)
        self._check_idle()
        branch = self.schedule.branch()

        def work(progress: Progress) -> None:
            progress(-1.0, "trying the steps on other kernels")
            found = apply_to_similar(branch.state, name)
            kernels = [
                protocol_runs.SimilarKernel(k.function, k.steps, k.reason) for k in found.kernels
            ]
            with self.lock:
                self.shown.similar = protocol.SimilarKernels(head, name, len(found.trace), kernels)

        self.jobs.start("Find similar kernels", work)

    def _return_to_rule(self, name: str, expected: str) -> None:
        """Remove the steps that schedule a kernel, and keep all others."""
        path = path_to(self.schedule)
        origin = unscheduled_version(path, name)
        status = relation(self.state, name).status
        if status not in ("left", "taken"):
            raise ProtocolError(f"{name!r} was not scheduled by a step")
        state, start = self.state, 0 if origin is None else len(origin.state.trace)
        if origin is None:  # the step that created the kernel scheduled it
            start = next(len(n.state.trace) for n in path if name in n.state.module.functions)

        removed: list[Trace] = []

        def edit(branch: Schedule) -> Replay | None:
            trace = without_schedule(state, name, start)
            if origin is not None and len(trace) == start:
                branch.goto(origin.id)
                return None
            branch.goto(path[0].id)
            removed.append(trace)
            return branch.replay(trace)

        def announce(outcome: Replay | None, before: Module) -> None:
            self._jumped_from(expected)
            if outcome is not None:
                self.shown.pending = Pending.of(removed[0], outcome)
            self._sync_selection()
            if outcome is not None and outcome.error is not None:
                self._add_problem(outcome.error)
            count = len(state.trace) - len(self.state.trace) - len(self.shown.pending.steps)
            self._announce(
                f"{name} has its default rule again: {count} steps removed", "good", before
            )

        self._edit_in_background("Return to the default rule", expected, edit, announce)

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
                self.schedule.goto(self.jumps.pop(start))
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

    def _jumped_from(self, start: str) -> None:
        """Let an undo at the head return to the state before a move that is not one step."""
        head = self.schedule.head.id
        if head != start:
            self.jumps[head] = start

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
        known = self.shown.open in self.state.module.functions
        opened = FunctionRef(self.shown.open) if known else None
        self._set_selection(opened if removed or (old is None and known) else old)

    def _reopen(self) -> None:
        if self.shown.open not in self.displayed.functions:
            self.shown.open = _default_function(self.state.module)

    def _announce(self, message: str, tone: Tone, before: Module | None = None) -> None:
        after = self.state.module
        old = after if before is None else before
        changed = [n for n, f in after.functions.items() if old.functions.get(n) is not f]
        self.shown.applied = Applied(message, tone, changed)

    def _load(self, text: str) -> None:
        self._replay(from_json(text))

    def _edit_group(self, request: EditGroup) -> None:
        """Replace a composite step of the trace, and replay the trace from the initial state."""
        self._check_head(request.head)
        trace = self.shown.pending.after(self.schedule.trace)
        if not 0 <= request.index < len(trace.groups):
            raise ProtocolError(f"no composite step {request.index} in the trace")
        if request.action == "ungroup":
            self._replay(trace.ungrouped(request.index))
        else:
            values = group_values(trace.groups[request.index], request.values)
            self._replay(trace.changed_group(request.index, **values))

    def _edit_trace(self, request: EditTrace) -> None:
        """Change a step of the trace, or continue with the pending steps."""
        self._check_head(request.head)
        pending, trace = self.shown.pending, self.schedule.trace
        whole = pending.after(trace)
        if request.action == "change":
            if not 0 <= request.index < len(whole):
                raise ProtocolError(f"no step {request.index} in the trace")
            self._replay(with_line(whole, request.index, request.text))
            return
        if not pending.steps:
            raise ProtocolError("no steps are pending")
        match request.action:
            case "resume":
                self._replay(whole)
            case "skip":
                self._replay(pending.skipped().after(trace))
            case "discard":
                self.shown.pending = Pending()
                self._announce(f"{len(pending.steps)} pending steps discarded", "info")

    def _replay(self, trace: Trace) -> None:
        """Replay a trace on the initial state, and keep the steps that do not apply as pending."""
        before = self.state.module
        start = self.schedule.head.id
        root = next(node for node in self.schedule.history if node.parent is None)
        self.schedule.goto(root.id)
        outcome = self.schedule.replay(trace)
        self._jumped_from(start)
        self.shown.pending = Pending.of(trace, outcome)
        self._sync_selection()
        total = f"{outcome.done} of {len(trace)} steps"
        if outcome.error is None:
            self._announce(f"Trace replayed: {total}", "good", before)
        else:
            self._add_problem(outcome.error)
            self._announce(f"Trace replay stopped: {total} applied", "warn", before)

    def _check_idle(self) -> None:
        if self.jobs.busy:
            raise ProtocolError("a job is running", hint="wait until it finishes, or cancel it")

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
