"""The ``legalize`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis.entry_checks import with_entry_checks
from ....ir.graph.appends import APPEND, append_axis
from ....ir.graph.in_place_updates import InPlaceUpdates
from ....ir.graph.nodes import Binding, Call, CallDPSLibrary, CallTIR, GraphFunc, Info, TensorInfo
from ....ir.graph.operators import LoweredGraph, get_operator, lower_call
from ....ir.graph.visit import all_bindings
from ....ir.identity import UidSource
from ....ir.symbolic import Bool
from ...apply import Primitive, Rewrite
from ...handles import FunctionRef, Handle
from ...kernels import KernelCall, KernelTable, add_origins, generalize
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ._functions import MAIN, graph_problem
from ._operator_calls import OperatorCalls


@primitive(family="graph", returns=tuple[FunctionRef, ...])
@dataclass(frozen=True, slots=True)
class Legalize(Primitive):
    """Lower every operator of a function to a call of a loop-level function or of a library.

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
    functions are added once. An operator without a definition in loop-level IR, such as ``sort``,
    is replaced by bindings that call libraries and other operators, and the sizes of its results
    may become known. An operator that replaces some elements of a state or inout parameter becomes
    an update of this argument if its old value is not used later. A concatenation to a carried
    value of a loop, whose next value it is, becomes a call of ``std.append``, for which memory
    planning copies the new elements alone. The results are the handles of
    the new functions. Cost: linear in the size of the graph.

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
        legalization = _Legalization(table, graph, UidSource(state.ordinal))
        lowered = legalization.function()
        module = table.module().with_functions(lowered)
        made = [n for n in module.functions if n not in known]
        return Rewrite(module, tuple(FunctionRef(n) for n in made))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected graph with operators to lower."""
        found = state.module.functions.get(selection.function)
        if isinstance(found, GraphFunc) and any(map(_needs_lowering, all_bindings(found.bindings))):
            yield cls(FunctionRef(selection.function))


def _needs_lowering(binding: Binding) -> bool:
    right = binding.right
    return isinstance(right, Call) and get_operator(right.op).needs_kernel


def _appended(call: Call, info: Info, axis: int) -> CallDPSLibrary:
    """Return the concatenation of a carried value of a loop, which grows in its block."""
    if not isinstance(info, TensorInfo):
        raise TypeError("a concatenation returns a tensor")
    return CallDPSLibrary(APPEND, call.args, (replace(info, elements=None),), (("axis", axis),))


class _Legalization(OperatorCalls):
    """The lowering of the operators of one function."""

    def __init__(self, table: KernelTable, graph: GraphFunc, mint: UidSource) -> None:
        super().__init__(graph, mint)
        self.table = table
        self.decisions = InPlaceUpdates(graph)

    def call(self, binding: Binding, call: Call) -> Iterator[Binding]:
        """Lower a call."""
        unproved: list[Bool] = []
        yield from self.required(binding, call, unproved)
        if not _needs_lowering(binding):
            yield binding
            return
        axis = append_axis(call)
        if axis is not None and self.decisions.grows(binding.value):
            yield replace(binding, right=_appended(call, binding.value.info, axis))
            return
        in_place = self.decisions.in_place(binding.value)
        info, name = binding.value.info, call.op
        lowered = lower_call(call, info, name, self.facts, in_place=in_place)
        if isinstance(lowered, LoweredGraph):
            for inner in self.inserted(binding, lowered):
                yield from self.bindings((inner,))
            return
        origins = binding.origins | {binding.value.name}
        kernel = generalize(KernelCall(add_origins(lowered.function, origins), lowered.scalars))
        function = with_entry_checks(kernel.function) if unproved else kernel.function
        name = self.table.add(function)
        made = CallTIR(name, lowered.args, lowered.outputs, kernel.scalars, updates=lowered.updates)
        yield replace(binding, right=made)
