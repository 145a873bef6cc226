"""Factorizations of matrices as loops of the graph, shared by the importers.

The operands are batches ``(batch, rows, columns)`` of matrices of f32 or f64 with any symbolic
sizes. Each iteration is a step of the unblocked algorithm on all matrices; elements that it does
not change are selected by masks of positions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ..dtype import i64
from ..symbolic import Expr, SymInt, as_expr, const_value, minimum
from .control_flow import Iteration, LoopForm, Tensors, emit_loop
from .elementwise import convert, elementwise, where
from .emitter import Emitter
from .shaping import expand, expand_dims, permute, reshape, slice_exact, squeeze
from .tensors import Imported, Iota

_ROWS: Final = 1
_COLUMNS: Final = 2


def number(e: Emitter, value: SymInt) -> Imported:
    """Return an integer as a tensor of shape ``()``."""
    found = e.apply("shape_to_tensor", (as_expr(value),))
    return reshape(e, found, ())


def positions(e: Emitter, size: Expr, axis: int, rank: int = 3) -> Imported:
    """Return the positions along an axis; the other dimensions are 1."""
    found = Imported((size,), i64, known=Iota(0, as_expr(0)))
    return expand_dims(e, found, [k for k in range(rank) if k != axis])


def compared(e: Emitter, op: str, x: Imported, y: Imported) -> Imported:
    """Compare positions with a number."""
    return elementwise(e, op, [x, y])


def zeros(e: Emitter, x: Imported) -> Imported:
    """Return zeros with the shape of a tensor, as the first value of a loop."""
    return e.tensor(e.emit("full", x.shape, 0.0, dtype=x.dtype.name))


def cut(e: Emitter, x: Imported, axis: int, at: Expr) -> Imported:
    """Return one row or column; its dimension is 1."""
    return slice_exact(e, x, axis, (at, at + 1))


def zero(e: Emitter, x: Imported) -> Imported:
    """Return the number 0 in the dtype of a tensor."""
    return e.uniform(0, (), x.dtype)


def transposed(e: Emitter, x: Imported) -> Imported:
    """Return the transposed matrices."""
    return permute(e, x, (*range(x.rank - 2), x.rank - 1, x.rank - 2))


def product(e: Emitter, x: Imported, y: Imported) -> Imported:
    """Return the products of matrices."""
    return e.apply("matmul", e.plain(x), e.plain(y))


def identity(e: Emitter, batch: Expr, size: Expr, like: Imported) -> Imported:
    """Return identity matrices."""
    same = elementwise(e, "equal", [positions(e, size, 1), positions(e, size, 2)])
    ones, none = e.uniform(1, (), like.dtype), zero(e, like)
    return expand(e, where(e, same, ones, none), (batch, size, size))


def diagonal(e: Emitter, x: Imported) -> Imported:
    """Return the diagonals ``(batch, columns)`` of square matrices."""
    same = elementwise(e, "equal", [positions(e, x.shape[1], 1), positions(e, x.shape[2], 2)])
    kept = where(e, same, x, zero(e, x))
    return e.apply("sum", e.plain(kept), axes=(1,))


def triangle(e: Emitter, x: Imported, *, upper: bool, k: int = 0) -> Imported:
    """Return the upper or lower triangles."""
    return e.apply("triu" if upper else "tril", e.plain(x), k=k)


def repeated(
    e: Emitter, carried: Tensors, count: Expr, body: Callable[[Iteration], tuple[Tensors, Tensors]]
) -> list[Imported]:
    """Emit a counted loop; the carried values are materialized."""
    given = [e.tensor(e.plain(x)) for x in carried]
    return emit_loop(e, LoopForm(given, body, count=count))


@dataclass(frozen=True, slots=True)
class LU:
    """Factors of matrices: ``A[order] = L @ U``.

    Parameters
    ----------
    factors : Imported
        ``U`` in the upper triangle, ``L`` without its diagonal of ones below it.
    order : Imported
        The rows of the matrix in the order of the factors, ``(batch, rows)``.
    sign : Imported
        The sign of the permutation, ``(batch,)``.
    pivots : Imported
        The row that each step exchanges with its own, ``(batch, steps)``.
    """

    factors: Imported
    order: Imported
    sign: Imported
    pivots: Imported


def lu(e: Emitter, a: Imported, *, pivot: bool = True) -> LU:
    """Factor matrices by elimination with the largest element of each column as the pivot."""
    batch, height, width = a.shape
    row, column = positions(e, height, 1), positions(e, width, 2)
    count = minimum(height, width)
    order = expand(e, positions(e, height, 1, 2), (batch, height))
    sign = e.tensor(e.emit("full", (batch,), 1.0, dtype=a.dtype.name))

    if const_value(count) == 0:
        return LU(a, order, sign, e.uniform(0, (batch, as_expr(0)), i64))

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        k = now.index
        matrix, ranks, parity = now.carried
        at = number(e, k)
        chosen = expand(e, reshape(e, at, (1, 1)), (batch, as_expr(1)))
        if pivot:
            matrix, ranks, parity, chosen = _exchanged(e, now, row)
        pivot_row = cut(e, matrix, _ROWS, k)
        pivot_value = cut(e, pivot_row, _COLUMNS, k)
        left = cut(e, matrix, _COLUMNS, k)
        singular = elementwise(e, "equal", [pivot_value, zero(e, a)])
        ratio = where(e, singular, left, elementwise(e, "divide", [left, pivot_value]))
        below, right = (elementwise(e, "greater", [p, at]) for p in (row, column))
        factor = where(e, below, ratio, zero(e, a))
        update = elementwise(
            e, "subtract", [matrix, elementwise(e, "multiply", [factor, pivot_row])]
        )
        here = elementwise(e, "equal", [column, at])
        inner = elementwise(e, "logical_and", [below, right])
        changed = where(e, inner, update, matrix)
        stored = elementwise(e, "logical_and", [below, here])
        return [where(e, stored, factor, changed), ranks, parity], [squeeze(e, chosen, (1,))]

    factors, order, sign, pivots = repeated(e, [a, order, sign], count, body)
    return LU(factors, order, sign, permute(e, pivots, (1, 0)))


def _exchanged(e: Emitter, now: Iteration, row: Imported) -> tuple[Imported, ...]:
    """Exchange the row of the iteration with that of the largest element below it."""
    matrix, ranks, parity = now.carried
    k, (batch, height, _) = now.index, matrix.shape
    at = number(e, k)
    column = cut(e, matrix, _COLUMNS, k)
    below = elementwise(e, "greater_equal", [row, at])
    size = where(e, below, elementwise(e, "abs", [column]), e.uniform(-1, (), matrix.dtype))
    largest = e.apply("argmax", e.plain(size), axis=1, keepdims=True)
    chosen = reshape(e, largest, (batch, 1))
    line = positions(e, height, 1, 2)
    from_own = where(
        e,
        elementwise(e, "equal", [line, chosen]),
        at,
        expand(e, line, (batch, height)),
    )
    source = where(e, elementwise(e, "equal", [line, at]), chosen, from_own)
    full = expand(e, expand_dims(e, source, (2,)), matrix.shape)
    matrix = e.apply("gather_elements", e.plain(matrix), e.plain(full), axis=1)
    ranks = e.apply("gather_elements", e.plain(ranks), e.plain(source), axis=1)
    same = elementwise(e, "equal", [squeeze(e, chosen, (1,)), at])
    flipped = elementwise(e, "negative", [parity])
    return matrix, ranks, where(e, same, parity, flipped), chosen


def substituted(
    e: Emitter, a: Imported, b: Imported, *, upper: bool, unit: bool = False
) -> Imported:
    """Solve ``A @ X = B`` for triangular matrices; the other triangle is ignored."""
    size = a.shape[1]
    row, column = positions(e, size, 1), positions(e, size, 2)
    if const_value(size) == 0:
        return b

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        (solved,) = now.carried
        at = size - 1 - now.index if upper else as_expr(now.index)
        here = number(e, at)
        line = cut(e, a, _ROWS, at)
        known = elementwise(e, "greater" if upper else "less", [column, here])
        terms = product(e, where(e, known, line, zero(e, a)), solved)
        value = elementwise(e, "subtract", [cut(e, b, _ROWS, at), terms])
        if not unit:
            value = elementwise(e, "divide", [value, cut(e, line, _COLUMNS, at)])
        return [where(e, elementwise(e, "equal", [row, here]), value, solved)], []

    return repeated(e, [zeros(e, b)], size, body)[0]


def solved_by(e: Emitter, factors: LU, b: Imported) -> Imported:
    """Solve ``A @ X = B`` by the factors of ``A``."""
    source = expand(e, expand_dims(e, factors.order, (2,)), b.shape)
    ordered = e.apply("gather_elements", e.plain(b), e.plain(source), axis=1)
    half = substituted(e, factors.factors, ordered, upper=False, unit=True)
    return substituted(e, factors.factors, half, upper=True)


def cholesky(e: Emitter, a: Imported) -> Imported:
    """Return the lower triangular ``L`` with ``A = L @ L.T``, by the lower triangle of ``A``."""
    size = a.shape[1]
    row, column = positions(e, size, 1), positions(e, size, 2)
    if const_value(size) == 0:
        return a

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        (lower,) = now.carried
        k = now.index
        at = number(e, k)
        line = transposed(e, cut(e, lower, _ROWS, k))
        rest = elementwise(e, "subtract", [cut(e, a, _COLUMNS, k), product(e, lower, line)])
        root = elementwise(e, "sqrt", [cut(e, rest, _ROWS, k)])
        scaled = elementwise(e, "divide", [rest, root])
        below, here = (elementwise(e, op, [row, at]) for op in ("greater", "equal"))
        new = where(e, here, root, where(e, below, scaled, zero(e, a)))
        return [where(e, elementwise(e, "equal", [column, at]), new, lower)], []

    return repeated(e, [zeros(e, a)], size, body)[0]


def reflections(e: Emitter, a: Imported) -> tuple[Imported, Imported]:
    """Return the Householder form of ``A = Q @ R``, as LAPACK does.

    The first result has ``R`` in its upper triangle and the vectors below it, whose first element
    is 1; the second one has their factors ``(batch, steps)``.
    """
    batch, height, width = a.shape
    row, column = positions(e, height, 1), positions(e, width, 2)
    if const_value(minimum(height, width)) == 0:
        return a, e.uniform(0, (batch, as_expr(0)), a.dtype)

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        (matrix,) = now.carried
        k = now.index
        at = number(e, k)
        current = cut(e, matrix, _COLUMNS, k)
        first = cut(e, current, _ROWS, k)
        below, here = (elementwise(e, op, [row, at]) for op in ("greater", "equal"))
        tail = where(e, below, current, zero(e, a))
        norm = _norm(e, tail)
        length = elementwise(e, "hypot", [first, norm])
        beta = elementwise(e, "copysign", [length, elementwise(e, "negative", [first])])
        plain = elementwise(e, "equal", [norm, zero(e, a)])
        gap = elementwise(e, "subtract", [first, beta])
        one = e.uniform(1, (), a.dtype)
        divisor = where(e, plain, one, gap)
        factor = where(
            e,
            plain,
            zero(e, a),
            elementwise(
                e, "divide", [elementwise(e, "negative", [gap]), where(e, plain, one, beta)]
            ),
        )
        vector = where(e, here, one, elementwise(e, "divide", [tail, divisor]))
        weights = product(e, transposed(e, vector), matrix)
        change = elementwise(e, "multiply", [elementwise(e, "multiply", [vector, factor]), weights])
        right = elementwise(e, "greater", [column, at])
        not_above = elementwise(e, "greater_equal", [row, at])
        inner = elementwise(e, "logical_and", [not_above, right])
        updated = where(e, inner, elementwise(e, "subtract", [matrix, change]), matrix)
        diagonal_value = where(e, plain, first, beta)
        kept = where(e, below, vector, where(e, here, diagonal_value, current))
        own = elementwise(e, "equal", [column, at])
        return [where(e, own, kept, updated)], [squeeze(e, factor, (1, 2))]

    matrix, factors = repeated(e, [a], minimum(height, width), body)
    return matrix, permute(e, factors, (1, 0))


def _norm(e: Emitter, x: Imported) -> Imported:
    """Return the norms of vectors, whose squares neither overflow nor underflow."""
    top = e.apply("max", e.plain(elementwise(e, "abs", [x])), axes=(1,), keepdims=True)
    plain = elementwise(e, "equal", [top, zero(e, x)])
    scale = where(e, plain, e.uniform(1, (), x.dtype), top)
    part = elementwise(e, "divide", [x, scale])
    squares = elementwise(e, "multiply", [part, part])
    total = e.apply("sum", e.plain(squares), axes=(1,), keepdims=True)
    return elementwise(e, "multiply", [scale, elementwise(e, "sqrt", [total])])


def reflected(e: Emitter, vectors: Imported, factors: Imported, x: Imported) -> Imported:
    """Return ``H0 @ H1 @ ... @ X`` for the reflections of a Householder form."""
    count, height = factors.shape[1], vectors.shape[1]
    row = positions(e, height, 1)
    if const_value(count) == 0:
        return x

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        (matrix,) = now.carried
        at = count - 1 - now.index
        here = number(e, at)
        current = cut(e, vectors, _COLUMNS, at)
        below = elementwise(e, "greater", [row, here])
        tail = where(e, below, current, zero(e, x))
        vector = where(e, elementwise(e, "equal", [row, here]), e.uniform(1, (), x.dtype), tail)
        factor = expand_dims(e, cut(e, factors, 1, at), (2,))
        weights = product(e, transposed(e, vector), matrix)
        change = elementwise(e, "multiply", [elementwise(e, "multiply", [vector, factor]), weights])
        return [elementwise(e, "subtract", [matrix, change])], []

    return repeated(e, [x], count, body)[0]


def columns(e: Emitter, form: Imported, factors: Imported, count: Expr) -> Imported:
    """Return the first columns of the orthogonal factor of a Householder form."""
    height = form.shape[1]
    same = elementwise(e, "equal", [positions(e, height, 1), positions(e, count, 2)])
    start = where(e, same, e.uniform(1, (), form.dtype), zero(e, form))
    return reflected(e, form, factors, expand(e, start, (form.shape[0], height, count)))


_DEGREE: Final = 14
"""The degree of the Taylor polynomial: its rest is 2e-17 for a norm of 1/2."""

_MOST_SQUARES: Final = 1100
"""More squares than any finite norm needs."""


def exponential(e: Emitter, a: Imported) -> Imported:
    """Return the matrix exponentials, by a polynomial of a scaled matrix and squares."""
    batch, size, _ = a.shape
    sums = e.apply("sum", e.plain(elementwise(e, "abs", [a])), axes=(1,))
    norm = e.apply("max", e.plain(sums), axes=(1,))
    power = elementwise(e, "ceil", [elementwise(e, "log2", [norm])])
    steps = elementwise(e, "add", [power, e.uniform(1, (), a.dtype)])
    low, high = e.uniform(0, (), a.dtype), e.uniform(_MOST_SQUARES, (), a.dtype)
    steps = elementwise(e, "minimum", [elementwise(e, "maximum", [steps, low]), high])
    scale = elementwise(e, "exp2", [elementwise(e, "negative", [steps])])
    small = elementwise(e, "multiply", [a, reshape(e, scale, (batch, 1, 1))])
    one = identity(e, batch, size, a)
    found = one
    for k in range(_DEGREE, 0, -1):
        term = elementwise(e, "multiply", [product(e, small, found), e.uniform(1 / k, (), a.dtype)])
        found = elementwise(e, "add", [term, one])
    counts = convert(e, steps, i64)

    def wanted(index: Expr) -> Imported:
        return elementwise(e, "less", [number(e, index), counts])

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        (matrix,) = now.carried
        chosen = reshape(e, wanted(now.index), (batch, 1, 1))
        return [where(e, chosen, product(e, matrix, matrix), matrix)], []

    def condition(now: Iteration) -> Imported:
        return e.apply("any", e.plain(wanted(now.index)))

    given = [e.tensor(e.plain(found))]
    form = LoopForm(given, body, condition, as_expr(_MOST_SQUARES))
    return emit_loop(e, form)[0]
