"""Register tiles: rows of A times columns of B, one vector instruction an accumulator and step.

All processors' matrix instructions that work on vectors have this shape: a group of elements of a
row of A is repeated in every lane, a vector of B holds such a group for each column, and each lane
adds the product of the two groups to its accumulator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ...ir.dtype import DType
from ...ir.symbolic import all_of, as_expr, substitute, var
from ...ir.thread.nodes import Address, Load, Predicate, Select, Stmt, Store, Value
from ...ir.thread.types import VectorType
from .contract import Expansion, Operand, Site

Combine: TypeAlias = Callable[[Value, Value, Value], tuple[tuple[Stmt, ...], Value]]
"""Accumulators, the group of A in every lane, the groups of B: statements, and the new sums."""

Spread: TypeAlias = Callable[[Value], Value]
"""A group of A, loaded as one vector, as the operand that has it in every lane."""


def address(operand: Operand, dtype: DType, *indices: int) -> Address:
    """Give the address of an element of an operand."""
    offset = operand.offset
    for index, stride in zip(indices, operand.strides, strict=True):
        offset = offset + as_expr(index) * stride
    return Address(operand.base, offset, dtype.bytes)


def register_tile(
    dtypes: tuple[DType, DType, DType],
    lanes: int,
    group: int,
    spread: Spread,
    combine: Combine,
) -> Expansion:
    """Make the expansion of a tile ``C[i, j] += sum(A[i, k] * B[j, k] for k in group)``.

    Parameters
    ----------
    dtypes : tuple of DType
        Elements of A, of B and of C.
    lanes : int
        Columns of one vector.
    group : int
        Elements of A and B that one lane multiplies at once. With 1 the operands have no
        dimension for it.
    spread, combine : callable
        What the processor does.
    """
    left, right, sums = dtypes
    inner = () if group == 1 else (0,)

    def expand(site: Site) -> tuple[Stmt, ...]:
        a, b, c = site.operands
        rows, columns = site.extents[:2]
        made: list[Stmt] = []
        for i in range(rows):
            factor = spread(Load(VectorType(left, group), address(a, left, i, *inner)))
            for j in range(0, columns, lanes):
                mask = column_mask(site, j, lanes, 1, columns)
                every = column_mask(site, j, lanes, group, columns)
                vector = VectorType(right, group * lanes)
                weights = Load(vector, address(b, right, j, *inner), mask=every)
                place = address(c, sums, i, j)
                old = Load(VectorType(sums, lanes), place, mask=None if c.private else mask)
                statements, new = combine(old, factor, weights)
                made += [*statements, _store(c, place, new, old, mask)]
        return tuple(made)

    return expand


def _store(c: Operand, place: Address, new: Value, old: Value, mask: Value | None) -> Stmt:
    if mask is not None and c.private:
        # A select keeps the sums in a register, where a masked store would force memory.
        return Store(place, Select(mask, new, old))
    return Store(place, new, mask=mask)


def column_mask(site: Site, start: int, lanes: int, group: int, columns: int) -> Value | None:
    """Give which of ``lanes`` columns from ``start`` on are to be done; None: all of them.

    Each is repeated for the elements of its ``group``. There are ``columns`` in all.
    """
    rest = columns - start
    if not site.masks and rest >= lanes:
        return None
    lane = var("lane", lower=0, upper=lanes * group - 1)
    claims = [substitute(mask, {v: lane // group + start}) for v, mask in site.masks]
    claims += [lane // group < rest] if rest < lanes else []
    return Predicate(all_of(*claims), lane, lanes * group)
