"""Devices with their own memory: copies, and the providers that launch through CUDA."""

from __future__ import annotations

from .. import layout
from ..language import (
    NULL,
    Code,
    Ptr,
    call_code,
    load_i64,
    load_ptr,
    move,
    support,
    widen,
)
from .memory import device_of
from .providers import take_time


@support
def copy_between(call: Ptr, target: Ptr, source: Ptr, size: int) -> Code:
    """Copy between memories of the device and the host, in the order of what was launched."""
    return call_code(load_ptr(device_of(call), layout.DEVICE_COPY), call, target, source, size)


# ---------------------------------------------------------------- CUDA


@support
def enter_cuda(device: Ptr) -> Code:
    """Make the device's context the one of this thread."""
    enter = load_ptr(device, layout.DEVICE_DRIVER_ENTER)
    return call_code(enter, load_ptr(device, layout.DEVICE_CONTEXT))


@support
def copy_with_cuda(call: Ptr, target: Ptr, source: Ptr, size: int) -> Code:
    """Copy with the driver; ``DEVICE_COPY`` of a CUDA device."""
    device = device_of(call)
    code = widen(enter_cuda(device))
    if code != 0 or size == 0:
        return Code(code)
    return call_code(load_ptr(device, layout.DEVICE_DRIVER_COPY), target, source, size)


@support
def launch_with_cuda(call: Ptr, kernel: Ptr, arguments: Ptr, _count: int) -> Code:
    """Queue a kernel with the driver; ``launch`` of the table of a CUDA device."""
    device = device_of(call)
    code = widen(enter_cuda(device))
    if code != 0:
        return Code(code)
    grid = move(kernel, layout.RECORD_GRID)
    block = move(kernel, layout.RECORD_BLOCK)
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
        load_ptr(device, layout.DEVICE_STREAM),
        arguments,
        NULL,
    )


@support
def take_cuda_time(call: Ptr, launch: int, phase: int) -> None:
    """Collect the time of a launch and of the kernel's run; ``profile`` of such a table."""
    device = device_of(call)
    wait = load_ptr(device, layout.DEVICE_DRIVER_WAIT)
    call_code(wait, load_ptr(device, layout.DEVICE_STREAM))
    take_time(call, launch, phase)
