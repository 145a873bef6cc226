"""Import handlers of matrix products and normalization operators of ONNX."""

from __future__ import annotations

from ..dtype import f32, f64, i32
from .elementwise import convert, elementwise, weighted_sum
from .formulas import Formula
from .onnx_context import OnnxContext, onnx_op
from .shaping import axis_of, expand_dims, permute, squeeze
from .tensors import Imported, Uniform
from .unsupported import UnsupportedFormError

MATRIX = 2
"""The rank of a matrix."""


@onnx_op("MatMul")
def matmul(c: OnnxContext) -> Imported:
    """Import a matrix product; a vector is a row on the left and a column on the right."""
    x, y = c.input(0), c.input(1)
    left = expand_dims(c, x, (0,)) if x.rank == 1 else x
    right = expand_dims(c, y, (1,)) if y.rank == 1 else y
    found = c.apply("matmul", c.plain(left), c.plain(right), name=c.leaf(x, y))
    dropped = [-2] * (x.rank == 1) + [-1] * (y.rank == 1)
    return squeeze(c, found, dropped) if dropped else found


@onnx_op("MatMulInteger")
def matmul_integer(c: OnnxContext) -> Imported:
    """Import ``(a - a_zero_point) @ (b - b_zero_point)`` of 8-bit integers in 32 bits."""
    return integer_product(c, c.input(0), c.input(1), (2, 3))


def integer_product(c: OnnxContext, a: Imported, b: Imported, zeros: tuple[int, int]) -> Imported:
    """Return the product of 8-bit integers less their zero points, the inputs ``zeros``.

    The product itself is computed on the 8-bit operands. Each zero point then subtracts itself
    times a sum over the columns of ``b`` or the rows of ``a``.
    """
    if min(a.rank, b.rank) < MATRIX:
        raise UnsupportedFormError(
            f"{c.node.op_type} of a vector is not supported; operand ranks are {a.rank} and "
            f"{b.rank}, but must be at least {MATRIX}",
            hint="add a dimension of size 1",
        )
    found = c.apply("matmul_integer", c.plain(a), c.plain(b), name=c.leaf(a, b))
    of_a, of_b = _zero_point(c, zeros[0], rows=True), _zero_point(c, zeros[1], rows=False)
    if of_a is not None:
        found = elementwise(c, "subtract", [found, _times_sum(c, of_a, convert(c, b, i32), -2)])
    if of_b is not None:
        left = convert(c, a, i32)
        left = left if of_a is None else elementwise(c, "subtract", [left, of_a])
        found = elementwise(c, "subtract", [found, _times_sum(c, of_b, left, -1)])
    return found


def _zero_point(c: OnnxContext, position: int, *, rows: bool) -> Imported | None:
    """Return a zero point as i32, as a column if there is one per row; None if absent or 0."""
    zero = c.optional(position)
    if zero is None or (isinstance(zero.known, Uniform) and zero.known.value == 0):
        return None
    wide = convert(c, zero, i32)
    return expand_dims(c, wide, (1,)) if rows and wide.rank == 1 else wide


def _times_sum(c: OnnxContext, zero: Imported, values: Imported, axis: int) -> Imported:
    total = c.apply("sum", c.plain(values), axes=(axis,), keepdims=True)
    return elementwise(c, "multiply", [total, zero])


@onnx_op("Gemm")
def gemm(c: OnnxContext) -> Imported:
    """Import ``alpha * a @ b + beta * c`` with optional transposes."""
    a, b = c.input(0), c.input(1)
    a = permute(c, a, (1, 0)) if c.integer("transA", 0) else a
    b = permute(c, b, (1, 0)) if c.integer("transB", 0) else b
    found = c.apply("matmul", c.plain(a), c.plain(b), name=c.leaf(a, b))
    alpha, beta = c.attributes.get("alpha", 1.0), c.attributes.get("beta", 1.0)
    bias = c.optional(2)
    if bias is not None:
        return weighted_sum(c, found, alpha, bias, beta)
    if alpha == 1:
        return found
    return elementwise(c, "multiply", [found, c.uniform(alpha, (), found.dtype)])


@onnx_op("Softmax", "LogSoftmax")
def softmax(c: OnnxContext) -> Imported:
    """Import the softmax or its logarithm.

    Before opset 13, the softmax is taken over all dimensions from the axis on.
    """
    x = c.input(0)
    axis = axis_of(c.integer("axis", -1 if c.opset >= 13 else 1), x.rank)
    if c.opset < 13 and axis != x.rank - 1:
        raise UnsupportedFormError(
            f"axis={axis} in opset {c.opset} means a softmax over several dimensions; only the "
            f"last axis, {x.rank - 1}, is supported below opset 13"
        )
    op = "softmax" if c.node.op_type == "Softmax" else "log_softmax"
    return c.apply(op, c.plain(x), axis=axis)


@onnx_op("LayerNormalization")
def layer_norm(c: OnnxContext) -> list[Imported]:
    """Import layer normalization, with the mean and the inverse deviation if they are used."""
    x = c.input(0)
    first = axis_of(c.integer("axis", -1), x.rank)
    factors = [c.plain(v) for v in c.given()[1:]]
    epsilon = float(c.attributes.get("epsilon", 1e-5))
    found = c.emit(
        "layer_norm",
        c.plain(x),
        *factors,
        name=c.leaf(*c.given()),
        epsilon=epsilon,
        axes=x.rank - first,
    )
    if not any(c.node.output[1:]):
        return [c.tensor(found)]
    axes = tuple(range(first, x.rank))
    wide = Formula(c, x).to(f64 if x.dtype is f64 else f32)
    mean = wide.reduce("mean", *axes, keepdims=True)
    distance = wide - mean
    variance = (distance * distance).reduce("mean", *axes, keepdims=True)
    inverse = (variance + epsilon).apply("rsqrt")
    return [c.tensor(found), mean.x, inverse.x]


@onnx_op("RMSNormalization", "SimplifiedLayerNormalization")
def rms_norm(c: OnnxContext) -> list[Imported]:
    """Import the division of rows by their root mean square."""
    x = c.input(0)
    axes = x.rank - axis_of(c.integer("axis", -1), x.rank)
    factors = [c.plain(v) for v in c.given()[1:]]
    epsilon = float(c.attributes.get("epsilon", 1e-5))
    found = c.emit(
        "rms_norm", c.plain(x), *factors, name=c.leaf(*c.given()), epsilon=epsilon, axes=axes
    )
    return [c.tensor(found)]
