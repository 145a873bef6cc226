"""Lay storages out in one arena, once their sizes are known.

Largest first, each at the tightest gap between those already placed that live at the same time
(greedy by size, best fit: Pisarchyk and Lee 2020).
"""

from __future__ import annotations

from ..language import Ptr, load_i64, move, store_i64, support

NOWHERE = 1 << 62


@support
def sort_by_size(count: int, sizes: Ptr, order: Ptr) -> None:
    """List storages from the largest to the smallest; equal ones keep their order."""
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


@support
def live_together(lives: Ptr, a: int, b: int) -> int:
    """Whether two storages are needed at one moment; a life is its first and last moment."""
    if load_i64(lives, 16 * a) > load_i64(lives, 16 * b + 8):
        return 0
    if load_i64(lives, 16 * b) > load_i64(lives, 16 * a + 8):
        return 0
    return 1


@support
def find_gap(  # noqa: PLR0917  # native functions have no keywords
    placed: int, item: int, sizes: Ptr, lives: Ptr, offsets: Ptr, by_offset: Ptr
) -> int:
    """Find the tightest gap for ``item`` among the storages placed already, else their end."""
    size = load_i64(sizes, 8 * item)
    end = 0
    best = NOWHERE
    tightest = NOWHERE
    for k in range(placed):
        other = load_i64(by_offset, 8 * k)
        if live_together(lives, item, other) == 1:
            offset = load_i64(offsets, 8 * other)
            gap = offset - end
            if gap >= size and gap < tightest:
                best = end
                tightest = gap
            end = max(end, offset + load_i64(sizes, 8 * other))
    if best == NOWHERE:
        return end
    return best


@support
def insert_by_offset(placed: int, item: int, offsets: Ptr, by_offset: Ptr) -> None:
    """Keep the placed storages sorted by where they begin."""
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


@support
def pack(count: int, sizes: Ptr, lives: Ptr, offsets: Ptr, scratch: Ptr) -> int:
    """Give every storage its offset, and the bytes of the arena as result.

    ``sizes`` are multiples of the alignment; ``scratch`` holds two words a storage.
    """
    by_offset = move(scratch, 8 * count)
    sort_by_size(count, sizes, scratch)
    total = 0
    for k in range(count):
        item = load_i64(scratch, 8 * k)
        offset = find_gap(k, item, sizes, lives, offsets, by_offset)
        store_i64(offsets, 8 * item, offset)
        insert_by_offset(k, item, offsets, by_offset)
        total = max(total, offset + load_i64(sizes, 8 * item))
    return total
