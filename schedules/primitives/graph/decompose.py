"""The ``decompose`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....ir.graph.nodes import Binding, Call, GraphFunc
from ....ir.graph.operators import OPERATORS, decompose_call, get_operator
from ....ir.graph.regions import binding_of
from ....ir.graph.visit import all_bindings
from ....ir.identity import UidSource
from ....ir.symbolic import Bool
from ...apply import Primitive, Rewrite
from ...handles import BindingRef, FunctionRef, Handle, label
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ._functions import MAIN, graph_problem
from ._operator_calls import OperatorCalls


@primitive(family="graph", returns=tuple[BindingRef, ...])
@dataclass(frozen=True, slots=True)
class Decompose(Primitive):
    """Replace calls of operators by their decompositions into other operators.

    Before::

        y = silu(x)

    After::

        y_sigmoid = sigmoid(x)
        y = multiply(x, y_sigmoid)

    Parameters
    ----------
    function : FunctionRef
        The graph-level function.
    bindings : tuple of BindingRef
        The calls to replace.
    operators : tuple of str
        The names of operators whose calls in the function, also in branches and loops, are
        replaced. If there are neither bindings nor operators, all calls of operators that have a
        decomposition are replaced.

    Notes
    -----
    The operators that the default lowering computes in one kernel, such as ``softmax``, become
    separate kernels, which can be scheduled and fused one by one. The parts compute in the
    precision of the operator: 16-bit floats become float32, and the result is rounded once. The
    order of the operations may differ, so results agree within the bounds of the operator. A
    decomposition is not decomposed in turn: apply the step again. Requirements of operators that
    are not proved are checked at run time. The results are the handles of the new bindings; the
    last binding of each decomposition has the handle of the call, which persists. Apply the step
    before ``legalize``. Cost: linear in the size of the graph.

    Names elsewhere: TVM ``relax.transform.DecomposeOps``; PyTorch ``run_decompositions``; Halide:
    none.

    References
    ----------
    Relax (ASPLOS '25), §4.6 (partial lowering).

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... n = symbols("n", lower=0)
    ... @graph_func
    ... def main(x: Tensor[(n, 8), f32]):
    ...     y = softmax(x)
    ...     z = silu(y)
    ...     return z
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> _ = sch.decompose(bindings=("y",))
    >>> [binding.right.op for binding in sch.module.graph().bindings]
    ['max', 'subtract', 'exp', 'sum', 'divide', 'silu']
    >>> [binding.name for binding in sch.decompose(operators=("silu",))]
    ['z_sigmoid', 'z']
    """

    class Requires(Requirement):
        """The requirements of ``decompose``."""

        DATAFLOW_STAGE = "the function is a graph-level function in the dataflow stage"
        OPERATOR_CALLS = (
            "the bindings are operator calls of the function, and the function calls each of the "
            "operators"
        )
        HAS_DECOMPOSITION = "the operators of the calls have a decomposition"
        CHECKABLE = (
            "the requirements of an operator are proved, or are equations or inequalities outside "
            "of branches and loops, which are checked at run time"
        )

    function: FunctionRef = MAIN
    bindings: tuple[BindingRef, ...] = ()
    operators: tuple[str, ...] = ()

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the function, the bindings, and the operators."""
        wrong = list(graph_problem(state, self.function, self.Requires.DATAFLOW_STAGE))
        yield from wrong
        if wrong:
            return
        graph = state.module.graph(self.function.function)
        wrong = [*self._not_calls(graph), *self._not_called(graph)]
        yield from wrong or self._not_decomposable(graph)

    def _not_calls(self, graph: GraphFunc) -> Iterator[Problem]:
        for ref in self.bindings:
            found = binding_of(graph, ref.uid) if ref.function == graph.name else None
            if found is None or not isinstance(found.right, Call):
                kind = "a binding of " + type(found.right).__name__ if found else "not a binding"
                message = f"{label(ref)!r} is {kind} of {graph.name!r}; expected an operator call"
                yield Problem(self.Requires.OPERATOR_CALLS, message, (ref,))

    def _not_called(self, graph: GraphFunc) -> Iterator[Problem]:
        called = sorted({call.op for _, call in _calls(graph)})
        for name in self.operators:
            if name not in called:
                others = f"it calls {', '.join(called)}" if called else "it calls no operators"
                message = f"{graph.name!r} does not call the operator {name!r}; {others}"
                yield Problem(self.Requires.OPERATOR_CALLS, message, (self.function,))

    def _not_decomposable(self, graph: GraphFunc) -> Iterator[Problem]:
        chosen = self._chosen(graph)
        for binding, call in chosen:
            if not get_operator(call.op).is_decomposable:
                yield self._without(graph, binding, call)
        if not chosen:
            message = f"{graph.name!r} calls no operator that has a decomposition"
            yield Problem(self.Requires.HAS_DECOMPOSITION, message, (self.function,))

    def _without(self, graph: GraphFunc, binding: Binding, call: Call) -> Problem:
        known = ", ".join(sorted(n for n, o in OPERATORS.items() if o.is_decomposable))
        message = f"the operator {call.op!r} of {binding.value.name!r} has no decomposition"
        where = BindingRef(graph.name, binding.value.uid, binding.value.name)
        message = f"{message}; operators that have one are {known}"
        return Problem(self.Requires.HAS_DECOMPOSITION, message, (where,))

    def proofs(self, state: State) -> Iterator[Problem]:
        """Decompose the calls, and prove the requirements that cannot be checked."""
        graph = state.module.graph(self.function.function)
        decomposition = self._decomposition(state)
        decomposition.function()
        for binding, call in decomposition.missing:
            yield self._without(graph, binding, call)
        for binding, part in decomposition.unproved:
            where = BindingRef(graph.name, binding.value.uid, binding.value.name)
            message = f"{binding.value.name!r} requires {part}, which is not proved"
            yield Problem(
                self.Requires.CHECKABLE, f"{message} and cannot be checked here", (where,)
            )

    def rewrite(self, state: State) -> Rewrite:
        """Replace the calls."""
        decomposition = self._decomposition(state)
        module = state.module.with_functions(decomposition.function())
        name = self.function.function
        added = [BindingRef(name, b.value.uid, b.value.name) for b in decomposition.added]
        return Rewrite(module, tuple(added))

    def _decomposition(self, state: State) -> _Decomposition:
        graph = state.module.graph(self.function.function)
        chosen = frozenset(binding.value.uid for binding, _ in self._chosen(graph))
        return _Decomposition(graph, UidSource(state.ordinal), chosen)

    def _chosen(self, graph: GraphFunc) -> list[tuple[Binding, Call]]:
        """Return the calls to replace."""
        if not self.bindings and not self.operators:
            return [(b, call) for b, call in _calls(graph) if get_operator(call.op).is_decomposable]
        wanted = {ref.uid for ref in self.bindings}
        return [
            (binding, call)
            for binding, call in _calls(graph)
            if binding.value.uid in wanted or call.op in self.operators
        ]

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected call of an operator that has a decomposition."""
        found = state.module.functions.get(selection.function)
        if isinstance(selection, BindingRef) and isinstance(found, GraphFunc):
            binding = binding_of(found, selection.uid)
            call = binding.right if binding else None
            if isinstance(call, Call) and get_operator(call.op).is_decomposable:
                yield cls(FunctionRef(selection.function), (selection,))


def _calls(graph: GraphFunc) -> list[tuple[Binding, Call]]:
    """Return the operator calls of a function, also those in branches and loops."""
    return [(b, b.right) for b in all_bindings(graph.bindings) if isinstance(b.right, Call)]


class _Decomposition(OperatorCalls):
    """The decomposition of chosen calls of one function."""

    def __init__(self, graph: GraphFunc, mint: UidSource, chosen: frozenset[int]) -> None:
        super().__init__(graph, mint)
        self.chosen = chosen
        self.added: list[Binding] = []
        self.missing: list[tuple[Binding, Call]] = []
        self.unproved: list[tuple[Binding, Bool]] = []

    def call(self, binding: Binding, call: Call) -> Iterator[Binding]:
        """Decompose a chosen call.

        The requirements of other calls are checked as well: a check of a later call would prove
        them, but too late.
        """
        unproved: list[Bool] = []
        yield from self.required(binding, call, unproved)
        if binding.value.uid not in self.chosen:
            yield binding
            return
        self.unproved += [(binding, part) for part in unproved]
        decomposed = decompose_call(call, self.facts)
        if decomposed is None:
            self.missing.append((binding, call))
            yield binding
            return
        for inner in self.inserted(binding, decomposed):
            made = self.present(inner)
            self.added.append(made)
            yield made
