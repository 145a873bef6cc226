"""Lowering of memory-stage graph functions to host IR: entry checks, shapes, arena, launches."""
