"""Memory of a call: allocations on the device and on the host.

The ``ALLOC`` function of the runtime table allocates memory of the table's device. If the table
has no device, this is host memory, and both kinds of allocations are the same.
"""

from __future__ import annotations

from ...ir.thread import runtime_table
from . import layout
from .language import NULL, Ptr, call_nothing, call_ptr, load_ptr, move, rtlib_function


@rtlib_function
def allocate(call: Ptr, size: int) -> Ptr:
    """Allocate device memory with the runtime table of the call."""
    own = move(call, layout.CALL_OWN_TABLE)
    return call_ptr(load_ptr(own, runtime_table.ALLOC), call, size, layout.ALIGNMENT)


@rtlib_function
def release(call: Ptr, memory: Ptr) -> None:
    """Free device memory with the runtime table of the call; null is ignored."""
    own = move(call, layout.CALL_OWN_TABLE)
    if memory != NULL:
        call_nothing(load_ptr(own, runtime_table.FREE), call, memory)


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
    return call_ptr(load_ptr(device, layout.DEVICE_HOST_ALLOC), call, size, layout.ALIGNMENT)


@rtlib_function
def release_host(call: Ptr, memory: Ptr) -> None:
    """Free memory allocated by :func:`allocate_host`; null is ignored."""
    device = device_of(call)
    if device == NULL:
        release(call, memory)
    elif memory != NULL:
        call_nothing(load_ptr(device, layout.DEVICE_HOST_FREE), call, memory)
