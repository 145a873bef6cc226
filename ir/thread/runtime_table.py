"""Byte offsets of the entries of the runtime table.

Generated code calls out only through this versioned table: for memory, threads, errors, library
functions, kernel launches, and profiling. The table is an array of 8-byte slots. Most functions
take the value of the context slot as their first argument. A new version may only append slots.

An argument ``device`` is 0 for the device of the table, otherwise the DLPack device type times
``2**32`` plus the ordinal. An argument ``stream`` is the number of a stream of the table's device;
the streams are ordered by its owner.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = 0
"""``i64``: the table version that the provider implements."""

CONTEXT: Final = 8
"""``ptr``: the first argument of the functions of the table."""

ALLOC: Final = 16
"""``ptr(context, i64 bytes, i64 alignment, i64 device, i64 stream)``: allocate memory.

The result is null if memory is exhausted. Operations on the stream may use the memory.
"""

FREE: Final = 24
"""``void(context, ptr, i64 device, i64 stream)``: free memory after earlier operations."""

PARALLEL: Final = 32
"""``i32(context, ptr body, i64 stop, ptr environment)``: distribute ``range(stop)`` to threads.

``body`` is ``i32(ptr environment, i64 begin, i64 end, i64 worker)``. It is called for disjoint
ranges that cover ``range(stop)``, by workers numbered from 0. The first nonzero code is returned.
"""

ERROR: Final = 40
"""``void(context, i32 code, ptr text, i64 a, i64 b)``: record an error for the caller to raise.

``text`` is zero-terminated; ``a`` and ``b`` are the two numbers that it refers to.
"""

THREADS: Final = 48
"""``i64``: the maximum number of workers of ``PARALLEL``."""

LIBRARY: Final = 56
"""``i32(context, ptr entry, ptr operands, i64 count)``: call a library function.

``entry`` is a record of two words: the address of the function, and its first argument, which
precedes the operands. An operand is a record of four words: data, rank, address of the dimensions,
and dtype (DLPack code * 256 + bits).
"""

LAUNCH: Final = 64
"""``i32(context, ptr kernel, ptr arguments, i64 count)``: start a kernel on a device.

``kernel`` is a record of thirteen words: the kernel handle, the grid size in thread blocks (x, y,
z), the block size in threads (x, y, z), the bytes of dynamic shared memory, the stream, the cluster
size in thread blocks (x, y, z; 0 means no clusters), and the address of further launch attributes
of the device (null means none). ``arguments`` is an array of ``count`` addresses, one per parameter
value. A nonzero code is an error code of the device.
"""

PROFILE: Final = 72
"""``void(context, i64 launch, i64 phase)``: notify that a launch begins (0) or ends (1)."""

RELEASE: Final = 80
"""``void(ptr managed)``: the DLPack deleter of result tensors, valid until the process exits."""

SYSTEM: Final = 88
"""``ptr``: the state of the standard providers (:mod:`tilewright.codegen.rtlib.layout`)."""

USER: Final = 96
"""``ptr``: reserved for providers supplied by the user."""

DEVICE: Final = 104
"""``ptr``: the device whose memory ``ALLOC`` returns (:mod:`tilewright.codegen.rtlib.layout`).

Null means host memory, which the caller of ``ALLOC`` may access directly.
"""

COPY: Final = 112
"""``i32(context, ptr target, ptr source, i64 bytes, i64 to, i64 from, i64 stream)``: copy memory.

``to`` and ``from`` are the devices of the memory. A nonzero code is an error code of a device.
"""

MEMORY: Final = 120
"""``ptr``: the limit of the workspaces in bytes, or 0, and the bytes in use; null means neither."""

SIZE: Final = 128
"""The size of the table in bytes."""

CURRENT: Final = 1
"""The current table version."""

CODE_BOUNDS: Final = 1
"""Error code: an access that is not proved to be in bounds, or any in debug mode, is not."""

CODE_RANGE: Final = 2
"""Error code: an integer loaded from memory is outside of its declared range.

The second number is the violated bound: the least value if the integer is less, else the exclusive
upper bound.
"""

CODE_PARALLEL: Final = 5
"""Error code of exported libraries: function ``parallel`` of the host returned a code."""

CODE_RANGE_UNSIGNED: Final = 4
"""Error code: an integer of 2**63 or more, loaded from memory, is outside of its declared range."""
