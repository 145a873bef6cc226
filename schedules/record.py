"""Recording of steps: operands become literals or results of earlier steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..errors import Json
from ..ir.loop.nodes import IndexMap
from ..ir.symbolic import Bool, Expr, to_text
from .handles import HANDLE_TYPES, Handle, label
from .lookup import locate
from .problem import TraceError
from .state import State
from .step import Step
from .trace import DROPPED, Argument, Group, ResultOf, TraceStep, Written
from .values import Value, index_map_text


def located(state: State, step: Step) -> State:
    """Return the state in which every operand of a step is the result of a recorded step.

    Handles that no recorded step returned, such as those of a click, are looked up by queries, so
    that the trace replays on another module.
    """
    return with_known(state, step.handles())


def with_known(state: State, handles: Iterable[Handle]) -> State:
    """Return the state in which every given handle is the result of a recorded step."""
    for handle in handles:
        if handle not in state.known:
            for query in locate(state, handle):
                state = _appended(state, query.op, query.values, query.results, {})
    return state


def recorded(
    state: State, step: Step, results: tuple[Handle, ...], decisions: Mapping[str, Json]
) -> State:
    """Return the state with a step appended to its trace; the module is not changed."""
    return _appended(state, step.verb(), step.chosen(), results, decisions)


def grouped(
    before: State, state: State, call: TraceStep, results: tuple[Handle | None, ...]
) -> State:
    """Return a state with all steps since another one as one group.

    Without steps since, there is no group. After the group, its steps' results are unknown unless
    they are results of the group: later steps look them up again, so that the group can be replaced
    by the composite step.

    Parameters
    ----------
    before : State
        The state before the first step of the group.
    state : State
        The state after the last step.
    call : TraceStep
        The composite step, as returned by :func:`called`.
    results : tuple of Handle or None
        The results of the composite step; None for one that an edit removed.
    """
    state = with_known(state, (handle for handle in results if handle is not None))
    if len(state.trace) == len(before.trace):
        return state
    known = dict(before.known)
    for handle in results:
        if handle is not None:
            known.setdefault(handle, state.known[handle])
    group = Group(
        call.op,
        call.arguments,
        len(before.trace),
        len(state.trace),
        tuple(DROPPED if handle is None else known[handle] for handle in results),
        tuple("" if handle is None else label(handle) for handle in results),
        call.decisions,
    )
    return replace(state, trace=state.trace.grouped(group), known=known)


def called(before: State, step: Step) -> TraceStep:
    """Return a step as recorded in a trace, without results; its operands are known."""
    arguments = tuple((name, argument(before, value)) for name, value in step.chosen())
    return TraceStep(step.verb(), arguments)


def _appended(
    state: State,
    op: str,
    values: Iterable[tuple[str, Value]],
    results: tuple[Handle, ...],
    decisions: Mapping[str, Json],
) -> State:
    arguments = tuple((name, argument(state, value)) for name, value in values)
    names = tuple(label(handle) for handle in results)
    number = len(state.trace)
    known = dict(state.known)
    known.update({handle: ResultOf(number, k) for k, handle in enumerate(results)})
    return replace(
        state,
        trace=state.trace.appended(TraceStep(op, arguments, names, dict(decisions))),
        results=(*state.results, results),
        known=known,
    )


def argument(state: State, value: Value) -> Argument:
    """Return a field's value as encoded in the trace.

    Raises
    ------
    TraceError
        If a handle is not the result of a recorded step.
    """
    if isinstance(value, HANDLE_TYPES):
        found = state.known.get(value)
        if found is None:
            raise TraceError(f"{label(value)!r} is not the result of a recorded step")
        return found
    if isinstance(value, tuple):
        return tuple(argument(state, item) for item in value)
    if isinstance(value, IndexMap):
        return Written("map", index_map_text(value))
    if isinstance(value, Expr | Bool):
        return Written("expr", to_text(value))
    return value
