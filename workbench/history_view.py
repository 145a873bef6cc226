"""View of the trace and the history."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..schedules import STEPS, Query, Schedule, Trace, to_python
from ..schedules.history import Node
from ..schedules.trace import TraceStep
from .protocol import History, HistoryNode, TraceLine, TraceStatus

START = "start"


@dataclass(slots=True)
class HistoryView:
    """Step durations, measured times and verdicts by history node."""

    milliseconds: dict[str, float] = field(default_factory=dict[str, float])
    microseconds: dict[str, float] = field(default_factory=dict[str, float])
    verified: dict[str, bool] = field(default_factory=dict[str, bool])
    revision: int = 0
    _details: dict[str, str] = field(default_factory=dict[str, str])

    def trace(self, schedule: Schedule, pending: tuple[TraceStep, ...] = ()) -> list[TraceLine]:
        """Return the steps from the root to the head, then the pending ones."""
        head = schedule.head
        times = self._times(schedule, head)
        lines = to_python(Trace((*head.state.trace.steps, *pending))).splitlines()
        done = len(head.state.trace)
        return [
            TraceLine(
                index=index,
                text=text,
                step=step.op,
                status=_status(step) if index < done else "pending",
                decisions=", ".join(f"{name}: {value}" for name, value in step.decisions.items()),
                milliseconds=times.get(index),
            )
            for index, (text, step) in enumerate(
                zip(lines, (*head.state.trace.steps, *pending), strict=True)
            )
        ]

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

    def history(self, schedule: Schedule, title: str) -> History:
        """Return all states as a tree."""
        head = schedule.head
        nodes = schedule.history
        redo = any(node.parent == head.id for node in nodes)
        shown = [self._node(node, title) for node in nodes]
        return History(head.id, shown, can_undo=head.parent is not None, can_redo=redo)

    def _node(self, node: Node, title: str) -> HistoryNode:
        root = node.parent is None
        return HistoryNode(
            key=node.id,
            parent=node.parent or "",
            label=START if root else node.step.op,
            detail=title if root else self._detail(node),
            microseconds=self.microseconds.get(node.id),
            verified=self.verified.get(node.id),
        )

    def _detail(self, node: Node) -> str:
        """Return the arguments of the last step as Python text."""
        if node.id not in self._details:
            last = to_python(node.state.trace).splitlines()[-1]
            self._details[node.id] = last[last.index("(", last.index("sch.")) :]
        return self._details[node.id]

    def record_measurement(self, node: str, microseconds: float) -> None:
        """Record the measured time of a state."""
        self.microseconds[node] = microseconds
        self.revision += 1

    def record_verdict(self, node: str, *, agrees: bool) -> None:
        """Record whether the compiled state agrees with the interpreter."""
        self.verified[node] = agrees
        self.revision += 1


def _status(step: TraceStep) -> TraceStatus:
    cls = STEPS.get(step.op)
    if cls is None:
        return "opaque"
    return "query" if issubclass(cls, Query) else "done"
