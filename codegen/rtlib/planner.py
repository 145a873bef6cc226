"""The memory planner: offsets of storages in one arena, computed once their sizes are known.

Storages are placed from the largest to the smallest. Each one is put into the smallest sufficient
gap between the already placed storages whose live ranges overlap with its own (greedy by size with
best fit; Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, 2020). This
takes quadratic time, so :mod:`.narrow` and :mod:`.sweep` place more than
``SMALL_COUNT`` storages.

The live range of storage ``k`` is two words: its first and its last step, both inclusive.
"""

from __future__ import annotations

from . import layout
from .language import Ptr, load_i64, move, rtlib_function, store_i64

NOWHERE = 1 << 62


@rtlib_function
def total_of(table: Ptr, sizes: Ptr) -> int:
    """Return the sum of all sizes, or a large number if it overflows."""
    total = 0
    for k in range(load_i64(table, layout.TABLE_STORAGES)):
        total = min(total + load_i64(sizes, 8 * k), NOWHERE)
    return total


@rtlib_function
def peak_of(table: Ptr, sizes: Ptr) -> int:
    """Return the maximum of live bytes at any step, a lower bound of every arena."""
    count = load_i64(table, layout.TABLE_STORAGES)
    ranges = move(table, layout.TABLE_RANGES)
    by_first = move(ranges, 16 * count)
    by_last = move(ranges, 24 * count)
    live = 0
    peak = 0
    ended = 0
    for k in range(count):
        item = load_i64(by_first, 8 * k)
        first = load_i64(ranges, 16 * item)
        while load_i64(ranges, 16 * load_i64(by_last, 8 * ended) + 8) < first:
            live = live - load_i64(sizes, 8 * load_i64(by_last, 8 * ended))
            ended = ended + 1
        live = live + load_i64(sizes, 8 * item)
        peak = max(peak, live)
    return peak


@rtlib_function
def sort_by_size(count: int, sizes: Ptr, order: Ptr) -> None:
    """Sort the storages from largest to smallest into ``order``; the sort is stable."""
    for k in range(count):
        size = load_i64(sizes, 8 * k)
        at = k
        searching = 1
        while searching == 1 and at > 0:
            before = load_i64(order, 8 * at - 8)
            if load_i64(sizes, 8 * before) < size:
                store_i64(order, 8 * at, before)
                at = at - 1
            else:
                searching = 0
        store_i64(order, 8 * at, k)


@rtlib_function
def live_ranges_overlap(live_ranges: Ptr, a: int, b: int) -> int:
    """Return whether the live ranges of two storages overlap."""
    if load_i64(live_ranges, 16 * a) > load_i64(live_ranges, 16 * b + 8):
        return 0
    if load_i64(live_ranges, 16 * b) > load_i64(live_ranges, 16 * a + 8):
        return 0
    return 1


@rtlib_function
def find_gap(  # noqa: PLR0917  # native functions have no keyword arguments
    placed: int, item: int, sizes: Ptr, live_ranges: Ptr, offsets: Ptr, by_offset: Ptr
) -> int:
    """Return the offset of the smallest sufficient gap, or the end of the placed storages.

    Parameters
    ----------
    placed : int
        The number of placed storages.
    item : int
        The storage to be placed.
    sizes, live_ranges, offsets : Ptr
        The sizes, live ranges, and offsets of all storages.
    by_offset : Ptr
        The placed storages in order of their offsets.
    """
    size = load_i64(sizes, 8 * item)
    end = 0
    best = NOWHERE
    tightest = NOWHERE
    for k in range(placed):
        other = load_i64(by_offset, 8 * k)
        if live_ranges_overlap(live_ranges, item, other) == 1:
            offset = load_i64(offsets, 8 * other)
            gap = offset - end
            if gap >= size and gap < tightest:
                best = end
                tightest = gap
            end = max(end, offset + load_i64(sizes, 8 * other))
    if best == NOWHERE:
        return end
    return best


@rtlib_function
def insert_by_offset(placed: int, item: int, offsets: Ptr, by_offset: Ptr) -> None:
    """Insert a storage into the list of placed storages, sorted by offset."""
    offset = load_i64(offsets, 8 * item)
    at = placed
    searching = 1
    while searching == 1 and at > 0:
        before = load_i64(by_offset, 8 * at - 8)
        if load_i64(offsets, 8 * before) > offset:
            store_i64(by_offset, 8 * at, before)
            at = at - 1
        else:
            searching = 0
    store_i64(by_offset, 8 * at, item)


@rtlib_function
def pack(count: int, sizes: Ptr, live_ranges: Ptr, offsets: Ptr, scratch: Ptr) -> int:
    """Compute the offsets of all storages; return the size of the arena in bytes.

    Parameters
    ----------
    count : int
        The number of storages.
    sizes : Ptr
        The sizes in bytes, multiples of the alignment.
    live_ranges : Ptr
        The live ranges, two words per storage.
    offsets : Ptr
        Output: the offsets in bytes.
    scratch : Ptr
        Temporary memory of two words per storage.
    """
    by_offset = move(scratch, 8 * count)
    sort_by_size(count, sizes, scratch)
    total = 0
    for k in range(count):
        item = load_i64(scratch, 8 * k)
        offset = find_gap(k, item, sizes, live_ranges, offsets, by_offset)
        store_i64(offsets, 8 * item, offset)
        insert_by_offset(k, item, offsets, by_offset)
        total = max(total, offset + load_i64(sizes, 8 * item))
    return total
