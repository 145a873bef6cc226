"""Graph function in memory stage -> host IR: entry checks, shape program, arena, launches."""

from .function import FlowFunctions, Kernel, lower_graph

__all__ = ["FlowFunctions", "Kernel", "lower_graph"]
