"""Scan operators."""

from __future__ import annotations

import numpy as np

from ...loop.builder import identity_of
from ...loop.nodes import Binary, Condition, IterKind, Load, Stmt, Store, Where
from ...symbolic import Expr, SymInt
from ..nodes import Info, TensorInfo
from .evaluation import Array, Evaluation
from .lowering import Lowering
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
    The sums are computed in the dtype of `x`, in order. NumPy: ``cumsum``; ONNX: ``CumSum``.

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
        return np.cumsum(x, axis=run.attributes.axis("axis", x.ndim), dtype=x.dtype)

    def define(self, low: Lowering) -> None:
        """Define one block, ordered along the axis, that adds to the previous element."""
        x, out = low.sources[0], low.out
        axis = low.attributes.axis("axis", x.rank)
        zero = identity_of("add", out.dtype)

        def body(*iters: Expr) -> Stmt:
            before = Load(out, (*iters[:axis], iters[axis] - 1, *iters[axis + 1 :]))
            start = Where(Condition(iters[axis] >= 1), before, zero)
            return Store(out, iters, Binary("add", start, x(*iters)))

        kinds: list[tuple[SymInt, IterKind]] = [
            (d, "ordered" if k == axis else "spatial") for k, d in enumerate(x.shape)
        ]
        low.builder.block(kinds, body, name=self.name)
