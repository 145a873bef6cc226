"""Printing of element expressions.

The dtype of a number, a symbolic integer or a predicate is omitted if the parser can infer it:
in ``x[i] * 2.0`` from ``x``. :class:`Elements` and the parser's ``ElementReader`` use the same
rules; where these do not determine the dtype, it is explicit: ``f32(2.0)``, ``i64(i + 1)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias, assert_never

from ...dtype import DType, bool_
from ...loop.element_functions import element_function
from ...loop.nodes import (
    Binary,
    Buffer,
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
from ...symbolic import BoolConst, Const, Expr
from ..names import float_text
from .terms import TermPrinter

Leaf: TypeAlias = "Number | Index | Condition"

_NOT, _COMPARE, _ADD, _MUL, _UNARY, _ATOM = 3, 4, 9, 10, 11, 13
_INFIX: Final[dict[str, tuple[str, int]]] = {
    "or": ("|", 5),
    "xor": ("^", 6),
    "and": ("&", 7),
    "shl": ("<<", 8),
    "shr": (">>", 8),
    "add": ("+", _ADD),
    "sub": ("-", _ADD),
    "mul": ("*", _MUL),
    "div": ("/", _MUL),
    "floordiv": ("//", _MUL),
    "mod": ("%", _MUL),
}
_PREFIX: Final[dict[str, tuple[str, int]]] = {
    "neg": ("-", _UNARY),
    "bitnot": ("~", _UNARY),
    "not": ("not ", _NOT),
}
_COMPARISONS: Final = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_AUGMENTED: Final = frozenset({"add", "sub", "mul", "div"})


def number_text(value: float, dtype: DType) -> str:
    """Return a literal of the dtype, or of the Python value if the dtype cannot represent it."""
    if dtype.is_inexact and not isinstance(value, bool):
        return float_text(float(value))
    return float_text(value) if isinstance(value, float) else repr(value)


def fits(value: float, dtype: DType) -> bool:
    """Return whether the parser accepts the number as a literal of the dtype."""
    if isinstance(value, bool):
        return dtype == bool_
    return dtype.is_inexact or (dtype.is_integer and isinstance(value, int))


class Elements:
    """Prints elements over the variables of one function."""

    def __init__(self, terms: TermPrinter) -> None:
        """Print index terms with ``terms``."""
        self._terms = terms

    def access(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """Return an access as text, ``A[i, j]``."""
        inner = ", ".join(self._terms.texts(indices)) if indices else "()"
        return f"{buffer.name}[{inner}]"

    def store(self, target: Load, value: Element) -> str:
        """Return an assignment as text, ``A[i] += x`` for ``A[i] = A[i] + x``."""
        left_side = self.access(target.buffer, target.indices)
        match value:
            case Binary(op=op, left=Load() as left, right=right) if (
                op in _AUGMENTED and left == target
            ):
                operand = self._augmented_operand(right, left, left.dtype)
                return f"{left_side} {_INFIX[op][0]}= {operand}"
            case _:
                return f"{left_side} = {self.text(value, target.dtype)}"

    def text(self, element: Element, expected: DType | None = None) -> str:
        """Return an element as text; ``expected`` is the dtype that the parser can infer."""
        return self._write(element, expected)[0]

    def _inside(self, element: Element, expected: DType | None, least: int) -> str:
        text, level = self._write(element, expected)
        return text if level >= least else f"({text})"

    def _write(self, element: Element, expected: DType | None) -> tuple[str, int]:
        match element:
            case Number() | Index() | Condition():
                bare = self._bare(element, expected)
                return (self._explicit(element), _ATOM) if bare is None else bare
            case Load(buffer=buffer, indices=indices):
                return self.access(buffer, indices), _ATOM
            case Local(name=name):
                return name, _ATOM
            case Cast(dtype=dtype, operand=operand):
                return f"{dtype}({self.text(operand)})", _ATOM
            case Reinterpret(dtype=dtype, operand=operand):
                return f"reinterpret({self.text(operand)}, {dtype})", _ATOM
            case Unary():
                return self._unary(element, expected)
            case Binary():
                return self._binary(element, expected)
            case Ternary(op=op, first=first, second=second, third=third):
                return f"{op}({', '.join(self._alike((first, second, third), expected))})", _ATOM
            case Compare(op=op, left=left, right=right):
                sides = self._sides(left, right, None, fuses=True, least=(_COMPARE + 1,) * 2)
                return f"{sides[0]} {_COMPARISONS[op]} {sides[1]}", _COMPARE
            case Where(condition=condition, then=then, otherwise=otherwise):
                chosen = self._sides(then, otherwise, expected, fuses=False)
                return f"where({self.text(condition, bool_)}, {', '.join(chosen)})", _ATOM
            case _:
                assert_never(element)

    def _unary(self, element: Unary, expected: DType | None) -> tuple[str, int]:
        operand, op = element.operand, element.op
        inner = element_function(op).operand_dtype(expected)
        if op not in _PREFIX:
            return f"{op}({self.text(operand, inner)})", _ATOM
        symbol, level = _PREFIX[op]
        if isinstance(operand, Number | Index | Condition):
            return f"{symbol}{self._explicit(operand)}", level
        return f"{symbol}{self._inside(operand, inner, level)}", level

    def _binary(self, element: Binary, expected: DType | None) -> tuple[str, int]:
        op, left, right = element.op, element.left, element.right
        second = element_function(op).second
        if second is not None:
            return f"{op}({self.text(left, expected)}, {self.text(right, second)})", _ATOM
        if op not in _INFIX:
            fuses = op in ("min", "max")
            inner = element_function(op).operand_dtype(expected)
            return f"{op}({', '.join(self._sides(left, right, inner, fuses=fuses))})", _ATOM
        symbol, level = _INFIX[op]
        sides = self._sides(left, right, expected, fuses=True, least=(level, level + 1))
        return f"{sides[0]} {symbol} {sides[1]}", level

    def _alike(self, parts: tuple[Element, ...], expected: DType | None) -> Iterator[str]:
        """Print operands of one dtype; the first that is not a leaf, or the first, has a dtype."""
        leaves = (Number, Index, Condition)
        typed = next((k for k, part in enumerate(parts) if not isinstance(part, leaves)), 0)
        for k, part in enumerate(parts):
            if not isinstance(part, leaves):
                yield self.text(part, expected)
            else:
                yield self.text(part, None if k == typed else parts[typed].dtype)

    def _sides(
        self,
        left: Element,
        right: Element,
        expected: DType | None,
        *,
        fuses: bool,
        least: tuple[int, ...] = (0, 0),
    ) -> tuple[str, str]:
        """Print two operands of one dtype; with ``fuses``, the parser merges untyped symbols."""
        leaves = (
            isinstance(left, Number | Index | Condition),
            isinstance(right, Number | Index | Condition),
        )
        match leaves:
            case (True, True):
                return self._two_leaves(left, right, expected, fuses, least)
            case (True, False):
                first, second = right.dtype, expected
            case (False, True):
                first, second = expected, left.dtype
            case _:
                first = second = expected
        return self._inside(left, first, least[0]), self._inside(right, second, least[1])

    def _two_leaves(
        self,
        left: Element,
        right: Element,
        expected: DType | None,
        fuses: bool,  # noqa: FBT001
        least: tuple[int, ...],
    ) -> tuple[str, str]:
        if not fuses and self._is_bare(left, expected) and self._is_bare(right, expected):
            return self.text(left, expected), self.text(right, expected)
        if fuses or not self._is_bare(left, expected):
            return self._inside(left, None, least[0]), self._inside(right, left.dtype, least[1])
        return self._inside(left, right.dtype, least[0]), self._inside(right, None, least[1])

    def _augmented_operand(self, element: Element, other: Element, expected: DType | None) -> str:
        """Return the right operand of an augmented assignment as text."""
        leaf = isinstance(element, Number | Index | Condition)
        return self.text(element, other.dtype if leaf else expected)

    def _is_bare(self, element: Element, expected: DType | None) -> bool:
        leaf = isinstance(element, Number | Index | Condition)
        return leaf and self._bare(element, expected) is not None

    def _bare(self, leaf: Leaf, expected: DType | None) -> tuple[str, int] | None:
        """Return a leaf without its dtype if the parser infers it; otherwise None."""
        if leaf.dtype != expected:
            return None
        match leaf:
            case Number(value=value, dtype=dtype):
                text = number_text(value, dtype)
                return (text, _UNARY if text[0] == "-" else _ATOM) if fits(value, dtype) else None
            case Index(value=value, dtype=dtype):
                text = self._terms.text(value)
                usable = dtype.is_integer and not isinstance(value, Const)
                return (text, _ATOM if text.isidentifier() else 0) if usable else None
            case Condition(value=predicate):
                constant = isinstance(predicate, BoolConst)
                return None if constant else (self._terms.text(predicate), 0)

    def _explicit(self, leaf: Leaf) -> str:
        """Return a leaf with an explicit dtype."""
        match leaf:
            case Number(value=value, dtype=dtype):
                return f"{dtype}({number_text(value, dtype)})"
            case Index(value=value, dtype=dtype):
                text, plain = self._terms.text(value), dtype != bool_
                named = plain and not isinstance(value, Const)
                return f"{dtype}({text})" if named else f"index({text}, {dtype})"
            case Condition(value=BoolConst() as value):
                return f"condition({self._terms.text(value)})"
            case Condition(value=value):
                return f"bool({self._terms.text(value)})"
