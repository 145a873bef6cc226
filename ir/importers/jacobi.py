"""Eigenvalues and singular values by rotations of Jacobi, as loops of the graph.

One iteration rotates all pairs ``(i, j)`` with ``i + j = k`` modulo the size, which are disjoint,
so a sweep of as many iterations as there are columns rotates each pair once. The operands are
batches ``(batch, rows, columns)`` of f64 with any symbolic sizes.
"""

from __future__ import annotations

from typing import Final

from ..dtype import f64
from ..symbolic import Expr, as_expr, const_value
from . import factorizations as of
from .control_flow import Iteration, LoopForm, Tensors, emit_loop
from .emitter import Emitter
from .formulas import Formula, positions, size_of
from .shaping import expand
from .tensors import Imported

_SWEEPS: Final = 30
"""More sweeps than convergence needs, which is quadratic after a few."""

_UNIT: Final = 2.0**-52
"""The spacing of f64 at 1."""


def _turns(angle: tuple[Formula, Formula], pair: tuple[Formula, Formula]) -> list[Formula]:
    """Return the cosines and sines of rotations; those of ``i`` and ``j`` have opposite sines.

    The angle is given by its doubled cotangent, as a quotient.
    """
    (gap, twice), (own, other) = angle, pair
    ratio = gap / twice
    order = (own < other).choose(1.0, -1.0, f64).unsqueeze(0)
    sign = (ratio > 0.0).choose(1.0, (ratio < 0.0).choose(-1.0, order, f64), f64)
    tangent = sign / (ratio.apply("abs") + (ratio * ratio + 1.0).apply("sqrt"))
    cosine = 1.0 / (tangent * tangent + 1.0).apply("sqrt")
    return [cosine, tangent * cosine]


def _pairs(e: Emitter, now: Iteration, size: Expr) -> tuple[Formula, Formula]:
    """Return the columns and their partners in an iteration."""
    own = positions(e, size)
    return own, (size_of(e, now.index) - own) % size_of(e, size)


def _scaled(e: Emitter, a: Formula) -> tuple[Formula, Formula]:
    """Return matrices divided by their largest elements, and these, ``(batch, 1, 1)``."""
    top = a.apply("abs").reduce("max", 1, 2, keepdims=True)
    top = top.equal(0.0).choose(1.0, top, f64)
    return Formula(e, e.tensor(e.plain((a / top).x))), top


def _arranged(e: Emitter, x: Formula, order: Formula) -> Formula:
    """Return the columns of matrices in an order ``(batch, columns)``."""
    full = expand(e, order.unsqueeze(1).x, x.shape)
    return x.call("gather_elements", Formula(e, full), axis=2)


def eigen(e: Emitter, a: Imported) -> tuple[Imported, Imported]:
    """Return the eigenvalues of symmetric matrices in ascending order, and the eigenvectors."""
    batch, size, _ = a.shape
    vectors = of.identity(e, batch, size, a)
    if const_value(size) == 0:
        return of.diagonal(e, a), vectors
    matrix, top = _scaled(e, Formula(e, a))
    row, column = (Formula(e, of.positions(e, size, axis)) for axis in (1, 2))

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        x, v = (Formula(e, c) for c in now.carried)
        own, other = _pairs(e, now, size)
        roots = Formula(e, of.diagonal(e, x.x))
        joint = column.equal(other.unsqueeze(0, 2)).choose(x, 0.0, f64).sum(2)
        joint = (joint + joint.take(other, 1)) * 0.5  # equal for both of a pair
        c, s = _turns((roots.take(other, 1) - roots, joint * 2.0), (own, other))
        still = joint.equal(0.0) | own.equal(other).unsqueeze(0)
        c, s = still.choose(1.0, c, f64), still.choose(0.0, s, f64)
        x = x * c.unsqueeze(2) - x.take(other, 1) * s.unsqueeze(2)
        x, v = (m * c.unsqueeze(1) - m.take(other, 2) * s.unsqueeze(1) for m in (x, v))
        return [x.x, v.x], []

    def condition(now: Iteration) -> Imported:
        x = Formula(e, now.carried[0])
        squares = x * x
        rest = row.equal(column).choose(0.0, squares, f64).sum(1, 2)
        bound = size_of(e, size).to(f64) * _UNIT
        return (rest > squares.sum(1, 2) * (bound * bound)).reduce("any", 0).x

    given = [matrix.x, e.tensor(e.plain(vectors))]
    done = [Formula(e, x) for x in emit_loop(e, LoopForm(given, body, condition, size * _SWEEPS))]
    roots = of.diagonal(e, done[0].x)
    values, order = e.items(e.emit("sort", e.plain(roots), axis=1))
    values = Formula(e, values) * top.squeeze(2)
    return values.x, _arranged(e, done[1], Formula(e, order)).x


def singular(e: Emitter, a: Imported) -> tuple[Imported, Imported, Imported]:
    """Return ``A @ V``, the singular values of all columns in descending order, and ``V``.

    The columns of ``A @ V`` are orthogonal, and the singular values are their norms. The matrix
    ``V`` is orthogonal, ``(batch, columns, columns)``.
    """
    batch, _, size = a.shape
    vectors = of.identity(e, batch, size, a)
    if const_value(size) == 0:
        return a, e.uniform(0, (batch, size), f64), vectors
    matrix, top = _scaled(e, Formula(e, a))
    line = positions(e, size)

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        x, v, gaps = (Formula(e, c) for c in now.carried)
        own, other = _pairs(e, now, size)
        partner = x.take(other, 2)
        lengths, joint = (x * x).sum(1), (x * partner).sum(1)
        facing = lengths.take(other, 1)
        least = lengths.sum(1, keepdims=True) * _UNIT
        bound = (lengths * facing).apply("sqrt").maximum(least) * (4 * _UNIT)
        turned = (joint.apply("abs") > bound) & ~own.equal(other).unsqueeze(0)
        c, s = _turns((facing - lengths, joint * 2.0), (own, other))
        c, s = turned.choose(c, 1.0, f64), turned.choose(s, 0.0, f64)
        x = x * c.unsqueeze(1) - partner * s.unsqueeze(1)
        v = v * c.unsqueeze(1) - v.take(other, 2) * s.unsqueeze(1)
        changed = turned.reduce("any", 1, keepdims=True).choose(1.0, 0.0, f64)
        here = line.equal(size_of(e, now.index) % size_of(e, size)).unsqueeze(0)
        return [x.x, v.x, here.choose(changed, gaps, f64).x], []

    def condition(now: Iteration) -> Imported:
        return (Formula(e, now.carried[2]) > 0.0).reduce("any", 0, 1).x

    open_ = e.tensor(e.emit("full", (batch, size), 1.0, dtype="f64"))
    form = LoopForm([matrix.x, e.tensor(e.plain(vectors)), open_], body, condition, size * _SWEEPS)
    x, v, _ = (Formula(e, c) for c in emit_loop(e, form))
    lengths = (x * x).sum(1).apply("sqrt")
    found = e.items(e.emit("sort", e.plain(lengths.x), axis=1, descending=True))
    values, order = (Formula(e, f) for f in found)
    return (
        (_arranged(e, x, order) * top).x,
        (values * top.squeeze(2)).x,
        _arranged(e, v, order).x,
    )


def normalized(e: Emitter, x: Imported, lengths: Imported) -> Imported:
    """Return columns divided by their lengths; columns of length 0 stay zero."""
    divisor = Formula(e, lengths).unsqueeze(1)
    divisor = divisor.equal(0.0).choose(1.0, divisor, f64)
    return (Formula(e, x) / divisor).x


def completed(e: Emitter, x: Imported, count: Expr) -> Imported:
    """Return orthogonal columns whose first ones are those of ``x``; zero columns are replaced."""
    form, factors = of.reflections(e, x)
    found = Formula(e, of.columns(e, form, factors, count))
    width = x.shape[2]
    corner = Formula(e, form).cut(1, 0, width)
    roots = Formula(e, of.diagonal(e, corner.x))
    signs = (roots < 0.0).choose(-1.0, 1.0, f64).unsqueeze(1)
    first = found.cut(2, 0, width) * signs
    if count == width or const_value(count - width) == 0:
        return first.x
    rest = found.cut(2, as_expr(width), count)
    return e.apply("concat", e.plain(first.x), e.plain(rest.x), axis=2)
