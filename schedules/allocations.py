"""Moves of allocations: outward before a step that needs it, and inward after a step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Final

from ..ir.analysis import (
    Tree,
    block_stores,
    is_covered,
    statements_around,
    tree_of,
    writes_separate,
)
from ..ir.copies import replace
from ..ir.identity import Uid
from ..ir.loop.decompose import reduction_position
from ..ir.loop.memory_scopes import OF_BLOCK
from ..ir.loop.nodes import Alloc, Block, Buffer, For, Let, PrimFunc, Seq, Stmt
from ..ir.loop.visit import allocations, loads, replace_statement, replaced_along, transform, walk
from ..ir.symbolic import Expr, Var
from ..target.gpus import THREAD_AXES
from .handles import BlockRef, BufferRef, LoopRef, buffer_ref
from .problem import ScheduleError
from .state import State
from .step import Step

_TOGETHER: Final = ("parallel", "vectorized", "thread")
"""The kinds of loops whose iterations run at the same time."""


class AllocationScopeError(ScheduleError):
    """A step that moves a use of a temporary out of the loops whose iterations allocate it."""

    title = "Use outside of an allocation"


def lifted(state: State, step: Step) -> tuple[State, tuple[BufferRef, ...]]:
    """Return a state in which allocations between the targets of a step are outside of them.

    An allocation that contains some of the loops and blocks that a step names, but not all, is
    moved outward as far as needed. This keeps all results: in the loops that it leaves, iterations
    use the same elements one after the other. An allocation stays where it is if its shape depends
    on such a loop, or if iterations that run at the same time may write the same elements. The
    temporaries that moved are returned, too.
    """
    moved: list[BufferRef] = []
    names = dict.fromkeys(ref.function for ref in step.handles())
    changed: list[PrimFunc] = []
    for name in names:
        func = state.module.functions.get(name)
        if not isinstance(func, PrimFunc) or not _has_scopes(tree_of(func)):
            continue
        refs = (ref for ref in step.handles() if isinstance(ref, LoopRef | BlockRef))
        uids = [ref.uid for ref in refs if ref.function == name]
        new, buffers = _lifted(func, uids)
        moved += [buffer_ref(name, b) for b in buffers]
        changed += [new] if buffers else []
    if not changed:
        return state, ()
    return state.with_module(state.module.with_functions(*changed)), tuple(moved)


def has_scopes(state: State, step: Step) -> bool:
    """Return whether a function that a step names allocates a temporary in a loop."""
    names = dict.fromkeys(ref.function for ref in step.handles())
    functions = (state.module.functions.get(name) for name in names)
    return any(isinstance(f, PrimFunc) and _has_scopes(tree_of(f)) for f in functions)


def _has_scopes(tree: Tree) -> bool:
    return len(tree.allocs) > len(tree.function.buffers)


def _lifted(func: PrimFunc, uids: Collection[Uid]) -> tuple[PrimFunc, list[Buffer]]:
    moved: list[Buffer] = []
    tree = tree_of(func)
    nodes = _nodes(tree, uids)
    for uid in [buffer.uid for buffer, alloc in tree.allocs.items() if alloc is not None]:
        alloc = tree.allocs[tree.buffers[uid]]
        if alloc is None or not nodes:
            continue
        inside = [tree.contains(alloc.body, node) for node in nodes]
        if any(inside) and not all(inside):
            place = tree.common((alloc, *nodes))
            if _obstacle(tree, alloc, place) is None:
                func = _moved(func, alloc, place)
                tree = tree_of(func)
                nodes = _nodes(tree, uids)
                moved.append(alloc.buffer)
    return func, moved


def _nodes(tree: Tree, uids: Iterable[Uid]) -> list[For | Block]:
    """Return the loops and blocks of uids that exist."""
    parts = (tree.loops.get(uid) or tree.blocks.get(uid) for uid in uids)
    return [node for node in parts if node is not None]


def _obstacle(tree: Tree, alloc: Alloc, place: Stmt) -> Stmt | None:
    """Return a statement that an allocation cannot leave to be around another statement."""
    used = frozenset[Var]().union(*(d.free for d in _terms(alloc.buffer)))
    for above in tree.ancestors(alloc):
        match above:
            case For(var=var, kind=kind):
                together = kind in _TOGETHER
                if var in used or (together and not writes_separate(tree, above, alloc.buffer)):
                    return above
            case Let(var=var) if var in used:
                return above
            case Block():
                return above
            case _:
                pass
        if above is place:
            break
    return None


def _terms(buffer: Buffer) -> tuple[Expr, ...]:
    return (*buffer.shape, *(buffer.strides or ()))


def _moved(func: PrimFunc, alloc: Alloc, place: Stmt) -> PrimFunc:
    """Return a function with an allocation around another statement that contains it."""
    body = without_allocation(place, alloc.buffer)
    return replace(func, body=_replaced(func, place, Alloc(alloc.buffer, body)))


def _replaced(func: PrimFunc, old: Stmt, new: Stmt) -> Stmt:
    tree = tree_of(func)
    path = (old, *tree.ancestors(old))
    return replaced_along(path[::-1], new)


def without_allocation(statement: Stmt, buffer: Buffer) -> Stmt:
    """Return a statement without the allocation of a buffer; the statements in it are kept."""
    for alloc in [a for a in allocations(statement) if a.buffer is buffer]:
        statement = replace_statement(statement, alloc, alloc.body)
    return statement


def with_allocation(statement: Stmt, old: Buffer, new: Buffer) -> Stmt:
    """Return a statement that allocates another buffer instead of one, whose uses are replaced."""

    def change(inner: Stmt) -> Stmt:
        allocates = isinstance(inner, Alloc) and inner.buffer is old
        return replace(inner, buffer=new) if allocates else inner

    return transform(statement, change)


def settled(func: PrimFunc, before: Tree, like: Buffer | None = None) -> PrimFunc:
    """Return a function, after a step, in which each temporary is allocated around all its uses.

    A new temporary that replaces one that is allocated in a loop is allocated in this loop, too.
    A temporary whose uses all moved is allocated around them again.

    Parameters
    ----------
    func : PrimFunc
        The function after the step.
    before : Tree
        The index of the function before it.
    like : Buffer, optional
        The buffer whose elements the new temporaries hold.

    Raises
    ------
    AllocationScopeError
        If a use is in other iterations than the allocation, and the allocation cannot be moved.
    """
    new = [b for b in func.buffers if b.uid not in before.buffers]
    scoped = like is not None and before.allocs.get(like) is not None
    for buffer in new:
        if scoped or not _is_global(before, buffer):
            func = _placed(func, buffer)
    after = tree_of(func)
    for buffer, alloc in before.allocs.items():
        if alloc is not None and buffer.uid not in after.buffers:
            func = _restored(func, before, alloc)
    made = [a for a in tree_of(func).allocs.values() if a is not None and not before.has(a)]
    for alloc in made:  # the others contain the uses that they contained before
        func = _widened(func, alloc.buffer.uid)
    return func


def _is_global(before: Tree, buffer: Buffer) -> bool:
    """Return whether the shape of a buffer is known for the whole function."""
    if all(not dim.free for dim in _terms(buffer)):
        return True
    bound = {s.var for s in (*before.loops.values(), *before.lets)}
    return all(dim.free.isdisjoint(bound) for dim in _terms(buffer))


def _users(tree: Tree, buffer: Buffer) -> list[Stmt]:
    """Return the outermost blocks, and the lets outside of blocks, that access a buffer."""
    found: list[Stmt] = [b for b in tree.outermost_blocks() if buffer in _accessed(b)]
    return [*found, *tree.outer_lets(buffer)]


@lru_cache(maxsize=4096)
def _accessed(block: Block) -> frozenset[Buffer]:
    stored = (store.buffer for store in block_stores(block))
    return frozenset((*stored, *(load.buffer for load in loads(block))))


def _stores_to(block: Block, buffer: Buffer) -> bool:
    return any(store.buffer is buffer for store in block_stores(block))


def _placed(func: PrimFunc, buffer: Buffer) -> PrimFunc:
    """Allocate a buffer of the function around the statements that use it."""
    tree = tree_of(func)
    users = _users(tree, buffer)
    buffers = tuple(b for b in func.buffers if b is not buffer)
    if not users:
        return replace(func, buffers=buffers)
    place = _around_inits(tree, buffer, tree.common(users), users)
    body = _replaced(func, place, Alloc(buffer, place))
    return replace(func, body=body, buffers=buffers)


def _restored(func: PrimFunc, before: Tree, alloc: Alloc) -> PrimFunc:
    """Allocate a temporary again, in the same loops, if the statements that use it left its scope.

    Raises
    ------
    AllocationScopeError
        If a use is in other iterations than the allocation was, and that changes results.
    """
    tree = tree_of(func)
    users = _users(tree, alloc.buffer)
    if not users:
        return func
    old = tuple(above.var for above in before.ancestors(alloc) if isinstance(above, For | Let))
    place = tree.common(users)
    for above in tree.ancestors(place):
        if isinstance(above, For | Let) and above.var not in old:
            place = above  # an iteration uses the elements of the one before
    place = _around_inits(tree, alloc.buffer, place, users)
    kept = {above.var for above in tree.ancestors(place) if isinstance(above, For | Let)}
    outer = [s for s in before.ancestors(alloc) if isinstance(s, For | Let) and s.var not in kept]
    obstacle = _obstacle(before, alloc, outer[-1]) if outer else None
    if obstacle is not None:
        raise _misplaced(func, alloc.buffer, obstacle)
    return replace(func, body=_replaced(func, place, Alloc(alloc.buffer, place)))


def _around_inits(tree: Tree, buffer: Buffer, place: Stmt, users: Collection[Stmt]) -> Stmt:
    """Return a statement, or one around it, that contains the inits which write a buffer."""
    for block in users:
        if not isinstance(block, Block) or block.init is None:
            continue
        path = statements_around(tree, block)
        first = (*path, block)[reduction_position(path, block)]
        if _stores_to(block, buffer) and tree.contains(first, place):
            place = first
    return place


def _widened(func: PrimFunc, uid: Uid) -> PrimFunc:
    tree = tree_of(func)
    buffer = tree.buffers[uid]
    alloc = tree.allocs[buffer]
    if alloc is None or tree.block_around(alloc) is not None:
        return func
    users = _users(tree, buffer)
    if not users:
        return replace(func, body=without_allocation(func.body, buffer))
    place = _around_inits(tree, buffer, tree.common((alloc, *users)), users)
    if place is alloc:
        return func
    obstacle = _obstacle(tree, alloc, place)
    if obstacle is None:
        return _moved(func, alloc, place)
    raise _misplaced(func, buffer, obstacle)


def _misplaced(func: PrimFunc, buffer: Buffer, obstacle: Stmt) -> AllocationScopeError:
    around = obstacle.var.name if isinstance(obstacle, For | Let) else "the block"
    return AllocationScopeError(
        f"{buffer.name!r} is allocated in each iteration of {around!r}, but would be used outside "
        f"of it; allocate it outside, with a shape that does not depend on {around!r}",
        where=f"function {func.name!r}",
    )


def sunk(func: PrimFunc, uids: Collection[Uid], inside: Uid | None = None) -> PrimFunc:
    """Return a function in which temporaries are allocated as far inside of loops as is proved.

    Parameters
    ----------
    func : PrimFunc
        The function.
    uids : collection of Uid
        The temporaries.
    inside : Uid, optional
        Move the temporaries at least into this loop.
    """
    for uid in uids:
        tree = tree_of(func)
        buffer = tree.buffers.get(uid)
        if buffer is not None and buffer in tree.allocs:
            func = _sunk(func, tree, buffer, inside)
    return func


def _sunk(func: PrimFunc, tree: Tree, buffer: Buffer, inside: Uid | None) -> PrimFunc:
    place = _innermost(tree, buffer, inside)
    if place is None:
        return func
    alloc = tree.allocs[buffer]
    body = _replaced(func, place, Alloc(buffer, place))
    if alloc is None:
        return replace(func, body=body, buffers=tuple(b for b in func.buffers if b is not buffer))
    return replace(func, body=_without_outer(body, buffer))


def _without_outer(body: Stmt, buffer: Buffer) -> Stmt:
    """Return a statement without the outer one of two allocations of a buffer.

    The inner one may contain more than its statement: those that follow it, too.
    """
    outer = next(s for s in walk(body) if isinstance(s, Alloc) and s.buffer is buffer)
    return replace_statement(body, outer, outer.body)


def _innermost(tree: Tree, buffer: Buffer, inside: Uid | None) -> Stmt | None:
    """Return the innermost statement around all uses of a buffer at which it is written first.

    Return None if no loop is between the allocation and the uses, or nothing is proved.
    """
    users = _users(tree, buffer)
    if not users:
        return None
    place = _around_inits(tree, buffer, tree.common(users), users)
    alloc = tree.allocs[buffer]
    path: list[Stmt] = [place, *tree.ancestors(place)]
    if alloc is not None:
        path = path[: path.index(alloc)] if alloc in path else []
    common = (k for k, above in enumerate(path) if _is_common(tree, above, buffer))
    first = max(common, default=0)
    path = path[first:]
    for position, above in enumerate(path):
        if not isinstance(above, For) or position == 0:
            continue
        if is_covered(tree, above, buffer):
            below = position - 1
            while below and not isinstance(path[below], For):
                below -= 1
            return path[below]
        if above.uid == inside:
            break
    return None


def _is_common(tree: Tree, statement: Stmt, buffer: Buffer) -> bool:
    """Return whether the iterations of a loop use the same allocation of a buffer.

    The threads of a thread block do if the buffer is in shared memory, and the lanes of a vector
    if they write different elements.
    """
    if not isinstance(statement, For):
        return False
    if statement.kind == "vectorized":
        return writes_separate(tree, statement, buffer)
    threads = statement.kind == "thread" and statement.thread in THREAD_AXES
    return threads and buffer.scope in OF_BLOCK


def parts_of(loop: For) -> tuple[Stmt, ...]:
    """Return the statements of a loop body in order; those of an allocation's scope, too."""
    return tuple(_parts(loop.body))


def _parts(statement: Stmt) -> Iterator[Stmt]:
    match statement:
        case Seq(body=parts):
            for part in parts:
                yield from _parts(part)
        case Alloc(body=body):
            yield from _parts(body)
        case _:
            yield statement
