"""Patterns of kernels, as the default rules distinguish them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..ir.analysis import executed_domain, is_reduction, reduction_of, reorders, tree_of
from ..ir.loop.nodes import (
    Binary,
    Block,
    Cast,
    Element,
    IterVar,
    Load,
    PrimFunc,
)
from ..ir.loop.straight_line import single_store, straight_line
from ..ir.loop.visit import loads, stores, walk_element
from ..ir.symbolic import Expr, const_value, free_vars
from ..ir.symbolic.terms import Mod
from .primitives.graph.collapse_dims import has_no_loop, nests


@dataclass(frozen=True, slots=True)
class Matmul:
    """``C[.., i, j] += A[.., i, k] * B[.., k, j]``, then element-wise blocks.

    ``block`` is the reduction, ``prologue`` the blocks before it (such as packing) and
    ``epilogue`` the blocks after it, in order. ``row``, ``column`` and ``depth`` are its iteration
    variables i, j and k. If the product is ``scaled``, its right factor is not an element of B, but
    computed from one and from elements of other buffers, such as the scales of quantized weights.
    """

    prologue: tuple[Block, ...]
    block: Block
    epilogue: tuple[Block, ...]
    row: IterVar
    column: IterVar
    depth: IterVar
    left: Load
    right: Load
    scaled: bool = False

    @property
    def batched(self) -> bool:
        """True if B depends on outer (batch) iteration variables."""
        used = {v for index in self.right.indices for v in free_vars(index)}
        return bool(used - {self.column.var, self.depth.var})

    @property
    def row_major(self) -> bool:
        """True if adjacent columns of B are adjacent in memory."""
        return self.right.indices[-1] == self.column.var

    @property
    def packable(self) -> bool:
        """True if B is indexed directly by column and depth, so that it can be packed."""
        indices = self.right.indices
        return self.column.var in indices and self.depth.var in indices


@dataclass(frozen=True, slots=True)
class Rows:
    """Blocks over the same ``shared`` outer dimensions, some reducing the inner ones.

    ``complete`` states whether every block runs its whole domain, each iteration once; the rows of
    a triangle, for example, do not.
    """

    blocks: tuple[Block, ...]
    shared: int
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Elementwise:
    """Blocks without reductions, the last one writing the result."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Other:
    """Any other kernel; its nests are scheduled one by one."""


Pattern: TypeAlias = "Matmul | Rows | Elementwise | Other"


def classify(func: PrimFunc) -> Pattern:
    """Return the pattern of an unscheduled kernel.

    The blocks of a product and of an element-wise kernel run their whole domain, each iteration
    once. Only copies before a product may have iteration variables without a loop.
    """
    found = _classified(func, nests(func, units=True))
    copies = found.prologue if isinstance(found, Matmul) else ()
    lacking = [b for b in tree_of(func).blocks.values() if any(map(has_no_loop, b.iters))]
    return found if all(b in copies for b in lacking) else Other()


def _classified(func: PrimFunc, blocks: list[Block] | None) -> Pattern:
    if not blocks or any(straight_line(b.body) is None for b in blocks):
        return Other()
    if any(v.kind == "ordered" for b in blocks for v in b.iters):
        return Other()
    if any(is_reduction(b) and (b.init is None or not reorders(b)) for b in blocks):
        return Other()
    complete = are_complete(func, blocks)
    if all(b.init is None for b in blocks):
        return Elementwise(tuple(blocks)) if complete else Other()
    rows = _rows(func, blocks)
    if any(single_store(b.body) is None for b in blocks[:-1]):
        return rows if complete and any(b.reducer is not None for b in blocks) else Other()
    if not complete:
        return replace(rows, complete=False) if rows.shared else Other()
    one_store = single_store(blocks[-1].body) is not None
    return (_matmul(blocks) if one_store else None) or rows


def are_complete(func: PrimFunc, blocks: list[Block]) -> bool:
    """Return whether blocks run their whole domain, each iteration once."""
    tree = tree_of(func)
    domains = (executed_domain(tree, block) for block in blocks)
    return all(domain.exact and domain.instances.once for domain in domains)


def _uncast(element: Element) -> Element:
    while isinstance(element, Cast):
        element = element.operand
    return element


def factors_of(block: Block) -> tuple[Element, Element] | None:
    """Return the two factors whose product a block sums; None if it is not such a sum."""
    found = reduction_of(block)
    if found is None or block.init is None or found.prefix or found.reducer.name != "add":
        return None
    (term,) = found.terms
    if not isinstance(term, Binary) or term.op != "mul":
        return None
    return _uncast(term.left), _uncast(term.right)


def _right_operand(factor: Element, row: Expr, column: Expr, depth: Expr) -> Load | None:
    """Return the load of the right operand in a factor that does not depend on the row.

    If the factor is computed from several loads, it is the only one that has another element for
    every column and depth.
    """
    found = [e for e in walk_element(factor) if isinstance(e, Load)]
    if any(row in _variables(load) for load in found):
        return None
    if isinstance(factor, Load):
        return factor if {column, depth} <= _variables(factor) else None
    distinct = [load for load in found if _determines(load, column) and _determines(load, depth)]
    return distinct[0] if len(distinct) == 1 else None


def _determines(load: Load, variable: Expr) -> bool:
    """Return whether the indices contain a variable or its remainder, not only its quotient."""
    return any(
        index == variable or (isinstance(index, Mod) and variable in free_vars(index))
        for index in load.indices
    )


def _variables(load: Load) -> set[object]:
    return {v for index in load.indices for v in free_vars(index)}


def _matmul(blocks: list[Block]) -> Matmul | None:
    at = next(k for k, b in enumerate(blocks) if b.init is not None)
    before, head, tail = blocks[:at], blocks[at], blocks[at + 1 :]
    factors = factors_of(head)
    spatial = [v for v in head.iters if v.kind == "spatial"]
    depth = [v for v in head.iters if v.kind == "reduce"]
    if factors is None or len(spatial) < 2 or len(depth) != 1:
        return None
    if any(b.init is not None or len(b.iters) != len(spatial) for b in tail):
        return None
    loops = {v.binding for v in head.iters}
    if any(not loops.isdisjoint(free_vars(v.extent)) for v in head.iters):
        return None  # a triangle, such as a causal mask: its tiles are not rectangles
    row, column = _rows_and_columns(head, spatial)
    if 1 in (const_value(column.extent), const_value(depth[0].extent)):
        return None  # one column, or one product per result: there is nothing to tile
    for left, factor in (factors, factors[::-1]):
        if not isinstance(left, Load) or column.var in _variables(left):
            continue
        right = _right_operand(factor, row.var, column.var, depth[0].var)
        if right is not None and {row.var, depth[0].var} <= _variables(left):
            items = (row, column, depth[0])
            scaled = factor is not right
            return Matmul(tuple(before), head, tuple(tail), *items, left, right, scaled)
    return None


def _rows_and_columns(head: Block, spatial: list[IterVar]) -> list[IterVar]:
    """Return the row and column iteration variables in the order of the result's dimensions."""
    by_var: dict[Expr, IterVar] = {v.var: v for v in spatial}
    last = [i for store in stores(head.body) for i in store.indices[-2:]]
    found = [by_var[i] for i in last if i in by_var]
    return found if len(found) == len(last) else spatial[-2:]


def _leading(block: Block) -> Iterator[object]:
    """Yield the extents of the leading spatial iteration variables of a block."""
    for v in block.iters:
        if v.kind != "spatial":
            return
        yield v.extent


def _rows(func: PrimFunc, blocks: list[Block]) -> Rows:
    """Return blocks as rows, with the dimensions in which all access only their own row."""
    extents = [list(_leading(b)) for b in blocks]
    shared = min(map(len, extents))
    while shared and any(e[:shared] != extents[0][:shared] for e in extents):
        shared -= 1
    while shared and not all(_keeps_rows(func, b, shared) for b in blocks):
        shared -= 1
    return Rows(tuple(blocks), shared)


def _keeps_rows(func: PrimFunc, block: Block, shared: int) -> bool:
    """Return whether a block accesses temporaries only in its own row."""
    rows = tuple(v.var for v in block.iters[:shared])
    temporaries = set(tree_of(func).temporaries)
    for load in loads(block.body):
        if load.buffer in temporaries and load.indices[:shared] != rows:
            return False
    return all(s.indices[:shared] == rows for s in stores(block.body))
