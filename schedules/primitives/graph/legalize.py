"""The ``legalize`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.graph.nodes import Binding, Branch, Call, CallTIR, GraphFunc, IfElse, Rhs
from ....ir.graph.operators import get_operator, lower_call
from ....ir.symbolic import Facts
from ...apply import Primitive, Rewrite
from ...handles import FunctionRef, Handle
from ...kernels import KernelCall, KernelTable, add_origins, generalize
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ._functions import MAIN, graph_problem


@primitive(family="graph", returns=tuple[FunctionRef, ...])
@dataclass(frozen=True, slots=True)
class Legalize(Primitive):
    """Lower every operator of a function to a call of a loop-level function.

    Before::

        y = matmul(x, w)

    After::

        y: Tensor[(n, 64), f32] = call_tir(matmul, x, w)

    Parameters
    ----------
    function : FunctionRef
        The graph-level function.

    Notes
    -----
    Views remain operators until memory planning, which removes them. Structurally equal loop-level
    functions are added once. The results are the handles of the new functions. Cost: linear in the
    size of the graph.

    Names elsewhere: TVM ``relax.transform.LegalizeOps``; Halide: none.

    References
    ----------
    Relax (ASPLOS '25), §4.6 (partial lowering).

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
    >>> [f.function for f in sch.legalize()]
    ['exp', 'relu']
    """

    class Requires(Requirement):
        """The requirements of ``legalize``."""

        DATAFLOW_STAGE = "the function is a graph-level function in the dataflow stage"

    function: FunctionRef = MAIN

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the level and the stage of the function."""
        yield from graph_problem(state, self.function, self.Requires.DATAFLOW_STAGE)

    def rewrite(self, state: State) -> Rewrite:
        """Lower each operator call."""
        graph = state.module.graph(self.function.function)
        table = KernelTable(state.module)
        known = set(state.module.functions)
        bindings = tuple(_legalized(b, table, graph.facts) for b in graph.bindings)
        module = table.module().with_functions(replace(graph, bindings=bindings))
        made = [n for n in module.functions if n not in known]
        return Rewrite(module, tuple(FunctionRef(n) for n in made))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected graph with operators to lower."""
        found = state.module.functions.get(selection.function)
        if isinstance(found, GraphFunc) and any(map(_needs_lowering, found.bindings)):
            yield cls(FunctionRef(selection.function))


def _needs_lowering(binding: Binding) -> bool:
    right = binding.right
    return isinstance(right, Call) and not get_operator(right.op).is_view


def _legalized(binding: Binding, table: KernelTable, facts: Facts) -> Binding:
    return replace(binding, right=_lowered(binding, table, facts))


def _lowered(binding: Binding, table: KernelTable, facts: Facts) -> Rhs:
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
    kernel = generalize(KernelCall(add_origins(lowered.function, origins), lowered.scalars))
    name = table.add(kernel.function)
    return CallTIR(name, lowered.args, lowered.outputs, kernel.scalars)


def _branch(branch: Branch, table: KernelTable, facts: Facts) -> Branch:
    return replace(branch, bindings=tuple(_legalized(b, table, facts) for b in branch.bindings))
