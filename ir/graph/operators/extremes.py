"""Where the greatest or least element is."""

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
from .inference import CallFacts
from .lowering import Lowering, buffer_source
from .operator import Operator, register
from .reductions import reduced_shape
from .signature import AttributeSpec, OperandSpec, Signature

_SIGNATURE = Signature(
    (OperandSpec("x", dtypes="number"),),
    (AttributeSpec("axis", "int", -1), AttributeSpec("keepdims", "bool", default=False)),
)


@dataclass(frozen=True)
class ArgExtreme(Operator):
    """The first index of the extreme element along ``axis``, as i64; a NaN is extreme."""

    name: str
    combiner: Combiner
    apply: Callable[..., Any]
    signature: Signature = _SIGNATURE

    def deduce(self, call: CallFacts) -> Info:
        """Drop the axis, or make it 1; it has to have an element."""
        x = call.require_rank(0, 1)
        axis = call.attributes.axis("axis", x.rank)
        call.require(x.shape[axis] >= 1, f"axis {axis} of {self.name} has no elements")
        shape = reduced_shape(x.shape, (axis,), keepdims=call.attributes.flag("keepdims"))
        return TensorInfo(shape, i64)

    def evaluate(self, run: Evaluation) -> Array:
        """Search."""
        x = run.array(0)
        found = self.apply(x, axis=run.attributes.axis("axis", x.ndim))
        if run.attributes.flag("keepdims"):
            found = np.expand_dims(found, run.attributes.axis("axis", x.ndim))
        return np.asarray(found, dtype=np.int64)

    def define(self, low: Lowering) -> None:
        """One block that finds the extreme, one that finds its first index."""
        x, out = low.sources[0], low.out
        axis = low.attributes.axis("axis", x.rank)
        keepdims = low.attributes.flag("keepdims")
        size = x.shape[axis]
        extreme = low.builder.temporary("extreme", out.shape, x.dtype)
        best = buffer_source(extreme)

        def at(indices: tuple[Expr, ...]) -> Element:
            after = axis + 1 if keepdims else axis
            return x(*indices[:axis], indices[out.rank], *indices[after : out.rank])

        def place(*indices: Expr) -> Element:
            here = at(indices)
            wanted: Element = Compare("eq", here, best(*indices[: out.rank]))
            if x.dtype.is_float:
                wanted = Binary("or", wanted, Unary("isnan", here))
            return Where(wanted, Index(indices[out.rank], i64), Index(size, i64))

        low.builder.reduce(
            extreme, [size], lambda *i: at(i), combiner=self.combiner, name="extreme"
        )
        low.builder.reduce(out, [size], place, combiner="min", name=self.name)


register(ArgExtreme("argmax", "max", np.argmax))
register(ArgExtreme("argmin", "min", np.argmin))
