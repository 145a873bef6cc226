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
    Number,
    Unary,
    Where,
)
from .visit import walk_element


def _number_fits(value: float, dtype: DType) -> bool:
    """Return whether a number has the kind of a dtype and is within its range."""
    if dtype == bool_:
        return isinstance(value, bool)
    if dtype.is_float:
        return not isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    signed = dtype.kind == "int"
    low = -(1 << (dtype.bits - 1)) if signed else 0
    return low <= value < (1 << (dtype.bits - int(signed)))


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
                yield f"number {value!r} is not a value of dtype {dtype}"
        case Index(value=value, dtype=dtype):
            if dtype == bool_:
                yield f"integer {to_text(value)} cannot have dtype {dtype}"
        case Unary(op=op, operand=operand):
            if not element_function(op).accepts(operand.dtype):
                yield f"{op} is not defined for dtype {operand.dtype}"
        case Binary(op=op, left=left, right=right):
            if left.dtype != right.dtype or not element_function(op).accepts(left.dtype):
                yield f"{op} is not defined for dtypes {left.dtype} and {right.dtype}"
        case Compare(op=op, left=left, right=right):
            if left.dtype != right.dtype:
                yield f"comparison {op} is not defined for dtypes {left.dtype} and {right.dtype}"
        case Where(condition=condition, then=then, otherwise=otherwise):
            if condition.dtype != bool_:
                yield f"the condition of where must have dtype bool, got {condition.dtype}"
            if then.dtype != otherwise.dtype:
                yield (
                    "the two values of where must have the same dtype, "
                    f"got {then.dtype} and {otherwise.dtype}"
                )
        case Cast() | Condition() | Load():
            return
        case _:
            assert_never(part)
