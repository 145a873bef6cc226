"""Type checking of element expressions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ..dtype import DType, bool_
from ..symbolic import to_text
from .element_functions import element_function
from .nodes import (
    Binary,
    Cast,
    Compare,
    Condition,
    Element,
    Index,
    Load,
    Local,
    Number,
    Reinterpret,
    Ternary,
    Unary,
    Where,
)
from .visit import walk_element


def _number_fits(value: float, dtype: DType) -> bool:
    """Return whether a number has the kind of a dtype and is within its range."""
    if dtype == bool_:
        return isinstance(value, bool)
    if dtype.is_inexact:
        return not isinstance(value, bool) and not dtype.rounds_to_nan(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    return dtype.lowest <= value <= dtype.highest


def dtype_problems(element: Element) -> Iterator[str]:
    """Yield a message for each dtype error inside an element expression.

    Examples
    --------
    >>> from ..dtype import f32, i32
    >>> list(dtype_problems(Binary("add", Number(1.0, f32), Number(1, i32))))
    ['add is not defined for dtypes f32 and i32']
    """
    for part in walk_element(element):
        yield from own_dtype_problems(part)


def own_dtype_problems(part: Element) -> Iterator[str]:
    """Yield a message for each dtype error of a node itself, without its operands."""
    match part:
        case Number(value=value, dtype=dtype):
            if not _number_fits(value, dtype):
                limit = f": its largest is {dtype.largest}" if dtype.rounds_to_nan(value) else ""
                yield f"number {value!r} is not a value of dtype {dtype}{limit}"
        case Index(value=value, dtype=dtype):
            if dtype == bool_:
                yield f"integer {to_text(value)} cannot have dtype {dtype}"
        case Unary(op=op, operand=operand):
            if not element_function(op).accepts(operand.dtype):
                yield f"{op} is not defined for dtype {operand.dtype}"
        case Binary(op=op, left=left, right=right):
            function = element_function(op)
            second = function.second or left.dtype
            if right.dtype != second or not function.accepts(left.dtype):
                yield f"{op} is not defined for dtypes {left.dtype} and {right.dtype}"
        case Ternary(op=op, first=first, second=second, third=third):
            found = [e.dtype for e in (first, second, third)]
            if len(set(found)) > 1 or not element_function(op).accepts(found[0]):
                yield f"{op} is not defined for dtypes {found[0]}, {found[1]}, and {found[2]}"
        case Compare(op=op, left=left, right=right):
            ordered = op in ("eq", "ne") or not left.dtype.is_complex
            if left.dtype != right.dtype or not ordered:
                yield f"comparison {op} is not defined for dtypes {left.dtype} and {right.dtype}"
        case Where(condition=condition, then=then, otherwise=otherwise):
            if condition.dtype != bool_:
                yield f"the condition of where must have dtype bool, got {condition.dtype}"
            if then.dtype != otherwise.dtype:
                yield (
                    "the two values of where must have the same dtype, "
                    f"got {then.dtype} and {otherwise.dtype}"
                )
        case Reinterpret(dtype=dtype, operand=operand):
            of = operand.dtype
            if of.bits != dtype.bits or bool_ in (of, dtype) or of.is_complex or dtype.is_complex:
                yield (
                    f"reinterpret is not defined for dtypes {of} of {of.bits} bits and {dtype} of "
                    f"{dtype.bits} bits"
                )
        case Cast(dtype=dtype, operand=operand) if operand.dtype.is_complex:
            if not dtype.is_complex:
                yield f"a value of dtype {operand.dtype} is not converted to dtype {dtype}"
        case Cast() | Condition() | Load() | Local():
            return
        case _:
            assert_never(part)
