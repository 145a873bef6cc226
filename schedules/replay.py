"""Replay of traces, on the module they were recorded on or another."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from ..errors import TilewrightError
from ..nearest import did_you_mean
from .apply import Composite, Query, apply, prepared
from .prefix_memo import PrefixMemo, step_keys
from .problem import TraceError
from .record import argument, grouped, with_known
from .registry import STEPS, step_type
from .renaming import Renamed, adapted, checked_names
from .state import State
from .step import Step
from .trace import DROPPED, EDITED, Argument, Group, ResultOf, Trace, TraceStep, Written
from .values import Result

_Environment: TypeAlias = "list[tuple[Result, ...] | None]"
"""The results of the steps so far; None for a step that was skipped."""


_Entered: TypeAlias = "tuple[tuple[Group, State, TraceStep], ...]"
_Outcome: TypeAlias = (
    "tuple[State, tuple[Result, ...], _Entered, tuple[Change, ...], tuple[Renamed, ...]]"
)
"""The state after a step of a replay, its results, and its changes and renamed lookups so far."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Skipped:
    """A step of a trace that a replay did not apply.

    Parameters
    ----------
    step : int
        The number of the step in the replayed trace.
    op : str
        The name of the step.
    error : TilewrightError
        The reason.
    """

    step: int
    op: str
    error: TilewrightError

    def __str__(self) -> str:
        """Return the step with the reason."""
        return f"step {self.step} ({self.op}) does not apply: {self.error.message}"


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
    renamed : tuple of Renamed
        Lookups that found a part of another name than the recorded one.
    skipped : tuple of Skipped
        The steps that do not apply, if the replay continued after them.
    versions : tuple of (int, State)
        The requested states, with the number of steps of the trace before each.
    """

    state: State
    done: int
    pending: tuple[TraceStep, ...]
    error: TilewrightError | None
    changes: tuple[Change, ...]
    renamed: tuple[Renamed, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    versions: tuple[tuple[int, State], ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all steps applied."""
        return not self.pending and not self.skipped

    def __repr__(self) -> str:
        """Return the number of applied steps, and the error of the first pending one."""
        count = self.done + len(self.pending) + len(self.skipped)
        steps = f"{self.done} of {count} steps applied"
        if self.error is None:
            return f"Replay({steps})"
        return f"Replay({steps}; then {self.pending[0].op}: {self.error.message})"

    def __str__(self) -> str:
        """Return the number of applied steps, and each step that did not apply with the reason."""
        lines = [repr(self)[len("Replay(") : -1]]
        lines += [str(item) for item in (*self.renamed, *self.skipped, *self.changes)]
        return "\n".join(lines)

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


def replay(
    state: State,
    trace: Trace,
    *,
    names: Mapping[str, str] | None = None,
    skip: bool = False,
    memo: PrefixMemo | None = None,
    versions: Collection[int] = (),
) -> Replay:
    """Apply the steps of a trace in order, until one does not apply.

    The steps of a group are applied one by one, and are a group of the new trace as well. A step
    that is a composite step itself, as in a folded trace, is run. If the replay stops inside a
    group, the applied steps of the group are a group with the results that they computed.

    Parameters
    ----------
    state : State
        The program to apply the steps to.
    trace : Trace
        The steps.
    names : mapping of str to str, optional
        The names in this program of parts that the trace looks up by another name.
    skip : bool
        True to continue after a step that does not apply, without the steps that use its results.
    memo : PrefixMemo, optional
        The states after the first steps of earlier replays from the same state.
    versions : collection of int
        The numbers of steps after which the state is part of the outcome, except inside groups.
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
    known, module = checked_names(names), state.module
    changes: list[Change] = []
    renamed: list[Renamed] = []
    skipped: list[Skipped] = []
    environment: _Environment = []
    groups = _Groups(trace, environment, versions)
    prefix: Hashable = (state, tuple(sorted(known.items())))
    keys = None if memo is None else step_keys(trace)
    for number, recorded in enumerate(trace.steps):
        if memo is not None and keys is not None and (hit := memo.get(prefix, keys[number])):
            state, results, entered, made, found = cast("_Outcome", hit.outcome)
            prefix = hit
            environment.append(results)
            groups.restore(entered, number, state)
            changes[:], renamed[:] = made, found
            continue
        try:
            state = groups.opened(state, number)
            step = _decoded(recorded, number, environment)
            new = adapted(state, recorded, step, known, renamed=renamed, module=module)
            applied = apply(state, new)
        except TilewrightError as error:
            if not skip:
                state = groups.interrupted(state, number)
                pending = trace.steps[number:]
                rest = (tuple(changes), tuple(renamed), (), tuple(groups.versions))
                return Replay(state, number, pending, error, *rest)
            skipped.append(Skipped(number, recorded.op, error))
            environment.append(None)
            state = groups.closed(state, number)
            continue
        environment.append(applied.results)
        if new is not step:
            pair = (cast("Any", x).name for x in (step, new))
            renamed.append(Renamed(number, recorded.op, *pair))
        state = groups.closed(applied.state, number)
        if recorded.decisions and not isinstance(step, Query):
            now, index = state.trace[-1].decisions, len(state.trace) - 1
            if dict(now) != dict(recorded.decisions):
                changes.append(Change(index, recorded.op, recorded.decisions, now))
        if memo is not None and keys is not None and not skipped:
            outcome = (state, applied.results, groups.entered, (*changes,), (*renamed,))
            prefix = memo.add(prefix, keys[number], *outcome)
        else:
            keys = None
    done = len(trace) - len(skipped)
    rest = (tuple(changes), tuple(renamed), tuple(skipped), tuple(groups.versions))
    return Replay(state, done, (), None, *rest)


class _Groups:
    """The groups of a trace that a replay has entered and not left."""

    def __init__(self, trace: Trace, environment: _Environment, requested: Collection[int]) -> None:
        self.versions: list[tuple[int, State]] = []
        self._requested = requested
        self._trace = trace
        self._waiting = list(trace.groups)
        self._environment = environment
        self._entered: list[tuple[Group, State, TraceStep]] = []

    @property
    def entered(self) -> _Entered:
        """The groups that are entered, with the state before each."""
        return tuple(self._entered)

    def restore(self, entered: _Entered, number: int, state: State) -> None:
        """Set the groups that are entered after a step to those of another trace's prefix."""
        groups = self._trace.groups
        own = [g for g in groups if g.first <= number and g.stop > number + 1]
        self._entered[:] = [
            (group, before, replace(call, decisions=group.decisions))
            for group, (_, before, call) in zip(own, entered, strict=True)
        ]
        self._waiting[:] = [g for g in groups if g.first > number]
        self._record(state, number)

    def opened(self, state: State, number: int) -> State:
        """Enter the groups that start at a step; their operands become known."""
        while self._waiting and self._waiting[0].first == number:
            group = self._waiting.pop(0)
            operands = group.call().operands()
            if any(self._skipped(ref) for ref in operands):
                continue  # its steps are applied without the group
            handles = {ref: self._handle(ref, number) for ref in operands}
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
            state = grouped(
                before,
                state,
                _marked(call, group, self._environment),
                tuple(
                    None
                    if ref == DROPPED or self._environment[ref.step] is None
                    else self._handle(ref, number + 1)
                    for ref in group.results
                ),
            )
        self._record(state, number)
        return state

    def _record(self, state: State, number: int) -> None:
        """Keep the state after a step if it is requested and no group is entered."""
        if number + 1 in self._requested and not self._entered:
            self.versions.append((number + 1, state))

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

    def _skipped(self, ref: ResultOf) -> bool:
        return 0 <= ref.step < len(self._environment) and self._environment[ref.step] is None

    def _handle(self, ref: ResultOf, number: int) -> Result:
        return cast("Result", _value(ref, number, self._environment))


def _marked(call: TraceStep, group: Group, environment: _Environment) -> TraceStep:
    """Return a group's call; if one of its steps was skipped, it is marked as edited."""
    if None not in environment[group.first : group.stop]:
        return call
    return replace(call, decisions={**call.decisions, EDITED: True})


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


def _renamed(value: Argument, state: State, handles: Mapping[ResultOf, Result]) -> Argument:
    """Return an argument with operands of the new trace."""
    if isinstance(value, ResultOf):
        return argument(state, handles[value])
    if isinstance(value, tuple):
        return tuple(_renamed(item, state, handles) for item in value)
    return value


def _decoded(recorded: TraceStep, number: int, environment: _Environment) -> Step:
    cls = step_type(recorded.op)
    names = [name for name, _ in recorded.arguments]
    if not cls.accepts(names):
        raise _mismatched(cls, recorded.op, names)
    values = {name: _value(v, number, environment) for name, v in recorded.arguments}
    return cls(**values)


def _mismatched(cls: type[Step], op: str, names: Collection[str]) -> TraceError:
    """Return the error for arguments whose names do not create a step."""
    known = {p.name for p in cls.parameters()}
    extra = next((name for name in names if name not in known), None)
    if extra is None:
        absent = min({p.name for p in cls.parameters() if p.required} - set(names))
        return TraceError(f"{op} lacks parameter {absent!r}")
    question = did_you_mean(extra, known)
    return TraceError(
        f"{op} has no parameter {extra!r}" + (f"; {question}" if question else ""),
        hint=f"its parameters are {', '.join(sorted(known))}",
    )


def _value(value: Argument, number: int, environment: _Environment) -> object:
    match value:
        case ResultOf(step=step, index=index):
            if not 0 <= step < number:
                raise TraceError(f"step {number} uses the result of a step that was dropped")
            results = environment[step]
            if results is None:
                raise TraceError(f"step {number} uses a result of step {step}, which was skipped")
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
