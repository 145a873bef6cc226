"""Producers and consumers of blocks."""

from __future__ import annotations

from ..loop.nodes import Block, Buffer
from .accesses import accesses
from .tree import Tree


def read_buffers(block: Block) -> frozenset[Buffer]:
    """Return the buffers that a block loads from, including its accumulator."""
    return frozenset(access.buffer for access in accesses(block) if not access.writes)


def written_buffers(block: Block) -> frozenset[Buffer]:
    """Return the buffers that a block stores to."""
    return frozenset(access.buffer for access in accesses(block) if access.writes)


def producers(tree: Tree, block: Block) -> tuple[Block, ...]:
    """Return the other blocks that write buffers which a block reads, in program order."""
    read = read_buffers(block)
    return tuple(
        b
        for b in tree.outermost_blocks()
        if b is not block and not read.isdisjoint(written_buffers(b))
    )


def consumers(tree: Tree, block: Block) -> tuple[Block, ...]:
    """Return the other blocks that read buffers which a block writes, in program order."""
    written = written_buffers(block)
    return tuple(
        b
        for b in tree.outermost_blocks()
        if b is not block and not written.isdisjoint(read_buffers(b))
    )
