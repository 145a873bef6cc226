"""Parsing of terms in Python syntax. Text is parsed with `ast` and never executed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from itertools import pairwise

from ...locks import parse_expression
from .base import Bool, Expr, Var
from .build import as_expr, ceildiv, const_value
from .conditions import all_of, any_of, eq, maximum, minimum, ne, negate, select
from .errors import SymbolicSyntaxError
from .predicates import BoolConst
from .terms import Const

_MAX_DEPTH = 200

Names = Mapping[str, Var | Expr]

_OPERATORS: dict[type[ast.operator], Callable[[Expr, Expr], Expr]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}

_COMPARISONS: dict[type[ast.cmpop], Callable[[Expr, Expr], Bool]] = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: eq,
    ast.NotEq: ne,
}

_FUNCTIONS = ("ceildiv", "max", "min", "select")

_OPERATOR_HINT = "operators are +, -, *, // and %; // rounds down"
_TERMS = "terms contain integers, symbols, + - * // %, min, max, ceildiv and select"

_HINTS: dict[type[ast.AST], str] = {
    ast.IfExp: "write select(condition, a, b)",
    ast.Constant: "write an integer, or a name without quotes",
}

_UNSUPPORTED: dict[type[ast.AST], str] = {
    ast.Div: "/",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.Invert: "~",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}


def parse_expr(source: str | ast.expr, names: Names) -> Expr | Bool:
    """Parse an integer term or a condition.

    Parameters
    ----------
    source : str or ast.expr
        Integers, names, ``+ - * // %``, ``min``, ``max``, ``ceildiv``, ``select``, comparisons
        (chained too), ``and``, ``or``, ``not``, ``True``, ``False``.
    names : Mapping[str, Var]
        The symbols that may occur, by name.

    Raises
    ------
    SymbolicSyntaxError
        If the text is not a valid term; the error has line and column.

    Examples
    --------
    >>> from tilewright.ir.symbolic import var
    >>> n = var("n")
    >>> parse_expr("ceildiv(n, 8) * 8 >= n", {"n": n})
    True
    """
    if not isinstance(source, str):
        return _Reader(names).read(source, 0)
    try:
        return _Reader(names).read(_tree(source), 0)
    except SymbolicSyntaxError as error:
        error.quote(source.strip())
        raise


def _tree(text: str) -> ast.expr:
    try:
        return parse_expression(text.strip()).body
    except SyntaxError as error:
        message = f"cannot parse {text.strip()!r}: {error.msg}"
        line, column = error.lineno or 1, error.offset or 1
        raise SymbolicSyntaxError(message, line=line, column=column, hint=_TERMS) from None
    except (ValueError, RecursionError, MemoryError) as error:
        message = f"cannot parse the expression: {error or type(error).__name__}"
        raise SymbolicSyntaxError(message, line=1, column=1, hint=_TERMS) from None


class _Reader:
    """Converts syntax trees to terms."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def read(self, node: ast.expr, depth: int) -> Expr | Bool:
        if depth > _MAX_DEPTH:
            raise _error(node, f"the expression is nested more than {_MAX_DEPTH} levels deep")
        match node:
            case ast.Constant(value=bool(value)):
                return BoolConst(value)
            case ast.Constant(value=int(value)):
                return Const(value)
            case ast.Name(id=name):
                return self.name(node, name)
            case ast.BinOp():
                return self.operation(node, depth)
            case ast.UnaryOp():
                return self.unary(node, depth)
            case ast.Compare():
                return self.comparison(node, depth)
            case ast.BoolOp(op=op, values=values):
                combine = all_of if isinstance(op, ast.And) else any_of
                return combine(*[self.condition(value, depth) for value in values])
            case ast.Call():
                return self.call(node, depth)
            case _:
                text = ast.unparse(node)
                message = f"expected a symbolic integer or condition, got '{text}'"
                raise _error(node, message, _HINTS.get(type(node), _TERMS))

    def integer(self, node: ast.expr, depth: int) -> Expr:
        result = self.read(node, depth + 1)
        if not isinstance(result, Expr):
            raise _error(node, f"expected an integer, got the condition '{result}'")
        return result

    def condition(self, node: ast.expr, depth: int) -> Bool:
        result = self.read(node, depth + 1)
        if not isinstance(result, Bool):
            raise _error(node, f"expected a condition, got the integer '{result}'")
        return result

    def name(self, node: ast.expr, name: str) -> Expr:
        if name not in self.names:
            known = ", ".join(sorted(self.names)) or "none"
            hint = f"symbols are {known}; integers are legal too"
            raise _error(node, f"no symbol '{name}'", hint)
        return as_expr(self.names[name])

    def operation(self, node: ast.BinOp, depth: int) -> Expr:
        # A long chain of additions is nested on the left; a loop keeps the depth small.
        chain: list[ast.BinOp] = []
        first: ast.expr = node
        while isinstance(first, ast.BinOp):
            chain.append(first)
            first = first.left
        result = self.integer(first, depth)
        for link in reversed(chain):
            apply = _OPERATORS.get(type(link.op))
            if apply is None:
                raise _unsupported(link, link.op, _OPERATOR_HINT)
            right = self.integer(link.right, depth)
            if isinstance(link.op, ast.FloorDiv | ast.Mod) and const_value(right) == 0:
                raise _error(link.right, "division by zero", "divide by an integer other than 0")
            result = apply(result, right)
        return result

    def unary(self, node: ast.UnaryOp, depth: int) -> Expr | Bool:
        match node.op:
            case ast.USub():
                return -self.integer(node.operand, depth)
            case ast.UAdd():
                return self.integer(node.operand, depth)
            case ast.Not():
                return negate(self.condition(node.operand, depth))
            case _:
                raise _unsupported(node, node.op, "unary operators are -, + and not")

    def comparison(self, node: ast.Compare, depth: int) -> Bool:
        sides = [self.integer(side, depth) for side in (node.left, *node.comparators)]
        parts: list[Bool] = []
        for op, (a, b) in zip(node.ops, pairwise(sides), strict=True):
            compare = _COMPARISONS.get(type(op))
            if compare is None:
                raise _unsupported(node, op, "comparisons are <, <=, >, >=, == and !=")
            parts.append(compare(a, b))
        return all_of(*parts)

    def call(self, node: ast.Call, depth: int) -> Expr:
        function = node.func.id if isinstance(node.func, ast.Name) else ""
        if function not in _FUNCTIONS:
            text = f"no function '{ast.unparse(node.func)}' in symbolic expressions"
            raise _error(node, text, f"functions are {', '.join(_FUNCTIONS)}")
        if node.keywords:
            hint = f"pass positional arguments: {function}(a, b)"
            raise _error(node, f"function '{function}' takes no keyword arguments", hint)
        if function == "select":
            self.expect(node, 3, 3)
            a, b = (self.integer(arg, depth) for arg in node.args[1:])
            return select(self.condition(node.args[0], depth), a, b)
        self.expect(node, *((2, 2) if function == "ceildiv" else (1, None)))
        args = [self.integer(arg, depth) for arg in node.args]
        if function == "ceildiv":
            return ceildiv(args[0], args[1])
        return minimum(*args) if function == "min" else maximum(*args)

    def expect(self, node: ast.Call, least: int, most: int | None) -> None:
        count = len(node.args)
        if count < least or (most is not None and count > most):
            expected = str(least) if most == least else f"at least {least}"
            noun = "argument" if least == 1 else "arguments"
            text = ast.unparse(node)
            raise _error(node, f"expected {expected} {noun}, got {count} in '{text}'")


def _unsupported(node: ast.expr, operator: ast.AST, hint: str) -> SymbolicSyntaxError:
    name = _UNSUPPORTED.get(type(operator), type(operator).__name__)
    return _error(node, f"unsupported operator '{name}'", hint)


def _error(node: ast.expr, message: str, hint: str = "") -> SymbolicSyntaxError:
    line, column = node.lineno, node.col_offset + 1
    return SymbolicSyntaxError(message, line=line, column=column, hint=hint, node=node)
