"""Index of the values and bindings of a graph-level function, computed once per function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from ..ir.graph.nodes import Binding, GraphFunc, Value
from ..ir.graph.visit import all_bindings, all_values


@dataclass(frozen=True, slots=True)
class GraphIndex:
    """The values and bindings of a function by uid, including nested ones.

    ``outermost`` are the uids of the values that no loop or branch contains.
    """

    values: Mapping[int, Value]
    bindings: Mapping[int, Binding]
    outermost: frozenset[int]


_INDICES: WeakKeyDictionary[GraphFunc, GraphIndex] = WeakKeyDictionary()


def index_of(function: GraphFunc) -> GraphIndex:
    """Return the index of a function.

    Examples
    --------
    >>> from ..ir.script import parse
    >>> graph = parse('''
    ... @graph_func
    ... def main(x: Tensor[(4,), f32]):
    ...     y = relu(x)
    ...     return y
    ... ''').graph()
    >>> found = index_of(graph)
    >>> sorted(value.name for value in found.values.values())
    ['x', 'y']
    >>> [binding.value.name for binding in found.bindings.values()]
    ['y']
    >>> index_of(graph) is found
    True
    """
    found = _INDICES.get(function)
    if found is None:
        values: dict[int, Value] = {}
        for value in all_values(function):
            values.setdefault(value.uid, value)
        bindings: dict[int, Binding] = {}
        for binding in all_bindings(function.bindings):
            bindings.setdefault(binding.value.uid, binding)
        own = (*(p.value for p in function.params), *(b.value for b in function.bindings))
        outermost = frozenset(value.uid for value in own)
        found = _INDICES[function] = GraphIndex(values, bindings, outermost)
    return found
