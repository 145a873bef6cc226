"""GPU rule for kernels that reduce rows: one thread block per row, columns bound to threads."""

from __future__ import annotations

from typing import Final

from ....ir.loop.nodes import Buffer
from ....ir.symbolic import Expr, const_value, product
from ....target.gpus import limits_of
from ...composite import composite
from ...handles import BlockRef, FunctionRef, LoopRef, buffer_ref
from ...launch.shared_memory import element_width
from ...patterns import Rows, classify
from ...primitives.placement.compute_inline import ComputeInline
from ...problem import RuleNotApplicableError
from ...schedule import Schedule
from ._binding import THREADS, WARP, joined, require_exchange

LONGEST: Final = 4096
"""The largest number of elements of a row that a thread block keeps in shared memory."""

EXCHANGE: Final = 2048
"""The bytes of shared memory that remain for the partial results of reductions."""


@composite
def schedule_gpu_rows(sch: Schedule, function: FunctionRef) -> None:
    """Run each row in one thread block: rows are bound to thread blocks, columns to threads.

    Before::

        for i in range(n):
            for j in range(m):
                s[i] += x[i, j]
        for i in range(n):
            for j in range(m):
                y[i, j] = x[i, j] / s[i]

    After::

        for i in bind(n, "blockIdx.x"):
            for j_0 in range(ceildiv(m, 256)):
                for t in bind(256, "threadIdx.x"):
                    s[i] += x[i, j_0 * 256 + t]
            for j_0 in range(ceildiv(m, 256)):
                for t in bind(256, "threadIdx.x"):
                    y[i, j_0 * 256 + t] = x[i, j_0 * 256 + t] / s[i]

    Parameters
    ----------
    function : FunctionRef
        The function. Its blocks have common outer dimensions, and some reduce the inner ones.

    Notes
    -----
    ``compute_inline`` for temporaries of unknown size, ``compute_at`` under the row loops of the
    last block, ``set_scope``, then ``split`` and ``bind``. A row of a temporary has at most 4096
    elements, which are in shared memory; rows that do not fit in the shared memory of the target
    are inlined, too, so that they are computed again.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(4, 64), f32], y: Out[(4,), f32]):
    ...     for i in range(4):
    ...         for j in range(64):
    ...             with block("sum"):
    ...                 vi, vj = spatial(i), reduce(j)
    ...                 with init(): y[vi] = 0.0
    ...                 y[vi] += x[vi, vj]
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cuda", arch="sm_90a"))
    >>> sch.schedule_gpu_rows("f")
    >>> [sch.state.loop(loop).thread for loop in sch.get_loops("sum")]
    ['blockIdx.x', '', 'threadIdx.x']
    """
    name = function.function
    _inline_columns(sch, name)
    pattern = classify(sch.module.prim(name))
    if not isinstance(pattern, Rows):
        raise RuleNotApplicableError(f"{name!r} does not reduce rows")
    _inline_long_rows(sch, name, pattern.shared)
    refs = sch.get_blocks(name)
    if pattern.shared:
        *before, last = refs
        row = sch.get_loops(last)[pattern.shared - 1]
        for block in reversed(before):
            sch.compute_at(block, row)
    _scopes(sch, name, pattern.shared)
    threads = _threads(sch, refs, pattern.shared)
    for block in refs:
        _columns(sch, block, sch.get_loops(block)[pattern.shared :], threads)
    if pattern.shared:
        outer = sch.get_loops(refs[-1])[: pattern.shared]
        sch.bind(joined(sch, outer), "blockIdx.x")


def _inline_columns(sch: Schedule, name: str) -> None:
    """Inline temporaries of unknown size into their consumers."""
    for block in sch.get_blocks(name):
        node = sch.state.block(block)
        written = node.writes[0].buffer
        long = _constant_size(written.shape) is None
        step = ComputeInline(block)
        if node.init is None and long and not sch.check(step):
            sch.apply(step)


def _inline_long_rows(sch: Schedule, name: str, shared: int) -> None:
    """Inline the rows that do not fit in the shared memory beside the others, where it is legal."""
    room = _room(sch, name)
    temporaries = sch.state.tree(name).temporaries
    for block in sch.get_blocks(name):
        node = sch.state.block(block)
        written = node.writes[0].buffer
        size = _constant_size(written.shape[shared:]) or 1
        if written not in temporaries or size == 1:
            continue
        needed = size * _width(sch, name, written)
        step = ComputeInline(block)
        if needed <= room and size <= LONGEST:
            room -= needed
        elif node.init is None and not sch.check(step):
            sch.apply(step)


def _room(sch: Schedule, name: str) -> int:
    """Return the bytes of shared memory of a thread block for rows."""
    return limits_of(sch.state.target_of(name)).shared_optin - EXCHANGE


def _width(sch: Schedule, name: str, buffer: Buffer) -> int:
    """Return the bytes of an element in shared memory."""
    return element_width(buffer.dtype, sch.state.target_of(name))


def _constant_size(dims: tuple[Expr, ...]) -> int | None:
    """Return the number of elements if every dimension is constant; ``n * 0`` is not enough."""
    known = [const_value(d) for d in dims]
    return None if None in known else const_value(product(dims))


def _scopes(sch: Schedule, name: str, shared: int) -> None:
    """Set memory scopes: one value per row in registers of every thread, rows in shared memory.

    A value that one of the threads computes is in shared memory, too.
    """
    room = _room(sch, name)
    for buffer in sch.state.tree(name).temporaries:
        size = _constant_size(buffer.shape[shared:])
        if size is None or size > LONGEST:
            raise _too_long(buffer, size)
        scope = "local" if size == 1 and not _is_divided(sch, name, buffer, shared) else "shared"
        if scope == "shared":
            room -= size * _width(sch, name, buffer)
        if room < 0:
            raise _too_long(buffer, size)
        sch.set_scope(buffer_ref(name, buffer), scope)


def _is_divided(sch: Schedule, name: str, buffer: Buffer, shared: int) -> bool:
    """Return whether the loops that compute a row of a temporary are divided among threads."""
    for block in sch.get_blocks(name):
        writes = any(r.buffer is buffer for r in sch.state.block(block).writes)
        loops = sch.get_loops(block)[shared:]
        if writes and not all(_binds_reduction(sch, block, x) for x in loops):
            return True
    return False


def _too_long(buffer: Buffer, size: int | None) -> RuleNotApplicableError:
    length = "of unknown length" if size is None else f"of {size} elements"
    return RuleNotApplicableError(
        f"a row {length} of {buffer.name!r} does not fit the limit of {LONGEST} elements, or the "
        "shared memory of a thread block"
    )


def _threads(sch: Schedule, refs: tuple[BlockRef, ...], shared: int) -> int:
    """Return the number of threads per thread block: whole warps, up to the columns of a row."""
    longest = WARP
    for block in refs:
        loops = sch.get_loops(block)[shared:]
        size = const_value(product(tuple(sch.state.loop(x).extent for x in loops)))
        longest = max(longest, THREADS if size is None else size)
    threads = WARP
    while threads < min(longest, THREADS):
        threads *= 2
    return threads


def _columns(sch: Schedule, block: BlockRef, loops: tuple[LoopRef, ...], threads: int) -> None:
    """Bind the innermost column loops of a block to threads.

    Spatial loops are bound if there are any, else the reduction loops.
    """
    node = sch.state.block(block)
    reduces = {v.var for v in node.iters if v.kind == "reduce"}
    spatial = [x for x in loops if not _binds_reduction(sch, block, x)]
    chosen = spatial if spatial or not reduces else list(loops)
    if not chosen:
        return
    if chosen is not spatial:
        require_exchange(node)
    if tuple(chosen) != tuple(loops[: len(chosen)]):
        sch.reorder((*chosen, *(x for x in loops if x not in chosen)))
    _, thread = sch.split(joined(sch, tuple(chosen)), factors=(None, threads))
    sch.bind(thread, "threadIdx.x")


def _binds_reduction(sch: Schedule, block: BlockRef, loop: LoopRef) -> bool:
    """Return whether a loop binds a reduction of a block."""
    node, var = sch.state.block(block), sch.state.loop(loop).var
    return any(v.kind == "reduce" and var in v.binding.free for v in node.iters)
