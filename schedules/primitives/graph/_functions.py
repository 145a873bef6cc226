"""What the graph-level primitives share: finding functions, and their common requirements."""

from __future__ import annotations

from collections.abc import Iterator

from ....ir.graph.memory import Launch
from ....ir.graph.nodes import Binding, CallTIR, GraphFunc, Right, Stage
from ....ir.graph.visit import inner_bindings
from ....ir.loop.nodes import PrimFunc
from ...problem import Problem
from ...refs import BindingRef, FunctionRef
from ...state import State

MAIN = FunctionRef("main")
PRIMITIVE = ("primitive", True)
"""The attribute of a graph-level function that is to become one loop-level function."""


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


def plain_calls_problem(state: State, ref: FunctionRef, requirement: int) -> Iterator[Problem]:
    """Find fault with calls that a step which changes a kernel's parameters cannot adapt."""
    for graph in state.module.graphs:
        for binding in graph.bindings:
            reason = _entangled(binding, ref.function) or _grouped(graph, binding, ref.function)
            if reason:
                yield Problem(
                    requirement,
                    f"{binding.value.name!r} in {graph.name!r} {reason}",
                    (BindingRef(graph.name, binding.value.uid, binding.value.name),),
                )


def choosing_calls_problem(state: State, ref: FunctionRef, requirement: int) -> Iterator[Problem]:
    """Find fault with uses of a kernel that could not choose a new version of it."""
    for graph in state.module.graphs:
        for binding in graph.bindings:
            reason = _settled(binding, ref.function) or _grouped(graph, binding, ref.function)
            if reason:
                yield Problem(
                    requirement,
                    f"{binding.value.name!r} in {graph.name!r} {reason}",
                    (BindingRef(graph.name, binding.value.uid, binding.value.name),),
                )


def _settled(binding: Binding, kernel: str) -> str:
    """Say why a use of a kernel cannot be given a version any more, if it cannot."""
    right = binding.right
    match right:
        case CallTIR(versions=versions) if any(v.function == kernel for v in versions):
            return "calls it as a version of another kernel"
        case Launch() if kernel in (right.function, *(v.function for v in right.versions)):
            return "launches it in the memory stage, where buffers are laid out already"
        case _:
            inner = (b for bindings in inner_bindings(right) for b in bindings)
            return next(filter(None, (_settled(b, kernel) for b in inner)), "")


def _entangled(binding: Binding, kernel: str) -> str:
    """Say how a binding uses a kernel other than by a plain call, if it does."""
    right = binding.right
    match right:
        case CallTIR(versions=versions) if any(v.function == kernel for v in versions):
            return "calls it as a version of another kernel"
        case CallTIR(function=name, versions=versions) if name == kernel and versions:
            return "calls it with versions, which take the same arguments"
        case Launch() if kernel in (right.function, *(v.function for v in right.versions)):
            return "launches it in the memory stage, where buffers are laid out already"
        case _:
            return "calls it in a branch" if _inside(right, kernel) else ""


def _grouped(graph: GraphFunc, binding: Binding, kernel: str) -> str:
    right = binding.right
    waits = PRIMITIVE in graph.attributes
    calls = isinstance(right, CallTIR) and right.function == kernel
    return "calls it in a group that waits for fuse_tir" if waits and calls else ""


def _inside(right: Right, kernel: str) -> bool:
    """Whether a branch inside of a right-hand side uses a kernel."""
    for bindings in inner_bindings(right):
        for binding in bindings:
            inner = binding.right
            direct = isinstance(inner, CallTIR) and inner.function == kernel
            if direct or _entangled(binding, kernel):
                return True
    return False
