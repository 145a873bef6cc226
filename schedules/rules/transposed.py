"""Tiles of element-wise blocks that load and store adjacent elements along different loops."""

from __future__ import annotations

from typing import Final

from ...ir.analysis import Access, accesses
from ...ir.loop.nodes import Buffer
from ...ir.loop.straight_line import single_store
from ...ir.symbolic import Var, const_value, linear_form
from ..handles import BlockRef, LoopRef, loop_ref
from ..library.vectorize_inner import lanes_of
from ..library.whole_bytes import parallelize
from ..primitives.loops.reorder import Reorder
from ..schedule import Schedule

LINE: Final = 64
"""The number of bytes of a cache line."""

SIDE: Final = 16
"""The least extent of a tile, and the most lanes of its vectors. Each lane loads from another line,
and lines at a distance of a power of two share a few sets of the first level.
"""

WIDEST: Final = 8
"""The largest element in bytes, so that a row of a tile has at most two cache lines."""

WHOLE: Final = 4
"""The extent of a loop along loads, in tiles, up to which it is not divided."""


def schedule_transposed(sch: Schedule, block: BlockRef) -> bool:
    """Tile the nest of a block that loads along another loop than it stores; return whether it is.

    Before::

        for i in range(n):
            for j in range(m):
                y[i, j] = x[j, i]

    After::

        for i_0 in parallel(ceildiv(n, 16)):
            for j_0 in range(ceildiv(m, 16)):
                for i_1 in range(16):
                    for j_1 in vectorized(16):
                        if i_0 * 16 + i_1 < n and j_0 * 16 + j_1 < m:
                            y[i_0 * 16 + i_1, j_0 * 16 + j_1] = x[j_0 * 16 + j_1, i_0 * 16 + i_1]

    A tile has complete cache lines along both loops. A block that stores rows shorter than a tile
    uses the lines of adjacent rows without tiles, and is not changed.
    """
    found = _crossed(sch, block)
    if found is None:
        return False
    (loaded, source), (stored, result) = found
    loops = _loops(sch, block)
    others = tuple(x for x in loops if x not in (loaded, stored))
    orders = (*others, loaded, stored), (*others, stored, loaded)
    if any(order != loops and sch.check(Reorder(order)) for order in orders):
        return False
    lanes = min(SIDE, lanes_of(sch, block))
    rows, row = _divided(sch, loaded, _side(source), WHOLE * _side(source))
    columns, column = _divided(sch, stored, _side(result), _side(result))
    vectors, vector = _divided(sch, column, lanes, lanes)
    parts = {loaded: rows, stored: (*columns, *vectors)}
    outer = (part for x in loops for part in parts.get(x, (x,)))
    sch.reorder((*outer, row, vector))
    sch.vectorize(vector)
    parallelize(sch, sch.get_loops(block)[0])
    return True


def _loops(sch: Schedule, ref: BlockRef) -> tuple[LoopRef, ...]:
    """Return the loops around a block, without a query in the trace."""
    above = sch.state.tree(ref.function).loops_above(sch.state.block(ref))
    return tuple(loop_ref(ref.function, x) for x in above)


def _divided(
    sch: Schedule, loop: LoopRef, size: int, whole: int
) -> tuple[tuple[LoopRef, ...], LoopRef]:
    """Split a loop of more than ``whole`` iterations; return the loop over parts, and the inner."""
    extent = const_value(sch.state.loop(loop).extent)
    if extent is not None and extent <= whole:
        return (), loop
    outer, inner = sch.split(loop, factors=(None, size))
    return (outer,), inner


def _side(buffer: Buffer) -> int:
    return max(SIDE, LINE // buffer.dtype.width)


def _crossed(
    sch: Schedule, ref: BlockRef
) -> tuple[tuple[LoopRef, Buffer], tuple[LoopRef, Buffer]] | None:
    """Return the loops, with buffers, whose iterations load and store adjacent elements.

    None if they are the same, or too short for tiles.
    """
    block = sch.state.block(ref)
    by_variable = {sch.state.loop(x).var: x for x in _loops(sch, ref)}
    if single_store(block.body) is None:
        return None
    found = accesses(block)
    (store,) = (a for a in found if a.writes)
    stored = _adjacent(store, by_variable)
    if len(stored) != 1:
        return None
    (column,) = stored
    if not _exceeds(sch, by_variable[column], SIDE):
        return None
    for load in found:
        rows = _adjacent(load, by_variable)
        strided = any(column in index.free for index in load.bound())
        if not load.writes and len(rows) == 1 and column not in rows and strided:
            (row,) = rows
            if _exceeds(sch, by_variable[row], 1):
                return (by_variable[row], load.buffer), (by_variable[column], store.buffer)
    return None


def _adjacent(access: Access, variables: dict[Var, LoopRef]) -> set[Var]:
    """Return the loop variables along which an access has adjacent elements."""
    buffer = access.buffer
    if not access.indices or buffer.dtype.is_packed or buffer.dtype.width > WIDEST:
        return set()
    if buffer.strides is not None and const_value(buffer.strides[-1]) != 1:
        return set()
    *outer, last = access.bound()
    form = linear_form(last, variables)
    ones = () if form is None else (v for v, c in form.coefficients.items() if c == 1)
    return {v for v in ones if not any(v in index.free for index in outer)}


def _exceeds(sch: Schedule, loop: LoopRef, count: int) -> bool:
    extent = const_value(sch.state.loop(loop).extent)
    return extent is None or extent > count
