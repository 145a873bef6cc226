"""Matrix multiplication operators."""

from __future__ import annotations

import numpy as np

from ...dtype import i32
from ...loop.nodes import Binary, Buffer, Element
from ...symbolic import Expr, as_expr, const_value
from ..nodes import Info, Operand, TensorInfo
from .broadcasting import broadcast
from .composition import Composer
from .evaluation import Array, Evaluation, accumulator_dtype
from .gradients import GradientCall, transposed
from .lowering import Lowering, Source, accumulator, buffer_source, cast_to
from .operator import Operator, operator
from .shape_inference import CallFacts, shape_text
from .signature import OperandSpec, Signature

BYTE = 8
"""The width of the operands of `matmul_integer`, in bits."""


@operator
class MatMul(Operator):
    """Multiply matrices, with broadcasting of leading (batch) dimensions.

    Parameters
    ----------
    x : tensor
        A numeric dtype, shape ``(..., m, k)``.
    y : tensor
        The same dtype, shape ``(..., k, n)``.

    Returns
    -------
    tensor
        The dtype of the operands, shape ``(..., m, n)``.

    Raises
    ------
    OperandError
        If the dtypes differ, or a rank is less than 2.
    ShapeMismatchError
        If the inner dimensions differ, or the batch dimensions do not broadcast.

    Notes
    -----
    16-bit floats are accumulated in float32. NumPy: ``matmul``; ONNX: ``MatMul``.

    Examples
    --------
    >>> MatMul().reference((np.array([[1, 2]]), np.array([[3], [4]])))
    array([[11]])
    """

    name = "matmul"
    signature = Signature((OperandSpec("x", dtypes="field"), OperandSpec("y", dtypes="field")))

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape of the product; require that the inner dimensions are equal."""
        x, y = call.require_rank(0, 2), call.require_rank(1, 2)
        dtype = call.require_same_dtype((0, 1))
        text = f"cannot multiply {shape_text(x.shape)} by {shape_text(y.shape)}"
        call.require_equal(x.shape[-1], y.shape[-2], f"{text}; inner dimensions")
        batch = broadcast(call, (x.shape[:-2], y.shape[:-2]))
        return TensorInfo((*batch, x.shape[-2], y.shape[-1]), dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Multiply with NumPy."""
        x, y = run.arrays()
        wide = accumulator_dtype(x.dtype)
        with np.errstate(all="ignore"):
            return np.matmul(x.astype(wide), y.astype(wide)).astype(x.dtype)

    def define(self, low: Lowering) -> None:
        """Define one reduction block; 16-bit floats use a float32 temporary."""
        out = low.out
        wide = accumulator(out.dtype)
        target = out if wide == out.dtype else low.builder.temporary("partial", out.shape, wide)
        _sum_products(low, target)
        if target is not out:
            read = buffer_source(target)
            low.builder.compute(out, lambda *i: cast_to(out.dtype, read(*i)), name="rounded")

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Multiply the cotangent by the transpose of the other operand."""
        (x, y), g = call.args, call.cotangent(graph)
        if position:
            return graph.emit("matmul", transposed(graph, x), g)
        return graph.emit("matmul", g, transposed(graph, y))


@operator
class MatMulInteger(Operator):
    """Multiply matrices of 8-bit integers with 32-bit accumulation.

    Parameters
    ----------
    x : tensor
        Dtype i8 or u8, shape ``(..., m, k)``.
    y : tensor
        Dtype i8 or u8, shape ``(..., k, n)``.

    Returns
    -------
    tensor
        Dtype i32, shape ``(..., m, n)``; sums wrap.

    Raises
    ------
    OperandError
        If a dtype is not i8 or u8, or a rank is less than 2.
    ShapeMismatchError
        If the inner dimensions differ, or the batch dimensions do not broadcast.

    Notes
    -----
    ONNX: ``MatMulInteger`` without zero points.

    Examples
    --------
    >>> MatMulInteger().reference((np.array([[200]], np.uint8), np.array([[-2]], np.int8)))
    array([[-400]], dtype=int32)
    """

    name = "matmul_integer"
    signature = Signature((OperandSpec("x", dtypes="integer"), OperandSpec("y", dtypes="integer")))

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape of the product; require 8-bit operands and equal inner dimensions."""
        x, y = call.require_rank(0, 2), call.require_rank(1, 2)
        for position, operand in enumerate((x, y)):
            if operand.dtype.bits != BYTE:
                raise call.error(
                    position,
                    f"expected dtype i8 or u8, got {operand.dtype}",
                    "use matmul for wider integers",
                )
        text = f"cannot multiply {shape_text(x.shape)} by {shape_text(y.shape)}"
        call.require_equal(x.shape[-1], y.shape[-2], f"{text}; inner dimensions")
        batch = broadcast(call, (x.shape[:-2], y.shape[:-2]))
        return TensorInfo((*batch, x.shape[-2], y.shape[-1]), i32)

    def evaluate(self, run: Evaluation) -> Array:
        """Multiply with NumPy."""
        x, y = run.arrays()
        return np.matmul(x.astype(np.int32), y.astype(np.int32))

    def define(self, low: Lowering) -> None:
        """Define one reduction block."""
        _sum_products(low, low.out)


def _sum_products(low: Lowering, target: Buffer) -> None:
    """Define the reduction block of a matrix product in the dtype of the target buffer."""
    x, y = low.sources
    lead = len(target.shape) - 2

    def value(*indices: Expr) -> Element:
        batch, (i, j, k) = indices[:lead], indices[lead:]
        left, right = _element(x, batch, (i, k)), _element(y, batch, (k, j))
        return Binary("mul", cast_to(target.dtype, left), cast_to(target.dtype, right))

    names = (*(f"b{k}" for k in range(lead)), "i", "j", "k")
    low.builder.reduce(target, [x.shape[-1]], value, name="matmul", names=names)


def _element(source: Source, batch: tuple[Expr, ...], position: tuple[Expr, Expr]) -> Element:
    """Return an element of a matrix of a batch; only the batch dimensions broadcast.

    A matrix of one row is indexed by the row, so that its product has the form of any other.
    """
    lead = source.shape[:-2]
    own = batch[len(batch) - len(lead) :]
    first = (as_expr(0) if const_value(d) == 1 else b for d, b in zip(lead, own, strict=True))
    return source(*first, *position)
