"""Buffers of WebGPU under addresses: numbers by which native code refers to device memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

BASE: Final = 1 << 60
"""The first address, above those of host memory."""

SLOT: Final = 1 << 32
"""The distance of the addresses of buffers, more than the size of a buffer."""

UNIT: Final = 256
"""The sizes of buffers are multiples of this number of bytes."""

LEAST: Final = 256
"""The size of the smallest buffer in bytes."""

POOLED_BYTES: Final = 256 << 20
"""The bytes of unused buffers that are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A buffer, its size in bytes, and its address."""

    buffer: Any
    size: int
    address: int


class BlockTable:
    """The buffers of a device; unused ones are reused for the same size.

    Parameters
    ----------
    create : callable
        Creates a buffer of a size in bytes.
    """

    def __init__(self, create: Any) -> None:
        """Initialize without buffers."""
        self._create = create
        self._blocks: dict[int, Block] = {}
        self._free: dict[int, list[Block]] = {}
        self._unused: set[int] = set()
        self._pooled = 0
        self._next = 0

    @property
    def count(self) -> int:
        """The number of buffers in use."""
        return len(self._blocks) - len(self._unused)

    def allocate(self, size: int) -> Block:
        """Return a buffer of at least ``size`` bytes."""
        whole = max(-(-size // UNIT) * UNIT, LEAST)
        same = self._free.get(whole)
        if same:
            block = same.pop()
            self._pooled -= block.size
            self._unused.discard(block.address)
            return block
        block = Block(self._create(whole), whole, BASE + self._next * SLOT)
        self._next += 1
        self._blocks[block.address] = block
        return block

    def free(self, address: int) -> Block | None:
        """Keep a buffer for reuse; return it if it must be destroyed instead."""
        block = self._blocks.get(address)
        if block is None or address in self._unused:
            return None
        if self._pooled + block.size > POOLED_BYTES:
            del self._blocks[address]
            return block
        self._pooled += block.size
        self._unused.add(address)
        self._free.setdefault(block.size, []).append(block)
        return None

    def trim(self) -> list[Block]:
        """Return all unused buffers, which the caller destroys."""
        unused = [block for blocks in self._free.values() for block in blocks]
        for block in unused:
            del self._blocks[block.address]
        self._free.clear()
        self._unused.clear()
        self._pooled = 0
        return unused

    def find(self, address: int) -> tuple[Block, int] | None:
        """Return the buffer of an address and the offset in it; None for host memory."""
        if address < BASE:
            return None
        start = (address - BASE) // SLOT * SLOT + BASE
        block = self._blocks.get(start)
        return None if block is None else (block, address - start)
