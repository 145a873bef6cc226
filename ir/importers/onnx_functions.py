"""Expansion of the functions that an ONNX model, or ONNX itself, defines operators by."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ...errors import TilewrightError
from .onnx_file import CHECK_MODEL, DEFAULT_DOMAINS, MalformedModelError, OnnxFile

MOST_NODES: Final = 200_000
"""The largest number of nodes of a model whose functions are expanded."""
MOST_BYTES: Final = 1 << 30
"""The largest size in bytes of the nodes of a model whose functions are expanded."""

_ROUNDS: Final = 4
"""The depth of functions of operators that are functions."""
_GRAPH: Final = 5
_GRAPHS: Final = 10

_Key: TypeAlias = "tuple[str, str, str]"


class ExpansionLimitError(TilewrightError):
    """An ONNX model whose functions expand to too many nodes."""

    title = "ONNX functions too large"


@dataclass(frozen=True, slots=True)
class _Size:
    nodes: int
    bytes: int


def with_functions_expanded(file: OnnxFile) -> OnnxFile:
    """Replace the calls of the functions that a model defines by their nodes.

    Raises
    ------
    MalformedModelError
        If a function is recursive, defined twice, or otherwise invalid.
    ExpansionLimitError
        If the model would have too many nodes; they are counted before anything is expanded.
    """
    model = file.model
    if not model.functions:
        return file
    size = _expanded_size(model)
    if size.nodes > MOST_NODES or size.bytes > MOST_BYTES:
        raise ExpansionLimitError(
            f"the functions of the model expand to {size.nodes} nodes of {size.bytes} bytes; "
            f"at most {MOST_NODES} nodes and {MOST_BYTES} bytes are supported",
            where="functions of the ONNX model",
            hint="export the model with fewer nested functions",
        )
    from onnx import inliner

    try:
        expanded: Any = inliner.inline_local_functions(model)
    except MemoryError:
        raise
    except Exception as error:  # the errors of the inliner have no common class
        raise MalformedModelError(
            f"the functions of the model cannot be expanded: {error}",
            where="functions of the ONNX model",
            hint=CHECK_MODEL,
        ) from error
    return OnnxFile(expanded, file.folder, file.opset)


def with_definitions(file: OnnxFile, handled: Container[str]) -> OnnxFile:
    """Replace operators without a handler by the functions that ONNX defines them by, if any."""
    from onnx import inliner

    tried: set[str] = set()
    for _ in range(_ROUNDS):
        nodes = _all_nodes(file.model.graph.node)
        missing = {n.op_type for n in nodes if n.domain in DEFAULT_DOMAINS} - tried
        defined = sorted(op for op in missing if op not in handled and _is_function(op, file.opset))
        if not defined:
            break
        tried |= missing
        try:
            expanded: Any = inliner.inline_selected_functions(
                _with_defaults(file, defined),
                [("", op) for op in defined],
                inline_schema_functions=True,
            )
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001  # the errors of the inliner have no common class
            break  # the import reports the operators
        file = OnnxFile(expanded, file.folder, file.opset)
    return file


def _with_defaults(file: OnnxFile, ops: Sequence[str]) -> Any:
    """Return a copy of the model in which nodes of these operators state default attributes.

    The inliner drops an attribute of a function that its call does not state.
    """
    from onnx import ModelProto, defs

    model = ModelProto()
    model.CopyFrom(file.model)
    for node in _all_nodes(model.graph.node):
        if node.domain in DEFAULT_DOMAINS and node.op_type in ops:
            given = {a.name for a in node.attribute}
            schema: Any = defs.get_schema(node.op_type, file.opset)
            for name, attribute in schema.attributes.items():
                if name not in given and attribute.default_value.name:
                    node.attribute.append(attribute.default_value)
    return model


def _is_function(op: str, opset: int) -> bool:
    """Return whether ONNX defines an operator by a function of other operators."""
    from onnx import defs

    try:
        schema: Any = defs.get_schema(op, opset)
    except defs.SchemaError:
        return False
    return schema.has_function or schema.has_context_dependent_function


def _expanded_size(model: Any) -> _Size:
    """Return the size of the graph after the expansion of all functions."""
    functions: dict[_Key, Any] = {}
    for function in model.functions:
        key = _key(function.domain, function.name, function)
        if key in functions:
            raise MalformedModelError(
                "the function is defined twice", where=_name(key), hint=CHECK_MODEL
            )
        functions[key] = function
    sizes: dict[_Key, _Size] = {}
    for key in _callees_first(functions):
        sizes[key] = _size(functions[key].node, sizes)
    return _size(model.graph.node, sizes)


def _size(nodes: Iterable[Any], sizes: Mapping[_Key, _Size]) -> _Size:
    count = total = 0
    for node in _all_nodes(nodes):
        called = sizes.get(_called(node))
        count += 1 if called is None else called.nodes
        total += node.ByteSize() + (0 if called is None else called.bytes)
    return _Size(count, total)


def _callees_first(functions: Mapping[_Key, Any]) -> Iterator[_Key]:
    """Yield all functions, each one after the functions that it calls."""
    done: set[_Key] = set()
    for root in functions:
        active: dict[_Key, Iterator[_Key]] = {} if root in done else {root: _calls(root, functions)}
        while active:
            key, calls = next(reversed(active.items()))
            called = next((c for c in calls if c not in done), None)
            if called is None:
                del active[key]
                done.add(key)
                yield key
            elif called in active:
                cycle = [*active][[*active].index(called) :]
                raise MalformedModelError(
                    "the function is recursive: " + " calls ".join(map(_name, [*cycle, called])),
                    where=_name(called),
                    hint="ONNX forbids recursive functions; " + CHECK_MODEL,
                )
            else:
                active[called] = _calls(called, functions)


def _calls(key: _Key, functions: Mapping[_Key, Any]) -> Iterator[_Key]:
    called = dict.fromkeys(_called(n) for n in _all_nodes(functions[key].node))
    return iter([c for c in called if c in functions])


def _all_nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield nodes and the nodes of their subgraphs."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        for attribute in node.attribute:
            if attribute.type == _GRAPH:
                waiting += attribute.g.node
            elif attribute.type == _GRAPHS:
                waiting += [n for graph in attribute.graphs for n in graph.node]


def _called(node: Any) -> _Key:
    return _key(node.domain, node.op_type, node)


def _key(domain: str, name: str, proto: Any) -> _Key:
    return ("" if domain in DEFAULT_DOMAINS else domain, name, getattr(proto, "overload", ""))


def _name(key: _Key) -> str:
    domain, name, overload = key
    return "function " + ".".join(part for part in (domain, name, overload) if part)
