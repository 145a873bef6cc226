"""Decide where every intermediate tensor lives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....ir.graph.nodes import Binding, Call, GraphFunc
from ....ir.graph.operators import get_operator
from ....ir.graph.plan import plan_memory
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import BindingRef, FunctionRef, Ref
from ...state import State
from ..graph._functions import MAIN, graph_problem


@primitive(family="memory", returns=FunctionRef)
@dataclass(frozen=True, slots=True)
class PlanMemory(Primitive):
    """Order a graph, give its tensors storage, and reuse storage whose content is dead.

    Before::

        t = call_tir(f, (x,), out=f32[n, 64]); y = call_tir(g, (t,), out=f32[n, 64])
    After::

        s = alloc_storage(256 * n)
        t = tensor(s, 0, f32[n, 64])
        launch(f, (x, t))
        ...
        kill(s)

    Parameters
    ----------
    function : FunctionRef
        The graph-level function.

    Requires
    --------
    1. The function is a graph-level function in the dataflow stage.
    2. Every operator that does work is lowered.

    Notes
    -----
    Cost: near linear in the number of tensors. Source: Relax §4.3 (dynamic memory planning).
    """

    function: FunctionRef = MAIN

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the stage, and that only views are left as operators."""
        wrong = list(graph_problem(state, self.function, 1))
        yield from wrong
        if wrong:
            return
        graph = state.module.graph(self.function.function)
        for binding in filter(does_work, graph.bindings):
            name = binding.right.op if isinstance(binding.right, Call) else ""
            where = (BindingRef(graph.name, binding.value.uid, binding.value.name),)
            yield Problem(2, f"{binding.value.name!r} still calls the operator {name}", where)

    def rewrite(self, state: State) -> Rewrite:
        """Plan, and move the function to the memory stage."""
        graph = state.module.graph(self.function.function)
        planned = plan_memory(state.module, graph)
        return Rewrite(state.module.with_functions(planned), (self.function,))

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """Suggest it for a selected graph that is ready."""
        found = state.module.functions.get(selection.function)
        if isinstance(found, GraphFunc) and found.stage == "dataflow":
            yield cls(FunctionRef(selection.function))


def does_work(binding: Binding) -> bool:
    """Whether a binding calls an operator that is more than a view."""
    right = binding.right
    return isinstance(right, Call) and not get_operator(right.op).is_view
