"""Lowering of loop-level functions to thread-level operations and polynomials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from ....errors import TilewrightError
from ....ir.dtype import f32
from ....ir.loop import nodes as loop
from ....ir.thread.nodes import (
    Binary,
    BinaryOp,
    Cast,
    Compare,
    Const,
    Select,
    Unary,
    UnaryOp,
    Value,
)
from ....ir.thread.types import VectorType
from .control import Code
from .expansion import EXPANSIONS, Expansion
from .number import Num
from .power import integer_power

_OPERATIONS: tuple[UnaryOp, ...] = get_args(UnaryOp)
_UNARY: Mapping[str, UnaryOp] = {"bitnot": "not", **{name: name for name in _OPERATIONS}}
_PAIRS: tuple[BinaryOp, ...] = get_args(BinaryOp)
_BINARY: Mapping[str, BinaryOp] = {name: name for name in _PAIRS}
"""Element functions that are one thread-IR operation: its name."""


class UndefinedFunctionError(TilewrightError):
    """An elementwise function that is not defined for a dtype."""

    title = "Undefined function"


def _type(value: Value) -> VectorType:
    if isinstance(value.type, VectorType):
        return value.type
    raise UndefinedFunctionError("elementwise functions are not defined for addresses")


def unary_function(op: loop.UnaryOp, x: Value, code: Code) -> Value:
    """Apply a function of one element; ``code`` receives the statements that it needs."""
    of = _type(x)
    match op:
        case "abs" if of.dtype.kind == "uint":
            return x
        case "isinf":
            return _is_infinite(x, of)
        case "sign":
            return _sign(x, of)
        case _ if op in _UNARY:
            return Unary(_UNARY[op], x)
        case _:
            return _expanded(op, code, x)


def _expanded(op: str, code: Code, *values: Value) -> Value:
    """Apply the expansion of a function of floats."""
    dtype = _type(values[0]).dtype
    if not dtype.is_float:
        raise UndefinedFunctionError(
            f"function {op!r} is not defined for dtype {dtype}",
            hint="cast the operands to a floating-point dtype",
        )
    if op not in EXPANSIONS:
        raise UndefinedFunctionError(
            f"function {op!r} has no expansion into thread-level operations",
            hint="register one with `expansion` in codegen/lower/math",
        )
    return _in_single(EXPANSIONS[op], code, *values)


def _in_single(function: Expansion, code: Code, *values: Value) -> Value:
    """Apply a function, in single precision with one final rounding for half precision."""
    of = _type(values[0])
    if of.dtype.bits != 16:
        return function(code, tuple(Num(v, of) for v in values)).value
    wide = VectorType(f32, of.lanes)
    operands = tuple(Num(Cast(wide, v), wide) for v in values)
    return Cast(of, function(code, operands).value)


def _is_infinite(x: Value, of: VectorType) -> Value:
    if not of.dtype.is_float:
        return Compare("ne", x, x)
    return Compare("eq", Unary("abs", x), Const(float("inf"), of))


def _sign(x: Value, of: VectorType) -> Value:
    """Return -1, 0, or 1; NaN for NaN, and 0 without sign for both zeros."""
    zero = Const(0, of)
    other = Select(Compare("eq", x, zero), zero, x)
    positive = Select(Compare("gt", x, zero), Const(1, of), other)
    return Select(Compare("lt", x, zero), Const(-1, of), positive)


def binary_function(op: loop.BinaryOp, x: Value, y: Value, code: Code) -> Value:
    """Apply a function of two elements; ``code`` receives the statements that it needs."""
    of = _type(x)
    match op:
        case "pow" if of.dtype.is_integer:
            return integer_power(Num(x, of), Num(y, of)).value
        case _ if op in _BINARY and not (of.dtype.is_float and op in EXPANSIONS):
            return Binary(_BINARY[op], x, y)
        case _:
            return _expanded(op, code, x, y)


def combined(op: BinaryOp, x: Value, y: Value) -> Value:
    """Return two elements combined by the combiner of a reduction: one operation."""
    return Binary(op, x, y)
