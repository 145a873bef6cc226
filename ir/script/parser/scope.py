"""Scopes of variables; parsing of symbolic terms, literals and attributes."""

from __future__ import annotations

import ast
import math
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import cast

from ...dtype import DTYPES, DType
from ...loop.nodes import Attribute, Attributes
from ...symbolic import (
    Bool,
    Expr,
    SymbolicError,
    SymbolicSyntaxError,
    Var,
    as_expr,
    parse_expr,
    to_text,
)
from ..errors import DuplicateNameError, ScriptSyntaxError, SourceLocation
from .arguments import Arguments, called_name
from .source import Located, Source, describe, text_of
from .unknown import DTYPE_NAMES, unknown_name

_TERM_CALLS = frozenset({"min", "max", "ceildiv", "select"})
_TERM_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_FLOATS = {"inf": float("inf"), "nan": float("nan")}


def listed(names: Iterable[str]) -> str:
    """Return names as a list for a message; ``none`` if there are none."""
    return ", ".join(names) or "none"


def shape_text(dims: tuple[Expr, ...]) -> str:
    """Return a shape as the text of a tuple."""
    texts = [to_text(d) for d in dims]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def _dtype_text(node: ast.expr) -> str:
    """Return the text of a dtype, also of one in quotes."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case _:
            return text_of(node)


class Scope:
    """The variables in scope by name; parses symbolic terms over them."""

    def __init__(self, source: Source, variables: Mapping[str, Var]) -> None:
        """Start with the symbols of a function."""
        self.source = source
        self.variables = dict(variables)
        self.extents: dict[Var, Expr] = {}

    @contextmanager
    def bound(self, entries: Mapping[str, tuple[Var, Expr | None]]) -> Generator[None]:
        """Add variables to the scope, each with the extent of its loop if it has one."""
        before = {name: self.variables.get(name) for name in entries}
        for name, (variable, extent) in entries.items():
            self.variables[name] = variable
            if extent is not None:
                self.extents[variable] = extent
        yield
        for name, old in before.items():
            if old is None:
                del self.variables[name]
            else:
                self.variables[name] = old

    def check_unbound(self, name: str, node: Located) -> None:
        """Raise an error if a variable of this name is in scope."""
        if name in self.variables:
            raise DuplicateNameError(
                f"variable {name!r} is already in scope",
                location=self.source.location(node),
                hint=f"rename one of the two, for example to {name}1",
            )

    def is_term(self, node: ast.expr) -> bool:
        """Return whether a node is a symbolic term or predicate without loads."""
        return self._symbolic(node) and any(
            isinstance(n, ast.Name) and n.id in self.variables for n in ast.walk(node)
        )

    def _symbolic(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self.variables
            case ast.Constant(value=value):
                return isinstance(value, int)
            case ast.BinOp(left=left, op=op, right=right):
                return isinstance(op, _TERM_OPERATORS) and self._all_symbolic([left, right])
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not(), operand=operand):
                return self._symbolic(operand)
            case ast.Compare(left=left, comparators=others):
                return self._all_symbolic([left, *others])
            case ast.BoolOp(values=values):
                return self._all_symbolic(values)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return name in _TERM_CALLS and self._all_symbolic(args)
            case _:
                return False

    def _all_symbolic(self, nodes: list[ast.expr]) -> bool:
        return all(map(self._symbolic, nodes))

    def expr(self, node: ast.expr) -> Expr:
        """Parse an integer term."""
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return as_expr(node.value)
        if isinstance(node, ast.Name) and node.id in self.variables:
            return self.variables[node.id]
        term = self._term(node)
        if isinstance(term, Bool):
            raise self.source.error(
                node, "expected an integer, got a condition", "write select(condition, 1, 0)"
            )
        return term

    def exprs(self, nodes: Iterable[ast.expr]) -> tuple[Expr, ...]:
        """Parse several integer terms."""
        return tuple(self.expr(n) for n in nodes)

    def dims(self, node: ast.expr) -> tuple[Expr, ...]:
        """Parse a tuple of integer terms."""
        if isinstance(node, ast.Tuple):
            return self.exprs(node.elts)
        raise self.source.error(
            node,
            f"expected a tuple, got {describe(node)}",
            "write (n,) for one element, () for none",
        )

    def shape(self, node: ast.expr) -> tuple[Expr, ...]:
        """Parse a tuple of extents, none of which is negative."""
        dims = self.dims(node)
        for item, extent in zip(cast("ast.Tuple", node).elts, dims, strict=True):
            if extent.upper is not None and extent.upper < 0:
                raise self.source.error(
                    item,
                    f"expected an extent of at least 0, got {to_text(extent)}",
                    "write a number of elements, or a symbol for one that is known at run time",
                )
        return dims

    def predicate(self, node: ast.expr) -> Bool:
        """Parse a condition."""
        term = self._term(node)
        if isinstance(term, Bool):
            return term
        raise self.source.error(node, "expected a condition, got an integer", "write n < 8")

    def _term(self, node: ast.expr) -> Expr | Bool:
        self._check_names(node)
        try:
            return parse_expr(node, self.variables)
        except SymbolicError as error:
            raise ScriptSyntaxError(
                error.message, location=self._location_of(error, node), hint=error.hint
            ) from None

    def _location_of(self, error: SymbolicError, node: ast.expr) -> SourceLocation:
        if isinstance(error, SymbolicSyntaxError):
            return self.source.location(error.node or node)
        return self.source.location(node)

    def _check_names(self, node: ast.expr) -> None:
        called = {id(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
        for name in ast.walk(node):
            if isinstance(name, ast.Subscript):
                raise self.source.error(
                    name,
                    "expected a symbolic integer, got an element of a buffer",
                    f"bind it first: with checked({text_of(name)}, lower, upper) as v:",
                )
            if isinstance(name, ast.Name) and id(name) not in called:
                self._known(name)

    def _known(self, name: ast.Name) -> None:
        if name.id not in self.variables:
            declare = f'declare a symbol above the function: {name.id} = symbols("{name.id}")'
            raise unknown_name(self.source, name, "variable", name.id, self.variables, hint=declare)

    def dtype(self, node: ast.expr) -> DType:
        """Parse the name of a dtype."""
        name = node.id if isinstance(node, ast.Name) else None
        found = None if name is None else DTYPES.get(name)
        if found is not None:
            return found
        shown = _dtype_text(node) if name is None else name
        if name is None and shown in DTYPES:
            raise self.source.error(
                node, f"expected the name of a dtype, got {describe(node)}", f"write {shown}"
            )
        raise unknown_name(self.source, node, "dtype", shown, DTYPES, others=DTYPE_NAMES)

    def string(self, node: ast.expr) -> str:
        """Parse a string."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        hint = f'write "{node.id}"' if isinstance(node, ast.Name) else 'write text in quotes: "a"'
        raise self.source.error(node, f"expected a string, got {describe(node)}", hint)

    def strings(self, node: ast.expr) -> tuple[str, ...]:
        """Parse a tuple of strings."""
        if isinstance(node, ast.Tuple):
            return tuple(self.string(n) for n in node.elts)
        raise self.source.error(
            node, f"expected a tuple of strings, got {describe(node)}", 'write ("a",)'
        )

    def integer(self, node: ast.expr) -> int:
        """Parse an integer literal."""
        value = self.number(node)
        if type(value) is int:
            return value
        raise self.source.error(
            node, f"expected an integer, got {describe(node)}", "write an integer literal: 8"
        )

    def optional_integer(self, node: ast.expr) -> int | None:
        """Parse an integer literal or None."""
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        return self.integer(node)

    def number(self, node: ast.expr) -> float | int | bool | None:
        """Parse a number or Boolean literal, with sign, ``inf`` and ``nan``; None otherwise."""
        match node:
            case ast.Constant(value=float() as value) if math.isinf(value):
                raise self.source.error(
                    node, "the number is larger than the largest f64, 1.798e308", "write inf"
                )
            case ast.Constant(value=bool() | int() | float() as value):
                return value
            case ast.Name(id="inf" | "nan" as name):
                return _FLOATS[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self._magnitude(operand)
                return None if inner is None else -inner
            case _:
                return None

    def _magnitude(self, node: ast.expr) -> float | int | None:
        negative = isinstance(node, ast.UnaryOp)
        value = None if negative else self.number(node)
        return None if isinstance(value, bool) else value

    def attribute(self, node: ast.expr) -> Attribute:
        """Parse the value of an attribute."""
        number = self.number(node)
        if number is not None:
            return number
        match node:
            case ast.Constant(value=str() as text):
                return text
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple(self.attribute(p) for p in parts)
            case ast.Call() if called_name(node) == "expr":
                (inner,) = Arguments(self.source, node, "expr(term)").take(1)
                return self.expr(inner)
            case ast.Name(id=name) if name not in self.variables and (
                dtype := name if name in DTYPES else DTYPE_NAMES.get(name)
            ):
                raise self.source.error(
                    node, f"a dtype as an attribute is a string, got {name}", f'write "{dtype}"'
                )
            case _:
                return self.expr(node)

    def attributes(self, arguments: Arguments) -> Attributes:
        """Parse all remaining keyword arguments as attributes."""
        return tuple((key, self.attribute(value)) for key, value in arguments.rest())
