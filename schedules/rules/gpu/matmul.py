"""GPU rule for matrix products: padded tiles in shared memory, sums in registers."""

from __future__ import annotations

from typing import Final

from ....ir.loop.nodes import Block, IterVar
from ....ir.loop.visit import loads, stores
from ...composite import composite
from ...handles import BlockRef, FunctionRef, LoopRef, block_ref, buffer_ref
from ...library._products import loops_of, written
from ...patterns import Matmul, classify
from ...primitives.tensorize.pad_einsum import PadEinsum
from ...problem import RuleNotApplicableError
from ...schedule import Schedule
from ._binding import joined

TILE: Final = 64
"""The number of rows, and of columns, of the result per thread block."""

DEPTH: Final = 16
"""The number of columns of A, and rows of B, that are in shared memory at the same time."""

SIDE: Final = 16
"""The number of threads of a thread block along rows, and along columns."""

OWN: Final = TILE // SIDE


@composite
def schedule_gpu_matmul(sch: Schedule, function: FunctionRef) -> None:
    """Tile a matrix product for thread blocks and threads; its epilogue is computed per tile.

    Before::

        for i in range(n):
            for j in range(m):
                for k in range(d):
                    C[i, j] += A[i, k] * B[k, j]

    After::

        for block_i in bind(ceildiv(n, 64), "blockIdx.y"):
            for block_j in bind(ceildiv(m, 64), "blockIdx.x"):
                for tile_k in range(ceildiv(d, 16)):
                    copy(A_shared, A, block_i, tile_k)
                    copy(B_shared, B, tile_k, block_j)
                    for thread_i in bind(16, "threadIdx.y"):
                        for thread_j in bind(16, "threadIdx.x"):
                            C_local += A_shared * B_shared
                C[...] = C_local

    Parameters
    ----------
    function : FunctionRef
        The function. Its product may be followed by element-wise blocks.

    Notes
    -----
    ``pad_einsum`` to complete tiles of 64 rows and columns, operands in shared memory that all
    threads copy (``cooperative_copy``), and sums in registers: 16 per thread, 256 threads.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def mm(A: Buffer[(64, 32), f32], B: Buffer[(32, 64), f32], C: Out[(64, 64), f32]):
    ...     for i in range(64):
    ...         for j in range(64):
    ...             for k in range(32):
    ...                 with block("mm"):
    ...                     vi, vj, vk = spatial(i), spatial(j), reduce(k)
    ...                     with init(): C[vi, vj] = 0.0
    ...                     C[vi, vj] += A[vi, vk] * B[vk, vj]
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cuda", arch="sm_90a"))
    >>> sch.schedule_gpu_matmul("mm")
    >>> [sch.state.loop(loop).thread for loop in sch.get_loops("mm")][:2]
    ['blockIdx.y', 'blockIdx.x']
    """
    name = function.function
    pattern = classify(sch.module.prim(name))
    if not isinstance(pattern, Matmul):
        raise RuleNotApplicableError(f"function {name!r} is not a matrix product")
    if pattern.prologue:
        raise RuleNotApplicableError(f"{name!r} has blocks before the product")
    if pattern.scaled:
        raise RuleNotApplicableError(f"{name!r} computes the right factor of its products")
    mm = block_ref(name, pattern.block)
    batch = len([v for v in pattern.block.iters if v.kind == "spatial"]) - 2
    fetches, out = _padded(sch, mm, pattern)
    i, j, k = loops_of(sch, mm, pattern, pattern.row, pattern.column, pattern.depth)
    loops = sch.get_loops(mm)
    outer = tuple(x for x in loops if x not in (i, j, k))
    if loops != (*outer, i, j, k):
        sch.reorder((*outer, i, j, k))
    block_i, own_i, thread_i = sch.split(i, factors=(None, OWN, SIDE))
    block_j, own_j, thread_j = sch.split(j, factors=(None, OWN, SIDE))
    tile_k, k = sch.split(k, factors=(None, DEPTH))
    sch.reorder((block_i, block_j, tile_k, thread_i, thread_j, k, own_i, own_j))
    sch.set_scope(written(sch, mm), "local")
    sch.reverse_compute_at(out, block_j)
    for fetch in fetches:
        sch.set_scope(written(sch, fetch), "shared")
        sch.compute_at(fetch, tile_k)
    _blocks(sch, outer, block_i, block_j)
    for fetch in fetches:
        sch.cooperative_copy(fetch, rows=SIDE, columns=SIDE)
    for loop in _results(sch, out):
        sch.unroll(loop)
    sch.bind(thread_i, "threadIdx.y")
    sch.bind(thread_j, "threadIdx.x")
    for loop in (k, own_i, own_j):
        sch.unroll(loop)
    if len(outer) != batch:
        raise RuleNotApplicableError(f"{name!r} has loops that bind no batch dimension")


def _padding(item: IterVar, pattern: Matmul) -> int:
    if item is pattern.depth:
        return DEPTH
    return TILE if item in (pattern.row, pattern.column) else 1


def _padded(sch: Schedule, mm: BlockRef, pattern: Matmul) -> tuple[list[BlockRef], BlockRef]:
    """Return the blocks that load the operands and the one that writes the results."""
    step = PadEinsum(mm, tuple(_padding(v, pattern) for v in pattern.block.iters))
    complete = PadEinsum.Requires.INCOMPLETE_TILE
    made: tuple[BlockRef, ...] = ()
    if {p.requirement for p in sch.check(step)} != {complete}:
        made = sch.perform(step)  # raises an error if another requirement is violated
    result = _name_written(sch, mm)
    crop = next((b for b in made if result in _reads(sch, b)), None)
    copies = {_name_written(sch, b): b for b in made if b != crop}
    fetches: list[BlockRef] = []
    for operand in dict.fromkeys(r.buffer for r in sch.state.block(mm).reads):
        own = copies.get(operand.name)
        if own is None:
            own = sch.cache_read(mm, buffer_ref(mm.function, operand), "shared")
        fetches.append(own)
    return fetches, _out(sch, mm, pattern, crop)


def _name_written(sch: Schedule, block: BlockRef) -> str:
    return sch.state.block(block).writes[0].buffer.name


def _reads(sch: Schedule, block: BlockRef) -> set[str]:
    return {r.buffer.name for r in sch.state.block(block).reads}


def _out(sch: Schedule, mm: BlockRef, pattern: Matmul, crop: BlockRef | None) -> BlockRef:
    """Inline the blocks after the product into the last one, and return it."""
    for block in pattern.epilogue:
        _check_order(pattern, block)
    tail = [block_ref(mm.function, b) for b in pattern.epilogue]
    if crop is not None:
        tail.insert(0, crop)
    if not tail:
        return sch.cache_write(mm, written(sch, mm), "local")
    *inner, last = tail
    for block in inner:
        sch.compute_inline(block)
    return last


def _check_order(pattern: Matmul, after: Block) -> None:
    """Reject an epilogue that transposes the product: a thread would need sums of other threads."""
    product = {s.buffer for b in (pattern.block, *pattern.epilogue) for s in stores(b.body)}
    columns = tuple(v.var for v in after.iters[-2:])
    for load in loads(after.body):
        if load.buffer in product and load.indices[-2:] != columns:
            raise RuleNotApplicableError(f"block {after.name!r} transposes the product")


def _blocks(sch: Schedule, outer: tuple[LoopRef, ...], block_i: LoopRef, block_j: LoopRef) -> None:
    if outer:
        sch.bind(joined(sch, outer), "blockIdx.z")
    sch.bind(block_i, "blockIdx.y")
    sch.bind(block_j, "blockIdx.x")


def _results(sch: Schedule, out: BlockRef) -> tuple[LoopRef, LoopRef]:
    """Bind results to the threads that computed them; return the loops within a thread."""
    row, column = sch.get_loops(out)[-2:]
    own_i, thread_i = sch.split(row, factors=(OWN, SIDE))
    own_j, thread_j = sch.split(column, factors=(OWN, SIDE))
    sch.reorder((thread_i, thread_j, own_i, own_j))
    sch.bind(thread_i, "threadIdx.y")
    sch.bind(thread_j, "threadIdx.x")
    return own_i, own_j
