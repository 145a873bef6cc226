"""Scan operators."""

from __future__ import annotations

import numpy as np

from ...loop.builder import identity_of
from ...loop.nodes import Binary, Buffer, Condition, IterKind, Load, Stmt, Store, Where
from ...symbolic import Expr, SymInt
from ..nodes import Info, TensorInfo
from .evaluation import Array, Evaluation, accumulator_dtype
from .lowering import Lowering, accumulator, buffer_source, cast_to
from .operator import Operator, operator
from .shape_inference import CallFacts
from .signature import AttributeSpec, OperandSpec, Signature


@operator
class CumSum(Operator):
    """Compute inclusive running sums along an axis.

    Parameters
    ----------
    x : tensor
        A numeric dtype, any shape ``(...,)`` of rank at least 1.
    axis : int, default 0
        The axis.

    Returns
    -------
    tensor
        The shape and dtype of `x`.

    Notes
    -----
    The sums are computed in order; those of 16-bit floats in float32, rounded once. NumPy:
    ``cumsum``; ONNX: ``CumSum``.

    Examples
    --------
    >>> CumSum().reference((np.array([1, 2, 3]),))
    array([1, 3, 6])
    """

    name = "cumsum"
    signature = Signature((OperandSpec("x", dtypes="number"),), (AttributeSpec("axis", "int", 0),))

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape and dtype of ``x``."""
        x = call.require_rank(0, 1)
        call.attributes.axis("axis", x.rank)
        return TensorInfo(x.shape, x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Compute the sums with NumPy."""
        x = run.array(0)
        wide = x.astype(accumulator_dtype(x.dtype))
        with np.errstate(all="ignore"):
            sums = np.cumsum(wide, axis=run.attributes.axis("axis", x.ndim), dtype=wide.dtype)
        return sums.astype(x.dtype)

    def define(self, low: Lowering) -> None:
        """Define one block that adds to the previous element; 16-bit floats use a temporary."""
        out = low.out
        wide = accumulator(out.dtype)
        if wide == out.dtype:
            self._sums(low, out)
            return
        sums = low.builder.temporary("sums", out.shape, wide)
        self._sums(low, sums)
        read = buffer_source(sums)
        low.builder.compute(out, lambda *i: cast_to(out.dtype, read(*i)), name="rounded")

    def _sums(self, low: Lowering, out: Buffer) -> None:
        """Define the block of the sums in the dtype of a buffer, ordered along the axis."""
        x = low.sources[0]
        axis = low.attributes.axis("axis", x.rank)
        zero = identity_of("add", out.dtype)

        def body(*iters: Expr) -> Stmt:
            before = Load(out, (*iters[:axis], iters[axis] - 1, *iters[axis + 1 :]))
            start = Where(Condition(iters[axis] >= 1), before, zero)
            return Store(out, iters, Binary("add", start, cast_to(out.dtype, x(*iters))))

        kinds: list[tuple[SymInt, IterKind]] = [
            (d, "ordered" if k == axis else "spatial") for k, d in enumerate(x.shape)
        ]
        low.builder.block(kinds, body, name=self.name)
