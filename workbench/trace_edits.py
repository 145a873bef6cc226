"""Edits of the trace: changed steps, composite steps, and pending steps."""

from __future__ import annotations

from collections.abc import Mapping

from ..schedules import Trace, TraceError, from_json, from_python, notes_from_json
from ..schedules.trace import Group
from .default_rules import path_to
from .editor import Editor
from .history_view import MAX_NOTE, checked_note
from .pending import Pending, with_line
from .requests import EditGroup, EditTrace
from .serialization import ProtocolError
from .trace_view import group_values

_FILES = (
    "a trace file contains one step per line: JSON after the header "
    '{"trace": "tilewright", "schema": 1}, or Python such as sch.unroll("i")'
)


def folded_notes(notes: Mapping[int, str], group: Group) -> dict[int, str]:
    """Return the notes of a trace in which a composite step is one step.

    Notes on states inside the group are notes on the state after it.

    Examples
    --------
    >>> folded_notes({1: "a", 2: "b", 4: "c", 5: "d"}, Group("tile", (), 1, 4))
    {1: 'a', 2: 'b; c', 3: 'd'}
    """
    found = dict[int, str]()
    for count, note in sorted(notes.items()):
        new = count if count <= group.first else max(count, group.stop) - len(group) + 1
        found[new] = f"{found[new]}; {note}"[:MAX_NOTE] if new in found else note
    return found


def trace_of_file(text: str, name: str) -> tuple[Trace, dict[int, str]]:
    """Return the steps of a trace file, as JSON or Python, and the notes of its states.

    Raises
    ------
    TraceError
        If the text is neither; the message contains the name of the file.

    Examples
    --------
    >>> trace, _ = trace_of_file("sch.unroll('i')", "a.py")
    >>> len(trace)
    1
    """
    try:
        return _parsed(text)
    except TraceError as error:
        message = f"{name}: {error.message}" if name else error.message
        raise TraceError(message, where=error.where, hint=_FILES) from None


def _parsed(text: str) -> tuple[Trace, dict[int, str]]:
    if text.lstrip()[:1] in ("", "{"):
        return from_json(text), notes_from_json(text)
    trace = from_python(text)
    if not len(trace):
        raise TraceError("the text contains no steps")
    return trace, {}


class TraceEdits(Editor):
    """An editor that replays an edited trace on the initial state."""

    def _load(self, text: str, name: str) -> None:
        trace, noted = trace_of_file(text, name)
        notes = {count: checked_note(note) for count, note in noted.items()}
        self._replay(trace, {count: note for count, note in notes.items() if note})

    def notes(self) -> dict[int, str]:
        """Return the notes on the states from the root to the head, and on the pending ones.

        They are numbered by the steps before each, as in the trace with the pending steps.
        """
        own = self.history_view.notes_on(path_to(self.schedule))
        return {**own, **self.document.pending.notes_after(self.schedule.trace)}

    def _edit_group(self, request: EditGroup) -> None:
        """Replace a composite step of the trace, and replay the trace from the initial state."""
        self._check_head(request.head)
        trace = self.document.pending.after(self.schedule.trace)
        if not 0 <= request.index < len(trace.groups):
            raise ProtocolError(f"no composite step {request.index} in the trace")
        if request.action == "ungroup":
            self._replay(trace.ungrouped(request.index), self.notes())
        else:
            group = trace.groups[request.index]
            changed = trace.changed_group(request.index, **group_values(group, request.values))
            self._replay(changed, folded_notes(self.notes(), group))

    def _edit_trace(self, request: EditTrace) -> None:
        """Change a step of the trace, or continue with the pending steps."""
        self._check_head(request.head)
        pending, trace = self.document.pending, self.schedule.trace
        whole = pending.after(trace)
        if request.action == "change":
            if not 0 <= request.index < len(whole):
                raise ProtocolError(f"no step {request.index} in the trace")
            self._replay(with_line(whole, request.index, request.text), self.notes())
            return
        if not pending.steps:
            raise ProtocolError("no steps are pending")
        match request.action:
            case "resume":
                self._replay(whole, self.notes())
            case "skip":
                self.document.pending = pending.skipped()
                self._replay(self.document.pending.after(trace), self.notes())
            case "discard":
                self.document.pending = Pending()
                self._announce(f"{len(pending.steps)} pending steps discarded", "info")

    def _replay(self, trace: Trace, notes: Mapping[int, str] | None = None) -> None:
        """Replay a trace on the initial state, and keep the steps that do not apply as pending.

        States with notes, by the number of steps before each, become versions of the history.
        """
        notes = notes or {}
        before = self.state.module
        start = self.schedule.head.id
        root = next(node for node in self.schedule.history if node.parent is None)
        self.schedule.goto(root.id)
        outcome = self.schedule.replay(trace, versions=notes.keys())
        self._jumped_from(start, self.document.pending)
        self.document.pending = Pending.of(trace, outcome, notes)
        states = {len(node.state.trace): node.id for node in path_to(self.schedule)}
        noted = {0: 0, **{count: len(state.trace) for count, state in outcome.versions}}
        for count in noted.keys() & notes.keys():
            self.history_view.set_note(states[noted[count]], notes[count])
        self._sync_selection()
        total = f"{outcome.done} of {len(trace)} steps"
        if outcome.error is None:
            self._announce(f"Trace replayed: {total}", "good", before)
        else:
            self._add_problem(outcome.error)
            self._announce(f"Trace replay stopped: {total} applied", "warn", before)
