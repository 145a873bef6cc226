"""Sessions: the schedule, selection, samples and jobs of one workbench, without a browser.

:meth:`Session.handle` accepts requests from any thread. Updates are passed to the ``publish``
function. The head of the schedule moves by compare-and-swap, so an edit that is based on an
outdated head is rejected and changes nothing.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..codegen.measure.measure_options import MeasureOptions
from ..errors import TilewrightError
from ..schedules import Schedule, Trace, replay, to_json, to_python
from ..schedules.targets import program_target
from ..target.target import Target
from . import protocol
from .bench import Bench
from .cost_requests import CostRequests
from .history_view import NoteError
from .jobs import Progress
from .lowered_texts import LoweredTexts
from .measurement_records import MeasurementRecords
from .noted_trace import saved_trace
from .page.benches import bench_of
from .page.channel import Pages
from .page_view import PageView
from .protocol import VERSION, Document, Update
from .requests import (
    Apply,
    ApplyToSimilar,
    Cancel,
    Check,
    CountCosts,
    Dismiss,
    EditGroup,
    EditSizeSet,
    EditTrace,
    Hello,
    LoadTrace,
    Lower,
    Navigate,
    Open,
    Preview,
    Request,
    Run,
    Sample,
    SaveTrace,
    Select,
    SetMeasureOptions,
    SetNote,
    SetTarget,
    ShowMeasurement,
    Suggest,
    UseRule,
)
from .rule_steps import RuleSteps
from .runs import Runs
from .serialization import ProtocolError, client_of, decode, is_message
from .targets import target_named
from .trace_edits import TraceEdits
from .view_diff import ViewDiff

Publish = Callable[[Update, list[bytes]], None]

FOLLOW_DELAY = 0.05
"""The delay in seconds before the view follows a head that was moved elsewhere."""

DELIVERY = 0.001
"""The pause in seconds in which another thread delivers an answer, before a menu is computed."""


def _discard(_update: Update, _buffers: list[bytes]) -> None:
    """Discard an update, for sessions without a browser."""


class Session(Runs, RuleSteps, TraceEdits, CostRequests):
    """A schedule and the views of it that browsers display.

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
    pages : Pages, optional
        The pages that run kernels for targets in browsers; by default there are none.
    """

    def __init__(
        self,
        schedule: Schedule,
        bench: Bench,
        *,
        title: str = "",
        publish: Publish = _discard,
        pages: Pages | None = None,
    ) -> None:
        """Open the program's ``main``, or its only loop-level function."""
        self.publish = publish
        self.pages = pages or Pages()
        self._diffs: dict[str, ViewDiff] = {}
        self._measured_head = schedule.head.id
        self._lowered_texts = LoweredTexts(bench.target)
        self._lower_job = ""
        self.records = MeasurementRecords()
        self._timer: threading.Timer | None = None
        super().__init__(schedule, bench, title)
        schedule.subscribe(self._head_moved)

    def handle(self, message: Mapping[str, object]) -> Update:
        """Execute a request and publish the answer, then the menu of a new selection or state.

        Errors become problems. A message that is not a mapping is an invalid request, because
        browsers can send any JSON.
        """
        started = time.perf_counter()
        number = message.get("id") if is_message(message) else None
        with self.lock, self.views.using(self._sender(message)):
            try:
                self._follow()
                with self._moves():
                    self._execute(decode(message))
            except TilewrightError as error:
                self._add_problem(error)
            except Exception as error:  # noqa: BLE001 - every request must be answered
                self._add_problem(error)
            self._recall_menu()
            answer = self._send(number if isinstance(number, int) else 0, started)
            self._send_menu()
            return answer

    def _sender(self, message: Mapping[str, object]) -> PageView:
        """Return the view of the client of a message; one with an invalid name has no name."""
        try:
            return self.views.of(client_of(message) if is_message(message) else "")
        except ProtocolError:
            return self.views.of("")

    def refresh(self) -> None:
        """Publish the sections that changed without a request, after work on another thread."""
        with self.lock:
            self._send(0, time.perf_counter())

    def report_progress(self) -> None:
        """Publish the progress of the jobs, without looking for other changes."""
        with self.lock:
            for client, view in self.views:
                if client in self._diffs:
                    with self.views.using(view):
                        update = self._diffs[client].progress(self, client)
                    if update is not None:
                        self.publish(update, [])

    def _follow(self) -> None:
        """Let the current view follow a head that was moved elsewhere, and announce the move."""
        if self.view.moved:
            self.view.moved = False
            self._sync_selection()
            head = self._head_text()
            self._announce(f"A cell or another page moved the head: it is {head}", "info")

    def _head_moved(self, _head: object) -> None:
        """Follow edits made elsewhere, such as in a cell, with one update per burst.

        Another thread may move the head while this session executes a request.
        """
        own = self._mover == threading.get_ident()
        for _, view in self.views:
            view.moved = view.moved or not own or view is not self.view
        if own:
            return
        if self._timer is not None:
            return
        self._timer = threading.Timer(FOLLOW_DELAY, self._burst_ended)
        self._timer.daemon = True
        self._timer.start()

    def _burst_ended(self) -> None:
        """Publish the new head; a later move starts another timer."""
        self._timer = None
        self.refresh()

    def _send(self, reply: int, started: float) -> Update:
        """Publish an update for each client, and return that for the current view."""
        head, sender = self.schedule.head.id, self.view
        if head != self._measured_head and (record := self.records.last(head)) is not None:
            self._show(record)
        self._measured_head = head
        answer = Update(VERSION, "", reply, 0, 0.0)
        views = list(self.views)
        self._diffs = {client: self._diff(client) for client, _ in views}
        for client, view in sorted(views, key=lambda item: item[1] is not sender):
            update = self._send_to(client, view, reply if view is sender else 0, started)
            if view is sender:
                answer = update
        return answer

    def _send_to(self, client: str, view: PageView, reply: int, started: float) -> Update:
        """Publish the update for one client, and return it."""
        with self.views.using(view):
            self._follow()
            update, buffers = self._diffs[client].update(self, client, reply, started)
        self.publish(update, buffers)
        return update

    def _send_menu(self) -> None:
        """Publish the menu of the selection, unless the answer was about the same selection.

        A menu takes several times as long as an answer.
        """
        view, started = self.view, time.perf_counter()
        if view.selection is None or view.suggested == (self.state, view.selection):
            return
        time.sleep(DELIVERY)
        try:
            self._suggest()
        except Exception as error:  # noqa: BLE001 - the page has to be told
            self._add_problem(error)
        client = next(name for name, other in self.views if other is view)
        self._send_to(client, view, 0, started)

    def _diff(self, client: str) -> ViewDiff:
        return self._diffs.get(client) or ViewDiff()

    def _execute(self, request: Request) -> None:
        """Execute a request about the view of the page, or else about the document."""
        match request:
            case Hello(version=version):
                self._hello(version)
            case Open(function=name):
                self._open(name)
            case Select():
                self._select(request)
            case Suggest():
                self._suggest()
            case Check():
                self._check(request)
            case Preview():
                self._preview(request)
            case Lower(stage=stage):
                self._lower(stage)
            case CountCosts(kind=kind):
                self._count_costs(kind)
            case SaveTrace(format=kind):
                self._save(kind)
            case Run():
                self._run(request)
            case Cancel(job=job):
                self.jobs.cancel(job)
            case Apply():
                self._apply(request)
            case Navigate():
                self._navigate(request)
            case EditGroup():
                self._edit_group(request)
            case EditTrace():
                self._edit_trace(request)
            case ApplyToSimilar():
                self._apply_to_similar(request)
            case UseRule():
                self._use_rule(request)
            case LoadTrace(text=text, notes=notes, name=name):
                for node, note in notes.items():
                    self.history_view.set_note(node, note)
                self._load(text, name or "")
            case _:
                self._set(request)

    def _set(
        self,
        request: Sample
        | EditSizeSet
        | SetTarget
        | SetMeasureOptions
        | SetNote
        | ShowMeasurement
        | Dismiss,
    ) -> None:
        """Change a value of the document other than its schedule."""
        match request:
            case Sample():
                self._set_sample(request)
            case EditSizeSet():
                self._edit_size_set(request)
            case SetTarget():
                self._set_target(request)
            case SetMeasureOptions(caches=caches, threads=threads, pin=pin, budget=budget):
                limited = min(budget, sys.float_info.max)  # JSON may contain any integer
                self.measure_options = MeasureOptions(caches, threads, pin, float(limited))
            case SetNote(node=node, text=text):
                self._set_note(node, text)
            case ShowMeasurement(key=key):
                self._show_measurement(key)
            case Dismiss(key=key):
                kept = (p for p in self.document.problems if p.key != key)
                self.document.problems = tuple(kept)
                self.document.dismissed |= {key}

    def _set_target(self, request: SetTarget) -> None:
        """Start a job that finds the steps that are legal on a target, then choose the target."""
        self._check_head(request.head)
        self._check_idle()
        target = target_named(request.target, self.machine)
        if target == self.machine:
            return
        program_target(self.schedule, target)  # reports functions that state another target
        applied, root = self.schedule.trace, self.schedule.history[0].state
        whole = self.document.pending.after(applied)

        def work(progress: Progress) -> None:
            progress(-1.0, "checking the steps on the target")
            kept = len(whole) == len(applied)
            kept = kept and replay(replace(root, target=target), applied).complete
            with self.lock:
                self._check_head(request.head)
                self._choose(target, None if kept else whole)

        self._start(f"Choose target {request.target}", work)

    def _choose(self, target: Target, trace: Trace | None) -> None:
        """Compile for a target; the steps of a trace that are not legal on it become pending."""
        self._bench.close()
        self._bench = bench_of(target, self.pages, self._bench.given)
        self._lowered_texts = LoweredTexts(target)
        self.rules = self.rules.for_target(target)
        with self._moves():
            self.schedule.retarget(target)
            if trace is not None:
                self._replay(trace, self.notes())
        if self.measure_options.threads > self._bench.threads:
            self.measure_options = replace(self.measure_options, threads=0)
        self._sync_selection()
        if trace is None:
            self._announce(f"The target is {self.target}", "good")

    def _hello(self, version: int) -> None:
        if version != VERSION:
            raise ProtocolError(
                f"the page uses version {version} of the protocol; expected version {VERSION}",
                hint="reload the page",
            )
        self._diffs.pop(self.client, None)
        self.view.revision, self.view.menu, self.view.suggested = 0, None, None
        self.view.checked = self.view.previewed = None
        self._sync_selection()

    def _set_note(self, node: str, text: str) -> None:
        if all(node != other.id for other in self.schedule.history):
            raise NoteError(f"no state {node!r} in the history", hint="choose one of its states")
        self.history_view.set_note(node, text)

    def _save(self, kind: str) -> None:
        """Provide the trace as a document; only JSON has the pending steps and the notes."""
        stem, applied = self.stem, self.schedule.trace
        if kind == "json":
            trace, notes = saved_trace(self.document.pending.after(applied), self.notes())
            text = to_json(trace, notes) + "\n"
            self.view.saved = Document(f"{stem}.trace.jsonl", "json", text)
        else:
            trace, _ = saved_trace(applied, {})
            self.view.saved = Document(f"{stem}.py", "python", to_python(trace) + "\n")

    def stages(self) -> list[protocol.Stage]:
        """Return the stages of lowering of the open function."""
        return self._lowered_texts.stages(self.function)

    def _lower(self, stage: str) -> None:
        """Show the text of the open function after a stage, from the cache or by a job."""
        texts, head, name = self._lowered_texts, self.schedule.head, self.view.open
        module = self.displayed
        texts.check(stage)
        self.jobs.cancel(self._lower_job)
        cached = texts.cached(head.id, name, stage)
        if cached is not None:
            self.view.lowered = replace(cached)  # a new object is sent again
            return

        def work(progress: Progress) -> None:
            lowered = texts.lower(head.id, module, name, stage, progress)
            if not progress.canceled:
                self.view.lowered = lowered

        self._lower_job = self._start(f"Lower {name}", work, "lower")
