"""Requirements of graph-level primitives."""

from __future__ import annotations

from collections.abc import Iterator

from ....ir.graph.nodes import Binding, CallTIR, GraphFunc, LaunchKernel, Stage
from ....ir.graph.visit import all_bindings
from ....ir.loop.nodes import PrimFunc
from ...handles import BindingRef, FunctionRef
from ...problem import Problem
from ...requirement import Requirement
from ...state import State

MAIN = FunctionRef("main")
PRIMITIVE = ("primitive", True)
"""The attribute of a graph-level function that ``fuse_tir`` replaces by one kernel."""


def graph_problem(
    state: State, ref: FunctionRef, requirement: Requirement, stage: Stage = "dataflow"
) -> Iterator[Problem]:
    """Yield a problem if a function is not a graph-level function in a stage."""
    found = state.module.functions.get(ref.function)
    if not isinstance(found, GraphFunc):
        names = ", ".join(f.name for f in state.module.graphs)
        graphs = f"graph-level functions are {names}" if names else "the module has no others"
        yield Problem(
            requirement,
            f"{ref.function!r} is a loop-level function; {graphs}",
            (ref,),
        )
    elif found.stage != stage:
        yield Problem(
            requirement,
            f"{ref.function!r} is in the {found.stage} stage; expected the {stage} stage",
            (ref,),
        )


def prim_problem(state: State, ref: FunctionRef, requirement: Requirement) -> Iterator[Problem]:
    """Yield a problem if a function is not a loop-level function."""
    if not isinstance(state.module.functions.get(ref.function), PrimFunc):
        yield Problem(requirement, f"{ref.function!r} is not a loop-level function", (ref,))


def plain_calls_problem(
    state: State, ref: FunctionRef, requirement: Requirement
) -> Iterator[Problem]:
    """Yield a problem for each call that cannot be adapted to new parameters of a kernel."""
    for graph in state.module.graphs:
        for binding in all_bindings(graph.bindings):
            reason = _call_obstacle(binding, ref.function) or _group_obstacle(
                graph, binding, ref.function
            )
            if reason:
                yield Problem(
                    requirement,
                    f"{binding.value.name!r} in {graph.name!r} {reason}",
                    (BindingRef(graph.name, binding.value.uid, binding.value.name),),
                )


def choosing_calls_problem(
    state: State, ref: FunctionRef, requirement: Requirement
) -> Iterator[Problem]:
    """Yield a problem for each use of a kernel that cannot choose a new version of it."""
    for graph in state.module.graphs:
        for binding in all_bindings(graph.bindings):
            reason = _version_obstacle(binding, ref.function) or _group_obstacle(
                graph, binding, ref.function
            )
            if reason:
                yield Problem(
                    requirement,
                    f"{binding.value.name!r} in {graph.name!r} {reason}",
                    (BindingRef(graph.name, binding.value.uid, binding.value.name),),
                )


def _version_obstacle(binding: Binding, kernel: str) -> str:
    """Return why no version can be added to a use of a kernel, or an empty string."""
    right = binding.right
    match right:
        case CallTIR(versions=versions) if any(v.function == kernel for v in versions):
            return f"calls {kernel!r} as a version of another kernel"
        case LaunchKernel() if kernel in (right.function, *(v.function for v in right.versions)):
            return f"launches {kernel!r} in the memory stage"
        case _:
            return ""


def _call_obstacle(binding: Binding, kernel: str) -> str:
    """Return how a binding uses a kernel other than by a plain call, or an empty string."""
    right = binding.right
    match right:
        case CallTIR(versions=versions) if any(v.function == kernel for v in versions):
            return f"calls {kernel!r} as a version of another kernel"
        case CallTIR(function=name, versions=versions) if name == kernel and versions:
            return f"calls {kernel!r} with versions, which must have the same parameters"
        case LaunchKernel() if kernel in (right.function, *(v.function for v in right.versions)):
            return f"launches {kernel!r} in the memory stage"
        case _:
            return ""


def _group_obstacle(graph: GraphFunc, binding: Binding, kernel: str) -> str:
    right = binding.right
    in_group = PRIMITIVE in graph.attributes
    calls = isinstance(right, CallTIR) and right.function == kernel
    return f"calls {kernel!r} in a group of fuse_ops" if in_group and calls else ""
