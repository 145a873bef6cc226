"""Devices with separate memory: copies, and launches with the CUDA driver."""

from __future__ import annotations

from . import layout
from .language import NULL, Code, Ptr, call_code, load_i64, load_ptr, move, rtlib_function, widen
from .memory import device_of
from .providers import take_time


@rtlib_function
def copy_between(call: Ptr, target: Ptr, source: Ptr, size: int) -> Code:
    """Copy between device and host memory, in stream order after earlier launches."""
    return call_code(load_ptr(device_of(call), layout.DEVICE_COPY), call, target, source, size)


@rtlib_function
def enter_cuda(device: Ptr) -> Code:
    """Set the CUDA context of the device for the calling thread."""
    enter = load_ptr(device, layout.DEVICE_DRIVER_ENTER)
    return call_code(enter, load_ptr(device, layout.DEVICE_CONTEXT))


@rtlib_function
def copy_with_cuda(call: Ptr, target: Ptr, source: Ptr, size: int) -> Code:
    """Copy with the CUDA driver; function ``DEVICE_COPY`` of a CUDA device."""
    device = device_of(call)
    code = widen(enter_cuda(device))
    if code != 0 or size == 0:
        return Code(code)
    return call_code(load_ptr(device, layout.DEVICE_DRIVER_COPY), target, source, size)


@rtlib_function
def launch_with_cuda(call: Ptr, kernel: Ptr, arguments: Ptr, _count: int) -> Code:
    """Launch a kernel with the CUDA driver; function ``LAUNCH`` of the runtime table."""
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


@rtlib_function
def take_cuda_time(call: Ptr, launch: int, phase: int) -> None:
    """Record the time of a launch including the kernel; function ``PROFILE`` of the table."""
    device = device_of(call)
    wait = load_ptr(device, layout.DEVICE_DRIVER_WAIT)
    call_code(wait, load_ptr(device, layout.DEVICE_STREAM))
    take_time(call, launch, phase)
