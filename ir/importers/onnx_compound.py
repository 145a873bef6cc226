"""Import handlers of matrix products, reductions, and normalization operators of ONNX."""

from __future__ import annotations

from collections.abc import Callable

from ..dtype import i32
from ..graph.nodes import Value
from ..symbolic import as_expr
from .elementwise import convert, elementwise, rounded_once, weighted_sum, where
from .onnx_context import OnnxContext, onnx_op
from .shaping import axis_of, expand_dims, permute, squeeze
from .tensors import Imported, Uniform
from .unsupported import UnsupportedFormError

_REDUCTIONS = {
    "ReduceSum": "sum", "ReduceMean": "mean", "ReduceMax": "max", "ReduceMin": "min",
    "ReduceProd": "prod",
}  # fmt: skip
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
    """Import layer normalization; the optional mean and deviation outputs are not supported."""
    x = c.input(0)
    axes = x.rank - axis_of(c.integer("axis", -1), x.rank)
    factors = [c.plain(v) for v in c.given()[1:]]
    epsilon = float(c.attributes.get("epsilon", 1e-5))
    found = c.emit(
        "layer_norm", c.plain(x), *factors, name=c.leaf(*c.given()), epsilon=epsilon, axes=axes
    )
    return [c.tensor(found)]


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


@onnx_op(*_REDUCTIONS)
def reduction(c: OnnxContext) -> Imported:
    """Import a reduction; without axes, it is over all dimensions."""
    x = c.input(0)
    input_since = 13 if c.node.op_type == "ReduceSum" else 18
    axes = c.axes(1, attribute_below=input_since)
    if not axes and c.integer("noop_with_empty_axes", 0):
        return x
    op = _REDUCTIONS[c.node.op_type]
    keepdims = bool(c.integer("keepdims", 1))
    return c.apply(op, c.plain(x), axes=tuple(axes or ()), keepdims=keepdims)


@onnx_op("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
def norm_reduction(c: OnnxContext) -> Imported:
    """Import a norm, or the logarithm of a sum; without axes, it is over all dimensions."""
    x, kind = c.input(0), c.node.op_type.removeprefix("Reduce")
    given = c.axes(1, attribute_below=18)
    if not given and c.integer("noop_with_empty_axes", 0):
        axes: tuple[int, ...] = ()
    else:
        axes = tuple(axis_of(a, x.rank) for a in given or range(x.rank))
    keepdims = bool(c.integer("keepdims", 1))

    def total(y: Imported) -> Imported:
        return c.apply("sum", c.plain(y), axes=axes, keepdims=True) if axes else y

    def compute(y: Imported) -> Imported:
        match kind:
            case "L1":
                found = total(elementwise(c, "abs", [y]))
            case "L2":
                found = elementwise(c, "sqrt", [total(elementwise(c, "multiply", [y, y]))])
            case "SumSquare":
                found = total(elementwise(c, "multiply", [y, y]))
            case "LogSum":
                found = elementwise(c, "log", [total(y)])
            case _:
                found = _log_sum_exp(c, y, axes, total)
        return found if keepdims or not axes else squeeze(c, found, axes)

    return rounded_once(c, compute, x)


def _log_sum_exp(
    c: OnnxContext, x: Imported, axes: tuple[int, ...], total: Callable[[Imported], Imported]
) -> Imported:
    """Return the logarithm of a sum of exponentials; an infinite maximum is the result."""
    if not x.dtype.is_inexact:
        return elementwise(c, "log", [total(elementwise(c, "exp", [x]))])
    top = c.apply("max", c.plain(x), axes=axes, keepdims=True) if axes else x
    start = where(c, elementwise(c, "isinf", [top]), c.uniform(0.0, top.shape, top.dtype), top)
    powers = elementwise(c, "exp", [elementwise(c, "subtract", [x, start])])
    return elementwise(c, "add", [elementwise(c, "log", [total(powers)]), start])


@onnx_op("ArgMax", "ArgMin")
def arg_extreme(c: OnnxContext) -> Imported:
    """Import the index of the first maximum or minimum."""
    if c.integer("select_last_index", 0):
        raise UnsupportedFormError(
            "select_last_index=1 is not supported; only select_last_index=0 is"
        )
    x = c.input(0)
    op = "argmax" if c.node.op_type == "ArgMax" else "argmin"
    keepdims = bool(c.integer("keepdims", 1))
    return c.apply(op, c.plain(x), axis=axis_of(c.integer("axis", 0), x.rank), keepdims=keepdims)


@onnx_op("CumSum")
def cumsum(c: OnnxContext) -> Imported:
    """Import a running sum, from the end if it is reversed, without the element if exclusive."""
    x = c.input(0)
    (position,) = c.fixed(c.input(1))
    axis = axis_of(position, x.rank)
    reverse = bool(c.integer("reverse", 0))
    operand = c.plain(x)
    if reverse:
        operand = c.emit("flip", operand, axes=(axis,))
    if c.integer("exclusive", 0):
        operand = _after_zero(c, c.tensor(operand), axis)
    found = c.apply("cumsum", operand, axis=axis)
    if c.integer("exclusive", 0):
        size = x.shape[axis]
        found = c.apply("strided_slice", c.plain(found), (0,), (size,), axes=(axis,))
    return c.apply("flip", c.plain(found), axes=(axis,)) if reverse else found


def _after_zero(c: OnnxContext, x: Imported, axis: int) -> Value:
    """Return a tensor with a zero in front of the elements along an axis."""
    shape = tuple(as_expr(1) if k == axis else d for k, d in enumerate(x.shape))
    return c.emit("concat", c.plain(c.uniform(0, shape, x.dtype)), c.plain(x), axis=axis)
