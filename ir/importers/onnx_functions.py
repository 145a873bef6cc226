"""Expansion of the functions that an ONNX model, or ONNX itself, defines operators by."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ...errors import TilewrightError
from .onnx_file import CHECK_MODEL, DEFAULT_DOMAINS, MalformedModelError, OnnxFile

MOST_NODES: Final = 200_000
"""The largest number of nodes of a model whose functions are expanded."""
MOST_BYTES: Final = 1 << 30
"""The largest size in bytes of the nodes of a model whose functions are expanded."""

_OWN_DOMAIN: Final = "tilewright.definitions"
"""The domain of the functions of operators while a model is expanded."""
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
    tried: set[str] = set()
    for _ in range(_ROUNDS):
        model = _with_calls(file, handled, tried)
        if model is None:
            break
        try:
            file = with_functions_expanded(OnnxFile(model, file.folder, file.opset))
        except MalformedModelError:
            break  # the import reports the operators
    return file


def _with_calls(file: OnnxFile, handled: Container[str], tried: set[str]) -> Any:
    """Return a model whose operators without a handler are calls of its own functions, if any.

    The inliner of ONNX expands neither a call that omits optional operands, if the function depends
    on their types, nor attributes that a call does not state. So each call has its own function.
    """
    from onnx import ModelProto

    versions = {
        "": file.opset,
        **{o.domain: o.version for o in file.model.opset_import if o.domain not in DEFAULT_DOMAINS},
    }

    def schema_of(node: Any) -> Any:
        domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
        key = f"{domain}.{node.op_type}" if domain else node.op_type
        if key in handled or f"{key} {node.output}" in tried:
            return None
        return _schema(node.op_type, versions.get(domain, 0), domain)

    if all(schema_of(n) is None for n in _all_nodes(file.model.graph.node)):
        return None  # without a copy of the weights
    model, types, count = ModelProto(), _types(file.model), 0
    model.CopyFrom(file.model)
    for node in _all_nodes(model.graph.node):
        schema = schema_of(node)
        if schema is None:
            continue
        tried.add(f"{schema.domain + '.' if schema.domain else ''}{node.op_type} {node.output}")
        _state_defaults(node, schema)
        function = _definition(schema, node, types, versions[schema.domain])
        if function is None:
            continue
        function.domain, function.name = _OWN_DOMAIN, f"{node.op_type}_{count}_{len(tried)}"
        _at_version(function, file.opset)
        model.functions.append(function)
        node.domain, node.op_type = function.domain, function.name
        count += 1
    if count and all(o.domain != _OWN_DOMAIN for o in model.opset_import):
        model.opset_import.add(domain=_OWN_DOMAIN, version=1)
    return model if count else None


def _schema(op: str, opset: int, domain: str) -> Any:
    """Return the schema of an operator that ONNX defines by a function; None for others."""
    from onnx import defs

    try:
        schema: Any = defs.get_schema(op, opset, domain)
    except defs.SchemaError:
        return None
    return schema if schema.has_function or schema.has_context_dependent_function else None


def _types(model: Any) -> dict[str, Any]:
    """Return the types of values that the model or the shape inference of ONNX states."""
    from onnx import shape_inference

    try:
        graph = shape_inference.infer_shapes(model).graph
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  # such as an operator of an unknown domain
        graph = model.graph
    found = {v.name: v.type for v in (*graph.input, *graph.value_info, *graph.output)}
    for tensor in graph.initializer:
        if tensor.name not in found:
            found[tensor.name] = _type_of(tensor)
    return found


def _type_of(tensor: Any) -> Any:
    from onnx import helper

    return helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))


def _state_defaults(node: Any, schema: Any) -> None:
    """State the default attributes of a node."""
    given = {a.name for a in node.attribute}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.name:
            node.attribute.append(attribute.default_value)


def _definition(schema: Any, node: Any, types: Mapping[str, Any], opset: int) -> Any:
    """Return the function of a node; None if it cannot be built, such as for unknown types."""
    from onnx import FunctionProto, TypeProto

    if schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= opset]
        body = schema.get_function_with_opset_version(max(versions)) if versions else None
        return None if body is None else _copied(FunctionProto, body)
    versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
    if not versions or any(n and n not in types for n in node.input):
        return None
    given = [(types[n] if n else TypeProto()).SerializeToString() for n in node.input]
    try:
        body = schema.get_context_dependent_function_with_opset_version(
            max(versions), node.SerializeToString(), given
        )
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  # the builders of functions have no common class
        return None
    return _copied(FunctionProto, body)


def _at_version(function: Any, opset: int) -> None:
    """State the operator set of the model for a function whose operators it extends.

    The inliner does not expand a function of another operator set. Most versions of an operator
    add dtypes only.
    """
    from onnx import defs

    own = next((o for o in function.opset_import if o.domain in DEFAULT_DOMAINS), None)
    if own is None or own.version == opset:
        return
    names = {n.op_type for n in _all_nodes(function.node) if n.domain in DEFAULT_DOMAINS}
    try:
        same = all(
            _extends(defs.get_schema(name, opset), defs.get_schema(name, own.version))
            for name in names
        )
    except defs.SchemaError:
        return
    if same:
        own.version = opset


def _extends(newer: Any, older: Any) -> bool:
    """Return whether an operator has the inputs and attributes of its older version."""
    names = [[i.name for i in schema.inputs] for schema in (newer, older)]
    return names[0][: len(names[1])] == names[1] and set(older.attributes) <= set(newer.attributes)


def _copied(kind: Any, body: Any) -> Any:
    """Return a function as a message, whether the schema returns a message or its bytes."""
    found = kind()
    found.ParseFromString(body if isinstance(body, bytes) else body.SerializeToString())
    return found


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
