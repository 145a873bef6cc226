"""Sizes of element values, for limits on inlining: nodes and depth of the resulting expression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ..loop.nodes import Block, Buffer, Element, Load, PrimFunc, Stmt
from ..loop.visit import operands, stores, walk_element
from .accesses import reads
from .tree import Tree, block_stores


@dataclass(frozen=True, slots=True)
class ValueSize:
    """The size of an expression.

    Parameters
    ----------
    nodes : int
        The number of nodes of the tree, where a shared operand counts once per use.
    depth : int
        The number of nodes on the longest path from the root.
    """

    nodes: int
    depth: int

    def within(self, limit: ValueSize) -> bool:
        """Return whether neither nodes nor depth exceed a limit."""
        return self.nodes <= limit.nodes and self.depth <= limit.depth


LOAD: Final = ValueSize(1, 1)
"""The size of a value that is loaded from memory."""

FUSED: Final = ValueSize(512, 64)
"""The largest value that automatic fusion and the default rules build."""

REPEATED: Final = 100
"""The most nodes of a value that automatic fusion and the default rules compute more than once.

The code generator merges equal expressions, so that this bounds the time to compile.
"""

LARGEST: Final = ValueSize(100_000, 150)
"""The largest value that a step may build: a deeper one has no text that can be parsed."""

_NOTHING: Mapping[Buffer, ValueSize] = MappingProxyType({})


def value_size(element: Element, inlined: Mapping[Buffer, ValueSize] = _NOTHING) -> ValueSize:
    """Return the size of an element after inlining.

    Parameters
    ----------
    element : Element
        The element.
    inlined : Mapping[Buffer, ValueSize]
        The buffers whose loads are replaced by values, with the sizes of these values.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..loop.nodes import Binary, Number
    >>> one = Number(1.0, f32)
    >>> value_size(Binary("add", one, Binary("add", one, one)))
    ValueSize(nodes=5, depth=3)
    """
    nodes = depth = 0
    stack = [(element, 1)]
    while stack:
        top, level = stack.pop()
        size = inlined.get(top.buffer, LOAD) if isinstance(top, Load) else LOAD
        nodes += size.nodes
        depth = max(depth, level + size.depth - 1)
        stack.extend((inner, level + 1) for inner in operands(top))
    return ValueSize(nodes, depth)


def loads_of(statement: Stmt) -> Counter[Buffer]:
    """Return how many times the stores in a statement load each buffer, in their expressions."""
    found: Counter[Buffer] = Counter()
    for store in stores(statement):
        found.update(e.buffer for e in walk_element(store.value) if isinstance(e, Load))
    return found


def result_size(function: PrimFunc, inlined: Mapping[Buffer, ValueSize]) -> ValueSize:
    """Return the size of the largest value that a function stores.

    Parameters
    ----------
    function : PrimFunc
        The function. Its temporaries count as inlined.
    inlined : Mapping[Buffer, ValueSize]
        The parameters whose loads are replaced by values, with the sizes of these values.
    """
    known, nodes, depth = dict(inlined), 1, 1
    for store in stores(function.body):
        size = value_size(store.value, known)
        nodes, depth = max(nodes, size.nodes), max(depth, size.depth)
        if store.buffer in function.buffers:
            known[store.buffer] = size
    return ValueSize(nodes, depth)


def inlined_size(tree: Tree, block: Block) -> tuple[ValueSize, bool]:
    """Return the effect of inlining a block on the sizes of values.

    Parameters
    ----------
    tree : Tree
        The index of the function.
    block : Block
        A block that stores one element of a temporary.

    Returns
    -------
    size : ValueSize
        The largest number of nodes and the largest depth of a value of a consumer afterwards.
    repeated : bool
        Whether a value of more than :data:`REPEATED` nodes would be computed more than once.
    """
    store = next(stores(block.body))
    size, copies = value_size(store.value), 0
    nodes = depth = 1
    for reader in tree.outermost_blocks():
        if reader is not block and reads(reader, store.buffer):
            copies += loads_of(reader.body)[store.buffer]
            for other in block_stores(reader):
                found = value_size(other.value, {store.buffer: size})
                nodes, depth = max(nodes, found.nodes), max(depth, found.depth)
    return ValueSize(nodes, depth), copies > 1 and size.nodes > REPEATED
