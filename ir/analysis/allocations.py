"""The sizes of temporaries that are allocated inside of loops, and the loops around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from ..loop.nodes import Block, Buffer, For, Let, PrimFunc, Stmt
from ..sizes import allocated_shape
from ..symbolic import Expr, Var, as_expr, maximum
from ..symbolic.monotone import upper_limit
from .tree import Tree, tree_of

_ZERO = as_expr(0)

_Range: TypeAlias = "tuple[Var, Expr, Expr]"
"""A variable with its smallest and largest value."""


def loops_around(tree: Tree, buffer: Buffer) -> tuple[For, ...]:
    """Return the loops around the allocation of a temporary, outermost first.

    Each of their iterations has its own elements. There are none for a temporary of the whole
    function.
    """
    alloc = tree.allocs.get(buffer)
    found = () if alloc is None else tree.ancestors(alloc)
    return tuple(reversed([s for s in found if isinstance(s, For)]))


def largest_shape(tree: Tree, buffer: Buffer) -> tuple[Expr | None, ...]:
    """Return the largest size of each dimension of a temporary over all its allocations.

    The sizes are terms over the symbols that are known when the function is called. A size is None
    if no such term is known.

    Examples
    --------
    >>> from ..script import parse
    >>> f = parse(
    ...     '''
    ... n = symbols("n", lower=1)
    ... @prim_func
    ... def f(y: Out[(n, n), f32]):
    ...     for i in range(n):
    ...         t = alloc((i + 1,), f32)
    ...         for j in range(i + 1):
    ...             t[j] = 1.0
    ...         for k in range(i + 1):
    ...             y[i, k] = t[i - k]
    ... ''',
    ...     check=False,
    ... ).prim("f")
    >>> tree = tree_of(f)
    >>> largest_shape(tree, tree.temporaries[0])
    (n,)
    """
    alloc = tree.allocs.get(buffer)
    if alloc is None:
        return buffer.shape
    ranges = _ranges_at(tree, alloc)
    return tuple(_largest(dim, ranges) for dim in buffer.shape)


def largest_value(tree: Tree, statement: Stmt, term: Expr) -> Expr | None:
    """Return the largest value of a size at a statement, or 0 if it is negative; None if unknown.

    The result is a term over the symbols that are known when the function is called.
    """
    return _largest(term, _ranges_at(tree, statement))


def _ranges_at(tree: Tree, statement: Stmt) -> list[_Range]:
    """Return the variables that are bound around a statement with their limits, outermost first."""
    ranges: list[_Range] = []
    for above in reversed(list(tree.ancestors(statement))):
        match above:
            case For(var=var, extent=extent):
                ranges.append((var, _ZERO, extent - 1))
            case Let(var=var, lower=lower, upper=upper):
                ranges.append((var, lower, upper - 1))
            case Block(iters=iters):
                ranges += [(v.var, _ZERO, v.extent - 1) for v in iters]
            case _:
                pass
    return ranges


def _largest(dim: Expr, ranges: list[_Range]) -> Expr | None:
    bound = {variable for variable, _, _ in ranges}
    if dim.free.isdisjoint(bound):
        return dim
    limit = upper_limit(dim, ranges)
    if limit is None or not limit.free.isdisjoint(bound):
        limit = None if dim.upper is None else as_expr(dim.upper)
    if limit is None or (limit.lower is not None and limit.lower >= 0):
        return limit
    return maximum(limit, 0)


def temporary_shapes(function: PrimFunc) -> Iterator[tuple[Buffer, tuple[Expr, ...]]]:
    """Yield the temporaries of a function with their largest shapes, as far as these are known.

    A dimension that is negative has no elements.
    """
    tree = tree_of(function)
    for buffer in tree.temporaries:
        known = [dim for dim in largest_shape(tree, buffer) if dim is not None]
        if len(known) == buffer.rank:
            yield buffer, allocated_shape(known)
