"""Parsing of element expressions, the inverse of ``printer.elements``.

A number or a symbolic term without an explicit dtype is *untyped*: it takes the dtype of the
other operand, or the dtype expected by its context.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Final

from ....nearest import did_you_mean
from ...dtype import DTYPES, DType, bool_, i64
from ...loop.combiners import REDUCERS
from ...loop.element_functions import FUNCTIONS, ElementFunction
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
    Local,
    Number,
    Reinterpret,
    Ternary,
    Unary,
    UnaryOp,
    Where,
)
from ..errors import BufferScopeError, ParseError, ScriptTypeError, UnknownNameError
from .arguments import Arguments, called_name
from .buffers import scope_lines
from .dtypes import check_dtypes, stored_dtype_error
from .scope import Scope, listed, shape_text
from .source import describe, text_of
from .unknown import DTYPE_NAMES, FUNCTION_NAMES, unknown_name

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
_OPERATORS: Final = {*_PREFIX.values(), *_INFIX.values()} - {"pow"}
"""The functions that are written as operators only; ``pow`` has both forms."""

CALLED: Final = tuple(name for name in FUNCTIONS if name not in _OPERATORS)
"""The element functions that are written as calls."""


SCAN: Final = "scan"
"""The name of the call that states a scan."""

_SPECIAL: Final = ("where", "index", "condition", "reinterpret")


class ElementReader:
    """Parses elements over the variables and buffers of one function."""

    def __init__(
        self, scope: Scope, buffers: Mapping[str, Buffer], function: ast.AST | None = None
    ) -> None:
        """Look up buffers in ``buffers``, to which the caller may add.

        Allocations in ``function`` whose scope begins later or has ended are named in errors.
        """
        self._function = function
        self._scope = scope
        self._source = scope.source
        self._buffers = buffers
        self.locals: dict[str, Local] = {}

    def buffer(self, node: ast.expr) -> Buffer:
        """Parse the name of a buffer."""
        if not isinstance(node, ast.Name):
            raise self._source.error(
                node, f"expected a buffer name, got {describe(node)}", "write A[i, j]"
            )
        if node.id not in self._buffers:
            lines = scope_lines(self._function, node.id) if self._function else None
            if lines is not None:
                raise self._out_of_scope(node, lines)
            declare = f"add a parameter {node.id}: Buffer[(n,), f32], or allocate the buffer"
            raise unknown_name(self._source, node, "buffer", node.id, self._buffers, hint=declare)
        return self._buffers[node.id]

    def _out_of_scope(self, node: ast.Name, lines: tuple[int, int]) -> BufferScopeError:
        first, last = (self._source.line_number(line) for line in lines)
        when = "before it is allocated" if node.lineno < lines[0] else "after the end of its scope"
        span = f"line {first}" if first == last else f"lines {first} to {last}"
        return BufferScopeError(
            f"buffer {node.id!r} is used {when}: it exists in {span}",
            location=self._source.location(node),
            hint="move the allocation before the statement that contains all uses",
        )

    def load(self, node: ast.expr, hint: str = "") -> Load:
        """Parse ``A[i, j]``; the hint is for expressions that are not a buffer access."""
        if not isinstance(node, ast.Subscript):
            usage = "write A[i, j], or A[()] for a buffer of rank 0"
            message = f"expected a buffer access, got {describe(node)}"
            raise self._source.error(node, message, hint or usage)
        buffer = self.buffer(node.value)
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for index in inner:
            self._check_index(index)
            if isinstance(index, ast.Slice):
                raise self._source.error(
                    index,
                    "expected an index, got a slice",
                    "write a loop, and one integer index per dimension: A[i, j]",
                )
        if len(inner) != buffer.rank:
            noun = "index" if buffer.rank == 1 else "indices"
            raise self._source.error(
                node,
                f"expected {buffer.rank} {noun} into buffer {buffer.name!r}, got {len(inner)}",
                f"the shape of {buffer.name!r} is {shape_text(buffer.shape)}",
            )
        return Load(buffer, self._scope.exprs(inner))

    def _check_index(self, node: ast.expr) -> None:
        """Check that an index uses no bound value of an element."""
        for name in ast.walk(node):
            if isinstance(name, ast.Name) and name.id in self.locals:
                raise self._source.error(
                    name,
                    f"expected a symbolic integer, got {name.id!r}, the value of an element",
                    f"bind an integer from memory: with checked(p[i], lower, upper) as {name.id}:",
                )

    def read(self, node: ast.expr, expected: DType | None = None) -> Element:
        """Parse an element; an untyped one gets the expected dtype."""
        value = self._scope.number(node)
        if value is not None:
            return self._number(node, value, expected)
        if self._scope.is_term(node):
            return self._term(node, expected)
        match node:
            case ast.Constant(value=complex() as value):
                return self._imaginary(node, value.imag, expected)
            case ast.Subscript():
                return self.load(node)
            case ast.Name(id=name) if name in self.locals:
                return self.locals[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _INFIX:
                made = Binary(_INFIX[type(op)], *self._sides(left, right, expected))
                return check_dtypes(self._source, node, made, (left, right))
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _PREFIX:
                name = _PREFIX[type(op)]
                inner = FUNCTIONS[name].operand_dtype(expected)
                unary = Unary(name, self.read(operand, inner))
                return check_dtypes(self._source, node, unary, (operand,))
            case ast.Compare():
                return self._comparison(node)
            case ast.BoolOp():
                return self._logic(node)
            case ast.Call():
                return self._call(node, expected)
            case _:
                raise self._not_an_element(node)

    def is_untyped(self, node: ast.expr) -> bool:
        """Return whether the expression has no dtype of its own."""
        if isinstance(node, ast.Call) and called_name(node) == "complex":
            return all(map(self.is_untyped, node.args))
        imaginary = isinstance(node, ast.Constant) and isinstance(node.value, complex)
        return imaginary or self._scope.number(node) is not None or self._scope.is_term(node)

    def _number(self, node: ast.expr, value: float, expected: DType | None) -> Element:
        if expected is None:
            message = "cannot infer the dtype of this number"
            raise self._type_error(node, message, "write the dtype: f32(1.0)")
        if isinstance(value, bool) != (expected == bool_):
            legal = "True, False, or a comparison" if expected == bool_ else "where(c, 1.0, 0.0)"
            raise self._type_error(node, f"expected {expected}, got {value}", f"write {legal}")
        if isinstance(value, float) and not expected.is_inexact:
            hint = f"write an integer, such as {expected}(1)"
            raise self._type_error(node, f"expected {expected}, got {value}", hint)
        return self._fitting(node, Number(float(value) if expected.is_inexact else value, expected))

    def _imaginary(self, node: ast.expr, value: float, expected: DType | None) -> Element:
        """Return the imaginary number ``2j`` as ``complex(0.0, 2.0)``."""
        if expected is None:
            message = "cannot infer the dtype of this number"
            raise self._type_error(node, message, "write the dtype: c64(1j)")
        if not expected.is_complex:
            hint = "imaginary numbers are values of dtypes c64 and c128"
            raise self._type_error(node, f"expected {expected}, got {value}j", hint)
        return Binary("complex", Number(0.0, expected.part), Number(value, expected.part))

    def _fitting(self, node: ast.expr, number: Number) -> Element:
        return check_dtypes(self._source, node, number, ())

    def _type_error(self, node: ast.expr, message: str, hint: str) -> ParseError:
        return ScriptTypeError(message, location=self._source.location(node), hint=hint)

    def _term(self, node: ast.expr, expected: DType | None) -> Element:
        predicate = isinstance(node, ast.Compare | ast.BoolOp) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        )
        if predicate:
            return Condition(self._scope.predicate(node))
        if expected == bool_:
            message = "expected a condition, got an integer"
            raise self._type_error(node, message, "write a comparison: i < n")
        if expected is None:
            message = "cannot infer the dtype of this integer"
            raise self._type_error(node, message, "write the dtype: i64(i + 1)")
        return Index(self._scope.expr(node), expected)

    def _sides(
        self, left: ast.expr, right: ast.expr, expected: DType | None
    ) -> tuple[Element, Element]:
        """Parse two operands of equal dtype; an untyped one takes the dtype of the other."""
        untyped_left, untyped_right = self.is_untyped(left), self.is_untyped(right)
        if untyped_left and not untyped_right:
            second = self.read(right, expected)
            return self.read(left, second.dtype), second
        first = self.read(left, expected)
        return first, self.read(
            right, first.dtype if untyped_right and not untyped_left else expected
        )

    def augmented(self, node: ast.AugAssign, op: BinaryOp, left: Element) -> Element:
        """Parse the value of an augmented assignment to ``left``."""
        made = Binary(op, left, self.read(node.value, left.dtype))
        return check_dtypes(self._source, node.value, made, (node.target, node.value))

    def stored(self, node: ast.expr, access: Load) -> Element:
        """Parse the value of an assignment to an element of a buffer."""
        value = self.read(node, access.dtype)
        if value.dtype != access.dtype:
            raise stored_dtype_error(
                self._source, node, value.dtype, access.buffer.name, access.dtype
            )
        return value

    def is_element(self, node: ast.expr) -> bool:
        """Return whether a node has the form of an element, and not of a symbolic term."""
        if self._scope.is_term(node):
            return False
        if isinstance(node, ast.Call):
            name = called_name(node)
            return name in DTYPES or name in CALLED or name in _SPECIAL
        return not isinstance(node, ast.Name) or node.id in self.locals

    def integer_load(self, node: ast.expr) -> Load:
        """Parse an element of a buffer of integers."""
        load = self.load(node)
        if not load.dtype.is_integer:
            raise self._type_error(
                node,
                f"an index is loaded from {load.buffer.name!r} of dtype {load.dtype}; expected "
                "an integer dtype",
                f"declare {load.buffer.name!r} with an integer dtype, such as i64",
            )
        return load

    def _comparison(self, node: ast.Compare) -> Element:
        operands = [node.left, *node.comparators]
        parts: list[Element] = []
        for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
            if type(op) not in _COMPARISONS:
                raise self._source.error(
                    node, "unsupported comparison operator", "operators are <, <=, >, >=, ==, !="
                )
            made = Compare(_COMPARISONS[type(op)], *self._sides(left, right, None))
            parts.append(check_dtypes(self._source, node, made, (left, right)))
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

    def _call(self, node: ast.Call, expected: DType | None) -> Element:
        name = called_name(node)
        if name is None:
            raise self._not_an_element(node)
        arguments = Arguments(self._scope.source, node, f"{name}(...)")
        arguments.finish()
        if name in DTYPES:
            return self._typed(arguments.take(1)[0], DTYPES[name])
        if name in CALLED:
            taken = arguments.take(FUNCTIONS[name].arity)
            made = self._applied(FUNCTIONS[name], taken, expected)
            return check_dtypes(self._source, node, made, taken)
        return self._special(name, arguments, expected)

    def _applied(
        self, function: ElementFunction, nodes: Sequence[ast.expr], expected: DType | None
    ) -> Element:
        """Parse the operands of an element function."""
        name, inner = function.name, function.operand_dtype(expected)
        match nodes:
            case [operand]:
                return Unary(name, self.read(operand, inner))
            case [left, right] if function.second is not None:
                return Binary(name, self.read(left, inner), self.read(right, function.second))
            case [left, right]:
                return Binary(name, *self._sides(left, right, inner))
            case _:
                return Ternary(name, *self._alike(nodes, inner))

    def _alike(self, nodes: Sequence[ast.expr], expected: DType | None) -> list[Element]:
        """Parse operands of equal dtype; untyped ones take the dtype of the first typed one."""
        typed = next((n for n in nodes if not self.is_untyped(n)), nodes[0])
        first = self.read(typed, expected)
        others = (
            first if n is typed else self.read(n, first.dtype if self.is_untyped(n) else expected)
            for n in nodes
        )
        return list(others)

    def _special(self, name: str, arguments: Arguments, expected: DType | None) -> Element:
        match name:
            case "where":
                condition, then, otherwise = arguments.take(3)
                sides = self._sides(then, otherwise, expected)
                made = Where(self.read(condition, bool_), *sides)
                return check_dtypes(self._source, arguments.node, made, arguments.positional)
            case "index":
                value, dtype = arguments.take(2)
                return Index(self._scope.expr(value), self._scope.dtype(dtype))
            case "reinterpret":
                value, dtype = arguments.take(2)
                made = Reinterpret(self._scope.dtype(dtype), self.read(value))
                return check_dtypes(self._source, arguments.node, made, arguments.positional)
            case "condition":
                return Condition(self._scope.predicate(arguments.take(1)[0]))
            case _ if name in REDUCERS:
                raise self._source.error(
                    arguments.node,
                    f"{name} has several results",
                    f"write e[i], p[i] = {name}(...), with one buffer element per result",
                )
            case _ if name == SCAN:
                raise self._source.error(
                    arguments.node,
                    "a scan is a statement, not an element",
                    "write y[i, j] = scan(add, x[i, j]), and use y[i, j] in another block",
                )
            case _:
                raise unknown_name(
                    self._source, arguments.node.func, "element function", name,
                    (*CALLED, *_SPECIAL, *DTYPES), plural="functions",
                    others=FUNCTION_NAMES | DTYPE_NAMES, hint="write it with existing functions",
                )  # fmt: skip

    def _typed(self, node: ast.expr, dtype: DType) -> Element:
        """Parse the operand of ``f32(...)``: a literal, a symbolic term, or an element to cast."""
        value = self._scope.number(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, complex):
            return self._imaginary(node, node.value.imag, dtype)
        if value is not None:
            same_kind = dtype.is_inexact and not isinstance(value, bool)
            return self._fitting(node, Number(float(value) if same_kind else value, dtype))
        if self._scope.is_term(node):
            element = self._term(node, i64 if dtype == bool_ else dtype)
            if isinstance(element, Condition) and dtype == bool_:
                return element
            if isinstance(element, Index) and dtype != bool_:
                return element
            return Cast(dtype, element)
        return check_dtypes(self._source, node, Cast(dtype, self.read(node)), (node,))

    def _not_an_element(self, node: ast.expr) -> ParseError:
        if isinstance(node, ast.Name):
            if node.id in self._buffers:
                usage = f"write one index per dimension: {node.id}[i]"
                return self._source.error(
                    node, f"expected an element, got buffer {node.id!r}", usage
                )
            return UnknownNameError(
                f"no variable {node.id!r}; variables are {listed(self._scope.variables)}, "
                f"buffers are {listed(self._buffers)}",
                location=self._source.location(node),
                hint=did_you_mean(node.id, [*self._scope.variables, *self._buffers])
                or f'declare a symbol above the function: {node.id} = symbols("{node.id}")',
            )
        hint = "elements are A[i], numbers, indices, operators, and calls such as exp(A[i])"
        if isinstance(node, ast.IfExp):
            parts = ", ".join(map(text_of, (node.test, node.body, node.orelse)))
            hint = f"write where({parts})"
        return self._source.error(node, f"expected an element, got {describe(node)}", hint)
