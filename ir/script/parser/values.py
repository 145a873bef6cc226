"""Graph-level values in scope, and parsing of operands."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Final

from ...dtype import DTYPES, bool_, f32, i64
from ...graph.nodes import ConstantRef, Dims, Info, Operand, ScalarLiteral, TensorInfo, Value
from ...identity import UidSource
from ...symbolic import as_expr
from ..errors import DuplicateNameError, UnknownNameError
from .arguments import Arguments
from .constants import Constants
from .infos import read_info
from .scope import Scope, listed
from .source import describe
from .unknown import unknown_name

EFFECT: Final = "_"
_PLAIN = {float: f32, int: i64, bool: bool_}


class ValueReader:
    """The values of one function by name; parses operands."""

    def __init__(self, scope: Scope, constants: Constants) -> None:
        """Look up annotations of constants in ``constants``."""
        self.scope = scope
        self.source = scope.source
        self.mint = UidSource()
        self.values: dict[str, Value] = {}
        self._constants = constants

    def define(self, name: str, info: Info, node: ast.expr | ast.arg) -> Value:
        """Define a value under a new name; unused values are named ``_``."""
        if name in self.values:
            raise DuplicateNameError(
                f"duplicate value {name!r}; a value is defined once",
                location=self.source.location(node),
                hint=f"write another name, such as {name}1",
            )
        value = Value(self.mint(), name, info)
        if name != EFFECT:
            self.values[name] = value
        return value

    def value(self, node: ast.expr) -> Value:
        """Parse the name of a value."""
        if not isinstance(node, ast.Name):
            text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            raise self.source.error(
                node,
                f"expected a value name, got {describe(node)}",
                "attributes are passed by name: y = cast(x, dtype='f16')"
                if text
                else "bind the expression to a name first: t = relu(x)",
            )
        if node.id not in self.values:
            define = f"add a parameter {node.id}: Tensor[(n,), f32], or a binding above"
            raise unknown_name(self.source, node, "value", node.id, self.values, hint=define)
        return self.values[node.id]

    def operand(self, node: ast.expr) -> Operand:
        """Parse an operand: a value, a constant, a literal, a tuple of symbolic integers."""
        number = self.scope.number(node)
        if number is not None:
            return ScalarLiteral(number, _PLAIN[type(number)])
        match node:
            case ast.Tuple(elts=[ast.Name(id=name), *_]) if (
                name in self.values and name not in self.scope.variables
            ):
                raise self.source.error(
                    node,
                    "expected an operand, got a tuple of values",
                    "pass the values one by one: call_tir(f, x, y), concat(x, y)",
                )
            case ast.Tuple(elts=dims):
                return Dims(self.scope.exprs(dims))
            case ast.Call(func=ast.Name(id="const")):
                return self._constant(node)
            case ast.Call(func=ast.Name(id=name), args=[inner]) if name in DTYPES:
                literal = self.scope.number(inner)
                if literal is None:
                    message = f"expected a number, got {describe(inner)}"
                    raise self.source.error(inner, message, f'write cast(x, dtype="{name}")')
                return ScalarLiteral(literal, DTYPES[name])
            case ast.Call():
                raise self.source.error(
                    node,
                    "expected an operand, got a nested call",
                    "bind the nested call to a name first",
                )
            case _:
                return self.value(node)

    def operands(self, nodes: list[ast.expr]) -> tuple[Operand, ...]:
        """Parse several operands."""
        return tuple(self.operand(n) for n in nodes)

    def _constant(self, node: ast.Call) -> ConstantRef:
        arguments = Arguments(self.source, node, 'const("key"), or const("key", Tensor[...])')
        key_node, *infos = arguments.take(1, 2)
        arguments.finish()
        key = self.scope.string(key_node)
        if infos:
            info = read_info(self.scope, infos[0])
            if not isinstance(info, TensorInfo):
                raise self.source.error(
                    infos[0],
                    f"expected a Tensor annotation of a constant, got {describe(infos[0])}",
                    "write Tensor[(4, 8), f32]",
                )
            self._constants.describe(key, info)
            return ConstantRef(key, info)
        if key not in self._constants.known:
            raise UnknownNameError(
                f"no constant {key!r}; declared constants are {listed(self._constants.known)}",
                location=self.source.location(key_node),
                hint=f'declare it, or write its annotation: const("{key}", Tensor[(...), f32])',
            )
        known = self._constants.known[key]
        return ConstantRef(key, TensorInfo(tuple(map(as_expr, known.shape)), known.dtype))

    def results(self, node: ast.expr) -> tuple[Operand, ...]:
        """Parse the results of a function or a branch."""
        if isinstance(node, ast.Tuple):
            return self.operands(node.elts)
        return (self.operand(node),)

    def restore(self, before: Mapping[str, Value]) -> None:
        """Restore the values in scope before a branch."""
        self.values = dict(before)
