"""Import handlers of eigenvalues, singular values, and pseudoinverses in PyTorch.

They are computed in f64. The signs of singular vectors and eigenvectors are not determined, nor
are vectors of equal values; those of PyTorch may differ.
"""

from __future__ import annotations

from ..dtype import f64
from ..symbolic import Expr, as_expr, const_value, minimum, product as product_of
from . import factorizations as of
from .elementwise import convert, where
from .formulas import Formula, size_of
from .jacobi import completed, eigen, normalized, singular
from .shaping import reshape
from .tensors import Imported
from .torch_context import OperandLike, TorchContext, aten
from .torch_linalg import batch_of, unbatch


def _wide(t: TorchContext, x: Imported) -> Imported:
    return convert(t, batch_of(t, x), f64)


def _narrow(t: TorchContext, x: Imported, like: Imported) -> Imported:
    return convert(t, unbatch(t, x, like.shape[:-2]), like.dtype)


def _mirrored(t: TorchContext, x: Imported, *, upper: bool) -> Imported:
    """Return the symmetric matrices whose elements are those of one triangle."""
    half = of.triangle(t, x, upper=upper)
    rest = of.triangle(t, of.transposed(t, x), upper=not upper)
    row, column = (of.positions(t, x.shape[axis], axis) for axis in (1, 2))
    own = Formula(t, column) >= Formula(t, row) if upper else Formula(t, column) <= Formula(t, row)
    return where(t, own.x, half, rest)


@aten("_linalg_eigh")
def eigh(
    t: TorchContext, a: Imported, triangle: str = "L",
    vectors: bool = True,  # noqa: FBT001, FBT002
) -> list[Imported]:  # fmt: skip
    """Import the eigenvalues of symmetric matrices, and the eigenvectors."""
    values, found = eigen(t, _mirrored(t, _wide(t, a), upper=triangle.upper() == "U"))
    values = convert(t, reshape(t, values, a.shape[:-1]), a.dtype)
    if not vectors:
        return [values, t.uniform(0, (as_expr(0),), a.dtype)]
    return [values, _narrow(t, found, a)]


def _decomposed(t: TorchContext, a: Imported) -> tuple[Imported, Imported, Imported, bool]:
    """Return the rotated matrices, singular values, rotations, and whether ``a`` is transposed."""
    matrix = _wide(t, a)
    height, width = (const_value(d) for d in a.shape[-2:])
    wide = height is not None and width is not None and height < width
    return *singular(t, of.transposed(t, matrix) if wide else matrix), wide


def _first(x: Imported, count: Expr, t: TorchContext) -> Formula:
    """Return the first columns."""
    return Formula(t, x).cut(x.rank - 1, 0, count)


@aten("_linalg_svd")
def svd(
    t: TorchContext, a: Imported, full: bool = False,  # noqa: FBT001, FBT002
    vectors: bool = True,  # noqa: FBT001, FBT002
    *, driver: str | None = None,
) -> list[Imported]:  # fmt: skip
    """Import the singular values, and the matrices on both sides."""
    del driver
    height, width = a.shape[-2:]
    count = minimum(height, width)
    rotated, lengths, right, wide = _decomposed(t, a)
    lengths = _first(lengths, count, t).x
    values = convert(t, reshape(t, lengths, (*a.shape[:-2], count)), a.dtype)
    if not vectors:
        none = t.uniform(0, (as_expr(0),), a.dtype)
        return [none, values, none]
    left = normalized(t, _first(rotated, count, t).x, lengths)
    left = completed(t, left, left.shape[1] if full else count)
    right = right if full else _first(right, count, t).x
    left, right = (right, left) if wide else (left, right)
    return [_narrow(t, left, a), values, _narrow(t, of.transposed(t, right), a)]


def _limit(
    t: TorchContext, a: Imported, top: Formula, atol: OperandLike | None, rtol: OperandLike | None
) -> Formula:
    """Return the largest singular value that counts as zero, for each matrix."""
    size = size_of(t, a.shape[-1]).maximum(size_of(t, a.shape[-2])).to(f64)
    size = size * 2.0**-a.dtype.mantissa
    absolute, relative = (None if v is None else _tolerance(t, v) for v in (atol, rtol))
    if relative is None:
        relative = size if absolute is None else (absolute > 0.0).choose(0.0, size, f64)
    found = relative * top
    return found if absolute is None else found.maximum(absolute)


def _tolerance(t: TorchContext, value: OperandLike) -> Formula:
    return Formula(t, convert(t, t.number(value, f64), f64))


@aten("linalg_pinv")
def pinv(
    t: TorchContext, a: Imported, rcond: OperandLike | None = None, hermitian: bool | None = None,  # noqa: FBT001
    *, atol: OperandLike | None = None, rtol: OperandLike | None = None,
) -> Imported:  # fmt: skip
    """Import the pseudoinverse."""
    lead, (height, width) = a.shape[:-2], a.shape[-2:]
    if 0 in {const_value(d) for d in a.shape}:
        return t.uniform(0, (*lead, width, height), a.dtype)
    matrix = batch_of(t, a)
    if hermitian:
        matrix = _mirrored(t, matrix, upper=False)
    rotated, lengths, right, wide = _decomposed(t, matrix)
    values = Formula(t, lengths)
    top = values.at(1, 0).reshape(*lead)
    limit = _limit(t, a, top, atol, rcond if rtol is None else rtol)
    limit = Formula(t, t.tensor(t.plain(limit.expand(*lead).x))).reshape(values.shape[0], 1)
    kept = (values > limit) & (values > 0.0)
    inverse = kept.choose(1.0 / kept.choose(values, 1.0, f64), 0.0, f64).unsqueeze(1)
    left = Formula(t, rotated) * inverse
    found = (Formula(t, right) * inverse) @ Formula(t, of.transposed(t, left.x))
    matrix = of.transposed(t, found.x) if wide else found.x
    return convert(t, reshape(t, matrix, (*lead, width, height)), a.dtype)


@aten("geqrf")
def geqrf(t: TorchContext, a: Imported) -> list[Imported]:
    """Import the Householder form of a QR factorization."""
    form, factors = of.reflections(t, batch_of(t, a))
    count = minimum(*a.shape[-2:])
    return [unbatch(t, form, a.shape[:-2]), reshape(t, factors, (*a.shape[:-2], count))]


@aten("ormqr")
def ormqr(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, form: Imported, factors: Imported, other: Imported,
    left: bool = True, transpose: bool = False,  # noqa: FBT001, FBT002
) -> Imported:  # fmt: skip
    """Import the product with the orthogonal factor of a Householder form."""
    lead = other.shape[:-2]
    vectors = batch_of(t, form)
    scales = reshape(t, factors, (product_of(form.shape[:-2]), factors.shape[-1]))
    height = other.shape[-2] if left else other.shape[-1]
    whole = of.columns(t, vectors, scales, height)
    whole = of.transposed(t, whole) if transpose else whole
    pair = (whole, batch_of(t, other)) if left else (batch_of(t, other), whole)
    return unbatch(t, of.product(t, *pair), lead)
