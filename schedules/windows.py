"""Reductions of windows, recognized from their loops: pooling, sliding sums, blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..ir.loop.nodes import Block, IterVar, Load, PrimFunc
from ..ir.loop.visit import loads, stores
from ..ir.symbolic import Expr, Var, const_value, linear_form, product
from .convolutions import around_reduction

MOST_TERMS: Final = 64
"""The most elements of a window whose loops are unrolled."""

MAX_STRIDE: Final = 4
"""The largest distance of adjacent windows whose elements are loaded by contiguous accesses."""


@dataclass(frozen=True, slots=True)
class WindowReduction:
    """``y[.., j] = reduce(x[.., i * s + k, j * t + l])``, then element-wise blocks.

    ``block`` is the reduction, ``prologue`` the blocks before it, such as the padding of the image,
    and ``epilogue`` those after it, in order. ``column`` is the iteration variable j of adjacent
    elements of the result. Only the last index of an element that is read contains it, with a
    constant factor of at most ``MAX_STRIDE``. Another index, or the same one, adds an iteration
    variable of the result and one of the window, whose extents are constant.
    """

    prologue: tuple[Block, ...]
    block: Block
    epilogue: tuple[Block, ...]
    column: IterVar

    @property
    def rows(self) -> tuple[Expr, ...]:
        """The indices of the result before the column."""
        return next(stores(self.block.body)).indices[:-1]

    @property
    def slid(self) -> frozenset[Var]:
        """The iteration variables of the result that an index adds to one of the window."""
        return _slid(self.block)


def windows_of(func: PrimFunc) -> WindowReduction | None:
    """Return the reduction of windows that an unscheduled kernel computes; None for another.

    Every block runs its whole domain, each iteration once.

    Examples
    --------
    >>> from ..ir.script import parse
    >>> f = parse('''
    ... @prim_func
    ... def f(x: Buffer[(4, 34), f32], y: Out[(4, 32), f32]):
    ...     for i in range(4):
    ...         for j in range(32):
    ...             for k in range(3):
    ...                 with block("max"):
    ...                     vi, vj, vk = spatial(i), spatial(j), reduce(k)
    ...                     with init(): y[vi, vj] = -inf
    ...                     y[vi, vj] = max(y[vi, vj], x[vi, vj + vk])
    ... ''').prim("f")
    >>> windows_of(f).column.var.name
    'vj'
    """
    around = around_reduction(func)
    column = around and _column(around[1])
    if around is None or column is None:
        return None
    return WindowReduction(*around, column)


def _column(block: Block) -> IterVar | None:
    """Return the iteration variable of adjacent results of windows of known, small extents."""
    store = next(stores(block.body))
    spatial = {v.var: v for v in block.iters if v.kind == "spatial"}
    bound = {v.binding for v in block.iters}
    if set(store.indices) != set(spatial) or len(store.indices) != len(spatial) or not spatial:
        return None
    if any(const_value(v.extent) == 0 or bound & v.extent.free for v in block.iters):
        return None
    terms = const_value(product(v.extent for v in block.iters if v.kind == "reduce"))
    column = store.indices[-1]
    if terms is None or not 1 < terms <= MOST_TERMS or not isinstance(column, Var):
        return None
    if const_value(spatial[column].extent) == 1 or not _slid(block):
        return None
    return spatial[column] if _is_adjacent(block, column) else None


def _slid(block: Block) -> frozenset[Var]:
    """Return the iteration variables of the result that an index adds to one of the window."""
    kinds = {v.var: v.kind for v in block.iters}
    found: set[Var] = set()
    for load in _read(block):
        for index in load.indices:
            own = {v for v in index.free if v in kinds}
            if any(kinds[v] == "reduce" for v in own):
                found |= {v for v in own if kinds[v] == "spatial"}
    return frozenset(found)


def _read(block: Block) -> list[Load]:
    """Return the loads of a reduction other than that of its result."""
    results = {region.buffer for region in block.writes}
    return [load for load in loads(block.body) if load.buffer not in results]


def _is_adjacent(block: Block, column: Var) -> bool:
    """Return whether adjacent columns read elements at a small distance, at least of one buffer."""
    own = [load for load in _read(block) if any(column in i.free for i in load.indices)]
    for load in own:
        *others, last = load.indices
        strides = load.buffer.strides
        if any(column in i.free for i in others) or load.buffer.dtype.is_packed:
            return False
        if strides is not None and const_value(strides[-1]) != 1:
            return False
        form = linear_form(last, (column,))
        factor = None if form is None else const_value(form.coefficients[column])
        if factor is None or not 1 <= factor <= MAX_STRIDE:
            return False
    return bool(own)
