"""Index reductions: argmax, argmin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dtype import i64
from ...loop.builder import Combiner
from ...loop.nodes import Binary, Compare, Element, Index, Unary, Where
from ...symbolic import Expr
from ..nodes import Info, TensorInfo
from .evaluation import Array, Evaluation
from .lowering import Lowering, buffer_source
from .operator import Operator, register
from .reductions import reduced_shape
from .shape_inference import CallFacts, shape_text
from .signature import AttributeSpec, OperandSpec, Signature

_SIGNATURE = Signature(
    (OperandSpec("x", dtypes="number"),),
    (AttributeSpec("axis", "int", -1), AttributeSpec("keepdims", "bool", default=False)),
)


@dataclass(frozen=True)
class ArgExtreme(Operator):
    """The index of the first extreme element along an axis.

    Parameters
    ----------
    x : tensor
        A numeric dtype, shape ``(..., d, ...)`` with dimension ``d >= 1`` at `axis`.
    axis : int, default -1
        The axis.
    keepdims : bool, default False
        Whether `axis` remains, with dimension 1.

    Returns
    -------
    tensor
        Dtype i64; the shape of `x` without `axis`.

    Raises
    ------
    ShapeMismatchError
        If the dimension at `axis` is 0.

    Attributes
    ----------
    combiner : str
        The combiner of the extreme value.
    apply : callable
        The NumPy reference.

    Notes
    -----
    The index of a NaN, if there is one, is the result.

    ========== ================ ====== ========== ==========
    Operator   Formula          Dtypes NumPy      ONNX
    ========== ================ ====== ========== ==========
    ``argmax`` index of maximum number ``argmax`` ``ArgMax``
    ``argmin`` index of minimum number ``argmin`` ``ArgMin``
    ========== ================ ====== ========== ==========

    Examples
    --------
    >>> ArgExtreme("argmax", "max", np.argmax).reference((np.array([[1, 3, 3]]),))
    array([1])
    """

    name: str
    combiner: Combiner
    apply: Callable[..., Any]
    signature: Signature = _SIGNATURE

    def deduce(self, call: CallFacts) -> Info:
        """Return the reduced shape; require that the axis is not empty."""
        x = call.require_rank(0, 1)
        axis = call.attributes.axis("axis", x.rank)
        empty = f"axis {axis} of shape {shape_text(x.shape)} must have at least one element"
        call.require(x.shape[axis] >= 1, empty)
        shape = reduced_shape(x.shape, (axis,), keepdims=call.attributes.flag("keepdims"))
        return TensorInfo(shape, i64)

    def evaluate(self, run: Evaluation) -> Array:
        """Search with NumPy."""
        x = run.array(0)
        found = self.apply(x, axis=run.attributes.axis("axis", x.ndim))
        if run.attributes.flag("keepdims"):
            found = np.expand_dims(found, run.attributes.axis("axis", x.ndim))
        return np.asarray(found, dtype=np.int64)

    def define(self, low: Lowering) -> None:
        """Define one block that finds the extreme value and one that finds its first index."""
        x, out = low.sources[0], low.out
        axis = low.attributes.axis("axis", x.rank)
        keepdims = low.attributes.flag("keepdims")
        size = x.shape[axis]
        extreme = low.builder.temporary("extreme", out.shape, x.dtype)
        best = buffer_source(extreme)

        def at(indices: tuple[Expr, ...]) -> Element:
            after = axis + 1 if keepdims else axis
            return x(*indices[:axis], indices[out.rank], *indices[after : out.rank])

        def position(*indices: Expr) -> Element:
            here = at(indices)
            wanted: Element = Compare("eq", here, best(*indices[: out.rank]))
            if x.dtype.is_float:
                wanted = Binary("or", wanted, Unary("isnan", here))
            return Where(wanted, Index(indices[out.rank], i64), Index(size, i64))

        low.builder.reduce(
            extreme, [size], lambda *i: at(i), combiner=self.combiner, name="extreme"
        )
        low.builder.reduce(out, [size], position, combiner="min", name=self.name)


register(ArgExtreme("argmax", "max", np.argmax))
register(ArgExtreme("argmin", "min", np.argmin))
