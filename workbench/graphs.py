"""Graph-level functions as the diagram shows them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Literal, TypeAlias, assert_never

from ..ir.graph.memory import (
    AllocStorage,
    Check,
    Kill,
    Launch,
    LaunchLibrary,
    VersionSwitch,
    ViewTensor,
)
from ..ir.graph.nodes import (
    Binding,
    Call,
    CallableInfo,
    CallDPSLibrary,
    CallGraph,
    CallTIR,
    ConstantRef,
    GraphFunc,
    IfElse,
    Info,
    MakeTuple,
    MatchCast,
    ObjectInfo,
    Operand,
    PrimInfo,
    Right,
    ShapeInfo,
    TensorInfo,
    TupleInfo,
    TupleItem,
    Value,
)
from ..ir.graph.visit import operands_of
from ..ir.identity import Origins
from ..ir.symbolic import to_text
from .protocol import GraphNode, GraphView

_Kind: TypeAlias = Literal["param", "call", "kernel", "library", "other", "result"]

RESULT_UID = -1
"""Uid of the node that stands for the results."""


def graph_view(function: GraphFunc) -> GraphView:
    """Give the dataflow of a function: parameters, bindings, results, in program order."""
    bound = [_binding(b) for b in function.bindings if not isinstance(b.right, Kill | Check)]
    nodes = [_param(p.value) for p in function.params]
    nodes += _filled(bound)
    nodes.append(_result(function.results))
    mark = hashlib.sha256(repr(nodes).encode()).hexdigest()[:24]
    return GraphView(mark, function.name, nodes)


def _param(value: Value) -> GraphNode:
    return GraphNode(value.uid, value.name, "param", "param", info_text(value.info), "", [], [], [])


def _result(results: tuple[Operand, ...]) -> GraphNode:
    inputs = _values(results)
    return GraphNode(RESULT_UID, "result", "return", "result", "", "", [], inputs, [])


def _binding(binding: Binding) -> GraphNode:
    kind, op, callee = _what(binding.right)
    return GraphNode(
        uid=binding.value.uid,
        name=binding.value.name,
        op=op,
        kind=kind,
        detail=info_text(binding.value.info),
        callee=callee,
        path=namespace(binding.origins),
        inputs=_inputs(binding.right),
        origins=sorted(binding.origins),
    )


def _what(right: Right) -> tuple[_Kind, str, str]:
    """Kind, operator and called function of a right-hand side."""
    match right:
        case Call(op=op):
            return "call", op, ""
        case CallTIR(function=name) | Launch(function=name):
            return "kernel", name, name
        case CallDPSLibrary(symbol=name) | LaunchLibrary(symbol=name):
            return "library", name, ""
        case CallGraph(function=name):
            return "call", name, name
        case MatchCast() | MakeTuple() | TupleItem() | IfElse():
            return "other", _word(right), ""
        case AllocStorage() | ViewTensor() | Kill() | Check() | VersionSwitch():
            return "other", _word(right), ""
        case _:
            assert_never(right)


def _word(right: object) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in type(right).__name__)[1:]


def _inputs(right: Right) -> list[int]:
    if isinstance(right, Launch | LaunchLibrary | CallTIR):
        return _values(right.args)
    return _values(operands_of(right))


def _values(operands: tuple[Operand, ...]) -> list[int]:
    uids = [x.uid for x in operands if isinstance(x, Value)]
    return list(dict.fromkeys(uids))


def weights_of(right: Right) -> list[str]:
    """Keys of the constants a right-hand side reads."""
    return [x.key for x in operands_of(right) if isinstance(x, ConstantRef)]


def _filled(nodes: list[GraphNode]) -> list[GraphNode]:
    """Give nodes of unknown namespace what those before and after them share."""
    paths = [n.path for n in nodes]
    before, after = _carried(paths), _carried(paths[::-1])[::-1]
    around = zip(nodes, before, after, strict=True)
    return [n if n.path else replace(n, path=_common(a, b)) for n, a, b in around]


def _carried(paths: list[list[str]]) -> list[list[str]]:
    """The last path that is not empty, at each place."""
    carried: list[list[str]] = []
    for path in paths:
        carried.append(path or (carried[-1] if carried else []))
    return carried


def namespace(origins: Origins) -> list[str]:
    """The namespace that the qualified ones of the origins share.

    Examples
    --------
    >>> namespace(frozenset({"encoder.layer.0.attention.query", "encoder.layer.0.attention.key"}))
    ['encoder', 'layer.0', 'attention']
    """
    found = [_segments(origin) for origin in sorted(origins)]
    paths = [path for path in found if len(path) > 1]
    shared = paths[0] if paths else []
    for path in paths[1:]:
        shared = _common(shared, path)
    return shared


def _common(left: list[str], right: list[str]) -> list[str]:
    same = 0
    while same < min(len(left), len(right)) and left[same] == right[same]:
        same += 1
    return left[:same]


def _segments(origin: str) -> list[str]:
    """Cut a name at dots and slashes; a number stays with the word it numbers."""
    parts: list[str] = []
    for part in origin.replace("/", ".").split("."):
        if part.isdigit() and parts:
            parts[-1] += f".{part}"
        elif part:
            parts.append(part)
    return parts


def _tensor_text(info: TensorInfo) -> str:
    if info.shape is None:
        return f"{info.dtype}" if info.rank is None else f"{info.dtype}, rank {info.rank}"
    inner = ", ".join(map(to_text, info.shape))
    return f"({inner}{',' if len(info.shape) == 1 else ''}) {info.dtype}"


def info_text(info: Info) -> str:
    """An annotation in few words.

    Examples
    --------
    >>> from ..ir.dtype import f32
    >>> from ..ir.symbolic import as_expr, var
    >>> info_text(TensorInfo((var("n"), as_expr(4)), f32))
    '(n, 4) f32'
    """
    match info:
        case TensorInfo():
            return _tensor_text(info)
        case ShapeInfo(dims=dims):
            return "shape" if dims is None else f"shape ({', '.join(map(to_text, dims))})"
        case PrimInfo(dtype=dtype, value=value):
            return str(dtype) if value is None else to_text(value)
        case TupleInfo(fields=fields):
            return f"({', '.join(map(info_text, fields))})"
        case ObjectInfo():
            return ""
        case CallableInfo():
            return "function"
        case _:
            assert_never(info)
