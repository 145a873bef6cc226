"""Dependences between the iterations of a loop.

The iterations of a loop may run in any order, or in parallel, unless two iterations write the same
element or an iteration reads an element that another one writes. These conflicts are reported as
data. An instance of a block is determined by its iteration variables, so repeating it is legal.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ..loop.nodes import Binary, Block, Buffer, For, If, Load, Scope, Store
from ..loop.visit import walk, walk_element
from ..symbolic import (
    Expr,
    Facts,
    Var,
    any_of,
    conjuncts,
    const_value,
    eq,
    free_vars,
    is_proved,
    ne,
    substitute,
    var,
)
from .accesses import Access, accesses, reads, writes
from .facts_at import assuming, within_loops
from .intervals import Interval, covers, interval_of, union
from .iter_map import injective_in
from .tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class Conflict:
    """A dependence between iterations of a loop.

    Parameters
    ----------
    reason : str
        The description, with the names of loop, block, and buffer.
    block : Block
        The block with the conflicting access.
    buffer : Buffer
        The buffer that carries the dependence.
    """

    reason: str
    block: Block
    buffer: Buffer


def feeds(loop: For, block: Block) -> tuple[Var, ...]:
    """Return the iteration variables of a block whose bindings depend on a loop."""
    return tuple(v.var for v in block.iters if loop.var in free_vars(v.binding))


def bound_kinds(loop: For, block: Block) -> frozenset[str]:
    """Return the kinds of the iteration variables whose bindings depend on a loop.

    For a matmul, a loop over rows binds a spatial variable, and a loop over the depth binds a
    reduce variable.
    """
    return frozenset(v.kind for v in block.iters if loop.var in free_vars(v.binding))


def is_reduction(block: Block) -> bool:
    """Return whether a block has reduce variables."""
    return any(v.kind == "reduce" for v in block.iters)


_COMMUTATIVE = ("add", "mul", "min", "max", "and", "or", "xor")


def reduction_update(block: Block) -> tuple[Store, Binary] | None:
    """Return the update ``C[idx] = C[idx] op value`` of a reduction block and its value.

    Return None for any other body, such as an update with a non-commutative operator.
    """
    body = block.body
    if not isinstance(body, Store) or not isinstance(body.value, Binary):
        return None
    value = body.value
    own = Load(body.buffer, body.indices)
    if value.op not in _COMMUTATIVE or value.left != own:
        return None
    if any(isinstance(e, Load) and e.buffer is body.buffer for e in walk_element(value.right)):
        return None
    return body, value


def implied_by_domain(block: Block, facts: Facts) -> bool:
    """Return whether the predicate of a block follows from the domain of its variables."""
    inside = {v.binding < v.extent for v in block.iters} | {v.binding >= 0 for v in block.iters}
    rest = [part for part in conjuncts(block.predicate) if part not in inside]
    if not rest:
        return True
    known = assuming(facts, *inside)
    return all(is_proved(part, known) for part in rest)


def loops_inside(tree: Tree, outer: For, block: Block) -> tuple[For, ...]:
    """Return the loops around a block and inside of ``outer``, outermost first."""
    above = tree.loops_above(block)
    return above[above.index(outer) + 1 :]


def access_intervals(
    access: Access, inner: tuple[For, ...], facts: Facts
) -> tuple[Interval | None, ...]:
    """Return the interval of each index of an access over some loops around its block."""
    ranges = {loop.var: loop.extent for loop in inner} | access.bound_inner()
    known = within_loops(facts, inner)
    return tuple(interval_of(index, ranges, known) for index in access.bound())


def region_at(
    tree: Tree, loop: For, found: tuple[Access, ...], facts: Facts
) -> tuple[Interval, ...] | None:
    """Return the region of accesses to one buffer in an iteration of a loop; None if unbounded."""
    each = [access_intervals(a, loops_inside(tree, loop, a.block), facts) for a in found]
    joined: list[Interval] = []
    for dimension in zip(*each, strict=True):
        known = [s for s in dimension if s is not None]
        interval = union(known, facts) if len(known) == len(dimension) else None
        if interval is None:
            return None
        joined.append(interval)
    return tuple(joined)


def covered_inside(tree: Tree, loop: For, reader: Block, buffer: Buffer) -> bool:
    """Return whether a block reads only elements written earlier in the same loop iteration.

    Reductions that write the buffer must start and end within the iteration.
    """
    facts = tree.facts(loop.body)
    writers = [
        b
        for b in tree.blocks_in(loop.body)
        if b is not reader and writes(b, buffer) and tree.order[b] < tree.order[reader]
    ]
    needed = region_at(tree, loop, reads(reader, buffer), facts)
    if needed is None or not all(finished_inside(tree, loop, w) for w in writers):
        return False
    given = (written_at(tree, loop, w, buffer) for w in writers)
    return any(g is not None and _covers_all(g, needed, buffer, facts) for g in given)


def finished_inside(tree: Tree, loop: For, writer: Block) -> bool:
    """Return whether the reduction of a block starts and ends within one iteration of a loop."""
    inside = loops_inside(tree, loop, writer)
    outside = [x for x in tree.loops_above(writer) if x not in inside]
    return not any("reduce" in bound_kinds(x, writer) for x in outside)


def written_at(tree: Tree, loop: For, writer: Block, buffer: Buffer) -> tuple[Interval, ...] | None:
    """Return the region that a block writes completely in one iteration of a loop.

    Return None if the region has gaps or the block is conditional. The region may extend past the
    domain of the block, where nothing is written.
    """
    facts = tree.facts(loop.body)
    inside = loops_inside(tree, loop, writer)
    found = writes(writer, buffer)
    if len(found) != 1 or _is_conditional(tree, loop, writer):
        return None
    if not implied_by_domain(writer, within_loops(facts, inside)) or not _always(tree, writer):
        return None
    varying = frozenset(x.var for x in inside) | frozenset(found[0].inner)
    used = [v for index in found[0].bound() for v in free_vars(index) & varying]
    if len(used) > len(set(used)):
        return None
    return region_at(tree, loop, found, facts)


def _always(tree: Tree, block: Block) -> bool:
    """Return whether a block has no branches, and nested blocks only predicates of their domain."""
    return not any(
        isinstance(s, If)
        or (isinstance(s, Block) and s is not block and not implied_by_domain(s, tree.facts(s)))
        for s in walk(block)
    )


def _is_conditional(tree: Tree, loop: For, block: Block) -> bool:
    between = itertools.takewhile(lambda s: s is not loop, tree.ancestors(block))
    return any(isinstance(s, If) for s in between)


def _covers_all(
    given: tuple[Interval, ...], needed: tuple[Interval, ...], buffer: Buffer, facts: Facts
) -> bool:
    sides = zip(given, needed, buffer.shape, strict=True)
    return all(covers(g, n, facts, size) for g, n, size in sides)


OWN: Final = frozenset({"local", "fragment"})
"""The memory scopes that are private to each thread."""


def conflicts(
    tree: Tree,
    loop: For,
    *,
    lanes: bool = False,
    own: frozenset[Scope] = OWN,
    common: frozenset[Scope] = frozenset(),
) -> Iterator[Conflict]:
    """Yield the conflicts that prevent reordering or parallel execution of a loop.

    Iterations are independent if no two of them write the same element of a shared buffer, and
    none reads an element that another one writes. A temporary is private to an iteration if all
    its uses are inside the loop and every read follows a write in the same iteration.

    Parameters
    ----------
    tree : Tree
        The index of the function.
    loop : For
        The loop.
    lanes : bool
        Whether iterations become lanes of a vector; then no temporary is private.
    own : frozenset of Scope
        The memory scopes that are private to each iteration, for temporaries of any size.
    common : frozenset of Scope
        The memory scopes that are shared by all iterations.
    """
    blocks = list(tree.blocks_in(loop.body))
    for block in blocks:
        for buffer in dict.fromkeys(w.buffer for w in writes(block)):
            shared = lanes or buffer.scope in common or not is_private(tree, loop, buffer, own)
            if shared and not writes_disjoint(tree, loop, block, buffer):
                yield Conflict(
                    f"iterations of loop {loop.var.name!r} may write the same elements of "
                    f"{buffer.name!r} in block {block.name!r}",
                    block,
                    buffer,
                )
        yield from _foreign_reads(tree, loop, block, blocks)


def _foreign_reads(tree: Tree, loop: For, block: Block, blocks: list[Block]) -> Iterator[Conflict]:
    written = {w.buffer for b in blocks for w in writes(b)}
    for buffer in dict.fromkeys(r.buffer for r in reads(block)):
        if buffer in written and not covered_inside(tree, loop, block, buffer):
            yield Conflict(
                f"block {block.name!r} reads elements of {buffer.name!r} that other iterations of "
                f"loop {loop.var.name!r} may write",
                block,
                buffer,
            )


def writes_disjoint(tree: Tree, loop: For, block: Block, buffer: Buffer) -> bool:
    """Return whether different iterations of a loop write disjoint elements in a block."""
    inside = (loop, *loops_inside(tree, loop, block))
    facts = within_loops(tree.facts(loop.body), inside[1:])
    found = writes(block, buffer)
    ranges = {x.var: x.extent for x in inside} | dict(found[0].inner)
    if len(found) != 1:
        return False
    indices = found[0].bound()
    return loop.var in injective_in(indices, ranges, facts) or _proved_disjoint(
        loop, indices, ranges
    )


def _proved_disjoint(loop: For, indices: tuple[Expr, ...], ranges: Mapping[Var, Expr]) -> bool:
    """Prove that equal indices imply equal iterations; all extents must be constants."""
    sizes = {v: const_value(extent) for v, extent in ranges.items()}
    used = {v for index in indices for v in index.free}
    if loop.var not in used or any(sizes.get(v, 0) is None for v in used):
        return False
    here, there = (
        {v: var(v.name, lower=0, upper=max(n - 1, 0)) for v, n in sizes.items() if n is not None}
        for _ in range(2)
    )
    pairs = ((substitute(i, here), substitute(i, there)) for i in indices)
    same = eq(here[loop.var], there[loop.var])
    return is_proved(any_of(same, *(ne(a, b) for a, b in pairs)), Facts())


def is_private(tree: Tree, loop: For, buffer: Buffer, own: frozenset[Scope] = OWN) -> bool:
    """Return whether a temporary is used only inside a loop and written before every read.

    The region written by an iteration must have a constant size, or the scope must be in ``own``;
    otherwise lowering allocates the temporary once for all iterations.
    """
    if buffer not in tree.function.buffers:
        return False
    users = [b for b in tree.outermost_blocks() if any(a.buffer is buffer for a in accesses(b))]
    if not all(tree.contains(loop, b) for b in users):
        return False
    if buffer.scope not in own and not _has_constant_size(tree, loop, users, buffer):
        return False
    readers = [b for b in users if reads(b, buffer)]
    return all(covered_inside(tree, loop, b, buffer) for b in readers)


def _has_constant_size(tree: Tree, loop: For, users: list[Block], buffer: Buffer) -> bool:
    found = tuple(a for b in users for a in writes(b, buffer))
    region = region_at(tree, loop, found, tree.facts(loop.body))
    return region is not None and all(const_value(i.extent) is not None for i in region)
