"""Lowering of memory-stage graph functions to host IR: entry checks, shapes, arena, launches."""

from .devices import host_kernel, kernel_spec
from .function import FlowFunctions, HostKernel, lower_to_host

__all__ = ["FlowFunctions", "HostKernel", "host_kernel", "kernel_spec", "lower_to_host"]
