"""Selection: conversion of handles, enclosing scopes, and properties of selected parts."""

from __future__ import annotations

from typing import assert_never

from ..ir.analysis import Tree, tree_of
from ..ir.graph.nodes import Binding, GraphFunc
from ..ir.graph.regions import bindings_around
from ..ir.loop.nodes import Block, Buffer, For, IterVar, PrimFunc
from ..ir.symbolic import Expr, free_vars, to_text
from ..schedules import (
    BindingRef,
    BlockRef,
    BufferRef,
    FunctionRef,
    Handle,
    LoopRef,
    State,
)
from . import protocol_steps
from .graph_index import index_of
from .graph_view import info_text, weights_of
from .protocol_steps import HandleKind
from .render import Samples, at_samples


def to_view(state: State, handle: Handle) -> protocol_steps.Handle:
    """Return the handle of the protocol, with its kind and current name."""
    match handle:
        case FunctionRef(function=name):
            return protocol_steps.Handle("function", name, 0, name)
        case LoopRef(function=function, uid=uid):
            loop = state.tree(function).loops.get(uid)
            name = loop.var.name if loop else handle.name
            return protocol_steps.Handle("loop", function, uid, name)
        case BlockRef(function=function, uid=uid):
            block = state.tree(function).blocks.get(uid)
            name = block.name if block else handle.name
            return protocol_steps.Handle("block", function, uid, name)
        case BufferRef(function=function, uid=uid):
            buffer = state.tree(function).buffers.get(uid)
            name = buffer.name if buffer else handle.name
            return protocol_steps.Handle("buffer", function, uid, name)
        case BindingRef(function=function, uid=uid):
            name = _value_name(state, function, uid) or handle.name
            return protocol_steps.Handle("binding", function, uid, name)
        case _:
            assert_never(handle)


def to_handle(state: State, kind: HandleKind, function: str, uid: int) -> Handle | None:
    """Return the handle of a selected part, or None if the part no longer exists."""
    handle: Handle
    match kind:
        case "function":
            handle = FunctionRef(function)
        case "loop":
            handle = LoopRef(function, uid)
        case "block":
            handle = BlockRef(function, uid)
        case "buffer":
            handle = BufferRef(function, uid)
        case "binding":
            handle = BindingRef(function, uid)
    return named(state, handle) if exists(state, handle) else None


def named(state: State, handle: Handle) -> Handle:
    """Return the handle with the current name of its part."""
    name = to_view(state, handle).name
    match handle:
        case FunctionRef():
            return handle
        case LoopRef(function=function, uid=uid):
            return LoopRef(function, uid, name)
        case BlockRef(function=function, uid=uid):
            return BlockRef(function, uid, name)
        case BufferRef(function=function, uid=uid):
            return BufferRef(function, uid, name)
        case BindingRef(function=function, uid=uid):
            return BindingRef(function, uid, name)
        case _:
            assert_never(handle)


def exists(state: State, handle: Handle) -> bool:
    """Return whether the part that a handle refers to exists in this state."""
    function = state.module.functions.get(handle.function)
    if function is None or isinstance(handle, FunctionRef):
        return function is not None
    if isinstance(handle, BindingRef):
        return isinstance(function, GraphFunc) and bool(
            _value_name(state, handle.function, handle.uid)
        )
    return isinstance(function, PrimFunc) and handle.uid in _table(tree_of(function), handle)


def _table(tree: Tree, handle: LoopRef | BlockRef | BufferRef) -> dict[int, object]:
    match handle:
        case LoopRef():
            return {**tree.loops}
        case BlockRef():
            return {**tree.blocks}
        case BufferRef():
            return {**tree.buffers}


def _value_name(state: State, function: str, uid: int) -> str:
    found = state.module.functions.get(function)
    if not isinstance(found, GraphFunc):
        return ""
    value = index_of(found).values.get(uid)
    return "" if value is None else value.name


def find_by_name(state: State, function: str, name: str) -> Handle | None:
    """Return the loop, block or buffer with a name in a loop-level function, if any."""
    found = state.module.functions.get(function)
    if not isinstance(found, PrimFunc):
        return None
    tree = tree_of(found)
    for uid, loop in tree.loops.items():
        if loop.var.name == name:
            return LoopRef(function, uid, name)
    for uid, block in tree.blocks.items():
        if block.name == name:
            return BlockRef(function, uid, name)
    for uid, buffer in tree.buffers.items():
        if buffer.name == name:
            return BufferRef(function, uid, name)
    return None


def enclosing(state: State, handle: Handle) -> list[protocol_steps.Handle]:
    """Return the function, loops and blocks that enclose a part, outermost first.

    A binding of the graph is enclosed by the loops and branches that contain it.
    """
    path = [to_view(state, FunctionRef(handle.function))]
    function = state.module.functions[handle.function]
    if isinstance(function, GraphFunc) and isinstance(handle, BindingRef):
        nested = handle.uid not in index_of(function).outermost
        outer = [b.value for b in bindings_around(function, handle.uid)] if nested else []
        return path + [
            protocol_steps.Handle("binding", handle.function, v.uid, v.name) for v in outer
        ]
    if not isinstance(function, PrimFunc) or not isinstance(handle, LoopRef | BlockRef):
        return path if not isinstance(handle, FunctionRef) else []
    tree = tree_of(function)
    inner = tree.loops[handle.uid] if isinstance(handle, LoopRef) else tree.blocks[handle.uid]
    for outer in reversed(list(tree.ancestors(inner))):
        if isinstance(outer, For):
            path.append(protocol_steps.Handle("loop", handle.function, outer.uid, outer.var.name))
        elif isinstance(outer, Block):
            path.append(protocol_steps.Handle("block", handle.function, outer.uid, outer.name))
    return path


def properties_of(state: State, handle: Handle, samples: Samples) -> dict[str, str]:
    """Return the properties of a selected part for the inspector."""
    match handle:
        case LoopRef():
            return _loop_properties(state, handle, samples)
        case BlockRef():
            return _block_properties(state.block(handle))
        case BufferRef():
            return _buffer_properties(state.buffer(handle), samples)
        case BindingRef(function=function, uid=uid):
            return _binding_properties(state.module.graph(function), uid)
        case FunctionRef(function=name):
            return _function_properties(state, name)
        case _:
            assert_never(handle)


def _loop_properties(state: State, handle: LoopRef, samples: Samples) -> dict[str, str]:
    loop = state.loop(handle)
    properties = {"extent": term_text(loop.extent, samples), "kind": loop.kind}
    iters = [
        f"{item.kind} {item.var.name} of {block.name}"
        for block in state.tree(handle.function).blocks_in(loop)
        for item in block.iters
        if loop.var in free_vars(item.binding)
    ]
    if iters:
        properties["binds"] = "; ".join(iters[:3]) + ("; …" if len(iters) > 3 else "")
    return properties


def _block_properties(block: Block) -> dict[str, str]:
    properties = {"iteration variables": ", ".join(map(_iter_text, block.iters)) or "once"}
    if block.init is not None:
        properties["init"] = "yes"
    properties["reads"] = ", ".join(dict.fromkeys(r.buffer.name for r in block.reads)) or "nothing"
    properties["writes"] = (
        ", ".join(dict.fromkeys(r.buffer.name for r in block.writes)) or "nothing"
    )
    return properties


def _iter_text(item: IterVar) -> str:
    return f"{item.kind} {item.var.name} < {to_text(item.extent)}"


def _buffer_properties(buffer: Buffer, samples: Samples) -> dict[str, str]:
    shape = ", ".join(map(to_text, buffer.shape))
    properties = {"shape": f"({shape})", "dtype": str(buffer.dtype), "scope": buffer.scope}
    size = buffer_bytes(buffer, samples)
    return properties if size is None else {**properties, "size": bytes_text(size)}


def _binding_properties(function: GraphFunc, uid: int) -> dict[str, str]:
    index = index_of(function)
    binding = index.bindings.get(uid)
    if binding is not None:
        return _value_properties(binding, weights_of(binding.right))
    access = {p.value.uid: p.access for p in function.params}
    value = index.values[uid]
    return {"parameter": access.get(uid, "of a loop"), "annotation": info_text(value.info)}


def _value_properties(binding: Binding, weights: list[str]) -> dict[str, str]:
    properties = {"annotation": info_text(binding.value.info)}
    if binding.origins:
        properties["origin"] = ", ".join(sorted(binding.origins)[:3])
    if weights:
        properties["weights"] = ", ".join(weights[:3])
    return properties


def _function_properties(state: State, name: str) -> dict[str, str]:
    function = state.module.functions[name]
    if isinstance(function, GraphFunc):
        return {"stage": function.stage, "operations": str(len(index_of(function).bindings))}
    tree = tree_of(function)
    return {"blocks": str(len(tree.blocks)), "loops": str(len(tree.loops))}


def term_text(term: Expr, samples: Samples) -> str:
    """Return a term as text, with its value at the samples if it contains symbols."""
    value = at_samples(term, samples)
    return to_text(term) if value is None or not free_vars(term) else f"{to_text(term)} = {value}"


def buffer_bytes(buffer: Buffer, samples: Samples) -> int | None:
    """Return the size of a buffer in bytes at the samples, None if a sample is missing."""
    total = buffer.dtype.bits
    for dim in buffer.shape:
        value = at_samples(dim, samples)
        if value is None:
            return None
        total *= value
    return -(-total // 8)


def bytes_text(count: int) -> str:
    """Return a number of bytes as text with a binary prefix.

    Examples
    --------
    >>> bytes_text(512), bytes_text(3 << 19)
    ('512 B', '1.5 MiB')
    """
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} GiB"
