"""The discrete Fourier transform: dft."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from ...dtype import DType, f64, from_numpy, i64
from ...symbolic import Expr, const_value
from ..nodes import Info, Operand, TensorInfo, Value
from .composition import Composer
from .errors import OperatorAttributeError
from .evaluation import Array, Evaluation
from .gradients import extent
from .operator import Operator, operator
from .shape_inference import CallFacts
from .signature import AttributeSpec, OperandSpec, Signature

_FORMS: Final = ("full", "half", "real")


@operator
class DFT(Operator):
    """Compute the discrete Fourier transform along an axis.

    Parameters
    ----------
    x : tensor
        A complex dtype, or f32 or f64; shape ``(..., n, ...)`` with dimension ``n`` at `axis`.
    size : tuple of one integer, optional
        The number of elements of the result with `form` ``real``, and only with this.
    axis : int, default -1
        The axis.
    inverse : bool, default False
        Whether the exponents are positive; the result is not divided by ``n``.
    form : str, default "full"
        The elements of the result: ``full``, all ``n``; ``half``, the first ``n // 2 + 1``, which
        determine the others if `x` is real; ``real``, the real signal of `size` elements of which
        `x` is the half transform, by positive exponents.

    Returns
    -------
    tensor
        The complex dtype of `x`, with ``n`` or ``n // 2 + 1`` elements at `axis`; with `form`
        ``real`` the dtype of its parts, with `size` elements.

    Raises
    ------
    OperandError
        If the dtype has no complex dtype, or `size` is missing or not expected.
    OperatorAttributeError
        If the form is unknown.
    ShapeMismatchError
        If ``n`` is not ``size // 2 + 1`` with `form` ``real``.

    Notes
    -----
    It is lowered to products with the matrices of cosines and sines, which are computed in f64 and
    rounded once: ``n`` products for each element. The imaginary parts of the first element of a
    half transform, and of the last one if `size` is even, are ignored. NumPy: ``fft.fft``,
    ``fft.rfft``, ``fft.irfft``; ONNX: ``DFT``; PyTorch: ``fft``.

    Examples
    --------
    >>> DFT().reference((np.array([1.0, 2.0, 4.0]),), {"form": "half"}).round(3)
    array([ 7. +0.j   , -2. +1.732j])
    """

    name = "dft"
    signature = Signature(
        (OperandSpec("x", dtypes="inexact"), OperandSpec("size", ("dims",), optional=True)),
        (
            AttributeSpec("axis", "int", -1),
            AttributeSpec("inverse", "bool", default=False),
            AttributeSpec("form", "str", "full"),
        ),
    )

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape with the number of elements of the form."""
        x, form = call.require_rank(0, 1), _form(call)
        paired = x.dtype if x.dtype.is_complex else x.dtype.paired
        if paired is None:
            raise call.error(0, f"no complex dtype has parts of dtype {x.dtype}", "cast it to f32")
        axis = call.attributes.axis("axis", x.rank)
        if call.has(1) != (form == "real"):
            raise call.error(min(1, len(call.args) - 1), "expected a size with form 'real' only")
        count = x.shape[axis]
        if form == "half":
            count = count // 2 + 1
        if form == "real":
            sizes = call.dims(1)
            if len(sizes) != 1:
                raise call.error(1, f"expected one integer, got {len(sizes)}")
            (count,) = sizes
            call.require(count >= 0, f"size {count} is negative")
            call.require_equal(x.shape[axis], count // 2 + 1, "elements of a half transform")
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
        return TensorInfo(shape, paired.part if form == "real" else paired)

    def evaluate(self, run: Evaluation) -> Array:
        """Transform with NumPy in double precision."""
        x, form = run.array(0), run.attributes.text("form")
        shape: list[int] = list(x.shape)
        axis = run.attributes.axis("axis", x.ndim)
        dtype = from_numpy(x.dtype)
        paired = dtype if dtype.is_complex else dtype.paired
        target = (paired or dtype).numpy
        if form == "real":
            (size,) = run.dims(1)
            if not size:
                shape[axis] = 0
                return np.zeros(shape, (paired or dtype).part.numpy)
            return np.fft.irfft(x.astype("c16"), size, axis, norm="forward").astype(
                (paired or dtype).part.numpy
            )
        count = x.shape[axis]
        wide = x.astype("c16")
        if not x.size:
            full = wide
        elif run.attributes.flag("inverse"):
            full = np.fft.ifft(wide, axis=axis, norm="forward")
        else:
            full = np.fft.fft(wide, axis=axis)
        if form == "half":
            shape[axis] = count // 2 + 1
            full = np.take(full, range(shape[axis]), axis) if count else np.zeros(shape, "c16")
        return full.astype(target)

    def decompose(self, call: CallFacts, graph: Composer) -> tuple[Operand, ...]:
        """Multiply by matrices of cosines and sines."""
        x, form = call.tensor(0), _form(call)
        axis, rank = call.attributes.axis("axis", x.rank), x.rank
        swapped = list(range(rank))
        swapped[axis], swapped[-1] = swapped[-1], swapped[axis]
        rows = call.args[0]
        if axis != rank - 1:
            rows = graph.emit("permute_dims", rows, axes=swapped)
        if rank == 1:
            rows = graph.emit("expand_dims", rows, axes=(0,))
        count = x.shape[axis]
        if form == "real":
            found = _real(graph, rows, x.dtype.part, (count, call.dims(1)[0]))
        else:
            outputs = count // 2 + 1 if form == "half" else count
            inverse = call.attributes.flag("inverse")
            found = _transformed(graph, rows, x.dtype, (count, outputs), inverse=inverse)
        if rank == 1:
            found = graph.emit("squeeze", found, axes=(0,))
        if axis != rank - 1:
            found = graph.emit("permute_dims", found, axes=swapped)
        return (found,)


def _form(call: CallFacts) -> str:
    form = call.attributes.text("form")
    if form not in _FORMS:
        raise OperatorAttributeError(
            f"expected one of {', '.join(_FORMS)}, got {form!r}",
            where=f"attribute 'form' of {DFT.name}",
        )
    return form


def _angles(graph: Composer, sizes: tuple[Expr, Expr], period: Expr) -> Value:
    """Return ``2 pi (j k mod n) / n`` in f64 for rows ``j`` and columns ``k``."""
    row = graph.emit("expand_dims", graph.emit("arange", (0, sizes[0], 1)), axes=(1,))
    column = graph.emit("expand_dims", graph.emit("arange", (0, sizes[1], 1)), axes=(0,))
    product, known = graph.emit("multiply", row, column), const_value(period)
    rest = graph.emit("mod", product, extent(graph, period, i64) if known is None else known)
    turns = graph.emit("cast", rest, dtype="f64")
    divisor = extent(graph, period, f64) if known is None else float(known or 1)
    return graph.emit("multiply", graph.emit("divide", turns, divisor), 2 * math.pi)


def _waves(graph: Composer, angles: Value, dtype: str, weights: Value | None = None) -> list[Value]:
    """Return the matrices of cosines and sines, with weights of the rows."""
    found = [graph.emit(f, angles) for f in ("cos", "sin")]
    if weights is not None:
        found = [graph.emit("multiply", f, weights) for f in found]
    return [graph.emit("cast", f, dtype=dtype) for f in found]


def _transformed(
    graph: Composer, x: Operand, dtype: DType, sizes: tuple[Expr, Expr], *, inverse: bool
) -> Value:
    """Return the transform along the last axis."""
    part = dtype.part if dtype.is_complex else dtype
    cosine, sine = _waves(graph, _angles(graph, sizes, sizes[0]), part.name)
    if not dtype.is_complex:
        imaginary = graph.emit("matmul", x, sine)
        if not inverse:
            imaginary = graph.emit("negative", imaginary)
        return graph.emit("complex", graph.emit("matmul", x, cosine), imaginary)
    real, imag = (graph.emit(p, x) for p in ("real", "imag"))
    products = [graph.emit("matmul", a, b) for a in (real, imag) for b in (cosine, sine)]
    first, second = ("subtract", "add") if inverse else ("add", "subtract")
    return graph.emit(
        "complex",
        graph.emit(first, products[0], products[3]),
        graph.emit(second, products[2], products[1]),
    )


def _real(graph: Composer, x: Operand, part: DType, sizes: tuple[Expr, Expr]) -> Value:
    """Return the real signal of a half transform along the last axis.

    Each element but the first, and the last one of an even size, occurs twice: with its conjugate.
    """
    count, size = sizes
    number = graph.emit("arange", (0, count, 1))
    twice = graph.emit("multiply", number, 2)
    known = const_value(size)
    total = extent(graph, size, i64) if known is None else known
    single = graph.emit("equal", graph.emit("mod", twice, total), 0)
    if known in {0, 1}:
        single = graph.emit("equal", number, number)
    weights = graph.emit("cast", graph.emit("where", single, 1, 2), dtype="f64")
    column = graph.emit("expand_dims", weights, axes=(1,))
    cosine, sine = _waves(graph, _angles(graph, sizes, size), part.name, column)
    products = [
        graph.emit("matmul", graph.emit(p, x), wave)
        for p, wave in (("real", cosine), ("imag", sine))
    ]
    return graph.emit("subtract", *products)
