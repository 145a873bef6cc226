"""Import handlers of functions of elements in PyTorch that are several operators."""

from __future__ import annotations

import math

from ..dtype import bool_, f32, f64, i32, i64
from .elementwise import convert, elementwise, rounded_once, where
from .formulas import Formula
from .tensors import Imported
from .torch_context import OperandLike, TorchContext, aten
from .unsupported import UnsupportedFormError


@aten("bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__")
def shift(t: TorchContext, x: OperandLike, y: OperandLike) -> Imported:
    """Import shifts of integers."""
    op = "left_shift" if t.operator in ("bitwise_left_shift", "__lshift__") else "right_shift"
    dtype = t.result_dtype()
    if not dtype.is_integer:
        raise UnsupportedFormError(f"shifts are supported for integers only, not for {dtype}")
    return elementwise(t, op, [convert(t, t.number(v, dtype), dtype) for v in (x, y)])


@aten("fmax", "fmin")
def extreme_number(t: TorchContext, x: Imported, y: Imported) -> Imported:
    """Import the maximum or minimum of the operands that are not NaN."""
    dtype = t.result_dtype()
    left, right = (convert(t, v, dtype) for v in (x, y))
    found = elementwise(t, "maximum" if t.operator == "fmax" else "minimum", [left, right])
    if not dtype.is_float:
        return found
    for number, other in ((left, right), (right, left)):
        found = where(t, elementwise(t, "isnan", [other]), number, found)
    return found


@aten("ldexp")
def ldexp(t: TorchContext, x: OperandLike, y: OperandLike) -> Imported:
    """Import ``x * 2**y``, two operators in PyTorch too."""
    dtype = t.result_dtype()
    left, right = (convert(t, t.number(v, dtype), dtype) for v in (x, y))
    return elementwise(t, "multiply", [left, elementwise(t, "exp2", [right])])


@aten("frac")
def frac(t: TorchContext, x: Imported) -> Imported:
    """Import the fraction, ``x - trunc(x)``."""
    return elementwise(t, "subtract", [x, elementwise(t, "trunc", [x])])


@aten("signbit")
def signbit(t: TorchContext, x: Imported) -> Imported:
    """Import whether the sign bit is set, which it is for -0.0."""
    if x.dtype.is_float:
        x = elementwise(t, "copysign", [t.uniform(1.0, (), x.dtype), x])
    return elementwise(t, "less", [x, t.uniform(0, (), x.dtype)])


@aten("isposinf", "isneginf")
def infinite_with_sign(t: TorchContext, x: Imported) -> Imported:
    """Import whether numbers are infinite with one sign."""
    if not x.dtype.is_float:
        return t.uniform(value=False, shape=x.shape, dtype=bool_)
    bound = math.inf if t.operator == "isposinf" else -math.inf
    return elementwise(t, "equal", [x, t.uniform(bound, (), x.dtype)])


@aten("isfinite")
def isfinite(t: TorchContext, x: Imported) -> Imported:
    """Import whether numbers are neither infinite nor NaN."""
    if not x.dtype.is_float:
        return t.uniform(value=True, shape=x.shape, dtype=bool_)
    size = elementwise(t, "abs", [x])
    return elementwise(t, "less", [size, t.uniform(math.inf, (), x.dtype)])


@aten("logaddexp")
def logaddexp(t: TorchContext, x: Imported, y: Imported) -> Imported:
    """Import the logarithm of a sum of two exponentials; equal infinities are the result."""
    dtype = t.result_dtype()

    def compute(a: Imported, b: Imported) -> Imported:
        top = elementwise(t, "maximum", [a, b])
        distance = elementwise(t, "abs", [elementwise(t, "subtract", [a, b])])
        power = elementwise(t, "exp", [elementwise(t, "negative", [distance])])
        found = elementwise(t, "add", [top, elementwise(t, "log1p", [power])])
        return where(t, elementwise(t, "isinf", [top]), top, found)

    return rounded_once(t, compute, *(convert(t, v, dtype) for v in (x, y)))


@aten("xlogy", "special_xlogy")
def xlogy(t: TorchContext, x: OperandLike, y: OperandLike) -> Imported:
    """Import ``x * log(y)``, which is 0 for ``x = 0`` unless ``y`` is NaN."""
    dtype = t.result_dtype()

    def compute(a: Imported, b: Imported) -> Imported:
        zero = elementwise(t, "equal", [a, t.uniform(0.0, (), a.dtype)])
        product = elementwise(t, "multiply", [a, elementwise(t, "log", [b])])
        found = where(t, zero, t.uniform(0.0, product.shape, product.dtype), product)
        return where(t, elementwise(t, "isnan", [b]), b, found)

    left, right = (convert(t, t.number(v, dtype), dtype) for v in (x, y))
    return rounded_once(t, compute, left, right)


@aten("frexp")
def frexp(t: TorchContext, x: Imported) -> list[Imported]:
    """Import the fraction in [1/2, 1) and the exponent of 2 of floating-point numbers.

    The exponent is read from the bits in f32 or f64; numbers below the normal ones are scaled.
    """
    wide, word = (f64, i64) if x.dtype == f64 else (f32, i32)
    top, limit = wide.mantissa, 1 << (wide.exponent - 1)
    given = Formula(t, convert(t, x, wide))
    size = given.apply("abs")
    scaled = size < math.ldexp(1.0, 2 - limit)
    value = scaled.choose(given * math.ldexp(1.0, top + 2), given, wide)
    bits = value.call("bitcast", dtype=word.name)
    power = bits.apply("right_shift", top) % (2 * limit) - (limit - 2)
    part = (bits - power.apply("left_shift", top)).call("bitcast", dtype=wide.name)
    power = power - scaled.choose(top + 2, 0, word)
    plain = size.equal(0.0) | (size < math.inf).apply("logical_not")
    return [
        plain.choose(given, part, wide).to(x.dtype).x,
        plain.choose(0, power, word).to(i32).x,
    ]
