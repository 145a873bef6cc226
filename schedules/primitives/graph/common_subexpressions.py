"""The ``common_subexpressions`` primitive."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ....ir.graph.effects import has_effect
from ....ir.graph.nodes import (
    Binding,
    Call,
    CallDPSLibrary,
    CallGraph,
    CallTIR,
    GraphFunc,
    MakeTuple,
    Operand,
    Rhs,
    ScalarLiteral,
    TupleItem,
    Value,
)
from ....ir.graph.visit import (
    Role,
    map_inner,
    map_operands,
    parts_of,
    replace_values,
    roles_of,
)
from ....ir.loop.nodes import Attribute
from ....ir.module import Module
from ....ir.symbolic import Expr
from ...apply import Primitive, Rewrite
from ...handles import BindingRef, FunctionRef, Handle, Removed
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ._functions import MAIN, graph_problem


@primitive(family="graph")
@dataclass(frozen=True, slots=True)
class CommonSubexpressions(Primitive):
    """Compute values that several bindings compute with equal operands only once.

    Before::

        a = exp(x)
        b = exp(x)
        y = add(a, b)
        return y

    After::

        a = exp(x)
        y = add(a, a)
        return y

    Parameters
    ----------
    function : FunctionRef
        The graph-level function.

    Notes
    -----
    Two bindings are equal if they apply the same operation with the same attributes to the same
    operands, and have the same annotation. A binding in a branch or a loop is replaced by an equal
    one before it, also outside of the branch or loop. Bindings with effects remain: run-time
    checks, and calls of library functions that have effects or are not registered. A result of the
    function keeps its binding. The merged binding has the provenance of all. A value that is
    computed once is in memory from its first to its last use, and is fused only with all of its
    uses. Cost: linear in the size of the graph.

    Names elsewhere: TVM ``relax.transform.EliminateCommonSubexpr``; Halide: none.

    References
    ----------
    Relax (ASPLOS '25), §4 (graph-level passes).

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @graph_func
    ... def main(x: Tensor[(32,), f32]):
    ...     a = exp(x)
    ...     b = exp(x)
    ...     y = add(a, b)
    ...     return y
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.common_subexpressions()
    >>> print(sch)
    @graph_func
    def main(x: Tensor[(32,), f32]):
        a: Tensor[(32,), f32] = exp(x)
        y: Tensor[(32,), f32] = add(a, a)
        return y
    """

    class Requires(Requirement):
        """The requirements of ``common_subexpressions``."""

        DATAFLOW_STAGE = "the function is a graph-level function in the dataflow stage"

    function: FunctionRef = MAIN

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the level and the stage of the function."""
        yield from graph_problem(state, self.function, self.Requires.DATAFLOW_STAGE)

    def rewrite(self, state: State) -> Rewrite:
        """Replace each binding that is equal to an earlier one."""
        graph = state.module.graph(self.function.function)
        merging = _Merging(state.module, graph)
        merged = replace_values(
            replace(graph, bindings=merging.bindings(graph.bindings, {})), merging.replaced
        )
        with_origins = replace(merged, bindings=_with_origins(merged.bindings, merging.origins))
        moved: dict[Handle, tuple[Handle, ...] | Removed] = {
            BindingRef(graph.name, old.uid): (BindingRef(graph.name, new.uid),)
            for old, new in merging.replaced.items()
        }
        return Rewrite(state.module.with_functions(with_origins), moved=moved)

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected graph with equal bindings."""
        found = state.module.functions.get(selection.function)
        if not isinstance(found, GraphFunc) or found.stage != "dataflow":
            return
        if _has_equal_bindings(state.module, found):
            yield cls(FunctionRef(selection.function))


@lru_cache(maxsize=8)
def _has_equal_bindings(module: Module, graph: GraphFunc) -> bool:
    merging = _Merging(module, graph)
    merging.bindings(graph.bindings, {})
    return bool(merging.replaced)


class _Merging:
    """The bindings of a function that are equal to earlier ones, and the origins of these."""

    def __init__(self, module: Module, graph: GraphFunc) -> None:
        self._module = module
        self._returned = frozenset(graph.returned)
        self.replaced: dict[Value, Value] = {}
        self.origins: dict[Value, frozenset[str]] = {}

    def bindings(
        self, bindings: Sequence[Binding], outer: Mapping[Hashable, Binding]
    ) -> tuple[Binding, ...]:
        """Return the bindings of a list that remain; ``outer`` are those available before it."""
        known = dict(outer)
        kept: list[Binding] = []
        for binding in bindings:
            right = map_operands(binding.right, self._now)
            key = self._key(binding, right)
            first = None if key is None or binding.value in self._returned else known.get(key)
            if first is not None:
                self.replaced[binding.value] = first.value
                origins = self.origins.get(first.value, first.origins)
                self.origins[first.value] = origins | binding.origins | {binding.value.name}
                continue
            if key is not None:
                known.setdefault(key, binding)
            kept.append(replace(binding, right=map_inner(right, self._inner(known))))
        return tuple(kept)

    def _inner(self, known: Mapping[Hashable, Binding]) -> Any:
        """Return the merging of nested lists; the body of a loop follows its condition."""
        available = dict(known)

        def change(bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
            return self.bindings(bindings, available)

        return change

    def _now(self, operand: Operand) -> Operand:
        return self.replaced.get(operand, operand) if isinstance(operand, Value) else operand

    def _key(self, binding: Binding, right: Rhs) -> Hashable | None:
        """Return the operation, the operands, and the annotation; None if it is not merged."""
        match right:
            case Call() | MakeTuple() | TupleItem():
                pass
            case CallTIR(updates=updates) | CallGraph(updates=updates) if not updates:
                pass
            case CallDPSLibrary():
                pass
            case _:
                return None
        if binding.attributes or has_effect(self._module, binding):
            return None
        parts = (_part(role, getattr(right, name)) for name, role in roles_of(type(right)))
        return (type(right), binding.value.info, *parts)


def _part(role: Role, held: Any) -> Hashable:
    """Return a field of a right-hand side by value; -0.0 differs from 0.0, and 1 from True."""
    match role:
        case "operand":
            return tuple(map(_operand, parts_of(held)))
        case "plain" if not isinstance(held, str | int):
            return tuple(map(_attribute, parts_of(held)))
        case _:
            return held


def _attribute(pair: tuple[str, Attribute]) -> Hashable:
    name, value = pair
    return (name, value if isinstance(value, Expr) else repr(value))


def _operand(operand: Operand) -> Hashable:
    if isinstance(operand, ScalarLiteral):
        return (operand.dtype, repr(operand.value))
    return operand


def _with_origins(
    bindings: Sequence[Binding], origins: Mapping[Value, frozenset[str]]
) -> tuple[Binding, ...]:
    return tuple(
        replace(
            b,
            right=map_inner(b.right, lambda inner: _with_origins(inner, origins)),
            origins=origins.get(b.value, b.origins),
        )
        for b in bindings
    )
