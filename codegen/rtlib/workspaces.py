"""Workspaces: arenas with cached memory plans, each used by one call at a time.

A workspace contains an arena, the memory plans of recent shapes (:mod:`.plans`), and temporary
memory of the planner. Every function keeps a fixed number of workspaces. A call acquires a free one
by an atomic exchange of its busy flag and then has exclusive access, so no other synchronization is
needed. If all workspaces are busy, the call allocates a temporary one and frees it at the end.
"""

from __future__ import annotations

from . import layout
from .language import (
    NULL,
    Ptr,
    exchange,
    load_i64,
    load_ptr,
    move,
    observe,
    publish,
    rtlib_function,
    store_i64,
    store_ptr,
)
from .memory import (
    allocate_counted,
    allocate_host,
    count_bytes,
    memory_record,
    release,
    release_host,
)


@rtlib_function
def clear(memory: Ptr, size: int) -> None:
    """Set memory to zero, word by word."""
    for k in range(size // 8):
        store_i64(memory, 8 * k, 0)


@rtlib_function
def acquire(slot: Ptr) -> int:
    """Return whether a workspace was free; the caller now uses it."""
    if observe(slot, layout.SLOT_BUSY) == 0:  # noqa: SIM102  # `and` evaluates both operands
        if exchange(slot, layout.SLOT_BUSY, 0, 1) == 0:
            return 1
    return 0


@rtlib_function
def extra_workspace(call: Ptr, size: int) -> Ptr:
    """Return a temporary workspace, in the memory of the caller if possible; null if exhausted."""
    busy = 2
    extra = load_ptr(call, layout.CALL_WORKSPACE)
    if extra != NULL and load_i64(call, layout.CALL_WORKSPACE_BYTES) >= size:
        busy = 3
    else:
        extra = allocate_host(call, size)
    if extra != NULL:
        clear(extra, size)
        store_i64(extra, layout.SLOT_BUSY, busy)
    return extra


@rtlib_function
def take_workspace(call: Ptr, instance: Ptr, size: int, reserved: int) -> Ptr:
    """Acquire a free workspace, or a temporary one; null if out of memory.

    Calls with a workspace of the caller begin with the last workspace, because the plans that it
    remembers have no room for growth. ``reserved`` is the size of the records that precede the
    arena in the memory of the caller.
    """
    store_i64(call, layout.CALL_RESERVED, reserved)
    mode = load_i64(call, layout.CALL_MODE) & (layout.EXACT | layout.QUERY)
    step = size
    slot = move(instance, layout.INSTANCE_SLOTS)
    if mode != 0:
        mode = layout.EXACT
        step = -size
        slot = move(slot, size * (layout.SLOT_COUNT - 1))
    for _ in range(layout.SLOT_COUNT):
        if acquire(slot) == 1:
            if load_i64(slot, layout.SLOT_MODE) != mode:
                store_i64(slot, layout.SLOT_MODE, mode)
                store_i64(slot, layout.SLOT_STALE, 1)
            return slot
        slot = move(slot, step)
    return extra_workspace(call, size)


@rtlib_function
def drop_arena(call: Ptr, slot: Ptr) -> None:
    """Free the arena of a workspace."""
    arena = load_ptr(slot, layout.SLOT_ARENA)
    if arena != NULL:
        count_bytes(call, -load_i64(slot, layout.SLOT_ARENA_BYTES))
        release(call, arena)
    store_ptr(slot, layout.SLOT_ARENA, NULL)
    store_i64(slot, layout.SLOT_ARENA_BYTES, 0)


@rtlib_function
def return_workspace(call: Ptr, slot: Ptr) -> None:
    """Release a workspace; a temporary one is freed, unless it is in the memory of the caller."""
    busy = load_i64(slot, layout.SLOT_BUSY)
    if busy == 1:
        publish(slot, layout.SLOT_BUSY, 0)
    else:
        drop_arena(call, slot)
        if busy == 2:
            release_host(call, slot)


@rtlib_function
def given_arena(call: Ptr, size: int) -> Ptr:
    """Return the arena in the memory of the caller; null if it is too small, or for a query."""
    reserved = load_i64(call, layout.CALL_RESERVED)
    store_i64(call, layout.CALL_NEEDED, reserved + size)
    if load_i64(call, layout.CALL_WORKSPACE_BYTES) < reserved + size:
        store_i64(call, layout.CALL_A, layout.SHORT)
        return NULL
    return move(load_ptr(call, layout.CALL_WORKSPACE), reserved)


@rtlib_function
def arena_of(call: Ptr, slot: Ptr, size: int) -> Ptr:
    """Return the arena, reallocated if smaller than ``size`` bytes; null if out of memory."""
    if load_i64(call, layout.CALL_MODE) & (layout.EXACT | layout.QUERY) != 0:
        return given_arena(call, size)
    if max(size, 1) > load_i64(slot, layout.SLOT_ARENA_BYTES):
        drop_arena(call, slot)
        size_needed = max(size, layout.ALIGNMENT)
        arena = allocate_counted(call, size_needed)
        if arena != NULL:
            store_ptr(slot, layout.SLOT_ARENA, arena)
            store_i64(slot, layout.SLOT_ARENA_BYTES, size_needed)
        else:
            store_i64(slot, layout.SLOT_STALE, 1)
        return arena
    return load_ptr(slot, layout.SLOT_ARENA)


@rtlib_function
def drop_workspaces(call: Ptr, instance: Ptr, size: int, keep: int) -> None:
    """Free arenas of workspaces that are not in use; plans are kept.

    If the memory of workspaces is counted, arenas are freed until ``keep`` bytes are in use.
    """
    memory = memory_record(call)
    for k in range(layout.SLOT_COUNT):
        excess = 1
        if memory != NULL:  # noqa: SIM102  # `and` evaluates both operands
            if observe(memory, layout.MEMORY_USED) <= keep:
                excess = 0
        slot = move(instance, layout.INSTANCE_SLOTS + size * k)
        if excess == 1:  # noqa: SIM102  # `and` evaluates both operands
            if exchange(slot, layout.SLOT_BUSY, 0, 1) == 0:
                drop_arena(call, slot)
                store_i64(slot, layout.SLOT_STALE, 1)
                publish(slot, layout.SLOT_BUSY, 0)
