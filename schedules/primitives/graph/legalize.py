"""Lower operators to loop-level functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.graph.nodes import Binding, Branch, Call, CallTIR, GraphFunc, IfElse, Right
from ....ir.graph.operators import get_operator, lower_call
from ....ir.symbolic import Facts
from ...kernels import Kernel, KernelTable, add_origins, generalise
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import FunctionRef, Ref
from ...state import State
from ._functions import MAIN, graph_problem


@primitive(family="graph", returns=tuple[FunctionRef, ...])
@dataclass(frozen=True, slots=True)
class Legalize(Primitive):
    """Replace every operator of a function by a call of its loop-level definition.

    Before::

        y = matmul(x, w)
    After::

        y = call_tir(matmul, (x, w), out=f32[n, 64])
    with ``matmul`` a loop-level function of the module. Operators that only view the same bytes
    under another shape stay: memory planning gives them no work to do. Equal definitions are
    added once.

    Parameters
    ----------
    function : FunctionRef
        The graph-level function.

    Requires
    --------
    1. The function is a graph-level function in the dataflow stage.

    Notes
    -----
    Cost: none at run time. Source: Relax §4.6, "partial lowering".
    """

    function: FunctionRef = MAIN

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the function's level and stage."""
        yield from graph_problem(state, self.function, 1)

    def rewrite(self, state: State) -> Rewrite:
        """Lower call by call."""
        graph = state.module.graph(self.function.function)
        table = KernelTable(state.module)
        known = set(state.module.functions)
        bindings = tuple(_legalized(b, table, graph.facts) for b in graph.bindings)
        module = table.module().with_functions(replace(graph, bindings=bindings))
        made = [n for n in module.functions if n not in known]
        return Rewrite(module, tuple(FunctionRef(n) for n in made))

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """Suggest it where the selected graph still calls operators."""
        found = state.module.functions.get(selection.function)
        if isinstance(found, GraphFunc) and any(map(_needs_lowering, found.bindings)):
            yield cls(FunctionRef(selection.function))


def _needs_lowering(binding: Binding) -> bool:
    right = binding.right
    return isinstance(right, Call) and not get_operator(right.op).is_view


def _legalized(binding: Binding, table: KernelTable, facts: Facts) -> Binding:
    return replace(binding, right=_lowered(binding, table, facts))


def _lowered(binding: Binding, table: KernelTable, facts: Facts) -> Right:
    right = binding.right
    if isinstance(right, IfElse):
        return replace(
            right,
            then=_branch(right.then, table, facts),
            otherwise=_branch(right.otherwise, table, facts),
        )
    if not isinstance(right, Call) or not _needs_lowering(binding):
        return right
    lowered = lower_call(right, binding.value.info, right.op, facts)
    origins = binding.origins | {binding.value.name}
    kernel = generalise(Kernel(add_origins(lowered.function, origins), lowered.scalars))
    name = table.add(kernel.function)
    return CallTIR(name, lowered.args, lowered.outputs, kernel.scalars)


def _branch(branch: Branch, table: KernelTable, facts: Facts) -> Branch:
    return replace(branch, bindings=tuple(_legalized(b, table, facts) for b in branch.bindings))
