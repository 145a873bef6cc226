"""Graph-level values and operands, entered as they are defined."""

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

EFFECT: Final = "_"
_PLAIN = {float: f32, int: i64, bool: bool_}


class ValueReader:
    """The values of one function by name, and the operands that mention them."""

    def __init__(self, scope: Scope, constants: Constants) -> None:
        """Take the annotations of constants from ``constants``."""
        self.scope = scope
        self.source = scope.source
        self.mint = UidSource()
        self.values: dict[str, Value] = {}
        self._constants = constants

    def define(self, name: str, info: Info, node: ast.expr | ast.arg) -> Value:
        """Enter a value under a new name; ``_`` is the name of all that nothing uses."""
        if name in self.values:
            raise DuplicateNameError(
                f"two values {name!r}; a value is defined once", place=self.source.place(node)
            )
        value = Value(self.mint(), name, info)
        if name != EFFECT:
            self.values[name] = value
        return value

    def value(self, node: ast.expr) -> Value:
        """Read the name of a value."""
        if not isinstance(node, ast.Name):
            raise self.source.error(node, "the name of a value is expected here")
        if node.id not in self.values:
            raise UnknownNameError(
                f"no value {node.id!r}; values are {listed(self.values)}",
                place=self.source.place(node),
            )
        return self.values[node.id]

    def operand(self, node: ast.expr) -> Operand:
        """Read an operand: a value, a constant, a literal, a tuple of symbolic integers."""
        number = self.scope.number(node)
        if number is not None:
            return ScalarLiteral(number, _PLAIN[type(number)])
        match node:
            case ast.Tuple(elts=dims):
                return Dims(self.scope.exprs(dims))
            case ast.Call(func=ast.Name(id="const")):
                return self._constant(node)
            case ast.Call(func=ast.Name(id=name), args=[inner]) if name in DTYPES:
                literal = self.scope.number(inner)
                if literal is None:
                    raise self.source.error(inner, "a number is expected here")
                return ScalarLiteral(literal, DTYPES[name])
            case ast.Call():
                raise self.source.error(
                    node, "an operand is no call", "bind the call to a name of its own first"
                )
            case _:
                return self.value(node)

    def operands(self, nodes: list[ast.expr]) -> tuple[Operand, ...]:
        """Read several operands."""
        return tuple(self.operand(n) for n in nodes)

    def _constant(self, node: ast.Call) -> ConstantRef:
        arguments = Arguments(self.source, node, 'const("key"), or const("key", Tensor[...])')
        key_node, *infos = arguments.take(1, 2)
        arguments.finish()
        key = self.scope.string(key_node)
        if infos:
            info = read_info(self.scope, infos[0])
            if not isinstance(info, TensorInfo):
                raise self.source.error(infos[0], "a constant is a Tensor")
            self._constants.describe(key, info)
            return ConstantRef(key, info)
        if key not in self._constants.known:
            raise UnknownNameError(
                f"no constant {key!r}; constants above are {listed(self._constants.known)}",
                place=self.source.place(key_node),
                hint=f'write its annotation: const("{key}", Tensor[(...), f32])',
            )
        known = self._constants.known[key]
        return ConstantRef(key, TensorInfo(tuple(map(as_expr, known.shape)), known.dtype))

    def results(self, node: ast.expr) -> tuple[Operand, ...]:
        """Read what a function or a branch gives."""
        if isinstance(node, ast.Tuple):
            return self.operands(node.elts)
        return (self.operand(node),)

    def forget(self, before: Mapping[str, Value]) -> None:
        """Leave a branch: what it defined is out of scope."""
        self.values = dict(before)
