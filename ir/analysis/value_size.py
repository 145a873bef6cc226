"""Sizes of element values, for limits on inlining: nodes and depth of the resulting expression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import eq
from types import MappingProxyType
from typing import Final

from ..loop.nodes import Bind, Block, Buffer, Element, Load, Local, PrimFunc, Stmt, Store
from ..loop.straight_line import own_values, statements_of
from ..loop.visit import elements, operands, stores, walk
from .accesses import reads
from .evaluated import evaluated_where
from .tree import Tree, tree_of


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

SHARED: Final = 16
"""The most nodes of a value that inlining copies to several uses in a block; it binds others."""

LARGEST: Final = ValueSize(100_000, 150)
"""The largest value that a step may build: a deeper one has no text that can be parsed."""

_NOTHING: Mapping[Buffer | Local, ValueSize] = MappingProxyType({})
_NO_BUFFERS: Mapping[Buffer, ValueSize] = MappingProxyType({})


def value_size(
    element: Element, inlined: Mapping[Buffer | Local, ValueSize] = _NOTHING
) -> ValueSize:
    """Return the size of an element after inlining.

    Parameters
    ----------
    element : Element
        The element.
    inlined : Mapping[Buffer or Local, ValueSize]
        The buffers whose loads, and the locals whose uses are replaced by values, with the sizes of
        these values.

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
        size = LOAD
        if isinstance(top, Load | Local):
            size = inlined.get(top.buffer if isinstance(top, Load) else top, LOAD)
        nodes += size.nodes
        depth = max(depth, level + size.depth - 1)
        stack.extend((inner, level + 1) for inner in operands(top))
    return ValueSize(nodes, depth)


def loads_of(statement: Stmt) -> Counter[Buffer]:
    """Return how many times the values in a statement load each buffer, in their expressions."""
    return Counter(e.buffer for e in elements(statement) if isinstance(e, Load))


def elements_of(statement: Stmt) -> Counter[Buffer]:
    """Return how many elements of each buffer the blocks in a statement load.

    Loads of one element in one block count once.
    """
    blocks = [s for s in walk(statement) if isinstance(s, Block)]
    units = [b for b in blocks if not any(isinstance(s, Block) for s in walk(b.body))]
    found: Counter[Buffer] = Counter()
    for unit in units or [statement]:
        found.update(b for b, _ in {(e.buffer, e.indices) for e in _loads(unit)})
    return found


def copies_of(statement: Stmt) -> Counter[Buffer]:
    """Return how often the blocks in a statement compute the values that replace their loads."""
    found: Counter[Buffer] = Counter()
    for block in (s for s in walk(statement) if isinstance(s, Block)):
        for buffer, count in elements_of(block.body).items():
            bound = shares(block.body, buffer)
            found[buffer] += count if bound else loads_of(block.body)[buffer]
    return found


def _loads(statement: Stmt) -> Iterator[Load]:
    return (e for e in elements(statement) if isinstance(e, Load))


def body_size(statement: Stmt, inlined: Mapping[Buffer, ValueSize] = _NO_BUFFERS) -> ValueSize:
    """Return the nodes of all values in a statement, and the largest depth, after inlining.

    Parameters
    ----------
    statement : Stmt
        The statement, such as the body of a block.
    inlined : Mapping[Buffer, ValueSize]
        The buffers whose loads are replaced by values, with the sizes of these values. A value of
        more than :data:`SHARED` nodes that is used several times is bound once.
    """
    copies, loaded = elements_of(statement), loads_of(statement)
    bound = {
        b: size
        for b, size in inlined.items()
        if size.nodes > SHARED and loaded[b] > copies[b] and shares(statement, b)
    }
    copied: dict[Buffer | Local, ValueSize] = {
        b: size for b, size in inlined.items() if b not in bound
    }
    depth = max((size.depth for b, size in bound.items() if loaded[b]), default=1)
    nodes = sum(copies[b] * size.nodes for b, size in bound.items())
    for part in walk(statement):
        if isinstance(part, Store | Bind):
            size = value_size(part.value, copied)
            nodes, depth = nodes + size.nodes, max(depth, size.depth)
    return ValueSize(nodes, depth)


def shares(statement: Stmt, buffer: Buffer) -> bool:
    """Return whether inlining may bind a value that a statement loads from a buffer."""
    parts = statements_of(statement)
    values = own_values(parts)
    for at in dict.fromkeys(e.indices for e in _loads(statement) if e.buffer is buffer):
        if evaluated_where(values, partial(eq, Load(buffer, at))) is None:
            return False
    return True


def result_size(function: PrimFunc, inlined: Mapping[Buffer, ValueSize]) -> ValueSize:
    """Return the size of the values of the largest block of a function.

    Parameters
    ----------
    function : PrimFunc
        The function. Its temporaries count as inlined.
    inlined : Mapping[Buffer, ValueSize]
        The parameters whose loads are replaced by values, with the sizes of these values.
    """
    known, nodes, depth = dict(inlined), 1, 1
    for block in tree_of(function).outermost_blocks():
        size = body_size(block.body, known)
        nodes, depth = max(nodes, size.nodes), max(depth, size.depth)
        for store in stores(block.body):
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
        A block of binds and stores.

    Returns
    -------
    size : ValueSize
        The largest number of nodes of the values of a consumer and their largest depth afterwards.
    repeated : bool
        Whether values of more than :data:`REPEATED` nodes would be computed more than once.
    """
    size, copies = body_size(block.body), 0
    written = {store.buffer for store in stores(block.body)}
    nodes = depth = 1
    for reader in tree.outermost_blocks():
        read = written.intersection(a.buffer for a in reads(reader))
        if reader is block or not read:
            continue
        shared = all(shares(reader.body, buffer) for buffer in read)
        counts = (elements_of if shared else loads_of)(reader.body)
        copies += max(counts[buffer] for buffer in read)
        own = size if shared else _expanded_size(block.body)
        for part in (reader.body,) if reader.init is None else (reader.init, reader.body):
            found = body_size(part, dict.fromkeys(read, own))
            nodes, depth = max(nodes, found.nodes), max(depth, found.depth)
    return ValueSize(nodes, depth), copies > 1 and size.nodes > REPEATED


def _expanded_size(body: Stmt) -> ValueSize:
    """Return the size of the largest value of a block with the values of its locals in it."""
    known: dict[Buffer | Local, ValueSize] = {}
    nodes = depth = 1
    for part in walk(body):
        if isinstance(part, Store | Bind):
            size = value_size(part.value, known)
            nodes, depth = max(nodes, size.nodes), max(depth, size.depth)
            if isinstance(part, Bind):
                known[part.local] = size
    return ValueSize(nodes, depth)
