"""Lowering of loop-level functions to thread-level operations and polynomials."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ....errors import TilewrightError
from ....ir.dtype import f32
from ....ir.loop import nodes as loop
from ....ir.thread.nodes import Binary, Cast, Compare, Const, Select, Unary, Value
from ....ir.thread.types import VectorType
from .error import erf
from .exponential import exp, expm1, sigmoid, tanh
from .logarithm import log, log1p
from .number import Num
from .power import integer_power, pow_, rsqrt
from .remainder import floor_divide, modulo
from .trigonometric import atan2, cos, sin

_SPECIAL: Mapping[str, Callable[[Num], Num]] = {
    "exp": exp,
    "expm1": expm1,
    "log": log,
    "log1p": log1p,
    "rsqrt": rsqrt,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "erf": erf,
    "sin": sin,
    "cos": cos,
}
"""Functions that are computed by polynomials in single and double precision."""

_SPECIAL_PAIRS: Mapping[str, Callable[[Num, Num], Num]] = {
    "pow": pow_,
    "atan2": atan2,
    "floordiv": floor_divide,
    "mod": modulo,
}


class UndefinedFunctionError(TilewrightError):
    """An elementwise function that is not defined for a dtype."""

    title = "Undefined function"


def _type(value: Value) -> VectorType:
    if isinstance(value.type, VectorType):
        return value.type
    raise UndefinedFunctionError("elementwise functions are not defined for addresses")


def unary_function(op: loop.UnaryOp, x: Value) -> Value:
    """Apply a function of one element."""
    of = _type(x)
    match op:
        case "neg" | "abs" | "not" | "sqrt" | "floor" | "ceil" | "round" | "trunc" | "isnan":
            return x if op == "abs" and of.dtype.kind == "uint" else Unary(op, x)
        case "bitnot":
            return Unary("not", x)
        case "isinf":
            return _is_infinite(x, of)
        case "sign":
            return _sign(x, of)
        case _:
            if not of.dtype.is_float:
                raise UndefinedFunctionError(
                    f"function {op!r} is not defined for dtype {of.dtype}",
                    hint="cast the operand to a floating-point dtype",
                )
            return _in_single(_SPECIAL[op], x)


def _in_single(function: Callable[..., Num], *values: Value) -> Value:
    """Apply a function, in single precision with one final rounding for half precision."""
    of = _type(values[0])
    if of.dtype.bits != 16:
        return function(*(Num(v, of) for v in values)).value
    wide = VectorType(f32, of.lanes)
    return Cast(of, function(*(Num(Cast(wide, v), wide) for v in values)).value)


def _is_infinite(x: Value, of: VectorType) -> Value:
    if not of.dtype.is_float:
        return Compare("ne", x, x)
    return Compare("eq", Unary("abs", x), Const(float("inf"), of))


def _sign(x: Value, of: VectorType) -> Value:
    """Return -1, 0, or 1; NaN for NaN."""
    zero = Const(0, of)
    positive = Select(Compare("gt", x, zero), Const(1, of), x)
    return Select(Compare("lt", x, zero), Const(-1, of), positive)


def binary_function(op: loop.BinaryOp, x: Value, y: Value) -> Value:
    """Apply a function of two elements of one type."""
    of = _type(x)
    match op:
        case "add" | "sub" | "mul" | "div" | "min" | "max" | "and" | "or" | "xor" | "shl" | "shr":
            return Binary(op, x, y)
        case "floordiv" | "mod" if not of.dtype.is_float:
            return Binary(op, x, y)
        case "pow" if of.dtype.is_integer:
            return integer_power(Num(x, of), Num(y, of)).value
        case _:
            if not of.dtype.is_float:
                raise UndefinedFunctionError(
                    f"function {op!r} is not defined for dtype {of.dtype}",
                    hint="cast the operands to a floating-point dtype",
                )
            return _in_single(_SPECIAL_PAIRS[op], x, y)
