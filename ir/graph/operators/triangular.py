"""Triangles of matrices, and the causal mask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dtype import bool_, i64
from ...loop.nodes import Condition, Element, Where
from ...symbolic import Bool, Expr
from ..nodes import Info, ScalarLiteral, TensorInfo
from .creation import require_sizes
from .evaluation import Array, Evaluation
from .inference import CallFacts
from .lowering import Lowering, literal_number
from .operator import Operator, operator, register
from .signature import AttributeSpec, OperandSpec, Signature

_SIGNATURE = Signature((OperandSpec("x"),), (AttributeSpec("k", "int", 0),))


@dataclass(frozen=True)
class Triangle(Operator):
    """Zero outside one triangle of the last two axes; ``k`` moves the diagonal to the right."""

    name: str
    keeps: Callable[[Expr, Expr, int], Bool]
    apply: Callable[[Any, int], Any]
    signature: Signature = _SIGNATURE

    def deduce(self, call: CallFacts) -> Info:
        """Keep shape and dtype."""
        x = call.require_rank(0, 2)
        return TensorInfo(x.shape, x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Zero the other triangle."""
        return np.asarray(self.apply(run.array(0), run.attributes.integer("k")))

    def define(self, low: Lowering) -> None:
        """One block that chooses by row and column."""
        k = low.attributes.integer("k")
        zero = literal_number(ScalarLiteral(0, i64), low.out.dtype)

        def value(*indices: Expr) -> Element:
            kept = Condition(self.keeps(indices[-2], indices[-1], k))
            return Where(kept, low.sources[0](*indices), zero)

        low.builder.compute(low.out, value, name=self.name)


register(Triangle("tril", lambda row, column, k: column <= row + k, np.tril))
register(Triangle("triu", lambda row, column, k: column >= row + k, np.triu))


@operator
class CausalMask(Operator):
    """``mask[i, j] = j <= i + offset`` of shape ``(queries, keys)``: what a query may attend to.

    ``dims`` holds queries, keys and offset; with a cache of ``past`` keys the offset is ``past``.
    """

    name = "causal_mask"
    signature = Signature((OperandSpec("dims", ("dims",)),))

    def deduce(self, call: CallFacts) -> Info:
        """Take the shape as it is given."""
        queries, keys, _ = _sizes(call)
        require_sizes(call, (queries, keys))
        return TensorInfo((queries, keys), bool_)

    def evaluate(self, run: Evaluation) -> Array:
        """Compare rows and columns."""
        queries, keys, offset = run.dims(0)
        return np.arange(keys)[None, :] <= np.arange(queries)[:, None] + offset

    def define(self, low: Lowering) -> None:
        """One block that compares row and column."""
        offset = _sizes(low.call)[2]

        def value(i: Expr, j: Expr) -> Element:
            return Condition(j <= i + offset)

        low.builder.compute(low.out, value, name="causal_mask")


def _sizes(call: CallFacts) -> tuple[Expr, Expr, Expr]:
    dims = call.dims(0)
    if len(dims) != 3:
        raise call.error(0, f"{len(dims)} integers; expected queries, keys and offset")
    return dims[0], dims[1], dims[2]
