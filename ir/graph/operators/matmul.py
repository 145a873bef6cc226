"""Products of matrices, batched."""

from __future__ import annotations

import numpy as np

from ...loop.nodes import Binary, Element
from ...symbolic import Expr
from ..nodes import Info, TensorInfo
from .broadcasting import broadcast
from .evaluation import Array, Evaluation, accumulator_dtype
from .inference import CallFacts, shape_text
from .lowering import Lowering, accumulator, buffer_source, cast_to
from .operator import Operator, operator
from .signature import OperandSpec, Signature


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
        x, y = low.sources
        out = low.out
        wide = accumulator(out.dtype)
        target = out if wide == out.dtype else low.builder.temporary("partial", out.shape, wide)
        lead = out.rank - 2

        def value(*indices: Expr) -> Element:
            batch, (i, j, k) = indices[:lead], indices[lead:]
            left, right = x.broadcast((*batch, i, k)), y.broadcast((*batch, k, j))
            return Binary("mul", cast_to(wide, left), cast_to(wide, right))

        names = (*(f"b{k}" for k in range(lead)), "i", "j", "k")
        low.builder.reduce(target, [x.shape[-1]], value, name="matmul", names=names)
        if target is not out:
            read = buffer_source(target)
            low.builder.compute(out, lambda *i: cast_to(out.dtype, read(*i)), name="rounded")
