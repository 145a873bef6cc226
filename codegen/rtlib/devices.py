"""Devices with separate memory: copies, launches, and streams of the CUDA driver."""

from __future__ import annotations

from ...ir.thread import runtime_table
from . import layout
from .language import (
    NULL,
    Code,
    Ptr,
    call_code,
    load_i64,
    load_ptr,
    move,
    rtlib_function,
    widen,
)
from .memory import device_of
from .providers import take_time

NOT_SUPPORTED = 801
"""``CUDA_ERROR_NOT_SUPPORTED``."""


@rtlib_function
def copy_between(  # noqa: PLR0917  # the order of the table
    call: Ptr, target: Ptr, source: Ptr, size: int, to: int, origin: int, stream: int
) -> Code:
    """Copy between memories of devices on a stream, with the runtime table of the call."""
    entry = load_ptr(move(call, layout.CALL_OWN_TABLE), runtime_table.COPY)
    return call_code(entry, call, target, source, size, to, origin, stream)


@rtlib_function
def stream_at(device: Ptr, stream: int) -> Ptr:
    """Return the record of a stream: its handle and its event."""
    return move(load_ptr(device, layout.DEVICE_STREAMS), layout.STREAM_BYTES * stream)


@rtlib_function
def enter_cuda(device: Ptr) -> Code:
    """Set the CUDA context of the device for the calling thread."""
    enter = load_ptr(device, layout.DEVICE_DRIVER_ENTER)
    return call_code(enter, load_ptr(device, layout.DEVICE_CONTEXT))


@rtlib_function
def copy_with_cuda(  # the order of the table
    call: Ptr, target: Ptr, source: Ptr, size: int, _to: int, _origin: int, stream: int
) -> Code:
    """Copy with the CUDA driver; function ``COPY`` of the runtime table.

    A copy on stream 0 has ended when it returns if one of the memories is that of the host.
    """
    device = device_of(call)
    code = widen(enter_cuda(device))
    if code != 0 or size == 0:
        return Code(code)
    if stream == 0:
        return call_code(load_ptr(device, layout.DEVICE_DRIVER_COPY), target, source, size)
    entry = load_ptr(device, layout.DEVICE_DRIVER_COPY_ASYNC)
    return call_code(entry, target, source, size, load_ptr(stream_at(device, stream), 0))


@rtlib_function
def launch_with_cuda(call: Ptr, kernel: Ptr, arguments: Ptr, _count: int) -> Code:
    """Launch a kernel with the CUDA driver; function ``LAUNCH`` of the runtime table.

    A launch with clusters or attributes is an error.
    """
    device = device_of(call)
    code = widen(enter_cuda(device))
    if code != 0:
        return Code(code)
    cluster = move(kernel, layout.RECORD_CLUSTER)
    for k in range(3):
        if load_i64(cluster, 8 * k) > 1:
            return Code(NOT_SUPPORTED)
    if load_ptr(kernel, layout.RECORD_ATTRIBUTES) != NULL:
        return Code(NOT_SUPPORTED)
    grid = move(kernel, layout.RECORD_GRID)
    block = move(kernel, layout.RECORD_BLOCK)
    stream = stream_at(device, load_i64(kernel, layout.RECORD_STREAM))
    return call_code(
        load_ptr(device, layout.DEVICE_DRIVER_LAUNCH),
        load_ptr(kernel, layout.RECORD_HANDLE),
        load_i64(grid, 0),
        load_i64(grid, 8),
        load_i64(grid, 16),
        load_i64(block, 0),
        load_i64(block, 8),
        load_i64(block, 16),
        load_i64(kernel, layout.RECORD_SHARED),
        load_ptr(stream, 0),
        arguments,
        NULL,
    )


@rtlib_function
def order_streams(call: Ptr, before: int, after: int) -> Code:
    """Let later operations of a stream wait for all earlier ones of another stream."""
    device = device_of(call)
    code = widen(enter_cuda(device))
    if code != 0:
        return Code(code)
    first = stream_at(device, before)
    event = load_ptr(first, layout.STREAM_EVENT)
    record = load_ptr(device, layout.DEVICE_DRIVER_RECORD)
    code = widen(call_code(record, event, load_ptr(first, 0)))
    if code != 0:
        return Code(code)
    wait = load_ptr(device, layout.DEVICE_DRIVER_AWAIT)
    return call_code(wait, load_ptr(stream_at(device, after), 0), event, 0)


@rtlib_function
def join_streams(call: Ptr, count: int) -> None:
    """Let stream 0 wait for the other streams that a call used, then wait for stream 0.

    The host memory of the call can be freed afterwards. An error of a stream is reported by the
    next operation of the driver.
    """
    device = device_of(call)
    for k in range(count - 1):
        order_streams(call, k + 1, 0)
    if count > 1:
        wait = load_ptr(device, layout.DEVICE_DRIVER_WAIT)
        call_code(wait, load_ptr(stream_at(device, 0), 0))


@rtlib_function
def take_cuda_time(call: Ptr, launch: int, phase: int) -> None:
    """Record the time of a launch including the kernel; function ``PROFILE`` of the table."""
    device = device_of(call)
    wait = load_ptr(device, layout.DEVICE_DRIVER_WAIT)
    for k in range(load_i64(device, layout.DEVICE_STREAM_COUNT)):
        call_code(wait, load_ptr(stream_at(device, k), 0))
    take_time(call, launch, phase)
