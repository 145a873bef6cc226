"""Creation operators: full, arange, shape_to_tensor."""

from __future__ import annotations

import numpy as np

from ...dtype import i64
from ...loop.nodes import Condition, Element, Index, Where
from ...symbolic import Expr, as_expr, ceildiv, const_value, eq, maximum, product
from ..nodes import Info, TensorInfo
from .evaluation import Array, Evaluation
from .lowering import Lowering, cast_to
from .operator import Operator, operator
from .shape_inference import MAX_ELEMENTS, CallFacts
from .signature import AttributeSpec, OperandSpec, Signature


def require_sizes(call: CallFacts, dims: tuple[Expr, ...]) -> None:
    """Require that dimensions are non-negative."""
    for dim in dims:
        if dim.lower is None or dim.lower < 0:
            reason = f"expected non-negative dimensions, got {dim}"
            call.require(dim >= 0, reason, f"{call.op} requires {dim} >= 0")


@operator
class Full(Operator):
    """Create a tensor with all elements equal to a number.

    Parameters
    ----------
    shape : tuple of integers
        The shape ``(...,)``; dimensions are non-negative.
    value : number
        The value of the elements.
    dtype : str
        The name of the dtype.

    Returns
    -------
    tensor
        Shape `shape`, dtype `dtype`.

    Raises
    ------
    ShapeMismatchError
        If a dimension is negative.
    OperandError
        If the number is not a value of the dtype.

    Notes
    -----
    NumPy: ``full``; ONNX: ``ConstantOfShape``.

    Examples
    --------
    >>> Full().reference(((2,), 1.5), {"dtype": "f32"})
    array([1.5, 1.5], dtype=float32)
    """

    name = "full"
    signature = Signature(
        (OperandSpec("shape", ("dims",)), OperandSpec("value", ("number",))),
        (AttributeSpec("dtype", "dtype"),),
    )

    def deduce(self, call: CallFacts) -> Info:
        """Return the given shape."""
        shape, dtype = call.dims(0), call.attributes.dtype("dtype")
        require_sizes(call, shape)
        call.require_in_range(1, dtype)
        size = const_value(product(shape))
        known = None if dtype.is_inexact else call.elements(1)
        elements = None
        if known is not None and size is not None and size <= MAX_ELEMENTS:
            elements = known * size
        return TensorInfo(shape, dtype, elements=elements)

    def evaluate(self, run: Evaluation) -> Array:
        """Create the array with NumPy."""
        return np.full(run.dims(0), run.number(1), run.dtype_of(run.attributes.dtype("dtype")))

    def define(self, low: Lowering) -> None:
        """Define one block that stores the number."""
        number = low.literal(1, low.out.dtype)
        low.builder.compute(low.out, lambda *_: number, name="full")


@operator
class Arange(Operator):
    """Create a vector of evenly spaced integers in ``[start, stop)``.

    Parameters
    ----------
    bounds : tuple of integers
        ``(start, stop, step)`` with a positive or negative ``step``.
    dtype : str, default "i64"
        The name of the dtype.

    Returns
    -------
    tensor
        Shape ``(max(ceildiv(stop - start, step), 0),)``, dtype `dtype`; the numbers are those in
        ``(stop, start]`` if ``step`` is negative.

    Raises
    ------
    OperandError
        If `bounds` does not have three integers, or the sign of ``step`` is not known.

    Notes
    -----
    NumPy: ``arange``; ONNX: ``Range``.

    Examples
    --------
    >>> Arange().reference(((0, 5, 2),))
    array([0, 2, 4])
    """

    name = "arange"
    signature = Signature(
        (OperandSpec("bounds", ("dims",)),), (AttributeSpec("dtype", "dtype", "i64"),)
    )

    def deduce(self, call: CallFacts) -> Info:
        """Return the number of steps as the shape."""
        dtype = call.attributes.dtype("dtype")
        start, stop, step = _bounds(call)
        falls = step.upper is not None and step.upper < 0
        size = ceildiv(start - stop, -step) if falls else ceildiv(stop - start, step)
        if size.lower is None or size.lower < 0:
            size = maximum(size, 0)
        count = const_value(size)
        elements = None
        if count is not None and count <= MAX_ELEMENTS and dtype.is_integer:
            elements = tuple(start + step * k for k in range(count))
        return TensorInfo((size,), dtype, elements=elements)

    def evaluate(self, run: Evaluation) -> Array:
        """Create the array with NumPy."""
        return np.arange(*run.dims(0)).astype(run.dtype_of(run.attributes.dtype("dtype")))

    def define(self, low: Lowering) -> None:
        """Define one block that stores the index."""
        start, _, step = _bounds(low.call)
        dtype = low.out.dtype

        def value(i: Expr) -> Element:
            return cast_to(dtype, Index(start + i * step, i64))

        low.builder.compute(low.out, value, name="arange")


def _bounds(call: CallFacts) -> tuple[Expr, Expr, Expr]:
    dims = call.dims(0)
    if len(dims) != 3:
        raise call.error(0, f"expected 3 integers (start, stop, step), got {len(dims)}")
    start, stop, step = dims
    if (step.lower is None or step.lower < 1) and (step.upper is None or step.upper > -1):
        raise call.error(0, f"expected a positive or a negative step, got {step}")
    return start, stop, step


@operator
class ShapeToTensor(Operator):
    """Create a vector of symbolic integers, for example of the shape of a tensor.

    Parameters
    ----------
    dims : tuple of integers
        The integers, ``k`` of them.

    Returns
    -------
    tensor
        Shape ``(k,)``, dtype i64; its symbolic element values are `dims`.

    Notes
    -----
    ONNX: ``Shape``.

    Examples
    --------
    >>> ShapeToTensor().reference(((2, 3),))
    array([2, 3])
    """

    name = "shape_to_tensor"
    signature = Signature((OperandSpec("dims", ("dims",)),))

    def deduce(self, call: CallFacts) -> Info:
        """Return the annotation with the integers as symbolic element values."""
        dims = call.dims(0)
        return TensorInfo((as_expr(len(dims)),), i64, elements=dims)

    def evaluate(self, run: Evaluation) -> Array:
        """Create the array with NumPy."""
        return np.asarray(run.dims(0), dtype=np.int64)

    def define(self, low: Lowering) -> None:
        """Define one block that selects an integer by index."""
        dims = low.call.dims(0)

        def value(i: Expr) -> Element:
            found: Element = Index(dims[-1] if dims else as_expr(0), i64)
            for k in reversed(range(len(dims) - 1)):
                found = Where(Condition(eq(i, k)), Index(dims[k], i64), found)
            return found

        low.builder.compute(low.out, value, name="shape_to_tensor")
