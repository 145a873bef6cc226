"""The placement of many storages in a time that is nearly proportional to their number.

The steps of the program are visited in order, or in reverse order. A storage is placed into the
smallest sufficient free block when its live range begins; its block is merged with the free blocks
beside it when the range ends. Free blocks are in lists by classes of sizes, eight classes per power
of two, so that a block is found without a search through all of them (Masmano et al., TLSF: A New
Dynamic Memory Allocator for Real-Time Systems, 2004).
"""

from __future__ import annotations

from . import layout
from .language import (
    NULL,
    Ptr,
    load_i64,
    load_ptr,
    move,
    rtlib_function,
    store_i64,
    store_ptr,
)

BLOCK_OFFSET = 0
BLOCK_SIZE = 8
BLOCK_BEFORE = 16
"""The neighbors in the arena."""
BLOCK_AFTER = 24
BLOCK_NEXT = 32
"""The neighbors in the list of free blocks of the same class, or of unused records."""
BLOCK_PREVIOUS = 40
BLOCK_FREE = 48

CANDIDATES = 16
"""The number of blocks per list that are compared."""


@rtlib_function
def size_class(size: int) -> int:
    """Return the class of a size: of two classes, the greater has the greater sizes."""
    rest = size // layout.ALIGNMENT
    octave = 0
    while rest >= 16:
        rest = rest // 2
        octave = octave + 1
    return 8 * octave + rest


@rtlib_function
def new_block(memory: Ptr) -> Ptr:
    """Return an unused record of a block."""
    block = load_ptr(memory, layout.SWEEP_UNUSED)
    store_ptr(memory, layout.SWEEP_UNUSED, load_ptr(block, BLOCK_NEXT))
    store_i64(block, BLOCK_FREE, 0)
    return block


@rtlib_function
def drop_block(memory: Ptr, block: Ptr) -> None:
    """Make the record of a block unused."""
    store_ptr(block, BLOCK_NEXT, load_ptr(memory, layout.SWEEP_UNUSED))
    store_ptr(memory, layout.SWEEP_UNUSED, block)


@rtlib_function
def link_blocks(memory: Ptr, before: Ptr, after: Ptr) -> None:
    """Make two blocks neighbors in the arena; null is the start or the end of the arena."""
    if before != NULL:
        store_ptr(before, BLOCK_AFTER, after)
    if after != NULL:
        store_ptr(after, BLOCK_BEFORE, before)
    else:
        store_ptr(memory, layout.SWEEP_TAIL, before)


@rtlib_function
def list_block(memory: Ptr, block: Ptr) -> None:
    """Put a block into the list of free blocks of its class."""
    head = 8 * size_class(load_i64(block, BLOCK_SIZE))
    following = load_ptr(memory, head)
    store_i64(block, BLOCK_FREE, 1)
    store_ptr(block, BLOCK_NEXT, following)
    store_ptr(block, BLOCK_PREVIOUS, NULL)
    if following != NULL:
        store_ptr(following, BLOCK_PREVIOUS, block)
    store_ptr(memory, head, block)


@rtlib_function
def unlist_block(memory: Ptr, block: Ptr) -> None:
    """Remove a block from the list of free blocks of its class."""
    following = load_ptr(block, BLOCK_NEXT)
    previous = load_ptr(block, BLOCK_PREVIOUS)
    if following != NULL:
        store_ptr(following, BLOCK_PREVIOUS, previous)
    if previous != NULL:
        store_ptr(previous, BLOCK_NEXT, following)
    else:
        store_ptr(memory, 8 * size_class(load_i64(block, BLOCK_SIZE)), following)
    store_i64(block, BLOCK_FREE, 0)


@rtlib_function
def find_block(memory: Ptr, size: int) -> Ptr:
    """Return the smallest sufficient block of the first list that has one, or null."""
    best = NULL
    group = size_class(size)
    while group < layout.SWEEP_CLASSES and best == NULL:
        block = load_ptr(memory, 8 * group)
        tries = CANDIDATES
        tightest = 0
        while block != NULL and tries > 0:
            have = load_i64(block, BLOCK_SIZE)
            if have >= size and (best == NULL or have < tightest):
                best = block
                tightest = have
            tries = tries - 1
            block = load_ptr(block, BLOCK_NEXT)
        group = group + 1
    return best


@rtlib_function
def take_block(memory: Ptr, size: int) -> Ptr:
    """Return a block of a size: a part of a free block, or a new block at the end."""
    block = find_block(memory, size)
    if block == NULL:
        tail = load_ptr(memory, layout.SWEEP_TAIL)
        block = new_block(memory)
        offset = 0
        if tail != NULL:
            offset = load_i64(tail, BLOCK_OFFSET) + load_i64(tail, BLOCK_SIZE)
        store_i64(block, BLOCK_OFFSET, offset)
        store_i64(block, BLOCK_SIZE, size)
        link_blocks(memory, tail, block)
        link_blocks(memory, block, NULL)
        return block
    unlist_block(memory, block)
    rest = load_i64(block, BLOCK_SIZE) - size
    if rest > 0:
        part = new_block(memory)
        store_i64(part, BLOCK_OFFSET, load_i64(block, BLOCK_OFFSET) + size)
        store_i64(part, BLOCK_SIZE, rest)
        store_i64(block, BLOCK_SIZE, size)
        link_blocks(memory, part, load_ptr(block, BLOCK_AFTER))
        link_blocks(memory, block, part)
        list_block(memory, part)
    return block


@rtlib_function
def is_free(block: Ptr) -> int:
    """Return whether there is a block and it is free."""
    if block == NULL:
        return 0
    return load_i64(block, BLOCK_FREE)


@rtlib_function
def join_blocks(memory: Ptr, block: Ptr, after: Ptr) -> None:
    """Merge a block with the block after it."""
    store_i64(block, BLOCK_SIZE, load_i64(block, BLOCK_SIZE) + load_i64(after, BLOCK_SIZE))
    link_blocks(memory, block, load_ptr(after, BLOCK_AFTER))
    drop_block(memory, after)


@rtlib_function
def free_block(memory: Ptr, block: Ptr) -> None:
    """Free a block: merge it with free neighbors; a block at the end is removed."""
    freed = block
    after = load_ptr(block, BLOCK_AFTER)
    if is_free(after) == 1:
        unlist_block(memory, after)
        join_blocks(memory, freed, after)
    before = load_ptr(block, BLOCK_BEFORE)
    if is_free(before) == 1:
        unlist_block(memory, before)
        join_blocks(memory, before, freed)
        freed = before
    if load_ptr(freed, BLOCK_AFTER) == NULL:
        link_blocks(memory, load_ptr(freed, BLOCK_BEFORE), NULL)
        drop_block(memory, freed)
    else:
        list_block(memory, freed)


@rtlib_function
def open_sweep(memory: Ptr, count: int) -> Ptr:
    """Empty the lists; return the memory behind the records of the blocks."""
    for k in range(layout.SWEEP_HEADS // 8):
        store_i64(memory, 8 * k, 0)
    at = move(memory, layout.SWEEP_HEADS)
    for _ in range(2 * count + 2):
        drop_block(memory, at)
        at = move(at, layout.SWEEP_NODE)
    return at


@rtlib_function
def sweep(table: Ptr, sizes: Ptr, offsets: Ptr, memory: Ptr, backwards: int) -> int:
    """Compute the offsets of all storages; return the size of the arena in bytes.

    Parameters
    ----------
    table : Ptr
        The table of the storages.
    sizes : Ptr
        The sizes in bytes, multiples of the alignment.
    offsets : Ptr
        Output: the offsets in bytes.
    memory : Ptr
        Temporary memory.
    backwards : int
        Whether the steps are visited in reverse order.
    """
    count = load_i64(table, layout.TABLE_STORAGES)
    ranges = move(table, layout.TABLE_RANGES)
    starting = move(ranges, 16 * count)
    ending = move(ranges, 24 * count)
    if backwards == 1:
        starting = move(ranges, 24 * count)
        ending = move(ranges, 16 * count)
    owned = open_sweep(memory, count)
    ended = 0
    total = 0
    for k in range(count):
        at = k
        if backwards == 1:
            at = count - 1 - k
        item = load_i64(starting, 8 * at)
        searching = 1
        while searching == 1:
            at = ended
            if backwards == 1:
                at = count - 1 - ended
            old = load_i64(ending, 8 * at)
            over = load_i64(ranges, 16 * old + 8) < load_i64(ranges, 16 * item)
            if backwards == 1:
                over = load_i64(ranges, 16 * old) > load_i64(ranges, 16 * item + 8)
            searching = 0
            if over:
                searching = 1
                ended = ended + 1
                if load_i64(sizes, 8 * old) > 0:
                    free_block(memory, load_ptr(owned, 8 * old))
        size = load_i64(sizes, 8 * item)
        store_i64(offsets, 8 * item, 0)
        if size > 0:
            block = take_block(memory, size)
            store_ptr(owned, 8 * item, block)
            offset = load_i64(block, BLOCK_OFFSET)
            store_i64(offsets, 8 * item, offset)
            total = max(total, offset + size)
    return total


@rtlib_function
def sweep_both(table: Ptr, sizes: Ptr, offsets: Ptr, memory: Ptr) -> int:
    """Sweep in both directions; keep the smaller arena and return its size in bytes."""
    count = load_i64(table, layout.TABLE_STORAGES)
    total = sweep(table, sizes, offsets, memory, 0)
    behind = layout.SWEEP_HEADS + layout.SWEEP_NODE * (2 * count + 2) + 8 * count
    others = move(memory, behind)
    other = sweep(table, sizes, others, memory, 1)
    if other < total:
        total = other
        for k in range(count):
            store_i64(offsets, 8 * k, load_i64(others, 8 * k))
    return total
