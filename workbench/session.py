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
from .history_view import NoteError
from .jobs import Progress
from .lowered_texts import LoweredTexts
from .measurement_records import MeasurementRecords
from .protocol import VERSION, Document, Update
from .requests import (
    Apply,
    ApplyToSimilar,
    Cancel,
    Check,
    Dismiss,
    EditGroup,
    EditSizeSet,
    EditTrace,
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
    SetNote,
    SetTarget,
    ShowMeasurement,
    UseRule,
)
from .runs import Runs
from .serialization import ProtocolError, decode, is_message
from .targets import target_named
from .view_diff import ViewDiff

Publish = Callable[[Update, list[bytes]], None]

FOLLOW_DELAY = 0.05
"""The delay in seconds before the view follows a head that was moved elsewhere."""


def _discard(_update: Update, _buffers: list[bytes]) -> None:
    """Discard an update, for sessions without a browser."""


class Session(Runs):
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
        self.publish = publish
        self._diff = ViewDiff()
        self._seen = schedule.head.id
        self._moved = False
        self._lowered_texts = LoweredTexts(bench.target)
        self._lower_job = ""
        self.records = MeasurementRecords()
        self._timer: threading.Timer | None = None
        super().__init__(schedule, bench, title)
        schedule.subscribe(self._head_moved)

    def handle(self, message: Mapping[str, object]) -> Update:
        """Execute a request and publish the answer; errors become problems.

        A message that is not a mapping is an invalid request, because browsers can send any JSON.
        """
        started = time.perf_counter()
        number = message.get("id") if is_message(message) else None
        with self.lock:
            try:
                self._announce_moves()
                with self._moves():
                    self._execute(decode(message))
            except TilewrightError as error:
                self._add_problem(error)
            except Exception as error:  # noqa: BLE001 - every request must be answered
                self._add_problem(error)
            return self._send(number if isinstance(number, int) else 0, started)

    def refresh(self) -> None:
        """Publish the sections that changed without a request, after work on another thread.

        The first update after a move of the head made elsewhere announces it.
        """
        with self.lock:
            self._announce_moves()
            if self.schedule.head.id != self._seen:
                self._sync_selection()
            self._send(0, time.perf_counter())

    def _announce_moves(self) -> None:
        """Follow a head that was moved elsewhere; a menu on the old program is out of date."""
        if self._moved:
            self._moved = False
            self._sync_selection()
            head = self._head_text()
            self._announce(f"A cell or another view moved the head: it is {head}", "info")

    def _head_moved(self, _head: object) -> None:
        """Follow edits made elsewhere, such as in a cell, with one update per burst.

        Another thread may move the head while this session executes a request.
        """
        if self._mover == threading.get_ident():
            return
        self._moved = True
        if self._timer is not None:
            return
        self._timer = threading.Timer(FOLLOW_DELAY, self._follow)
        self._timer.daemon = True
        self._timer.start()

    def _follow(self) -> None:
        """Publish the new head; a later move starts another timer."""
        self._timer = None
        self.refresh()

    def _send(self, reply: int, started: float) -> Update:
        head = self.schedule.head.id
        if head != self._seen and (record := self.records.last(head)) is not None:
            self._show(record)
        self._seen = head
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
            case Sample():
                self._set_sample(request)
            case EditSizeSet():
                self._edit_size_set(request)
            case SetTarget():
                self._set_target(request)
            case Run():
                self._run(request)
            case SetMeasureOptions(caches=caches, threads=threads, pin=pin, budget=budget):
                limited = min(budget, sys.float_info.max)  # JSON may contain any integer
                self.measure_options = MeasureOptions(caches, threads, pin, float(limited))
            case Cancel(job=job):
                self.jobs.cancel(job)
            case Lower(stage=stage):
                self._lower(stage)
            case EditGroup():
                self._edit_group(request)
            case EditTrace():
                self._edit_trace(request)
            case ApplyToSimilar():
                self._apply_to_similar(request)
            case UseRule():
                self._use_rule(request)
            case SaveTrace(format=kind):
                self._save(kind)
            case LoadTrace(text=text, notes=notes):
                for node, note in notes.items():
                    self.history_view.set_note(node, note)
                self._load(text)
            case SetNote(node=node, text=text):
                self._set_note(node, text)
            case ShowMeasurement(key=key):
                self._show_measurement(key)
            case Dismiss(key=key):
                self.shown.problems = tuple(p for p in self.shown.problems if p.key != key)
                self.shown.dismissed |= {key}

    def _set_target(self, request: SetTarget) -> None:
        """Start a job that finds the steps that are legal on a target, then choose the target."""
        self._check_head(request.head)
        self._check_idle()
        target = target_named(request.target, self.machine)
        if target == self.machine:
            return
        program_target(self.schedule, target)  # reports functions that state another target
        applied, root = self.schedule.trace, self.schedule.history[0].state
        whole = self.shown.pending.after(applied)

        def work(progress: Progress) -> None:
            progress(-1.0, "checking the steps on the target")
            kept = len(whole) == len(applied)
            kept = kept and replay(replace(root, target=target), applied).complete
            with self.lock:
                self._check_head(request.head)
                self._choose(target, None if kept else whole)

        self.jobs.start(f"Choose target {request.target}", work)

    def _choose(self, target: Target, trace: Trace | None) -> None:
        """Compile for a target; the steps of a trace that are not legal on it become pending."""
        self._bench.close()
        self._bench = Bench(target, self._bench.given)
        self._lowered_texts = LoweredTexts(target)
        self.rules = self.rules.for_target(target)
        with self._moves():
            self.schedule.retarget(target)
            if trace is not None:
                self._replay(trace)
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
        self._diff.reset()
        self._sync_selection()

    def _set_note(self, node: str, text: str) -> None:
        if all(node != other.id for other in self.schedule.history):
            raise NoteError(f"no state {node!r} in the history", hint="choose one of its states")
        self.history_view.set_note(node, text)

    def _save(self, kind: str) -> None:
        trace = self.schedule.trace.pruned()
        stem = self.stem
        if kind == "json":
            self.shown.document = Document(f"{stem}.trace.jsonl", "json", to_json(trace) + "\n")
        else:
            self.shown.document = Document(f"{stem}.py", "python", to_python(trace) + "\n")

    def stages(self) -> list[protocol.Stage]:
        """Return the stages of lowering of the open function."""
        return self._lowered_texts.stages(self.function)

    def _lower(self, stage: str) -> None:
        """Show the text of the open function after a stage, from the cache or by a job."""
        texts, head, name = self._lowered_texts, self.schedule.head, self.shown.open
        module = self.displayed
        texts.check(stage)
        self.jobs.cancel(self._lower_job)
        cached = texts.cached(head.id, name, stage)
        if cached is not None:
            self.shown.lowered = replace(cached)  # a new object is sent again
            return

        def work(progress: Progress) -> None:
            lowered = texts.lower(head.id, module, name, stage, progress)
            if not progress.canceled:
                self.shown.lowered = lowered

        self._lower_job = self.jobs.start(f"Lower {name}", work, "lower")
