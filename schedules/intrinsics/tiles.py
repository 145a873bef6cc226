"""Expansion of register tiles: rows of A times columns of B, accumulated in vector registers.

The vector instructions of all CPUs for matrix products have the same form. A group of elements of a
row of A is broadcast to all lanes, a vector of B contains one group per column, and each lane adds
the dot product of the two groups to its accumulator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ...ir.dtype import DType
from ...ir.symbolic import all_of, as_expr, substitute, var
from ...ir.thread.nodes import Address, Load, Predicate, Select, Stmt, Store, Value
from ...ir.thread.types import VectorType
from .contract import Expansion, ExpansionSite, Operand

Combine: TypeAlias = Callable[[Value, Value, Value], tuple[tuple[Stmt, ...], Value]]
"""A function of (accumulator, broadcast group of A, groups of B) to (statements, new sums)."""

Spread: TypeAlias = Callable[[Value], Value]
"""A function of a group of A, loaded as one vector, to its broadcast to all lanes."""


def address(operand: Operand, dtype: DType, *indices: int) -> Address:
    """Return the address of an element of an operand."""
    offset = operand.offset
    for index, stride in zip(indices, operand.strides, strict=True):
        offset = offset + as_expr(index) * stride
    return Address(operand.base, offset, dtype.alignment)


def register_tile(
    dtypes: tuple[DType, DType, DType],
    lanes: int,
    group: int,
    spread: Spread,
    combine: Combine,
) -> Expansion:
    """Return the expansion of a tile ``C[i, j] += sum(A[i, k] * B[j, k] for k in group)``.

    Parameters
    ----------
    dtypes : tuple of DType
        The dtypes of A, B and C.
    lanes : int
        The number of columns per vector.
    group : int
        The number of elements of A and B per lane and instruction. If it is 1, the operands have
        no dimension for it.
    spread : callable
        The broadcast of a group of A.
    combine : callable
        The multiply-add instruction.
    """
    left, right, sums = dtypes
    inner = () if group == 1 else (0,)

    def expand(site: ExpansionSite) -> tuple[Stmt, ...]:
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
                target = address(c, sums, i, j)
                old = Load(VectorType(sums, lanes), target, mask=None if c.private else mask)
                statements, new = combine(old, factor, weights)
                made += [*statements, _store(c, target, new, old, mask)]
        return tuple(made)

    return expand


def _store(c: Operand, target: Address, new: Value, old: Value, mask: Value | None) -> Stmt:
    if mask is not None and c.private:
        # A select keeps the sums in a register; a masked store would force them into memory.
        return Store(target, Select(mask, new, old))
    return Store(target, new, mask=mask)


def column_mask(
    site: ExpansionSite, start: int, lanes: int, group: int, columns: int
) -> Value | None:
    """Return the mask of ``lanes`` columns starting at ``start``; None if all are active.

    The mask bit of a column is repeated for the elements of its ``group``. Columns from
    ``columns`` on are inactive.
    """
    rest = columns - start
    if not site.masks and rest >= lanes:
        return None
    lane = var("lane", lower=0, upper=lanes * group - 1)
    claims = [substitute(mask, {v: lane // group + start}) for v, mask in site.masks]
    claims += [lane // group < rest] if rest < lanes else []
    return Predicate(all_of(*claims), lane, lanes * group)
