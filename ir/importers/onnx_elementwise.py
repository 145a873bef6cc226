"""Import handlers of element-wise ONNX operators."""

from __future__ import annotations

from .elementwise import convert, elementwise, where
from .onnx_context import OnnxContext, onnx_op
from .onnx_file import onnx_dtype
from .tensors import Imported
from .unsupported import UnsupportedFormError

_UNARY = {
    "Neg": "negative", "Abs": "abs", "Sign": "sign", "Exp": "exp", "Log": "log", "Sqrt": "sqrt",
    "Sigmoid": "sigmoid", "Tanh": "tanh", "Erf": "erf", "Sin": "sin", "Cos": "cos",
    "Floor": "floor", "Ceil": "ceil", "Round": "round", "Relu": "relu", "Not": "logical_not",
    "IsNaN": "isnan", "BitwiseNot": "bitwise_not",
}  # fmt: skip
_BINARY = {
    "Add": "add", "Sub": "subtract", "Mul": "multiply", "Equal": "equal", "Less": "less",
    "LessOrEqual": "less_equal", "Greater": "greater", "GreaterOrEqual": "greater_equal",
    "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor", "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor",
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

    ONNX truncates integer quotients, which equals floor division for non-negative operands.
    """
    x, y = c.input(0), c.input(1)
    if x.dtype.is_float:
        return elementwise(c, "divide", [x, y])
    if any(v.lower is None or v.lower < 0 for v in (*c.values(x), *c.values(y))):
        raise UnsupportedFormError(
            "integer division truncates toward zero, which is supported only for operands that "
            "are known to be non-negative"
        )
    return elementwise(c, "floor_divide", [x, y])


@onnx_op("Mod")
def modulo(c: OnnxContext) -> Imported:
    """Import the remainder with the sign of the divisor."""
    if c.integer("fmod", 0):
        raise UnsupportedFormError("fmod=1 is not supported; only fmod=0 is")
    return elementwise(c, "mod", [c.input(0), c.input(1)])


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
    return convert(c, c.input(0), onnx_dtype(c.integer("to"), "Cast"))


@onnx_op("CastLike")
def cast_like(c: OnnxContext) -> Imported:
    """Import a conversion to the dtype of another tensor."""
    return convert(c, c.input(0), c.input(1).dtype)


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
