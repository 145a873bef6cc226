"""Graph function in memory stage -> host IR: entry checks, shape program, arena, launches."""

from .devices import kernel_spec
from .function import FlowFunctions, Kernel, lower_graph

__all__ = ["FlowFunctions", "Kernel", "kernel_spec", "lower_graph"]
