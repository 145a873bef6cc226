"""Where generated code finds each entry of the runtime table, the only way out of it (DESIGN §2).

The table is an array of 8-byte slots. Functions take the context slot first. Slots are only ever
added at the end, with a new version.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = 0
"""``i64``: the version that the provider implements."""

CONTEXT: Final = 8
"""``ptr``: what every function of the table is handed first."""

ALLOC: Final = 16
"""``ptr(context, i64 bytes, i64 alignment)``, null when memory is exhausted."""

FREE: Final = 24
"""``void(context, ptr)``."""

PARALLEL: Final = 32
"""``i32(context, ptr body, i64 stop, ptr environment)``: share ``range(stop)`` out among threads.

``body`` is ``i32(ptr environment, i64 begin, i64 end, i64 worker)``, called for disjoint ranges
that cover everything, by workers numbered from 0. The first code that is not 0 is returned.
"""

ERROR: Final = 40
"""``void(context, i32 code, ptr text, i64 a, i64 b)``: keep an error for the caller to raise.

``text`` ends with a zero byte; ``a`` and ``b`` are the two numbers it speaks of.
"""

THREADS: Final = 48
"""``i64``: how many workers ``parallel`` may use."""

LIBRARY: Final = 56
"""``i32(context, ptr entry, ptr operands, i64 count)``: call a library function.

The entry is two words: the function's address and what it is handed before the operands.

An operand is four words: data, rank, address of the dimensions, dtype (DLPack code * 256 + bits).
"""

LAUNCH: Final = 64
"""``i32(context, ptr kernel, ptr arguments, i64 count)``: start a kernel on a device.

``kernel`` is a record of eight words: the kernel's handle, its grid of blocks (x, y, z), the
threads of a block (x, y, z), and the bytes of shared memory it asks for beyond its own.
``arguments`` are ``count`` addresses, each of the value of one parameter. A code that is not 0 is
the device's own.
"""

PROFILE: Final = 72
"""``void(context, i64 launch, i64 phase)``: a launch begins (0) or ends (1)."""

RELEASE: Final = 80
"""``void(ptr managed)``: the DLPack deleter of result tensors, valid as long as the process."""

SYSTEM: Final = 88
"""``ptr``: what the standard providers stand on (:mod:`tilewright.ir.host.layout`)."""

USER: Final = 96
"""``ptr``: of no meaning here; for providers of the user's own."""

DEVICE: Final = 104
"""``ptr``: the device whose memory ``alloc`` gives (:mod:`tilewright.ir.host.layout`).

Null: it is the host's, which the code that calls ``alloc`` may read and write itself.
"""

SIZE: Final = 112
"""Bytes of the table."""

CURRENT: Final = 1
"""The version described here."""

CODE_BOUNDS: Final = 1
"""A debug guard found an access outside its buffer."""

CODE_RANGE: Final = 2
"""An integer read from memory lies outside the range that the program states for it."""
