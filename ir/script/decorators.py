"""Functions written in a notebook cell: Python defines them, the parser reads their source."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, TypeAlias, overload

from ..dtype import DType
from ..graph.nodes import GraphFunc
from ..loop.nodes import PrimFunc
from ..module import Function, Module
from ..symbolic import Expr, Var, to_text
from .errors import SourceUnavailableError
from .reading.constants import Constants
from .reading.graph import read_graph_func
from .reading.header import Declared
from .reading.loop import read_prim_func
from .reading.source import Source
from .words import Word

Written: TypeAlias = Callable[..., Any]


@overload
def prim_func(function: Written, /) -> PrimFunc: ...
@overload
def prim_func(**options: Any) -> Callable[[Written], PrimFunc]: ...
def prim_func(
    function: Written | None = None, /, **_: Any
) -> PrimFunc | Callable[[Written], PrimFunc]:
    """Make a loop-level function of one written in Python.

    The function is read, not run. Its symbols, and numbers, dtypes and terms that it takes from
    around it, are those of the cell. Options are attributes, and ``target=``.

    Raises
    ------
    ParseError
        With the place in the function's source.
    SourceUnavailableError
        If Python does not know the source.
    """
    return _read_prim if function is None else _read_prim(function)


@overload
def graph_func(function: Written, /) -> GraphFunc: ...
@overload
def graph_func(**options: Any) -> Callable[[Written], GraphFunc]: ...
def graph_func(
    function: Written | None = None, /, **_: Any
) -> GraphFunc | Callable[[Written], GraphFunc]:
    """Make a graph-level function of one written in Python; see :func:`prim_func`."""
    return _read_graph if function is None else _read_graph(function)


def module(*functions: Function, **attributes: str) -> Module:
    """Put functions together.

    Examples
    --------
    >>> module(model="empty").attributes["model"]
    'empty'
    """
    whole = Module(attributes=MappingProxyType(dict(attributes)))
    return whole.with_functions(*functions)


def _read_prim(function: Written) -> PrimFunc:
    return read_prim_func(*_definition(function))


def _read_graph(function: Written) -> GraphFunc:
    return read_graph_func(*_definition(function), Constants({}))


def _definition(function: Written) -> tuple[Source, ast.FunctionDef, dict[str, Declared]]:
    """Find the source of a function, and replace what it takes from around it."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise SourceUnavailableError(
            f"the source of {function!r} is not known: {error}",
            hint="write the function in a file or a cell, or use tilewright.parse(text)",
        ) from None
    source = Source(textwrap.dedent("".join(lines)), first_line=max(first, 1))
    (node,) = source.tree().body
    if not isinstance(node, ast.FunctionDef):
        raise source.error(node, "a function is expected here")
    resolver = _Resolver(_surroundings(function), _local_names(node))
    return source, _resolved(resolver, node), resolver.declared


def _resolved(resolver: _Resolver, node: ast.FunctionDef) -> ast.FunctionDef:
    """Resolve all but the decorators, which only name themselves."""
    node.args = resolver.visit(node.args)
    node.body = [resolver.visit(statement) for statement in node.body]
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call):
            for word in decorator.keywords:
                word.value = resolver.visit(word.value)
    return node


def _surroundings(function: Written) -> dict[str, object]:
    """Give the names that a function sees: globals, then what is around its definition."""
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
    """Give the local names of the function in which the decorated one is defined.

    Annotations are no part of its code, so what only they mention is in no closure.
    """
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return {} if frame is None else dict(frame.f_locals)


def _local_names(node: ast.FunctionDef) -> set[str]:
    """Give the names that the function binds itself."""
    stored = {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return stored | {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)}


class _Resolver(ast.NodeTransformer):
    """Writes numbers, dtypes, symbols and terms of the cell in the place of their names."""

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
        """Look up ``tw.script.f32`` without running anything: only modules are asked."""
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
            case bool() | int() | float() | str():
                new: ast.expr = ast.Constant(value)
            case DType():
                new = ast.Name(value.name, ast.Load())
            case Expr():
                new = self._term(value)
            case _:
                return self._word(value, node)
        return _placed(new, node)

    def _term(self, term: Expr) -> ast.expr:
        for symbol in sorted(term.free, key=lambda v: v.serial):
            self._declare(symbol)
        return ast.parse(to_text(term), mode="eval").body

    def _declare(self, symbol: Var) -> None:
        self.declared[symbol.name] = Declared(
            symbol.name, symbol.lower, symbol.upper, symbol.multiple_of
        )

    @staticmethod
    def _word(value: object, node: ast.expr) -> ast.expr:
        """Write a word of the format under its own name, however the cell calls it."""
        if isinstance(value, Word):
            return _placed(ast.Name(value.name, ast.Load()), node)
        return node


def _placed(new: ast.expr, node: ast.expr) -> ast.expr:
    """Put new nodes in the place of an old one, so that errors point there."""
    for part in ast.walk(new):
        ast.copy_location(part, node)
    return new
