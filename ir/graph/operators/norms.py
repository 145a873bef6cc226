"""Normalization operators: layer_norm, rms_norm."""

from __future__ import annotations

import numpy as np

from ...loop.nodes import Binary, Buffer, Element, Number, Unary
from ...symbolic import Expr
from ..nodes import Info, Operand, TensorInfo, Value
from .composition import Composer, narrowed_to, widened
from .evaluation import Array, Evaluation, accumulator_dtype
from .lowering import Lowering, accumulator, buffer_source, cast_to, divided, extent_as
from .operator import Operator, operator
from .shape_inference import CallFacts, shape_text
from .signature import AttributeSpec, OperandSpec, Signature

_EPSILON = AttributeSpec("epsilon", "float", 1e-5)
_AXES = AttributeSpec("axes", "int", 1)


def _deduce(call: CallFacts) -> Info:
    """Return the annotation of ``x``; require weight and bias of the normalized shape."""
    x = call.tensor(0)
    axes = call.attributes.integer("axes")
    call.require_rank(0, max(1, axes))
    if axes < 1:
        raise call.error(0, f"expected axes >= 1, got axes={axes}")
    inner = x.shape[x.rank - axes :]
    call.require_same_dtype(range(len(call.args)))
    for k in range(1, len(call.args)):
        own = call.require_rank(k, axes, axes)
        text = f"expected {call.name(k)} of shape {shape_text(inner)}, got {shape_text(own.shape)}"
        for have, want in zip(own.shape, inner, strict=True):
            call.require_equal(have, want, text)
    return TensorInfo(x.shape, x.dtype)


def _scaled(run: Evaluation, normal: Array) -> Array:
    for k in range(1, len(run.args)):
        factor = run.array(k).astype(normal.dtype)
        normal = normal * factor if k == 1 else normal + factor
    return normal.astype(run.array(0).dtype)


def _normalized_axes(call: CallFacts) -> tuple[int, ...]:
    rank = call.tensor(0).rank
    return tuple(range(rank - call.attributes.integer("axes"), rank))


def _composed(call: CallFacts, graph: Composer, x: Operand, axes: tuple[int, ...]) -> Value:
    """Divide by the root mean square, then apply weight and bias, by operators."""
    square = graph.emit("mean", graph.emit("multiply", x, x), axes=axes, keepdims=True)
    root = graph.emit("rsqrt", graph.emit("add", square, call.attributes.number("epsilon")))
    normal = graph.emit("multiply", x, root)
    for k in range(1, len(call.args)):
        op = "multiply" if k == 1 else "add"
        normal = graph.emit(op, normal, widened(call, graph, k))
    return narrowed_to(call, graph, normal)


class _Norm:
    """The parts of the loop-level definition of a normalization."""

    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.x = low.sources[0]
        self.wide = accumulator(self.x.dtype)
        self.lead = self.x.rank - low.attributes.integer("axes")
        self.inner = self.x.shape[self.lead :]
        self.count = extent_as(self.wide, self.inner)

    def element(self, indices: tuple[Expr, ...]) -> Element:
        """Return an element of the operand in the accumulator dtype."""
        return cast_to(self.wide, self.x(*indices))

    def rows(self, name: str) -> Buffer:
        """Return a new temporary with one element per row."""
        return self.low.builder.temporary(name, self.x.shape[: self.lead], self.wide)

    def root(self, total: Element) -> Element:
        """Return ``1 / sqrt(total / n + epsilon)``."""
        epsilon = Number(self.low.attributes.number("epsilon"), self.wide)
        return Unary("rsqrt", Binary("add", divided(total, self.count), epsilon))

    def finish(self, indices: tuple[Expr, ...], normal: Element) -> Element:
        """Apply weight and bias, and convert to the dtype of the result."""
        for k, source in enumerate(self.low.sources[1:], start=1):
            factor = cast_to(self.wide, source(*indices[self.lead :]))
            normal = Binary("mul" if k == 1 else "add", normal, factor)
        return cast_to(self.low.out.dtype, normal)


@operator
class LayerNorm(Operator):
    """Normalize by mean and variance: ``(x - mean) / sqrt(variance + epsilon) * weight + bias``.

    Parameters
    ----------
    x : tensor
        A floating-point dtype, shape ``(..., d0, ..., dn)``.
    weight, bias : tensor, optional
        The dtype of `x`, shape ``(d0, ..., dn)``.
    epsilon : float, default 1e-5
        The constant added to the variance.
    axes : int, default 1
        The number of trailing axes to normalize over.

    Returns
    -------
    tensor
        The shape and dtype of `x`.

    Raises
    ------
    OperandError
        If dtypes differ, or `axes` is not in ``[1, rank]``.
    ShapeMismatchError
        If `weight` or `bias` do not have the normalized shape.

    Notes
    -----
    16-bit floats are computed in float32 and rounded once. ONNX: ``LayerNormalization``.

    Examples
    --------
    >>> LayerNorm().reference((np.array([[1.0, 3.0]]),), {"epsilon": 0.0})
    array([[-1.,  1.]])
    """

    name = "layer_norm"
    signature = Signature(
        (OperandSpec("x", dtypes="float"), OperandSpec("weight", optional=True),
         OperandSpec("bias", optional=True)),
        (_EPSILON, _AXES),
    )  # fmt: skip

    def deduce(self, call: CallFacts) -> Info:
        """Return the annotation of ``x``."""
        return _deduce(call)

    def evaluate(self, run: Evaluation) -> Array:
        """Normalize with NumPy."""
        x = run.array(0)
        axes = tuple(range(-run.attributes.integer("axes"), 0))
        wide = x.astype(accumulator_dtype(x.dtype))
        with np.errstate(all="ignore"):
            centered = wide - wide.mean(axis=axes, keepdims=True)
            variance = (centered * centered).mean(axis=axes, keepdims=True)
            return _scaled(run, centered / np.sqrt(variance + run.attributes.number("epsilon")))

    def define(self, low: Lowering) -> None:
        """Define three blocks: sum, sum of squared differences, result.

        The reducer ``welford`` takes 1.5 times as long for rows of 128 elements, 0.7 times for rows
        of 1,024, and half the time for rows in memory; the result reads the row again in any case.
        """
        norm = _Norm(low)
        total, squares = norm.rows("row_sum"), norm.rows("squares")

        def centered(indices: tuple[Expr, ...]) -> Element:
            mean = divided(buffer_source(total)(*indices[: norm.lead]), norm.count)
            return Binary("sub", norm.element(indices), mean)

        def squared(*indices: Expr) -> Element:
            return Binary("mul", centered(indices), centered(indices))

        def value(*indices: Expr) -> Element:
            root = norm.root(buffer_source(squares)(*indices[: norm.lead]))
            return norm.finish(indices, Binary("mul", centered(indices), root))

        low.builder.reduce(total, norm.inner, lambda *i: norm.element(i))
        low.builder.reduce(squares, norm.inner, squared)
        low.builder.compute(low.out, value, name="layer_norm")

    def decompose(self, call: CallFacts, graph: Composer) -> tuple[Operand, ...]:
        """Subtract the mean, and multiply by the root of the inverse variance."""
        axes = _normalized_axes(call)
        x = widened(call, graph)
        centered = graph.emit("subtract", x, graph.emit("mean", x, axes=axes, keepdims=True))
        return (_composed(call, graph, centered, axes),)


@operator
class RMSNorm(Operator):
    """Normalize by the root mean square: ``x / sqrt(mean(x * x) + epsilon) * weight``.

    Parameters
    ----------
    x : tensor
        A floating-point dtype, shape ``(..., d0, ..., dn)``.
    weight : tensor, optional
        The dtype of `x`, shape ``(d0, ..., dn)``.
    epsilon : float, default 1e-5
        The constant added to the mean square.
    axes : int, default 1
        The number of trailing axes to normalize over.

    Returns
    -------
    tensor
        The shape and dtype of `x`.

    Raises
    ------
    OperandError
        If dtypes differ, or `axes` is not in ``[1, rank]``.
    ShapeMismatchError
        If `weight` does not have the normalized shape.

    Notes
    -----
    16-bit floats are computed in float32 and rounded once. ONNX: ``RMSNormalization``.

    Examples
    --------
    >>> RMSNorm().reference((np.array([[3.0, 3.0]]),), {"epsilon": 0.0})
    array([[1., 1.]])
    """

    name = "rms_norm"
    signature = Signature(
        (OperandSpec("x", dtypes="float"), OperandSpec("weight", optional=True)),
        (_EPSILON, _AXES),
    )

    def deduce(self, call: CallFacts) -> Info:
        """Return the annotation of ``x``."""
        return _deduce(call)

    def evaluate(self, run: Evaluation) -> Array:
        """Normalize with NumPy."""
        x = run.array(0)
        axes = tuple(range(-run.attributes.integer("axes"), 0))
        wide = x.astype(accumulator_dtype(x.dtype))
        with np.errstate(all="ignore"):
            square = (wide * wide).mean(axis=axes, keepdims=True)
            return _scaled(run, wide / np.sqrt(square + run.attributes.number("epsilon")))

    def define(self, low: Lowering) -> None:
        """Define two blocks: sum of squares, result."""
        norm = _Norm(low)
        squares = norm.rows("squares")

        def squared(*indices: Expr) -> Element:
            return Binary("mul", norm.element(indices), norm.element(indices))

        def value(*indices: Expr) -> Element:
            root = norm.root(buffer_source(squares)(*indices[: norm.lead]))
            return norm.finish(indices, Binary("mul", norm.element(indices), root))

        low.builder.reduce(squares, norm.inner, squared)
        low.builder.compute(low.out, value, name="rms_norm")

    def decompose(self, call: CallFacts, graph: Composer) -> tuple[Operand, ...]:
        """Multiply by the root of the inverse mean square."""
        return (_composed(call, graph, widened(call, graph), _normalized_axes(call)),)
