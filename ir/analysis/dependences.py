"""Whether the iterations of a loop may run in any order, or at the same time.

A block instance is a function of its iteration variables: running it again does no harm. What can
go wrong is told here, as data: two iterations that write one element, or an iteration that reads
what another one writes.
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
    const_value,
    eq,
    free_vars,
    is_proved,
    ne,
    substitute,
    var,
)
from .accesses import Access, accesses, reads, writes
from .digits import determined
from .places import assuming, conjuncts, within_loops
from .spans import Span, covers, span_of, union
from .tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class Conflict:
    """Why iterations of a loop are not independent.

    Parameters
    ----------
    reason : str
        In words, with names.
    block : Block
        The block at fault.
    buffer : Buffer
        The buffer through which the iterations meet.
    """

    reason: str
    block: Block
    buffer: Buffer


def feeds(loop: For, block: Block) -> tuple[Var, ...]:
    """Give the iteration variables of a block whose bindings depend on a loop."""
    return tuple(v.var for v in block.iters if loop.var in free_vars(v.binding))


def feeds_kind(loop: For, block: Block) -> frozenset[str]:
    """Give the kinds of the iteration variables that depend on a loop.

    Examples
    --------
    A loop over the rows of a matmul feeds a spatial iteration, one over its depth a reduction.
    """
    return frozenset(v.kind for v in block.iters if loop.var in free_vars(v.binding))


def is_reduction(block: Block) -> bool:
    """Whether a block has reduction iterations."""
    return any(v.kind == "reduce" for v in block.iters)


_COMMUTATIVE = ("add", "mul", "min", "max", "and", "or", "xor")


def reduction_update(block: Block) -> tuple[Store, Binary] | None:
    """Give the update of a reduction block: ``C[idx] = C[idx] op value``.

    None if the body is anything else, such as an update that does not commute.
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
    """Whether a block's predicate only keeps its iterations inside their extents."""
    inside = {v.binding < v.extent for v in block.iters} | {v.binding >= 0 for v in block.iters}
    rest = [part for part in conjuncts(block.predicate) if part not in inside]
    if not rest:
        return True
    known = assuming(facts, *inside)
    return all(is_proved(part, known) for part in rest)


# ---------------------------------------------------------------- covering


def loops_inside(tree: Tree, outer: For, block: Block) -> tuple[For, ...]:
    """Give the loops around a block that are inside another loop, outermost first."""
    above = tree.loops_above(block)
    return above[above.index(outer) + 1 :]


def access_spans(access: Access, inner: tuple[For, ...], facts: Facts) -> tuple[Span | None, ...]:
    """Bound an access over some loops around its block."""
    ranges = {loop.var: loop.extent for loop in inner} | dict(access.inner)
    known = within_loops(facts, inner)
    return tuple(span_of(index, ranges, known) for index in access.bound())


def region_at(
    tree: Tree, loop: For, found: tuple[Access, ...], facts: Facts
) -> tuple[Span, ...] | None:
    """Bound several accesses to one buffer over one iteration of a loop; None if unbounded."""
    each = [access_spans(a, loops_inside(tree, loop, a.block), facts) for a in found]
    joined: list[Span] = []
    for dimension in zip(*each, strict=True):
        known = [s for s in dimension if s is not None]
        span = union(known, facts) if len(known) == len(dimension) else None
        if span is None:
            return None
        joined.append(span)
    return tuple(joined)


def covered_inside(tree: Tree, loop: For, reader: Block, buffer: Buffer) -> bool:
    """Whether what a block reads of a buffer is written before it in the same iteration.

    Reductions that write it have to be finished in the iteration.
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
    """Whether every reduction of a block starts and ends within one iteration of a loop."""
    inside = loops_inside(tree, loop, writer)
    outside = [x for x in tree.loops_above(writer) if x not in inside]
    return not any("reduce" in feeds_kind(x, writer) for x in outside)


def written_at(tree: Tree, loop: For, writer: Block, buffer: Buffer) -> tuple[Span, ...] | None:
    """Give the box of a buffer that a block writes completely in one iteration of a loop.

    None where the box has holes, or the block runs only under a condition. The box may hang over
    the block's own extents, where nothing is written.
    """
    facts = tree.facts(loop.body)
    inside = loops_inside(tree, loop, writer)
    found = writes(writer, buffer)
    if len(found) != 1 or _is_conditional(tree, loop, writer):
        return None
    if not implied_by_domain(writer, within_loops(facts, inside)) or not _always(tree, writer):
        return None
    moving = frozenset(x.var for x in inside) | frozenset(found[0].inner)
    used = [v for index in found[0].bound() for v in free_vars(index) & moving]
    if len(used) > len(set(used)):
        return None
    return region_at(tree, loop, found, facts)


def _always(tree: Tree, block: Block) -> bool:
    """Whether all that a block holds runs: no branches, and only guards against overhang."""
    return not any(
        isinstance(s, If)
        or (isinstance(s, Block) and s is not block and not implied_by_domain(s, tree.facts(s)))
        for s in walk(block)
    )


def _is_conditional(tree: Tree, loop: For, block: Block) -> bool:
    between = itertools.takewhile(lambda s: s is not loop, tree.ancestors(block))
    return any(isinstance(s, If) for s in between)


def _covers_all(
    given: tuple[Span, ...], needed: tuple[Span, ...], buffer: Buffer, facts: Facts
) -> bool:
    sides = zip(given, needed, buffer.shape, strict=True)
    return all(covers(g, n, facts, size) for g, n, size in sides)


# ---------------------------------------------------------------- conflicts


OWN: Final = frozenset({"local", "fragment"})
"""Scopes of which every thread has its own memory."""


def conflicts(
    tree: Tree,
    loop: For,
    *,
    lanes: bool = False,
    own: frozenset[Scope] = OWN,
    common: frozenset[Scope] = frozenset(),
) -> Iterator[Conflict]:
    """Find what keeps the iterations of a loop from running in any order or at once.

    Iterations are independent where no two write one element of a buffer that outlives an
    iteration, and none reads what another one writes. A temporary all of whose uses are inside
    the loop, each read written before in the same iteration, is private to the iteration; with
    ``lanes``, where iterations become lanes of a vector, nothing is. Every iteration has its own
    memory of the scopes ``own``, however much, and none of the scopes ``common``.
    """
    blocks = list(tree.blocks_in(loop.body))
    for block in blocks:
        for buffer in dict.fromkeys(w.buffer for w in writes(block)):
            shared = lanes or buffer.scope in common or not is_private(tree, loop, buffer, own)
            if shared and not writes_apart(tree, loop, block, buffer):
                yield Conflict(
                    f"iterations of {loop.var.name!r} write the same elements of "
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
                f"{loop.var.name!r} may write",
                block,
                buffer,
            )


def writes_apart(tree: Tree, loop: For, block: Block, buffer: Buffer) -> bool:
    """Whether iterations of a loop write different elements in a block."""
    inside = (loop, *loops_inside(tree, loop, block))
    facts = within_loops(tree.facts(loop.body), inside[1:])
    found = writes(block, buffer)
    ranges = {x.var: x.extent for x in inside} | dict(found[0].inner)
    if len(found) != 1:
        return False
    indices = found[0].bound()
    return loop.var in determined(indices, ranges, facts) or _proved_apart(loop, indices, ranges)


def _proved_apart(loop: For, indices: tuple[Expr, ...], ranges: Mapping[Var, Expr]) -> bool:
    """Ask the prover whether equal indices mean equal iterations, where all extents are known."""
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
    """Whether a temporary is used only inside a loop, and written before every read.

    What an iteration writes has to be of constant size, or the scope one of ``own``: else lowering
    would leave the iterations one place for it.
    """
    if buffer not in tree.function.buffers:
        return False
    users = [b for b in tree.leaf_blocks() if any(a.buffer is buffer for a in accesses(b))]
    if not all(tree.contains(loop, b) for b in users):
        return False
    if buffer.scope not in own and not _is_constant_box(tree, loop, users, buffer):
        return False
    readers = [b for b in users if reads(b, buffer)]
    return all(covered_inside(tree, loop, b, buffer) for b in readers)


def _is_constant_box(tree: Tree, loop: For, users: list[Block], buffer: Buffer) -> bool:
    found = tuple(a for b in users for a in writes(b, buffer))
    box = region_at(tree, loop, found, tree.facts(loop.body))
    return box is not None and all(const_value(span.extent) is not None for span in box)
