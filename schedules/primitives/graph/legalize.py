"""The ``legalize`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.graph.in_place_updates import InPlaceUpdates
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
    functions are added once. An operator that replaces some elements of a state or inout parameter
    becomes an update of this argument if its old value is not used later. The results are the
    handles of the new functions. Cost: linear in the size of the graph.

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
        legalization = _Legalization(table, graph.facts, InPlaceUpdates(graph))
        bindings = tuple(map(legalization.binding, graph.bindings))
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


@dataclass(frozen=True, slots=True)
class _Legalization:
    """The lowering of the operators of one function."""

    table: KernelTable
    facts: Facts
    decisions: InPlaceUpdates

    def binding(self, binding: Binding) -> Binding:
        """Lower an operator, or the operators in branches."""
        return replace(binding, right=self._lowered(binding))

    def _lowered(self, binding: Binding) -> Rhs:
        right = binding.right
        if isinstance(right, IfElse):
            sides = self._branch(right.then), self._branch(right.otherwise)
            return replace(right, then=sides[0], otherwise=sides[1])
        if not isinstance(right, Call) or not _needs_lowering(binding):
            return right
        in_place = self.decisions.in_place(binding.value)
        info = binding.value.info
        lowered = lower_call(right, info, right.op, self.facts, in_place=in_place)
        origins = binding.origins | {binding.value.name}
        kernel = generalize(KernelCall(add_origins(lowered.function, origins), lowered.scalars))
        name = self.table.add(kernel.function)
        return CallTIR(name, lowered.args, lowered.outputs, kernel.scalars, updates=lowered.updates)

    def _branch(self, branch: Branch) -> Branch:
        return replace(branch, bindings=tuple(map(self.binding, branch.bindings)))
