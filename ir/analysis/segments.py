"""Segments between consecutive offsets that are loaded from memory.

In a ragged array, the elements of row ``i`` start at ``off[i]`` and end before ``off[i + 1]``. The
rows are disjoint if the offsets do not decrease, which a program states by the range of the second
offset::

    for i in range(n):
        with checked(off[i], 0, m + 1) as lo:
            with checked(off[i + 1], lo, m + 1) as hi:
                for j in range(hi - lo):
                    ... y[lo + j] ...

Every iteration checks that its segment does not end before it starts, and the next segment starts
where it ends. In a call that passes all checks, the segments are in order. A call with offsets that
decrease raises an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Set as AbstractSet
from dataclasses import dataclass

from ..loop.nodes import Alloc, Buffer, For, If, Let, Load, Seq, Stmt, Store
from ..loop.visit import stores
from ..symbolic import Bool, Expr, Facts, Le, Lt, Var, conjuncts, is_proved, substitute
from .accesses import ranges_of
from .intervals import interval_of
from .iter_map import injective_in
from .scopes import Site, sites
from .tree import Tree


def in_own_segment(tree: Tree, loop: For, buffer: Buffer) -> bool:
    """Return whether each iteration of a loop accesses only its own segment of a buffer.

    Parameters
    ----------
    tree : Tree
        The index of the function.
    loop : For
        The loop.
    buffer : Buffer
        The buffer; no integer is loaded from it outside of blocks.

    Examples
    --------
    >>> from ..script import parse
    >>> from .tree import tree_of
    >>> function = parse('''
    ... n, m = symbols("n m", lower=0)
    ... @prim_func
    ... def f(n: Int, off: Buffer[(n + 1,), i32], y: Out[(m,), f32]):
    ...     for i in range(n):
    ...         with checked(off[i], 0, m + 1) as lo:
    ...             with checked(off[i + 1], lo, m + 1) as hi:
    ...                 for j in range(hi - lo):
    ...                     with block("y"):
    ...                         vl, vj = spatial(m + 1, lo), spatial(m, j)
    ...                         y[vl + vj] = 1.0
    ... ''').prim("f")
    >>> tree = tree_of(function)
    >>> i, j = tree.loops.values()
    >>> in_own_segment(tree, i, function.buffer_params[1])
    True
    """
    found: list[Site] | None = None
    for first, last in _segments(tree, loop):
        found = list(_accesses(tree, loop, buffer)) if found is None else found
        if any(
            all(_inside(tree, first, last, access, dimension) for access in found)
            for dimension in range(buffer.rank)
        ):
            return True
    return False


def _accesses(tree: Tree, loop: For, buffer: Buffer) -> Iterator[Site]:
    """Yield the loads and stores of a buffer in a loop."""
    for site in sites(tree.function):
        own = isinstance(site.node, Load | Store) and site.node.buffer is buffer
        if own and site.block is not None and tree.contains(loop, site.block):
            yield site


def _segments(tree: Tree, loop: For) -> Iterator[tuple[Let, Let]]:
    """Yield the pairs of integers that bound the segments of the iterations of a loop."""
    around: list[_Loaded] = []
    written: frozenset[Buffer] | None = None
    for last in _loaded(loop.body, (loop,), ()):
        for first in around:
            if not _are_consecutive(first, last, tree.facts(loop)):
                continue
            written = frozenset(s.buffer for s in stores(loop.body)) if written is None else written
            lower = is_proved(last.let.lower >= first.let.var, tree.facts(last.let))
            if lower and last.let.load.buffer not in written and tree.contains(first.let, last.let):
                yield first.let, last.let
        around.append(last)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """An integer, with the loops and the conditions of the branches in which it is loaded."""

    let: Let
    loops: tuple[For, ...]
    guards: tuple[Bool, ...]


def _loaded(statement: Stmt, loops: tuple[For, ...], guards: tuple[Bool, ...]) -> Iterator[_Loaded]:
    """Yield the integers that a statement loads outside of blocks, outer before inner."""
    match statement:
        case Seq(body=parts):
            for part in parts:
                yield from _loaded(part, loops, guards)
        case Let(body=body):
            yield _Loaded(statement, loops, guards)
            yield from _loaded(body, loops, guards)
        case Alloc(body=body):
            yield from _loaded(body, loops, guards)
        case For(body=body):
            yield from _loaded(body, (*loops, statement), guards)
        case If(condition=condition, then=then):
            yield from _loaded(then, loops, (*guards, *conjuncts(condition)))
        case _:
            pass


def _are_consecutive(first: _Loaded, last: _Loaded, facts: Facts) -> bool:
    """Return whether two integers are each element of a part of an array, and the next element.

    Iterations between two others load the elements between theirs.
    """
    one, two = first.let, last.let
    if one.load.buffer is not two.load.buffer or "clamped" in (one.mode, two.mode):
        return False
    pairs = list(zip(one.load.indices, two.load.indices, strict=True))
    moving = [k for k, (x, y) in enumerate(pairs) if x is not y]
    if first.loops != last.loops or first.guards != last.guards or len(moving) != 1:
        return False
    at, after = pairs.pop(moving[0])
    variables = {x.var for x in first.loops}
    if after - at != 1 or any(x.free & variables for x, _ in pairs):
        return False
    ranges = ranges_of(first.loops)
    found = interval_of(at, ranges, facts)
    if found is None or not found.exhaustive or at.free & {one.var}:
        return False
    limits = all(_is_limit(guard, at, variables) for guard in first.guards)
    return limits and first.loops[0].var in injective_in((at,), ranges, facts)


def _is_limit(guard: Bool, term: Expr, variables: AbstractSet[Var]) -> bool:
    """Return whether a condition depends on variables only as an upper or lower limit of a term."""
    if guard.free.isdisjoint(variables):
        return True
    if not isinstance(guard, Le | Lt):
        return False
    return any(x.free.isdisjoint(variables) for x in (guard.delta - term, guard.delta + term))


def _inside(tree: Tree, first: Let, last: Let, access: Site, dimension: int) -> bool:
    """Return whether an index of an access is in a segment, where it runs."""
    node, scope = access.node, access.scope
    if not isinstance(node, Load | Store) or access.block is None:
        return False
    if not tree.contains(last, access.block):
        return False
    index = substitute(node.indices[dimension], scope.values)
    return is_proved(index >= first.var, scope.far) and is_proved(index < last.var, scope.far)
