"""The ``plan_memory`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....ir.graph.nodes import Binding, Call, GraphFunc
from ....ir.graph.operators import get_operator
from ....ir.graph.plan import plan_memory
from ...apply import Primitive, Rewrite
from ...handles import BindingRef, FunctionRef, Handle
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ..graph._functions import MAIN, graph_problem


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
    The function moves to the memory stage. Cost: near linear in the number of tensors.

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
        LOWERED = "all operators except views are lowered"

    function: FunctionRef = MAIN

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the stage, and that all operators except views are lowered."""
        wrong = list(graph_problem(state, self.function, self.Requires.DATAFLOW_STAGE))
        yield from wrong
        if wrong:
            return
        graph = state.module.graph(self.function.function)
        for binding in filter(does_work, graph.bindings):
            name = binding.right.op if isinstance(binding.right, Call) else ""
            where = (BindingRef(graph.name, binding.value.uid, binding.value.name),)
            yield Problem(
                self.Requires.LOWERED,
                f"{binding.value.name!r} calls operator {name}, which is not lowered",
                where,
            )

    def rewrite(self, state: State) -> Rewrite:
        """Plan the memory, and move the function to the memory stage."""
        graph = state.module.graph(self.function.function)
        planned = plan_memory(state.module, graph)
        return Rewrite(state.module.with_functions(planned), (self.function,))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected function in the dataflow stage."""
        found = state.module.functions.get(selection.function)
        if isinstance(found, GraphFunc) and found.stage == "dataflow":
            yield cls(FunctionRef(selection.function))


def does_work(binding: Binding) -> bool:
    """Return whether a binding calls an operator that is more than a view."""
    right = binding.right
    return isinstance(right, Call) and not get_operator(right.op).is_view
