"""The run-time library, which is part of every executable and exported library.

The library is written in a small subset of Python, defined by :mod:`.language`. :mod:`.translate`
parses the source of its functions and translates them to host IR, which is compiled by the same
code generator as kernels. Therefore no C compiler is needed. The functions also run as normal
Python functions on real memory; tests compare both forms.

- :mod:`.layout`: byte offsets of the words of all structures shared with the caller
- :mod:`.calls`: the call record, and saturating arithmetic of sizes
- :mod:`.views`: decoding and checking of NumPy and DLPack arguments
- :mod:`.memory`: host and device memory of a call
- :mod:`.plan_table`: constant data of the planner for the storages of a function
- :mod:`.planner`: the memory planner, which assigns arena offsets to storages
- :mod:`.narrow`, :mod:`.sweep`: the placement of many storages
- :mod:`.plans`: cached memory plans, which are reused for smaller sizes
- :mod:`.workspaces`: arenas, shared by concurrent calls
- :mod:`.results`: result tensors that own their memory (DLPack)
- :mod:`.providers`: default functions of the runtime table: memory, time, serial and OpenMP loops
- :mod:`.pool`: the thread pool
- :mod:`.devices`: copies and launches with the CUDA driver
- :mod:`.gemm`: adapters of BLAS matrix products
- :mod:`.ordering`: sorting, distinct elements, and positions of nonzero elements
"""

from . import (
    calls,
    devices,
    gemm,
    memory,
    narrow,
    ordering,
    planner,
    plans,
    pool,
    providers,
    results,
    sweep,
    views,
    workspaces,
)

__all__ = [
    "calls", "devices", "gemm", "memory", "narrow", "ordering", "planner", "plans", "pool",
    "providers", "results", "sweep", "views", "workspaces",
]  # fmt: skip
