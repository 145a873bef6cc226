"""Lowering of memory-stage graph functions to host IR: entry checks, shapes, arena, launches."""

from .devices import kernel_spec
from .function import FlowFunctions, HostKernel, lower_to_host

__all__ = ["FlowFunctions", "HostKernel", "kernel_spec", "lower_to_host"]
