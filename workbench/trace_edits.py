"""Edits of the trace: changed steps, composite steps, and pending steps."""

from __future__ import annotations

from ..schedules import Trace, from_json
from .editor import Editor
from .pending import Pending, with_line
from .requests import EditGroup, EditTrace
from .serialization import ProtocolError
from .trace_view import group_values


class TraceEdits(Editor):
    """An editor that replays an edited trace on the initial state."""

    def _load(self, text: str) -> None:
        self._replay(from_json(text))

    def _edit_group(self, request: EditGroup) -> None:
        """Replace a composite step of the trace, and replay the trace from the initial state."""
        self._check_head(request.head)
        trace = self.document.pending.after(self.schedule.trace)
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
        pending, trace = self.document.pending, self.schedule.trace
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
                self.document.pending = Pending()
                self._announce(f"{len(pending.steps)} pending steps discarded", "info")

    def _replay(self, trace: Trace) -> None:
        """Replay a trace on the initial state, and keep the steps that do not apply as pending."""
        before = self.state.module
        start = self.schedule.head.id
        root = next(node for node in self.schedule.history if node.parent is None)
        self.schedule.goto(root.id)
        outcome = self.schedule.replay(trace)
        self._jumped_from(start)
        self.document.pending = Pending.of(trace, outcome)
        self._sync_selection()
        total = f"{outcome.done} of {len(trace)} steps"
        if outcome.error is None:
            self._announce(f"Trace replayed: {total}", "good", before)
        else:
            self._add_problem(outcome.error)
            self._announce(f"Trace replay stopped: {total} applied", "warn", before)
