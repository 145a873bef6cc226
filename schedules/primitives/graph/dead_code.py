"""The ``dead_code`` primitive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ....ir.graph.effects import has_effect
from ....ir.graph.nodes import (
    Binding,
    CallGraph,
    CallTIR,
    ConstantRef,
    GraphFunc,
    LaunchKernel,
    Value,
)
from ....ir.graph.regions import map_regions
from ....ir.graph.visit import all_bindings, used_operands, used_values
from ....ir.module import Module
from ...apply import Primitive, Rewrite
from ...handles import BindingRef, FunctionRef, Handle, Removed
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ._functions import MAIN, PRIMITIVE, graph_problem


@primitive(family="graph")
@dataclass(frozen=True, slots=True)
class DeadCode(Primitive):
    """Eliminate bindings, functions and constants that no result depends on.

    Before::

        t = exp(x)
        y = add(x, x)
        return y

    After::

        y = add(x, x)
        return y

    Parameters
    ----------
    function : FunctionRef
        The graph-level function.

    Notes
    -----
    Bindings with effects remain: run-time checks, and calls of library functions that have effects
    or are not registered, also inside of branches and loops. An unused loop without them is
    removed, even if it would not end. An update is dead if
    its value is not used and is not the last value of a parameter. Functions and constants are
    removed if they are unreachable from every graph that no function called before the step.
    Cost: linear in the size of the module.

    Names elsewhere: TVM ``relax.transform.DeadCodeElimination``; Halide: none.

    References
    ----------
    Relax (ASPLOS '25), §4 (dead code elimination).

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @graph_func
    ... def main(x: Tensor[(32,), f32]):
    ...     t = exp(x)
    ...     y = relu(x)
    ...     return y
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.dead_code()
    >>> print(sch)
    @graph_func
    def main(x: Tensor[(32,), f32]):
        y: Tensor[(32,), f32] = relu(x)
        return y
    """

    class Requires(Requirement):
        """The requirements of ``dead_code``."""

        DATAFLOW_STAGE = "the function is a graph-level function in the dataflow stage"

    function: FunctionRef = MAIN

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the level and the stage of the function."""
        yield from graph_problem(state, self.function, self.Requires.DATAFLOW_STAGE)

    def rewrite(self, state: State) -> Rewrite:
        """Keep the live bindings, found backward from the results."""
        graph = state.module.graph(self.function.function)
        moved: dict[Handle, tuple[Handle, ...] | Removed] = {}

        def live_bindings(region: GraphFunc) -> tuple[Binding, ...]:
            live = {r for r in region.returned if isinstance(r, Value)}
            kept: list[Binding] = []
            for binding in reversed(region.bindings):
                if binding.value in live or has_effect(state.module, binding):
                    kept.append(binding)
                    live.update(used_values((binding,)))
                    continue
                for removed in all_bindings((binding,)):
                    ref = BindingRef(graph.name, removed.value.uid)
                    moved[ref] = Removed("removed the unused binding")
            return tuple(reversed(kept))

        bindings = map_regions(graph, live_bindings)
        module = state.module.with_functions(replace(graph, bindings=bindings))
        return Rewrite(without_unreachable(module, uncalled(state.module)), moved=moved)

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected graph."""
        if isinstance(state.module.functions.get(selection.function), GraphFunc):
            yield cls(FunctionRef(selection.function))


def _called(bindings: tuple[Binding, ...]) -> Iterator[str]:
    """Yield the names of the functions that bindings call, including those inside branches."""
    for binding in all_bindings(bindings):
        right = binding.right
        if isinstance(right, CallTIR | CallGraph | LaunchKernel):
            yield right.function
        if isinstance(right, CallTIR | LaunchKernel):
            yield from (v.function for v in right.versions)


def uncalled(module: Module) -> tuple[str, ...]:
    """Return the graph-level functions that no function calls.

    A group of ``fuse_ops`` is a part of the functions that call it.
    """
    callees = {name for g in module.graphs for name in _called(g.bindings)}
    own = (g for g in module.graphs if PRIMITIVE not in g.attributes)
    return tuple(g.name for g in own if g.name not in callees)


def without_unreachable(module: Module, entries: Sequence[str]) -> Module:
    """Remove functions that are unreachable from entry points, and unused constants.

    The entry points are those before the step: a function that becomes uncalled is not one.
    """
    called = {g.name: list(_called(g.bindings)) for g in module.graphs}
    work = list(entries)
    if not work:
        return module
    reached: set[str] = set()
    constants: set[str] = set()
    while work:
        name = work.pop()
        if name in reached:
            continue
        reached.add(name)
        work.extend(called.get(name, ()))
        graph = module.functions.get(name)
        if isinstance(graph, GraphFunc):
            initial = (p.initial for p in graph.params if p.initial is not None)
            operands = (*used_operands(graph.bindings), *graph.returned, *initial)
            constants.update(o.key for o in operands if isinstance(o, ConstantRef))
    kept = module.without(*(n for n in module.functions if n not in reached))
    return replace(kept, constants={k: c for k, c in module.constants.items() if k in constants})
