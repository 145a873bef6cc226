"""Import handlers of element-wise ONNX operators."""

from __future__ import annotations

import math

from ..dtype import DType, bool_
from ..loop.element_functions import named
from .elementwise import convert, elementwise, truncated_quotient, where
from .onnx_context import OnnxContext, onnx_op
from .onnx_file import onnx_dtype
from .tensors import Imported
from .unsupported import UnsupportedFormError

_FUNCTIONS = named("onnx")
_UNARY = {
    **{name: f.names.operator for name, f in _FUNCTIONS.items() if f.arity == 1},
    "Relu": "relu",
}
_BINARY = {
    **{name: f.names.operator for name, f in _FUNCTIONS.items() if f.arity == 2},
    "Equal": "equal", "Less": "less", "LessOrEqual": "less_equal", "Greater": "greater",
    "GreaterOrEqual": "greater_equal", "And": "logical_and", "Or": "logical_or",
    "Xor": "logical_xor",
}  # fmt: skip


@onnx_op(*_UNARY)
def unary(c: OnnxContext) -> Imported:
    """Import a unary element-wise operator."""
    return elementwise(c, _UNARY[c.node.op_type], [c.input(0)])


@onnx_op(*_BINARY)
def binary(c: OnnxContext) -> Imported:
    """Import a binary element-wise operator."""
    return elementwise(c, _BINARY[c.node.op_type], [c.input(0), c.input(1)])


@onnx_op("Max", "Min")
def extreme(c: OnnxContext) -> Imported:
    """Import the element-wise maximum or minimum of any number of tensors."""
    op = "maximum" if c.node.op_type == "Max" else "minimum"
    found, *others = c.given()
    for other in others:
        found = elementwise(c, op, [found, other])
    return found


@onnx_op("Div")
def divide(c: OnnxContext) -> Imported:
    """Import division.

    ONNX truncates integer quotients, which equals floor division for non-negative operands, such as
    sizes.
    """
    x, y = c.input(0), c.input(1)
    if x.dtype.is_inexact:
        return elementwise(c, "divide", [x, y])
    if _is_non_negative(c, x) and _is_non_negative(c, y):
        return elementwise(c, "floor_divide", [x, y])
    return truncated_quotient(c, x, y)


def _is_non_negative(c: OnnxContext, x: Imported) -> bool:
    """Return whether elements are known from shapes and not negative."""
    try:
        return all(v.lower is not None and v.lower >= 0 for v in c.values(x))
    except UnsupportedFormError:
        return False


@onnx_op("Mod")
def modulo(c: OnnxContext) -> Imported:
    """Import the remainder with the sign of the divisor, or of the dividend for ``fmod=1``."""
    op = "fmod" if c.integer("fmod", 0) else "mod"
    return elementwise(c, op, [c.input(0), c.input(1)])


@onnx_op("BitShift")
def shift(c: OnnxContext) -> Imported:
    """Import shifts of unsigned integers."""
    op = "left_shift" if c.attributes.get("direction") == "LEFT" else "right_shift"
    return elementwise(c, op, [c.input(0), c.input(1)])


@onnx_op("IsInf")
def isinf(c: OnnxContext) -> Imported:
    """Import whether numbers are infinite, with one sign or with both."""
    x, signs = c.input(0), (c.integer("detect_negative", 1), c.integer("detect_positive", 1))
    if all(signs):
        return elementwise(c, "isinf", [x])
    if not any(signs):
        return c.uniform(value=False, shape=x.shape, dtype=bool_)
    bound = c.uniform(math.inf if signs[1] else -math.inf, (), x.dtype)
    return elementwise(c, "equal", [x, bound])


@onnx_op("Pow")
def power(c: OnnxContext) -> Imported:
    """Import the power; the exponent is converted to the dtype of the base."""
    x = c.input(0)
    return elementwise(c, "power", [x, convert(c, c.input(1), x.dtype)])


@onnx_op("Reciprocal")
def reciprocal(c: OnnxContext) -> Imported:
    """Import ``1 / x``."""
    x = c.input(0)
    return elementwise(c, "divide", [c.uniform(1.0, (), x.dtype), x])


@onnx_op("Gelu")
def gelu(c: OnnxContext) -> Imported:
    """Import the Gaussian error linear unit."""
    x = c.input(0)
    kind = c.attributes.get("approximate", "none")
    return Imported(x.shape, x.dtype, c.emit("gelu", c.compact(x), approximate=kind))


@onnx_op("Clip")
def clip(c: OnnxContext) -> Imported:
    """Import clamping to a range."""
    found = c.input(0)
    for position, op in ((1, "maximum"), (2, "minimum")):
        bound = c.optional(position)
        if bound is not None:
            found = elementwise(c, op, [found, bound])
    return found


@onnx_op("Cast")
def cast(c: OnnxContext) -> Imported:
    """Import a conversion to another dtype."""
    return _converted(c, onnx_dtype(c.integer("to"), "Cast"))


@onnx_op("CastLike")
def cast_like(c: OnnxContext) -> Imported:
    """Import a conversion to the dtype of another tensor."""
    return _converted(c, c.input(1).dtype)


def _converted(c: OnnxContext, dtype: DType) -> Imported:
    """Convert the input; numbers beyond the largest 8-bit float saturate unless it is stated."""
    narrow = dtype.is_float and not dtype.is_machine
    saturate = bool(c.integer("saturate", 1)) if narrow else None
    return convert(c, c.input(0), dtype, saturate=saturate)


@onnx_op("Where")
def where_(c: OnnxContext) -> Imported:
    """Import the element-wise selection."""
    return where(c, c.input(0), c.input(1), c.input(2))


@onnx_op("Identity", "Dropout")
def identity(c: OnnxContext) -> Imported:
    """Return the input; dropout is the identity in inference."""
    training = c.optional(2)
    if c.node.op_type == "Dropout" and training is not None and c.fixed(training) != (0,):
        raise UnsupportedFormError(
            "dropout in training mode is not supported; only inference mode is"
        )
    return c.input(0)
