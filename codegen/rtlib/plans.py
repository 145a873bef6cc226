"""Cached memory plans: a plan is also used for other sizes that it dominates.

A plan has an offset and a capacity for each storage. Storages whose live ranges overlap are
disjoint in memory as long as no storage is larger than its capacity, so a plan is valid for all
sizes that are at most its capacities: it *dominates* them. It is used for them if the peak of its
capacities is at most a quarter and ``SLACK`` bytes above the peak of the sizes.

The first plan of a sequence is exact: the capacities are the sizes. If a later shape exceeds a
recent plan by at most a quarter, as the shapes of a growing cache do, then the storages that
changed get a quarter more than they need, and a part of ``SLACK``. The plan then dominates all
shapes until a storage has grown by a quarter. So the number of plans is proportional to the
logarithm of the largest size: let ``peak(s)`` be the maximum of live bytes for sizes ``s``, which
is monotonic. A plan made for ``s`` has capacities ``c`` with ``peak(c) <= 5/4 peak(s) + SLACK``,
and every later ``t`` with ``s <= t <= c`` has ``peak(s) <= peak(t)``, so the plan is used for
``t``. If the arena of a plan is ``q`` times its peak (1 for most programs), a call uses an arena of
at most ``q (5/4 peak(t) + SLACK)`` bytes; every plan for ``t`` has at least ``peak(t)`` bytes.

A workspace belongs to one call at a time. So nothing here is synchronized.
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
from .memory import allocate_host, release_host
from .narrow import place_narrow
from .planner import pack, peak_of, total_of
from .sweep import sweep_both
from .workspaces import arena_of

SLACK = 4096
"""The number of bytes that an arena may be larger than necessary, besides a quarter."""
SMALL_STEP = 4 * layout.ALIGNMENT
"""The growth in bytes that always counts as at most a quarter."""
LIMIT = 1 << 62
"""Arenas are smaller than this number of bytes."""


@rtlib_function
def plan_at(slot: Ptr, table: Ptr, position: int) -> Ptr:
    """Return the record of a plan of a workspace."""
    start = load_i64(table, layout.TABLE_PLANS)
    return move(slot, start + load_i64(table, layout.TABLE_PLAN_BYTES) * position)


@rtlib_function
def capacities_of(plan: Ptr, table: Ptr) -> Ptr:
    """Return the capacities of the storages of a plan."""
    return move(plan, layout.PLAN_OFFSETS + 8 * load_i64(table, layout.TABLE_STORAGES))


@rtlib_function
def shape_at(slot: Ptr, table: Ptr, position: int) -> Ptr:
    """Return the record of a shape of a workspace."""
    return move(slot, layout.SLOT_SHAPES + load_i64(table, layout.TABLE_SHAPE_BYTES) * position)


@rtlib_function
def find_shape(slot: Ptr, keys: Ptr, table: Ptr) -> Ptr:
    """Return the shape with these symbol values, or null if there is none."""
    count = load_i64(table, layout.TABLE_KEYS)
    size = load_i64(table, layout.TABLE_SHAPE_BYTES)
    shape = move(slot, layout.SLOT_SHAPES)
    for _ in range(layout.SHAPE_COUNT):
        if load_i64(shape, layout.SHAPE_USED) != 0:
            same = 1
            for j in range(count):
                if load_i64(shape, layout.SHAPE_KEYS + 8 * j) != load_i64(keys, 8 * j):
                    same = 0
            if same == 1:
                return shape
        shape = move(shape, size)
    return NULL


@rtlib_function
def find_plan(slot: Ptr, keys: Ptr, table: Ptr) -> Ptr:
    """Return the plan of recent symbol values, or null if there is none.

    The arena is large enough for the plan, or the plan is exact.
    """
    if load_i64(slot, layout.SLOT_STALE) == 1:
        return NULL
    shape = find_shape(slot, keys, table)
    if shape == NULL:
        return NULL
    clock = load_i64(slot, layout.SLOT_CLOCK) + 1
    plan = load_ptr(shape, layout.SHAPE_PLAN)
    store_i64(slot, layout.SLOT_CLOCK, clock)
    store_i64(shape, layout.SHAPE_USED, clock)
    store_i64(plan, layout.PLAN_USED, clock)
    return plan


@rtlib_function
def forget_shapes(slot: Ptr, table: Ptr, plan: Ptr) -> None:
    """Forget the shapes of a plan, or all shapes if ``plan`` is null."""
    for k in range(layout.SHAPE_COUNT):
        shape = shape_at(slot, table, k)
        if plan == NULL or load_ptr(shape, layout.SHAPE_PLAN) == plan:
            store_i64(shape, layout.SHAPE_USED, 0)


@rtlib_function
def keep_shape(slot: Ptr, plan: Ptr, keys: Ptr, table: Ptr) -> None:
    """Remember the plan of symbol values, in place of the least recently used ones."""
    best = shape_at(slot, table, 0)
    for k in range(1, layout.SHAPE_COUNT):
        shape = shape_at(slot, table, k)
        if load_i64(shape, layout.SHAPE_USED) < load_i64(best, layout.SHAPE_USED):
            best = shape
    for j in range(load_i64(table, layout.TABLE_KEYS)):
        store_i64(best, layout.SHAPE_KEYS + 8 * j, load_i64(keys, 8 * j))
    clock = load_i64(slot, layout.SLOT_CLOCK) + 1
    store_i64(slot, layout.SLOT_CLOCK, clock)
    store_ptr(best, layout.SHAPE_PLAN, plan)
    store_i64(best, layout.SHAPE_USED, clock)
    store_i64(plan, layout.PLAN_USED, clock)


@rtlib_function
def oldest_plan(slot: Ptr, table: Ptr) -> Ptr:
    """Return the least recently used plan."""
    best = plan_at(slot, table, 0)
    for k in range(1, layout.PLAN_COUNT):
        plan = plan_at(slot, table, k)
        if load_i64(plan, layout.PLAN_USED) < load_i64(best, layout.PLAN_USED):
            best = plan
    return best


@rtlib_function
def within(plan: Ptr, table: Ptr, sizes: Ptr, step: int) -> int:
    """Return whether no storage exceeds its capacity, or by a quarter at most if ``step`` is 1."""
    have = capacities_of(plan, table)
    for k in range(load_i64(table, layout.TABLE_STORAGES)):
        capacity = load_i64(have, 8 * k)
        if load_i64(sizes, 8 * k) - capacity > max(capacity // 4, SMALL_STEP) * step:
            return 0
    return 1


@rtlib_function
def dominating_plan(slot: Ptr, table: Ptr, sizes: Ptr, peak: int) -> Ptr:
    """Return the smallest plan whose capacities suffice and are close enough, or null."""
    best = NULL
    smallest = LIMIT
    for k in range(layout.PLAN_COUNT):
        plan = plan_at(slot, table, k)
        if load_i64(plan, layout.PLAN_USED) != 0:
            above = load_i64(plan, layout.PLAN_PEAK) - peak
            total = load_i64(plan, layout.PLAN_TOTAL)
            if above <= peak // 4 + SLACK and total < smallest:  # noqa: SIM102  # saves a call
                if within(plan, table, sizes, 0) == 1:
                    best = plan
                    smallest = total
    return best


@rtlib_function
def exceeded_plan(slot: Ptr, table: Ptr, sizes: Ptr, peak: int) -> Ptr:
    """Return the most recent plan that the sizes exceed by at most a quarter, or null."""
    best = NULL
    latest = 0
    for k in range(layout.PLAN_COUNT):
        plan = plan_at(slot, table, k)
        used = load_i64(plan, layout.PLAN_USED)
        if used > latest:
            above = load_i64(plan, layout.PLAN_PEAK) - peak
            if above <= peak // 4 + SLACK and within(plan, table, sizes, 1) == 1:
                best = plan
                latest = used
    return best


@rtlib_function
def count_changed(table: Ptr, sizes: Ptr, base: Ptr) -> int:
    """Return the number of storages whose size is not their capacity in ``base``."""
    changed = 0
    for k in range(load_i64(table, layout.TABLE_STORAGES)):
        if load_i64(sizes, 8 * k) != load_i64(base, 8 * k):
            changed = changed + 1
    return changed


@rtlib_function
def set_capacities(table: Ptr, sizes: Ptr, base: Ptr, capacities: Ptr) -> None:
    """Compute capacities: the sizes, with room for the storages that differ from ``base``.

    Each of these gets a quarter of its size and an equal part of ``SLACK``. So the peak of the
    capacities is at most a quarter and ``SLACK`` bytes above the peak of the sizes. If the sizes
    are multiples of ``SMALL_STEP``, the capacities are, too: WebGPU binds ranges of such bytes.
    """
    part = 0
    if base != NULL:
        part = SLACK // max(count_changed(table, sizes, base), 1)
    for k in range(load_i64(table, layout.TABLE_STORAGES)):
        size = load_i64(sizes, 8 * k)
        room = 0
        if base != NULL:  # noqa: SIM102  # `and` evaluates both operands
            if load_i64(base, 8 * k) != size:
                unit = layout.ALIGNMENT
                if size % SMALL_STEP == 0:
                    unit = SMALL_STEP
                room = (size // 4 + part) // unit * unit
        store_i64(capacities, 8 * k, size + room)


@rtlib_function
def place(table: Ptr, sizes: Ptr, offsets: Ptr, scratch: Ptr) -> int:
    """Compute the offsets of all storages; return the size of the arena in bytes."""
    count = load_i64(table, layout.TABLE_STORAGES)
    if count <= layout.SMALL_COUNT:
        return pack(count, sizes, move(table, layout.TABLE_RANGES), offsets, scratch)
    total = place_narrow(table, sizes, offsets, scratch)
    if total >= 0:
        return total
    return sweep_both(table, sizes, offsets, scratch)


@rtlib_function
def fill_plan(slot: Ptr, table: Ptr, base: Ptr, plan: Ptr, scratch: Ptr) -> None:
    """Compute a plan for the sizes in a workspace, with room for growth unless base is null."""
    sizes = move(slot, load_i64(table, layout.TABLE_SIZES))
    capacities = capacities_of(plan, table)
    had = NULL
    if base != NULL:
        had = capacities_of(base, table)
    set_capacities(table, sizes, had, capacities)
    total = place(table, capacities, move(plan, layout.PLAN_OFFSETS), scratch)
    store_i64(plan, layout.PLAN_TOTAL, total)
    store_i64(plan, layout.PLAN_PEAK, peak_of(table, capacities))
    store_i64(slot, layout.SLOT_PLANNED, load_i64(slot, layout.SLOT_PLANNED) + 1)


@rtlib_function
def memory_for(call: Ptr, slot: Ptr, plan: Ptr) -> int:
    """Return whether the arena has the size of a plan, after a reallocation if necessary."""
    if arena_of(call, slot, load_i64(plan, layout.PLAN_TOTAL)) == NULL:
        return 0
    return 1


@rtlib_function
def new_plan(call: Ptr, slot: Ptr, table: Ptr, base: Ptr, scratch: Ptr) -> Ptr:
    """Compute a plan in place of the oldest one; it is exact if memory does not suffice."""
    plan = oldest_plan(slot, table)
    forget_shapes(slot, table, plan)
    fill_plan(slot, table, base, plan, scratch)
    if base != NULL:  # noqa: SIM102  # `and` evaluates both operands
        if memory_for(call, slot, plan) == 0:
            fill_plan(slot, table, NULL, plan, scratch)
    return plan


@rtlib_function
def is_exact(table: Ptr, sizes: Ptr, plan: Ptr) -> int:
    """Return whether all capacities of a plan are the sizes."""
    have = capacities_of(plan, table)
    for k in range(load_i64(table, layout.TABLE_STORAGES)):
        if load_i64(have, 8 * k) != load_i64(sizes, 8 * k):
            return 0
    return 1


@rtlib_function
def sweep_scratch(call: Ptr, needed: int) -> Ptr:
    """Return temporary memory in front of the arena of the caller, or null if it has none."""
    reserved = load_i64(call, layout.CALL_RESERVED)
    if load_i64(call, layout.CALL_WORKSPACE_BYTES) < reserved:
        return NULL
    return move(load_ptr(call, layout.CALL_WORKSPACE), reserved - needed)


@rtlib_function
def exact_plan(call: Ptr, slot: Ptr, table: Ptr, sizes: Ptr) -> Ptr:
    """Return a plan whose capacities are the sizes; null if out of memory.

    It depends on nothing but the sizes, so that a workspace of the caller suffices always or never.
    """
    for k in range(layout.PLAN_COUNT):
        plan = plan_at(slot, table, k)
        if load_i64(plan, layout.PLAN_USED) != 0:  # noqa: SIM102  # `and` evaluates both operands
            if is_exact(table, sizes, plan) == 1:
                return plan
    if load_i64(table, layout.TABLE_STORAGES) <= layout.SMALL_COUNT:
        return new_plan(call, slot, table, NULL, move(slot, load_i64(table, layout.TABLE_SCRATCH)))
    needed = load_i64(table, layout.TABLE_SWEEP_BYTES)
    store_i64(slot, layout.SLOT_NEEDED, needed)
    given = sweep_scratch(call, needed)
    scratch = given
    if given == NULL:
        scratch = allocate_host(call, needed)
    if scratch == NULL:
        return NULL
    plan = new_plan(call, slot, table, NULL, scratch)
    if given == NULL:
        release_host(call, scratch)
    return plan


@rtlib_function
def plan_sizes(call: Ptr, slot: Ptr, table: Ptr) -> Ptr:
    """Return a plan for the sizes in a workspace; null if they are too large or out of memory."""
    sizes = move(slot, load_i64(table, layout.TABLE_SIZES))
    store_i64(slot, layout.SLOT_NEEDED, LIMIT)
    if total_of(table, sizes) >= LIMIT // 2:
        return NULL
    if load_i64(call, layout.CALL_MODE) & (layout.EXACT | layout.QUERY) != 0:
        return exact_plan(call, slot, table, sizes)
    peak = peak_of(table, sizes)
    plan = dominating_plan(slot, table, sizes, peak)
    if plan != NULL:  # noqa: SIM102  # `and` evaluates both operands
        if memory_for(call, slot, plan) == 1:
            store_i64(slot, layout.SLOT_REUSED, load_i64(slot, layout.SLOT_REUSED) + 1)
            return plan
    base = exceeded_plan(slot, table, sizes, peak)
    if plan != NULL:
        base = NULL
    if load_i64(table, layout.TABLE_STORAGES) <= layout.SMALL_COUNT:
        return new_plan(call, slot, table, base, move(slot, load_i64(table, layout.TABLE_SCRATCH)))
    needed = load_i64(table, layout.TABLE_SWEEP_BYTES)
    store_i64(slot, layout.SLOT_NEEDED, needed)
    scratch = allocate_host(call, needed)
    if scratch == NULL:
        return NULL
    plan = new_plan(call, slot, table, base, scratch)
    release_host(call, scratch)
    return plan


@rtlib_function
def make_plan(call: Ptr, slot: Ptr, keys: Ptr, table: Ptr) -> Ptr:
    """Return a plan for the sizes in a workspace and remember it; null if out of memory."""
    plan = plan_sizes(call, slot, table)
    if load_i64(slot, layout.SLOT_STALE) == 1:
        forget_shapes(slot, table, NULL)
        store_i64(slot, layout.SLOT_STALE, 0)
    if plan != NULL:
        keep_shape(slot, plan, keys, table)
    return plan


@rtlib_function
def draft_plan(table: Ptr, sizes: Ptr, base: Ptr, answer: Ptr) -> Ptr:
    """Compute a plan in the memory behind an answer; ``base`` are capacities, or null."""
    plan = move(answer, layout.QUERY_SIZE)
    capacities = capacities_of(plan, table)
    set_capacities(table, sizes, base, capacities)
    scratch = move(plan, load_i64(table, layout.TABLE_PLAN_BYTES))
    total = place(table, capacities, move(plan, layout.PLAN_OFFSETS), scratch)
    store_i64(plan, layout.PLAN_TOTAL, total)
    return plan


@rtlib_function
def describe_plan(slot: Ptr, table: Ptr, keys: Ptr, sizes: Ptr, answer: Ptr) -> None:
    """Describe the plan that a call uses in a workspace, which is not changed."""
    plan = NULL
    if load_i64(slot, layout.SLOT_STALE) == 0:
        shape = find_shape(slot, keys, table)
        if shape != NULL:
            plan = load_ptr(shape, layout.SHAPE_PLAN)
    peak = peak_of(table, sizes)
    if plan == NULL:
        plan = dominating_plan(slot, table, sizes, peak)
    kind = layout.KIND_DOMINATING
    if plan == NULL:
        kind = layout.KIND_GROWING
        base = exceeded_plan(slot, table, sizes, peak)
        if base != NULL:
            base = capacities_of(base, table)
        plan = draft_plan(table, sizes, base, answer)
    if is_exact(table, sizes, plan) == 1:
        kind = layout.KIND_EXACT
    store_i64(answer, layout.QUERY_KIND, kind)
    store_i64(answer, layout.QUERY_TOTAL, load_i64(plan, layout.PLAN_TOTAL))


@rtlib_function
def query_plan(instance: Ptr, size: int, table: Ptr, keys: Ptr, sizes: Ptr, answer: Ptr) -> None:  # noqa: PLR0917  # native functions have no keyword arguments
    """Describe the plan of the next call, and count the plans of all workspaces.

    Parameters
    ----------
    instance : Ptr
        The instance record.
    size : int
        The size of a workspace in bytes.
    table, keys, sizes : Ptr
        The table of the storages, the values of the symbols, and the sizes of the storages.
    answer : Ptr
        Output: the answer; behind it is temporary memory for a plan and for :func:`place`.
    """
    planned = 0
    reused = 0
    described = 0
    for k in range(layout.SLOT_COUNT):
        slot = move(instance, layout.INSTANCE_SLOTS + size * k)
        if described == 0:  # noqa: SIM102  # `and` evaluates both operands
            if exchange(slot, layout.SLOT_BUSY, 0, 1) == 0:
                describe_plan(slot, table, keys, sizes, answer)
                publish(slot, layout.SLOT_BUSY, 0)
                described = 1
        planned = planned + observe(slot, layout.SLOT_PLANNED)
        reused = reused + observe(slot, layout.SLOT_REUSED)
    store_i64(answer, layout.QUERY_PLANNED, planned)
    store_i64(answer, layout.QUERY_REUSED, reused)
    if described == 0:  # the call uses a temporary workspace
        plan = draft_plan(table, sizes, NULL, answer)
        store_i64(answer, layout.QUERY_KIND, layout.KIND_EXACT)
        store_i64(answer, layout.QUERY_TOTAL, load_i64(plan, layout.PLAN_TOTAL))
