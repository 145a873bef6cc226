"""Workspaces: an arena with the plans of the shapes it served, used by one call at a time.

A function keeps a bounded number of them. All that is inside one belongs to the call that took
it, so nothing in here needs a lock but the flag that says whether it is taken.
"""

from __future__ import annotations

from .. import layout
from ..language import (
    NULL,
    Ptr,
    exchange,
    load_i64,
    load_ptr,
    move,
    observe,
    publish,
    store_i64,
    store_ptr,
    support,
)
from .memory import allocate, allocate_host, release, release_host


@support
def clear(memory: Ptr, size: int) -> None:
    """Write zeros, word by word."""
    for k in range(size // 8):
        store_i64(memory, 8 * k, 0)


@support
def take_workspace(call: Ptr, instance: Ptr, size: int) -> Ptr:
    """Take a free workspace, or make one for this call where all are taken; null: no memory."""
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


@support
def drop_arena(call: Ptr, slot: Ptr) -> None:
    """Free a workspace's arena."""
    release(call, load_ptr(slot, layout.SLOT_ARENA))
    store_ptr(slot, layout.SLOT_ARENA, NULL)
    store_i64(slot, layout.SLOT_ARENA_BYTES, 0)


@support
def return_workspace(call: Ptr, slot: Ptr) -> None:
    """Give a workspace back; one that was made for the call alone is freed."""
    if load_i64(slot, layout.SLOT_BUSY) == 2:
        drop_arena(call, slot)
        release_host(call, slot)
    else:
        publish(slot, layout.SLOT_BUSY, 0)


@support
def find_plan(slot: Ptr, keys: Ptr, count: int, size: int) -> Ptr:
    """Find the plan for the symbols' values; null where this shape was not planned here."""
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


@support
def oldest_plan(slot: Ptr, size: int) -> Ptr:
    """Choose the plan to replace: the one unused for longest, marked as empty."""
    best = move(slot, layout.SLOT_PLANS)
    for k in range(1, layout.PLAN_COUNT):
        plan = move(slot, layout.SLOT_PLANS + size * k)
        if load_i64(plan, layout.PLAN_USED) < load_i64(best, layout.PLAN_USED):
            best = plan
    store_i64(best, layout.PLAN_USED, 0)
    return best


@support
def keep_plan(slot: Ptr, plan: Ptr, keys: Ptr, count: int, total: int) -> None:
    """Complete a plan: from now on it is found by its keys."""
    for j in range(count):
        store_i64(plan, layout.PLAN_KEYS + 8 * j, load_i64(keys, 8 * j))
    clock = load_i64(slot, layout.SLOT_CLOCK) + 1
    store_i64(slot, layout.SLOT_CLOCK, clock)
    store_i64(plan, layout.PLAN_TOTAL, total)
    store_i64(plan, layout.PLAN_USED, clock)


@support
def arena_of(call: Ptr, slot: Ptr, size: int) -> Ptr:
    """Give the workspace's arena, grown to at least ``size`` bytes; null: no memory."""
    if max(size, 1) > load_i64(slot, layout.SLOT_ARENA_BYTES):
        drop_arena(call, slot)
        wanted = max(size, layout.ALIGNMENT)
        arena = allocate(call, wanted)
        if arena != NULL:
            store_ptr(slot, layout.SLOT_ARENA, arena)
            store_i64(slot, layout.SLOT_ARENA_BYTES, wanted)
        return arena
    return load_ptr(slot, layout.SLOT_ARENA)


@support
def drop_workspaces(call: Ptr, instance: Ptr, size: int) -> None:
    """Free the arenas that no call is using; plans stay."""
    for k in range(layout.SLOT_COUNT):
        slot = move(instance, layout.INSTANCE_SLOTS + size * k)
        if exchange(slot, layout.SLOT_BUSY, 0, 1) == 0:
            drop_arena(call, slot)
            publish(slot, layout.SLOT_BUSY, 0)
