"""Parsing of modules: imports, symbols, constants and functions of both levels."""

from __future__ import annotations

import ast
from types import MappingProxyType

from ...module import Function, Module
from ..errors import DuplicateNameError
from .arguments import Arguments, called_name
from .constants import Constants, Supplied
from .graph import read_graph_func
from .header import Declared, decorator_of, read_symbols
from .loop import read_prim_func
from .scope import Scope
from .source import Source

DECORATORS = ("prim_func", "graph_func")


class ModuleReader:
    """Parses the statements of a module in order."""

    def __init__(self, source: Source, supplied: Supplied) -> None:
        """Use the values of constants in ``supplied``."""
        self._source = source
        self._scope = Scope(source, {})
        self._symbols: dict[str, Declared] = {}
        self._functions: dict[str, Function] = {}
        self._constants = Constants(supplied)
        self._attributes: dict[str, str] = {}

    def read(self) -> Module:
        """Parse all statements."""
        for node in self._source.tree().body:
            self._statement(node)
        return Module(
            MappingProxyType(self._functions),
            MappingProxyType(self._constants.known),
            MappingProxyType(self._attributes),
        )

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] == "tilewright":
                return
            case ast.Import(names=names) if all(
                n.name.partition(".")[0] == "tilewright" for n in names
            ):
                return
            case ast.Expr(value=ast.Constant(value=str())):
                return
            case ast.Expr(value=ast.Call() as call):
                self._call(call)
            case ast.Assign(targets=[_], value=ast.Call() as call) if (
                called_name(call) == "symbols"
            ):
                self._symbols.update(read_symbols(self._source, node, call))
            case ast.FunctionDef():
                self._function(node)
            case _:
                raise self._source.error(
                    node,
                    "unsupported statement in a module",
                    "statements are symbols, constant, module, and functions under @prim_func or "
                    "@graph_func",
                )

    def _call(self, call: ast.Call) -> None:
        match called_name(call):
            case "module":
                arguments = Arguments(self._source, call, 'module(model="...")')
                arguments.take(0)
                for key, value in arguments.rest():
                    self._attributes[key] = self._scope.string(value)
            case "constant":
                self._constants.declare(self._scope, call)
            case name:
                raise self._source.error(
                    call,
                    f"no statement {name!r} in a module; statements are module(...) and "
                    "constant(...)",
                )

    def _function(self, node: ast.FunctionDef) -> None:
        if node.name in self._functions:
            raise DuplicateNameError(
                f"duplicate function {node.name!r}", location=self._source.location(node)
            )
        kind, _ = decorator_of(self._source, node, DECORATORS)
        if kind == "prim_func":
            self._functions[node.name] = read_prim_func(self._source, node, self._symbols)
        else:
            self._functions[node.name] = read_graph_func(
                self._source, node, self._symbols, self._constants
            )
