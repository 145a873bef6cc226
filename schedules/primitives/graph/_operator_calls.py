"""Replacement of operator calls by other bindings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ....ir.graph.builder import equation
from ....ir.graph.nodes import (
    Binding,
    Call,
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
from ....ir.graph.operators import LoweredGraph, infer_call
from ....ir.graph.visit import (
    Rewriting,
    all_values,
    inner_symbols,
    map_updates,
    param_symbols,
    renamed_symbol,
    substitute_bindings,
    symbols_of,
)
from ....ir.identity import Names, UidSource
from ....ir.symbolic import Bool, Discharge, Facts, Var, conjuncts


class OperatorCalls(ABC):
    """The replacement of operator calls of one function, also in branches and loops.

    The value of a call that is replaced by bindings keeps its uid. Its annotation may become more
    precise, and with it those of the fields of a tuple.
    """

    def __init__(self, graph: GraphFunc, mint: UidSource) -> None:
        self.graph = graph
        self.mint = mint
        self.facts = graph.facts
        self.names = Names(v.name for v in all_values(graph))
        self.symbols = set(symbols_of(graph))
        self.symbol_names = Names(s.name for s in self.symbols)
        self.replaced: dict[Value, Value] = {}
        self.depth = 0

    @abstractmethod
    def call(self, binding: Binding, call: Call) -> Iterator[Binding]:
        """Yield the bindings that replace an operator call, or the call."""

    def function(self) -> GraphFunc:
        """Return the function with replaced operators."""
        graph = self.graph
        bindings = tuple(self.bindings(graph.bindings))
        results = tuple(map(self.changed, graph.results))
        updates = map_updates(graph.updates, self.changed)
        return replace(graph, bindings=bindings, results=results, updates=updates, facts=self.facts)

    def changed(self, operand: Operand) -> Operand:
        """Return an operand with its present annotation."""
        return self.replaced.get(operand, operand) if isinstance(operand, Value) else operand

    def bindings(self, bindings: Iterable[Binding]) -> Iterator[Binding]:
        """Replace the operators of a list of bindings."""
        for binding in bindings:
            present = self.present(binding)
            right = present.right
            if isinstance(right, TupleItem) and isinstance(right.tuple_.info, TupleInfo):
                value = self.refined(binding.value, right.tuple_.info.fields[right.index])
                yield replace(present, value=value)
            elif isinstance(right, Call):
                yield from self.call(present, right)
            else:
                yield present

    def present(self, binding: Binding) -> Binding:
        """Return a binding of the present operands."""
        rewriting = Rewriting(operand=self.changed, bindings=self._nested)
        return replace(binding, right=rewriting.apply(binding.right))

    def _nested(self, bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
        self.depth += 1
        made = tuple(self.bindings(bindings))
        self.depth -= 1
        return made

    def required(self, binding: Binding, call: Call, unproved: list[Bool]) -> Iterator[Binding]:
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

    def inserted(self, binding: Binding, lowered: LoweredGraph) -> Iterator[Binding]:
        """Yield the bindings that replace an operator call, with operands of the lowered graph.

        The operands are replaced when :meth:`bindings` or :meth:`present` takes a binding.
        """
        lowered, known = self._with_own_symbols(lowered), set(self.facts)
        own = self._defined(lowered.bindings) if self.depth else None
        self.facts = Facts(
            (f for f in lowered.facts if own is None or f in known or f.predicate.free & own),
            lowered.facts.hints,
        )
        origins = binding.origins | {binding.value.name}
        single = lowered.results[0] if len(lowered.results) == 1 else None
        for inner in lowered.bindings:
            if inner.value is single:
                value = self.refined(binding.value, inner.value.info)
            else:
                name = self.names.fresh(f"{binding.value.name}_{inner.value.name}")
                value = Value(self.mint(), name, inner.value.info)
            self.replaced[inner.value] = value
            yield replace(inner, value=value, origins=inner.origins | origins)
        results = tuple(map(self.changed, lowered.results))
        if single is None or results[0] is single:
            infos = tuple(map(operand_info, results))
            right = MakeTuple(results) if single is None else MatchCast(results[0], infos[0])
            info = TupleInfo(infos) if single is None else infos[0]
            yield replace(binding, value=self.refined(binding.value, info), right=right)

    def _defined(self, bindings: Sequence[Binding]) -> frozenset[Var]:
        """Return the symbols of bindings that no argument of the function determines."""
        return frozenset(inner_symbols(bindings)) - param_symbols(self.graph)

    def _with_own_symbols(self, lowered: LoweredGraph) -> LoweredGraph:
        """Return bindings whose symbols have names that the function does not use."""
        own = [s for s in inner_symbols(lowered.bindings) if s not in self.symbols]
        terms = {s: renamed_symbol(s, self.symbol_names) for s in own}
        self.symbols.update(terms.values())
        bindings, replaced = substitute_bindings(lowered.bindings, terms)
        results = tuple(replaced.get(r, r) if isinstance(r, Value) else r for r in lowered.results)
        return LoweredGraph(bindings, results, lowered.facts.substitute(terms))

    def refined(self, value: Value, info: Info) -> Value:
        """Return a value with a more precise annotation, which replaces it."""
        if value.info == info:
            return value
        new = Value(value.uid, value.name, info)
        self.replaced[value] = new
        return new
