"""Temporaries of GPU kernels in registers or shared memory, shrunk to the live part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from ...ir.analysis import Tree, tree_of
from ...ir.analysis.allocations import loops_around
from ...ir.analysis.occurrences import Occurrence
from ...ir.analysis.thread_accesses import in_own_parts, reads_own_writes
from ...ir.copies import replace
from ...ir.kernel_errors import MemoryScopeError
from ...ir.loop.memory_scopes import OF_BLOCK, PRIVATE
from ...ir.loop.nodes import STORAGE_ALIGN, Block, Buffer, For, PrimFunc, Stmt
from ...ir.loop.thread_roles import Atomic
from ...ir.loop.visit import stores, walk
from ...ir.sizes import storage_bytes
from ...ir.symbolic import Expr, Var, as_expr, const_value, product, to_text
from ...target.gpus import BLOCK_AXES, THREAD_AXES
from ...target.target import Target
from .annotations import OWN_AXES, with_notes
from .compaction import (
    CompactedBuffer,
    Part,
    Rebase,
    begins_empty,
    buffer_accesses,
    by_age,
    common_loops,
    hoisted,
    live_scope,
    placement_note,
    shrunk,
    unproved,
)
from .lowering_pass import GPU, Pass

MAX_IMPLICIT_SHARED_BYTES: Final = 16 * 1024
"""The largest ``global`` temporary, in bytes, that is moved to shared memory."""


class CompactThreadBuffers(Pass):
    """Shrink each temporary of a GPU kernel and choose its memory scope.

    Before::
        for bx in thread(n, "blockIdx.x"):
            for tx in thread(64, "threadIdx.x"): T[bx, tx] = A[bx, tx]
            for tx in thread(64, "threadIdx.x"): B[bx, tx] = T[bx, 63 - tx]
    After::
        for bx in thread(n, "blockIdx.x"):
            for tx in thread(64, "threadIdx.x"):
                T[0, tx] = A[bx, tx]  # T is in shared memory
            for tx in thread(64, "threadIdx.x"):
                B[bx, tx] = T[0, 63 - tx]

    A buffer of scope ``local`` exists once per thread, ``shared`` once per thread block. A
    temporary that each thread allocates, and whose size is not a constant, is a part of global
    memory, which the caller provides. A ``global`` temporary becomes ``local`` if each thread reads
    only elements that it wrote itself and no update is atomic, else ``shared``. In a launch of one
    thread block, a ``global`` temporary above 16 KiB or of symbolic size remains in global memory.
    So does one of several thread blocks that does not fit in shared memory, if each of them
    accesses only its own elements.

    Raises
    ------
    MemoryScopeError
        If a temporary is not accessible to all its users, or its size is not a constant.
    """

    targets = GPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Compact all temporaries."""
        del target
        found, tree = buffer_accesses(func.body), tree_of(func)
        placed = _placements(func, found)
        func = replace(func, attributes=tuple(a for a in func.attributes if a[0] != OWN_AXES))
        changed = {b: c for b, c in placed.items() if c is not None}
        if not changed:
            return replace(func, body=Rebase({}).statement(func.body), buffers=tuple(placed))
        body = Rebase(changed, unproved(func, changed)).statement(func.body)
        notes = {b.name: placement_note(b, c, found[b], tree) for b, c in placed.items()}
        return with_notes(replace(func, body=body, buffers=_buffers(placed)), notes)


def compacted_buffers(func: PrimFunc) -> tuple[Buffer, ...]:
    """Return the temporaries that the pass makes, without the rewritten function.

    Raises
    ------
    MemoryScopeError
        As the pass does.
    """
    return _buffers(_placements(func, buffer_accesses(func.body)))


_Placements: TypeAlias = "dict[Buffer, CompactedBuffer | None]"
"""The shrunken form of each temporary; None if it is unchanged."""


def _placements(func: PrimFunc, found: Mapping[Buffer, list[Occurrence]]) -> _Placements:
    tree, own = tree_of(func), _own_axes(func)
    placed = {
        b: _placed(b, found[b], tree, own.get(b.name, frozenset()))
        for b in by_age(tree)
        if b in found
    }
    if any(placed.values()):
        for buffer, (axis, factor, offset) in _padding(func.body).items():
            made = placed.get(buffer)
            if made is not None:
                padded = _padded(made.buffer, axis, factor, offset)
                placed[buffer] = replace(made, buffer=padded)
    return placed


def _buffers(placed: _Placements) -> tuple[Buffer, ...]:
    return tuple(b if c is None else c.buffer for b, c in placed.items())


def _own_axes(func: PrimFunc) -> dict[str, frozenset[str]]:
    """Return the axes around each allocation, by the name of its buffer."""
    listed = dict(func.attributes).get(OWN_AXES)
    entries = listed if isinstance(listed, tuple) else ()
    names = [tuple(map(str, entry)) for entry in entries if isinstance(entry, tuple)]
    return {name: frozenset(tags) for name, *tags in names}


def _placed(
    buffer: Buffer, accesses: list[Occurrence], tree: Tree, axes: frozenset[str]
) -> CompactedBuffer | None:
    """Return the shrunken form of a temporary, or None if it remains in global memory.

    The threads along ``axes`` have their own elements, because each allocates them.
    """
    function = tree.function.name
    if buffer.scope not in OF_BLOCK:
        own = _per_thread(buffer, accesses, tree, axes)
        if own is not None and _bytes(own) is None and _is_of_thread(buffer, accesses, tree, axes):
            return _parts_of_threads(buffer, accesses, tree)
        if own is not None and (buffer.scope != "global" or _bytes(own) is not None):
            return _check_size(own, function)
        if buffer.scope in PRIVATE:
            raise MemoryScopeError(
                f"{buffer.name!r} has scope {buffer.scope!r} (private to a thread), but a thread "
                "reads an element that another thread wrote",
                where=f"function {function!r}",
                hint=f"use set_scope({buffer.name!r}, 'shared'), or bind the loops of the writer "
                "and of the readers to the same thread axes",
                parts=(buffer.name,),
            )
    several = [x for x in accesses[0].loops if _is_several(x)]
    if buffer.scope == "global" and not several:
        shared = _per_block(buffer, accesses, tree, axes)
        if (_bytes(shared) or MAX_IMPLICIT_SHARED_BYTES + 1) <= MAX_IMPLICIT_SHARED_BYTES:
            return shared
        if tree.allocs[buffer] is None:
            return None
        return hoisted(_same(buffer), accesses, tree, buffer, _with_own(buffer, tree, axes))
    if buffer.scope == "global":
        return _of_thread_blocks(buffer, accesses, tree, axes)
    return _check_size(_per_block(buffer, accesses, tree, axes), function)


def _same(buffer: Buffer) -> CompactedBuffer:
    """Return a temporary in its own form."""
    return CompactedBuffer(buffer, (None,) * buffer.rank, (1,) * buffer.rank)


def _of_thread_blocks(
    buffer: Buffer, accesses: list[Occurrence], tree: Tree, axes: frozenset[str]
) -> CompactedBuffer | None:
    """Return a ``global`` temporary of several thread blocks in shared memory, if it fits.

    Else it remains in global memory if each thread block accesses only its own elements.
    """
    facts = tree.function.facts
    try:
        shared = _per_block(buffer, accesses, tree, axes)
    except MemoryScopeError:
        if not in_own_parts(accesses, facts):
            raise
    else:
        if _bytes(shared) is not None or not in_own_parts(accesses, facts):
            return _check_size(shared, tree.function.name)
    if tree.allocs[buffer] is None:
        return None
    several = [x for x in accesses[0].loops if _is_several(x)]
    each = (*_with_own(buffer, tree, axes), *several)
    return hoisted(_same(buffer), accesses, tree, buffer, each)


def _is_of_thread(
    buffer: Buffer, accesses: list[Occurrence], tree: Tree, axes: frozenset[str]
) -> bool:
    """Return whether each thread of a launch allocates a temporary itself."""
    launch = {x for x in accesses[0].loops if x.kind == "thread"}
    return launch <= set(_fresh(buffer, tree, axes)) and buffer.scope != "fragment"


def _parts_of_threads(buffer: Buffer, accesses: list[Occurrence], tree: Tree) -> CompactedBuffer:
    """Return a temporary in global memory with a part for each thread of the launch."""
    several = [x for x in accesses[0].loops if x.kind == "thread" and const_value(x.extent) != 1]
    whole = shrunk(buffer, [None] * buffer.rank, "global")
    return hoisted(whole, accesses, tree, buffer, tuple(several))


def _with_own(buffer: Buffer, tree: Tree, axes: frozenset[str]) -> tuple[For, ...]:
    """Return the thread-bound loops each thread of which has its own elements of a buffer."""
    found = loops_around(tree, buffer)
    return tuple(x for x in found if x.thread in THREAD_AXES and x.thread in axes)


def _bytes(compact: CompactedBuffer) -> int | None:
    size = const_value(product(compact.buffer.shape))
    return None if size is None else storage_bytes(size, compact.buffer.dtype)


def _is_several(loop: For) -> bool:
    return loop.thread in BLOCK_AXES and const_value(loop.extent) != 1


def _per_thread(
    buffer: Buffer, accesses: list[Occurrence], tree: Tree, axes: frozenset[str]
) -> CompactedBuffer | None:
    """Return the buffer with one copy per thread, or None if threads share elements."""
    if buffer.name in _updated_atomically(tree):
        return None  # the updates of all threads belong to one element
    launch = [x for x in accesses[0].loops if x.kind == "thread" and const_value(x.extent) != 1]
    fresh = _fresh(buffer, tree, axes)
    loops, intervals = live_scope(buffer, accesses, common_loops(accesses), tree, fresh=fresh)
    private = set(launch) <= set(fresh)
    if not private and not set(launch) <= {*loops, *fresh}:
        if not _is_written_by_all(accesses, launch) or not _reads_own(accesses, tree):
            return None
        intervals = [*map(_whole, buffer.shape)]  # each thread computes all elements that it reads
    if not private and not _begins_empty(buffer, launch, tree):
        return None
    dense = buffer.scope != "fragment"
    made = shrunk(buffer, intervals, "local" if dense else "fragment", dense=dense)
    return _hoisted(made, accesses, tree, buffer)


def _fresh(buffer: Buffer, tree: Tree, axes: frozenset[str]) -> tuple[For, ...]:
    """Return the loops each iteration of which allocates its own elements of a buffer."""
    found = loops_around(tree, buffer)
    return tuple(x for x in found if x.kind != "thread" or x.thread in axes)


def _hoisted(
    made: CompactedBuffer,
    accesses: list[Occurrence],
    tree: Tree,
    buffer: Buffer,
    each: tuple[For, ...] = (),
) -> CompactedBuffer:
    if tree.allocs[buffer] is None:
        return made
    return hoisted(made, accesses, tree, buffer, each, constant=True)


def _whole(_: Expr) -> Part | None:
    """Return the part of a dimension that remains as it is."""
    return None


def _is_written_by_all(accesses: list[Occurrence], launch: list[For]) -> bool:
    """Return whether several threads of a block write the same elements."""
    threads = {x.var for x in launch if x.thread in THREAD_AXES and const_value(x.extent) != 1}
    return any(
        a.writes and threads > frozenset[Var]().union(*(i.free for i in a.indices)) & threads
        for a in accesses
    )


def _reads_own(accesses: list[Occurrence], tree: Tree) -> bool:
    """Return whether no thread reads an element that only other threads wrote or updated."""
    facts, reads = tree.function.facts, [a for a in accesses if not a.writes]
    writes = [a for a in accesses if a.writes]
    return all(reads_own_writes(w, r, facts) for w in writes for r in reads)


def _updated_atomically(tree: Tree) -> frozenset[str]:
    """Return the names of the buffers that several threads may update at the same time."""
    known = cast("frozenset[str] | None", tree.memo.get("updated_atomically"))
    if known is None:
        roles = (s.threads for s in walk(tree.function.body) if isinstance(s, Block))
        known = frozenset(b for role in roles if isinstance(role, Atomic) for b in role.buffers)
        tree.memo["updated_atomically"] = known
    return known


def _begins_empty(
    buffer: Buffer, launch: list[For], tree: Tree, collective: Mapping[Var, Expr] | None = None
) -> bool:
    """Return whether no value of a temporary enters the innermost of some launch loops."""
    return not launch or begins_empty(buffer, launch[-1].body, tree, collective)


def _per_block(
    buffer: Buffer, accesses: list[Occurrence], tree: Tree, axes: frozenset[str]
) -> CompactedBuffer:
    """Return the buffer with one copy per thread block."""
    function = tree.function.name
    moved = [_threads_last(a) for a in accesses]
    each, fresh = _with_own(buffer, tree, axes), _fresh(buffer, tree, axes)
    threads = {
        x.var: x.extent
        for a in accesses
        for x in a.loops
        if x.thread in THREAD_AXES and x not in each
    }
    common = tuple(x for x in common_loops(moved) if x.thread not in THREAD_AXES)
    loops, intervals = live_scope(buffer, moved, common, tree, threads, fresh=fresh)
    several = [x for x in accesses[0].loops if _is_several(x) and x not in fresh]
    missing = set(several) - set(loops)
    if missing or not _begins_empty(buffer, several, tree, threads):
        tags = sorted(x.thread for x in missing or several)
        raise MemoryScopeError(
            f"a thread block may read elements of {buffer.name!r} that another thread block wrote "
            f"(loops bound to {', '.join(tags)})",
            where=f"function {function!r}",
            hint="compute its writer inside the loops bound to blockIdx (compute_at), or in a "
            "separate kernel",
            parts=(buffer.name, *tags),
        )
    made = shrunk(buffer, intervals, "shared")
    return _hoisted(made, accesses, tree, buffer, each)


def _threads_last(access: Occurrence) -> Occurrence:
    inner = [x for x in access.loops if x.thread in THREAD_AXES]
    outer = [x for x in access.loops if x.thread not in THREAD_AXES]
    return replace(access, loops=(*outer, *inner))


def _check_size(compact: CompactedBuffer, function: str) -> CompactedBuffer:
    size = product(compact.buffer.shape)
    if const_value(size) is None:
        raise MemoryScopeError(
            f"{compact.buffer.name!r} has {to_text(size)} elements, which is not a constant; a "
            f"buffer in {compact.buffer.scope} memory needs a constant size",
            where=f"function {function!r}",
            hint="compute it inside a loop (compute_at), so that each iteration needs a part of "
            "constant size",
            parts=(compact.buffer.name,),
        )
    return compact


def _padding(body: Stmt) -> dict[Buffer, tuple[int, int, int]]:
    """Return the buffers with a ``storage_align`` annotation: axis, factor, and offset."""
    found: dict[Buffer, tuple[int, int, int]] = {}
    for block in walk(body):
        value = dict(block.annotations).get(STORAGE_ALIGN) if isinstance(block, Block) else None
        if isinstance(value, tuple):
            axis, factor, offset = (n for n in value if isinstance(n, int))
            found.update({s.buffer: (axis, factor, offset) for s in stores(block)})
    return found


def _padded(buffer: Buffer, axis: int, factor: int, offset: int) -> Buffer:
    """Increase the stride of one dimension until its remainder by ``factor`` is ``offset``."""
    strides: list[Expr] = []
    stride = as_expr(1)
    for number, size in reversed(tuple(enumerate(buffer.shape))):
        if number == axis:
            stride = stride + (offset - stride) % factor
        strides.insert(0, stride)
        stride = stride * size
    return replace(buffer, strides=tuple(strides))
