"""Import handlers of the quantization operators of ONNX."""

from __future__ import annotations

from ..dtype import BYTE, DType, f32, u8
from ..graph.builder import Argument
from ..graph.operators.quantization import is_quantized, quotient_dtype
from ..symbolic import const_value
from .elementwise import convert, elementwise, where
from .onnx_compound import integer_product
from .onnx_context import OnnxContext, onnx_op
from .onnx_file import onnx_dtype
from .onnx_schema import malformed
from .shaping import expand_dims
from .tensors import Imported, Uniform
from .unsupported import UnsupportedFormError

_UNDEFINED = 0


@onnx_op("QuantizeLinear", "com.microsoft.QuantizeLinear")
def quantize_linear(c: OnnxContext) -> Imported:
    """Import quantization; the dtype is that of the zero point, u8 without one."""
    x, scale, zero = c.input(0), c.input(1), c.optional(2)
    given = _dtype(c, "output_dtype")
    target = given or (u8 if zero is None else zero.dtype)
    if zero is not None and zero.dtype != target:
        raise malformed(
            c.node, f"output_dtype is {target}, but the zero point has dtype {zero.dtype}"
        )
    precision = _dtype(c, "precision") or quotient_dtype(x.dtype, scale.dtype)
    layout = _layout(c, x, scale)
    saturate = bool(c.integer("saturate", 1))
    operands = [c.plain(x), _single(c, scale), *_zero_point(c, zero)]
    return c.apply(
        "quantize_linear", *operands, dtype=target.name, axis=layout[0], block_size=layout[1],
        saturate=saturate, precision=precision.name,
    )  # fmt: skip


@onnx_op("DequantizeLinear", "com.microsoft.DequantizeLinear")
def dequantize_linear(c: OnnxContext) -> Imported:
    """Import dequantization to the dtype of the scale, or to ``output_dtype``."""
    x, scale = c.input(0), c.input(1)
    target = _dtype(c, "output_dtype") or scale.dtype
    zero = c.optional(2)
    if zero is not None and zero.dtype != x.dtype:
        raise malformed(
            c.node, f"the operand has dtype {x.dtype}, but the zero point has dtype {zero.dtype}"
        )
    operands = [c.plain(x), _single(c, scale), *_zero_point(c, zero)]
    axis, block = _layout(c, x, scale)
    return c.apply("dequantize_linear", *operands, axis=axis, block_size=block, dtype=target.name)


@onnx_op("DynamicQuantizeLinear")
def dynamic_quantize_linear(c: OnnxContext) -> list[Imported]:
    """Import quantization to u8 with the scale and zero point of the range of the elements."""
    x = c.input(0)
    zero, most = c.uniform(0, (), f32), c.uniform(u8.highest, (), f32)
    high = elementwise(c, "maximum", [c.apply("max", c.plain(x)), zero])
    low = elementwise(c, "minimum", [c.apply("min", c.plain(x)), zero])
    extent = elementwise(c, "subtract", [high, low])
    constant = elementwise(c, "equal", [high, low])
    extent = where(c, constant, c.uniform(1, (), f32), extent)
    scale = elementwise(c, "divide", [extent, most])
    start = elementwise(c, "subtract", [zero, elementwise(c, "divide", [low, scale])])
    start = elementwise(c, "minimum", [elementwise(c, "maximum", [start, zero]), most])
    point = convert(c, elementwise(c, "round", [start]), u8)
    operands = (c.plain(v) for v in (x, scale, point))
    return [c.apply("quantize_linear", *operands, dtype=u8.name), scale, point]


@onnx_op("QLinearMatMul")
def qlinear_matmul(c: OnnxContext) -> Imported:
    """Import the product of quantized matrices: in 32-bit integers, then quantized again.

    The product of the scales is computed in f32.
    """
    a, b, zero = c.input(0), c.input(3), c.input(7)
    for x in (a, b, zero):
        if not x.dtype.is_integer or x.dtype.bits != BYTE:
            raise UnsupportedFormError(
                f"QLinearMatMul of dtype {x.dtype} is not supported; only i8 and u8 are",
                hint="dequantize the operands, and multiply them with MatMul",
            )
    sums = convert(c, integer_product(c, a, b, (2, 5)), f32)
    of_a, of_b, of_y = (convert(c, c.input(k), f32) for k in (1, 4, 6))
    factor = elementwise(c, "multiply", [_rows(c, of_a), of_b])
    factor = elementwise(c, "divide", [factor, _rows(c, of_y)])
    scaled = elementwise(c, "multiply", [sums, factor])
    one = c.uniform(1.0, (), f32)
    operands = [c.plain(scaled), c.factor(one), *_zero_point(c, zero)]
    return c.apply("quantize_linear", *operands, dtype=zero.dtype.name, axis=scaled.rank - 2)


def _rows(c: OnnxContext, x: Imported) -> Imported:
    """Return a vector with one element per row as a column."""
    return expand_dims(c, x, (1,)) if x.rank == 1 and not _is_single(x) else x


def _dtype(c: OnnxContext, name: str) -> DType | None:
    """Return a dtype attribute; None if it is absent."""
    number = c.integer(name, _UNDEFINED)
    return onnx_dtype(number, f"attribute {name!r}") if number != _UNDEFINED else None


def _layout(c: OnnxContext, x: Imported, scale: Imported) -> tuple[int, int]:
    """Return the axis and the size of blocks; the defaults for one scale, which has neither."""
    block = c.integer("block_size", 0)
    if block < 0:
        raise malformed(c.node, f"block_size must be at least 0, got {block}")
    axis = c.integer("axis", 1)
    if _is_single(scale):
        return 1, 0
    if not -x.rank <= axis < x.rank:
        raise malformed(c.node, f"axis {axis} is out of range for rank {x.rank}")
    return axis % x.rank, block


def _is_single(x: Imported) -> bool:
    return x.rank == 0 or (x.rank == 1 and const_value(x.shape[0]) == 1)


def _single(c: OnnxContext, x: Imported) -> Argument:
    """Return a number for one known scale or zero point, else a tensor."""
    return c.factor(x) if _is_single(x) else c.plain(x)


def _zero_point(c: OnnxContext, zero: Imported | None) -> list[Argument]:
    """Return the operand of a zero point, if there is one; that of 8-bit floats must be 0."""
    known = zero.known if zero is not None else None
    if zero is None or (isinstance(known, Uniform) and known.value == 0):
        return []
    if zero.dtype.is_float:
        if isinstance(known, Uniform):
            raise malformed(
                c.node, f"the zero point of dtype {zero.dtype} must be 0, got {known.value}"
            )
        return []
    if not is_quantized(zero.dtype):
        raise malformed(c.node, f"a zero point cannot have dtype {zero.dtype}")
    return [_single(c, zero)]
