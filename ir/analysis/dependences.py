"""Dependences between the iterations of a loop.

The iterations of a loop may run in any order, or in parallel, unless two iterations write the same
element or an iteration reads an element that another one writes. These conflicts are reported as
data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set as AbstractSet
from dataclasses import dataclass
from typing import Final, cast

from ..loop.decompose import decomposed_in, reduction_position, reduction_variables
from ..loop.memory_scopes import PRIVATE
from ..loop.nodes import Block, Buffer, For, If, Let, Scope, Stmt
from ..loop.visit import stores, walk
from ..symbolic import (
    TRUE,
    Expr,
    Facts,
    Le,
    Lt,
    Var,
    conjuncts,
    const_value,
    free_vars,
    is_proved,
    linear_form,
    maximum,
    minimum,
    ne,
    substitute,
    to_text,
)
from .accesses import Access, accesses, bindings_of, ranges_of, reads, writes
from .disjoint_writes import (
    binders_inside,
    binders_of,
    proved_disjoint,
    same_elements,
    writes_disjoint,
)
from .enclosing import statements_around
from .facts_at import assuming, within_loops
from .intervals import Interval, interval_of, union
from .iter_map import injective_in
from .packed_accesses import byte_accesses
from .segments import in_own_segment
from .tree import Tree
from .written_before_read import written_before_read, written_regions


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
    shares_byte : bool
        Whether the accesses are of packed elements that may share a byte.
    """

    reason: str
    block: Block
    buffer: Buffer
    shares_byte: bool = False


def feeds(loop: For, block: Block) -> tuple[Var, ...]:
    """Return the iteration variables of a block whose bindings depend on a loop."""
    return tuple(v.var for v in block.iters if loop.var in free_vars(v.binding))


def bound_kinds(loop: For, block: Block) -> frozenset[str]:
    """Return the kinds of the iteration variables whose bindings depend on a loop.

    For a matmul, a loop over rows binds a spatial variable, and a loop over the depth binds a
    reduce variable.
    """
    return frozenset(v.kind for v in block.iters if loop.var in free_vars(v.binding))


def iterated_kinds(tree: Tree, loop: For, block: Block) -> frozenset[str]:
    """Return the kinds of the iteration variables that a loop iterates.

    These are the kinds that it binds, except that a loop whose variable the spatial iteration
    variables determine is constant during a reduction, such as ``s`` of ``spatial(s), reduce(k +
    s)``.
    """
    kinds = bound_kinds(loop, block)
    if not kinds >= {"spatial", "reduce"}:
        return kinds
    reducing = reduction_variables(statements_around(tree, block), block)
    return kinds if loop.var in reducing else kinds - {"reduce"}


def is_reduction(block: Block) -> bool:
    """Return whether a block has reduce variables."""
    return any(v.kind == "reduce" for v in block.iters)


def implied_by_domain(block: Block, facts: Facts) -> bool:
    """Return whether the predicate of a block follows from the domain of its variables."""
    inside = {v.binding < v.extent for v in block.iters} | {v.binding >= 0 for v in block.iters}
    rest = [part for part in conjuncts(block.predicate) if part not in inside]
    if not rest:
        return True
    known = assuming(facts, *inside)
    return all(is_proved(part, known) for part in rest)


def writes_always(tree: Tree, block: Block) -> bool:
    """Return whether every iteration of a block executes all of its stores.

    It has no branches, and nested blocks have no predicates except the domains of their variables.
    """
    return not any(
        isinstance(s, If)
        or (isinstance(s, Block) and s is not block and not implied_by_domain(s, tree.facts(s)))
        for s in walk(block)
    )


def loops_inside(tree: Tree, outer: For, block: Block) -> tuple[For, ...]:
    """Return the loops around a block and inside of ``outer``, outermost first."""
    above = tree.loops_above(block)
    return above[above.index(outer) + 1 :]


def access_intervals(
    access: Access, inner: tuple[For | Let, ...], facts: Facts
) -> tuple[Interval | None, ...]:
    """Return the interval of each index of an access over some loops and lets around its block."""
    ranges = ranges_of(inner) | access.bound_inner()
    known = within_loops(facts, inner)
    if access.guard is TRUE:
        return tuple(interval_of(index, ranges, known) for index in access.bound())
    bindings = bindings_of(access.block)
    limited = _guarded(access, {v: interval_of(b, ranges, known) for v, b in bindings.items()})
    bound = {v: b for v, b in bindings.items() if v not in limited}
    indices = (substitute(index, bound) for index in access.indices)
    return tuple(interval_of(index, ranges | limited, known) for index in indices)


def _guarded(access: Access, domains: Mapping[Var, Interval | None]) -> dict[Var, Interval]:
    """Return the values of iteration variables to which the guard of an access limits them."""
    found: dict[Var, Interval] = {}
    for part in conjuncts(access.guard):
        used = part.free & domains.keys()
        if not isinstance(part, Le | Lt) or len(used) != 1:
            continue
        (variable,) = used
        old = found.get(variable) or domains[variable]
        form = linear_form(part.delta, (variable,))
        scale = None if form is None else const_value(form.coefficients[variable])
        if old is None or form is None or scale not in (1, -1):
            continue
        if scale == 1:  # variable + rest <= 0
            start, stop = old.start, minimum(old.stop, 1 - form.rest)
        else:
            start, stop = maximum(old.start, form.rest), old.stop
        found[variable] = Interval(start, stop - start, exhaustive=False)
    return found


def region_at(
    tree: Tree, loop: For, found: tuple[Access, ...], facts: Facts
) -> tuple[Interval, ...] | None:
    """Return the region of accesses to one buffer in an iteration of a loop; None if unbounded."""
    joined: list[Interval] = []
    for interval in _dimensions_at(tree, loop, found, facts):
        if interval is None:
            return None
        joined.append(interval)
    return tuple(joined)


def _dimensions_at(
    tree: Tree, loop: For, found: tuple[Access, ...], facts: Facts
) -> Iterator[Interval | None]:
    """Yield the interval of each dimension that accesses to one buffer use in an iteration."""
    each = [access_intervals(a, binders_of(tree, loop, a), facts) for a in found]
    for dimension in zip(*each, strict=True):
        known = [s for s in dimension if s is not None]
        yield union(known, facts) if len(known) == len(dimension) else None


def with_separate_inits(tree: Tree, statement: Stmt) -> Stmt:
    """Return a statement with the inits of reductions as separate nests; results are cached.

    Inits that run before the statement are omitted.
    """
    key = ("separate inits", statement)
    known = tree.memo.get(key)
    if known is None:
        known = decomposed_in(statement, lambda b: statements_around(tree, b))
        tree.memo[key] = known
    return cast("Stmt", known)


def is_covered(tree: Tree, loop: For, buffer: Buffer) -> bool:
    """Return whether an iteration of a loop only reads elements of a buffer it wrote before.

    It must write the buffer.
    """
    key = ("covered", loop, buffer)
    known = tree.memo.get(key)
    if known is None:
        body = with_separate_inits(tree, loop.body)
        stored = any(s.buffer is buffer for s in stores(body))
        known = stored and buffer in written_before_read(body, {buffer}, tree.facts(loop.body))
        tree.memo[key] = known
    return known is True


def finished_inside(tree: Tree, loop: For, writer: Block) -> bool:
    """Return whether the reduction of a block starts and ends within one iteration of a loop."""
    path = statements_around(tree, writer)
    return not is_reduction(writer) or loop in path[: reduction_position(path, writer)]


def written_in(tree: Tree, statement: Stmt, buffer: Buffer) -> tuple[Interval, ...] | None:
    """Return a region of a buffer that each execution of a statement writes completely, or None.

    The region may extend past the end of the buffer, where nothing is written.
    """
    body = with_separate_inits(tree, statement)
    found = written_regions(body, buffer, tree.facts(statement))
    return found[0] if found else None


OWN: Final = PRIVATE
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
    its uses are inside the loop and every read follows a write in the same iteration. One that is
    allocated inside of the loop is always private, also to a lane.

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
    blocks = tree.blocks_in(loop.body)
    written: dict[Buffer, list[Block]] = {}
    for block in blocks:
        for buffer in dict.fromkeys(w.buffer for w in writes(block)):
            if buffer.scope in common or not tree.allocated_in(buffer, loop.body):
                written.setdefault(buffer, []).append(block)
    separate: set[Buffer] = set()
    for buffer, writers in written.items():
        if buffer.scope in common or lanes or not is_private(tree, loop, buffer, own):
            shared = None if lanes else _shared_byte(tree, loop, buffer, writers[0])
            if shared is not None:
                yield shared
                continue
            found = _common_write(tree, loop, buffer, writers)
            if found is None:
                continue
            if _in_own_part(tree, loop, buffer):
                separate.add(buffer)
            else:
                yield found
    yield from _foreign_reads(tree, loop, blocks, written.keys() - separate)


def _shared_byte(tree: Tree, loop: For, buffer: Buffer, writer: Block) -> Conflict | None:
    """Return the conflict of writes to packed elements that may share a byte."""
    if not buffer.dtype.is_packed or _in_own_bytes(tree, loop, buffer):
        return None
    per = buffer.dtype.per_byte
    return Conflict(
        f"iterations of loop {loop.var.name!r} may write elements of {buffer.name!r} in block "
        f"{writer.name!r} that share a byte: a byte contains {per} elements of {buffer.dtype}; it "
        "is not proved that each iteration writes whole bytes",
        writer,
        buffer,
        shares_byte=True,
    )


def _in_own_bytes(tree: Tree, loop: For, buffer: Buffer) -> bool:
    """Return whether no iteration of a loop accesses a byte that another one writes."""
    if any(let.load.buffer is buffer for let in tree.lets_in(loop)):
        return False
    facts = tree.facts(loop.body)
    found = [a for b in tree.blocks_in(loop.body) for a in accesses(b) if a.buffer is buffer]
    for each in byte_accesses(found, facts):
        if _has_own_part(tree, loop, each, facts):
            return True
        first = next(a for a in each if a.writes)
        inside = (loop, *binders_of(tree, loop, first))
        ranges = ranges_of(inside) | first.bound_inner()
        indices = first.bound()
        if all(a.bound() == indices for a in each) and (
            loop.var in injective_in(indices, ranges, within_loops(facts, inside[1:]))
            or proved_disjoint(loop, indices, ranges)
        ):
            return True
    return False


def private_copies(tree: Tree, loop: For, own: frozenset[Scope]) -> tuple[Buffer, ...]:
    """Return the temporaries of which each iteration of a loop needs its own elements.

    Without, iterations that run at the same time would write the same elements. Temporaries that
    the loop allocates are omitted. The parameters are those of `conflicts`.
    """
    stored = {w.buffer for block in tree.blocks_in(loop.body) for w in writes(block)}
    written = {b for b in stored if not tree.allocated_in(b, loop.body)}
    return tuple(
        buffer
        for buffer in tree.temporaries
        if buffer in written
        and not writes_separate(tree, loop, buffer)
        and is_private(tree, loop, buffer, own)
    )


def writes_separate(tree: Tree, loop: For, buffer: Buffer) -> bool:
    """Return whether no two iterations of a loop write the same element of a buffer."""
    writers = [b for b in tree.blocks_in(loop.body) if writes(b, buffer)]
    if not writers or _common_write(tree, loop, buffer, writers) is None:
        return True
    return _in_own_part(tree, loop, buffer)


def _common_write(tree: Tree, loop: For, buffer: Buffer, writers: list[Block]) -> Conflict | None:
    """Return the conflict of writes that may overlap in different iterations of a loop."""
    first = writers[0]
    for block in writers:
        if not writes_disjoint(tree, loop, block, buffer):
            return Conflict(
                f"iterations of loop {loop.var.name!r} may write the same elements of "
                f"{buffer.name!r} in block {block.name!r}",
                block,
                buffer,
            )
        if block is not first and not same_elements(tree, loop, buffer, first, block):
            return Conflict(
                f"iterations of loop {loop.var.name!r} may write elements of {buffer.name!r} in "
                f"block {block.name!r} that other iterations write in block {first.name!r}",
                block,
                buffer,
            )
    return None


def _in_own_part(tree: Tree, loop: For, buffer: Buffer) -> bool:
    """Return whether each iteration of a loop accesses only its own part of one dimension.

    The part starts at a multiple of the iteration, and is not larger than the absolute value of
    this multiple; one that is not larger than 0 has no elements. Or it is a segment between
    consecutive offsets.
    """
    if any(let.load.buffer is buffer for let in tree.lets_in(loop)):
        return False
    found = tuple(a for b in tree.blocks_in(loop.body) for a in accesses(b) if a.buffer is buffer)
    known = _has_own_part(tree, loop, found, tree.facts(loop.body))
    return known or in_own_segment(tree, loop, buffer)


def _has_own_part(tree: Tree, loop: For, found: tuple[Access, ...], facts: Facts) -> bool:
    for interval in _dimensions_at(tree, loop, found, facts):
        if interval is None or loop.var in free_vars(interval.extent):
            continue
        form = linear_form(interval.start, (loop.var,))
        if form is None:
            continue
        step = form.coefficients.get(loop.var)
        if step is not None and any(
            is_proved(interval.extent <= distance, facts) for distance in (step, -step)
        ):
            return True
    return False


def _foreign_reads(
    tree: Tree, loop: For, blocks: tuple[Block, ...], written: AbstractSet[Buffer]
) -> Iterator[Conflict]:
    read = [(block, access.buffer) for block in blocks for access in reads(block)]
    for let in tree.lets_in(loop):
        read += [(block, let.load.buffer) for block in tree.blocks_in(let.body)[:1]]
    for block, buffer in dict.fromkeys(read):
        if buffer not in written or is_covered(tree, loop, buffer):
            continue
        if _in_own_part(tree, loop, buffer) or _reads_other_part(tree, loop, buffer):
            continue
        if not _reads_elsewhere(tree, loop, buffer):
            yield Conflict(
                f"block {block.name!r} reads elements of {buffer.name!r} that other iterations "
                f"of loop {loop.var.name!r} may write{_indices_text(block, buffer)}",
                block,
                buffer,
            )


def _indices_text(block: Block, buffer: Buffer) -> str:
    """Return the accesses of a block that reads and writes a buffer, as the end of a message."""
    used = [a for a in accesses(block) if a.buffer is buffer]
    own = [a.indices for a in used if a.writes]
    read = [a.indices for a in used if not a.writes and a.indices not in own]
    if not own or not read:
        return ""
    first, second = (
        ", ".join(f"{buffer.name}[{', '.join(map(to_text, i))}]" for i in dict.fromkeys(at))
        for at in (read, own)
    )
    return f": it reads {first} and writes {second}"


def _reads_elsewhere(tree: Tree, loop: For, buffer: Buffer) -> bool:
    """Return whether all iterations together read other elements of a buffer than they write."""
    if any(let.load.buffer is buffer for let in tree.lets_in(loop)):
        return False
    facts = tree.facts(loop)
    found = [a for b in tree.blocks_in(loop.body) for a in accesses(b) if a.buffer is buffer]
    each = [
        (a.writes, access_intervals(a, (loop, *binders_of(tree, loop, a)), facts)) for a in found
    ]
    written, read = ([at for writes, at in each if writes is kind] for kind in (True, False))
    return all(
        any(
            a is not None
            and b is not None
            and (is_proved(a.stop <= b.start, facts) or is_proved(b.stop <= a.start, facts))
            for a, b in zip(ours, theirs, strict=True)
        )
        for ours in written
        for theirs in read
    )


def _reads_other_part(tree: Tree, loop: For, buffer: Buffer) -> bool:
    """Return whether a loop reads and writes different parts of one dimension of a buffer.

    An index of the dimension has one value in all iterations, such as ``t % 2`` for reads and
    ``(t + 1) % 2`` for writes inside a loop over ``t``.
    """
    if any(let.load.buffer is buffer for let in tree.lets_in(loop)):
        return False
    found = [a for b in tree.blocks_in(loop.body) for a in accesses(b) if a.buffer is buffer]
    each = [(a.writes, _constant_indices(tree, loop, a)) for a in found]
    written, read = ([i for writes, i in each if writes is kind] for kind in (True, False))
    facts = tree.facts(loop)
    return all(
        any(
            a is not None and b is not None and is_proved(ne(a, b), facts)
            for a, b in zip(ours, theirs, strict=True)
        )
        for ours in dict.fromkeys(written)
        for theirs in dict.fromkeys(read)
    )


def _constant_indices(tree: Tree, loop: For, access: Access) -> tuple[Expr | None, ...]:
    """Return the indices of an access; None for those that a loop or a statement inside changes."""
    inside = {loop.var, *(x.var for x in binders_inside(tree, loop, access.block))}
    inside |= access.bound_inner().keys()
    return tuple(i if inside.isdisjoint(free_vars(i)) else None for i in access.bound())


def is_private(tree: Tree, loop: For, buffer: Buffer, own: frozenset[Scope] = OWN) -> bool:
    """Return whether a temporary is used only inside a loop and written before every read.

    The region written by an iteration must have a constant size, or the scope must be in ``own``;
    otherwise lowering allocates the temporary once for all iterations.
    """
    if not tree.is_temporary(buffer):
        return False
    if tree.allocated_in(buffer, loop.body):
        return True
    users = [b for b in tree.outermost_blocks() if any(a.buffer is buffer for a in accesses(b))]
    lets = tree.outer_lets(buffer)
    if not all(tree.contains(loop, user) for user in (*users, *lets)):
        return False
    if buffer.scope not in own and not _has_constant_size(tree, loop, users, buffer):
        return False
    read = lets or any(_loads(block, buffer) for block in users)
    return not read or is_covered(tree, loop, buffer)


def _loads(block: Block, buffer: Buffer) -> bool:
    return any(a.buffer is buffer and not a.writes for a in accesses(block))


def _has_constant_size(tree: Tree, loop: For, users: list[Block], buffer: Buffer) -> bool:
    found = tuple(a for b in users for a in writes(b, buffer))
    region = region_at(tree, loop, found, tree.facts(loop.body))
    return region is not None and all(const_value(i.extent) is not None for i in region)
