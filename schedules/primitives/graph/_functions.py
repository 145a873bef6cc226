"""What the graph-level primitives share: finding functions, and their common requirements."""

from __future__ import annotations

from collections.abc import Iterator

from ....ir.graph.nodes import GraphFunc, Stage
from ....ir.loop.nodes import PrimFunc
from ...problem import Problem
from ...refs import FunctionRef
from ...state import State

MAIN = FunctionRef("main")


def graph_problem(
    state: State, ref: FunctionRef, requirement: int, stage: Stage = "dataflow"
) -> Iterator[Problem]:
    """Find fault with a function that is not a graph in the wanted stage."""
    found = state.module.functions.get(ref.function)
    if not isinstance(found, GraphFunc):
        graphs = ", ".join(f.name for f in state.module.graphs) or "none"
        yield Problem(
            requirement,
            f"{ref.function!r} is a loop-level function; graph-level functions are {graphs}",
            (ref,),
        )
    elif found.stage != stage:
        yield Problem(
            requirement,
            f"{ref.function!r} is in the {found.stage} stage, this step needs the {stage} stage",
            (ref,),
        )


def prim_problem(state: State, ref: FunctionRef, requirement: int) -> Iterator[Problem]:
    """Find fault with a function that is not loop-level."""
    if not isinstance(state.module.functions.get(ref.function), PrimFunc):
        yield Problem(requirement, f"{ref.function!r} is a graph-level function", (ref,))


def prim_named(state: State, ref: FunctionRef) -> PrimFunc:
    """Give the loop-level function of a handle that was checked."""
    return state.module.prim(ref.function)
