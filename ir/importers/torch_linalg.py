"""Import handlers of linear algebra in PyTorch: factorizations, solutions, determinants.

PyTorch raises an error for a matrix that is singular or not positive definite; the imported program
returns infinities or NaN, and the same codes in the results that report them.
"""

from __future__ import annotations

from typing import Any

from ..dtype import f64, i32, i64
from ..symbolic import Expr, as_expr, const_value, minimum, product as product_of
from . import factorizations as of
from .control_flow import Iteration, Tensors
from .elementwise import convert, elementwise, where
from .shaping import expand, expand_dims, reshape, slice_exact, squeeze
from .tensors import Imported
from .torch_context import TorchContext, aten
from .unsupported import UnsupportedFormError


def batch_of(t: TorchContext, x: Imported) -> Imported:
    """Return matrices with one batch dimension."""
    if not x.dtype.is_float:
        raise UnsupportedFormError(
            f"linear algebra of {x.dtype} is not supported; only f32 and f64"
        )
    return reshape(t, x, (product_of(x.shape[:-2]), *x.shape[-2:]))


def unbatch(t: TorchContext, x: Imported, lead: tuple[Expr, ...]) -> Imported:
    """Return matrices with the batch dimensions of an operand."""
    return reshape(t, x, (*lead, *x.shape[1:]))


def _square(x: Imported) -> tuple[Expr, ...]:
    return x.shape[:-2]


@aten("_linalg_check_errors")
def check_errors(t: TorchContext, *_: Any, **__: Any) -> None:
    """Ignore the check of the codes of a factorization."""
    del t


@aten("linalg_cholesky_ex", "cholesky", "linalg_cholesky")
def cholesky(
    t: TorchContext, x: Imported, upper: bool = False, **_: Any,  # noqa: FBT001, FBT002
) -> Imported | list[Imported]:  # fmt: skip
    """Import the Cholesky factor, and the code of the first minor that is not positive."""
    matrix = batch_of(t, x)
    source = of.transposed(t, matrix) if upper else matrix
    lower = of.cholesky(t, source)
    found = unbatch(t, of.transposed(t, lower) if upper else lower, _square(x))
    if not t.operator.endswith("_ex"):
        return found
    roots = of.diagonal(t, lower)
    good = elementwise(t, "greater", [roots, of.zero(t, roots)])
    return [found, reshape(t, _first(t, elementwise(t, "logical_not", [good])), _square(x))]


def _first(t: TorchContext, wrong: Imported) -> Imported:
    """Return the position of the first true element of each row, counted from 1; 0 for none."""
    size = wrong.shape[1]
    count = of.positions(t, size, 1, 2)
    number = elementwise(t, "add", [count, t.uniform(1, (), i64)])
    end = t.number(size + 1, i64)
    least = t.apply("min", t.plain(where(t, wrong, number, end)), axes=(1,))
    least = elementwise(t, "minimum", [least, end])
    none = elementwise(t, "equal", [least, end])
    return convert(t, where(t, none, t.uniform(0, (), i64), least), i32)


@aten("cholesky_solve")
def cholesky_solve(
    t: TorchContext,
    b: Imported,
    factor: Imported,
    upper: bool = False,  # noqa: FBT001, FBT002
) -> Imported:
    """Import the solution of ``A @ X = B`` by the Cholesky factor of ``A``."""
    left, right, lead = matched(t, factor, b)
    lower = of.transposed(t, left) if upper else left
    half = of.substituted(t, lower, right, upper=False)
    return unbatch(t, of.substituted(t, of.transposed(t, lower), half, upper=True), lead)


@aten("cholesky_inverse")
def cholesky_inverse(
    t: TorchContext,
    factor: Imported,
    upper: bool = False,  # noqa: FBT001, FBT002
) -> Imported:
    """Import the inverse of a matrix by its Cholesky factor."""
    matrix = batch_of(t, factor)
    one = unbatch(t, of.identity(t, matrix.shape[0], matrix.shape[1], matrix), _square(factor))
    return cholesky_solve(t, one, factor, upper)


def matched(
    t: TorchContext, a: Imported, b: Imported
) -> tuple[Imported, Imported, tuple[Expr, ...]]:
    """Return two batches of matrices with broadcast batch dimensions, and these dimensions."""
    lead = t.broadcast_shapes([a.shape[:-2], b.shape[:-2]])
    pair = [expand(t, x, (*lead, *x.shape[-2:])) for x in (a, b)]
    return batch_of(t, pair[0]), batch_of(t, pair[1]), lead


@aten("linalg_solve_triangular")
def solve_triangular(
    t: TorchContext, a: Imported, b: Imported, *, upper: bool, left: bool = True,
    unitriangular: bool = False,
) -> Imported:  # fmt: skip
    """Import the solution for triangular matrices."""
    if not left:
        a, b = of.transposed(t, a), of.transposed(t, b)
    one, other, lead = matched(t, a, b)
    found = of.substituted(t, one, other, upper=upper == left, unit=unitriangular)
    found = unbatch(t, found, lead)
    return found if left else of.transposed(t, found)


@aten("triangular_solve")
def triangular_solve(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, b: Imported, a: Imported, upper: bool = True, transpose: bool = False,  # noqa: FBT001, FBT002
    unitriangular: bool = False,  # noqa: FBT001, FBT002
) -> list[Imported]:  # fmt: skip
    """Import the solution for triangular matrices, and the matrices."""
    matrix = of.transposed(t, a) if transpose else a
    found = solve_triangular(t, matrix, b, upper=upper != transpose, unitriangular=unitriangular)
    return [found, expand(t, a, (*found.shape[:-2], *a.shape[-2:]))]


@aten("linalg_lu_factor_ex", "linalg_lu_factor")
def lu_factor(
    t: TorchContext, x: Imported, *, pivot: bool = True, check_errors: bool = False
) -> list[Imported]:
    """Import the factors of an elimination in one matrix, the pivots, and the code."""
    del check_errors
    found = of.lu(t, batch_of(t, x), pivot=pivot)
    return _reported(t, found, x)[: 3 if t.operator.endswith("_ex") else 2]


def _reported(t: TorchContext, found: of.LU, x: Imported) -> list[Imported]:
    """Return the factors, the pivots counted from 1, and the code of the first pivot of 0."""
    lead, count = _square(x), minimum(*x.shape[-2:])
    one = elementwise(t, "add", [found.pivots, t.uniform(1, (), i64)])
    pivots = reshape(t, convert(t, one, i32), (*lead, count))
    corner = slice_exact(t, found.factors, 1, (as_expr(0), count))
    corner = slice_exact(t, corner, 2, (as_expr(0), count))
    roots = of.diagonal(t, corner)
    code = _first(t, elementwise(t, "equal", [roots, of.zero(t, roots)]))
    return [unbatch(t, found.factors, lead), pivots, reshape(t, code, lead)]


def _order(t: TorchContext, pivots: Imported, height: Expr) -> Imported:
    """Return the order of rows after the exchanges of an elimination, ``(batch, rows)``."""
    batch, count = pivots.shape
    rows = convert(t, elementwise(t, "subtract", [pivots, t.uniform(1, (), i32)]), i64)
    line = of.positions(t, height, 1, 2)
    if const_value(count) == 0:
        return expand(t, line, (batch, height))

    def body(now: Iteration) -> tuple[Tensors, Tensors]:
        (order,) = now.carried
        at, chosen = of.number(t, now.index), of.cut(t, rows, 1, now.index)
        full = expand(t, line, (batch, height))
        own = where(t, elementwise(t, "equal", [line, chosen]), at, full)
        source = where(t, elementwise(t, "equal", [line, at]), chosen, own)
        return [t.apply("gather_elements", t.plain(order), t.plain(source), axis=1)], []

    return of.repeated(t, [expand(t, line, (batch, height))], count, body)[0]


def _permutation(t: TorchContext, order: Imported, like: Imported) -> Imported:
    """Return the matrices ``P`` with ``P @ X[order] = X``."""
    row = of.positions(t, order.shape[1], 1)
    same = elementwise(t, "equal", [row, expand_dims(t, order, (1,))])
    return where(t, same, t.uniform(1, (), like.dtype), of.zero(t, like))


def _triangles(t: TorchContext, factors: Imported) -> tuple[Imported, Imported]:
    """Return ``L`` and ``U`` of the matrix of both factors."""
    height, width = factors.shape[-2:]
    count = minimum(height, width)
    below = slice_exact(t, factors, factors.rank - 1, (as_expr(0), count))
    above = slice_exact(t, factors, factors.rank - 2, (as_expr(0), count))
    same = elementwise(t, "equal", [of.positions(t, height, 0, 2), of.positions(t, count, 1, 2)])
    lower = of.triangle(t, below, upper=False, k=-1)
    lower = where(t, same, t.uniform(1, (), factors.dtype), lower)
    return lower, of.triangle(t, above, upper=True)


@aten("lu_unpack")
def lu_unpack(
    t: TorchContext, factors: Imported, pivots: Imported,
    unpack_data: bool = True, unpack_pivots: bool = True,  # noqa: FBT001, FBT002
) -> list[Imported]:  # fmt: skip
    """Import the permutation and the factors of an elimination as matrices."""
    lead, height = _square(factors), factors.shape[-2]
    none = t.uniform(0, (as_expr(0),), factors.dtype)
    permutation, lower, upper = none, none, none
    if unpack_pivots:
        flat = reshape(t, pivots, (product_of(lead), pivots.shape[-1]))
        permutation = unbatch(t, _permutation(t, _order(t, flat, height), factors), lead)
    if unpack_data:
        lower, upper = _triangles(t, factors)
    return [permutation, lower, upper]


@aten("linalg_lu")
def lu(t: TorchContext, x: Imported, *, pivot: bool = True) -> list[Imported]:
    """Import the permutation and the factors of an elimination."""
    found = of.lu(t, batch_of(t, x), pivot=pivot)
    lower, upper = _triangles(t, unbatch(t, found.factors, _square(x)))
    if not pivot:
        return [t.uniform(0, (as_expr(0),), x.dtype), lower, upper]
    return [unbatch(t, _permutation(t, found.order, x), _square(x)), lower, upper]


@aten("linalg_lu_solve")
def lu_solve(
    t: TorchContext, factors: Imported, pivots: Imported, b: Imported, *, left: bool = True,
    adjoint: bool = False,
) -> Imported:  # fmt: skip
    """Import the solution of ``A @ X = B`` by the factors of ``A``."""
    if not left:
        found = lu_solve(t, factors, pivots, of.transposed(t, b), adjoint=not adjoint)
        return of.transposed(t, found)
    one, other, lead = matched(t, factors, b)
    spread = expand(t, pivots, (*lead, pivots.shape[-1]))
    order = _order(t, reshape(t, spread, (other.shape[0], pivots.shape[-1])), factors.shape[-2])
    sign = t.uniform(1, (other.shape[0],), factors.dtype)
    known = of.LU(one, order, sign, order)
    if not adjoint:
        return unbatch(t, of.solved_by(t, known, other), lead)
    rows = of.transposed(t, one)
    half = of.substituted(t, rows, other, upper=False)
    half = of.substituted(t, rows, half, upper=True, unit=True)
    return unbatch(t, of.product(t, _permutation(t, order, factors), half), lead)


@aten("_linalg_solve_ex", "linalg_solve_ex", "linalg_solve")
def solve(
    t: TorchContext, a: Imported, b: Imported, *, left: bool = True, check_errors: bool = False
) -> Imported | list[Imported]:
    """Import the solution of ``A @ X = B`` or ``X @ A = B``, the factors, pivots, and code."""
    del check_errors
    vector = b.rank == 1 or (b.rank == a.rank - 1 and b.shape == a.shape[:-1])
    right = expand_dims(t, b, (b.rank,)) if vector else b
    # PyTorch returns the factors of the transposed matrix for a system from the right.
    matrix = a if left else of.transposed(t, a)
    right = right if left or vector else of.transposed(t, right)
    one, other, lead = matched(t, matrix, right)
    found = unbatch(t, of.solved_by(t, of.lu(t, one), other), lead)
    found = found if left or vector else of.transposed(t, found)
    found = squeeze(t, found, (found.rank - 1,)) if vector else found
    if t.operator == "linalg_solve":
        return found
    reported = _reported(t, of.lu(t, batch_of(t, matrix)), a)
    if t.operator == "linalg_solve_ex":
        return [found, reported[2]]
    return [found, *reported]


@aten("linalg_inv_ex", "linalg_inv", "inverse")
def inverse(t: TorchContext, a: Imported, **_: Any) -> Imported | list[Imported]:
    """Import the inverse, and the code of the first pivot of 0."""
    found, factors = _inverted(t, a)
    return [found, _reported(t, factors, a)[2]] if t.operator == "linalg_inv_ex" else found


def _inverted(t: TorchContext, a: Imported) -> tuple[Imported, of.LU]:
    matrix = batch_of(t, a)
    factors = of.lu(t, matrix)
    one = of.identity(t, matrix.shape[0], matrix.shape[1], matrix)
    return unbatch(t, of.solved_by(t, factors, one), _square(a)), factors


@aten("linalg_tensorinv")
def inverse_of_tensor(t: TorchContext, a: Imported, count: int = 2) -> Imported:
    """Import the inverse of the matrix whose rows are the first dimensions."""
    first, last = a.shape[:count], a.shape[count:]
    height, width = product_of(first), product_of(last)
    matrix = reshape(t, a, (height, width))
    size = t.same_size(height, width, "the matrix of a tensor must be square to be inverted")
    found, _ = _inverted(t, reshape(t, matrix, (size, size)))
    return reshape(t, found, (*last, *first))


@aten("_linalg_det", "linalg_det")
def determinant(t: TorchContext, a: Imported) -> Imported | list[Imported]:
    """Import the determinant, the factors, and the pivots."""
    factors = of.lu(t, batch_of(t, a))
    roots = of.diagonal(t, factors.factors)
    value = t.apply("prod", t.plain(roots), axes=(1,))
    found = reshape(t, elementwise(t, "multiply", [value, factors.sign]), _square(a))
    if not t.operator.startswith("_"):
        return found
    return [found, *_reported(t, factors, a)[:2]]


@aten("_linalg_slogdet", "linalg_slogdet")
def log_determinant(t: TorchContext, a: Imported) -> list[Imported]:
    """Import the sign and the logarithm of the absolute value of the determinant."""
    factors = of.lu(t, batch_of(t, a))
    roots = of.diagonal(t, factors.factors)
    signs = t.apply("prod", t.plain(elementwise(t, "sign", [roots])), axes=(1,))
    sizes = elementwise(t, "log", [elementwise(t, "abs", [roots])])
    total = t.apply("sum", t.plain(sizes), axes=(1,))
    found = [elementwise(t, "multiply", [signs, factors.sign]), total]
    results = [reshape(t, x, _square(a)) for x in found]
    return [*results, *_reported(t, factors, a)[:2]][: 4 if t.operator.startswith("_") else 2]


@aten("linalg_qr")
def qr(t: TorchContext, a: Imported, mode: str = "reduced") -> list[Imported]:
    """Import the orthogonal and the triangular factor."""
    lead, (height, width) = _square(a), a.shape[-2:]
    count = minimum(height, width)
    form, factors = of.reflections(t, batch_of(t, a))
    wide = height if mode == "complete" else count
    upper = slice_exact(t, form, 1, (as_expr(0), wide))
    upper = unbatch(t, of.triangle(t, upper, upper=True), lead)
    if mode == "r":
        return [t.uniform(0, (as_expr(0),), a.dtype), upper]
    return [unbatch(t, of.columns(t, form, factors, wide), lead), upper]


@aten("linalg_householder_product")
def householder_product(t: TorchContext, form: Imported, factors: Imported) -> Imported:
    """Import the first columns of the orthogonal factor of a Householder form."""
    lead = _square(form)
    scales = reshape(t, factors, (product_of(lead), factors.shape[-1]))
    found = of.columns(t, batch_of(t, form), scales, form.shape[-1])
    return unbatch(t, found, lead)


@aten("linalg_matrix_exp")
def matrix_exp(t: TorchContext, a: Imported) -> Imported:
    """Import the matrix exponential, in f64: squares of a power multiply its relative error."""
    found = of.exponential(t, convert(t, batch_of(t, a), f64))
    return convert(t, unbatch(t, found, _square(a)), a.dtype)
