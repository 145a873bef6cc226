"""Eigenvalues and eigenvectors of any square matrices by the QR algorithm, as loops of the graph.

The operands are batches ``(batch, n, n)`` of f64 with any symbolic sizes. A matrix becomes a
Hessenberg matrix by reflections, and a triangular one by shifted QR steps in complex numbers. One
iteration is one rotation of two neighboring rows and columns of each matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ..dtype import bool_, f64, i64
from ..symbolic import const_value
from . import factorizations as of
from .control_flow import Iteration, LoopForm, Tensors, emit_loop
from .emitter import Emitter
from .formulas import Formula, joined, number, positions, size_of
from .tensors import Imported

_STEPS: Final = 40
"""More rotations than convergence needs, for each element of the matrix."""

_UNIT: Final = 2.0**-52
"""The spacing of f64 at 1."""

_SMALL: Final = 1e-10
"""The least scale of neighboring diagonal elements, relative to the largest element."""

_LARGE: Final = 1e100
"""The size of elements of an eigenvector that is scaled before it overflows."""

_PERIOD: Final = 11
"""The sweeps after which one has another shift, which ends a cycle."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Complex numbers by their real and imaginary parts."""

    re: Formula
    im: Formula

    def __add__(self, other: Pair) -> Pair:
        """Return the sum."""
        return Pair(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Pair) -> Pair:
        """Return the difference."""
        return Pair(self.re - other.re, self.im - other.im)

    def __mul__(self, other: Pair) -> Pair:
        """Return the product."""
        return Pair(
            self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re
        )

    def __neg__(self) -> Pair:
        """Return the negative."""
        return Pair(-self.re, -self.im)

    def __matmul__(self, other: Pair) -> Pair:
        """Return the matrix product."""
        re = self.re @ other.re - self.im @ other.im
        return Pair(re, self.re @ other.im + self.im @ other.re)

    def conj(self) -> Pair:
        """Return the conjugate."""
        return Pair(self.re, -self.im)

    def scaled(self, factor: Formula | float) -> Pair:
        """Return the product with real numbers."""
        return Pair(self.re * factor, self.im * factor)

    def size(self) -> Formula:
        """Return the absolute values."""
        return self.re.apply("hypot", self.im)

    def over(self, other: Pair) -> Pair:
        """Return the quotient; 0 for a divisor of 0."""
        size = other.size()
        inverse = size.equal(0.0).choose(0.0, 1.0 / size, f64)
        return self.scaled(inverse) * other.conj().scaled(inverse)

    def kept(self, mask: Formula) -> Pair:
        """Return the elements of a mask, and 0 for the others."""
        return Pair(mask.choose(self.re, 0.0, f64), mask.choose(self.im, 0.0, f64))

    def sum(self, axis: int) -> Pair:
        """Return the sums along an axis, which remains with size 1."""
        return Pair(self.re.sum(axis, keepdims=True), self.im.sum(axis, keepdims=True))

    def root(self) -> Pair:
        """Return the square root with a real part that is not negative."""
        size = self.size()
        more = ((size + self.re.apply("abs")) * 0.5).apply("sqrt")
        divisor = more.equal(0.0).choose(1.0, more * 2.0, f64)
        less = self.im.apply("abs") / divisor
        right = self.re >= 0.0
        re, im = right.choose(more, less, f64), right.choose(less, more, f64)
        return Pair(re, (self.im < 0.0).choose(-im, im, f64))


def _chosen(mask: Formula, then: Pair, otherwise: Pair) -> Pair:
    """Return the elements of one of two pairs by a mask."""
    return Pair(mask.choose(then.re, otherwise.re, f64), mask.choose(then.im, otherwise.im, f64))


@dataclass(frozen=True, slots=True)
class Schur:
    """A triangular matrix ``T`` and a unitary ``Z`` with ``A = Z @ T @ Z.mH``."""

    triangle: Pair
    vectors: Pair


def hessenberg(e: Emitter, a: Formula) -> list[Formula]:
    """Return ``H`` with zeros below its first lower diagonal and ``Q`` with ``A = Q @ H @ Q.T``."""
    batch, size, _ = a.shape
    row = Formula(e, of.positions(e, size, 1))

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        x, q = (Formula(e, c) for c in now.carried)
        at = size_of(e, now.index)
        column = Formula(e, of.cut(e, x.x, 2, now.index))
        tail = (row > at).choose(column, 0.0, f64)
        head = row.equal(at + 1).choose(column, 0.0, f64).sum(1, keepdims=True)
        rest = (row > at + 1).choose(column, 0.0, f64)
        norm = (tail * tail).sum(1, keepdims=True).apply("sqrt")
        still = (rest * rest).sum(1, keepdims=True).equal(0.0)
        vector = tail - row.equal(at + 1).choose(norm.apply("copysign", -head), 0.0, f64)
        length = (vector * vector).sum(1, keepdims=True)
        factor = still.choose(0.0, 2.0 / still.choose(1.0, length, f64), f64)
        turned = Formula(e, of.transposed(e, vector.x))
        x = x - (vector * factor) * (turned @ x)
        x = x - (x @ vector) * (turned * factor)
        q = q - (q @ vector) * (turned * factor)
        return [x.x, q.x], []

    given = [a.x, of.identity(e, batch, size, a.x)]
    return [Formula(e, c) for c in of.repeated(e, given, size, body)]


def schur(e: Emitter, a: Formula) -> Schur:
    """Return the Schur form of matrices whose elements are at most about 1."""
    batch, size, _ = a.shape
    reduced, basis = hessenberg(e, a)
    zeros = number(e, 0.0, f64).expand(batch, size, size)
    start = number(e, 0, i64).expand(batch)
    pending = number(e, True, bool_).expand(batch)
    given = [reduced, zeros, basis, zeros, start, start, start, pending]
    carried = [e.tensor(e.plain(g.x)) for g in given]

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        parts = [Formula(e, c) for c in now.carried]
        h, z = Pair(*parts[:2]), Pair(*parts[2:4])
        return [f.x for f in _rotated(e, h, z, parts[4:])], []

    def condition(now: Iteration) -> Imported:
        return Formula(e, now.carried[7]).reduce("any", 0).x

    found = emit_loop(e, LoopForm(carried, body, condition, size * size * _STEPS + _STEPS))
    parts = [Formula(e, c) for c in found]
    return Schur(Pair(*parts[:2]), Pair(*parts[2:4]))


def _neighbors(e: Emitter, h: Pair) -> tuple[Formula, Formula]:
    """Return which elements ``(batch, n)`` left of the diagonal count, and their mask in ``h``."""
    size = h.re.shape[1]
    row, column = (Formula(e, of.positions(e, size, axis)) for axis in (1, 2))
    roots = h.kept(row.equal(column)).sum(2).size().squeeze(2)
    left = row.equal(column + 1)
    beside = h.kept(left).sum(2).size().squeeze(2)
    none = number(e, 0.0, f64).expand(roots.shape[0], 1)
    before = joined([none, roots], 1).cut(1, 0, size)
    live = beside > (roots + before).maximum(_SMALL) * _UNIT
    return live, left & ~live.unsqueeze(2)


def _rotated(e: Emitter, h: Pair, z: Pair, state: list[Formula]) -> list[Formula]:
    """Return the carried values after one rotation; a sweep of rotations is one QR step."""
    at, end, sweeps, _ = state
    _, size, _ = h.re.shape
    row, column = (Formula(e, of.positions(e, size, axis)) for axis in (1, 2))
    fresh = at >= end
    live, negligible = _neighbors(e, h)
    line = positions(e, size)
    last = live.choose(line, 0, i64).reduce("max", 1)
    begin = (~live & (line < last.unsqueeze(1))).choose(line, 0, i64).reduce("max", 1)
    end, at = fresh.choose(last, end, i64), fresh.choose(begin, at, i64)
    active, first = end > 0, fresh.unsqueeze(1, 2)
    dropped = first & negligible
    zero = Pair(number(e, 0.0, f64), number(e, 0.0, f64))
    h = _chosen(dropped, zero, h)

    k, m = at.unsqueeze(1, 2), end.unsqueeze(1, 2)

    def element(i: Formula, j: Formula) -> Pair:
        return h.kept(row.equal(i) & column.equal(j)).sum(1).sum(2)

    shift = _shift(element, m, (sweeps % _PERIOD).equal(_PERIOD - 1).unsqueeze(1, 2))
    x = _chosen(first, element(k, k) - shift, element(k, k - 1))
    y = _chosen(first, element(k + 1, k), element(k + 1, k - 1))
    turning = active.unsqueeze(1, 2)
    norm = x.size().apply("hypot", y.size())
    turning = turning & ~norm.equal(0.0)
    inverse = turning.choose(1.0 / norm, 0.0, f64)
    a, b = x.conj().scaled(inverse), y.conj().scaled(inverse)
    one = Pair(number(e, 1.0, f64), number(e, 0.0, f64))
    a = _chosen(turning, a, one)

    upper, lower = row.equal(k), row.equal(k + 1)
    rows = [h.kept(mask).sum(1) for mask in (upper, lower)]
    h = _chosen(upper, a * rows[0] + b * rows[1], h)
    h = _chosen(lower, a.conj() * rows[1] - b.conj() * rows[0], h)
    left, right = column.equal(k), column.equal(k + 1)
    results = list[Pair]()
    for matrix in (h, z):
        columns = [matrix.kept(mask).sum(2) for mask in (left, right)]
        made = _chosen(left, a.conj() * columns[0] + b.conj() * columns[1], matrix)
        results.append(_chosen(right, a * columns[1] - b * columns[0], made))
    h, z = results
    following = active.choose(at + 1, at, i64)
    counted = sweeps + fresh.to(i64)
    return [h.re, h.im, z.re, z.im, following, end, counted, active]


def _shift(element: Callable[[Formula, Formula], Pair], m: Formula, other: Formula) -> Pair:
    """Return the eigenvalue of the last block of two rows that is nearer to its last element."""
    a, b = element(m - 1, m - 1), element(m - 1, m)
    c, d = element(m, m - 1), element(m, m)
    half, product = (a - d).scaled(0.5), b * c
    root = (half * half + product).root()
    against = half.re * root.re + half.im * root.im < 0.0
    near = d - product.over(half + _chosen(against, -root, root))
    size = c.size()
    return _chosen(other, d + Pair(size, size * 0.5), near)


def eigenvectors(e: Emitter, form: Schur) -> Pair:
    """Return the eigenvectors ``(batch, n, n)`` as columns of length 1 with a real largest element.

    Equal eigenvalues count as different by a rounding error.
    """
    triangle = form.triangle
    batch, size, _ = triangle.re.shape
    row, column = (Formula(e, of.positions(e, size, axis)) for axis in (1, 2))
    roots = triangle.kept(row.equal(column)).sum(1)
    ones = row.equal(column).choose(1.0, 0.0, f64).expand(batch, size, size)
    zeros = number(e, 0.0, f64).expand(batch, size, size)

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        v = Pair(*(Formula(e, c) for c in now.carried))
        at = size - 1 - now.index
        here = size_of(e, at)
        own = Pair(*(Formula(e, of.cut(e, p.x, 1, at)) for p in (triangle.re, triangle.im)))
        root = own.kept(column.equal(here)).sum(2)
        total = own.kept(column > here) @ v
        gap = root - roots
        close = gap.size() < _UNIT
        gap = _chosen(close, Pair(number(e, _UNIT, f64), number(e, 0.0, f64)), gap)
        value = -total.over(gap)
        v = _chosen(row.equal(here) & (column > here), value, v)
        top = v.size().reduce("max", 1, keepdims=True)
        factor = (top > _LARGE).choose(1.0 / top, 1.0, f64)
        v = v.scaled(factor)
        return [v.re.x, v.im.x], []

    found = of.repeated(e, [ones.x, zeros.x], size, body)
    v = form.vectors @ Pair(*(Formula(e, c) for c in found))
    sizes = v.size()
    top = sizes.reduce("max", 1, keepdims=True)
    v = v.scaled(1.0 / top)
    norm = (v.re * v.re + v.im * v.im).sum(1, keepdims=True).apply("sqrt")
    best = sizes.call("argmax", axis=1, keepdims=True)
    largest = v.kept(row.equal(best)).sum(1)
    turn = largest.conj().scaled(1.0 / (largest.size() * norm))
    return v * turn


def eigen(e: Emitter, a: Formula, *, vectors: bool) -> tuple[Pair, Pair | None]:
    """Return the eigenvalues ``(batch, n)`` in any order, and the eigenvectors as columns."""
    batch, size, _ = a.shape
    if const_value(size) == 0:
        none = number(e, 0.0, f64)
        empty = none.expand(batch, size, size)
        return Pair(*[none.expand(batch, size)] * 2), Pair(empty, empty) if vectors else None
    top = a.apply("abs").reduce("max", 1, 2, keepdims=True)
    top = top.equal(0.0).choose(1.0, top, f64)
    form = schur(e, Formula(e, e.tensor(e.plain((a / top).x))))
    row, column = (Formula(e, of.positions(e, size, axis)) for axis in (1, 2))
    roots = form.triangle.kept(row.equal(column)).sum(2)
    real = roots.im.apply("abs") <= _UNIT * 64
    values = Pair(roots.re * top, real.choose(0.0, roots.im * top, f64))
    values = Pair(*(p.squeeze(2) for p in (values.re, values.im)))
    return values, eigenvectors(e, form) if vectors else None
