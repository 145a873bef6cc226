"""Tensors made from shapes and numbers alone."""

from __future__ import annotations

import numpy as np

from ...dtype import i64
from ...loop.nodes import Condition, Element, Index, Where
from ...symbolic import Expr, as_expr, ceildiv, const_value, eq, maximum, product
from ..nodes import Info, TensorInfo
from .evaluation import Array, Evaluation
from .inference import MOST_ELEMENTS, CallFacts
from .lowering import Lowering, cast_to
from .operator import Operator, operator
from .signature import AttributeSpec, OperandSpec, Signature


def require_sizes(call: CallFacts, dims: tuple[Expr, ...]) -> None:
    """Require that dimensions are not negative."""
    for dim in dims:
        if dim.lower is None or dim.lower < 0:
            call.require(dim >= 0, f"dimension {dim} is negative")


@operator
class Full(Operator):
    """A tensor of one number."""

    name = "full"
    signature = Signature(
        (OperandSpec("shape", ("dims",)), OperandSpec("value", ("number",))),
        (AttributeSpec("dtype", "dtype"),),
    )

    def deduce(self, call: CallFacts) -> Info:
        """Take the shape as it is given."""
        shape, dtype = call.dims(0), call.attributes.dtype("dtype")
        require_sizes(call, shape)
        size = const_value(product(shape))
        known = None if dtype.is_float else call.elements(1)
        elements = None
        if known is not None and size is not None and size <= MOST_ELEMENTS:
            elements = known * size
        return TensorInfo(shape, dtype, elements=elements)

    def evaluate(self, run: Evaluation) -> Array:
        """Fill."""
        return np.full(run.dims(0), run.number(1), run.dtype_of(run.attributes.dtype("dtype")))

    def define(self, low: Lowering) -> None:
        """One block that stores the number."""
        number = low.literal(1, low.out.dtype)
        low.builder.compute(low.out, lambda *_: number, name="full")


@operator
class Arange(Operator):
    """``start, start + step, ...`` up to but without ``stop``; ``bounds`` holds the three."""

    name = "arange"
    signature = Signature(
        (OperandSpec("bounds", ("dims",)),), (AttributeSpec("dtype", "dtype", "i64"),)
    )

    def deduce(self, call: CallFacts) -> Info:
        """Count the steps."""
        dtype = call.attributes.dtype("dtype")
        start, stop, step = _bounds(call)
        size = ceildiv(stop - start, step)
        if size.lower is None or size.lower < 0:
            size = maximum(size, 0)
        count = const_value(size)
        elements = None
        if count is not None and count <= MOST_ELEMENTS and dtype.is_integer:
            elements = tuple(start + step * k for k in range(count))
        return TensorInfo((size,), dtype, elements=elements)

    def evaluate(self, run: Evaluation) -> Array:
        """Count."""
        return np.arange(*run.dims(0)).astype(run.dtype_of(run.attributes.dtype("dtype")))

    def define(self, low: Lowering) -> None:
        """One block that stores the index."""
        start, _, step = _bounds(low.call)
        dtype = low.out.dtype

        def value(i: Expr) -> Element:
            return cast_to(dtype, Index(start + i * step, i64))

        low.builder.compute(low.out, value, name="arange")


def _bounds(call: CallFacts) -> tuple[Expr, Expr, Expr]:
    dims = call.dims(0)
    if len(dims) != 3:
        raise call.error(0, f"{len(dims)} integers; expected start, stop and step")
    start, stop, step = dims
    if step.lower is None or step.lower < 1:
        raise call.error(0, f"step {step} has to be positive")
    return start, stop, step


@operator
class ShapeToTensor(Operator):
    """A vector of i64 holding a tuple of symbolic integers."""

    name = "shape_to_tensor"
    signature = Signature((OperandSpec("dims", ("dims",)),))

    def deduce(self, call: CallFacts) -> Info:
        """Carry the integers as element values."""
        dims = call.dims(0)
        return TensorInfo((as_expr(len(dims)),), i64, elements=dims)

    def evaluate(self, run: Evaluation) -> Array:
        """Store the integers."""
        return np.asarray(run.dims(0), dtype=np.int64)

    def define(self, low: Lowering) -> None:
        """One block that chooses by position."""
        dims = low.call.dims(0)

        def value(i: Expr) -> Element:
            found: Element = Index(dims[-1] if dims else as_expr(0), i64)
            for k in reversed(range(len(dims) - 1)):
                found = Where(Condition(eq(i, k)), Index(dims[k], i64), found)
            return found

        low.builder.compute(low.out, value, name="shape_to_tensor")
