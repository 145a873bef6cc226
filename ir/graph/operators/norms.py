"""Normalisation of rows: layer norm and root mean square norm."""

from __future__ import annotations

import numpy as np

from ...loop.nodes import Binary, Buffer, Element, Number, Unary
from ...symbolic import Expr
from ..nodes import Info, TensorInfo
from .evaluation import Array, Evaluation, accumulator_dtype
from .inference import CallFacts, shape_text
from .lowering import Lowering, accumulator, buffer_source, cast_to, divided, extent_as
from .operator import Operator, operator
from .signature import AttributeSpec, OperandSpec, Signature

_EPSILON = AttributeSpec("epsilon", "float", 1e-5)
_AXES = AttributeSpec("axes", "int", 1)


def _deduce(call: CallFacts) -> Info:
    """Keep the shape; weight and bias have the shape of the normalised axes."""
    x = call.tensor(0)
    axes = call.attributes.integer("axes")
    call.require_rank(0, max(1, axes))
    if axes < 1:
        raise call.error(0, f"{axes} normalised axes; at least 1 is needed")
    inner = x.shape[x.rank - axes :]
    call.require_same_dtype(range(len(call.args)))
    for k in range(1, len(call.args)):
        own = call.require_rank(k, axes, axes)
        text = f"{call.name(k)} {shape_text(own.shape)} does not fit {shape_text(inner)}"
        for have, want in zip(own.shape, inner, strict=True):
            call.require_equal(have, want, f"{text}: dimensions are")
    return TensorInfo(x.shape, x.dtype)


def _scaled(run: Evaluation, normal: Array) -> Array:
    for k in range(1, len(run.args)):
        factor = run.array(k).astype(normal.dtype)
        normal = normal * factor if k == 1 else normal + factor
    return normal.astype(run.array(0).dtype)


class _Norm:
    """The pieces of a normalisation in loops."""

    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.x = low.sources[0]
        self.wide = accumulator(self.x.dtype)
        self.lead = self.x.rank - low.attributes.integer("axes")
        self.inner = self.x.shape[self.lead :]
        self.count = extent_as(self.wide, self.inner)

    def element(self, indices: tuple[Expr, ...]) -> Element:
        """Read an element of the operand."""
        return cast_to(self.wide, self.x(*indices))

    def rows(self, name: str) -> Buffer:
        """Make the temporary that holds one number a row."""
        return self.low.builder.temporary(name, self.x.shape[: self.lead], self.wide)

    def root(self, total: Element) -> Element:
        """Give ``1 / sqrt(total / n + epsilon)``."""
        epsilon = Number(self.low.attributes.number("epsilon"), self.wide)
        return Unary("rsqrt", Binary("add", divided(total, self.count), epsilon))

    def finish(self, indices: tuple[Expr, ...], normal: Element) -> Element:
        """Apply weight and bias, and round."""
        for k, source in enumerate(self.low.sources[1:], start=1):
            factor = cast_to(self.wide, source(*indices[self.lead :]))
            normal = Binary("mul" if k == 1 else "add", normal, factor)
        return cast_to(self.low.out.dtype, normal)


@operator
class LayerNorm(Operator):
    """``(x - mean) / sqrt(variance + epsilon) * weight + bias`` over the last ``axes`` axes."""

    name = "layer_norm"
    signature = Signature(
        (OperandSpec("x", dtypes="float"), OperandSpec("weight", optional=True),
         OperandSpec("bias", optional=True)),
        (_EPSILON, _AXES),
    )  # fmt: skip

    def deduce(self, call: CallFacts) -> Info:
        """Keep the shape."""
        return _deduce(call)

    def evaluate(self, run: Evaluation) -> Array:
        """Normalise."""
        x = run.array(0)
        axes = tuple(range(-run.attributes.integer("axes"), 0))
        wide = x.astype(accumulator_dtype(x.dtype))
        with np.errstate(all="ignore"):
            centred = wide - wide.mean(axis=axes, keepdims=True)
            variance = (centred * centred).mean(axis=axes, keepdims=True)
            return _scaled(run, centred / np.sqrt(variance + run.attributes.number("epsilon")))

    def define(self, low: Lowering) -> None:
        """Three blocks: sum, sum of squared differences, the result."""
        norm = _Norm(low)
        total, squares = norm.rows("row_sum"), norm.rows("squares")

        def centred(indices: tuple[Expr, ...]) -> Element:
            mean = divided(buffer_source(total)(*indices[: norm.lead]), norm.count)
            return Binary("sub", norm.element(indices), mean)

        def squared(*indices: Expr) -> Element:
            return Binary("mul", centred(indices), centred(indices))

        def value(*indices: Expr) -> Element:
            root = norm.root(buffer_source(squares)(*indices[: norm.lead]))
            return norm.finish(indices, Binary("mul", centred(indices), root))

        low.builder.reduce(total, norm.inner, lambda *i: norm.element(i))
        low.builder.reduce(squares, norm.inner, squared)
        low.builder.compute(low.out, value, name="layer_norm")


@operator
class RMSNorm(Operator):
    """``x / sqrt(mean(x * x) + epsilon) * weight`` over the last ``axes`` axes."""

    name = "rms_norm"
    signature = Signature(
        (OperandSpec("x", dtypes="float"), OperandSpec("weight", optional=True)),
        (_EPSILON, _AXES),
    )

    def deduce(self, call: CallFacts) -> Info:
        """Keep the shape."""
        return _deduce(call)

    def evaluate(self, run: Evaluation) -> Array:
        """Normalise."""
        x = run.array(0)
        axes = tuple(range(-run.attributes.integer("axes"), 0))
        wide = x.astype(accumulator_dtype(x.dtype))
        with np.errstate(all="ignore"):
            square = (wide * wide).mean(axis=axes, keepdims=True)
            return _scaled(run, wide / np.sqrt(square + run.attributes.number("epsilon")))

    def define(self, low: Lowering) -> None:
        """Two blocks: sum of squares, the result."""
        norm = _Norm(low)
        squares = norm.rows("squares")

        def squared(*indices: Expr) -> Element:
            return Binary("mul", norm.element(indices), norm.element(indices))

        def value(*indices: Expr) -> Element:
            root = norm.root(buffer_source(squares)(*indices[: norm.lead]))
            return norm.finish(indices, Binary("mul", norm.element(indices), root))

        low.builder.reduce(squares, norm.inner, squared)
        low.builder.compute(low.out, value, name="rms_norm")
