"""Requirement checks of steps that move or inline a block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from ..ir.analysis import (
    Access,
    Interval,
    Tree,
    injective_in,
    is_plain,
    read_buffers,
    tree_of,
    writes,
    writes_disjoint,
    written_buffers,
)
from ..ir.analysis.races import kind_conflicts
from ..ir.loop.nodes import Block, Buffer, For, IterVar, Let, Stmt
from ..ir.loop.visit import path_to, stores
from ..ir.symbolic import Expr, Var, const_value, free_vars, to_text
from .apply import Primitive
from .domain_checks import branch_around
from .handles import BlockRef, Handle, LoopRef, buffer_ref, loop_ref, refs_of
from .loop_nests import ONE
from .problem import Problem
from .requirement import Requirement
from .state import State


class Movable(NamedTuple):
    """The requirements of a block that is computed at other iterations.

    Parameters
    ----------
    unordered : Requirement
        The block has no ordered iteration variables.
    one_store : Requirement
        It consists of one store.
    only_writer : Requirement
        No other block writes its buffer.
    fresh : Requirement
        It does not depend on earlier contents of its buffer.
    temporary : Requirement or None
        Its buffer is a temporary; None permits a parameter.
    """

    unordered: Requirement
    one_store: Requirement
    only_writer: Requirement
    fresh: Requirement
    temporary: Requirement | None = None


def movable_problems(
    state: State, ref: BlockRef, requires: Movable, *, several: bool = False
) -> Iterator[Problem]:
    """Yield the problems that prevent a block from being computed at other iterations.

    With ``several``, it may store to several buffers.
    """
    tree, block = state.tree(ref.function), state.block(ref)
    for requirement, message, others in _reasons(tree, block, requires, several=several):
        where = (ref, *refs_of(ref.function, *others))
        outside = _outside_of_block(state, others) if requirement is requires.temporary else ""
        yield Problem(requirement, f"block {block.name!r} {outside or message}", where)


def _outside_of_block(state: State, buffers: tuple[Block | Buffer, ...]) -> str:
    """Return that a block writes a temporary from outside of the block around it, or nothing."""
    inside = state.inside
    if inside is None:
        return ""
    tree = inside.around.tree(inside.block.function)
    found = [b for b in buffers if isinstance(b, Buffer) and tree.is_temporary(b)]
    return "".join(
        f"writes {b.name!r}, which is allocated outside of block {inside.block.name!r}: other "
        "statements may use its elements, or an iteration of the block those of another one"
        for b in found
    )


_Reason: TypeAlias = "tuple[Requirement, str, tuple[Block | Buffer, ...]]"


def _reasons(tree: Tree, block: Block, requires: Movable, *, several: bool) -> Iterator[_Reason]:
    """Yield the reasons why a block cannot move, with other blocks and buffers at fault."""
    if any(v.kind == "ordered" for v in block.iters):
        yield requires.unordered, "has ordered iteration variables", ()
    found = {access.buffer for access in writes(block)}
    count = len(tuple(stores(block.body)))
    if not is_plain(block) or count != len(writes(block)) or count != len(found):
        yield requires.one_store, "does not consist of exactly one store", ()
        return
    if count > 1 and not several:
        names = ", ".join(sorted(repr(b.name) for b in found))
        message = f"stores to several buffers, {names}, and this step moves one store"
        yield requires.one_store, message, tuple(found)
        return
    for buffer in sorted(found, key=lambda b: b.name):
        yield from _buffer_reasons(tree, block, buffer, requires)


def _buffer_reasons(
    tree: Tree, block: Block, buffer: Buffer, requires: Movable
) -> Iterator[_Reason]:
    if requires.temporary is not None and not tree.is_temporary(buffer):
        message = f"writes {buffer.name!r}, which is a parameter; expected a temporary"
        yield requires.temporary, message, (buffer,)
    others = tuple(b for b in tree.writers(buffer) if b is not block)
    if others:
        names = ", ".join(b.name for b in others)
        message = f"is not the only writer of {buffer.name!r}; other writers: {names}"
        yield requires.only_writer, message, (*others, buffer)
    reduces = any(v.kind == "reduce" for v in block.iters)
    if reduces and block.init is None:
        yield requires.fresh, "is a reduction without an init", ()
    if not reduces and buffer in read_buffers(block):
        yield requires.fresh, f"updates {buffer.name!r} in place", (buffer,)


def extent_problems(
    state: State, ref: BlockRef, loop: LoopRef, requirement: Requirement
) -> Iterator[Problem]:
    """Yield a problem for each extent of a block that depends on a loop not around another loop."""
    tree, block, target = state.tree(ref.function), state.block(ref), state.loop(loop)
    kept = (target, *tree.binders_above(target))
    left = {x.var: x for x in tree.binders_above(block) if x not in kept}
    for item in block.iters:
        for variable in sorted(free_vars(item.extent) & left.keys(), key=lambda v: v.name):
            binder = left[variable]
            noun = "loop" if isinstance(binder, For) else "the loaded integer"
            yield Problem(
                requirement,
                f"the extent {to_text(item.extent)} of iteration variable {item.var.name!r} of "
                f"block {block.name!r} depends on {noun} {variable.name!r}, which is not around "
                f"loop {target.var.name!r}",
                (ref, *(refs_of(ref.function, binder) if isinstance(binder, For) else ())),
                {"extent": to_text(item.extent)},
            )


def plain_store_problems(
    state: State, ref: BlockRef, requirement: Requirement
) -> Iterator[Problem]:
    """Yield a problem if the write indices of a block are not its spatial iteration variables.

    Each variable must occur once. A variable of extent 1 may be missing, and so may one that has
    one value while the buffer is allocated. The index of a dimension of size 1 may be a constant.
    """
    for access in writes(state.block(ref)):
        yield from _index_problems(state, ref, requirement, access)


def left_out(tree: Tree, block: Block, access: Access) -> dict[Var, Expr]:
    """Return the iteration variables that are not indices of a store, with their bindings.

    These have one value while the buffer of the store is allocated. Variables of extent 1 are
    omitted.
    """
    alloc = tree.allocs.get(access.buffer)
    constant = {} if alloc is None else constant_iters(block, alloc)
    single = {v.var for v in block.iters if const_value(v.extent) == 1}
    return {
        v: span.start for v, span in constant.items() if v not in access.indices and v not in single
    }


def _index_problems(
    state: State, ref: BlockRef, requirement: Requirement, access: Access
) -> Iterator[Problem]:
    block, indices = state.block(ref), access.indices
    own = {v.var for v in block.iters}
    variables = [i for i in indices if isinstance(i, Var) and i in own]
    spatial = {v.var for v in block.iters if v.kind == "spatial" and const_value(v.extent) != 1}
    spatial -= left_out(state.tree(ref.function), block, access).keys()
    others = [
        i
        for i, size in zip(indices, access.buffer.shape, strict=True)
        if i not in variables and size != 1
    ]
    if others or len(set(variables)) < len(variables) or not spatial <= set(variables):
        yield Problem(
            requirement,
            f"the write indices ({', '.join(map(str, indices))}) of block {block.name!r} are not "
            "its spatial iteration variables, each once",
            (ref, buffer_ref(ref.function, access.buffer)),
            {"indices": ", ".join(map(str, indices))},
        )


def injective_write_problems(
    state: State, ref: BlockRef, requirement: Requirement, within: Stmt | None = None
) -> Iterator[Problem]:
    """Yield a problem if two spatial iterations of a block may write the same element.

    Only iterations in one execution of the statement ``within`` are compared, by default of the
    allocation of the buffer.
    """
    tree, block = state.tree(ref.function), state.block(ref)
    for access in writes(block):
        varying = [v for v in block.iters if v.kind == "spatial"]
        scope = within or tree.allocs.get(access.buffer)
        if scope is not None:
            varying = _varying(varying, block, scope)
        spatial = {v.var: Interval.full(v.extent) for v in varying}
        ranges = spatial | dict(access.inner)
        lost = set(spatial) - injective_in(access.indices, ranges, tree.facts(block.body))
        if lost:
            names = ", ".join(sorted(v.name for v in lost))
            yield Problem(
                requirement,
                f"the write indices ({', '.join(map(str, access.indices))}) of block "
                f"{block.name!r} are not injective in {names}",
                (ref, buffer_ref(ref.function, access.buffer)),
                {"iterations": names},
            )


def constant_iters(block: Block, around: Stmt) -> dict[Var, Interval]:
    """Return the spatial iteration variables that have one value in one execution of a statement.

    Parameters
    ----------
    block : Block
        A block in the statement.
    around : Stmt
        The statement.
    """
    spatial = [v for v in block.iters if v.kind == "spatial"]
    varying = _varying(spatial, block, around)
    return {v.var: Interval(v.binding, ONE) for v in spatial if v not in varying}


def _varying(iters: list[IterVar], block: Block, within: Stmt) -> list[IterVar]:
    """Return the iteration variables that have several values in one execution of a statement."""
    bound = set[Var]()
    for statement in path_to(within, block)[:-1]:
        if isinstance(statement, (For, Let)):
            bound.add(statement.var)
        elif isinstance(statement, Block):
            bound |= {v.var for v in statement.iters}
    return [v for v in iters if not v.binding.free.isdisjoint(bound)]


def index_problems(state: State, ref: BlockRef, requirement: Requirement) -> Iterator[Problem]:
    """Yield a problem for each integer outside of blocks that is loaded from a block's output."""
    tree, block = state.tree(ref.function), state.block(ref)
    for buffer in sorted(written_buffers(block), key=lambda b: b.name):
        for let in tree.outer_lets(buffer):
            yield Problem(
                requirement,
                f"block {block.name!r} writes {buffer.name!r}, from which the integer "
                f"{let.var.name!r} is loaded outside of blocks",
                (ref, *refs_of(ref.function, buffer)),
                {"buffer": buffer.name},
            )


def dependence_problems(
    state: State, ref: BlockRef, requirement: Requirement, destination: Stmt, *, later: bool
) -> Iterator[Problem]:
    """Yield a problem for each dependence that moving a block to a destination would violate.

    Blocks between the block and its destination must not write the buffers that the block reads,
    nor access the buffer that it writes; consumers inside the destination may read that buffer.

    Parameters
    ----------
    state : State
        The current state.
    ref : BlockRef
        The block to move.
    requirement : Requirement
        The requirement to report.
    destination : Stmt
        The statement the block moves into.
    later : bool
        Whether the destination is after the block in program order.
    """
    tree, block = state.tree(ref.function), state.block(ref)
    relation = "before" if later else "after"
    order = tree.order[block] < tree.order[destination]
    if order is not later:
        where = (ref, *_location(ref.function, destination))
        message = f"block {block.name!r} is not {relation} the destination"
        yield Problem(requirement, message, where)
        return
    yield from index_problems(state, ref, requirement)
    read, written = read_buffers(block) - written_buffers(block), written_buffers(block)
    for other in blocks_between(tree, block, destination, later=later):
        theirs = written_buffers(other)
        clash = theirs & (read | written)
        if not tree.contains(destination, other):
            clash |= read_buffers(other) & written
        elif not later:
            clash = (clash - read) | ((read_buffers(other) | theirs) & written)
        for buffer in sorted(clash, key=lambda b: b.name):
            yield Problem(
                requirement,
                f"moving block {block.name!r} past block {other.name!r} would violate a "
                f"dependence on {buffer.name!r}",
                (ref, *refs_of(ref.function, other, buffer)),
                {"buffer": buffer.name},
            )


def _location(function: str, destination: Stmt) -> tuple[Handle, ...]:
    return refs_of(function, destination) if isinstance(destination, For | Block) else ()


def blocks_between(tree: Tree, block: Block, destination: Stmt, *, later: bool) -> Iterator[Block]:
    """Yield the blocks that run between a block and its destination, in either direction.

    The loops around the block but not around the destination run the blocks inside them again:
    these are between them, too, unless no element is written in several iterations.
    """
    old = branch_around(tree, block, destination)
    around, last = tree.blocks_in(old), max(tree.order[b] for b in tree.blocks_in(destination))
    ends = tree.order[block], max(tree.order[b] for b in around)
    low, high = (ends[0], last) if later else (tree.order[destination], ends[1])
    for other in tree.outermost_blocks():
        if other is block:
            continue
        again = later and other in around and not _writes_once(tree, old, block, other)
        if again or low <= tree.order[other] <= high:
            yield other


def _writes_once(tree: Tree, old: Stmt, block: Block, other: Block) -> bool:
    """Return whether no element that a block writes is written in several iterations.

    The iterations are those of the loops in ``old`` around both blocks.
    """
    loops = [x for x in tree.loops_above(block) if tree.contains(old, x)]
    common = [x for x in loops if tree.contains(x, other)]
    buffers = written_buffers(other)
    return all(writes_disjoint(tree, loop, other, b) for loop in common for b in buffers)


def vector_problems(state: State, ref: LoopRef, requirement: Requirement) -> Iterator[Problem]:
    """Yield a problem if a loop is vectorized, or inside a vectorized loop."""
    tree, loop = state.tree(ref.function), state.loop(ref)
    for around in (loop, *tree.ancestors(loop)):
        if isinstance(around, For) and around.kind == "vectorized":
            yield Problem(
                requirement,
                f"loop {around.var.name!r} around the destination is vectorized",
                (ref, loop_ref(ref.function, around)),
            )


def parallel_problems(
    state: State, step: Primitive, ref: LoopRef, requirement: Requirement
) -> Iterator[Problem]:
    """Yield a problem for each conflict that a step would cause in a parallel or thread loop."""
    tree, loop = state.tree(ref.function), state.loop(ref)
    concurrent = [
        s
        for s in (loop, *tree.ancestors(loop))
        if isinstance(s, For) and s.kind in ("parallel", "thread") and const_value(s.extent) != 1
    ]
    new = tree_of(step.made(state).module.prim(ref.function)) if concurrent else tree
    for outer in concurrent:
        for conflict in kind_conflicts(new, new.loops[outer.uid]):
            yield Problem(
                requirement,
                f"after this step, {conflict.reason}",
                (ref, *refs_of(ref.function, outer, conflict.block, conflict.buffer)),
            )
