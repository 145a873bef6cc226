"""Sequences of steps that random choices rarely produce: tiles of an instruction, thread loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir.loop.nodes import For
from tilewright.ir.symbolic import const_value
from tilewright.schedules.apply import check
from tilewright.schedules.forwarding import followed
from tilewright.schedules.handles import loop_ref
from tilewright.schedules.primitives.loops.bind import Bind
from tilewright.schedules.primitives.loops.reorder import Reorder
from tilewright.schedules.primitives.loops.split import Split
from tilewright.schedules.primitives.tensorize.tensorize import Tensorize

from tests.fuzz import directed
from tests.fuzz.steps import ISOLATED
from tests.schedules.random_steps import blocks, loops

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tilewright.schedules.handles import LoopRef

    from tests.fuzz.walks import Walk

FIXES = 6
"""The number of suggested fixes that are applied one after the other."""

TILES = {
    "f32": {"avx2.fma.f32.6x16": (6, 16), "avx512.fma.f32.12x32": (12, 32)},
    "u8": {"avx2.dot.u8i8.6x16": (6, 16, 2)},
}
"""The instructions for products with the extents of their tiles, by dtype of the left operand."""


def tensorize(walk: Walk) -> bool:
    """Tile the loops of a product by the size of an instruction, and use the instruction."""
    found = [b for b in blocks(walk.state) if len(walk.state.block(b).iters) == 3]
    if not found:
        return False
    block = walk.state.block(walk.rng.choice(found))
    dtypes = {r.buffer.dtype.name for r in block.reads}
    known = [item for t, tiles in TILES.items() if t in dtypes for item in tiles.items()]
    if not known:
        return False
    name, sizes = walk.rng.choice(known)
    ref = next(b for b in blocks(walk.state) if b.uid == block.uid)
    above = walk.state.tree(ref.function).loops_above(block)[-3:]
    spatial = [v.kind != "reduce" for v in block.iters]
    order = [k for k in range(3) if spatial[k]] + [k for k in range(3) if not spatial[k]]
    outer, inner = [], []
    for k, size in zip(order, (*sizes, None), strict=False):
        loop = next((x for x in above if x.var in block.iters[k].binding.free), None)
        if loop is None:
            return False
        handle = loop_ref(ref.function, loop)
        if size is None:
            outer.append(handle)
        elif walk.attempt(Split(handle, (None, size))):
            outer.append(walk.results[0])
            inner.append(walk.results[1])
        else:
            return False
    walk.rng.shuffle(inner)
    if not walk.attempt(Reorder((*outer, *inner))):
        return False
    return _by_fixes(walk, Tensorize(inner[0], name))


def _by_fixes(walk: Walk, step: Tensorize) -> bool:
    """Apply the first suggested fix until the step is legal."""
    for _ in range(FIXES):
        problems = check(walk.state, step)
        if not problems:
            return walk.attempt(step)
        fix = next((f for p in problems for f in p.fixes if not isinstance(f, Tensorize)), None)
        if fix is None or not walk.attempt(fix):
            return False
        step = followed(step, walk.state)
    return False


def blockize(walk: Walk) -> None:
    """Split and reorder loops, and convert some of the nests into blocks."""
    first = ("split", "split", "reorder", "cache_write", "rfactor")
    for _ in range(walk.rng.randint(0, 3)):
        directed.seek(walk, walk.rng.choice(first))
    for _ in range(walk.rng.randint(1, 2)):
        directed.seek(walk, "blockize")
    for _ in range(walk.rng.randint(2, 6)):
        directed.seek(walk, walk.rng.choice(ISOLATED))


def bind(walk: Walk) -> None:
    """Bind a loop of every nest to threads, and that of a single nest to thread blocks too.

    Several nests run in one thread block, because thread blocks do not wait for each other.
    """
    state, size = walk.state, walk.rng.choice([4, 32])
    nests = [x for x in loops(state) if not state.tree(x.function).loops_above(state.loop(x))]
    for loop in nests:
        tree = walk.state.tree(loop.function)
        own = tree.loops.get(loop.uid)
        if own is None or own.kind != "serial":
            continue
        chain = [loop, *(loop_ref(loop.function, x) for x in _below(own))]
        if len(nests) == 1 and len(chain) > 1 and walk.attempt(Bind(chain[0], "blockIdx.x")):
            chain = chain[1:]
        any(_threads(walk, link, size, alone=len(nests) == 1) for link in chain)


def _below(loop: For) -> Iterator[For]:
    """Yield the serial loops that are the whole body of a loop, outermost first."""
    while isinstance(loop.body, For) and loop.body.kind == "serial":
        loop = loop.body
        yield loop


def _threads(walk: Walk, loop: LoopRef, size: int, *, alone: bool) -> bool:
    """Bind a loop, or a part of it with the extent that all nests share, to threads."""
    extent = const_value(walk.state.loop(loop).extent)
    if extent is not None and (extent == size or (alone and extent <= 64)):
        return walk.attempt(Bind(loop, "threadIdx.x"))
    if not walk.attempt(Split(loop, (None, size))):
        return False
    return walk.attempt(Bind(walk.results[1], "threadIdx.x"))
