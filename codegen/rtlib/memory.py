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
    load_i64,
    load_ptr,
    move,
    rtlib_function,
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
def allocate_on(call: Ptr, size: int, number: int, stream: int) -> Ptr:
    """Allocate memory of a device by its number in the runtime table."""
    if is_host(call, number) != 0:
        return allocate_host(call, size)
    own = move(call, layout.CALL_OWN_TABLE)
    entry = load_ptr(own, runtime_table.ALLOC)
    return call_ptr(entry, call, size, layout.ALIGNMENT, number, stream)


@rtlib_function
def release_on(call: Ptr, memory: Ptr, number: int, stream: int) -> None:
    """Free memory allocated by :func:`allocate_on`; null is ignored."""
    if is_host(call, number) != 0:
        release_host(call, memory)
    elif memory != NULL:
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
