"""Products of matrices, batched."""

from __future__ import annotations

import numpy as np

from ...dtype import i32
from ...loop.nodes import Binary, Buffer, Element
from ...symbolic import Expr
from ..nodes import Info, TensorInfo
from .broadcasting import broadcast
from .evaluation import Array, Evaluation, accumulator_dtype
from .inference import CallFacts, shape_text
from .lowering import Lowering, accumulator, buffer_source, cast_to
from .operator import Operator, operator
from .signature import OperandSpec, Signature

BYTE = 8
"""Bits of what `matmul_integer` takes."""


@operator
class MatMul(Operator):
    """``(..., m, k)`` times ``(..., k, n)``; leading dimensions broadcast.

    Half precision is summed in single precision.
    """

    name = "matmul"
    signature = Signature((OperandSpec("x", dtypes="number"), OperandSpec("y", dtypes="number")))

    def deduce(self, call: CallFacts) -> Info:
        """Require that the inner dimensions are equal."""
        x, y = call.require_rank(0, 2), call.require_rank(1, 2)
        dtype = call.require_same_dtype((0, 1))
        text = f"cannot multiply {shape_text(x.shape)} by {shape_text(y.shape)}"
        call.require_equal(x.shape[-1], y.shape[-2], f"{text}: inner dimensions are")
        batch = broadcast(call, (x.shape[:-2], y.shape[:-2]))
        return TensorInfo((*batch, x.shape[-2], y.shape[-1]), dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Multiply."""
        x, y = run.arrays()
        wide = accumulator_dtype(x.dtype)
        with np.errstate(all="ignore"):
            return np.matmul(x.astype(wide), y.astype(wide)).astype(x.dtype)

    def define(self, low: Lowering) -> None:
        """One reduction block; in half precision through a single-precision temporary."""
        out = low.out
        wide = accumulator(out.dtype)
        target = out if wide == out.dtype else low.builder.temporary("partial", out.shape, wide)
        _sum_products(low, target)
        if target is not out:
            read = buffer_source(target)
            low.builder.compute(out, lambda *i: cast_to(out.dtype, read(*i)), name="rounded")


@operator
class MatMulInteger(Operator):
    """``(..., m, k)`` times ``(..., k, n)`` of bytes, signed or not each, summed in 32 bits.

    Sums wrap.
    """

    name = "matmul_integer"
    signature = Signature((OperandSpec("x", dtypes="integer"), OperandSpec("y", dtypes="integer")))

    def deduce(self, call: CallFacts) -> Info:
        """Require bytes, and that the inner dimensions are equal."""
        x, y = call.require_rank(0, 2), call.require_rank(1, 2)
        for position, operand in enumerate((x, y)):
            if operand.dtype.bits != BYTE:
                raise call.error(
                    position,
                    f"dtype {operand.dtype} is no byte",
                    "use i8 or u8, or matmul for wider integers",
                )
        text = f"cannot multiply {shape_text(x.shape)} by {shape_text(y.shape)}"
        call.require_equal(x.shape[-1], y.shape[-2], f"{text}: inner dimensions are")
        batch = broadcast(call, (x.shape[:-2], y.shape[:-2]))
        return TensorInfo((*batch, x.shape[-2], y.shape[-1]), i32)

    def evaluate(self, run: Evaluation) -> Array:
        """Multiply."""
        x, y = run.arrays()
        return np.matmul(x.astype(np.int32), y.astype(np.int32))

    def define(self, low: Lowering) -> None:
        """One reduction block."""
        _sum_products(low, low.out)


def _sum_products(low: Lowering, target: Buffer) -> None:
    """Write the reduction block of a matrix product, in the dtype of the buffer it goes to."""
    x, y = low.sources
    lead = len(target.shape) - 2

    def value(*indices: Expr) -> Element:
        batch, (i, j, k) = indices[:lead], indices[lead:]
        left, right = x.broadcast((*batch, i, k)), y.broadcast((*batch, k, j))
        return Binary("mul", cast_to(target.dtype, left), cast_to(target.dtype, right))

    names = (*(f"b{k}" for k in range(lead)), "i", "j", "k")
    low.builder.reduce(target, [x.shape[-1]], value, name="matmul", names=names)
