"""Races: dependences between iterations of loops whose kind runs them at the same time.

The kind of a loop is a claim. A ``parallel`` loop runs its iterations on several threads, a
``vectorized`` loop in the lanes of a vector, and a loop that is bound to a thread axis on the
threads of a GPU. Steps check the claim before they set the kind; a program in text makes it by
itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, cast

from ...target.gpus import BLOCK_AXES, THREAD_AXES
from ..loop.decompose import reduction_variables
from ..loop.memory_scopes import OF_BLOCK
from ..loop.nodes import INTRINSIC, Block, Buffer, For, IterVar, Seq, Stmt
from ..loop.ranges import is_empty
from ..loop.reducers import same_operation
from ..loop.visit import loads, stores, transform, walk
from ..symbolic import UnboundSymbolError, Var, const_value, evaluate, linear_form, to_text
from .accesses import accesses, writes
from .dependences import (
    OWN,
    Conflict,
    bound_kinds,
    conflicts,
    iterated_kinds,
)
from .disjoint_writes import same_elements
from .enclosing import statements_around
from .footprints import Iterations, footprints, further_footprints, may_overlap
from .lane_scans import scans_lanes
from .scatter import commutes, scatter_updates
from .tree import Tree
from .updates import reduction_of, reorders

_CONCURRENT: Final = frozenset({"parallel", "vectorized", "thread"})


_LOADED: Final = "at loaded indices, which are equal for some data"

_OF_LOADED_INDICES: Final = (
    "write range(n) for this loop, and apply parallel, vectorize or bind to a loop whose "
    "iterations write different elements for all data: a loop inside of the loaded integers, or a "
    "loop over the elements of {0} that loads which element to read, as in {0}[v] = x[p]; or check "
    "that the bounds of segments increase: checked(off[i + 1], lo, n) in checked(off[i], 0, n) "
    "as lo"
)


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses in different iterations of a loop, whose order its kind does not keep.

    Parameters
    ----------
    reason : str
        The accesses, with their block and buffer, as text.
    block : Block
        The block with one of the accesses.
    fix : str
        A change of this program; empty if only the fix of the rule is known.
    """

    reason: str
    block: Block
    fix: str = ""


def races(tree: Tree, loop: For) -> Iterator[Race]:
    """Yield the dependences between iterations of a loop that its kind does not preserve.

    A dependence that the indices do not exclude is a race if two iterations access one element for
    some values of the symbols; the search for such iterations is limited. Loops of other kinds,
    loops of one iteration and the loops of an intrinsic have no races.

    Parameters
    ----------
    tree : Tree
        The index of the function.
    loop : For
        The loop.

    Examples
    --------
    >>> from ..script import parse
    >>> from .tree import tree_of
    >>> tree = tree_of(
    ...     parse(
    ...         '''
    ... @prim_func
    ... def f(x: Buffer[(8,), f32], y: InOut[(9,), f32]):
    ...     for i in parallel(8):
    ...         with block("y"):
    ...             vi = spatial(i)
    ...             y[vi + 1] = y[vi] + x[vi]
    ... ''',
    ...         check=False,
    ...     ).prims[0]
    ... )
    >>> [race.reason for race in races(tree, *tree.loops.values())]
    ["iteration 1 reads y[1], which iteration 0 writes; block 'y' writes y[vi + 1] and reads y[vi]"]
    """
    size = const_value(loop.extent)
    single = size is not None and size <= 1
    if loop.kind not in _CONCURRENT or single or _is_implemented(tree, loop):
        return
    unordered = tuple(_order_races(tree, loop))
    if unordered:
        yield from unordered
        return
    found = tuple(kind_conflicts(tree, loop))
    for buffer in dict.fromkeys(c.buffer for c in found):
        if tree.allocated_in(buffer, loop.body):
            continue  # each iteration has its own elements
        if loop.kind == "thread" and buffer.scope in OWN and not _is_own(tree, loop, buffer):
            continue  # threads have their own elements; lowering rejects reads of other threads'
        shared = next((c for c in found if c.buffer is buffer and c.shares_byte), None)
        if shared is not None:
            witness = _byte_witness(tree, loop, buffer)
            if witness is not None:
                yield Race(f"{shared.reason}; {witness}", shared.block)
                continue
        witness = _witness(tree, loop, buffer)
        if witness is not None:
            block = next(c.block for c in found if c.buffer is buffer)
            fix = _OF_LOADED_INDICES.format(buffer.name) if witness.endswith(_LOADED) else ""
            yield Race(f"{witness}; {_accesses_text(block, buffer)}", block, fix)


def kind_conflicts(tree: Tree, loop: For) -> Iterator[Conflict]:
    """Yield the conflicts between iterations of a loop that its kind does not preserve.

    Iterations of a serial or unrolled loop keep their order, so it has none. Lanes and threads
    combine their updates of a reduction.

    Parameters
    ----------
    tree : Tree
        The index of the function.
    loop : For
        The loop.
    """
    if loop.kind not in _CONCURRENT or (loop.kind == "vectorized" and scans_lanes(tree, loop)):
        return
    if loop.kind == "thread":
        found = thread_conflicts(tree, loop, loop.thread)
    else:
        found = conflicts(tree, loop, lanes=loop.kind == "vectorized")
    for conflict in found:
        if not _combines(tree, loop, conflict.buffer):
            yield conflict


def _witness(tree: Tree, loop: For, buffer: Buffer) -> str | None:
    """Return two iterations of a loop that access one element of a buffer, as text."""
    private = _is_own(tree, loop, buffer)
    for sizes, found in _footprints(tree, loop, footprints):
        for first, second in itertools.permutations(found, 2):
            here, there = found[second], found[first]
            written = there.written.get(buffer, set())
            read = here.exposed if private else here.read
            if private and buffer in here.unknown:
                continue
            if may_overlap(here, there, buffer):
                return f"iterations {first} and {second} write {buffer.name} {_LOADED}"
            twice = set[tuple[int, ...]]() if private else here.written.get(buffer, set())
            for verb, elements in (("writes", twice), ("reads", read.get(buffer, set()))):
                common = elements & written
                if common:
                    return _common_text(buffer, min(common), (first, second, verb), sizes)
    return _distant_witness(tree, loop, buffer, private=private)


def _byte_witness(tree: Tree, loop: For, buffer: Buffer) -> str | None:
    """Return two iterations of a loop that write elements of one byte, as text."""
    for enumerated in (footprints, further_footprints):
        for sizes, found in _footprints(tree, loop, enumerated):
            try:
                dims = [evaluate(dim, sizes) for dim in buffer.shape]
            except UnboundSymbolError:
                return f"the shape of {buffer.name} differs between iterations"
            writers: dict[int, int] = {}
            for i, part in found.items():
                if buffer in part.unknown:
                    return f"iteration {i} writes {buffer.name} {_LOADED}"
                for element in part.written.get(buffer, ()):
                    byte = _flat(element, dims) // buffer.dtype.per_byte
                    other = writers.setdefault(byte, i)
                    if other != i:
                        at = ", ".join(map(str, element))
                        values = ", ".join(f"{v.name} = {value}" for v, value in sizes.items())
                        where = (
                            f"iteration {i} writes {buffer.name}[{at}]{values and f' if {values}'}"
                        )
                        return f"{where}, in a byte that iteration {other} writes, too"
    return None


def _flat(element: tuple[int, ...], dims: list[int]) -> int:
    """Return the position of an element in row-major order."""
    position = 0
    for index, dim in zip(element, dims, strict=True):
        position = position * dim + index
    return position


def _distant_witness(tree: Tree, loop: For, buffer: Buffer, *, private: bool) -> str | None:
    """Return two iterations, as text, of more than the first ones and the last one."""
    for sizes, found in _footprints(tree, loop, further_footprints):
        writers: dict[tuple[int, ...], list[int]] = {}
        for i, part in found.items():
            for element in part.written.get(buffer, ()):
                others = writers.setdefault(element, [])
                if others and not private:
                    return _common_text(buffer, element, (others[0], i, "writes"), sizes)
                others.append(i)
        for i, part in found.items():
            if private and buffer in part.unknown:
                continue
            read = part.exposed if private else part.read
            for element in read.get(buffer, ()):
                for other in writers.get(element, ())[:2]:
                    if other != i:
                        return _common_text(buffer, element, (other, i, "reads"), sizes)
    return None


def _common_text(
    buffer: Buffer,
    element: tuple[int, ...],
    iterations: tuple[int, int, str],
    sizes: Mapping[Var, int],
) -> str:
    """Return an element that one iteration writes, and another one reads or writes, as text."""
    first, second, verb = iterations
    at = ", ".join(map(str, element))
    also = ", too" if verb == "writes" else ""
    values = ", ".join(f"{v.name} = {value}" for v, value in sizes.items())
    condition = f" if {values}" if values else ""
    return (
        f"iteration {second} {verb} {buffer.name}[{at}], which iteration {first} "
        f"writes{also}{condition}"
    )


def _footprints(
    tree: Tree, loop: For, enumerated: Callable[[Tree, For], Iterable[Iterations]]
) -> tuple[Iterations, ...]:
    """Return the footprints of iterations of a loop; results are cached."""
    key = (enumerated.__name__, loop)
    known = tree.memo.get(key)
    if known is None:
        known = tree.memo[key] = tuple(enumerated(tree, loop))
    return cast("tuple[Iterations, ...]", known)


def _is_own(tree: Tree, loop: For, buffer: Buffer) -> bool:
    """Return whether each iteration of a loop may have its own copy of a temporary."""
    if not tree.is_temporary(buffer) or loop.kind == "vectorized":
        return False
    if buffer.scope == "shared" and loop.thread not in BLOCK_AXES:
        return False
    users = [b for b in tree.outermost_blocks() if any(a.buffer is buffer for a in accesses(b))]
    return all(tree.contains(loop, s) for s in (*users, *tree.outer_lets(buffer)))


def _accesses_text(block: Block, buffer: Buffer) -> str:
    """Return the accesses of a block to a buffer as text."""
    found = [a for a in accesses(block) if a.buffer is buffer]
    parts: list[str] = []
    for verb, kind in (("writes", True), ("reads", False)):
        texts = (", ".join(map(to_text, a.indices)) for a in found if a.writes is kind)
        listed = ", ".join(dict.fromkeys(f"{buffer.name}[{text}]" for text in texts))
        parts += [f"{verb} {listed}"] if listed else []
    return f"block {block.name!r} {' and '.join(parts)}"


def thread_conflicts(tree: Tree, loop: For, axis: str) -> Iterator[Conflict]:
    """Yield the conflicts between the iterations of a loop that is bound to a thread axis.

    Reductions that the threads combine and updates that they apply atomically do not conflict.

    Parameters
    ----------
    tree : Tree
        The index of the function.
    loop : For
        The loop.
    axis : str
        The axis, such as ``threadIdx.x``.
    """
    for conflict in axis_conflicts(tree, loop, axis):
        combined = _is_combined(tree, loop, conflict)
        if not combined and not _is_atomic(tree, loop, axis, conflict):
            yield conflict


def axis_conflicts(tree: Tree, loop: For, axis: str) -> Iterator[Conflict]:
    """Yield the conflicts between iterations on a thread axis, also those of atomic updates."""
    if axis in BLOCK_AXES:
        return conflicts(tree, loop, own=OWN | OF_BLOCK)
    return conflicts(tree, loop, common=OF_BLOCK)


def updates_atomically(block: Block, axis: str) -> bool:
    """Return whether a block only updates its buffers in place, which threads do atomically."""
    written = {a.buffer for a in writes(block)}
    if any(buffer.dtype.is_packed for buffer in written):
        return False
    return axis in (*BLOCK_AXES, *THREAD_AXES) and written <= set(scatter_updates(block))


def _is_atomic(tree: Tree, loop: For, axis: str, conflict: Conflict) -> bool:
    """Return whether a conflict is only between updates that the threads apply atomically.

    Elements that share a byte are not updated atomically.
    """
    axes = (*BLOCK_AXES, *THREAD_AXES)
    packed = conflict.buffer.dtype.is_packed
    return axis in axes and not packed and commutes(tree, loop, conflict.block, conflict.buffer)


def _is_combined(tree: Tree, loop: For, conflict: Conflict) -> bool:
    """Return whether a conflict is only in a reduction that the threads combine."""
    block, buffer = conflict.block, conflict.buffer
    if not reorders(block) or "reduce" not in iterated_kinds(tree, loop, block):
        return False
    writers = [b for b in tree.blocks_in(loop.body) if writes(b, buffer)]
    return writers == [block]


def _order_races(tree: Tree, loop: For) -> Iterator[Race]:
    """Yield the iteration variables of a loop whose order, or whose sum, the kind does not keep.

    A binding may contain the loop without depending on its order, as after the fusion of two inner
    loops. It is a race if it is linear in an ordered loop that is not proved to have independent
    iterations, or if two iterations write one element.
    """
    if loop.kind == "vectorized" and scans_lanes(tree, loop):
        return
    for block in tree.blocks_in(loop.body):
        kinds = iterated_kinds(tree, loop, block)
        if any(_is_linear(loop, v) for v in block.iters if v.kind == "ordered"):
            carried = next((c for c in kind_conflicts(tree, loop) if c.block is block), None)
            if carried is not None:
                text = f"it binds an ordered iteration variable of block {block.name!r}"
                yield Race(f"{text}: {carried.reason}", block)
        elif "ordered" in kinds or ("reduce" in kinds and not _is_atomic_update(loop, block)):
            noun = "an ordered iteration variable" if "ordered" in kinds else "a reduction"
            written = dict.fromkeys(a.buffer for a in writes(block))
            own = () if "ordered" in kinds else [b for b in written if _combines(tree, loop, b)]
            found = (_witness(tree, loop, b) for b in written if b not in own)
            witness = next((w for w in found if w is not None), None)
            if witness is not None:
                yield Race(f"it binds {noun} of block {block.name!r}: {witness}", block)


def _is_atomic_update(loop: For, block: Block) -> bool:
    """Return whether the threads of a loop apply all updates of a block atomically."""
    return loop.kind == "thread" and updates_atomically(block, loop.thread)


def _is_linear(loop: For, item: IterVar) -> bool:
    """Return whether the binding of an iteration variable is linear in a loop."""
    if loop.var not in item.binding.free:
        return False
    form = linear_form(item.binding, (loop.var,))
    return form is not None and loop.var in form.coefficients


def _combines(tree: Tree, loop: For, buffer: Buffer) -> bool:
    """Return whether the lanes or threads of a loop combine their updates of a buffer.

    All blocks of the loop that access the buffer reduce over the loop with one operator. An init is
    in the first of them, which initializes each element before the others update it.
    """
    if loop.kind != "vectorized" and loop.thread not in THREAD_AXES:
        return False
    if any(tree.contains(loop, let) for let in tree.outer_lets(buffer)):
        return False
    users = [b for b in tree.blocks_in(loop.body) if _may_access(tree, b, buffer)]
    updates = [reduction_of(b) for b in users]
    operators = [update.reducer for update in updates if update is not None]
    if any(not reducer.commutative for reducer in operators):
        return False
    return (
        all(same_operation(operators[0], other) for other in operators[1:])
        and None not in updates
        and all(bound_kinds(loop, b) == frozenset({"reduce"}) for b in users)
        and all(b.init is None for b in users[1:])
        and (
            not users
            or users[0].init is None
            or all(same_elements(tree, loop, buffer, users[0], b) for b in users[1:])
        )
    )


def _may_access(tree: Tree, block: Block, buffer: Buffer) -> bool:
    """Return whether a block accesses a buffer, except in loops without iterations.

    The init of a reduction runs even if a loop of the reduction has no iterations.
    """
    if all(a.buffer is not buffer for a in accesses(block)):
        return False
    empty = {s.var for s in tree.ancestors(block) if isinstance(s, For) and _is_empty(s)}
    if empty:
        init = () if block.init is None else (*stores(block.init), *loads(block.init))
        reduced = reduction_variables(statements_around(tree, block), block)
        return empty <= reduced and any(s.buffer is buffer for s in init)
    if not any(map(_is_empty, walk(block.body))):
        return True
    body = transform(block.body, lambda s: Seq(()) if _is_empty(s) else s)
    return any(s.buffer is buffer for s in (*stores(body), *loads(body)))


def _is_empty(statement: Stmt) -> bool:
    return isinstance(statement, For) and is_empty(statement)


def _is_implemented(tree: Tree, loop: For) -> bool:
    """Return whether a loop is inside a block that an intrinsic implements."""
    around = (s for s in tree.ancestors(loop) if isinstance(s, Block))
    return any(key == INTRINSIC for block in around for key, _ in block.annotations)
