"""The sections of the view that changed since the last update."""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, TypeVar, cast

from ..ir.graph.nodes import CallTIR, GraphFunc, LaunchKernel
from ..ir.graph.visit import all_bindings
from ..ir.module import Function, Module
from ..schedules import to_json
from .protocol import VERSION, FunctionItem, FunctionList, Pane, TraceCopy, Update
from .recent import Recent
from .render import Rendered, Samples, render
from .sections import SECTIONS, DisplayedSession, heat

_T = TypeVar("_T")

LISTS = {"functions": "items", "graph": "nodes", "trace": "lines", "history": "nodes",
         "records": "items"}  # fmt: skip
"""The sections with long lists, of which only changes are sent, and the fields of the lists."""

PROCESS = uuid.uuid4().hex
"""The identity of this process, by which a browser recognizes a restarted Jupyter kernel."""

MAX_PANES = 32
"""The number of sent panes assumed to be cached by the browser, which caches twice as many."""


class ViewDiff:
    """The cache keys of all sections of one client; only those with a new key are sent."""

    def __init__(self) -> None:
        """Start with an empty cache."""
        self._keys: dict[str, object] = {}
        self._sent: OrderedDict[str, None] = OrderedDict()
        self._copied: list[str] = []
        self._recent: Recent[list[str]] = Recent()
        self._lists: dict[str, list[object]] = {}
        self._rendered: OrderedDict[tuple[Function, tuple[tuple[str, int], ...]], Rendered] = (
            OrderedDict()
        )

    def update(
        self, session: DisplayedSession, client: str, reply: int, started: float
    ) -> tuple[Update, list[bytes]]:
        """Return the sections that changed, with the binary spans of new panes."""
        view = session.view
        view.revision += 1
        if not session.state.module.functions:
            return Update(VERSION, client, reply, view.revision, 0.0), []
        panes = self._panes(session)
        fresh = [p for p in panes if self._mark_sent(p.pane.hash)]
        module = session.state.module
        hashes = {p.pane.function: p.pane.hash for p in panes}
        listed = [*module, *(f for f in (session.function,) if f.name not in module.functions)]
        functions = self._if_changed(
            "functions", (module, *hashes.values()), lambda: _functions(module, listed, hashes)
        )
        sections = {
            section.name: self._if_changed(
                section.name, section.key(session), partial(section.view, session)
            )
            for section in SECTIONS
        }
        sections["functions"] = functions
        for name, field in LISTS.items():
            sections[name] = self._spliced(name, field, sections[name])
        found = self._if_changed(
            "heat", (session.graph, session.document.profile), partial(heat, session)
        )
        buffers = [p.spans for p in fresh]
        if found is not None:
            overlay, more = found
            numbers = dict(zip(("values", "uids", "calls"), count(len(buffers)), strict=False))
            sections["heat"] = replace(overlay, **numbers)
            buffers += more
        update = Update(
            version=VERSION,
            client=client,
            reply=reply,
            revision=view.revision,
            server_ms=(time.perf_counter() - started) * 1e3,
            copy=self._if_changed(
                "copy",
                (session.schedule.head.id, session.document.pending, session.history_view.revision),
                lambda: self._copy(session),
            ),
            panes=[_numbered(p.pane, k) for k, p in enumerate(fresh)] or None,
            **cast("Any", sections),
        )
        return update, buffers

    def progress(self, session: DisplayedSession, client: str) -> Update | None:
        """Return the jobs if they changed, without looking for other changes."""
        jobs = self._if_changed("jobs", session.jobs.view(), session.jobs.view)
        if jobs is None:
            return None
        session.view.revision += 1
        return Update(VERSION, client, 0, session.view.revision, 0.0, jobs=jobs)

    def _spliced(self, name: str, field: str, message: Any) -> object:
        """Return a message with the elements of its list that the client does not have."""
        if message is None:
            return None
        before, after = self._lists.get(name, []), getattr(message, field)
        self._lists[name] = after
        keep, tail = common_ends(before, after)
        changed = {field: after[keep : len(after) - tail]}
        return replace(message, **changed, keep=keep or None, tail=tail or None)

    def _if_changed(self, name: str, key: object, make: Callable[[], _T]) -> _T | None:
        if name in self._keys and self._keys[name] == key:
            return None
        self._keys[name] = key
        return make()

    def _copy(self, session: DisplayedSession) -> TraceCopy:
        """Return the lines of the trace as a file that differ from those of the last one."""
        trace = session.document.pending.after(session.schedule.trace)
        noted = session.notes()
        lines = self._recent.get(trace, noted, lambda: to_json(trace, noted).splitlines())
        before, self._copied = self._copied, lines
        pairs = enumerate(zip(before, self._copied, strict=False))
        different = (k for k, (old, new) in pairs if old != new)
        keep = next(different, min(len(before), len(self._copied)))
        root = session.schedule.history[0].id
        name = f"{session.stem}.trace.jsonl"
        notes = dict(session.history_view.notes)
        return TraceCopy(name, root, PROCESS, len(trace), keep, self._copied[keep:], notes)

    def _panes(self, session: DisplayedSession) -> list[Rendered]:
        """Return the visible panes: the graph and the open function."""
        functions = dict.fromkeys(f for f in (session.graph, session.function) if f is not None)
        return [self.rendered(session, f, session.samples(f)) for f in functions]

    def rendered(self, session: DisplayedSession, function: Function, samples: Samples) -> Rendered:
        """Return the rendered function, cached by function and samples."""
        key = (function, tuple(samples.items()))
        rendered = self._rendered.get(key)
        if rendered is None:
            module = session.state.module
            if function.name not in module.functions:
                module = session.displayed
            rendered = self._rendered[key] = render(function, module, samples)
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


def common_ends(before: Sequence[object], after: Sequence[object]) -> tuple[int, int]:
    """Return the number of equal elements at the begin, and at the end of the rest.

    Examples
    --------
    >>> common_ends([1, 2, 3, 4], [1, 5, 4])
    (1, 1)
    >>> common_ends([1, 1], [1])
    (1, 0)
    """
    shared = min(len(before), len(after))
    pairs = zip(before, after, strict=False)
    keep = next((k for k, (a, b) in enumerate(pairs) if a is not b and a != b), shared)
    rest = shared - keep
    ends = zip(reversed(before), reversed(after), range(rest), strict=False)
    tail = next((k for a, b, k in ends if a is not b and a != b), rest)
    return keep, tail


def _numbered(pane: Pane, buffer: int) -> Pane:
    return replace(pane, buffer=buffer)


def _functions(module: Module, listed: list[Function], hashes: dict[str, str]) -> FunctionList:
    calls = _calls(module)
    items = [
        FunctionItem(
            name=f.name,
            level="graph" if isinstance(f, GraphFunc) else "loop",
            hash=hashes.get(f.name, ""),
            calls=calls.get(f.name, 0),
            scheduled=dict(f.attributes).get("scheduled") is True,
        )
        for f in listed
    ]
    return FunctionList(items)


def _calls(module: Module) -> dict[str, int]:
    counts: dict[str, int] = {}
    for graph in module.graphs:
        for binding in all_bindings(graph.bindings):
            if isinstance(binding.right, CallTIR | LaunchKernel):
                name = binding.right.function
                counts[name] = counts.get(name, 0) + 1
    return counts
