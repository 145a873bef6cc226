"""Which parts of the view changed since the browser was last told."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ..ir.graph.memory import Launch
from ..ir.graph.nodes import CallTIR, GraphFunc
from ..ir.module import Function, Module
from .graphs import graph_view
from .protocol import VERSION, FunctionItem, Pane, Update
from .render import Rendered, Samples, render
from .symbols import symbols_view

if TYPE_CHECKING:
    from .session import Session

_T = TypeVar("_T")

KEPT_PANES = 32
"""Panes the browser is trusted to have still; it keeps twice as many."""


class Sections:
    """Remembers what each section was made of, and makes again only what changed."""

    def __init__(self) -> None:
        """Begin with a browser that knows nothing."""
        self._keys: dict[str, object] = {}
        self._sent: OrderedDict[str, None] = OrderedDict()
        self._rendered: OrderedDict[tuple[Function, tuple[tuple[str, int], ...]], Rendered] = (
            OrderedDict()
        )

    def forget(self) -> None:
        """A new page begins: it has to be told everything."""
        self._keys.clear()
        self._sent.clear()

    def update(self, session: Session, reply: int, started: float) -> tuple[Update, list[bytes]]:
        """Collect what changed."""
        shown, head, story = session.shown, session.schedule.head, session.story
        if not session.state.module.functions:
            return Update(VERSION, reply, 0.0), []
        function, graph = session.function, session.graph
        samples = session.samples(function)
        panes = self._panes(session)
        fresh = [p for p in panes if self._keep(p.pane.hash)]
        module = session.state.module
        new = self._changed
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
                lambda: story.trace(session.schedule, shown.pending),
            ),
            history=new(
                "history",
                (head.id, len(session.schedule.history), story.revision),
                lambda: story.history(session.schedule, session.title),
            ),
            symbols=new(
                "symbols", (function, dict(samples)), lambda: symbols_view(function, samples)
            ),
            conditions=new("conditions", session.conditions, session.conditions_view),
            timing=new("timing", shown.timing, lambda: shown.timing),
            verdict=new("verdict", shown.verdict, lambda: shown.verdict),
            jobs=new("jobs", (jobs := session.jobs.view()), lambda: jobs),
            reports=new("reports", shown.reports, lambda: list(shown.reports)),
            lowered=new("lowered", shown.lowered, lambda: shown.lowered),
            document=new("document", id(shown.document), lambda: shown.document),
            applied=new("applied", (shown.applied,), lambda: shown.applied),
        )
        return update, [p.spans for p in fresh]

    def _changed(self, name: str, key: object, make: Callable[[], _T]) -> _T | None:
        if name in self._keys and self._keys[name] == key:
            return None
        self._keys[name] = key
        return make()

    # ------------------------------------------------------------ panes

    def _panes(self, session: Session) -> list[Rendered]:
        """The panes in sight: the open function and the graph beside it."""
        functions = dict.fromkeys(f for f in (session.graph, session.function) if f is not None)
        return [self.rendered(session, f, session.samples(f)) for f in functions]

    def rendered(self, session: Session, function: Function, samples: Samples) -> Rendered:
        """Print a function; the same one again is free."""
        key = (function, tuple(samples.items()))
        found = self._rendered.get(key)
        if found is None:
            found = self._rendered[key] = render(function, session.state.module, samples)
        self._rendered.move_to_end(key)
        while len(self._rendered) > KEPT_PANES:
            self._rendered.popitem(last=False)
        return found

    def _keep(self, mark: str) -> bool:
        """Whether the browser lacks a pane; it will have it now."""
        fresh = mark not in self._sent
        self._sent[mark] = None
        self._sent.move_to_end(mark)
        while len(self._sent) > KEPT_PANES:
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
            if isinstance(binding.right, CallTIR | Launch):
                name = binding.right.function
                counts[name] = counts.get(name, 0) + 1
    return counts
