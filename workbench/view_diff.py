"""The sections of the view that changed since the last update."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar

from ..codegen.measure import MeasureOptions
from ..ir.graph.nodes import CallTIR, GraphFunc, LaunchKernel
from ..ir.module import Function, Module
from ..schedules import Schedule, State
from . import protocol
from .graph_view import graph_view
from .history_view import HistoryView
from .jobs import Jobs
from .protocol import VERSION, FunctionItem, Pane, Update
from .render import Rendered, Samples, render
from .shown import Shown
from .symbols import symbols_view

_T = TypeVar("_T")

MAX_PANES = 32
"""The number of sent panes assumed to be cached by the browser, which caches twice as many."""


class DisplayedSession(Protocol):
    """The part of a session that the view displays."""

    schedule: Schedule
    history_view: HistoryView
    shown: Shown
    jobs: Jobs

    @property
    def state(self) -> State:
        """The state at the head."""
        ...

    @property
    def title(self) -> str:
        """The name of the program."""
        ...

    @property
    def target(self) -> str:
        """The target as text."""
        ...

    @property
    def function(self) -> Function:
        """The open function."""
        ...

    @property
    def graph(self) -> GraphFunc | None:
        """The graph-level function of the diagram."""
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


class ViewDiff:
    """The cache keys of all sections; only sections with a new key are rebuilt and sent."""

    def __init__(self) -> None:
        """Start with an empty cache."""
        self._keys: dict[str, object] = {}
        self._sent: OrderedDict[str, None] = OrderedDict()
        self._rendered: OrderedDict[tuple[Function, tuple[tuple[str, int], ...]], Rendered] = (
            OrderedDict()
        )

    def reset(self) -> None:
        """Clear the cache, so that the next update contains all sections."""
        self._keys.clear()
        self._sent.clear()

    def update(
        self, session: DisplayedSession, reply: int, started: float
    ) -> tuple[Update, list[bytes]]:
        """Return the sections that changed, with the binary spans of new panes."""
        shown, head, view = session.shown, session.schedule.head, session.history_view
        if not session.state.module.functions:
            return Update(VERSION, reply, 0.0), []
        function, graph = session.function, session.graph
        samples = session.samples(function)
        panes = self._panes(session)
        fresh = [p for p in panes if self._mark_sent(p.pane.hash)]
        module = session.state.module
        new = self._if_changed
        update = Update(
            version=VERSION,
            reply=reply,
            server_ms=(time.perf_counter() - started) * 1e3,
            target=new("target", session.target, lambda: session.target),
            open=new("open", shown.open, lambda: shown.open),
            functions=new(
                "functions",
                (module, tuple(p.pane.hash for p in panes)),
                lambda: _functions(module, {p.pane.function: p.pane.hash for p in panes}),
            ),
            panes=[_numbered(p.pane, k) for k, p in enumerate(fresh)] or None,
            graph=new("graph", graph, lambda: None if graph is None else graph_view(graph)),
            menu=new("menu", (shown.menu,), lambda: shown.menu),
            trace=new(
                "trace",
                (head.id, shown.pending),
                lambda: view.trace(session.schedule, shown.pending),
            ),
            history=new(
                "history",
                (head.id, len(session.schedule.history), view.revision),
                lambda: view.history(session.schedule, session.title),
            ),
            symbols=new(
                "symbols", (function, dict(samples)), lambda: symbols_view(function, samples)
            ),
            measure_options=new(
                "measure_options", session.measure_options, session.measure_options_view
            ),
            measurement=new("measurement", shown.measurement, lambda: shown.measurement),
            verdict=new("verdict", shown.verdict, lambda: shown.verdict),
            jobs=new("jobs", (jobs := session.jobs.view()), lambda: jobs),
            problems=new("problems", shown.problems, lambda: list(shown.problems)),
            lowered=new("lowered", shown.lowered, lambda: shown.lowered),
            document=new("document", id(shown.document), lambda: shown.document),
            applied=new("applied", (shown.applied,), lambda: shown.applied),
        )
        return update, [p.spans for p in fresh]

    def _if_changed(self, name: str, key: object, make: Callable[[], _T]) -> _T | None:
        if name in self._keys and self._keys[name] == key:
            return None
        self._keys[name] = key
        return make()

    def _panes(self, session: DisplayedSession) -> list[Rendered]:
        """Return the visible panes: the graph and the open function."""
        functions = dict.fromkeys(f for f in (session.graph, session.function) if f is not None)
        return [self.rendered(session, f, session.samples(f)) for f in functions]

    def rendered(self, session: DisplayedSession, function: Function, samples: Samples) -> Rendered:
        """Return the rendered function, cached by function and samples."""
        key = (function, tuple(samples.items()))
        rendered = self._rendered.get(key)
        if rendered is None:
            rendered = self._rendered[key] = render(function, session.state.module, samples)
        self._rendered.move_to_end(key)
        while len(self._rendered) > MAX_PANES:
            self._rendered.popitem(last=False)
        return rendered

    def _mark_sent(self, digest: str) -> bool:
        """Mark a pane as sent; return whether the browser does not have it yet."""
        fresh = digest not in self._sent
        self._sent[digest] = None
        self._sent.move_to_end(digest)
        while len(self._sent) > MAX_PANES:
            self._sent.popitem(last=False)
        return fresh


def _numbered(pane: Pane, buffer: int) -> Pane:
    return replace(pane, buffer=buffer)


def _functions(module: Module, hashes: dict[str, str]) -> list[FunctionItem]:
    calls = _calls(module)
    return [
        FunctionItem(
            name=f.name,
            level="graph" if isinstance(f, GraphFunc) else "loop",
            hash=hashes.get(f.name, ""),
            calls=calls.get(f.name, 0),
            scheduled=dict(f.attributes).get("scheduled") is True,
        )
        for f in module
    ]


def _calls(module: Module) -> dict[str, int]:
    counts: dict[str, int] = {}
    for graph in module.graphs:
        for binding in graph.bindings:
            if isinstance(binding.right, CallTIR | LaunchKernel):
                name = binding.right.function
                counts[name] = counts.get(name, 0) + 1
    return counts
