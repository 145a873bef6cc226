"""View of graph-level functions: the nodes of the diagram."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, assert_never
from weakref import WeakKeyDictionary

from ..ir.graph.nodes import (
    Binding,
    Call,
    CallableInfo,
    CallDPSLibrary,
    CallGraph,
    CallTIR,
    Check,
    ConstantRef,
    GraphFunc,
    IfElse,
    Info,
    Kill,
    LaunchKernel,
    LaunchLibrary,
    Loop,
    LoopParam,
    ObjectInfo,
    Operand,
    PrimInfo,
    Rhs,
    ShapeInfo,
    TensorInfo,
    TupleInfo,
    Value,
)
from ..ir.graph.visit import branches_of, operands_of
from ..ir.identity import Origins
from ..ir.symbolic import to_text
from .protocol import GraphNode, GraphView

_Kind: TypeAlias = Literal["param", "call", "kernel", "library", "other", "result"]

RESULT_UID = -1
"""The uid of the node that represents the results."""


def graph_view(function: GraphFunc) -> GraphView:
    """Return the dataflow of a function: parameters, bindings and results, in program order.

    The bindings of a loop or branch are in a namespace of their own, which contains the value of
    the loop or branch as its last node.
    """
    nodes = [_param(p.value) for p in function.params]
    nodes += _region(function.bindings, [])
    nodes.append(_result(function.returned))
    return GraphView(function.name, nodes)


def _region(bindings: Sequence[Binding], around: list[str]) -> Iterator[GraphNode]:
    """Yield the nodes of a list of bindings inside of a namespace."""
    shown = [b for b in bindings if not isinstance(b.right, Kill | Check)]
    for binding, node in zip(
        shown, _with_inherited_namespaces(list(map(_binding, shown))), strict=True
    ):
        path = [*around, *node.path[len(_common_prefix(around, node.path)) :]]
        match binding.right:
            case Loop() as loop:
                path = [*path, f"loop {node.name}"]
                yield from _loop(loop, path)
            case IfElse(then=then, otherwise=otherwise):
                path = [*path, f"if {node.name}"]
                yield from _region(then.bindings, [*path, "then"])
                yield from _region(otherwise.bindings, [*path, "else"])
            case _:
                pass
        yield node if node.path == path else replace(node, path=path)


def _loop(loop: Loop, path: list[str]) -> Iterator[GraphNode]:
    """Yield the nodes of a loop: the values of an iteration, the condition, and the body."""
    for param, following in zip(loop.carried, loop.next_values, strict=False):
        name = getattr(following, "name", "a constant")
        yield _iterated(param, "carried", f", next: {name}", path)
    for param in loop.elements:
        yield _iterated(param, "slice", "", path)
    if loop.condition is not None:
        yield from _region(loop.condition.bindings, path)
    yield from _region(loop.body.bindings, path)


def _iterated(param: LoopParam, op: str, note: str, path: list[str]) -> GraphNode:
    value, detail = param.value, f"{info_text(param.value.info)}{note}"
    inputs = _values((param.given,))
    return GraphNode(value.uid, value.name, op, "carried", detail, "", path, inputs, [])


def _param(value: Value) -> GraphNode:
    return GraphNode(value.uid, value.name, "param", "param", info_text(value.info), "", [], [], [])


def _result(results: tuple[Operand, ...]) -> GraphNode:
    inputs = _values(results)
    return GraphNode(RESULT_UID, "result", "return", "result", "", "", [], inputs, [])


_NODES: WeakKeyDictionary[Binding, GraphNode] = WeakKeyDictionary()
"""The nodes of bindings without inherited namespaces; a step keeps most bindings of a graph."""


def _binding(binding: Binding) -> GraphNode:
    node = _NODES.get(binding)
    if node is None:
        node = _NODES[binding] = _new_node(binding)
    return node


def _new_node(binding: Binding) -> GraphNode:
    kind, op, callee = _describe(binding.right)
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


def _describe(right: Rhs) -> tuple[_Kind, str, str]:
    """Return the kind, operator and called function of a right-hand side."""
    match right:
        case Call(op=op):
            return "call", op, ""
        case CallTIR(function=name) | LaunchKernel(function=name):
            return "kernel", name, name
        case CallDPSLibrary(symbol=name) | LaunchLibrary(symbol=name):
            return "library", name, ""
        case CallGraph(function=name):
            return "call", name, name
        case _:
            return "other", _snake_case(right), ""


def _snake_case(right: object) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in type(right).__name__)[1:]


def _inputs(right: Rhs) -> list[int]:
    if isinstance(right, LaunchKernel | LaunchLibrary | CallTIR):
        return _values(right.args)
    inner = (result for branch in branches_of(right) for result in branch.results)
    return _values((*_outer_operands(right), *inner))


def _outer_operands(right: Rhs) -> tuple[Operand, ...]:
    """Return the operands of a node; those of a loop belong to its carried values."""
    return () if isinstance(right, Loop) else operands_of(right)


def _values(operands: tuple[Operand, ...]) -> list[int]:
    uids = [x.uid for x in operands if isinstance(x, Value)]
    return list(dict.fromkeys(uids))


def weights_of(right: Rhs) -> list[str]:
    """Return the keys of the constants that a right-hand side reads."""
    return [x.key for x in operands_of(right) if isinstance(x, ConstantRef)]


def _with_inherited_namespaces(nodes: list[GraphNode]) -> list[GraphNode]:
    """Return the nodes; one without a namespace gets the common prefix of its neighbors."""
    paths = [n.path for n in nodes]
    before, after = _fill_forward(paths), _fill_forward(paths[::-1])[::-1]
    neighbors = zip(nodes, before, after, strict=True)
    return [n if n.path else replace(n, path=_common_prefix(a, b)) for n, a, b in neighbors]


def _fill_forward(paths: list[list[str]]) -> list[list[str]]:
    """Return the paths, each empty one replaced by the last one that is not empty."""
    filled: list[list[str]] = []
    for path in paths:
        filled.append(path or (filled[-1] if filled else []))
    return filled


def namespace(origins: Origins) -> list[str]:
    """Return the common namespace of the qualified origins.

    Examples
    --------
    >>> namespace(frozenset({"encoder.layer.0.attention.query", "encoder.layer.0.attention.key"}))
    ['encoder', 'layer.0', 'attention']
    """
    found = [_segments(origin) for origin in sorted(origins)]
    paths = [path for path in found if len(path) > 1]
    shared = paths[0] if paths else []
    for path in paths[1:]:
        shared = _common_prefix(shared, path)
    return shared


def _common_prefix(left: list[str], right: list[str]) -> list[str]:
    same = 0
    while same < min(len(left), len(right)) and left[same] == right[same]:
        same += 1
    return left[:same]


def _segments(origin: str) -> list[str]:
    """Split a name at dots and slashes; a number stays with the word before it."""
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
    """Return an annotation as short text.

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
