"""Errors about the dtypes of element expressions, with a cast as hint."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final

from ...dtype import DTYPES, DType, bool_
from ...loop.element_functions import FUNCTIONS
from ...loop.nodes import (
    Binary,
    Cast,
    Compare,
    Element,
    Number,
    Reinterpret,
    Ternary,
    Unary,
    Where,
)
from ...loop.typing import own_dtype_problems
from ..errors import ParseError, ScriptTypeError
from .source import Source, text_of

_CLASSES: Final = {
    "ordered": "a dtype that is not complex, whose values have an order",
    "field": "a numeric dtype",
    "number": "a dtype of real numbers",
    "inexact": "a floating-point or complex dtype",
    "complex": "a complex dtype",
    "part": "f32 or f64",
    "float": "a floating-point dtype",
    "integer": "an integer dtype",
    "bool": "dtype bool",
    "bits": "an integer dtype or bool",
    "format": "f64, f32, f16, or bf16",
    "bitwise": "an integer dtype of at least 8 bits",
    "word": "u32 or u64",
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
        hint=_parts(dtype, node) if value.is_complex else _cast(dtype, node),
    )


def _parts(dtype: DType, node: ast.expr) -> str:
    """Return the hint to convert a complex number to another dtype."""
    if dtype.is_complex:
        return _cast(dtype, node)
    text = text_of(node)
    return f"write real({text}), imag({text}), or abs({text}), and convert it to {dtype}"


def _cast(dtype: DType, node: ast.expr) -> str:
    if dtype == bool_:
        return f"write a comparison: {text_of(node)} != 0"
    return f"dtypes are not converted implicitly; cast: {dtype}({text_of(node)})"


def _hint(element: Element, operands: list[ast.expr]) -> str:
    match element:
        case Binary(op="complex"):
            return "the parts of complex(re, im) have one dtype, f32 or f64"
        case Binary(left=left, right=right) | Compare(left=left, right=right) if (
            left.dtype != right.dtype and not _has_second(element)
        ):
            return _common(left.dtype, right.dtype, operands)
        case Compare(left=left) if left.dtype.is_complex:
            return "complex numbers have no order; compare abs(x) or real(x)"
        case Cast(dtype=dtype):
            return _parts(dtype, operands[0])
        case Where(condition=condition) if condition.dtype != bool_:
            return _cast(bool_, operands[0])
        case Where(then=then, otherwise=otherwise):
            return _common(then.dtype, otherwise.dtype, operands[1:])
        case Reinterpret(dtype=dtype, operand=operand) if (
            dtype.is_complex or operand.dtype.is_complex
        ):
            return "write real(x) and imag(x), or complex(re, im)"
        case Reinterpret(operand=operand):
            same = [d.name for d in DTYPES.values() if d.bits == operand.dtype.bits and d != bool_]
            return f"dtypes of {operand.dtype.bits} bits are {', '.join(same)}"
        case Binary(op=op, left=left) if FUNCTIONS[op].second is not None and FUNCTIONS[op].accepts(
            left.dtype
        ):
            return f"the second operand of {op} requires dtype {FUNCTIONS[op].second}"
        case Ternary(first=first, second=second, third=third) if (
            len({first.dtype, second.dtype, third.dtype}) > 1
        ):
            other = second if first.dtype != second.dtype else third
            nodes = operands[:2] if other is second else operands[::2]
            return _common(first.dtype, other.dtype, nodes)
        case Unary(op=op, operand=first) | Binary(op=op, left=first) if first.dtype.is_complex:
            return f"{op} requires real numbers; apply it to real(x), imag(x), or abs(x)"
        case Unary(op=op) | Binary(op=op) | Ternary(op=op):
            wanted = _CLASSES.get(FUNCTIONS[op].operands, "another dtype")
            return f"{op} requires {wanted}; cast the operands, such as f32(x)"
        case Number(dtype=dtype):
            return f"write a value of dtype {dtype}, or a number of another dtype"
        case _:
            return "cast the operands"


def _has_second(element: Element) -> bool:
    """Return whether the operands of a function have two dtypes."""
    return isinstance(element, Binary) and FUNCTIONS[element.op].second is not None


def _common(left: DType, right: DType, operands: list[ast.expr]) -> str:
    """Return the hint to cast the operand of the narrower dtype."""
    ranks = [(d != bool_, d.is_complex, d.is_float, d.bits) for d in (left, right)]
    if ranks[0] >= ranks[1]:
        return _cast(left, operands[1])
    return _cast(right, operands[0])
