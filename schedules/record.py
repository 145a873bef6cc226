"""Write a step down: its operands become literals or results of earlier steps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..ir.loop.nodes import IndexMap
from ..ir.symbolic import Bool, Expr, to_text
from .primitive import Rewrite, Step
from .problem import TraceError
from .queries import locate
from .refs import REF_TYPES, Move, Ref, label
from .trace import Argument, ResultOf, TraceStep, Written
from .values import Value, index_map_text

if TYPE_CHECKING:
    from .state import State


def located(state: State, step: Step) -> State:
    """Give the state in which every operand of a step is the result of a recorded step.

    Handles that no step gave yet, such as those of a click, are looked up by queries, so that
    the trace replays elsewhere.
    """
    for ref in step.refs():
        if ref not in state.known:
            for find in locate(state, ref):
                state = _written(state, find, find.run(state))
    return state


def record(state: State, step: Step, rewrite: Rewrite) -> State:
    """Give the state after a step, with the step in its trace."""
    recorded = _written(state, step, rewrite.results, rewrite)
    moves = state.moves
    if rewrite.moved:
        moves = (*moves, Move(len(state.trace), step.verb(), rewrite.moved))
    return replace(recorded, module=rewrite.module, moves=moves)


def _written(
    state: State, step: Step, results: tuple[Ref, ...], rewrite: Rewrite | None = None
) -> State:
    arguments = tuple((name, argument(state, value)) for name, value in step.chosen())
    names = tuple(label(ref) for ref in results)
    decisions = dict(rewrite.decisions) if rewrite else {}
    number = len(state.trace)
    known = dict(state.known)
    known.update({ref: ResultOf(number, k) for k, ref in enumerate(results)})
    return replace(
        state,
        trace=state.trace.appended(TraceStep(step.verb(), arguments, names, decisions)),
        results=(*state.results, results),
        known=known,
    )


def argument(state: State, value: Value) -> Argument:
    """Encode a field's value for the trace."""
    if isinstance(value, REF_TYPES):
        found = state.known.get(value)
        if found is None:
            raise TraceError(f"no step gives {label(value)!r}, so it cannot be recorded")
        return found
    if isinstance(value, tuple):
        return tuple(argument(state, item) for item in value)
    if isinstance(value, IndexMap):
        return Written("map", index_map_text(value))
    if isinstance(value, Expr | Bool):
        return Written("expr", to_text(value))
    return value
