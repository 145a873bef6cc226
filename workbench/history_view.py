"""View of the history, and of the trace of its head."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..errors import TilewrightError
from ..schedules import Schedule
from ..schedules.history import Node
from ..schedules.python_text import arguments_text
from ..schedules.trace import Group
from . import protocol
from .pending import Pending
from .protocol import History, HistoryNode
from .trace_view import trace_view

START = "start"

MAX_NOTE = 2000
"""The maximum length of a note."""


class NoteError(TilewrightError):
    """A note that is too long, or on a state that does not exist."""

    title = "Invalid note"


def checked_note(text: str) -> str:
    """Return a note without white space around it.

    Raises
    ------
    NoteError
        If the text is too long.
    """
    text = text.strip()
    if len(text) > MAX_NOTE:
        raise NoteError(f"the note has {len(text)} characters; at most {MAX_NOTE} are kept")
    return text


@dataclass(slots=True)
class HistoryView:
    """Step durations, verdicts, and notes by history node."""

    milliseconds: dict[str, float] = field(default_factory=dict[str, float])
    verified: dict[str, bool] = field(default_factory=dict[str, bool])
    notes: dict[str, str] = field(default_factory=dict[str, str])
    revision: int = 0
    _details: dict[str, str] = field(default_factory=dict[str, str])

    def trace(self, schedule: Schedule, pending: Pending) -> protocol.Trace:
        """Return the steps from the root to the head, then the pending ones, and their groups."""
        head = schedule.head
        return trace_view(head.state.trace, pending, self._times(schedule, head))

    def _times(self, schedule: Schedule, head: Node) -> dict[int, float]:
        """Return the duration of each step by its index in the trace."""
        by_id = {node.id: node for node in schedule.history}
        times: dict[int, float] = {}
        node: Node | None = head
        while node is not None:
            if node.id in self.milliseconds and len(node.state.trace):
                times[len(node.state.trace) - 1] = self.milliseconds[node.id]
            node = by_id.get(node.parent) if node.parent else None
        return times

    def history(self, schedule: Schedule, title: str, *, jumped: bool = False) -> History:
        """Return all states as a tree; after a jump, an undo returns from the first state."""
        head = schedule.head
        nodes = schedule.history
        redo = any(node.parent == head.id for node in nodes)
        shown = [self._node(node, title) for node in nodes]
        return History(head.id, shown, can_undo=jumped or head.parent is not None, can_redo=redo)

    def _node(self, node: Node, title: str) -> HistoryNode:
        root = node.parent is None
        return HistoryNode(
            key=node.id,
            parent=node.parent or "",
            label=START if root else node.step.op,
            detail=title if root else self._detail(node),
            steps=1 if root or not isinstance(node.step, Group) else len(node.step),
            verified=self.verified.get(node.id),
            note=self.notes.get(node.id, ""),
        )

    def _detail(self, node: Node) -> str:
        """Return the arguments of the last step with the program's names."""
        if node.id not in self._details:
            self._details[node.id] = f"({arguments_text(node.state.trace, node.step)})"
        return self._details[node.id]

    def notes_on(self, path: Iterable[Node]) -> dict[int, str]:
        """Return the notes on the versions of a path, by the number of steps before each."""
        noted = (node for node in path if node.id in self.notes)
        return {len(node.state.trace): self.notes[node.id] for node in noted}

    def set_note(self, node: str, text: str) -> None:
        """Write a note on a state, or remove it.

        Raises
        ------
        NoteError
            If the text is too long.
        """
        text = checked_note(text)
        self.revision += 1
        if text:
            self.notes[node] = text
        else:
            self.notes.pop(node, None)

    def record_verdict(self, node: str, *, agrees: bool) -> None:
        """Record whether the compiled state agrees with the interpreter."""
        self.verified[node] = agrees
        self.revision += 1
