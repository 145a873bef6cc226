"""Read-only questions about loop-level programs."""

from __future__ import annotations

from .dataflow import consumers, producers, read_buffers, written_buffers
from .places import assuming, conjuncts, within_loop, within_loops
from .tree import Tree, block_stores, tree_of

__all__ = [
    "Tree",
    "assuming",
    "block_stores",
    "conjuncts",
    "consumers",
    "producers",
    "read_buffers",
    "tree_of",
    "within_loop",
    "within_loops",
    "written_buffers",
]
