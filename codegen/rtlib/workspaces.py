"""Workspaces: arenas with cached memory plans, each used by one call at a time.

A workspace contains an arena and the memory plans of recent shapes, keyed by the values of the
symbols. Every function keeps a fixed number of workspaces. A call acquires a free one by an atomic
exchange of its busy flag and then has exclusive access, so no other synchronization is needed. If
all workspaces are busy, the call allocates a temporary one and frees it at the end.
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
def find_plan(slot: Ptr, keys: Ptr, count: int, size: int) -> Ptr:
    """Return the cached plan of these symbol values, or null if there is none."""
    clock = load_i64(slot, layout.SLOT_CLOCK) + 1
    for k in range(layout.PLAN_COUNT):
        plan = move(slot, layout.SLOT_PLANS + size * k)
        if load_i64(plan, layout.PLAN_USED) != 0:
            same = 1
            for j in range(count):
                if load_i64(plan, layout.PLAN_KEYS + 8 * j) != load_i64(keys, 8 * j):
                    same = 0
            if same == 1:
                store_i64(slot, layout.SLOT_CLOCK, clock)
                store_i64(plan, layout.PLAN_USED, clock)
                return plan
    return NULL


@rtlib_function
def oldest_plan(slot: Ptr, size: int) -> Ptr:
    """Evict and return the least recently used plan."""
    best = move(slot, layout.SLOT_PLANS)
    for k in range(1, layout.PLAN_COUNT):
        plan = move(slot, layout.SLOT_PLANS + size * k)
        if load_i64(plan, layout.PLAN_USED) < load_i64(best, layout.PLAN_USED):
            best = plan
    store_i64(best, layout.PLAN_USED, 0)
    return best


@rtlib_function
def keep_plan(slot: Ptr, plan: Ptr, keys: Ptr, count: int, total: int) -> None:
    """Store the keys of a plan, which makes it available to :func:`find_plan`."""
    for j in range(count):
        store_i64(plan, layout.PLAN_KEYS + 8 * j, load_i64(keys, 8 * j))
    clock = load_i64(slot, layout.SLOT_CLOCK) + 1
    store_i64(slot, layout.SLOT_CLOCK, clock)
    store_i64(plan, layout.PLAN_TOTAL, total)
    store_i64(plan, layout.PLAN_USED, clock)


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
        return arena
    return load_ptr(slot, layout.SLOT_ARENA)


@rtlib_function
def drop_workspaces(call: Ptr, instance: Ptr, size: int) -> None:
    """Free the arenas of all workspaces that are not in use; plans are kept."""
    for k in range(layout.SLOT_COUNT):
        slot = move(instance, layout.INSTANCE_SLOTS + size * k)
        if exchange(slot, layout.SLOT_BUSY, 0, 1) == 0:
            drop_arena(call, slot)
            publish(slot, layout.SLOT_BUSY, 0)
