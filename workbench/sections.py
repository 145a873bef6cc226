"""The sections of an update: one entry per section, with the key that decides when it is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from ..codegen.measure import MeasureOptions
from ..ir.graph.nodes import GraphFunc
from ..ir.module import Function, Module
from ..schedules import Problem, Schedule, State
from ..target.target import Target
from . import protocol, protocol_steps
from .default_rules import DefaultRules
from .graph_view import graph_view
from .heat import heat_view, overlay_of
from .history_view import HistoryView
from .jobs import Jobs
from .measurement_records import MeasurementRecords
from .page_view import PageView
from .pending import Jump
from .problem_view import launch_key, launch_problems, launch_view
from .protocol_runs import Overlay
from .render import Samples
from .session_document import SessionDocument
from .step_menu import catalog
from .symbols import symbol_rows, symbols_view
from .targets import missing_here, target_key, target_options


class DisplayedSession(Protocol):
    """The part of a session that the view displays."""

    schedule: Schedule
    history_view: HistoryView
    document: SessionDocument
    jobs: Jobs
    records: MeasurementRecords
    jumps: dict[str, Jump]

    def notes(self) -> dict[int, str]:
        """Return the notes on the states of the trace, by the number of steps before each."""
        ...

    @property
    def view(self) -> PageView:
        """The view of the page that the update is for."""
        ...

    @property
    def state(self) -> State:
        """The state at the head."""
        ...

    @property
    def title(self) -> str:
        """The name of the program."""
        ...

    @property
    def stem(self) -> str:
        """The name of files of the program, without an extension."""
        ...

    @property
    def target(self) -> str:
        """The target as text."""
        ...

    @property
    def machine(self) -> Target:
        """The target that the session compiles for."""
        ...

    @property
    def function(self) -> Function:
        """The open function."""
        ...

    @property
    def displayed(self) -> Module:
        """The program that contains the open function."""
        ...

    @property
    def rules(self) -> DefaultRules:
        """The default rules of the kernels."""
        ...

    def rule(self) -> protocol.KernelRule:
        """Return the relation of the open function to its default rule."""
        ...

    @property
    def graph(self) -> GraphFunc | None:
        """The graph-level function of the diagram."""
        ...

    @property
    def entry(self) -> Function:
        """The function that is compiled and measured as a whole."""
        ...

    @property
    def measure_options(self) -> MeasureOptions:
        """The options of the next measurement."""
        ...

    def measure_options_view(self) -> protocol.MeasureOptions:
        """Return the options for the browser."""
        ...

    def samples(self, function: Function) -> Samples:
        """Return the sample values of a function's symbols."""
        ...

    def selected(self) -> protocol_steps.Selected:
        """Return the selection with the parts that enclose it and its properties."""
        ...

    def stages(self) -> list[protocol.Stage]:
        """Return the stages of lowering of the open function."""
        ...


@dataclass(frozen=True, slots=True)
class Section:
    """A field of :class:`~tilewright.workbench.protocol.Update`, sent when its key changes.

    Parameters
    ----------
    name : str
        The name of the field.
    key : function of a session
        A cheap value that changes whenever the section does.
    view : function of a session
        The value of the field, built only if the key changed.
    """

    name: str
    key: Callable[[DisplayedSession], object]
    view: Callable[[DisplayedSession], object]


def _graph_view(session: DisplayedSession) -> protocol.GraphView | None:
    return None if session.graph is None else graph_view(session.graph)


def heat(session: DisplayedSession) -> tuple[Overlay, list[bytes]] | None:
    """Return the times of the displayed graph; without a measurement of it there are none."""
    profile, graph = session.document.profile, session.graph
    if profile is None or graph is None or graph.name != profile.measurement.function:
        return None if graph is None else overlay_of(graph.name, 0.0, [])
    compiled = profile.compiled.module.graph(graph.name)
    calls = heat_view(graph, compiled, profile.measurement)
    return overlay_of(graph.name, profile.measurement.total, calls)


def _rule_key(session: DisplayedSession) -> object:
    measured, samples = session.document.measurement, dict(session.samples(session.function))
    peaks = None if measured is None else (measured.roof, measured.conditions)
    return session.schedule.head.id, session.function, session.rules.revision, samples, peaks


def _selected_key(session: DisplayedSession) -> object:
    handle = session.view.selection
    function = None if handle is None else session.state.module.functions[handle.function]
    samples = {} if function is None else dict(session.samples(function))
    return handle, function, samples


def _symbols_key(session: DisplayedSession) -> object:
    return session.function, dict(session.samples(session.function))


def _setup_key(session: DisplayedSession) -> object:
    sizes = dict(session.samples(session.entry))
    sets = session.document.size_sets
    measured = (session.records.revision, session.schedule.head.id) if sets.sizes else ()
    return session.machine, session.entry, sizes, sets, measured


def _setup_view(session: DisplayedSession) -> protocol.Setup:
    target, entry = session.machine, session.entry
    return protocol.Setup(
        target=target_key(target),
        targets=target_options(target),
        missing=missing_here(target),
        function=entry.name,
        sizes=symbol_rows(entry, session.samples(entry)),
        sets=session.document.size_sets.view(
            entry, session.samples(entry), session.records, session.schedule.head.id
        ),
    )


def _history_key(session: DisplayedSession) -> object:
    schedule = session.schedule
    jumped = schedule.head.id in session.jumps
    return schedule.head.id, len(schedule.history), session.history_view.revision, jumped


def _history_view(session: DisplayedSession) -> protocol.History:
    jumped = session.schedule.head.id in session.jumps
    return session.history_view.history(session.schedule, session.title, jumped=jumped)


def _launch_problems(session: DisplayedSession, *, fixes: bool) -> tuple[Problem, ...]:
    """Return the problems of a launch of the open kernel that were not dismissed."""
    found = launch_problems(session.state, session.function, session.machine, fixes=fixes)
    name, hidden = session.function.name, session.document.dismissed
    return tuple(p for p in found if launch_key(p, name) not in hidden)


def _problems_key(session: DisplayedSession) -> object:
    found = _launch_problems(session, fixes=False)
    return (
        session.document.problems,
        [p.message for p in found],
        session.function if found else None,
    )


def _problems_view(session: DisplayedSession) -> list[protocol_steps.Problem]:
    """Return the problems of the open kernel, then the errors."""
    name, machine = session.function.name, session.machine
    found = _launch_problems(session, fixes=True)
    launch = [launch_view(problem, session.state, name, machine) for problem in found]
    return [*launch, *session.document.problems]


SECTIONS: Final = (
    Section("catalog", lambda _: "", lambda _: list(catalog())),
    Section("target", lambda s: s.target, lambda s: s.target),
    Section("open", lambda s: s.view.open, lambda s: s.view.open),
    Section("graph", lambda s: s.graph, _graph_view),
    Section("selected", _selected_key, lambda s: s.selected()),
    Section("menu", lambda s: id(s.view.menu), lambda s: s.view.menu),
    Section("checked", lambda s: id(s.view.checked), lambda s: s.view.checked),
    Section("previewed", lambda s: id(s.view.previewed), lambda s: s.view.previewed),
    Section(
        "trace",
        lambda s: (s.schedule.head.id, s.document.pending),
        lambda s: s.history_view.trace(s.schedule, s.document.pending),
    ),
    Section("history", _history_key, _history_view),
    Section("symbols", _symbols_key, lambda s: symbols_view(s.function, s.samples(s.function))),
    Section("setup", _setup_key, _setup_view),
    Section(
        "measure_options",
        lambda s: (s.measure_options, s.machine),
        lambda s: s.measure_options_view(),
    ),
    Section("measurement", lambda s: s.document.measurement, lambda s: s.document.measurement),
    Section("records", lambda s: s.records.revision, lambda s: s.records.view()),
    Section("costs", lambda s: id(s.view.costs), lambda s: s.view.costs),
    Section("similar", lambda s: id(s.view.similar), lambda s: s.view.similar),
    Section("rule", _rule_key, lambda s: s.rule()),
    Section("verdict", lambda s: s.document.verdict, lambda s: s.document.verdict),
    Section("jobs", lambda s: s.jobs.view(), lambda s: s.jobs.view()),
    Section("problems", _problems_key, _problems_view),
    Section("stages", lambda s: s.stages(), lambda s: s.stages()),
    Section("lowered", lambda s: id(s.view.lowered), lambda s: s.view.lowered),
    Section("document", lambda s: id(s.view.saved), lambda s: s.view.saved),
    Section("applied", lambda s: (s.view.applied,), lambda s: s.view.applied),
)
"""The sections except ``functions`` and ``panes``, which depend on the rendered text, the copy of
the trace, and the overlay, which has buffers."""
