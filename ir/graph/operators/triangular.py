"""Triangular operators: tril, triu, causal_mask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dtype import bool_, i64
from ...loop.nodes import Condition, Element, Where
from ...symbolic import Bool, Expr
from ..nodes import Info, Operand, ScalarLiteral, TensorInfo
from .composition import Composer
from .creation import require_sizes
from .evaluation import Array, Evaluation
from .gradients import GradientCall
from .lowering import Lowering, literal_number
from .operator import Operator, operator, register
from .shape_inference import CallFacts
from .signature import AttributeSpec, OperandSpec, Signature

_SIGNATURE = Signature((OperandSpec("x"),), (AttributeSpec("k", "int", 0),))


@dataclass(frozen=True)
class Triangle(Operator):
    """A triangle of the matrices in the last two axes; other elements are 0.

    Parameters
    ----------
    x : tensor
        Any dtype, shape ``(..., m, n)``.
    k : int, default 0
        The diagonal: 0 is the main diagonal, positive values are above it.

    Returns
    -------
    tensor
        The shape and dtype of `x`.

    Attributes
    ----------
    keeps : callable
        The predicate of row, column and `k` for the elements to keep.
    apply : callable
        The NumPy reference.

    Notes
    -----
    ======== =========================== ====== ======== =================
    Operator Kept elements               Dtypes NumPy    ONNX
    ======== =========================== ====== ======== =================
    ``tril`` ``column <= row + k``       any    ``tril`` ``Trilu`` (lower)
    ``triu`` ``column >= row + k``       any    ``triu`` ``Trilu`` (upper)
    ======== =========================== ====== ======== =================

    Examples
    --------
    >>> tril = Triangle("tril", lambda row, column, k: column <= row + k, np.tril)
    >>> tril.reference((np.ones((2, 2)),))
    array([[1., 0.],
           [1., 1.]])
    """

    name: str
    keeps: Callable[[Expr, Expr, int], Bool]
    apply: Callable[[Any, int], Any]
    signature: Signature = _SIGNATURE

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape and dtype of ``x``."""
        x = call.require_rank(0, 2)
        return TensorInfo(x.shape, x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Compute the triangle with NumPy."""
        return np.asarray(self.apply(run.array(0), run.attributes.integer("k")))

    def define(self, low: Lowering) -> None:
        """Define one block that selects by row and column."""
        k = low.attributes.integer("k")
        zero = literal_number(ScalarLiteral(0, i64), low.out.dtype)

        def value(*indices: Expr) -> Element:
            kept = Condition(self.keeps(indices[-2], indices[-1], k))
            return Where(kept, low.sources[0](*indices), zero)

        low.builder.compute(low.out, value, name=self.name)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Keep the same triangle of the cotangent."""
        del position
        return graph.emit(self.name, call.cotangent(graph), k=call.attributes.integer("k"))


register(Triangle("tril", lambda row, column, k: column <= row + k, np.tril))
register(Triangle("triu", lambda row, column, k: column >= row + k, np.triu))


@operator
class CausalMask(Operator):
    """Create the mask of causal attention: ``mask[i, j] = j <= i + offset``.

    Parameters
    ----------
    dims : tuple of integers
        ``(queries, keys, offset)``; with a cache of ``past`` keys, the offset is ``past``.

    Returns
    -------
    tensor
        Dtype bool, shape ``(queries, keys)``; true if query ``i`` attends to key ``j``.

    Raises
    ------
    OperandError
        If `dims` does not have three integers.
    ShapeMismatchError
        If a dimension is negative.

    Notes
    -----
    NumPy: ``tri(queries, keys, offset)``.

    Examples
    --------
    >>> CausalMask().reference(((2, 3, 1),))
    array([[ True,  True, False],
           [ True,  True,  True]])
    """

    name = "causal_mask"
    signature = Signature((OperandSpec("dims", ("dims",)),))

    def deduce(self, call: CallFacts) -> Info:
        """Return the given shape."""
        queries, keys, _ = _sizes(call)
        require_sizes(call, (queries, keys))
        return TensorInfo((queries, keys), bool_)

    def evaluate(self, run: Evaluation) -> Array:
        """Compare row and column indices with NumPy."""
        queries, keys, offset = run.dims(0)
        return np.arange(keys)[None, :] <= np.arange(queries)[:, None] + offset

    def define(self, low: Lowering) -> None:
        """Define one block that compares row and column indices."""
        offset = _sizes(low.call)[2]

        def value(i: Expr, j: Expr) -> Element:
            return Condition(j <= i + offset)

        low.builder.compute(low.out, value, name="causal_mask")


def _sizes(call: CallFacts) -> tuple[Expr, Expr, Expr]:
    dims = call.dims(0)
    if len(dims) != 3:
        raise call.error(0, f"expected 3 integers (queries, keys, offset), got {len(dims)}")
    return dims[0], dims[1], dims[2]
