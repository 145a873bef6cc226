"""Questions whose answers later steps refer to: "the block named matmul", "the loops of"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..ir.analysis import Tree, consumers, producers
from ..ir.loop.nodes import PrimFunc
from ..ir.loop.visit import children
from .naming import NotFoundError, unknown
from .primitive import Query, query
from .refs import (
    BindingRef,
    BlockRef,
    BufferRef,
    FunctionRef,
    LoopRef,
    Ref,
    block_ref,
    loop_ref,
)

if TYPE_CHECKING:
    from .state import State


def _trees(state: State, function: str | None) -> dict[str, Tree]:
    if function is not None:
        return {function: state.tree(function)}
    return {f.name: state.tree(f.name) for f in state.module.prims}


def _only(found: list[Ref], kind: str, name: str, known: list[str], place: str) -> tuple[Ref, ...]:
    if not found:
        raise NotFoundError(unknown(kind, name, known, place))
    if len(found) > 1:
        functions = ", ".join(ref.function for ref in found)
        raise NotFoundError(
            f"{kind} {name!r} is in several functions: {functions}", hint="say function=..."
        )
    return (found[0],)


def _place(function: str | None) -> str:
    return "the module" if function is None else f"function {function!r}"


@query(returns=FunctionRef)
@dataclass(frozen=True, slots=True)
class GetFunction(Query):
    """Find a function of the module by its name.

    Parameters
    ----------
    name : str
        The function's name.
    """

    name: str

    def run(self, state: State) -> tuple[Ref, ...]:
        """Answer with the function."""
        names = list(state.module.functions)
        found: list[Ref] = [FunctionRef(self.name)] if self.name in names else []
        return _only(found, "function", self.name, names, "the module")


@query(returns=tuple[FunctionRef, ...])
@dataclass(frozen=True, slots=True)
class GetFunctions(Query):
    """Find the loop-level functions that came from an operation of the source model.

    Parameters
    ----------
    origin : str or None
        Part of the name of the operation; None means all loop-level functions.
    """

    origin: str | None = None

    def run(self, state: State) -> tuple[Ref, ...]:
        """Answer with the functions, in module order."""
        return tuple(FunctionRef(f.name) for f in state.module.prims if self._matches(f))

    def _matches(self, function: PrimFunc) -> bool:
        wanted = self.origin
        return wanted is None or any(wanted in origin for origin in function.origins)


@query(returns=BlockRef)
@dataclass(frozen=True, slots=True)
class GetBlock(Query):
    """Find a block by its name.

    Parameters
    ----------
    name : str
        The block's name.
    function : str or None
        The function to look in; None looks in all, and the name has to be in one only.
    """

    name: str
    function: str | None = None

    def run(self, state: State) -> tuple[Ref, ...]:
        """Answer with the block."""
        trees = _trees(state, self.function)
        known = [b.name for tree in trees.values() for b in tree.blocks.values()]
        found: list[Ref] = [
            block_ref(name, b)
            for name, tree in trees.items()
            for b in tree.blocks.values()
            if b.name == self.name
        ]
        return _only(found, "block", self.name, known, _place(self.function))


@query(returns=tuple[BlockRef, ...])
@dataclass(frozen=True, slots=True)
class GetBlocks(Query):
    """Find all blocks of a function, in program order.

    Parameters
    ----------
    function : str
        The function's name.
    """

    function: str

    def run(self, state: State) -> tuple[Ref, ...]:
        """Answer with the blocks."""
        blocks = state.tree(self.function).blocks.values()
        return tuple(block_ref(self.function, b) for b in blocks)


@query(returns=LoopRef)
@dataclass(frozen=True, slots=True)
class GetLoop(Query):
    """Find a loop by the name of its variable.

    Parameters
    ----------
    name : str
        The name of the loop's variable.
    function : str or None
        The function to look in; None looks in all, and the name has to be in one only.
    """

    name: str
    function: str | None = None

    def run(self, state: State) -> tuple[Ref, ...]:
        """Answer with the loop."""
        trees = _trees(state, self.function)
        known = [x.var.name for tree in trees.values() for x in tree.loops.values()]
        found: list[Ref] = [
            loop_ref(name, loop)
            for name, tree in trees.items()
            for loop in tree.loops.values()
            if loop.var.name == self.name
        ]
        return _only(found, "loop", self.name, known, _place(self.function))


@query(returns=tuple[LoopRef, ...])
@dataclass(frozen=True, slots=True)
class GetLoops(Query):
    """Find the loops around a block, outermost first.

    Parameters
    ----------
    block : BlockRef
        The block.
    """

    block: BlockRef

    def run(self, state: State) -> tuple[Ref, ...]:
        """Answer with the loops."""
        tree = state.tree(self.block.function)
        above = tree.loops_above(state.block(self.block))
        return tuple(loop_ref(self.block.function, loop) for loop in above)


@query(returns=BufferRef)
@dataclass(frozen=True, slots=True)
class GetBuffer(Query):
    """Find a buffer by its name.

    Parameters
    ----------
    name : str
        The buffer's name.
    function : str or None
        The function to look in; None looks in all, and the name has to be in one only.
    """

    name: str
    function: str | None = None

    def run(self, state: State) -> tuple[Ref, ...]:
        """Answer with the buffer."""
        trees = _trees(state, self.function)
        known = [b.name for tree in trees.values() for b in tree.buffers.values()]
        found: list[Ref] = [
            BufferRef(name, b.uid, b.name)
            for name, tree in trees.items()
            for b in tree.buffers.values()
            if b.name == self.name
        ]
        return _only(found, "buffer", self.name, known, _place(self.function))


@query(returns=BindingRef)
@dataclass(frozen=True, slots=True)
class GetBinding(Query):
    """Find a binding or parameter of a graph-level function by its name.

    Parameters
    ----------
    name : str
        The name of the value.
    function : str
        The graph-level function.
    """

    name: str
    function: str = "main"

    def run(self, state: State) -> tuple[Ref, ...]:
        """Answer with the binding."""
        graph = state.module.graph(self.function)
        values = [*(p.value for p in graph.params), *(b.value for b in graph.bindings)]
        found: list[Ref] = [
            BindingRef(self.function, v.uid, v.name) for v in values if v.name == self.name
        ]
        return _only(found, "binding", self.name, [v.name for v in values], _place(self.function))


@query(returns=tuple[BlockRef, ...])
@dataclass(frozen=True, slots=True)
class GetChildBlocks(Query):
    """Find the blocks directly inside a loop or a block.

    Parameters
    ----------
    parent : LoopRef or BlockRef
        Where to look.
    """

    parent: LoopRef | BlockRef

    def run(self, state: State) -> tuple[Ref, ...]:
        """Answer with the blocks, in program order."""
        parent = self.parent
        tree = state.tree(parent.function)
        outer = state.loop(parent) if isinstance(parent, LoopRef) else state.block(parent)
        found = (b for part in children(outer) for b in tree.blocks_in(part))
        return tuple(block_ref(parent.function, b) for b in found)


@query(returns=tuple[BlockRef, ...])
@dataclass(frozen=True, slots=True)
class GetProducers(Query):
    """Find the blocks that write what a block reads.

    Parameters
    ----------
    block : BlockRef
        The reading block.
    """

    block: BlockRef

    def run(self, state: State) -> tuple[Ref, ...]:
        """Answer with the blocks, in program order."""
        found = producers(state.tree(self.block.function), state.block(self.block))
        return tuple(block_ref(self.block.function, b) for b in found)


@query(returns=tuple[BlockRef, ...])
@dataclass(frozen=True, slots=True)
class GetConsumers(Query):
    """Find the blocks that read what a block writes.

    Parameters
    ----------
    block : BlockRef
        The writing block.
    """

    block: BlockRef

    def run(self, state: State) -> tuple[Ref, ...]:
        """Answer with the blocks, in program order."""
        found = consumers(state.tree(self.block.function), state.block(self.block))
        return tuple(block_ref(self.block.function, b) for b in found)


@query(returns=tuple[BlockRef, ...])
@dataclass(frozen=True, slots=True)
class GetOutputBlocks(Query):
    """Find the blocks that write a parameter of a function.

    Parameters
    ----------
    function : str
        The function's name.
    """

    function: str

    def run(self, state: State) -> tuple[Ref, ...]:
        """Answer with the blocks, in program order."""
        tree = state.tree(self.function)
        outputs = set(tree.function.buffer_params)
        found = (b for b in tree.leaf_blocks() if any(w.buffer in outputs for w in b.writes))
        return tuple(block_ref(self.function, b) for b in found)


_FINDERS: dict[type[Ref], type[GetBlock | GetLoop | GetBuffer]] = {
    BlockRef: GetBlock,
    LoopRef: GetLoop,
    BufferRef: GetBuffer,
}


def find(state: State, kind: type[Ref], name: str, function: str | None) -> Ref:
    """Give the handle of what has a name, in a function or anywhere.

    Raises
    ------
    NotFoundError
        If nothing has that name, or several have.
    """
    if kind is FunctionRef:
        return GetFunction(name).run(state)[0]
    if kind is BindingRef:
        return GetBinding(name, function or "main").run(state)[0]
    return _FINDERS[kind](name, function).run(state)[0]


def locate(state: State, ref: Ref) -> Iterator[Query]:
    """Give the queries that find a handle by names, the last of which answers with it."""
    match ref:
        case FunctionRef(function=name):
            yield GetFunction(name)
        case BlockRef(function=function):
            yield GetBlock(state.block(ref).name, function)
        case LoopRef(function=function):
            yield from _locate_loop(state, ref, function)
        case BufferRef(function=function):
            yield GetBuffer(state.buffer(ref).name, function)
        case BindingRef(function=function, uid=uid):
            graph = state.module.graph(function)
            values = (*(p.value for p in graph.params), *(b.value for b in graph.bindings))
            yield GetBinding(next(v.name for v in values if v.uid == uid), function)


def _locate_loop(state: State, ref: LoopRef, function: str) -> Iterator[Query]:
    tree, loop = state.tree(function), state.loop(ref)
    blocks = tree.blocks_in(loop)
    if not blocks or loop not in tree.loops_above(blocks[0]):
        yield GetLoop(loop.var.name, function)
        return
    block = block_ref(function, blocks[0])
    if block not in state.known:
        yield GetBlock(blocks[0].name, function)
    yield GetLoops(block)
