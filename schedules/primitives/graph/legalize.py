"""The ``legalize`` primitive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ....ir.analysis.entry_checks import with_entry_checks
from ....ir.graph.builder import equation
from ....ir.graph.in_place_updates import InPlaceUpdates
from ....ir.graph.nodes import (
    Binding,
    Call,
    CallTIR,
    Dims,
    GraphFunc,
    Info,
    MakeTuple,
    MatchCast,
    Operand,
    ShapeInfo,
    TupleInfo,
    TupleItem,
    Value,
    operand_info,
)
from ....ir.graph.operators import LoweredGraph, get_operator, infer_call, lower_call
from ....ir.graph.visit import (
    Rewriting,
    all_bindings,
    all_values,
    inner_symbols,
    map_updates,
    renamed_symbol,
    substitute_bindings,
    symbols_of,
)
from ....ir.identity import Names, UidSource
from ....ir.symbolic import Bool, Discharge, Facts, conjuncts
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
    an update of this argument if its old value is not used later. The results are the handles of
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
    return isinstance(right, Call) and not get_operator(right.op).is_view


class _Legalization:
    """The lowering of the operators of one function.

    The value of an operator that is lowered to bindings keeps its uid. Its annotation may become
    more precise, and with it those of the fields of a tuple.
    """

    def __init__(self, table: KernelTable, graph: GraphFunc, mint: UidSource) -> None:
        self.table = table
        self.graph = graph
        self.mint = mint
        self.facts = graph.facts
        self.decisions = InPlaceUpdates(graph)
        self.names = Names(v.name for v in all_values(graph))
        self.symbols = set(symbols_of(graph))
        self.symbol_names = Names(s.name for s in self.symbols)
        self.replaced: dict[Value, Value] = {}
        self.depth = 0

    def function(self) -> GraphFunc:
        """Return the function with lowered operators."""
        graph = self.graph
        bindings = tuple(self.bindings(graph.bindings))
        results = tuple(map(self.changed, graph.results))
        updates = map_updates(graph.updates, self.changed)
        return replace(graph, bindings=bindings, results=results, updates=updates, facts=self.facts)

    def changed(self, operand: Operand) -> Operand:
        """Return an operand with its present annotation."""
        return self.replaced.get(operand, operand) if isinstance(operand, Value) else operand

    def bindings(self, bindings: Iterable[Binding]) -> Iterator[Binding]:
        """Lower the operators of a list of bindings."""
        inner = Rewriting(operand=self.changed, bindings=self._nested)
        for binding in bindings:
            yield from self._binding(replace(binding, right=inner.apply(binding.right)))

    def _nested(self, bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
        self.depth += 1
        made = tuple(self.bindings(bindings))
        self.depth -= 1
        return made

    def _binding(self, binding: Binding) -> Iterator[Binding]:
        right = binding.right
        if isinstance(right, TupleItem) and isinstance(right.tuple_.info, TupleInfo):
            value = self._refined(binding.value, right.tuple_.info.fields[right.index])
            yield replace(binding, value=value)
            return
        unproved: list[Bool] = []
        if isinstance(right, Call):
            yield from self._required(binding, right, unproved)
        if not isinstance(right, Call) or not _needs_lowering(binding):
            yield binding
            return
        in_place = self.decisions.in_place(binding.value)
        info, name = binding.value.info, right.op
        lowered = lower_call(right, info, name, self.facts, in_place=in_place)
        if isinstance(lowered, LoweredGraph):
            yield from self._inserted(binding, lowered)
            return
        origins = binding.origins | {binding.value.name}
        kernel = generalize(KernelCall(add_origins(lowered.function, origins), lowered.scalars))
        function = with_entry_checks(kernel.function) if unproved else kernel.function
        name = self.table.add(function)
        call = CallTIR(name, lowered.args, lowered.outputs, kernel.scalars, updates=lowered.updates)
        yield replace(binding, right=call)

    def _required(self, binding: Binding, call: Call, unproved: list[Bool]) -> Iterator[Binding]:
        """Yield checks of the requirements of an operator that are not proved.

        A checked requirement is a fact of the function, unless the call is in a branch or a loop;
        those that are not facts are added to ``unproved``.
        """
        found = infer_call(call.op, call.args, call.attributes, self.facts)
        for required in found.requirements:
            for part in conjuncts(required.predicate):
                if sides := equation(part):
                    info = ShapeInfo((sides[1],), 1)
                    value = Value(self.mint(), self.names.fresh("checked"), info)
                    yield Binding(value, MatchCast(Dims((sides[0],)), info), binding.origins)
                if not sides or self.depth:
                    unproved.append(part)
                    continue
                self.facts = self.facts.assume(
                    part, origin=required.reason, discharge=Discharge.MATCH_CAST
                )

    def _inserted(self, binding: Binding, lowered: LoweredGraph) -> Iterator[Binding]:
        """Insert the bindings that an operator is lowered to, and lower their operators."""
        lowered, known = self._with_own_symbols(lowered), set(self.facts)
        own = frozenset(inner_symbols(lowered.bindings)) if self.depth else None
        self.facts = Facts(
            (f for f in lowered.facts if own is None or f in known or f.predicate.free & own),
            lowered.facts.hints,
        )
        origins = binding.origins | {binding.value.name}
        single = lowered.results[0] if len(lowered.results) == 1 else None
        for inner in lowered.bindings:
            if inner.value is single:
                value = self._refined(binding.value, inner.value.info)
            else:
                name = self.names.fresh(f"{binding.value.name}_{inner.value.name}")
                value = Value(self.mint(), name, inner.value.info)
            self.replaced[inner.value] = value
            copied = replace(inner, value=value, origins=inner.origins | origins)
            yield from self.bindings((copied,))
        results = tuple(map(self.changed, lowered.results))
        if single is None or results[0] is single:
            infos = tuple(map(operand_info, results))
            right = MakeTuple(results) if single is None else MatchCast(results[0], infos[0])
            info = TupleInfo(infos) if single is None else infos[0]
            yield replace(binding, value=self._refined(binding.value, info), right=right)

    def _with_own_symbols(self, lowered: LoweredGraph) -> LoweredGraph:
        """Return bindings whose symbols have names that the function does not use."""
        own = [s for s in inner_symbols(lowered.bindings) if s not in self.symbols]
        terms = {s: renamed_symbol(s, self.symbol_names) for s in own}
        self.symbols.update(terms.values())
        bindings, replaced = substitute_bindings(lowered.bindings, terms)
        results = tuple(replaced.get(r, r) if isinstance(r, Value) else r for r in lowered.results)
        return LoweredGraph(bindings, results, lowered.facts.substitute(terms))

    def _refined(self, value: Value, info: Info) -> Value:
        """Return a value with a more precise annotation, which replaces it."""
        if value.info == info:
            return value
        new = Value(value.uid, value.name, info)
        self.replaced[value] = new
        return new
