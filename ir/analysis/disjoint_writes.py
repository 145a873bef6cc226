"""Writes of different iterations of a loop to different elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ..loop.decompose import reduction_variables
from ..loop.nodes import Block, Buffer, For, Let
from ..loop.ranges import loop_var
from ..symbolic import (
    Expr,
    Facts,
    Var,
    any_of,
    const_value,
    eq,
    free_vars,
    is_proved,
    maximum,
    ne,
    simplify,
    substitute,
    var,
)
from .accesses import Access, ranges_of, values_of, writes
from .enclosing import statements_around
from .facts_at import within_loops
from .intervals import ZERO, Interval
from .iter_map import injective_in
from .tree import Tree


def binders_inside(tree: Tree, outer: For, block: Block) -> tuple[For | Let, ...]:
    """Return the loops and lets around a block and inside of ``outer``, outermost first."""
    above = tree.binders_above(block)
    return above[above.index(outer) + 1 :]


def binders_of(tree: Tree, outer: For, access: Access) -> tuple[For | Let, ...]:
    """Return the loops and lets inside of ``outer`` that run whenever an access does.

    The init of a reduction runs even if the loops of the reduction have no iterations, so these are
    left out unless an index, or the range of a variable in an index, contains their variables.
    """
    block = access.block
    inside = binders_inside(tree, outer, block)
    if block.init is None or not inside:
        return inside
    reducing = reduction_variables(statements_around(tree, block), block)
    used = frozenset[Var]().union(*(index.free for index in access.bound()))
    kept: list[For | Let] = []
    for binder in reversed(inside):
        if binder.var not in reducing or binder.var in used:
            kept.append(binder)
            span = values_of(binder)
            used |= span.start.free | span.extent.free
    return tuple(reversed(kept))


def outermost_inside(tree: Tree, loop: For, block: Block) -> Block:
    """Return the outermost block between a loop and a block; its indices depend on the loop."""
    found = block
    for above in tree.ancestors(block):
        if above is loop:
            break
        if isinstance(above, Block):
            found = above
    return found


def writes_disjoint(tree: Tree, loop: For, block: Block, buffer: Buffer) -> bool:
    """Return whether different iterations of a loop write disjoint elements in a block.

    It is proved by the indices that all stores to the buffer have in common, such as ``i`` of
    ``y[i, 0]`` and ``y[i, 1]``. Nothing is known of a buffer that the block allocates.
    """
    found = writes(block, buffer)
    if not found:
        return False
    binders = binders_of(tree, loop, found[0])
    if any(binders_of(tree, loop, other) != binders for other in found[1:]):
        return False
    inside = (loop, *binders)
    facts = within_loops(tree.facts(loop.body), binders)
    ranges = dict(ranges_of(inside))
    for access in found:
        ranges |= access.bound_inner()
    each = zip(*(access.bound() for access in found), strict=True)
    indices = tuple(first for first, *others in each if all(other == first for other in others))
    return loop.var in injective_in(indices, ranges, facts) or proved_disjoint(
        loop, indices, ranges
    )


def proved_disjoint(loop: For, indices: tuple[Expr, ...], ranges: Mapping[Var, Interval]) -> bool:
    """Prove that equal indices imply equal iterations; all intervals must be constant."""
    limits = {v: (const_value(x.start), const_value(x.stop)) for v, x in ranges.items()}
    known = {
        v: (low, end) for v, (low, end) in limits.items() if low is not None and end is not None
    }
    used = {v for index in indices for v in index.free}
    if loop.var not in used or any(v in ranges and v not in known for v in used):
        return False
    here, there = (
        {v: var(v.name, lower=low, upper=max(end - 1, low)) for v, (low, end) in known.items()}
        for _ in range(2)
    )
    pairs = ((substitute(i, here), substitute(i, there)) for i in indices)
    same = eq(here[loop.var], there[loop.var])
    return is_proved(any_of(same, *(ne(a, b) for a, b in pairs)), Facts())


def same_elements(tree: Tree, loop: For, buffer: Buffer, first: Block, second: Block) -> bool:
    """Return whether two blocks write different elements in different iterations of a loop.

    It is proved for each block alone. The write indices of both are the same terms of loops, and
    one block has all iterations of the other, or it holds for the iterations of both, too.
    """
    a, b = (writes(block, buffer) for block in (first, second))
    if len(a) != 1 or len(b) != 1:
        return False
    ours, theirs = (_values_used(tree, loop, x) for x in (a[0], b[0]))
    if len(ours) != len(theirs):
        return False
    names: dict[Var, Expr] = {}
    pairs: list[tuple[Interval, Interval]] = []
    for (variable, mine), (other, values) in zip(ours.items(), theirs.items(), strict=True):
        pairs.append((mine, values.substitute(names)))
        names[other] = variable
    if any(x.start != y.start for x, y in pairs):
        return False
    facts = within_loops(tree.facts(loop.body), binders_of(tree, loop, a[0]))
    if a[0].bound() == tuple(substitute(i, names) for i in b[0].bound()) and _nested(pairs, facts):
        return True
    return _separate(loop, (a[0], ours), (b[0], theirs), tree.facts(loop.body))


def _nested(pairs: list[tuple[Interval, Interval]], facts: Facts) -> bool:
    """Return whether the intervals of one side contain those of the other one."""
    found = [(x.extent, y.extent) for x, y in pairs if x.extent != y.extent]
    return all(is_proved(x <= y, facts) for x, y in found) or all(
        is_proved(y <= x, facts) for x, y in found
    )


_Used: TypeAlias = "tuple[Access, dict[Var, Interval]]"


def _separate(loop: For, first: _Used, second: _Used, facts: Facts) -> bool:
    """Return whether two accesses with equal indices differ in different iterations of a loop.

    The variables of both get the larger one of their ranges.
    """
    (a, ours), (b, theirs) = first, second
    wide: dict[Var, Interval] = {}
    mine: dict[Var, Expr] = {}
    other: dict[Var, Expr] = {}
    for (x, one), (y, two) in zip(ours.items(), theirs.items(), strict=True):
        sizes = one.substitute(mine).extent, two.substitute(other).extent
        extent = simplify(maximum(*sizes), facts)
        if one.start != 0:
            return False
        mine[x] = other[y] = made = loop_var(x.name, extent)
        wide[made] = Interval(ZERO, extent, exhaustive=one.exhaustive and two.exhaustive)
    indices = tuple(substitute(i, mine) for i in a.bound())
    if indices != tuple(substitute(i, other) for i in b.bound()):
        return False
    ranges = ranges_of((loop,)) | wide
    return loop.var in injective_in(indices, ranges, facts) or proved_disjoint(
        loop, indices, ranges
    )


def _values_used(tree: Tree, loop: For, access: Access) -> dict[Var, Interval]:
    """Return the variables inside of a loop that determine the indices of an access."""
    values = ranges_of(binders_inside(tree, loop, access.block)) | access.bound_inner()
    used = frozenset[Var]().union(*map(free_vars, access.bound()))
    for variable, interval in reversed(values.items()):
        if variable in used:
            used |= free_vars(interval.start) | free_vars(interval.extent)
    return {v: interval for v, interval in values.items() if v in used}
