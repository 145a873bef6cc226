"""Softmax operators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...loop.nodes import Binary, Buffer, Compare, Element, Number, Unary, Where
from ...symbolic import Expr
from ..nodes import Info, Operand, TensorInfo
from .composition import Composer, narrowed_to, widened
from .evaluation import Array, Evaluation, ReferenceArg, accumulator_dtype
from .gradients import GradientCall
from .lowering import Lowering, Source, accumulator, buffer_source, cast_to, divided
from .operator import Operator, operator
from .shape_inference import CallFacts
from .signature import AttributeSpec, OperandSpec, Signature

_AXIS = AttributeSpec("axis", "int", -1)


def _row_maximum(x: Array, axis: int) -> Array:
    return np.max(x, axis=axis, keepdims=True, initial=-math.inf)


class _Rows:
    """The parts of the loop-level definition of a softmax along one axis."""

    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.x = low.sources[0]
        self.axis = low.attributes.axis("axis", self.x.rank)
        self.wide = accumulator(self.x.dtype)
        self.kept = tuple(d for k, d in enumerate(self.x.shape) if k != self.axis)

    def element(self, indices: tuple[Expr, ...]) -> Element:
        """Return an element of the operand in the accumulator dtype."""
        return cast_to(self.wide, self.x(*indices))

    def row(self, source: Source, indices: tuple[Expr, ...]) -> Element:
        """Return the per-row value for the row of an element."""
        return source(*indices[: self.axis], *indices[self.axis + 1 :])

    def inside(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Move the reduction index, which is last, to the axis."""
        return (*indices[: self.axis], indices[-1], *indices[self.axis : -1])

    def maximum(self) -> Buffer:
        """Define the block that computes the maximum of each row; return its buffer."""
        out = self.low.builder.temporary("row_max", self.kept, self.wide)
        extent = [self.x.shape[self.axis]]
        self.low.builder.reduce(
            out, extent, lambda *i: self.element(self.inside(i)), combiner="max"
        )
        return out

    def exponential(self, top: Source, indices: tuple[Expr, ...]) -> Element:
        """Return the exponential of an element minus the maximum of its row.

        The difference is not positive; an exponential of ``-abs`` takes fewer operations.
        """
        moved = Binary("sub", self.element(indices), self.row(top, indices))
        return Unary("exp", Unary("neg", Unary("abs", moved)))


@operator
class Softmax(Operator):
    """Compute the softmax along an axis: ``exp(x - max(x)) / sum(exp(x - max(x)))``.

    Parameters
    ----------
    x : tensor
        A floating-point dtype, any shape ``(...,)`` of rank at least 1.
    axis : int, default -1
        The axis.
    masked_rows : str, default "nan"
        The result for rows that are all minus infinity: ``"nan"``, or ``"zero"`` for attention.

    Returns
    -------
    tensor
        The shape and dtype of `x`.

    Notes
    -----
    16-bit floats are computed in float32 and rounded once. ONNX: ``Softmax``.

    Examples
    --------
    >>> Softmax().reference((np.array([1.0, 1.0, -math.inf]),))
    array([0.5, 0.5, 0. ])
    """

    name = "softmax"
    signature = Signature(
        (OperandSpec("x", dtypes="float"),),
        (_AXIS, AttributeSpec("masked_rows", "str", "nan", ("nan", "zero"))),
    )

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape and dtype of ``x``."""
        x = call.require_rank(0, 1)
        call.attributes.axis("axis", x.rank)
        return TensorInfo(x.shape, x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Compute the softmax with NumPy."""
        x = run.array(0)
        axis = run.attributes.axis("axis", x.ndim)
        wide = x.astype(accumulator_dtype(x.dtype))
        with np.errstate(all="ignore"):
            top = _row_maximum(wide, axis)
            weights = np.exp(wide - top)
            out: Array = weights / weights.sum(axis=axis, keepdims=True)
        if run.attributes.text("masked_rows") == "zero":
            out = np.where(top == -math.inf, np.zeros_like(out), out)
        return out.astype(x.dtype)

    def define(self, low: Lowering) -> None:
        """Define four blocks: maximum, exponentials, sum, product with the inverse of the sum.

        The inverse is computed once per row. It does not overflow, because a sum is at least 1.
        The reducer ``online_softmax`` reads the row once less, but computes the exponentials twice:
        it takes 2.6 times as long for rows of 128 elements, and as long for rows in memory.
        """
        rows = _Rows(low)
        top = buffer_source(rows.maximum())
        zero_rows = low.attributes.text("masked_rows") == "zero"
        weights = low.builder.temporary("exponential", rows.x.shape, rows.wide)
        total = low.builder.temporary("row_sum", rows.kept, rows.wide)

        def weight(*indices: Expr) -> Element:
            return rows.exponential(top, indices)

        def share(*indices: Expr) -> Element:
            summed = rows.row(buffer_source(total), indices)
            inverse = divided(Number(1.0, rows.wide), summed)
            found = Binary("mul", buffer_source(weights)(*indices), inverse)
            if zero_rows:
                found = _zero_if_masked(rows.row(top, indices), found)
            return cast_to(low.out.dtype, found)

        low.builder.compute(weights, weight)
        extent = [rows.x.shape[rows.axis]]
        low.builder.reduce(total, extent, lambda *i: buffer_source(weights)(*rows.inside(i)))
        low.builder.compute(low.out, share, name="softmax")

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Return ``y * (g - sum(g * y))``."""
        del position
        y, g = call.result, call.cotangent(graph)
        axes = (call.attributes.axis("axis", call.tensor(0).rank),)
        inner = graph.emit("sum", graph.emit("multiply", g, y), axes=axes, keepdims=True)
        return graph.emit("multiply", y, graph.emit("subtract", g, inner))

    def decompose(self, call: CallFacts, graph: Composer) -> tuple[Operand, ...]:
        """Divide the exponentials by their sum."""
        axes = (call.attributes.axis("axis", call.tensor(0).rank),)
        x = widened(call, graph)
        top = graph.emit("max", x, axes=axes, keepdims=True)
        weights = graph.emit("exp", graph.emit("subtract", x, top))
        total = graph.emit("sum", weights, axes=axes, keepdims=True)
        share = graph.emit("divide", weights, total)
        if call.attributes.text("masked_rows") == "zero":
            share = graph.emit("where", graph.emit("equal", top, -math.inf), 0.0, share)
        return (narrowed_to(call, graph, share),)


def _zero_if_masked(top: Element, found: Element) -> Element:
    dtype: Any = found.dtype
    masked = Compare("eq", top, Number(-math.inf, dtype))
    return Where(masked, Number(0.0, dtype), found)


@operator
class LogSoftmax(Operator):
    """Compute the log-softmax along an axis: ``x - max(x) - log(sum(exp(x - max(x))))``.

    Parameters
    ----------
    x : tensor
        A floating-point dtype, any shape ``(...,)`` of rank at least 1.
    axis : int, default -1
        The axis.

    Returns
    -------
    tensor
        The shape and dtype of `x`.

    Notes
    -----
    16-bit floats are computed in float32 and rounded once. ONNX: ``LogSoftmax``.

    Examples
    --------
    >>> LogSoftmax().reference((np.array([0.0, 0.0]),)).round(4)
    array([-0.6931, -0.6931])
    """

    name = "log_softmax"
    signature = Signature((OperandSpec("x", dtypes="float"),), (_AXIS,))

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape and dtype of ``x``."""
        x = call.require_rank(0, 1)
        call.attributes.axis("axis", x.rank)
        return TensorInfo(x.shape, x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Compute the log-softmax with NumPy."""
        x = run.array(0)
        axis = run.attributes.axis("axis", x.ndim)
        wide = x.astype(accumulator_dtype(x.dtype))
        with np.errstate(all="ignore"):
            moved = wide - _row_maximum(wide, axis)
            out = moved - np.log(np.exp(moved).sum(axis=axis, keepdims=True))
        return out.astype(x.dtype)

    def canceled(self, operands: tuple[ReferenceArg, ...]) -> Array | None:
        """Return the largest term of the sum: its logarithm is small, and its rounding is not."""
        return np.ones_like(operands[0])

    def define(self, low: Lowering) -> None:
        """Define three blocks: maximum, sum of exponentials, difference.

        The reducer ``logsumexp`` takes 2.6 times as long for rows of 128 elements, and 1.2 times
        for rows in memory.
        """
        rows = _Rows(low)
        top = buffer_source(rows.maximum())
        total = low.builder.temporary("row_sum", rows.kept, rows.wide)

        def moved(indices: tuple[Expr, ...]) -> Element:
            return Binary("sub", rows.element(indices), rows.row(top, indices))

        def value(*indices: Expr) -> Element:
            summed = rows.row(buffer_source(total), indices)
            return cast_to(low.out.dtype, Binary("sub", moved(indices), Unary("log", summed)))

        extent = [rows.x.shape[rows.axis]]
        low.builder.reduce(total, extent, lambda *i: rows.exponential(top, rows.inside(i)))
        low.builder.compute(low.out, value, name="log_softmax")

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Return ``g - exp(y) * sum(g)``."""
        del position
        y, g = call.result, call.cotangent(graph)
        axes = (call.attributes.axis("axis", call.tensor(0).rank),)
        total = graph.emit("sum", g, axes=axes, keepdims=True)
        share = graph.emit("multiply", graph.emit("exp", y), total)
        return graph.emit("subtract", g, share)

    def decompose(self, call: CallFacts, graph: Composer) -> tuple[Operand, ...]:
        """Subtract the logarithm of the sum of the exponentials."""
        axes = (call.attributes.axis("axis", call.tensor(0).rank),)
        x = widened(call, graph)
        moved = graph.emit("subtract", x, graph.emit("max", x, axes=axes, keepdims=True))
        total = graph.emit("sum", graph.emit("exp", moved), axes=axes, keepdims=True)
        return (narrowed_to(call, graph, graph.emit("subtract", moved, graph.emit("log", total))),)
