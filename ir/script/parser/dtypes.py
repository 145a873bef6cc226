"""Errors about the dtypes of element expressions, with a cast as hint."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final

from ...dtype import DType, bool_
from ...loop.element_functions import FUNCTIONS
from ...loop.nodes import Binary, Compare, Element, Number, Unary, Where
from ...loop.typing import own_dtype_problems
from ..errors import ParseError, ScriptTypeError
from .source import Source, text_of

_CLASSES: Final = {
    "number": "a numeric dtype",
    "float": "a floating-point dtype",
    "integer": "an integer dtype",
    "bool": "dtype bool",
    "bits": "an integer dtype or bool",
}


def check_dtypes(
    source: Source, node: ast.expr, element: Element, operands: Sequence[ast.expr]
) -> Element:
    """Return an element after checking the dtypes of its operands.

    Parameters
    ----------
    source : Source
        The text.
    node : ast.expr
        The expression in the text.
    element : Element
        The parsed expression; its operands are checked already.
    operands : Sequence of ast.expr
        The operands in the text, in the order of the fields of the element.

    Raises
    ------
    ScriptTypeError
        If the operation is not defined for the dtypes of its operands.
    """
    problem = next(own_dtype_problems(element), None)
    if problem is None:
        return element
    raise ScriptTypeError(
        problem, location=source.location(node), hint=_hint(element, list(operands))
    )


def stored_dtype_error(
    source: Source, node: ast.expr, value: DType, buffer: str, dtype: DType
) -> ParseError:
    """Return an error about a value whose dtype differs from that of the buffer."""
    return ScriptTypeError(
        f"a value of dtype {value} is stored in buffer {buffer!r} of dtype {dtype}",
        location=source.location(node),
        hint=_cast(dtype, node),
    )


def _cast(dtype: DType, node: ast.expr) -> str:
    if dtype == bool_:
        return f"write a comparison: {text_of(node)} != 0"
    return f"dtypes are not converted implicitly; cast: {dtype}({text_of(node)})"


def _hint(element: Element, operands: list[ast.expr]) -> str:
    match element:
        case Binary(left=left, right=right) | Compare(left=left, right=right) if (
            left.dtype != right.dtype
        ):
            return _common(left.dtype, right.dtype, operands)
        case Where(condition=condition) if condition.dtype != bool_:
            return _cast(bool_, operands[0])
        case Where(then=then, otherwise=otherwise):
            return _common(then.dtype, otherwise.dtype, operands[1:])
        case Unary(op=op) | Binary(op=op):
            wanted = _CLASSES.get(FUNCTIONS[op].operands, "another dtype")
            return f"{op} requires {wanted}; cast the operands, such as f32(x)"
        case Number(dtype=dtype):
            return f"write a value of dtype {dtype}, or a number of another dtype"
        case _:
            return "cast the operands"


def _common(left: DType, right: DType, operands: list[ast.expr]) -> str:
    """Return the hint to cast the operand of the narrower dtype."""
    ranks = [(d != bool_, d.is_float, d.bits) for d in (left, right)]
    if ranks[0] >= ranks[1]:
        return _cast(left, operands[1])
    return _cast(right, operands[0])
