"""Replay of traces, on the module they were recorded on or another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from ..errors import TilewrightError
from ..nearest import did_you_mean
from .apply import Composite, apply, prepared
from .handles import Handle
from .problem import TraceError
from .record import argument, grouped, with_known
from .registry import STEPS, step_type
from .state import State
from .step import Step
from .trace import DROPPED, Argument, Group, ResultOf, Trace, TraceStep, Written


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
            excerpts=self.error.excerpts(),
        ) from self.error


def replay(state: State, trace: Trace) -> Replay:
    """Apply the steps of a trace in order, until one does not apply.

    The steps of a group are applied one by one, and are a group of the new trace as well. A step
    that is a composite step itself, as in a folded trace, is run. If the replay stops inside a
    group, the applied steps of the group are a group with the results that they computed.
    """
    if not isinstance(cast("object", state), State):
        raise TraceError(
            f"expected a State, got {type(state).__name__}",
            hint="replay on a schedule: Schedule(module).replay(trace)",
        )
    if not isinstance(cast("object", trace), Trace):
        raise TraceError(
            f"expected a Trace, got {type(trace).__name__}",
            hint="parse a text with from_python(text) or from_json(text)",
        )
    changes: list[Change] = []
    environment: list[tuple[Handle, ...]] = []
    groups = _Groups(trace, environment)
    for number, recorded in enumerate(trace.steps):
        try:
            state = groups.opened(state, number)
            applied = apply(state, _decoded(recorded, number, environment))
        except TilewrightError as error:
            state = groups.interrupted(state, number)
            return Replay(state, number, trace.steps[number:], error, tuple(changes))
        environment.append(applied.results)
        state = groups.closed(applied.state, number)
        if recorded.decisions:
            now, index = state.trace[-1].decisions, len(state.trace) - 1
            if dict(now) != dict(recorded.decisions):
                changes.append(Change(index, recorded.op, recorded.decisions, now))
    return Replay(state, len(trace), (), None, tuple(changes))


class _Groups:
    """The groups of a trace that a replay has entered and not left."""

    def __init__(self, trace: Trace, environment: list[tuple[Handle, ...]]) -> None:
        self._waiting = list(trace.groups)
        self._environment = environment
        self._entered: list[tuple[Group, State, TraceStep]] = []

    def opened(self, state: State, number: int) -> State:
        """Enter the groups that start at a step; their operands become known."""
        while self._waiting and self._waiting[0].first == number:
            group = self._waiting.pop(0)
            handles = {ref: self._handle(ref, number) for ref in group.call().operands()}
            state = with_known(state, handles.values())
            arguments = tuple((name, _renamed(v, state, handles)) for name, v in group.arguments)
            values = {k: _value(v, number, self._environment) for k, v in group.arguments}
            arguments = tuple({**dict(arguments), **_converted(state, group, values)}.items())
            call = TraceStep(group.op, arguments, decisions=group.decisions)
            self._entered.append((group, state, call))
        return state

    def closed(self, state: State, number: int) -> State:
        """Leave the groups that end with a step."""
        while self._entered and self._entered[-1][0].stop == number + 1:
            group, before, call = self._entered.pop()
            results = tuple(
                None if ref == DROPPED else self._handle(ref, number + 1) for ref in group.results
            )
            state = grouped(before, state, call, results)
        return state

    def interrupted(self, state: State, number: int) -> State:
        """Leave all groups before a step that does not apply."""
        while self._entered:
            group, before, call = self._entered.pop()
            results = tuple(
                None if ref == DROPPED or ref.step >= number else self._handle(ref, number)
                for ref in group.results
            )
            state = grouped(before, state, call, results)
        return state

    def _handle(self, ref: ResultOf, number: int) -> Handle:
        return cast("Handle", _value(ref, number, self._environment))


def _converted(state: State, group: Group, values: dict[str, object]) -> dict[str, Argument]:
    """Return arguments of a group as its composite step records them, if it accepts them.

    Python text contains symbolic terms as strings.
    """
    cls = STEPS.get(group.op)
    if cls is None or not issubclass(cls, Composite) or not cls.accepts(values):
        return {}
    try:
        step = prepared(state, cls(**values))
        return {name: argument(state, getattr(step, name)) for name in values}
    except TilewrightError:  # the composite step was changed since the trace was recorded
        return {}


def _renamed(value: Argument, state: State, handles: Mapping[ResultOf, Handle]) -> Argument:
    """Return an argument with operands of the new trace."""
    if isinstance(value, ResultOf):
        return state.known[handles[value]]
    if isinstance(value, tuple):
        return tuple(_renamed(item, state, handles) for item in value)
    return value


def _decoded(recorded: TraceStep, number: int, environment: list[tuple[Handle, ...]]) -> Step:
    cls = step_type(recorded.op)
    known = {p.name for p in cls.parameters()}
    extra = [name for name, _ in recorded.arguments if name not in known]
    if extra:
        question = did_you_mean(extra[0], known)
        raise TraceError(
            f"{recorded.op} has no parameter {extra[0]!r}" + (f"; {question}" if question else ""),
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
