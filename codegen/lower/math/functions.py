"""Which loop-level functions are operations of the thread level, and what the others become."""

from __future__ import annotations

from ....ir.errors import TilewrightError
from ....ir.loop import nodes as loop
from ....ir.thread.nodes import Binary, Compare, Const, Select, Unary, Value, VectorType


class UndefinedFunctionError(TilewrightError):
    """A function that is not defined on an element type."""

    title = "Undefined function"


def _type(value: Value) -> VectorType:
    if isinstance(value.type, VectorType):
        return value.type
    raise UndefinedFunctionError("an address has no elementwise functions")


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
            raise UndefinedFunctionError(f"function {op!r} is not defined on {of.dtype}")


def _is_infinite(x: Value, of: VectorType) -> Value:
    if not of.dtype.is_float:
        return Compare("ne", x, x)
    return Compare("eq", Unary("abs", x), Const(float("inf"), of))


def _sign(x: Value, of: VectorType) -> Value:
    """Give -1, 0 or 1; NaN stays."""
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
        case _:
            raise UndefinedFunctionError(f"function {op!r} is not defined on {of.dtype}")
