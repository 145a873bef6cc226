"""Memory of a call: allocations on the device and on the host.

The ``ALLOC`` function of the runtime table allocates memory of the table's device. If the table
has no device, this is host memory, and both kinds of allocations are the same.
"""

from __future__ import annotations

from ...ir.thread import runtime_table
from . import layout
from .language import (
    NULL,
    Ptr,
    call_nothing,
    call_ptr,
    exchange,
    load_i64,
    load_ptr,
    move,
    observe,
    rtlib_function,
    store_i64,
    store_ptr,
)


@rtlib_function
def allocate(call: Ptr, size: int) -> Ptr:
    """Allocate device memory with the runtime table of the call."""
    own = move(call, layout.CALL_OWN_TABLE)
    return call_ptr(load_ptr(own, runtime_table.ALLOC), call, size, layout.ALIGNMENT, 0, 0)


@rtlib_function
def release(call: Ptr, memory: Ptr) -> None:
    """Free device memory with the runtime table of the call; null is ignored."""
    own = move(call, layout.CALL_OWN_TABLE)
    if memory != NULL:
        call_nothing(load_ptr(own, runtime_table.FREE), call, memory, 0, 0)


@rtlib_function
def device_of(call: Ptr) -> Ptr:
    """Return the device of the runtime table, or null for the host."""
    return load_ptr(load_ptr(call, layout.CALL_TABLE), runtime_table.DEVICE)


@rtlib_function
def allocate_host(call: Ptr, size: int) -> Ptr:
    """Allocate memory that the host can access."""
    device = device_of(call)
    if device == NULL:
        return allocate(call, size)
    return call_ptr(load_ptr(device, layout.DEVICE_HOST_ALLOC), call, size, layout.ALIGNMENT, 0, 0)


@rtlib_function
def release_host(call: Ptr, memory: Ptr) -> None:
    """Free memory allocated by :func:`allocate_host`; null is ignored."""
    device = device_of(call)
    if device == NULL:
        release(call, memory)
    elif memory != NULL:
        call_nothing(load_ptr(device, layout.DEVICE_HOST_FREE), call, memory, 0, 0)


@rtlib_function
def is_host(call: Ptr, number: int) -> int:
    """Return whether a device is the host of a call whose own device is another one."""
    if device_of(call) == NULL:
        return 0
    if number // layout.DEVICE_TYPE_UNIT == layout.HOST:
        return 1
    return 0


@rtlib_function
def memory_record(call: Ptr) -> Ptr:
    """Return the record of the memory of workspaces, or null if it is not counted."""
    return load_ptr(move(call, layout.CALL_OWN_TABLE), runtime_table.MEMORY)


@rtlib_function
def count_bytes(call: Ptr, size: int) -> int:
    """Add to the bytes in use; return 0 and add nothing if this would exceed the limit."""
    memory = memory_record(call)
    if memory == NULL:
        return 1
    limit = load_i64(memory, layout.MEMORY_LIMIT)
    seen = observe(memory, layout.MEMORY_USED)
    done = 0
    while done == 0:
        if limit > 0 and size > 0 and size > limit - seen:
            store_i64(call, layout.CALL_A, layout.LIMITED)
            return 0
        found = exchange(memory, layout.MEMORY_USED, seen, seen + size)
        if found == seen:
            done = 1
        seen = found
    return 1


@rtlib_function
def allocate_counted(call: Ptr, size: int) -> Ptr:
    """Allocate memory of a workspace; null if it exceeds the limit, or memory is exhausted."""
    if count_bytes(call, size) == 0:
        return NULL
    block = allocate(call, size)
    if block == NULL:
        count_bytes(call, -size)
    elif memory_record(call) != NULL:
        store_i64(call, layout.CALL_A, 0)  # an earlier plan may have exceeded the limit
    return block


@rtlib_function
def has_header(call: Ptr) -> int:
    """Return whether the size of a block precedes it: if blocks are counted, and in host memory."""
    if memory_record(call) == NULL:
        return 0
    if device_of(call) == NULL:
        return 1
    return 0


@rtlib_function
def allocate_on(call: Ptr, size: int, number: int, stream: int) -> Ptr:
    """Allocate memory of a device by its number in the runtime table.

    :func:`release_on` frees it, and no other function, because its size may precede it.
    """
    if is_host(call, number) != 0:
        return allocate_host(call, size)
    if has_header(call) != 0:
        block = allocate_counted(call, size + layout.ALIGNMENT)
        if block != NULL:
            store_i64(block, 0, size + layout.ALIGNMENT)
            block = move(block, layout.ALIGNMENT)
        return block
    own = move(call, layout.CALL_OWN_TABLE)
    entry = load_ptr(own, runtime_table.ALLOC)
    return call_ptr(entry, call, size, layout.ALIGNMENT, number, stream)


@rtlib_function
def release_on(call: Ptr, memory: Ptr, number: int, stream: int) -> None:
    """Free memory allocated by :func:`allocate_on`; null is ignored."""
    if is_host(call, number) != 0:
        release_host(call, memory)
    elif memory != NULL:
        if has_header(call) != 0:
            memory = move(memory, -layout.ALIGNMENT)
            count_bytes(call, -load_i64(memory, 0))
        own = move(call, layout.CALL_OWN_TABLE)
        call_nothing(load_ptr(own, runtime_table.FREE), call, memory, number, stream)


@rtlib_function
def free_later(call: Ptr, blocks: Ptr, numbers: Ptr, count: int) -> None:
    """Free the storages allocated during the call and clear their addresses.

    ``numbers`` are the devices of the storages. The streams were joined, so all operations are in
    stream 0.
    """
    for k in range(count):
        release_on(call, load_ptr(blocks, 8 * k), load_i64(numbers, 8 * k), 0)
        store_ptr(blocks, 8 * k, NULL)
