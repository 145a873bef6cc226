"""The ``plan_memory`` primitive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ....ir.graph.nodes import Binding, Call, CallGraph, GraphFunc
from ....ir.graph.operators import get_operator
from ....ir.graph.plan import plan_memory
from ....ir.graph.visit import all_bindings
from ....ir.module import Module
from ...apply import Primitive, Rewrite
from ...handles import BindingRef, FunctionRef, Handle
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ..graph._functions import MAIN, PRIMITIVE, graph_problem


@primitive(family="memory", returns=FunctionRef)
@dataclass(frozen=True, slots=True)
class PlanMemory(Primitive):
    """Allocate storage for all intermediate tensors, and reuse it once their live ranges end.

    Before::

        t: Tensor[(n, 64), f32] = call_tir(f, x)
        y: Tensor[(n, 64), f32] = call_tir(g, t)

    After::

        t_storage = alloc_storage(n * 256)  # bytes
        t = view(t_storage, 0, Tensor[(n, 64), f32])
        run_f = launch(f, x, t)
        ...
        kill(t_storage)

    Parameters
    ----------
    function : FunctionRef
        The graph-level function.

    Notes
    -----
    The function moves to the memory stage. Groups of ``fuse_ops`` that only this function calls
    become part of it. An update is in place if no value in the memory of its operand is used later;
    otherwise the operand is copied, with the reason in the program. Last values of parameters are
    copied to them unless they are in place. Cost: near linear in the number of tensors.

    Names elsewhere: TVM ``relax.transform.StaticPlanBlockMemory``; Halide: none.

    References
    ----------
    Relax (ASPLOS '25), §4.3 (dynamic memory planning).

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... n = symbols("n", lower=1)
    ... @graph_func
    ... def main(x: Tensor[(n,), f32]):
    ...     a = relu(x)
    ...     b = relu(a)
    ...     return b
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> _ = sch.legalize()
    >>> _ = sch.plan_memory()
    >>> sch.module.graph("main").stage
    'memory'
    """

    class Requires(Requirement):
        """The requirements of ``plan_memory``."""

        DATAFLOW_STAGE = "the function is a graph-level function in the dataflow stage"
        LOWERED = "all operators except views are lowered, also in branches and called functions"

    function: FunctionRef = MAIN

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the stage, and that all operators except views are lowered."""
        wrong = list(graph_problem(state, self.function, self.Requires.DATAFLOW_STAGE))
        yield from wrong
        if wrong:
            return
        graph = state.module.graph(self.function.function)
        for owner, binding in _unlowered(state.module, graph):
            name = binding.right.op if isinstance(binding.right, Call) else ""
            inside = "" if owner is graph else f" in {owner.name!r}"
            where = (BindingRef(owner.name, binding.value.uid, binding.value.name),)
            yield Problem(
                self.Requires.LOWERED,
                f"{binding.value.name!r}{inside} calls operator {name}, which is not lowered",
                where,
            )

    def rewrite(self, state: State) -> Rewrite:
        """Plan the memory, and move the function to the memory stage."""
        graph = state.module.graph(self.function.function)
        planned = plan_memory(state.module, graph)
        module = _without_groups(state.module.with_functions(planned), graph)
        return Rewrite(module, (self.function,))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected function in the dataflow stage."""
        found = state.module.functions.get(selection.function)
        if isinstance(found, GraphFunc) and found.stage == "dataflow":
            yield cls(FunctionRef(selection.function))


def _without_groups(module: Module, planned: GraphFunc) -> Module:
    """Remove the groups of ``fuse_ops`` that became part of a function, and those they called."""
    inlined = set(called_graphs(planned.bindings))
    while True:
        called = {name for graph in module.graphs for name in called_graphs(graph.bindings)}
        groups = [g for g in module.graphs if g.name in inlined and PRIMITIVE in g.attributes]
        unused = [g for g in groups if g.name not in called]
        if not unused:
            return module
        inlined |= {name for group in unused for name in called_graphs(group.bindings)}
        module = module.without(*(g.name for g in unused))


def called_graphs(bindings: Sequence[Binding]) -> Iterator[str]:
    """Yield the names of the graph-level functions that bindings call."""
    for binding in all_bindings(bindings):
        if isinstance(binding.right, CallGraph):
            yield binding.right.function


def _unlowered(module: Module, graph: GraphFunc) -> Iterator[tuple[GraphFunc, Binding]]:
    """Yield the calls of operators other than views, with the function that contains each."""
    waiting, seen = [graph], {graph.name}
    while waiting:
        own = waiting.pop()
        yield from ((own, b) for b in all_bindings(own.bindings) if does_work(b))
        for name in called_graphs(own.bindings):
            callee = module.functions.get(name)
            if isinstance(callee, GraphFunc) and name not in seen:
                seen.add(name)
                waiting.append(callee)


def does_work(binding: Binding) -> bool:
    """Return whether a binding calls an operator that needs a kernel."""
    right = binding.right
    return isinstance(right, Call) and get_operator(right.op).needs_kernel
