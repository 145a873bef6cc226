"""Parsing of annotations of graph-level values."""

from __future__ import annotations

import ast
from typing import Final

from ...graph.nodes import (
    DEFAULT_DEVICE,
    CallableInfo,
    Info,
    ObjectInfo,
    PrimInfo,
    ShapeInfo,
    TensorInfo,
    TupleInfo,
)
from ...symbolic import Expr
from ..errors import ScriptSyntaxError, UnknownNameError
from .arguments import Arguments
from .scope import Scope
from .source import describe

KINDS: Final = ("Tensor", "Shape", "Tuple", "Prim", "Callable", "Object")
_USAGE: Final = (
    "Tensor[(n, 4), f32], Shape[(n, 4)], Tuple[...], Prim[i64], Callable[[...], ...], Object"
)
_HINT: Final = f"annotations are {_USAGE}"


def read_info(scope: Scope, node: ast.expr) -> Info:
    """Parse an annotation."""
    match node:
        case ast.Name(id="Object"):
            return ObjectInfo()
        case ast.Name(id="Shape"):
            return ShapeInfo(None, None)
        case ast.Subscript(value=ast.Name(id=kind), slice=inner):
            return _subscripted(scope, node, kind, _parts(inner))
        case ast.Call(func=ast.Name(id=kind)):
            return _called(scope, node, kind)
        case _:
            raise scope.source.error(node, f"expected an annotation, got {describe(node)}", _HINT)


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _subscripted(scope: Scope, node: ast.expr, kind: str, parts: list[ast.expr]) -> Info:
    match kind, parts:
        case "Tensor", [shape, dtype]:
            return TensorInfo(_shape(scope, shape), scope.dtype(dtype))
        case "Shape", dims:
            return _shape_info(scope, dims)
        case "Tuple", [ast.Tuple(elts=[])]:
            return TupleInfo(())
        case "Tuple", fields:
            return TupleInfo(tuple(read_info(scope, f) for f in fields))
        case "Prim", [dtype]:
            return PrimInfo(scope.dtype(dtype))
        case "Prim", [dtype, value]:
            return PrimInfo(scope.dtype(dtype), scope.expr(value))
        case "Callable", [ast.List(elts=params), result]:
            taken = tuple(read_info(scope, p) for p in params)
            return CallableInfo(taken, read_info(scope, result))
        case _:
            raise _unknown(scope, node, kind)


def _shape_info(scope: Scope, dims: list[ast.expr]) -> ShapeInfo:
    """Parse ``Shape[(n, 4)]``, which has the same syntax tree as ``Shape[n, 4]``."""
    return ShapeInfo(scope.exprs(dims), None)


def _shape(scope: Scope, node: ast.expr) -> tuple[Expr, ...] | None:
    unknown = isinstance(node, ast.Constant) and node.value is None
    return None if unknown else scope.shape(node)


def _called(scope: Scope, node: ast.Call, kind: str) -> Info:
    arguments = Arguments(scope.source, node, _USAGE)
    rank = arguments.keyword("rank")
    known_rank = None if rank is None else scope.optional_integer(rank)
    match kind:
        case "Shape":
            (dims,) = arguments.take(1)
            arguments.finish()
            return ShapeInfo(_shape(scope, dims), known_rank)
        case "Tensor":
            shape, dtype = arguments.take(2)
            device, elements = arguments.keyword("device"), arguments.keyword("elements")
            arguments.finish()
            return TensorInfo(
                _shape(scope, shape),
                scope.dtype(dtype),
                DEFAULT_DEVICE if device is None else scope.string(device),
                None if elements is None else scope.dims(elements),
                known_rank,
            )
        case _:
            raise _unknown(scope, node, kind)


def _unknown(scope: Scope, node: ast.expr, kind: str) -> ScriptSyntaxError | UnknownNameError:
    location = scope.source.location(node)
    if kind in KINDS:
        return ScriptSyntaxError(f"invalid {kind} annotation", location=location, hint=_HINT)
    return UnknownNameError(
        f"no annotation {kind!r}; annotations are {', '.join(KINDS)}", location=location
    )
