"""Gradients of reads and writes of elements at positions that tensors contain."""

from __future__ import annotations

from typing import Literal

from ...dtype import i64
from ...symbolic import as_expr, product
from ..nodes import Operand, TensorInfo, Value
from .composition import Composer
from .gradients import GradientCall, extent, shape_of, zeros


def indexed_gradient(call: GradientCall, graph: Composer) -> Value:
    """Add the elements of a cotangent at their positions in zeros.

    The indexed axes become one axis. Several elements at one position are added.
    """
    x, count, g = call.tensor(0), len(call.args) - 1, call.cotangent(graph)
    lead, rest = x.shape[:count], x.shape[count:]
    chosen = product(shape_of(g)[: len(shape_of(g)) - len(rest)])
    position: Value | None = None
    for size, index in zip(lead, call.args[1:], strict=True):
        own = graph.emit("cast", index, dtype="i64")
        length = extent(graph, size, i64)
        if call.attributes.flag("wrap"):
            own = graph.emit("mod", own, length)
        if position is not None:
            own = graph.emit("add", graph.emit("multiply", position, length), own)
        position = own
    at = graph.emit("reshape", position, (chosen,))
    start = zeros(graph, TensorInfo((product(lead), *rest), x.dtype))
    slices = graph.emit("reshape", g, (chosen, *rest))
    return graph.emit("reshape", graph.emit("index_add", start, at, slices, axis=0), x.shape)


def replaced_gradient(
    call: GradientCall, position: int, graph: Composer, read: Literal["take", "gather_elements"]
) -> Value:
    """Return the cotangent of a tensor of which elements are replaced, or of the new elements.

    Elements that are replaced, and new elements that a later one of the call replaces, do not
    affect the result. ``read`` is the operator that reads the elements which the call writes.
    """
    x, updates, indices = call.tensor(0), call.tensor(2), call.args[1]
    op, wrap, g = call.facts.op, call.attributes.flag("wrap"), call.cotangent(graph)
    axis = call.attributes.axis("axis", x.rank)
    none = zeros(graph, TensorInfo(updates.shape, updates.dtype))
    if not position:
        return graph.emit(op, g, indices, none, axis=axis, wrap=wrap)
    size = updates.shape[axis]
    along = tuple(size if k == axis else as_expr(1) for k in range(x.rank))
    numbers: Value = graph.emit("arange", (0, size, 1))
    shape, own = (x.shape[axis],), 0
    if read == "gather_elements":
        numbers = graph.emit("broadcast_to", graph.emit("reshape", numbers, along), updates.shape)
        shape, own = x.shape, axis
    unwritten = graph.emit("full", shape, -1, dtype="i64")
    written = graph.emit(op, unwritten, indices, numbers, axis=own, wrap=wrap)
    last: Operand = graph.emit(read, written, indices, axis=own, wrap=wrap)
    kept = graph.emit("equal", last, numbers)
    if read == "take":
        kept = graph.emit("reshape", kept, along)
    return graph.emit("where", kept, graph.emit(read, g, indices, axis=axis, wrap=wrap), none)
