"""Import handlers of element-wise ONNX operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from ..dtype import DType, bool_, f64, i32, i64, u8
from ..loop.element_functions import named
from ..symbolic import as_expr, const_value, select
from .control_flow import Iteration, LoopForm, emit_loop
from .elementwise import (
    convert,
    elementwise,
    integer_power,
    rounded_once,
    truncated_quotient,
    where,
)
from .formulas import Formula
from .onnx_context import OnnxContext, onnx_op
from .onnx_file import onnx_dtype
from .shaping import reshape
from .tensors import Imported, Uniform
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


@onnx_op("Sum", "Mean")
def combined(c: OnnxContext) -> Imported:
    """Import the element-wise sum or mean of any number of tensors."""

    def compute(found: Imported, *others: Imported) -> Imported:
        for other in others:
            found = elementwise(c, "add", [found, other])
        if c.node.op_type == "Sum":
            return found
        return _scaled(c, found, 1 / (len(others) + 1))

    return rounded_once(c, compute, *c.given())


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
    return _quotient_of_sizes(c, x, y) or truncated_quotient(c, x, y)


def _quotient_of_sizes(c: OnnxContext, x: Imported, y: Imported) -> Imported | None:
    """Return quotients by a positive constant whose dividends are terms of any sign over sizes.

    They stay terms, so that shapes which contain them beside constants stay known.
    """
    dividends, divisors = c.elements(x), c.elements(y)
    if dividends is None or divisors is None or len(divisors) != 1 or x.rank > 1 or y.rank > x.rank:
        return None
    divisor = const_value(divisors[0])
    if divisor is None or divisor <= 0:
        return None
    found = [select(a >= 0, a // divisor, -((-a) // divisor)) for a in dividends]
    return convert(c, reshape(c, c.apply("shape_to_tensor", tuple(found)), x.shape), x.dtype)


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
    x, y = c.input(0), c.input(1)
    if x.dtype.is_integer and isinstance(y.known, Uniform) and float(y.known.value).is_integer():
        return integer_power(c, x, int(y.known.value))
    if not x.dtype.is_integer:
        return elementwise(c, "power", [x, convert(c, y, x.dtype)])
    if y.dtype.is_integer:
        return _integer_powers(c, x, y)
    wide = elementwise(c, "power", [convert(c, x, f64), convert(c, y, f64)])
    return convert(c, wide, x.dtype)


def _integer_powers(c: OnnxContext, x: Imported, y: Imported) -> Imported:
    """Return powers of integers, by squares; the result of a negative exponent is truncated."""
    shape = c.broadcast_shapes([x.shape, y.shape])
    base, exponent = (Formula(c, v).expand(*shape) for v in (x, convert(c, y, i64)))
    one = Formula(c, c.uniform(1, shape, x.dtype))

    def step(now: Iteration) -> tuple[list[Imported], list[Imported]]:
        found, square, left = (Formula(c, v) for v in now.carried)
        odd = left.apply("bitwise_and", 1).equal(1)
        after = left.apply("right_shift", 1)
        return [odd.choose(found * square, found, x.dtype).x, (square * square).x, after.x], []

    start = exponent.maximum(0)
    form = LoopForm([one.x, base.x, start.x], step, count=as_expr(63))
    found = Formula(c, emit_loop(c, form)[0])
    odd = exponent.apply("bitwise_and", 1).equal(1)
    unit = base.equal(1).choose(1, 0, x.dtype)
    if x.dtype.kind == "int":
        unit = base.equal(-1).choose(odd.choose(-1, 1, x.dtype), unit, x.dtype)
    return (exponent < 0).choose(unit, found, x.dtype).x


@onnx_op("Reciprocal")
def reciprocal(c: OnnxContext) -> Imported:
    """Import ``1 / x``."""
    x = c.input(0)
    return elementwise(c, "divide", [c.uniform(1.0, (), x.dtype), x])


@onnx_op("LeakyRelu", "ThresholdedRelu", "Elu", "Selu", "Celu", "PRelu", "Softplus", "Softsign",
         "HardSigmoid", "HardSwish", "Mish", "Shrink")  # fmt: skip
def activation(c: OnnxContext) -> Imported:
    """Import an activation function, computed in at least 32 bits and rounded once."""
    compute = _ACTIVATIONS[c.node.op_type]
    return rounded_once(c, lambda *operands: compute(c, *operands), *c.given())


def _attribute(c: OnnxContext, name: str, default: float) -> float:
    return float(c.attributes.get(name, default))


def _scaled(c: OnnxContext, x: Imported, factor: float, summand: float = 0.0) -> Imported:
    """Return ``x * factor + summand``."""
    found = elementwise(c, "multiply", [x, c.uniform(factor, (), x.dtype)])
    return elementwise(c, "add", [found, c.uniform(summand, (), x.dtype)])


def _clamped(c: OnnxContext, x: Imported, low: float, high: float) -> Imported:
    found = elementwise(c, "maximum", [x, c.uniform(low, (), x.dtype)])
    return elementwise(c, "minimum", [found, c.uniform(high, (), x.dtype)])


def _split(c: OnnxContext, x: Imported, negative: Imported, *, factor: float = 1.0) -> Imported:
    """Return ``factor * x`` for positive numbers, else another value."""
    zero = c.uniform(0.0, (), x.dtype)
    positive = x if factor == 1 else _scaled(c, x, factor)
    return where(c, elementwise(c, "less_equal", [x, zero]), negative, positive)


def _leaky(c: OnnxContext, x: Imported) -> Imported:
    return _split(c, x, _scaled(c, x, _attribute(c, "alpha", 0.01)))


def _thresholded(c: OnnxContext, x: Imported) -> Imported:
    alpha = c.uniform(_attribute(c, "alpha", 1.0), (), x.dtype)
    zero = c.uniform(0.0, x.shape, x.dtype)
    return where(c, elementwise(c, "less_equal", [x, alpha]), zero, x)


def _exponential(c: OnnxContext, x: Imported) -> Imported:
    """Return ``alpha * expm1(x / scale)`` for negative numbers; ``Celu`` scales by ``alpha``."""
    kind = c.node.op_type
    alpha = _attribute(c, "alpha", 1.67326319217681884765625 if kind == "Selu" else 1.0)
    gamma = _attribute(c, "gamma", 1.05070102214813232421875) if kind == "Selu" else 1.0
    inner = _scaled(c, x, 1 / alpha) if kind == "Celu" else x
    return _split(c, x, _scaled(c, elementwise(c, "expm1", [inner]), alpha * gamma), factor=gamma)


def _parametric(c: OnnxContext, x: Imported, slope: Imported) -> Imported:
    return _split(c, x, elementwise(c, "multiply", [x, slope]))


def _softplus(c: OnnxContext, x: Imported) -> Imported:
    """Return ``max(x, 0) + log1p(exp(-abs(x)))``, which does not overflow."""
    size = elementwise(c, "negative", [elementwise(c, "abs", [x])])
    rest = elementwise(c, "log1p", [elementwise(c, "exp", [size])])
    return elementwise(c, "add", [elementwise(c, "relu", [x]), rest])


def _softsign(c: OnnxContext, x: Imported) -> Imported:
    return elementwise(c, "divide", [x, _scaled(c, elementwise(c, "abs", [x]), 1.0, 1.0)])


def _hard_sigmoid(c: OnnxContext, x: Imported) -> Imported:
    swish = c.node.op_type == "HardSwish"
    alpha = 1 / 6 if swish else _attribute(c, "alpha", 0.2)
    gate = _clamped(c, _scaled(c, x, alpha, _attribute(c, "beta", 0.5)), 0.0, 1.0)
    return elementwise(c, "multiply", [x, gate]) if swish else gate


def _mish(c: OnnxContext, x: Imported) -> Imported:
    return elementwise(c, "multiply", [x, elementwise(c, "tanh", [_softplus(c, x)])])


def _shrink(c: OnnxContext, x: Imported) -> Imported:
    limit, bias = _attribute(c, "lambd", 0.5), _attribute(c, "bias", 0.0)
    zero = c.uniform(0.0, x.shape, x.dtype)
    above = elementwise(c, "greater", [x, c.uniform(limit, (), x.dtype)])
    below = elementwise(c, "less", [x, c.uniform(-limit, (), x.dtype)])
    inner = where(c, below, _scaled(c, x, 1.0, bias), zero)
    return where(c, above, _scaled(c, x, 1.0, -bias), inner)


_ACTIVATIONS: Final[dict[str, Callable[..., Imported]]] = {
    "LeakyRelu": _leaky, "ThresholdedRelu": _thresholded, "Elu": _exponential,
    "Selu": _exponential, "Celu": _exponential, "PRelu": _parametric, "Softplus": _softplus,
    "Softsign": _softsign, "HardSigmoid": _hard_sigmoid, "HardSwish": _hard_sigmoid,
    "Mish": _mish, "Shrink": _shrink,
}  # fmt: skip


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
    for position, name, op in ((1, "min", "maximum"), (2, "max", "minimum")):
        if c.opset < 11:
            given = c.attributes.get(name)
            bound = None if given is None else c.uniform(given, (), found.dtype)
        else:
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
    """Convert the input; numbers beyond the largest 8-bit float saturate unless it is stated.

    Numbers beyond the range of packed integers wrap, as in ONNX, also floats.
    """
    x, narrow = c.input(0), dtype.is_float and not dtype.is_machine
    saturate = bool(c.integer("saturate", 1)) if narrow else None
    if dtype.is_packed and dtype.is_integer and x.dtype.is_float:
        x = convert(c, x, i32)
    return convert(c, x, dtype, saturate=saturate)


@onnx_op("Where")
def where_(c: OnnxContext) -> Imported:
    """Import the element-wise selection."""
    return where(c, c.input(0), c.input(1), c.input(2))


@onnx_op("Identity")
def identity(c: OnnxContext) -> Imported:
    """Return the input."""
    return c.input(0)


@onnx_op("BitCast")
def bitcast(c: OnnxContext) -> Imported:
    """Import the bits of elements as another dtype; bool is stored as one byte of 0 or 1."""
    x, dtype = c.input(0), onnx_dtype(c.integer("to"), "BitCast")
    x = convert(c, x, u8) if x.dtype is bool_ else x
    if dtype is bool_:
        return elementwise(c, "not_equal", [c.tensor(c.emit("bitcast", c.plain(x), dtype="u8")),
                                            c.uniform(0, (), u8)])  # fmt: skip
    return c.apply("bitcast", c.plain(x), dtype=dtype.name)
