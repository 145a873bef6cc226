"""The lists of bindings of a function: its own, and those of branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from .nodes import Binding, Branch, GraphFunc, Loop, Operand, Rhs, Value
from .visit import (
    all_bindings,
    branches_of,
    inner_bindings,
    map_inner,
    params_of,
    used_values,
)


def regions(graph: GraphFunc) -> Iterator[GraphFunc]:
    """Yield a function, and each list of bindings of branches and loops as a function of its own.

    The results of such a function are all values that are used outside of the list.

    Examples
    --------
    >>> from ..script import parse
    >>> module = parse('''
    ... k = symbols("k", lower=0)
    ...
    ... @graph_func
    ... def main(x: Tensor[(4,), f32]):
    ...     @loop(k, count=3)
    ...     def y(c: Tensor[(4,), f32] = x):
    ...         d = relu(c)
    ...         return d
    ...     return y
    ... ''')
    >>> [[b.value.name for b in region.bindings] for region in regions(module.graph())]
    [['y'], ['d']]
    """
    yield graph
    for binding in graph.bindings:
        for inner in _inner(graph, binding.right):
            yield from regions(inner)


def map_regions(
    graph: GraphFunc, change: Callable[[GraphFunc], tuple[Binding, ...]]
) -> tuple[Binding, ...]:
    """Apply ``change`` to each list of bindings of a function, the innermost first."""

    def changed(binding: Binding) -> Binding:
        lists = [map_regions(inner, change) for inner in _inner(graph, binding.right)]
        if not lists:
            return binding
        made = iter(lists)
        return replace(binding, right=map_inner(binding.right, lambda _: next(made)))

    return change(replace(graph, bindings=tuple(map(changed, graph.bindings))))


def replace_bindings(
    bindings: Sequence[Binding], change: Callable[[Binding], Sequence[Binding]]
) -> tuple[Binding, ...]:
    """Replace each binding, the innermost first, by the bindings that ``change`` returns."""

    def inner(nested: tuple[Binding, ...]) -> tuple[Binding, ...]:
        return replace_bindings(nested, change)

    return tuple(
        made for b in bindings for made in change(replace(b, right=map_inner(b.right, inner)))
    )


def region_of(graph: GraphFunc, uid: int) -> GraphFunc:
    """Return the list of bindings that contains the binding with a uid; by default, the function.

    The list is a function as in :func:`regions`.
    """
    for region in regions(graph):
        if any(b.value.uid == uid for b in region.bindings):
            return region
    return graph


def binding_of(graph: GraphFunc, uid: int) -> Binding | None:
    """Return the binding with a uid, which may be in a branch or a loop; None if there is none."""
    return next((b for b in all_bindings(graph.bindings) if b.value.uid == uid), None)


def bindings_around(graph: GraphFunc, uid: int) -> tuple[Binding, ...]:
    """Return the loops and branches that contain the definition of a value, outermost first.

    Examples
    --------
    >>> from ..script import parse
    >>> graph = parse('''
    ... k = symbols("k", lower=0)
    ...
    ... @graph_func
    ... def main(x: Tensor[(4,), f32]):
    ...     @loop(k, count=3)
    ...     def y(c: Tensor[(4,), f32] = x):
    ...         d = relu(c)
    ...         return d
    ...     return y
    ... ''').graph()
    >>> from .visit import all_values
    >>> uids = {v.name: v.uid for v in all_values(graph)}
    >>> [[b.value.name for b in bindings_around(graph, uids[name])] for name in "cdy"]
    [['y'], ['y'], []]
    """
    return _around(graph.bindings, uid)


def _around(bindings: Sequence[Binding], uid: int) -> tuple[Binding, ...]:
    for binding in bindings:
        if any(v.uid == uid for v in params_of(binding.right)):
            return (binding,)
        for inner in inner_bindings(binding.right):
            if any(b.value.uid == uid for b in inner):
                return (binding,)
            found = _around(inner, uid)
            if found:
                return (binding, *found)
    return ()


def _inner(graph: GraphFunc, right: Rhs) -> Iterator[GraphFunc]:
    branches = branches_of(right)
    for position, branch in enumerate(branches):
        results: tuple[Operand, ...] = branch.results
        if isinstance(right, Loop) and position + 1 < len(branches):
            results = (*results, *_used_by(branch, branches[position + 1]))
        yield replace(graph, bindings=branch.bindings, results=results, updates=())


def _used_by(condition: Branch, body: Branch) -> Iterator[Value]:
    """Yield the values of the condition of a loop that its body uses."""
    used = {*used_values(body.bindings), *(r for r in body.results if isinstance(r, Value))}
    return (b.value for b in condition.bindings if b.value in used)
