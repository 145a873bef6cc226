"""Checks of ONNX nodes against the schemas of their operators, and their attribute values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import numpy as np

from ..dtype import DType
from .onnx_file import CHECK_MODEL, MalformedModelError, initializer
from .unsupported import UnsupportedFormError

_FLOAT: Final = 1
_INT: Final = 2
_STRING: Final = 3
_TENSOR: Final = 4
_GRAPH: Final = 5
_FLOATS: Final = 6
_INTS: Final = 7
_STRINGS: Final = 8
_KINDS: Final = {
    _FLOAT: "a number", _INT: "an integer", _STRING: "a string", _TENSOR: "a tensor",
    _GRAPH: "a graph", _FLOATS: "numbers", _INTS: "integers", _STRINGS: "strings", 9: "tensors",
    10: "graphs", 11: "a sparse tensor", 12: "sparse tensors", 13: "a type", 14: "types",
}  # fmt: skip
_READABLE: Final = (_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS)
_UNLISTED: Final[dict[str, dict[str, int]]] = {
    "SimplifiedLayerNormalization": {"axis": _INT, "epsilon": _FLOAT, "stash_type": _INT},
    "RMSNormalization": {"axis": _INT, "epsilon": _FLOAT, "stash_type": _INT},
}
"""Attributes of operators that the operator set of a model may lack."""


def checked_attributes(node: Any, opset: int) -> dict[str, Any]:
    """Return the attribute values of a node; each has the type that the operator declares.

    Strings are text, tensors are arrays.

    Raises
    ------
    MalformedModelError
        If the number of inputs or outputs is invalid, or if an attribute is unknown, is given
        twice, is missing, or has a value of another type.
    UnsupportedFormError
        If a value is a graph, a type, or a sparse tensor.
    """
    schema = _schema(node.op_type, opset)
    declared = _declared(node.op_type, schema)
    if schema is not None:
        _check_counts(node, schema)
    found: dict[str, Any] = {}
    for attribute in node.attribute:
        name = attribute.name
        if name in found:
            raise malformed(node, f"attribute {name!r} is given twice")
        if declared is not None and name not in declared:
            raise malformed(node, f"the operator has no attribute {name!r} in opset {opset}")
        if declared is not None and attribute.type != declared[name]:
            given = _KINDS.get(attribute.type, "a value without a type")
            kind = _KINDS[declared[name]]
            raise malformed(node, f"attribute {name!r} must be {kind}, got {given}")
        found[name] = _value(node, attribute)
    required = () if schema is None else (n for n, a in schema.attributes.items() if a.required)
    for name in required:
        if name not in found:
            raise malformed(node, f"the required attribute {name!r} is missing")
    return found


def malformed(node: Any, reason: str) -> MalformedModelError:
    """Return the error for a node that violates the specification of ONNX."""
    label = node.name or next(iter(node.output), node.op_type)
    return MalformedModelError(
        f"node {label!r} of operator {node.op_type} is invalid: {reason}",
        where=f"node {label!r}",
        hint=CHECK_MODEL,
    )


def check_dtypes(node: Any, opset: int, given: list[DType | None]) -> None:
    """Check that inputs of one type variable of the schema have one dtype.

    Raises
    ------
    MalformedModelError
        If two such inputs have different dtypes.
    """
    schema = _schema(node.op_type, opset)
    if schema is None:
        return
    found: dict[str, DType] = {}
    for variable, dtype in zip(_type_variables(schema, len(given)), given, strict=False):
        if dtype is not None and found.setdefault(variable, dtype) != dtype:
            raise malformed(
                node, f"its operands must have one dtype, got {found[variable]} and {dtype}"
            )


def _type_variables(schema: Any, count: int) -> Iterator[str]:
    """Yield the type variable of each input; the last one of a variadic operator repeats."""
    declared = list(schema.inputs)
    for k in range(count if declared else 0):
        formal = declared[min(k, len(declared) - 1)]
        variadic = formal.option.name == "Variadic"
        yield formal.type_str if formal.is_homogeneous or not variadic else f"{formal.type_str}{k}"


@cache
def _schema(op_type: str, opset: int) -> Any:
    from onnx import defs

    try:
        return defs.get_schema(op_type, opset)
    except defs.SchemaError:
        return None


def _declared(op_type: str, schema: Any) -> dict[str, int] | None:
    if schema is None:
        return _UNLISTED.get(op_type)
    return {name: a.type.value for name, a in schema.attributes.items()}


def _check_counts(node: Any, schema: Any) -> None:
    for kind, given, least, most in (
        ("inputs", node.input, schema.min_input, schema.max_input),
        ("outputs", node.output, schema.min_output, schema.max_output),
    ):
        count = len(given)
        if not least <= count <= most:
            expected = f"at least {least}" if count < least else f"at most {most}"
            raise malformed(node, f"expected {expected} {kind}, got {count}")


def _value(node: Any, attribute: Any) -> Any:
    from onnx import helper, numpy_helper

    if attribute.ref_attr_name:
        raise malformed(node, f"attribute {attribute.name!r} refers to an attribute of a function")
    if attribute.type not in _READABLE:
        kind = _KINDS.get(attribute.type, "a value without a type")
        raise UnsupportedFormError(
            f"attribute {attribute.name} is {kind}, which is not supported"
            if attribute.type not in (_GRAPH, 10)
            else f"attribute {attribute.name} is a subgraph, which is not supported"
        )
    value: Any = helper.get_attribute_value(attribute)
    if attribute.type == _GRAPH:
        return value
    if attribute.type == _TENSOR:
        return np.asarray(numpy_helper.to_array(initializer(value, attribute.name, None).tensor))
    if attribute.type in (_STRING, _STRINGS):
        return _text(node, attribute.name, value)
    return list(value) if attribute.type in (_FLOATS, _INTS) else value


def _text(node: Any, name: str, value: Any) -> Any:
    try:
        return value.decode() if isinstance(value, bytes) else [v.decode() for v in value]
    except UnicodeDecodeError as error:
        raise malformed(node, f"attribute {name!r} is not UTF-8 text") from error
