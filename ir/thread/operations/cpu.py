"""Operations that every CPU has."""

from __future__ import annotations

from ..types import POINTER
from .operation import Operation

PREFETCH = Operation("cpu.prefetch", "thread", (POINTER,), ())
"""A hint that the cache line at an address will be read soon; no memory is accessed.

The address may be outside of all allocations.
"""

CPU = (PREFETCH,)
