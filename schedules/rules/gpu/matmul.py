"""GPU rule for matrix products: padded tiles in shared memory, sums in registers."""

from __future__ import annotations

from typing import Final

from ....ir.loop.nodes import Block, IterVar
from ....ir.loop.visit import loads, stores
from ...handles import BlockRef, BufferRef, LoopRef
from ...primitives.tensorize.pad_einsum import PadEinsum
from ...problem import Problem, StepError
from ...schedule import Schedule
from ..patterns import Matmul, loop_of
from .fallback import joined

TILE: Final = 64
"""The number of rows, and of columns, of the result per thread block."""

DEPTH: Final = 16
"""The number of columns of A, and rows of B, that are in shared memory at the same time."""

SIDE: Final = 16
"""The number of threads of a thread block along rows, and along columns."""

OWN: Final = TILE // SIDE


def schedule_tiles(schedule: Schedule, name: str, pattern: Matmul) -> None:
    """Tile a product for thread blocks and threads; its epilogue is computed per tile.

    Raises
    ------
    StepError
        If the rule does not support the product.
    """
    if pattern.prologue:
        raise StepError("pad_einsum", (Problem(0, f"{name!r} has blocks before the product"),))
    mm = schedule.get_block(pattern.block.name, name)
    batch = len([v for v in pattern.block.iters if v.kind == "spatial"]) - 2
    fetches, out = _padded(schedule, mm, pattern)
    loops = schedule.get_loops(mm)
    i, j, k = (
        loop_of(schedule, mm, pattern, v) for v in (pattern.row, pattern.column, pattern.depth)
    )
    outer = tuple(x for x in loops if x not in (i, j, k))
    if loops != (*outer, i, j, k):
        schedule.reorder((*outer, i, j, k))
    block_i, own_i, thread_i = schedule.split(i, factors=(None, OWN, SIDE))
    block_j, own_j, thread_j = schedule.split(j, factors=(None, OWN, SIDE))
    tile_k, k = schedule.split(k, factors=(None, DEPTH))
    schedule.reorder((block_i, block_j, tile_k, thread_i, thread_j, k, own_i, own_j))
    schedule.set_scope(_written(schedule, mm), "local")
    schedule.reverse_compute_at(out, block_j)
    for fetch in fetches:
        schedule.set_scope(_written(schedule, fetch), "shared")
        schedule.compute_at(fetch, tile_k)
    _blocks(schedule, outer, block_i, block_j)
    for fetch in fetches:
        _cooperate(schedule, fetch)
    for loop in _results(schedule, out):
        schedule.unroll(loop)
    schedule.bind(thread_i, "threadIdx.y")
    schedule.bind(thread_j, "threadIdx.x")
    for loop in (k, own_i, own_j):
        schedule.unroll(loop)
    if len(outer) != batch:
        raise StepError("bind", (Problem(0, f"{name!r} has loops that bind no batch dimension"),))


def _padding(item: IterVar, pattern: Matmul) -> int:
    if item is pattern.depth:
        return DEPTH
    return TILE if item in (pattern.row, pattern.column) else 1


def _padded(schedule: Schedule, mm: BlockRef, pattern: Matmul) -> tuple[list[BlockRef], BlockRef]:
    """Return the blocks that load the operands and the one that writes the results."""
    step = PadEinsum(mm, tuple(_padding(v, pattern) for v in pattern.block.iters))
    problems = schedule.check(step)
    made: tuple[BlockRef, ...] = ()
    if not problems:
        made = schedule.perform(step)
    elif any(p.requirement != 5 for p in problems):
        raise StepError(step.title(), problems)
    written = _written(schedule, mm).name
    crop = next((b for b in made if written in _reads(schedule, b)), None)
    copies = {_written(schedule, b).name: b for b in made if b != crop}
    fetches: list[BlockRef] = []
    for load in dict.fromkeys(r.name for r in _operands(schedule, mm)):
        own = copies.get(load)
        buffer = schedule.get_buffer(load, mm.function)
        fetches.append(schedule.cache_read(mm, buffer, "shared") if own is None else own)
    return fetches, _out(schedule, mm, pattern, crop)


def _operands(schedule: Schedule, mm: BlockRef) -> list[BufferRef]:
    node = schedule.state.block(mm)
    names = [r.buffer.name for r in node.reads]
    return [schedule.get_buffer(n, mm.function) for n in names]


def _reads(schedule: Schedule, block: BlockRef) -> set[str]:
    return {r.buffer.name for r in schedule.state.block(block).reads}


def _out(schedule: Schedule, mm: BlockRef, pattern: Matmul, crop: BlockRef | None) -> BlockRef:
    """Inline the blocks after the product into the last one, and return it."""
    for block in pattern.epilogue:
        _check_order(pattern, block)
    tail = [schedule.get_block(b.name, mm.function) for b in pattern.epilogue]
    if crop is not None:
        tail.insert(0, crop)
    if not tail:
        return schedule.cache_write(mm, _written(schedule, mm), "local")
    *inner, last = tail
    for block in inner:
        schedule.compute_inline(block)
    return last


def _check_order(pattern: Matmul, after: Block) -> None:
    """Reject an epilogue that transposes the product: a thread would need sums of other threads."""
    product = {s.buffer for b in (pattern.block, *pattern.epilogue) for s in stores(b.body)}
    columns = tuple(v.var for v in after.iters[-2:])
    for load in loads(after.body):
        if load.buffer in product and load.indices[-2:] != columns:
            raise StepError("bind", (Problem(0, f"block {after.name!r} transposes the product"),))


def _written(schedule: Schedule, block: BlockRef) -> BufferRef:
    name = schedule.state.block(block).writes[0].buffer.name
    return schedule.get_buffer(name, block.function)


def _blocks(
    schedule: Schedule, outer: tuple[LoopRef, ...], block_i: LoopRef, block_j: LoopRef
) -> None:
    if outer:
        schedule.bind(joined(schedule, outer), "blockIdx.z")
    schedule.bind(block_i, "blockIdx.y")
    schedule.bind(block_j, "blockIdx.x")


def _cooperate(schedule: Schedule, fetch: BlockRef) -> None:
    """Distribute the copy of a tile over all threads; adjacent threads copy adjacent elements."""
    tile = schedule.fuse(schedule.get_loops(fetch)[-2:])
    _, y, x = schedule.split(tile, factors=(None, SIDE, SIDE))
    schedule.bind(y, "threadIdx.y")
    schedule.bind(x, "threadIdx.x")


def _results(schedule: Schedule, out: BlockRef) -> tuple[LoopRef, LoopRef]:
    """Bind results to the threads that computed them; return the loops within a thread."""
    row, column = schedule.get_loops(out)[-2:]
    own_i, thread_i = schedule.split(row, factors=(OWN, SIDE))
    own_j, thread_j = schedule.split(column, factors=(OWN, SIDE))
    schedule.reorder((thread_i, thread_j, own_i, own_j))
    schedule.bind(thread_i, "threadIdx.y")
    schedule.bind(thread_j, "threadIdx.x")
    return own_i, own_j
