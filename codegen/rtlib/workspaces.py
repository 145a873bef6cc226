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
from .memory import allocate, allocate_host, release, release_host


@rtlib_function
def clear(memory: Ptr, size: int) -> None:
    """Set memory to zero, word by word."""
    for k in range(size // 8):
        store_i64(memory, 8 * k, 0)


@rtlib_function
def take_workspace(call: Ptr, instance: Ptr, size: int) -> Ptr:
    """Acquire a free workspace, or allocate a temporary one; null if out of memory."""
    for k in range(layout.SLOT_COUNT):
        slot = move(instance, layout.INSTANCE_SLOTS + size * k)
        seen = observe(slot, layout.SLOT_BUSY)
        if seen == 0:
            seen = exchange(slot, layout.SLOT_BUSY, 0, 1)
            if seen == 0:
                return slot
    extra = allocate_host(call, size)
    if extra != NULL:
        clear(extra, size)
        store_i64(extra, layout.SLOT_BUSY, 2)
    return extra


@rtlib_function
def drop_arena(call: Ptr, slot: Ptr) -> None:
    """Free the arena of a workspace."""
    release(call, load_ptr(slot, layout.SLOT_ARENA))
    store_ptr(slot, layout.SLOT_ARENA, NULL)
    store_i64(slot, layout.SLOT_ARENA_BYTES, 0)


@rtlib_function
def return_workspace(call: Ptr, slot: Ptr) -> None:
    """Release a workspace; a temporary one is freed."""
    if load_i64(slot, layout.SLOT_BUSY) == 2:
        drop_arena(call, slot)
        release_host(call, slot)
    else:
        publish(slot, layout.SLOT_BUSY, 0)


@rtlib_function
def arena_of(call: Ptr, slot: Ptr, size: int) -> Ptr:
    """Return the arena, reallocated if smaller than ``size`` bytes; null if out of memory."""
    if max(size, 1) > load_i64(slot, layout.SLOT_ARENA_BYTES):
        drop_arena(call, slot)
        size_needed = max(size, layout.ALIGNMENT)
        arena = allocate(call, size_needed)
        if arena != NULL:
            store_ptr(slot, layout.SLOT_ARENA, arena)
            store_i64(slot, layout.SLOT_ARENA_BYTES, size_needed)
        else:
            store_i64(slot, layout.SLOT_STALE, 1)
        return arena
    return load_ptr(slot, layout.SLOT_ARENA)


@rtlib_function
def drop_workspaces(call: Ptr, instance: Ptr, size: int) -> None:
    """Free the arenas of all workspaces that are not in use; plans are kept."""
    for k in range(layout.SLOT_COUNT):
        slot = move(instance, layout.INSTANCE_SLOTS + size * k)
        if exchange(slot, layout.SLOT_BUSY, 0, 1) == 0:
            drop_arena(call, slot)
            store_i64(slot, layout.SLOT_STALE, 1)
            publish(slot, layout.SLOT_BUSY, 0)
