"""The placement of many storages of which each is live together with few others.

The rule is that of :mod:`.planner`: storages are placed from the largest to the smallest, each into
the smallest sufficient gap. The storages whose live ranges overlap with that of a storage are found
beside it in the order of the first steps, so the time is proportional to the number of pairs that
overlap. If there are too many, nothing is placed.
"""

from __future__ import annotations

from . import layout
from .language import NULL, Ptr, load_i64, move, rtlib_function, store_i64
from .planner import find_gap

MOST_STEPS = 64
"""The number of neighbors that are visited per storage, on average."""
UNPLACED = -1


@rtlib_function
def merge_runs(  # noqa: PLR0917  # native functions have no keyword arguments
    sizes: Ptr, source: Ptr, target: Ptr, start: int, middle: int, stop: int
) -> None:
    """Merge two sorted runs of storages, from the largest to the smallest; the merge is stable."""
    left = start
    right = middle
    for k in range(start, stop):
        later = 0
        if left >= middle:
            later = 1
        elif right < stop:
            later = load_i64(sizes, 8 * load_i64(source, 8 * right)) > load_i64(
                sizes, 8 * load_i64(source, 8 * left)
            )
        if later:
            store_i64(target, 8 * k, load_i64(source, 8 * right))
            right = right + 1
        else:
            store_i64(target, 8 * k, load_i64(source, 8 * left))
            left = left + 1


@rtlib_function
def merge_sort(count: int, sizes: Ptr, items: Ptr, other: Ptr) -> Ptr:
    """Sort the storages from the largest to the smallest into one of two lists; return it."""
    source = items
    target = other
    for k in range(count):
        store_i64(source, 8 * k, k)
    width = 1
    while width < count:
        start = 0
        while start < count:
            middle = min(start + width, count)
            stop = min(start + 2 * width, count)
            merge_runs(sizes, source, target, start, middle, stop)
            start = stop
        swapped = source
        source = target
        target = swapped
        width = 2 * width
    return source


@rtlib_function
def rank_storages(table: Ptr, ranks: Ptr, reaches: Ptr) -> None:
    """Compute the rank of each storage by its first step, and the greatest last step up to it."""
    count = load_i64(table, layout.TABLE_STORAGES)
    ranges = move(table, layout.TABLE_RANGES)
    by_first = move(ranges, 16 * count)
    reach = UNPLACED
    for k in range(count):
        item = load_i64(by_first, 8 * k)
        reach = max(reach, load_i64(ranges, 16 * item + 8))
        store_i64(ranks, 8 * item, k)
        store_i64(reaches, 8 * k, reach)


@rtlib_function
def insert_neighbor(found: Ptr, count: int, offsets: Ptr, item: int) -> int:
    """Insert a placed storage into a list sorted by offset; return the length of the list."""
    offset = load_i64(offsets, 8 * item)
    if offset == UNPLACED:
        return count
    at = count
    searching = 1
    while searching == 1 and at > 0:
        before = load_i64(found, 8 * at - 8)
        if load_i64(offsets, 8 * before) > offset:
            store_i64(found, 8 * at, before)
            at = at - 1
        else:
            searching = 0
    store_i64(found, 8 * at, item)
    return count + 1


@rtlib_function
def find_neighbors(table: Ptr, item: int, memory: Ptr, offsets: Ptr, found: Ptr) -> int:
    """List placed storages sorted by offset, all that are live together with a storage among them.

    Returns
    -------
    int
        The length of the list; the number of visited storages if ``found`` is null.
    """
    count = load_i64(table, layout.TABLE_STORAGES)
    ranges = move(table, layout.TABLE_RANGES)
    by_first = move(ranges, 16 * count)
    reaches = move(memory, 8 * count)
    rank = load_i64(memory, 8 * item)
    low = rank
    searching = 1
    while searching == 1 and low > 0:
        low = low - 1
        searching = load_i64(reaches, 8 * low) >= load_i64(ranges, 16 * item)
    high = rank + 1
    searching = 1
    while searching == 1 and high < count:
        other = load_i64(by_first, 8 * high)
        searching = load_i64(ranges, 16 * other) <= load_i64(ranges, 16 * item + 8)
        high = high + 1
    if found == NULL:
        return high - low
    length = 0
    for k in range(low, high):
        length = insert_neighbor(found, length, offsets, load_i64(by_first, 8 * k))
    return length


@rtlib_function
def has_few_pairs(table: Ptr, memory: Ptr) -> int:
    """Return whether all storages together have few neighbors."""
    count = load_i64(table, layout.TABLE_STORAGES)
    steps = 0
    item = 0
    while item < count and steps <= MOST_STEPS * count:
        steps = steps + find_neighbors(table, item, memory, NULL, NULL)
        item = item + 1
    if steps <= MOST_STEPS * count:
        return 1
    return 0


@rtlib_function
def place_narrow(table: Ptr, sizes: Ptr, offsets: Ptr, memory: Ptr) -> int:
    """Compute the offsets of all storages; return the size of the arena, or -1 for too many pairs.

    Parameters
    ----------
    table : Ptr
        The table of the storages.
    sizes : Ptr
        The sizes in bytes, multiples of the alignment.
    offsets : Ptr
        Output: the offsets in bytes.
    memory : Ptr
        Temporary memory of five words per storage.
    """
    count = load_i64(table, layout.TABLE_STORAGES)
    rank_storages(table, memory, move(memory, 8 * count))
    if has_few_pairs(table, memory) == 0:
        return UNPLACED
    found = move(memory, 16 * count)
    order = merge_sort(count, sizes, move(memory, 24 * count), move(memory, 32 * count))
    for k in range(count):
        store_i64(offsets, 8 * k, UNPLACED)
    total = 0
    for k in range(count):
        item = load_i64(order, 8 * k)
        length = find_neighbors(table, item, memory, offsets, found)
        ranges = move(table, layout.TABLE_RANGES)
        offset = find_gap(length, item, sizes, ranges, offsets, found)
        store_i64(offsets, 8 * item, offset)
        total = max(total, offset + load_i64(sizes, 8 * item))
    return total
