"""Lowering of loop-level functions to thread-level operations and polynomials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from ....errors import TilewrightError
from ....ir.dtype import f32, i32
from ....ir.thread.nodes import (
    Binary,
    BinaryOp,
    Call,
    Cast,
    Compare,
    Const,
    Reg,
    Select,
    Unary,
    UnaryOp,
    Value,
)
from ....ir.thread.types import VectorType
from .control import Code
from .expansion import EXPANSIONS, INTEGER_EXPANSIONS, Expansion
from .number import Num

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


def apply_function(op: str, operands: tuple[Value, ...], code: Code) -> Value:
    """Apply an element function to elements.

    Parameters
    ----------
    op : str
        The name of the element function.
    operands : tuple of Value
        Values with the same number of lanes.
    code : Code
        The list that receives the statements that the function needs.
    """
    of = _type(operands[0])
    if op in code.native and of.dtype.is_float:
        return _own_function(op, operands, code)
    expands = op in (EXPANSIONS if of.dtype.is_float else INTEGER_EXPANSIONS)
    match op, operands:
        case "abs", (x,) if of.dtype.kind == "uint":
            return x
        case "isinf", (x,):
            return _is_infinite(x, of)
        case "sign", (x,):
            return _sign(x, of)
        case _, (x,) if op in _UNARY and not expands:
            return Unary(_UNARY[op], x)
        case _, (x, y) if op in _BINARY and not expands:
            return Binary(_BINARY[op], x, y)
        case _:
            return _expanded(_formula(op, of), code, operands)


def _own_function(op: str, operands: tuple[Value, ...], code: Code) -> Value:
    """Call the function of the target, which computes in single precision."""
    of = _type(operands[0])
    single = VectorType(f32, of.lanes)
    args: list[Value] = []
    for x in operands:
        wanted = single if _type(x).dtype.is_float else VectorType(i32, of.lanes)
        args.append(x if x.type == wanted else Cast(wanted, x))
    result = Reg(op, single)
    code.before.append(Call(f"tw_{op}", tuple(args), result, code.source))
    return result if of == single else Cast(of, result)


def _formula(op: str, of: VectorType) -> Expansion:
    """Return the expansion of a function for a dtype."""
    if op in EXPANSIONS and not of.dtype.is_float and op not in INTEGER_EXPANSIONS:
        raise UndefinedFunctionError(
            f"function {op!r} is not defined for dtype {of.dtype}",
            hint="cast the operands to a floating-point dtype",
        )
    found = (EXPANSIONS if of.dtype.is_float else INTEGER_EXPANSIONS).get(op)
    if found is None:
        raise UndefinedFunctionError(
            f"function {op!r} has no expansion into thread-level operations for dtype {of.dtype}",
            hint="register one with `expansion`, or for integers, in codegen/lower/math",
        )
    return found


def _expanded(expansion: Expansion, code: Code, operands: tuple[Value, ...]) -> Value:
    """Apply a formula, in single precision with one final rounding for narrower floats."""
    of = _type(operands[0])
    wide = VectorType(of.dtype.compute, of.lanes)
    if expansion.direct or wide == of:
        numbers = tuple(Num(v, _type(v)) for v in operands)
        return expansion.formula(code, numbers).value
    numbers = tuple(Num(Cast(wide, v), wide) for v in operands)
    return Cast(of, expansion.formula(code, numbers).value)


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


def combined(op: BinaryOp, x: Value, y: Value) -> Value:
    """Return two elements combined by the combiner of a reduction: one operation."""
    return Binary(op, x, y)
