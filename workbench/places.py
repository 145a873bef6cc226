"""Handles as the browser knows them: finding, naming, and what is around them."""

from __future__ import annotations

from typing import assert_never

from ..ir.analysis import Tree, tree_of
from ..ir.graph.nodes import Binding, GraphFunc
from ..ir.loop.nodes import Block, Buffer, For, IterVar, PrimFunc
from ..ir.symbolic import Expr, free_vars, to_text
from ..schedules import (
    BindingRef,
    BlockRef,
    BufferRef,
    FunctionRef,
    LoopRef,
    Ref as Handle,
    State,
)
from .graphs import info_text, weights_of
from .protocol import Ref, RefKind
from .render import Samples, at_samples


def to_view(state: State, handle: Handle) -> Ref:
    """A handle with its kind and name, for the browser."""
    match handle:
        case FunctionRef(function=name):
            return Ref("function", name, 0, name)
        case LoopRef(function=function, uid=uid):
            loop = state.tree(function).loops.get(uid)
            return Ref("loop", function, uid, loop.var.name if loop else handle.name)
        case BlockRef(function=function, uid=uid):
            block = state.tree(function).blocks.get(uid)
            return Ref("block", function, uid, block.name if block else handle.name)
        case BufferRef(function=function, uid=uid):
            buffer = state.tree(function).buffers.get(uid)
            return Ref("buffer", function, uid, buffer.name if buffer else handle.name)
        case BindingRef(function=function, uid=uid):
            return Ref("binding", function, uid, _value_name(state, function, uid) or handle.name)
        case _:
            assert_never(handle)


def to_handle(state: State, kind: RefKind, function: str, uid: int) -> Handle | None:
    """The handle of what a click meant, or None where it is not in the program any more."""
    made: Handle
    match kind:
        case "function":
            made = FunctionRef(function)
        case "loop":
            made = LoopRef(function, uid)
        case "block":
            made = BlockRef(function, uid)
        case "buffer":
            made = BufferRef(function, uid)
        case "binding":
            made = BindingRef(function, uid)
    return named(state, made) if exists(state, made) else None


def named(state: State, handle: Handle) -> Handle:
    """The same handle with the name that its part has now."""
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
    """Whether a handle points at something of this state."""
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
    values = (*(p.value for p in found.params), *(b.value for b in found.bindings))
    return next((v.name for v in values if v.uid == uid), "")


def find_by_name(state: State, function: str, name: str) -> Handle | None:
    """The loop, block or buffer of that name in a loop-level function."""
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


def around(state: State, handle: Handle) -> list[Ref]:
    """The function and the loops and blocks around a thing, outermost first."""
    path = [to_view(state, FunctionRef(handle.function))]
    function = state.module.functions[handle.function]
    if not isinstance(function, PrimFunc) or not isinstance(handle, LoopRef | BlockRef):
        return path if not isinstance(handle, FunctionRef) else []
    tree = tree_of(function)
    inner = tree.loops[handle.uid] if isinstance(handle, LoopRef) else tree.blocks[handle.uid]
    for outer in reversed(list(tree.ancestors(inner))):
        if isinstance(outer, For):
            path.append(Ref("loop", handle.function, outer.uid, outer.var.name))
        elif isinstance(outer, Block):
            path.append(Ref("block", handle.function, outer.uid, outer.name))
    return path


def facts_about(state: State, handle: Handle, samples: Samples) -> dict[str, str]:
    """What the inspector tells of a selection."""
    match handle:
        case LoopRef():
            return _loop_facts(state, handle, samples)
        case BlockRef():
            return _block_facts(state.block(handle))
        case BufferRef():
            return _buffer_facts(state.buffer(handle), samples)
        case BindingRef(function=function, uid=uid):
            return _binding_facts(state.module.graph(function), uid)
        case FunctionRef(function=name):
            return _function_facts(state, name)
        case _:
            assert_never(handle)


def _loop_facts(state: State, ref: LoopRef, samples: Samples) -> dict[str, str]:
    loop = state.loop(ref)
    facts = {"extent": sized(loop.extent, samples), "kind": loop.kind}
    iters = [
        f"{item.kind} {item.var.name} of {block.name}"
        for block in state.tree(ref.function).blocks_in(loop)
        for item in block.iters
        if loop.var in free_vars(item.binding)
    ]
    if iters:
        facts["drives"] = "; ".join(iters[:3]) + ("; …" if len(iters) > 3 else "")
    return facts


def _block_facts(block: Block) -> dict[str, str]:
    facts = {"iterates": ", ".join(map(_iter_text, block.iters)) or "once"}
    if block.init is not None:
        facts["init"] = "yes"
    facts["reads"] = ", ".join(dict.fromkeys(r.buffer.name for r in block.reads)) or "nothing"
    facts["writes"] = ", ".join(dict.fromkeys(r.buffer.name for r in block.writes)) or "nothing"
    return facts


def _iter_text(item: IterVar) -> str:
    return f"{item.kind} {item.var.name} < {to_text(item.extent)}"


def _buffer_facts(buffer: Buffer, samples: Samples) -> dict[str, str]:
    shape = ", ".join(map(to_text, buffer.shape))
    facts = {"shape": f"({shape})", "dtype": str(buffer.dtype), "scope": buffer.scope}
    size = buffer_bytes(buffer, samples)
    return facts if size is None else {**facts, "size": bytes_text(size)}


def _binding_facts(function: GraphFunc, uid: int) -> dict[str, str]:
    for binding in function.bindings:
        if binding.value.uid == uid:
            return _bound_facts(binding, weights_of(binding.right))
    param = next(p for p in function.params if p.value.uid == uid)
    return {"parameter": param.access, "is": info_text(param.value.info)}


def _bound_facts(binding: Binding, weights: list[str]) -> dict[str, str]:
    facts = {"is": info_text(binding.value.info)}
    if binding.origins:
        facts["from"] = ", ".join(sorted(binding.origins)[:3])
    if weights:
        facts["weights"] = ", ".join(weights[:3])
    return facts


def _function_facts(state: State, name: str) -> dict[str, str]:
    function = state.module.functions[name]
    if isinstance(function, GraphFunc):
        return {"stage": function.stage, "operations": str(len(function.bindings))}
    tree = tree_of(function)
    return {"blocks": str(len(tree.blocks)), "loops": str(len(tree.loops))}


def sized(term: Expr, samples: Samples) -> str:
    """A term, and its value at the samples where it has symbols."""
    value = at_samples(term, samples)
    return to_text(term) if value is None or not free_vars(term) else f"{to_text(term)} = {value}"


def buffer_bytes(buffer: Buffer, samples: Samples) -> int | None:
    """Bytes of a buffer at the samples."""
    total = buffer.dtype.bits
    for dim in buffer.shape:
        value = at_samples(dim, samples)
        if value is None:
            return None
        total *= value
    return -(-total // 8)


def bytes_text(count: int) -> str:
    """A number of bytes for people.

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
