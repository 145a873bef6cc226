"""The canonical tokens of graph-level functions; callees are identified by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

from ..canonical import Canon
from ..symbolic import Expr
from .nodes import (
    Binding,
    CallableInfo,
    ConstantRef,
    Dims,
    GraphFunc,
    Info,
    Loop,
    MatchCast,
    ObjectInfo,
    Operand,
    PrimInfo,
    Rhs,
    ScalarLiteral,
    ShapeInfo,
    TensorInfo,
    TupleInfo,
    Value,
)
from .visit import Role, defining_infos, info_terms, operands_of, parts_of, roles_of


def write_graph_func(canon: Canon, func: GraphFunc) -> None:
    """Append the tokens of a function; its name is not included."""
    canon.emit(f"graph_func {func.stage}")
    for param in func.params:
        canon.symbols(info_terms(param.value.info))
    # Symbols that occur only inside dimensions are numbered in the order of their first use.
    if any(canon.unknown(info_terms(param.value.info)) for param in func.params):
        canon.symbols(_used_dims(func))
    for param in func.params:
        with canon.inside(f"parameter {param.value.name!r}"):
            info = info_key(canon, param.value.info)
            initial = "" if param.initial is None else f" = {_operand(canon, param.initial)}"
            canon.emit(f"{param.access} {_value(canon, param.value)}: {info}{initial}")
    canon.facts(func.facts)
    canon.attributes("attribute", func.attributes)
    _bindings(canon, func.bindings)
    canon.emit(f"hints {_hints(canon, func)}")
    canon.emit(f"return {_operands(canon, func.results)} as {func.result_names}")
    for update in func.updates:
        canon.emit(f"update {_value(canon, update.param)} = {_operand(canon, update.value)}")


def _hints(canon: Canon, func: GraphFunc) -> str:
    """Return the likely values, sorted by the numbers of their symbols."""
    return str(sorted((canon.symbol_named(name), values) for name, values in func.hints))


def _used_dims(func: GraphFunc) -> Iterator[Expr]:
    """Yield the dimensions in bindings, in order."""
    for binding in func.bindings:
        for operand in operands_of(binding.right):
            yield from operand.dims if isinstance(operand, Dims) else ()
        yield from info_terms(binding.value.info)


def _value(canon: Canon, value: Value) -> str:
    return canon.number("$", value, value.name)


def _maybe(canon: Canon, terms: tuple[Expr, ...] | None) -> str:
    return "?" if terms is None else f"({canon.terms(terms)})"


def info_key(canon: Canon, info: Info) -> str:
    """Return the key of an annotation."""
    match info:
        case ObjectInfo():
            return "object"
        case PrimInfo(dtype=dtype, value=value):
            return f"prim {dtype} {'?' if value is None else canon.term(value)}"
        case ShapeInfo(dims=dims, rank=rank):
            return f"shape {_maybe(canon, dims)} {rank}"
        case TensorInfo(shape=shape, dtype=dtype, device=device, elements=elements, rank=rank):
            return (
                f"tensor {_maybe(canon, shape)} {dtype} {device} {_maybe(canon, elements)} {rank}"
            )
        case TupleInfo(fields=fields):
            return f"tuple<{_infos(canon, fields)}>"
        case CallableInfo(params=params, result=result):
            return f"callable<{_infos(canon, params)} -> {info_key(canon, result)}>"
        case _:
            assert_never(info)


def _infos(canon: Canon, infos: Iterable[Info]) -> str:
    return "; ".join([info_key(canon, i) for i in infos])


def _operand(canon: Canon, operand: Operand) -> str:
    match operand:
        case Value():
            return _value(canon, operand)
        case ConstantRef(key=key, info=info):
            return f"const {key!r} {info_key(canon, info)}"
        case ScalarLiteral(value=value, dtype=dtype):
            return f"{dtype}({value!r})"
        case Dims(dims=dims):
            return f"({canon.terms(dims)})"
        case _:
            assert_never(operand)


def _operands(canon: Canon, operands: Iterable[Operand]) -> str:
    return "; ".join([_operand(canon, o) for o in operands])


def _bindings(canon: Canon, bindings: Iterable[Binding]) -> None:
    for binding in bindings:
        with canon.inside(f"binding {binding.value.name!r}"):
            canon.attributes("attribute", binding.attributes)
            _binding(canon, binding)


def _binding(canon: Canon, binding: Binding) -> None:
    right = binding.right
    for info in defining_infos(binding) if isinstance(right, MatchCast) else ():
        canon.symbols(info_terms(info))
    if isinstance(right, Loop):
        canon.bind(right.index)
        for param in right.params:
            canon.symbols(info_terms(param.value.info))
    canon.emit(_text(canon, right))
    for part in _nested(right):
        for inner in _lists(part):
            _bindings(canon, inner)
        canon.emit(_text(canon, part))
    if isinstance(right, Loop):
        canon.symbols(info_terms(binding.value.info))
    info = info_key(canon, binding.value.info)
    canon.emit(f"is {_value(canon, binding.value)}: {info}")


def _nested(right: Rhs) -> Iterator[object]:
    """Yield the nested parts of a right-hand side, in order."""
    for name, role in roles_of(type(right)):
        if role == "nested":
            yield from parts_of(getattr(right, name))


def _lists(part: object) -> Iterator[tuple[Binding, ...]]:
    """Yield the lists of bindings of a nested part."""
    for name, role in roles_of(type(part)) if part is not None else ():
        if role == "bindings":
            yield getattr(part, name)


def _text(canon: Canon, node: object) -> str:
    """Return a right-hand side, or a part of one, without nested nodes: its kind and its fields."""
    if node is None:
        return "none"
    words = [type(node).__name__]
    words += [
        text
        for name, role in roles_of(type(node))
        if (text := _field(canon, role, name, getattr(node, name)))
    ]
    return " ".join(words)


def _field(canon: Canon, role: Role, name: str, held: Any) -> str:
    """Return one field as text; empty for nested nodes."""
    parts = parts_of(held)
    match role:
        case "operand":
            return f"({_operands(canon, parts)})"
        case "value":
            return _typed(canon, held)
        case "term":
            return "none" if held is None else f"[{', '.join(map(canon.term, parts))}]"
        case "info":
            return f"<{_infos(canon, parts)}>"
        case "symbol":
            return canon.bind(held)
        case "plain" if name == "attributes":
            return ", ".join(f"{k}={canon.attribute(v)}" for k, v in sorted(held))
        case "plain":
            return repr(held)
        case "nested" | "bindings":
            return ""


def _typed(canon: Canon, value: Value) -> str:
    return f"{_value(canon, value)}: {info_key(canon, value.info)}"
