"""Buffers of a loop-level function: parameters and temporaries."""

from __future__ import annotations

import ast
from typing import Final, cast

from ...dtype import DType
from ...identity import UidSource
from ...loop.memory_scopes import SCOPES
from ...loop.nodes import AccessMode, Buffer, BufferParam, IndexMap, Param, ScalarParam
from ...symbolic import Expr, Var, var
from ..errors import DuplicateNameError
from .arguments import Arguments, called_name
from .scope import Scope
from .source import describe
from .unknown import unknown_name

ACCESS: Final[dict[str, AccessMode]] = {
    "Buffer": "in",
    "Out": "out",
    "InOut": "inout",
    "State": "state",
}


class BufferReader:
    """Parses buffer parameters and allocations, and registers buffers by name."""

    def __init__(self, scope: Scope) -> None:
        """Start with no buffers."""
        self.scope = scope
        self.source = scope.source
        self.mint = UidSource()
        self.known: dict[str, Buffer] = {}
        self._taken: set[tuple[str, str]] = set()

    def claim(self, name: str, kind: str, node: ast.expr | ast.stmt | ast.arg) -> str:
        """Register a name; names of one kind are unique in a function."""
        if (kind, name) in self._taken:
            raise DuplicateNameError(
                f"duplicate {kind} {name!r} in this function",
                location=self.source.location(node),
                hint=f"the names of all {kind}s of a function are different; rename one",
            )
        self._taken.add((kind, name))
        return name

    def parameter(self, arg: ast.arg) -> Param:
        """Parse one parameter: ``A: Buffer[(n, k), f32]`` or ``offset: Int``."""
        match arg.annotation:
            case ast.Name(id="Int"):
                return ScalarParam(self._scalar(arg.arg))
            case ast.Subscript(value=ast.Name(id=kind), slice=ast.Tuple(elts=[shape, dtype])) if (
                kind in ACCESS
            ):
                buffer = self._buffer(arg.arg, shape, dtype, None, arg)
            case ast.Call(func=ast.Name(id=kind)) as call if kind in ACCESS:
                options = Arguments(self.source, call, f"{kind}(shape, dtype, strides=(...), ...)")
                shape, dtype = options.take(2)
                buffer = self._buffer(arg.arg, shape, dtype, options, arg)
            case annotation:
                got = "none" if annotation is None else describe(annotation)
                raise self.source.error(
                    annotation or arg,
                    f"expected a buffer or integer annotation of parameter {arg.arg!r}, got {got}",
                    "write A: Buffer[(n, k), f32] (or Out, InOut, State), or n: Int",
                )
        return BufferParam(buffer, ACCESS[kind])

    def _scalar(self, name: str) -> Var:
        return self.scope.variables.setdefault(name, var(name))

    def _buffer(
        self,
        name: str,
        shape: ast.expr,
        dtype: ast.expr,
        options: Arguments | None,
        node: ast.arg | ast.stmt,
    ) -> Buffer:
        self.claim(name, "buffer", node)
        dims, element = self.scope.shape(shape), self.scope.dtype(dtype)
        if options is None:
            buffer = Buffer(self.mint(), name, dims, element)
        else:
            buffer = self._with_options(name, dims, options, element)
        self.known[name] = buffer
        return buffer

    def _with_options(
        self, name: str, dims: tuple[Expr, ...], options: Arguments, element: DType
    ) -> Buffer:
        scope, strides = options.keyword("scope"), options.keyword("strides")
        alignment, layout = options.keyword("alignment"), options.keyword("layout")
        options.finish()
        return Buffer(
            self.mint(),
            name,
            dims,
            element,
            "global" if scope is None else self._memory_scope(scope),
            None if strides is None else self.scope.dims(strides),
            64 if alignment is None else self.scope.integer(alignment),
            None if layout is None else self._layout(layout),
        )

    def _memory_scope(self, node: ast.expr) -> str:
        name = self.scope.string(node)
        if name not in SCOPES:
            raise unknown_name(self.source, node, "memory scope", name, SCOPES)
        return name

    def allocations(self, body: list[ast.stmt]) -> tuple[tuple[Buffer, ...], list[ast.stmt]]:
        """Parse leading ``T = alloc(shape, dtype)`` lines; return the remaining statements too."""
        made: list[Buffer] = []
        for position, statement in enumerate(body):
            buffer = self.allocation(statement)
            if buffer is None:
                return tuple(made), body[position:]
            made.append(buffer)
        return tuple(made), []

    def allocation(self, statement: ast.stmt) -> Buffer | None:
        """Parse ``T = alloc(shape, dtype)``; return None for another statement."""
        if not is_allocation(statement):
            return None
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                options = Arguments(self.source, call, 'alloc(shape, dtype, scope="local")')
                shape, dtype = options.take(2)
                return self._buffer(name, shape, dtype, options, statement)
            case _:
                return None

    def release(self, buffer: Buffer) -> None:
        """End the scope of a buffer."""
        del self.known[buffer.name]

    def _layout(self, node: ast.expr) -> IndexMap:
        if not isinstance(node, ast.Lambda):
            raise self.source.error(
                node,
                f"expected a lambda as layout, got {describe(node)}",
                "write layout=lambda i, j: (j // 4, i, j % 4)",
            )
        inputs = {arg.arg: (var(arg.arg, lower=0), None) for arg in node.args.args}
        with self.scope.bound(inputs):
            outputs = self.scope.dims(node.body)
        return IndexMap(tuple(v for v, _ in inputs.values()), outputs)


def is_allocation(statement: ast.stmt) -> bool:
    """Return whether a statement is ``T = alloc(...)``."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.Call() as call):
            return called_name(call) == "alloc"
        case _:
            return False


def scope_lines(function: ast.AST, name: str) -> tuple[int, int] | None:
    """Return the first and last line of the scope of an allocation; None if there is none."""
    for node in ast.walk(function):
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            statements = cast("list[ast.stmt]", body if isinstance(body, list) else [])
            for statement in statements:
                match statement:
                    case ast.Assign(targets=[ast.Name(id=own)]) if own == name:
                        if is_allocation(statement):
                            last = statements[-1]
                            return statement.lineno, last.end_lineno or last.lineno
                    case _:
                        pass
    return None
