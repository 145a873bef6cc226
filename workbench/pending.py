"""Pending steps: the rest of a trace that stopped at a step that does not apply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..schedules import Replay, StepError, Trace, TraceError, from_python
from ..schedules.python_text import step_lines
from ..schedules.trace import TraceStep


@dataclass(frozen=True, slots=True)
class Pending:
    """Steps that were not applied, numbered as if they followed ``before``.

    Parameters
    ----------
    before : Trace
        The applied steps when the replay stopped.
    steps : tuple of TraceStep
        The first step that does not apply, and all after it.
    reason : str
        The reason why the first one does not apply.
    notes : mapping of int to str
        The notes on the states after them, by the number of pending steps before the state.
    """

    before: Trace = field(default_factory=Trace)
    steps: tuple[TraceStep, ...] = ()
    reason: str = ""
    notes: Mapping[int, str] = field(default_factory=dict[int, str])

    @classmethod
    def of(cls, trace: Trace, outcome: Replay, notes: Mapping[int, str] | None = None) -> Pending:
        """Return the pending steps of a replay of a trace, with its notes on their states."""
        if outcome.error is None:
            return cls()
        applied = outcome.state.trace
        if len(applied) != outcome.done:  # a step of the trace was a composite step
            applied = Trace(trace.steps[: outcome.done])
        problems = outcome.error.problems if isinstance(outcome.error, StepError) else ()
        reason = next((problem.message for problem in problems), outcome.error.message)
        done = outcome.done
        left = {count - done: note for count, note in (notes or {}).items() if count > done}
        return cls(applied, outcome.pending, reason.partition("\n")[0], left)

    def after(self, trace: Trace) -> Trace:
        """Return a trace with the pending steps at the end.

        Results of earlier steps that the trace does not contain any more are dropped: a step that
        uses them does not apply.
        """
        if not self.steps:
            return trace
        pairs = zip(self.before.steps, trace.steps, strict=False)
        same = next((k for k, (a, b) in enumerate(pairs) if a != b), None)
        if same is None:
            same = min(len(self.before), len(trace))
        start = len(self.before)
        position = {k: k for k in range(same)}
        position |= {start + k: len(trace) + k for k in range(len(self.steps))}
        return trace.appended(*(Trace.renumbered(step, position) for step in self.steps))

    def skipped(self) -> Pending:
        """Return the pending steps without the first one and those that use its results."""
        start = len(self.before)
        removed = {start}
        for number, step in enumerate(self.steps, start):
            if any(operand.step in removed for operand in step.operands()):
                removed.add(number)
        kept = [k for k in range(start, start + len(self.steps)) if k not in removed]
        position = {k: k for k in range(start)} | {k: start + n for n, k in enumerate(kept)}
        steps = (Trace.renumbered(self.steps[k - start], position) for k in kept)
        counts = {k - start + 1: n + 1 for n, k in enumerate(kept)}
        notes = {counts[count]: note for count, note in self.notes.items() if count in counts}
        return replace(self, steps=tuple(steps), reason="", notes=notes)

    def notes_after(self, trace: Trace) -> dict[int, str]:
        """Return the notes by the number of steps of the trace that :meth:`after` returns."""
        return {len(trace) + count: note for count, note in self.notes.items()}


@dataclass(frozen=True, slots=True)
class Jump:
    """The head before a move that is not one step, and the pending steps if it replaced them."""

    start: str
    pending: Pending | None = None


def with_line(trace: Trace, index: int, text: str) -> Trace:
    """Return a trace with one step replaced by a line of Python text.

    Raises
    ------
    TraceError
        If the text is not one call of a step.
    """
    lines = step_lines(trace)[:index]
    parsed = from_python("\n".join([*lines, text.strip()]))
    if len(parsed) != index + 1 or parsed.groups:
        raise TraceError(f"expected one step, got {len(parsed) - index} in {text.strip()!r}")
    return trace.replaced(index, parsed[index])
