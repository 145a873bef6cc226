"""Replay of traces, on the module they were recorded on or another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import TilewrightError
from .apply import apply
from .handles import Handle
from .problem import TraceError
from .registry import step_type
from .state import State
from .step import Step
from .trace import Argument, ResultOf, Trace, TraceStep, Written


class TraceMismatchError(TraceError):
    """A step of a trace that does not apply to this module; the message contains the reason."""

    title = "Trace mismatch"


@dataclass(frozen=True, slots=True)
class Change:
    """A decision that differs from the recorded one."""

    step: int
    op: str
    recorded: Mapping[str, object]
    now: Mapping[str, object]

    def __str__(self) -> str:
        """Return the step with the new and the recorded decisions."""
        return (
            f"step {self.step} ({self.op}) decided {dict(self.now)}, recorded {dict(self.recorded)}"
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Replay:
    """The outcome of a replay.

    Parameters
    ----------
    state : State
        The program after the steps that applied.
    done : int
        The number of steps of the trace that applied.
    pending : tuple of TraceStep
        The remaining steps; the first one does not apply.
    error : TilewrightError or None
        The error of the first pending step; None if no step is pending.
    changes : tuple of Change
        Decisions that differ from the recorded ones.
    """

    state: State
    done: int
    pending: tuple[TraceStep, ...]
    error: TilewrightError | None
    changes: tuple[Change, ...]

    def __repr__(self) -> str:
        """Return the number of applied steps, and the error of the first pending one."""
        steps = f"{self.done} of {self.done + len(self.pending)} steps applied"
        if self.error is None:
            return f"Replay({steps})"
        return f"Replay({steps}; then {self.pending[0].op}: {self.error.message})"

    def completed(self) -> State:
        """Return the final state.

        Raises
        ------
        TraceMismatchError
            If steps are pending; the cause is the error that stopped the replay.
        """
        if self.error is None:
            return self.state
        step = self.pending[0]
        raise TraceMismatchError(
            f"step {self.done} ({step.op}) of the trace does not apply: {self.error.message}",
            where=f"step {self.done}",
            hint=self.error.hint,
            details={"step": self.done, "op": step.op, "error": self.error.to_json()},
        ) from self.error


def replay(state: State, trace: Trace) -> Replay:
    """Apply the steps of a trace in order, until one does not apply."""
    offset = len(state.trace)
    changes: list[Change] = []
    environment: list[tuple[Handle, ...]] = []
    for number, recorded in enumerate(trace.steps):
        try:
            applied = apply(state, _decoded(recorded, number, environment))
        except TilewrightError as error:
            return Replay(state, number, trace.steps[number:], error, tuple(changes))
        state = applied.state
        environment.append(applied.results)
        now = state.trace[-1].decisions
        if recorded.decisions and dict(now) != dict(recorded.decisions):
            changes.append(Change(offset + number, recorded.op, recorded.decisions, now))
    return Replay(state, len(trace), (), None, tuple(changes))


def _decoded(recorded: TraceStep, number: int, environment: list[tuple[Handle, ...]]) -> Step:
    cls = step_type(recorded.op)
    known = {p.name for p in cls.parameters()}
    extra = [name for name, _ in recorded.arguments if name not in known]
    if extra:
        raise TraceError(
            f"{recorded.op} has no parameter {extra[0]!r}",
            hint=f"its parameters are {', '.join(sorted(known))}",
        )
    required = {p.name for p in cls.parameters() if p.required}
    absent = required - {name for name, _ in recorded.arguments}
    if absent:
        raise TraceError(f"{recorded.op} lacks parameter {min(absent)!r}")
    values = {name: _value(v, number, environment) for name, v in recorded.arguments}
    return cls(**values)


def _value(value: Argument, number: int, environment: list[tuple[Handle, ...]]) -> object:
    match value:
        case ResultOf(step=step, index=index):
            if not 0 <= step < number:
                raise TraceError(f"step {number} uses the result of a step that was dropped")
            results = environment[step]
            if index >= len(results):
                raise TraceError(
                    f"step {number} uses result {index} of step {step}, which has {len(results)} "
                    "results"
                )
            return results[index]
        case Written(text=text):
            return text
        case tuple():
            return tuple(_value(item, number, environment) for item in value)
        case _:
            return value
