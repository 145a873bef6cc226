"""Recording of steps: operands become literals or results of earlier steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypedDict

from ..errors import Json
from ..ir.copies import replace
from ..ir.loop.nodes import IndexMap
from ..ir.module import Module
from ..ir.symbolic import Bool, Expr, to_text
from .block_forms import block_form, occurrence
from .handles import HANDLE_TYPES, BlockRef, Handle, Move, label
from .lookup import locate
from .problem import TraceError
from .state import State
from .step import Step
from .trace import DROPPED, Argument, Group, ResultOf, Trace, TraceStep, Written
from .values import Result, StepInt, Value, index_map_text


def located(state: State, step: Step) -> State:
    """Return the state in which every operand of a step is the result of a recorded step.

    Handles that no recorded step returned, such as those of a click, are looked up by queries, so
    that the trace replays on another module.
    """
    return with_known(state, step.handles())


def with_known(state: State, results: Iterable[Result]) -> State:
    """Return the state in which every given handle is the result of a recorded step."""
    for handle in results:
        if isinstance(handle, HANDLE_TYPES) and handle not in state.known:
            for query in locate(state, handle):
                marks = _marks(state, query.op, query.results)
                entry = _entry(state, query.op, query.values, query.results, marks)
                state = replace(state, **entry)
    return state


def recorded(
    state: State,
    step: Step,
    results: tuple[Result, ...],
    decisions: Mapping[str, Json],
    *,
    module: Module,
    moves: tuple[Move, ...],
) -> State:
    """Return the state after a step: with its module, its moves, and the step in its trace."""
    decisions = decisions or _marks(state, step.verb(), results)
    entry = _entry(state, step.verb(), step.chosen(), results, decisions)
    return replace(state, module=module, moves=moves, **entry)


def _marks(state: State, op: str, results: tuple[Result, ...]) -> Mapping[str, Json]:
    """Return marks that identify the result of a query on a program with other names."""
    if op != "get_block" or not isinstance(ref := results[0], BlockRef):
        return {}
    tree, block = state.tree(ref.function), state.block(ref)
    position = occurrence(tree, block)
    form: Mapping[str, Json] = {"form": block_form(block)}
    return {**form, "occurrence": position} if position else form


def returned(state: State, results: tuple[Result, ...]) -> tuple[Result, ...]:
    """Return the results of the next step, whose integers refer to it."""
    if not any(type(result) is int for result in results):
        return results
    number = len(state.trace)
    return tuple(StepInt(r, number, k) if type(r) is int else r for k, r in enumerate(results))


def grouped(
    before: State, state: State, call: TraceStep, results: tuple[Result | None, ...]
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
    results : tuple of Handle, int, Expr or None
        The results of the composite step; None for one that an edit removed.
    """
    state = with_known(state, (result for result in results if result is not None))
    if len(state.trace) == len(before.trace):
        return state
    found = [None if result is None else _reference(state, result) for result in results]
    known = dict(before.known)
    for result, reference in zip(results, found, strict=True):
        if reference is not None and isinstance(result, (*HANDLE_TYPES, Expr)):
            known.setdefault(result, reference)
    group = Group(
        call.op,
        call.arguments,
        len(before.trace),
        len(state.trace),
        tuple(DROPPED if reference is None else reference for reference in found),
        tuple("" if result is None else _name(result) for result in results),
        call.decisions,
    )
    return replace(state, trace=state.trace.grouped(group), known=known)


def called(before: State, step: Step) -> TraceStep:
    """Return a step as recorded in a trace, without results; its operands are known."""
    arguments = tuple((name, argument(before, value)) for name, value in step.chosen())
    return TraceStep(step.verb(), arguments)


class _Entry(TypedDict):
    """The fields of a state that record a step."""

    trace: Trace
    results: tuple[tuple[Result, ...], ...]
    known: Mapping[Handle | Expr, ResultOf]


def _entry(
    state: State,
    op: str,
    values: Iterable[tuple[str, Value]],
    results: tuple[Result, ...],
    decisions: Mapping[str, Json],
) -> _Entry:
    """Return the fields of a state with a further step in its trace."""
    arguments = tuple([(name, argument(state, value)) for name, value in values])
    names = tuple(map(_name, results))
    known = state.known
    if results:
        number = len(state.trace)
        added = {r: ResultOf(number, k) for k, r in enumerate(results) if not isinstance(r, int)}
        known = {**known, **added}
    step = TraceStep(op, arguments, names, dict(decisions))
    return {
        "trace": state.trace.appended(step), "results": (*state.results, results), "known": known,
    }  # fmt: skip


_REFERENCES: Final = (*HANDLE_TYPES, StepInt, Expr)
"""The classes of values that may be results of steps."""


def argument(state: State, value: Value) -> Argument:
    """Return a field's value as encoded in the trace.

    Raises
    ------
    TraceError
        If a handle is not the result of a recorded step.
    """
    if isinstance(value, _REFERENCES):
        found = _reference(state, value)
        if found is not None:
            return found
    if isinstance(value, tuple):
        return tuple(argument(state, item) for item in value)
    if isinstance(value, IndexMap):
        return Written("map", index_map_text(value))
    if isinstance(value, Expr | Bool):
        return Written("expr", to_text(value))
    if isinstance(value, HANDLE_TYPES):
        raise TraceError(f"{label(value)!r} is not the result of a recorded step")
    return int(value) if isinstance(value, StepInt) else value


def _reference(state: State, result: Result) -> ResultOf | None:
    """Return the recorded result that a value is, None if it is not one.

    An integer that a step of a composite step returned is one only inside of the composite step,
    unless the composite step returns it.
    """
    if not isinstance(result, StepInt):
        return None if isinstance(result, int) else state.known.get(result)
    found = ResultOf(result.step, result.index)
    if result.step >= len(state.results):
        return None
    results = state.results[result.step]
    if result.index >= len(results) or results[result.index] is not result:
        return None
    hidden = any(found.step in g and found not in g.results for g in state.trace.groups)
    return None if hidden else found


def _name(result: Result) -> str:
    """Return the printed name of a result; those of values are made unique in the text."""
    return label(result) if isinstance(result, HANDLE_TYPES) else "size"
