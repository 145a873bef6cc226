"""Lookup of handles by name, and of the queries that return a handle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..ir.analysis import Tree, accesses, producers
from ..ir.graph.visit import all_values
from ..ir.identity import STEP_STRIDE
from ..ir.loop.nodes import Block, Buffer
from ..nearest import did_you_mean
from .handles import (
    BindingRef,
    BlockRef,
    BufferRef,
    FunctionRef,
    Handle,
    LoopRef,
    block_ref,
    buffer_ref,
    loop_ref,
)
from .state import State
from .step import Step
from .suggest_names import NotFoundError, unknown
from .values import Value


@dataclass(frozen=True, slots=True)
class Lookup:
    """A query as a trace records it: name, parameters, and results."""

    op: str
    values: tuple[tuple[str, Value], ...]
    results: tuple[Handle, ...]


def find(state: State, kind: type[Handle], name: str, function: str | None) -> Handle:
    """Return the handle of a part of the program by its name.

    Parameters
    ----------
    state : State
        The state to search.
    kind : type of Handle
        The kind of the part.
    name : str
        The name of the part.
    function : str or None
        The function to search; None searches all functions, and the name must be unique.

    Raises
    ------
    NotFoundError
        If no part has that name, or more than one has.
    """
    if kind is FunctionRef:
        function, handles = None, [FunctionRef(f) for f in state.module.functions]
    elif kind is BindingRef:
        function = function or "main"
        handles = _bindings(state, function)
    else:
        named = _parts(state, kind, function, name)
        if len(named) == 1:
            return named[0]
        handles = _parts(state, kind, function)  # of which the message names the nearest
    return _only(state, handles, kind, name, function)


def _bindings(state: State, function: str) -> list[BindingRef]:
    graph = state.module.graph(function)
    return [BindingRef(function, v.uid, v.name) for v in all_values(graph)]


def _parts(
    state: State, kind: type[Handle], function: str | None, name: str | None = None
) -> list[Handle]:
    """Return the handles of the parts of a kind, or only of those with a name."""
    functions = [f.name for f in state.module.prims] if function is None else [function]
    return [handle for of in functions for handle in _handles(state.tree(of), of, kind, name)]


def _handles(tree: Tree, function: str, kind: type[Handle], name: str | None) -> Iterator[Handle]:
    if kind is BlockRef:
        yield from (block_ref(function, b) for b in tree.blocks.values() if name in {None, b.name})
    elif kind is LoopRef:
        loops = (x for x in tree.loops.values() if name in {None, x.var.name})
        yield from (loop_ref(function, x) for x in loops)
    elif kind is BufferRef:
        buffers = (b for b in tree.buffers.values() if name in {None, b.name})
        yield from (buffer_ref(function, b) for b in buffers)


def _name(handle: Handle) -> str:
    return handle.function if isinstance(handle, FunctionRef) else handle.name


def _only(
    state: State,
    handles: Sequence[Handle],
    kind: type[Handle],
    name: str,
    function: str | None,
) -> Handle:
    found = [handle for handle in handles if _name(handle) == name]
    word = _word(kind)
    if not found:
        where = "the module" if function is None else f"function {function!r}"
        names = [_name(handle) for handle in handles]
        raise NotFoundError(
            unknown(word, name, names, where),
            where=where,
            hint=did_you_mean(name, names)
            or _other_kind(state, kind, name)
            or f"use one of these names, or a handle from sch.get_{word}(...)",
            module=state.module,
            parts=handles,
        )
    if len(found) > 1:
        functions = ", ".join(handle.function for handle in found)
        raise NotFoundError(
            f"{word} {name!r} exists in several functions: {functions}",
            where="the module",
            hint=f'choose one with function="{found[0].function}"',
            module=state.module,
            parts=found,
        )
    return found[0]


def _word(kind: type[Handle]) -> str:
    return kind.__name__.removesuffix("Ref").lower()


def _other_kind(state: State, kind: type[Handle], name: str) -> str:
    """Return a hint if another kind of part has the name; else an empty text."""
    if name in state.module.functions:
        return f"{name!r} is the name of a function"
    for other in (LoopRef, BlockRef, BufferRef):
        if other is not kind and name in map(_name, _parts(state, other, None)):
            return f"{name!r} is the name of a {_word(other)}"
    return ""


def accessed(
    state: State, step: Step, index: int, named: Callable[[type[Handle], str], Handle]
) -> BufferRef:
    """Return the buffer that a step's block accesses, by its index, as TVM numbers regions.

    The buffers that the block writes count for ``cache_write``; those that it only reads count for
    all other steps. Both are in the order of their first access.

    Parameters
    ----------
    state : State
        The state to search.
    step : Step
        The step, which has a parameter ``block``.
    index : int
        The index, which counts from 0.
    named : callable
        Returns the handle of a kind for a name.

    Raises
    ------
    NotFoundError
        If the step has no block, or the block accesses fewer buffers.
    """
    block = dict(step.values()).get("block")
    ref = named(BlockRef, block) if isinstance(block, str) else block
    if not isinstance(ref, BlockRef):
        raise NotFoundError(
            f"{step.verb()} has no parameter 'block', so {index} is not a buffer",
            where=f"parameters of {step.verb()}",
            hint="pass the name of the buffer",
        )
    read, written = _read_and_written(state.block(ref))
    word, buffers = ("writes", written) if step.verb() == "cache_write" else ("only reads", read)
    if not 0 <= index < len(buffers):
        names = ", ".join(f"{k}: {b.name}" for k, b in enumerate(buffers)) or "none"
        raise NotFoundError(
            f"no buffer {index}; the buffers that block {ref.name!r} {word} are {names}",
            where=f"function {ref.function!r}",
            hint=f"pass an index below {len(buffers)}, or the name of the buffer",
            module=state.module,
            parts=[ref],
        )
    buffer = list(buffers)[index]
    return BufferRef(ref.function, buffer.uid, buffer.name)


def accessed_buffers(block: Block) -> tuple[Buffer, ...]:
    """Return the buffers of a block, those that it only reads first, in order of first access."""
    read, written = _read_and_written(block)
    return (*read, *written)


def _read_and_written(block: Block) -> tuple[tuple[Buffer, ...], tuple[Buffer, ...]]:
    found = accesses(block)
    written = dict.fromkeys(a.buffer for a in found if a.writes)
    return tuple(dict.fromkeys(a.buffer for a in found if a.buffer not in written)), tuple(written)


def locate(state: State, handle: Handle) -> Iterator[Lookup]:
    """Yield the queries that find a handle; the last one returns it.

    Functions are looked up by name, blocks by name in the handle of their function, loops by a
    block in them, and buffers by a known block that accesses them. So the trace replays on a
    function with other names of loops and buffers.
    """
    function = FunctionRef(handle.function)
    match handle:
        case FunctionRef():
            yield from _locate_function(state, function)
        case BlockRef():
            near = _neighbor(state, handle)
            if near is None:
                yield from _locate_function(state, function)
                name = state.block(handle).name
                near = _named(state, "get_block", BlockRef, name, function)
            yield near
        case LoopRef():
            yield from _locate_loop(state, handle, function)
        case BufferRef():
            yield from _locate_buffer(state, handle, function)
        case BindingRef(uid=uid):
            yield from _locate_function(state, function)
            name = next(b.name for b in _bindings(state, handle.function) if b.uid == uid)
            yield _named(state, "get_binding", BindingRef, name, function)


def _locate_function(state: State, function: FunctionRef) -> Iterator[Lookup]:
    if function not in state.known:
        yield Lookup("get_function", (("name", function.function),), (function,))


def _known_blocks(state: State, function: str) -> Iterator[tuple[BlockRef, Block]]:
    """Yield the blocks of a function that are results of recorded steps, the last one first."""
    blocks = state.tree(function).blocks
    for ref in reversed(tuple(state.known)):
        if isinstance(ref, BlockRef) and ref.function == function and ref.uid in blocks:
            yield ref, blocks[ref.uid]


def _named(state: State, op: str, kind: type[Handle], name: str, function: FunctionRef) -> Lookup:
    values = (("name", name), ("function", function))
    return Lookup(op, values, (find(state, kind, name, function.function),))


def _neighbor(state: State, handle: BlockRef) -> Lookup | None:
    """Return the query that finds a block that a step made, whose name depends on others.

    It is a producer of a known block.
    """
    if handle.uid < STEP_STRIDE:
        return None
    tree, block = state.tree(handle.function), state.block(handle)
    for ref, known in _known_blocks(state, handle.function):
        found = producers(tree, known)
        if block in found:
            results = tuple(block_ref(handle.function, b) for b in found)
            return Lookup("get_producers", (("block", ref),), results)
    return None


def _locate_buffer(state: State, handle: BufferRef, function: FunctionRef) -> Iterator[Lookup]:
    buffer = state.buffer(handle)
    for ref, block in _known_blocks(state, handle.function):
        found = accessed_buffers(block)
        if buffer in found:
            results = tuple(buffer_ref(handle.function, b) for b in found)
            yield Lookup("get_buffers", (("block", ref),), results)
            return
    yield from _locate_function(state, function)
    yield _named(state, "get_buffer", BufferRef, buffer.name, function)


def _locate_loop(state: State, handle: LoopRef, function: FunctionRef) -> Iterator[Lookup]:
    name = function.function
    tree, loop = state.tree(name), state.loop(handle)
    blocks = tree.blocks_in(loop)
    above = tree.loops_above(blocks[0]) if blocks else ()
    if loop not in above:
        yield from _locate_function(state, function)
        yield _named(state, "get_loop", LoopRef, loop.var.name, function)
        return
    block = block_ref(name, blocks[0])
    if block not in state.known:
        yield from locate(state, block)
    loops = tuple(loop_ref(name, x) for x in above)
    yield Lookup("get_loops", (("block", block),), loops)
