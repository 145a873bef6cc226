"""Element expressions: the rules of ``printing.elements`` read backwards.

A number or a symbolic term written without a dtype is *open*: it takes the dtype of the operand
beside it, or the one expected where it stands.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Final, get_args

from ...dtype import DTYPES, DType, bool_, i64
from ...loop.nodes import (
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Compare,
    CompareOp,
    Condition,
    Element,
    Index,
    Load,
    Number,
    Unary,
    UnaryOp,
    Where,
)
from ..errors import ParseError, ScriptTypeError, UnknownNameError
from .arguments import Arguments, called_name
from .scope import Scope, listed

_INFIX: Final[dict[type[ast.operator], BinaryOp]] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "shr",
}
_PREFIX: Final[dict[type[ast.unaryop], UnaryOp]] = {
    ast.USub: "neg",
    ast.Invert: "bitnot",
    ast.Not: "not",
}
_COMPARISONS: Final[dict[type[ast.cmpop], CompareOp]] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
_WRITTEN_INFIX = ("neg", "not", "bitnot")
_UNARY_CALLS: Final[dict[str, UnaryOp]] = {
    op: op for op in get_args(UnaryOp) if op not in _WRITTEN_INFIX
}
_BINARY_CALLS: Final[dict[str, BinaryOp]] = {
    "min": "min",
    "max": "max",
    "pow": "pow",
    "atan2": "atan2",
}
FUNCTIONS: Final = (*_UNARY_CALLS, *_BINARY_CALLS, "where", "index", "condition", *DTYPES)


class ElementReader:
    """Reads elements over the variables and buffers of one function."""

    def __init__(self, scope: Scope, buffers: Mapping[str, Buffer]) -> None:
        """Look buffers up in ``buffers``, which may grow."""
        self._scope = scope
        self._buffers = buffers

    # ------------------------------------------------------------ accesses

    def buffer(self, node: ast.expr) -> Buffer:
        """Read the name of a buffer."""
        if not isinstance(node, ast.Name):
            raise self._scope.source.error(node, "the name of a buffer is expected here")
        if node.id not in self._buffers:
            raise UnknownNameError(
                f"no buffer {node.id!r}; buffers are {listed(self._buffers)}",
                place=self._scope.source.place(node),
            )
        return self._buffers[node.id]

    def load(self, node: ast.expr) -> Load:
        """Read ``A[i, j]``."""
        if not isinstance(node, ast.Subscript):
            raise self._scope.source.error(
                node, "an access such as A[i, j] is expected here", "rank 0: A[()]"
            )
        buffer = self.buffer(node.value)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for index in inner:
            if isinstance(index, ast.Slice):
                raise self._scope.source.error(index, "an element has an index, not a slice")
        if len(inner) != buffer.rank:
            raise self._scope.source.error(
                node, f"{len(inner)} indices into buffer {buffer.name!r} of rank {buffer.rank}"
            )
        return Load(buffer, self._scope.exprs(inner))

    # ------------------------------------------------------------ elements

    def read(self, node: ast.expr, expected: DType | None = None) -> Element:
        """Read an element; an open one gets the expected dtype."""
        value = self._scope.number(node)
        if value is not None:
            return self._number(node, value, expected)
        if self._scope.is_term(node):
            return self._term(node, expected)
        match node:
            case ast.Subscript():
                return self.load(node)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _INFIX:
                return Binary(_INFIX[type(op)], *self._sides(left, right, expected))
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _PREFIX:
                inner = bool_ if isinstance(op, ast.Not) else expected
                return Unary(_PREFIX[type(op)], self.read(operand, inner))
            case ast.Compare():
                return self._comparison(node)
            case ast.BoolOp():
                return self._logic(node)
            case ast.Call():
                return self._call(node, expected)
            case _:
                raise self._not_an_element(node)

    def is_open(self, node: ast.expr) -> bool:
        """Whether what is written does not tell its own dtype."""
        return self._scope.number(node) is not None or self._scope.is_term(node)

    def _number(self, node: ast.expr, value: float, expected: DType | None) -> Element:
        if expected is None:
            raise self._unclear(node, "the dtype of this number is not clear", "f32(1.0)")
        if isinstance(value, bool) != (expected == bool_):
            raise self._unclear(node, f"a {expected} is expected here", "where(c, 1.0, 0.0)")
        if isinstance(value, float) and not expected.is_float:
            raise self._unclear(node, f"{value} is no {expected}", f"{expected}({int(value)})")
        return Number(float(value) if expected.is_float else value, expected)

    def _unclear(self, node: ast.expr, message: str, example: str) -> ParseError:
        place = self._scope.source.place(node)
        return ScriptTypeError(message, place=place, hint=f"write the dtype: {example}")

    def _term(self, node: ast.expr, expected: DType | None) -> Element:
        predicate = isinstance(node, ast.Compare | ast.BoolOp) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        )
        if predicate:
            return Condition(self._scope.predicate(node))
        if expected is None or expected == bool_:
            raise self._unclear(node, "the dtype of this integer is not clear", "i64(i + 1)")
        return Index(self._scope.expr(node), expected)

    def _sides(
        self, left: ast.expr, right: ast.expr, expected: DType | None
    ) -> tuple[Element, Element]:
        """Read two operands of one dtype; an open one takes that of the other."""
        open_left, open_right = self.is_open(left), self.is_open(right)
        if open_left and not open_right:
            second = self.read(right, expected)
            return self.read(left, second.dtype), second
        first = self.read(left, expected)
        return first, self.read(right, first.dtype if open_right and not open_left else expected)

    def beside(self, left: Element, node: ast.expr) -> Element:
        """Read the right operand of an augmented assignment to ``left``."""
        return self.read(node, left.dtype)

    def _comparison(self, node: ast.Compare) -> Element:
        operands = [node.left, *node.comparators]
        parts: list[Element] = []
        for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
            if type(op) not in _COMPARISONS:
                raise self._scope.source.error(node, "comparisons are < <= > >= == !=")
            parts.append(Compare(_COMPARISONS[type(op)], *self._sides(left, right, None)))
        return self._joined("and", parts)

    def _logic(self, node: ast.BoolOp) -> Element:
        op: BinaryOp = "and" if isinstance(node.op, ast.And) else "or"
        return self._joined(op, [self.read(value, bool_) for value in node.values])

    @staticmethod
    def _joined(op: BinaryOp, parts: list[Element]) -> Element:
        result = parts[0]
        for part in parts[1:]:
            result = Binary(op, result, part)
        return result

    # ------------------------------------------------------------ calls

    def _call(self, node: ast.Call, expected: DType | None) -> Element:
        name = called_name(node)
        if name is None:
            raise self._not_an_element(node)
        arguments = Arguments(self._scope.source, node, f"{name}(...)")
        arguments.finish()
        if name in DTYPES:
            return self._typed(arguments.take(1)[0], DTYPES[name])
        if name in _UNARY_CALLS:
            op = _UNARY_CALLS[name]
            inner = None if op in ("isnan", "isinf") else expected
            return Unary(op, self.read(arguments.take(1)[0], inner))
        if name in _BINARY_CALLS:
            left, right = arguments.take(2)
            return Binary(_BINARY_CALLS[name], *self._sides(left, right, expected))
        return self._special(name, arguments, expected)

    def _special(self, name: str, arguments: Arguments, expected: DType | None) -> Element:
        match name:
            case "where":
                condition, then, otherwise = arguments.take(3)
                sides = self._sides(then, otherwise, expected)
                return Where(self.read(condition, bool_), *sides)
            case "index":
                value, dtype = arguments.take(2)
                return Index(self._scope.expr(value), self._scope.dtype(dtype))
            case "condition":
                return Condition(self._scope.predicate(arguments.take(1)[0]))
            case _:
                raise UnknownNameError(
                    f"no function {name!r} of elements; functions are {listed(FUNCTIONS)}",
                    place=self._scope.source.place(arguments.node.func),
                )

    def _typed(self, node: ast.expr, dtype: DType) -> Element:
        """Read what is in ``f32(...)``: a literal, a symbolic term, or an element to convert."""
        value = self._scope.number(node)
        if value is not None:
            same_kind = dtype.is_float and not isinstance(value, bool)
            return Number(float(value) if same_kind else value, dtype)
        if self._scope.is_term(node):
            element = self._term(node, i64 if dtype == bool_ else dtype)
            if isinstance(element, Condition) and dtype == bool_:
                return element
            if isinstance(element, Index) and dtype != bool_:
                return element
            return Cast(dtype, element)
        return Cast(dtype, self.read(node))

    def _not_an_element(self, node: ast.expr) -> ParseError:
        if isinstance(node, ast.Name):
            return UnknownNameError(
                f"no variable {node.id!r}; variables are {listed(self._scope.variables)}, "
                f"buffers are {listed(self._buffers)}",
                place=self._scope.source.place(node),
            )
        return self._scope.source.error(node, f"{ast.unparse(node)!r} is not an element")
