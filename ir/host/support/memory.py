"""Memory of a call: what the table gives, and what of it has to be the host's.

Where the table has no device, ``alloc`` gives memory of the host and there is one kind of memory.
"""

from __future__ import annotations

from ...thread import table
from .. import layout
from ..language import NULL, Ptr, call_nothing, call_ptr, load_ptr, move, support


@support
def allocate(call: Ptr, size: int) -> Ptr:
    """Allocate through the table of the call."""
    own = move(call, layout.CALL_OWN_TABLE)
    return call_ptr(load_ptr(own, table.ALLOC), call, size, layout.ALIGNMENT)


@support
def release(call: Ptr, memory: Ptr) -> None:
    """Free through the table of the call."""
    own = move(call, layout.CALL_OWN_TABLE)
    if memory != NULL:
        call_nothing(load_ptr(own, table.FREE), call, memory)


@support
def device_of(call: Ptr) -> Ptr:
    """Find the device that ``alloc`` gives memory of; null where that is the host."""
    return load_ptr(load_ptr(call, layout.CALL_TABLE), table.DEVICE)


@support
def allocate_host(call: Ptr, size: int) -> Ptr:
    """Allocate what the host reads and writes itself."""
    device = device_of(call)
    if device == NULL:
        return allocate(call, size)
    return call_ptr(load_ptr(device, layout.DEVICE_HOST_ALLOC), call, size, layout.ALIGNMENT)


@support
def release_host(call: Ptr, memory: Ptr) -> None:
    """Free what :func:`allocate_host` gave."""
    device = device_of(call)
    if device == NULL:
        release(call, memory)
    elif memory != NULL:
        call_nothing(load_ptr(device, layout.DEVICE_HOST_FREE), call, memory)
