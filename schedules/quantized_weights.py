"""Conversions of quantized weights that a matrix product computes itself."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.analysis import PatternKind, pattern_kind, tree_of
from ..ir.analysis.updates import reduction_update
from ..ir.dtype import BYTE
from ..ir.graph.nodes import (
    Binding,
    CallTIR,
    ConstantRef,
    GraphFunc,
    Operand,
    TensorInfo,
    Value,
)
from ..ir.graph.visit import users
from ..ir.loop.nodes import Binary, Buffer, Load, Store
from ..ir.loop.visit import walk_element
from ..ir.module import Module
from ..ir.symbolic import Expr, free_vars, product

MATRIX = 2
"""The rank of a matrix."""


def converts_weight(operand: Operand, result: TensorInfo) -> bool:
    """Return whether a result with the shape of a constant is a wider float than the constant."""
    if not isinstance(operand, ConstantRef) or not _is_narrow(operand):
        return False
    return _is_wide(result) and _count(operand.info) == _count(result)


def _is_wide(info: TensorInfo) -> bool:
    return info.dtype.is_float and info.dtype.bits > BYTE


def fused_conversions(module: Module, graph: GraphFunc) -> frozenset[Value]:
    """Return the values that convert quantized weights and are computed inside of a product.

    Such a value depends on a constant or parameter of at most 8 bits per element, element by
    element; its only user is the right operand of a matrix product, or another such value. In
    memory it would be several times larger than the weights.
    """
    converted = {b.value: b for b in _conversions(module, graph)}
    uses = users(graph)
    found: set[Value] = set()
    for value in reversed(converted):
        using = uses.get(value, [])
        if len(using) == 1 and value not in graph.returned:
            user = using[0]
            if user.value in found or _multiplies_by(module, user, value):
                found.add(value)
    return frozenset(found)


def _conversions(module: Module, graph: GraphFunc) -> Iterator[Binding]:
    """Yield the bindings whose elements each depend on one element of a quantized tensor."""
    inputs = {p.value for p in graph.params}
    found: set[Operand] = set()
    for binding in graph.bindings:
        right, info = binding.right, binding.value.info
        if not isinstance(right, CallTIR) or right.updates or right.versions:
            continue
        if not isinstance(info, TensorInfo) or not _is_wide(info):
            continue
        count = _count(info)
        narrow = (
            a in found or (_is_narrow(a) and (a in inputs or isinstance(a, ConstantRef)))
            for a in right.args
            if isinstance(a, Value | ConstantRef) and _count(a.info) == count
        )
        if any(narrow) and pattern_kind(module.prim(right.function)) <= PatternKind.INJECTIVE:
            found.add(binding.value)
            yield binding


def _is_narrow(operand: Value | ConstantRef) -> bool:
    info = operand.info
    return isinstance(info, TensorInfo) and info.dtype.kind != "bool" and info.dtype.bits <= BYTE


def _count(info: object) -> Expr | None:
    shape = info.shape if isinstance(info, TensorInfo) else None
    return None if shape is None else product(shape)


def _multiplies_by(module: Module, user: Binding, value: Value) -> bool:
    """Return whether a call of a kernel multiplies by a value from the right."""
    call = user.right
    if not isinstance(call, CallTIR) or call.args.count(value) != 1 or call.versions:
        return False
    kernel = module.prim(call.function)
    if pattern_kind(kernel) != PatternKind.OUT_FUSABLE:
        return False
    buffer = kernel.buffer_params[call.args.index(value)]
    reductions = (reduction_update(b) for b in tree_of(kernel).outermost_blocks())
    return all(_is_right(found, buffer) for found in reductions if found is not None)


def _is_right(update: tuple[Store, Binary], buffer: Buffer) -> bool:
    """Return whether the elements of a buffer depend on the column of a result, not on its row."""
    store, added = update
    if len(store.indices) < MATRIX:
        return False
    row, column = store.indices[-2:]
    read = [e for e in walk_element(added.right) if isinstance(e, Load) and e.buffer is buffer]
    variables = [{v for index in load.indices for v in free_vars(index)} for load in read]
    return bool(read) and all(column in free and row not in free for free in variables)
