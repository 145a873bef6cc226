"""Import handlers of the factorization of symmetric matrices with pivots, and of its solutions.

The pivots are those of LAPACK: blocks of one or two rows by the rule of Bunch and Kaufman.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ..dtype import bool_, i32, i64
from ..symbolic import const_value
from . import factorizations as of
from .control_flow import Iteration, Tensors
from .formulas import Formula, number, positions, size_of
from .shaping import expand, reshape
from .tensors import Imported
from .torch_context import TorchContext, aten
from .torch_linalg import batch_of, matched, unbatch

_BOUND: Final = (1 + math.sqrt(17)) / 8
"""The bound of the ratio of a diagonal element to the largest other one of its column."""


@aten("linalg_ldl_factor_ex", "linalg_ldl_factor")
def ldl_factor(
    t: TorchContext, a: Imported, *, hermitian: bool = False, check_errors: bool = False
) -> list[Imported]:
    """Import the factors of symmetric matrices in one matrix, the pivots, and the code."""
    del hermitian, check_errors  # real matrices only
    matrix, lead = batch_of(t, a), a.shape[:-2]
    found = _factored(t, matrix)
    results = [
        unbatch(t, found[0], lead),
        reshape(t, found[1], (*lead, a.shape[-1])),
        reshape(t, found[2], lead),
    ]
    return results if t.operator.endswith("_ex") else results[:2]


@dataclass(frozen=True, slots=True)
class _Step:
    """One step on all matrices ``(batch, n, n)``: its index, and the positions of the elements."""

    t: TorchContext
    matrix: Formula
    row: Formula
    column: Formula
    at: Formula

    def column_at(self, position: Formula, x: Formula | None = None) -> Formula:
        """Return the column at a position ``(batch, 1, 1)``; zeros after the last one."""
        x = self.matrix if x is None else x
        return self.column.equal(position).choose(x, 0.0, x.dtype).sum(2, keepdims=True)

    def element(self, column: Formula, position: Formula) -> Formula:
        """Return an element of a column ``(batch, 1, 1)``."""
        return self.row.equal(position).choose(column, 0.0, column.dtype).sum(1, keepdims=True)


def _factored(t: TorchContext, a: Imported) -> list[Imported]:
    """Return the factors, the pivots counted from 1, and the number of the first zero pivot."""
    batch, size, _ = a.shape
    if const_value(size) == 0:
        return [a, t.uniform(0, (batch, size), i32), t.uniform(0, (batch,), i32)]
    row, column = (Formula(t, of.positions(t, size, axis)) for axis in (1, 2))
    lower = Formula(t, a)
    whole = (row >= column).choose(lower, Formula(t, of.transposed(t, a)), a.dtype)
    none = number(t, 0, i32).expand(batch)
    inside = number(t, False, bool_).expand(batch)
    spread = number(t, 0, i32).expand(batch, size)
    given = [whole.x, of.zeros(t, a), spread.x, none.x, inside.x]

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        matrix, found, pivots, code, second = (Formula(t, c) for c in now.carried)
        step = _Step(t, matrix, row, column, size_of(t, now.index))
        return _eliminated(step, found, pivots, code, second), []

    made = of.repeated(t, given, size, body)
    return [made[1], made[2], made[3]]


def _choice(step: _Step) -> tuple[Formula, Formula, Formula]:
    """Return the row to exchange, whether the block has two rows, and whether the column is zero.

    All have the shape ``(batch, 1, 1)``.
    """
    at, row, dtype = step.at, step.row, step.matrix.dtype
    own = step.column_at(at)
    size = step.element(own, at).apply("abs")
    below = (row > at).choose(own.apply("abs"), -1.0, dtype)
    other = below.call("argmax", axis=1, keepdims=True)
    largest = below.reduce("max", 1, keepdims=True).maximum(0.0)
    facing = step.column_at(other)
    rest = (row >= at) & ~row.equal(other)
    across = rest.choose(facing.apply("abs"), 0.0, dtype).reduce("max", 1, keepdims=True)
    zero = size.maximum(largest).equal(0.0) | size.apply("isnan")
    plain = (size >= largest * _BOUND) | (size >= largest * _BOUND * (largest / across)) | zero
    exchanged = step.element(facing, other).apply("abs") >= across * _BOUND
    chosen = plain.choose(at, other, i64)
    return chosen, ~plain & ~exchanged, zero


def _eliminated(
    step: _Step, found: Formula, pivots: Formula, code: Formula, second: Formula
) -> list[Imported]:
    """Return the carried values after one step, which skips the second rows of blocks."""
    at, row, column, dtype = step.at, step.row, step.column, step.matrix.dtype
    given = step.matrix
    chosen, double, zero = _choice(step)
    target = at + double.to(i64)
    matrix = _exchanged(step, chosen, target)
    step = _Step(step.t, matrix, row, column, at)
    after = row > target
    one, two = step.column_at(at), step.column_at(at + 1)
    root = step.element(one, at)
    single = after.choose(one / root, 0.0, dtype)
    joint, end = step.element(one, at + 1), step.element(two, at + 1)
    corner, edge = end / joint, root / joint
    scale = (1.0 / (corner * edge - 1.0)) / joint
    first = after.choose((corner * one - two) * scale, 0.0, dtype)
    last = after.choose((edge * two - one) * scale, 0.0, dtype)
    factor = double.choose(first, single, dtype)
    inner = after & (column > target)
    mirror = Formula(step.t, of.transposed(step.t, factor.x))
    other = Formula(step.t, of.transposed(step.t, last.x))
    change = one * mirror
    change = double.choose(change + two * other, change, dtype)
    updated = (inner & ~zero).choose(matrix - change, matrix, dtype)
    kept = row.equal(at).choose(root, factor, dtype)
    kept = (row.equal(at + 1) & double).choose(joint, kept, dtype)
    kept = zero.choose((row >= at).choose(one, 0.0, dtype), kept, dtype)
    beside = row.equal(at + 1).choose(end, last, dtype)
    beside = (row > at).choose(beside, 0.0, dtype)
    stored = column.equal(at).choose(kept, found, dtype)
    stored = (column.equal(at + 1) & double).choose(beside, stored, dtype)
    done = second.unsqueeze(1)
    value = (chosen.reshape(chosen.shape[0], 1) + 1).to(i32)
    pair = double.reshape(chosen.shape[0], 1)
    line = positions(step.t, pivots.shape[1])
    here = line.equal(at) | (pair & line.equal(at + 1))
    named = here.choose(pair.choose(-value, value, i32), pivots, i32)
    first_zero = zero.reshape(chosen.shape[0]) & code.equal(0)
    coded = first_zero.choose((at + 1).to(i32), code, i32)
    whole = second.unsqueeze(1, 2)
    results = [
        whole.choose(given, updated, dtype),
        whole.choose(found, stored, dtype),
        done.choose(pivots, named, i32),
        second.choose(code, coded, i32),
        ~second & pair.reshape(chosen.shape[0]),
    ]
    return [r.x for r in results]


def _source(step: _Step, first: Formula, second: Formula) -> Formula:
    """Return the positions of rows after the exchange of two, ``(batch, n, 1)``."""
    own = step.row.equal(first).choose(second, step.row, i64)
    return step.row.equal(second).choose(first, own, i64)


def _exchanged(step: _Step, first: Formula, second: Formula) -> Formula:
    """Return symmetric matrices after the exchange of two rows and the same columns."""
    x = step.matrix
    source = _source(step, first, second).x
    rows = Formula(step.t, expand(step.t, source, x.shape))
    columns = Formula(step.t, of.transposed(step.t, rows.x))
    return x.call("gather_elements", rows, axis=1).call("gather_elements", columns, axis=2)


@aten("linalg_ldl_solve")
def ldl_solve(
    t: TorchContext, factors: Imported, pivots: Imported, b: Imported, *, hermitian: bool = False
) -> Imported:
    """Import the solution of ``A @ X = B`` by the factors of a symmetric ``A``."""
    del hermitian  # real matrices only
    matrix, right, lead = matched(t, factors, b)
    size = factors.shape[-1]
    if const_value(size) == 0:
        return unbatch(t, right, lead)
    spread = expand(t, pivots, (*lead, size))
    order = Formula(t, reshape(t, spread, (matrix.shape[0], size))).to(i64)
    half = _swept(t, matrix, order, right, backward=False)
    return unbatch(t, _swept(t, matrix, order, half, backward=True), lead)


def _swept(
    t: TorchContext, matrix: Imported, pivots: Formula, b: Imported, *, backward: bool
) -> Imported:
    """Solve with the lower factor and the blocks of the diagonal, or with the transposed factor."""
    batch, size, _ = matrix.shape
    row, column = (Formula(t, of.positions(t, size, axis)) for axis in (1, 2))
    factors = Formula(t, matrix)
    line = positions(t, size)
    inside = number(t, False, bool_).expand(batch)

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        solved, second = (Formula(t, c) for c in now.carried)
        index = size_of(t, now.index)
        at = size_of(t, size - 1) - index if backward else index
        step = _Step(t, factors, row, column, at)
        pivot = line.equal(at).choose(pivots, 0, i64).sum(1, keepdims=True).unsqueeze(2)
        done = second.unsqueeze(1, 2)
        double = (pivot < 0) & ~done
        target = pivot.apply("abs") - 1
        act = _returned if backward else _forward
        found = act(step, solved, double, target)
        return [done.choose(solved, found, b.dtype).x, double.reshape(batch).x], []

    return of.repeated(t, [b, inside.x], size, body)[0]


def _moved(step: _Step, x: Formula, first: Formula, second: Formula) -> Formula:
    """Return right sides after the exchange of two rows."""
    source = Formula(step.t, expand(step.t, _source(step, first, second).x, x.shape))
    return x.call("gather_elements", source, axis=1)


def _line(step: _Step, x: Formula, position: Formula) -> Formula:
    """Return the row at a position ``(batch, 1, columns)``."""
    return step.row.equal(position).choose(x, 0.0, x.dtype).sum(1, keepdims=True)


def _forward(step: _Step, x: Formula, double: Formula, target: Formula) -> Formula:
    """Eliminate one block with the lower factor, and divide by the block of the diagonal."""
    at, row, dtype = step.at, step.row, x.dtype
    moved = _moved(step, x, at + double.to(i64), target)
    one, two = step.column_at(at), step.column_at(at + 1)
    top, next_ = _line(step, moved, at), _line(step, moved, at + 1)
    rest = (row > at + double.to(i64)).choose(moved - one * top, moved, dtype)
    rest = ((row > at + 1) & double).choose(rest - two * next_, rest, dtype)
    root, joint, end = step.element(one, at), step.element(one, at + 1), step.element(two, at + 1)
    own, other, left, right = root / joint, end / joint, top / joint, next_ / joint
    scale = own * other - 1.0
    first = double.choose((other * left - right) / scale, top / root, dtype)
    last = (own * right - left) / scale
    found = row.equal(at).choose(first, rest, dtype)
    return (row.equal(at + 1) & double).choose(last, found, dtype)


def _returned(step: _Step, x: Formula, double: Formula, target: Formula) -> Formula:
    """Eliminate one block, which ends at the step's position, with the transposed factor."""
    at, row, dtype = step.at, step.row, x.dtype
    below = (row > at).choose(x, 0.0, dtype)
    found = x
    for distance, wanted in ((0, None), (1, double)):
        factor = (row > at).choose(step.column_at(at - distance), 0.0, dtype)
        change = Formula(step.t, of.transposed(step.t, factor.x)) @ below
        here = row.equal(at - distance)
        here = here if wanted is None else here & wanted
        found = here.choose(found - change, found, dtype)
    return _moved(step, found, at, target)
