"""Decorators for functions in notebook cells and files; the parser reads their source code."""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections.abc import Callable, Mapping
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, TypeAlias, cast, overload

from ...errors import MalformedProgramError
from ...locks import parse_expression
from ..analysis.store_blocks import with_store_blocks
from ..dtype import DType
from ..graph.nodes import GraphFunc
from ..loop.nodes import PrimFunc
from ..module import Function, Module
from ..symbolic import Expr, Var, to_text
from ..words import Word
from .errors import SourceUnavailableError
from .names import float_text
from .parser.constants import Constants
from .parser.graph import read_graph_func
from .parser.header import Declared
from .parser.loop import read_prim_func
from .parser.source import Source

Written: TypeAlias = Callable[..., Any]


@overload
def prim_func(function: Written, /) -> PrimFunc: ...
@overload
def prim_func(**options: Any) -> Callable[[Written], PrimFunc]: ...
def prim_func(
    function: Written | None = None, /, **_: Any
) -> PrimFunc | Callable[[Written], PrimFunc]:
    """Convert a Python function to a loop-level function.

    The function is parsed and never executed. Symbols, numbers, dtypes and terms are resolved in
    the scope of its definition. Options are ``target=`` and attributes. A store outside of blocks
    is put in a block, as in a text.

    Raises
    ------
    ParseError
        If the source is not a valid loop-level function; the location is one in its file.
    SourceUnavailableError
        If the source code of the function is not available.
    """
    return _read_prim if function is None else _read_prim(function)


@overload
def graph_func(function: Written, /) -> GraphFunc: ...
@overload
def graph_func(**options: Any) -> Callable[[Written], GraphFunc]: ...
def graph_func(
    function: Written | None = None, /, **_: Any
) -> GraphFunc | Callable[[Written], GraphFunc]:
    """Convert a Python function to a graph-level function; see :func:`prim_func`."""
    return _read_graph if function is None else _read_graph(function)


def module(*functions: Function, **attributes: str) -> Module:
    """Combine functions to a module with attributes.

    Examples
    --------
    >>> module(model="empty").attributes["model"]
    'empty'
    """
    for function in functions:
        if not isinstance(cast("object", function), PrimFunc | GraphFunc):
            raise MalformedProgramError(
                f"expected a function, got {type(function).__name__}",
                where="arguments of module",
                hint="pass functions under @prim_func or @graph_func; parse(text) parses a text",
            )
    whole = Module(attributes=MappingProxyType(dict(attributes)))
    return whole.with_functions(*functions)


def _read_prim(function: Written) -> PrimFunc:
    return with_store_blocks(read_prim_func(*_definition(function)))


def _read_graph(function: Written) -> GraphFunc:
    return read_graph_func(*_definition(function), Constants({}))


def _definition(function: Written) -> tuple[Source, ast.FunctionDef, dict[str, Declared]]:
    """Return the source of a function, its syntax tree with resolved names, and its symbols."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise SourceUnavailableError(
            f"the source of {getattr(function, '__name__', type(function).__name__)!r} is not "
            f"available: {error}",
            where="argument of the decorator",
            hint="define the function in a file or a cell, or use tilewright.parse(text)",
        ) from None
    source = Source(textwrap.dedent("".join(lines)), first_line=max(first, 1))
    node, *rest = source.tree().body
    if rest or not isinstance(node, ast.FunctionDef):
        usage = "write @prim_func above def f(x: Buffer[(n,), f32], ...):"
        raise source.error(node, "expected a function definition", usage)
    resolver = _Resolver(_visible_names(function), _local_names(node))
    return source, _resolved(resolver, node), resolver.declared


def _resolved(resolver: _Resolver, node: ast.FunctionDef) -> ast.FunctionDef:
    """Resolve the names of a function, except those of its decorators."""
    node.args = resolver.visit(node.args)
    node.body = [resolver.visit(statement) for statement in node.body]
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call):
            for word in decorator.keywords:
                word.value = resolver.visit(word.value)
    return node


def _visible_names(function: Written) -> dict[str, object]:
    """Return the globals, enclosing locals and closure variables of a function."""
    if not isinstance(function, FunctionType):
        return {}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    closed = {name: cell.cell_contents for name, cell in cells if _filled(cell)}
    return {**function.__globals__, **_enclosing(), **closed}


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # reading an empty cell raises
    except ValueError:
        return False
    return True


def _enclosing() -> dict[str, object]:
    """Return the local variables of the frame that defines the decorated function.

    Names used only in annotations are not in the closure.
    """
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return {} if frame is None else dict(frame.f_locals)


def _local_names(node: ast.FunctionDef) -> set[str]:
    """Return the names that are bound inside the function."""
    stored = {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return stored | {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)}


class _Resolver(ast.NodeTransformer):
    """Replaces names by the numbers, dtypes, symbols and terms they refer to."""

    def __init__(self, names: Mapping[str, object], local: set[str]) -> None:
        self._names = names
        self._local = local
        self.declared: dict[str, Declared] = {}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._local or node.id not in self._names:
            return node
        return self._written(self._names[node.id], node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        found = self._attribute(node)
        return node if found is None else self._written(found, node)

    def _attribute(self, node: ast.expr) -> object:
        """Look up ``tw.script.f32``; only attributes of modules, so that no user code runs."""
        match node:
            case ast.Name(id=name) if name not in self._local:
                return self._names.get(name)
            case ast.Attribute(value=inner, attr=name):
                owner = self._attribute(inner)
                return getattr(owner, name, None) if isinstance(owner, ModuleType) else None
            case _:
                return None

    def _written(self, value: object, node: ast.expr) -> ast.expr:
        match value:
            case float() if not math.isfinite(value):  # a literal would overflow
                new: ast.expr = parse_expression(float_text(value)).body
            case bool() | int() | float() | str():
                new = ast.Constant(value)
            case DType():
                new = ast.Name(value.name, ast.Load())
            case Expr():
                new = self._term(value)
            case _:
                return self._word(value, node)
        return _with_location_of(new, node)

    def _term(self, term: Expr) -> ast.expr:
        for symbol in sorted(term.free, key=lambda v: v.serial):
            self._declare(symbol)
        return parse_expression(to_text(term)).body

    def _declare(self, symbol: Var) -> None:
        self.declared[symbol.name] = Declared(
            symbol.name, symbol.lower, symbol.upper, symbol.multiple_of
        )

    @staticmethod
    def _word(value: object, node: ast.expr) -> ast.expr:
        """Replace an alias of a format keyword by the keyword itself."""
        if isinstance(value, Word):
            return _with_location_of(ast.Name(value.name, ast.Load()), node)
        return node


def _with_location_of(new: ast.expr, node: ast.expr) -> ast.expr:
    """Copy the location of ``node`` to all parts of ``new``, for error messages."""
    for part in ast.walk(new):
        ast.copy_location(part, node)
    return new
