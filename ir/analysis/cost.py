"""Symbolic costs of functions: operations, accessed bytes, and memory of temporaries."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..loop.nodes import (
    Binary,
    Bind,
    Block,
    Buffer,
    BufferParam,
    Compare,
    Element,
    For,
    If,
    PrimFunc,
    Store,
    Ternary,
    Unary,
    Where,
)
from ..loop.visit import walk, walk_element
from ..sizes import shape_bytes
from ..symbolic import Expr, Var, as_expr, maximum, product, substitute, total
from .accesses import accesses, bindings_of
from .allocations import temporary_shapes
from .facts_at import within_loop
from .intervals import Interval
from .iter_map import injective_in
from .tree import Tree, tree_of

_ZERO = as_expr(0)


def flops(function: PrimFunc) -> Expr:
    """Return the number of executed arithmetic operations on elements.

    Iterations masked by guards do not count. Repeated iterations, such as overlapping tiles of a
    producer, count repeatedly. A function such as ``exp`` counts as one operation.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..loop.builder import Builder
    >>> from ..symbolic import var
    >>> n, b = var("n", lower=1), Builder("dot")
    >>> x, y = b.param("x", (n, 8), f32), b.param("y", (n,), f32, "out")
    >>> b.reduce(y, (8,), lambda i, k: Binary("mul", b.load(x, i, k), b.load(x, i, k)))
    >>> flops(b.finish())
    n * 16
    """
    tree = tree_of(function)
    return total(tuple(_iterations(tree, b) * _operations(b) for b in tree.leaf_blocks()))


def _iterations(tree: Tree, block: Block) -> Expr:
    """Return the number of executions of a block, from all loops and blocks around it."""
    bindings = [v.binding for v in block.iters]
    ranges: dict[Var, Interval] = {}
    for above in tree.ancestors(block):
        if isinstance(above, For):
            ranges = {above.var: Interval.full(above.extent), **ranges}
        elif isinstance(above, Block):
            outer = bindings_of(above)
            bindings = [substitute(b, outer) for b in bindings]
            ranges = {v: values.substitute(outer) for v, values in ranges.items()}
    facts = tree.function.facts
    for variable, values in ranges.items():
        facts = within_loop(facts, variable, values.extent)
    once = len(injective_in(bindings, ranges, facts)) == len(ranges)
    if once and not any(isinstance(s, If) for s in tree.ancestors(block)):
        return product(tuple(v.extent for v in block.iters))
    return product(tuple(values.extent for values in ranges.values()))


def _operations(block: Block) -> int:
    return sum(_element(s.value) for s in walk(block.body) if isinstance(s, Store | Bind))


def _element(element: Element) -> int:
    kinds = (Binary, Unary, Ternary, Compare, Where)
    return sum(isinstance(inner, kinds) for inner in walk_element(element))


def size_in_bytes(buffer: Buffer) -> Expr:
    """Return the size of a buffer, rounded up to whole bytes."""
    return shape_bytes(buffer.shape, buffer.dtype)


def footprint(function: PrimFunc, omitted: Collection[Buffer] = ()) -> Expr:
    """Return the size in bytes of all accessed parameters, a lower bound of the memory traffic.

    Parameters
    ----------
    function : PrimFunc
        The function.
    omitted : Collection of Buffer
        Parameters to omit, such as those that are the same tensor as another parameter.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..loop.builder import Builder
    >>> b = Builder("copy")
    >>> x, y = b.param("x", (8,), f32), b.param("y", (8,), f32, "out")
    >>> b.compute(y, lambda i: b.load(x, i))
    >>> footprint(b.finish())
    64
    """
    accessed = {a.buffer for b in tree_of(function).outermost_blocks() for a in accesses(b)}
    buffers = (p.buffer for p in function.params if isinstance(p, BufferParam))
    return total(tuple(size_in_bytes(b) for b in buffers if b in accessed and b not in omitted))


def live_ranges(function: PrimFunc) -> dict[Buffer, tuple[int, int]]:
    """Return the first and last block that access each temporary, as positions of the blocks."""
    tree = tree_of(function)
    numbers = {block: k for k, block in enumerate(tree.outermost_blocks())}
    found: dict[Buffer, tuple[int, int]] = {}
    for buffer in tree.temporaries:
        users = [
            b
            for b in numbers
            if any(a.buffer is buffer for a in accesses(b)) or tree.allocated_in(buffer, b)
        ]
        if users:
            covered = [numbers[b] for b in users]
            found[buffer] = (min(covered), max(covered))
    return found


def peak_bytes(function: PrimFunc) -> Expr:
    """Return the maximal number of bytes of temporaries live at one time, at their full shapes.

    Those that are allocated in loops count once, at their largest shapes; those whose largest
    shape is unknown are omitted.
    """
    sizes = {b: size_in_bytes(replace(b, shape=s)) for b, s in temporary_shapes(function)}
    ranges = {b: r for b, r in live_ranges(function).items() if b in sizes}
    count = len(tree_of(function).outermost_blocks())
    at_once = [
        total(tuple(sizes[b] for b, (first, last) in ranges.items() if first <= k <= last))
        for k in range(count)
    ]
    return maximum(_ZERO, *at_once)
