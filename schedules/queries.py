"""Queries: lookups of handles that later steps refer to, recorded in the trace."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.analysis import consumers, producers
from ..ir.loop.nodes import PrimFunc
from ..ir.loop.visit import children
from ..ir.symbolic import Expr, const_value
from .apply import Query
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
from .lookup import accessed_buffers, find
from .registry import query
from .state import State
from .values import Result


@query(returns=FunctionRef)
@dataclass(frozen=True, slots=True)
class GetFunction(Query):
    """Return a function of the module by name.

    Parameters
    ----------
    name : str
        The function's name.
    """

    name: str

    def run(self, state: State) -> tuple[Handle, ...]:
        """Return the function."""
        return (find(state, FunctionRef, self.name, None),)


@query(returns=tuple[FunctionRef, ...])
@dataclass(frozen=True, slots=True)
class GetFunctions(Query):
    """Return the loop-level functions that originate from an operation of the source model.

    Parameters
    ----------
    origin : str or None
        A part of the name of the operation; None means all loop-level functions.
    """

    origin: str | None = None

    def run(self, state: State) -> tuple[Handle, ...]:
        """Return the functions, in module order."""
        return tuple(FunctionRef(f.name) for f in state.module.prims if self._matches(f))

    def _matches(self, function: PrimFunc) -> bool:
        wanted = self.origin
        return wanted is None or any(wanted in origin for origin in function.origins)


@query(returns=BlockRef)
@dataclass(frozen=True, slots=True)
class GetBlock(Query):
    """Return a block by name.

    Parameters
    ----------
    name : str
        The block's name.
    function : FunctionRef or None
        The function that contains it; None searches all functions, and the name must be unique.
    """

    name: str
    function: FunctionRef | None = None

    def run(self, state: State) -> tuple[Handle, ...]:
        """Return the block."""
        return (find(state, BlockRef, self.name, _name_of(self.function)),)


@query(returns=tuple[BlockRef, ...])
@dataclass(frozen=True, slots=True)
class GetBlocks(Query):
    """Return all blocks of a function, in program order.

    Parameters
    ----------
    function : FunctionRef
        The function.
    """

    function: FunctionRef

    def run(self, state: State) -> tuple[Handle, ...]:
        """Return the blocks."""
        name = self.function.function
        return tuple(block_ref(name, b) for b in state.tree(name).blocks.values())


@query(returns=LoopRef)
@dataclass(frozen=True, slots=True)
class GetLoop(Query):
    """Return a loop by the name of its variable.

    Parameters
    ----------
    name : str
        The name of the loop's variable.
    function : FunctionRef or None
        The function that contains it; None searches all functions, and the name must be unique.
    """

    name: str
    function: FunctionRef | None = None

    def run(self, state: State) -> tuple[Handle, ...]:
        """Return the loop."""
        return (find(state, LoopRef, self.name, _name_of(self.function)),)


@query(returns=tuple[LoopRef, ...])
@dataclass(frozen=True, slots=True)
class GetLoops(Query):
    """Return the loops around a block, outermost first.

    Parameters
    ----------
    block : BlockRef
        The block.
    """

    block: BlockRef

    def run(self, state: State) -> tuple[Handle, ...]:
        """Return the loops."""
        tree = state.tree(self.block.function)
        above = tree.loops_above(state.block(self.block))
        return tuple(loop_ref(self.block.function, loop) for loop in above)


@query(returns=BufferRef)
@dataclass(frozen=True, slots=True)
class GetBuffer(Query):
    """Return a buffer by name.

    Parameters
    ----------
    name : str
        The buffer's name.
    function : FunctionRef or None
        The function that contains it; None searches all functions, and the name must be unique.
    """

    name: str
    function: FunctionRef | None = None

    def run(self, state: State) -> tuple[Handle, ...]:
        """Return the buffer."""
        return (find(state, BufferRef, self.name, _name_of(self.function)),)


@query(returns=tuple[BufferRef, ...])
@dataclass(frozen=True, slots=True)
class GetBuffers(Query):
    """Return the buffers that a block accesses, those that it only reads first.

    Both the buffers that are only read and those that are written are in the order of their first
    access in the block.

    Parameters
    ----------
    block : BlockRef
        The block.
    """

    block: BlockRef

    def run(self, state: State) -> tuple[Handle, ...]:
        """Return the buffers."""
        found = accessed_buffers(state.block(self.block))
        return tuple(buffer_ref(self.block.function, buffer) for buffer in found)


@query(returns=Expr | int)
@dataclass(frozen=True, slots=True)
class GetExtent(Query):
    """Return the number of iterations of a loop, an integer or a symbolic term.

    A later step that uses the result, such as a factor of ``split``, is replayed with the extent of
    the loop that it is replayed on.

    Parameters
    ----------
    loop : LoopRef
        The loop.
    """

    loop: LoopRef

    def run(self, state: State) -> tuple[Result, ...]:
        """Return the extent."""
        extent = state.loop(self.loop).extent
        constant = const_value(extent)
        return (extent if constant is None else constant,)


@query(returns=BindingRef)
@dataclass(frozen=True, slots=True)
class GetBinding(Query):
    """Return a binding or parameter of a graph-level function by name.

    Parameters
    ----------
    name : str
        The name of the value.
    function : FunctionRef or None
        The graph-level function; None is the function ``main``.
    """

    name: str
    function: FunctionRef | None = None

    def run(self, state: State) -> tuple[Handle, ...]:
        """Return the binding."""
        return (find(state, BindingRef, self.name, _name_of(self.function)),)


@query(returns=tuple[BlockRef, ...])
@dataclass(frozen=True, slots=True)
class GetChildBlocks(Query):
    """Return the blocks directly inside a loop or a block.

    Parameters
    ----------
    parent : LoopRef or BlockRef
        The enclosing loop or block.
    """

    parent: LoopRef | BlockRef

    def run(self, state: State) -> tuple[Handle, ...]:
        """Return the blocks, in program order."""
        parent = self.parent
        tree = state.tree(parent.function)
        outer = state.loop(parent) if isinstance(parent, LoopRef) else state.block(parent)
        found = (b for part in children(outer) for b in tree.blocks_in(part))
        return tuple(block_ref(parent.function, b) for b in found)


@query(returns=tuple[BlockRef, ...])
@dataclass(frozen=True, slots=True)
class GetProducers(Query):
    """Return the blocks that write the buffers a block reads.

    Parameters
    ----------
    block : BlockRef
        The reading block.
    """

    block: BlockRef

    def run(self, state: State) -> tuple[Handle, ...]:
        """Return the blocks, in program order."""
        found = producers(state.tree(self.block.function), state.block(self.block))
        return tuple(block_ref(self.block.function, b) for b in found)


@query(returns=tuple[BlockRef, ...])
@dataclass(frozen=True, slots=True)
class GetConsumers(Query):
    """Return the blocks that read the buffers a block writes.

    Parameters
    ----------
    block : BlockRef
        The writing block.
    """

    block: BlockRef

    def run(self, state: State) -> tuple[Handle, ...]:
        """Return the blocks, in program order."""
        found = consumers(state.tree(self.block.function), state.block(self.block))
        return tuple(block_ref(self.block.function, b) for b in found)


@query(returns=tuple[BlockRef, ...])
@dataclass(frozen=True, slots=True)
class GetOutputBlocks(Query):
    """Return the blocks that write a parameter of a function.

    Parameters
    ----------
    function : FunctionRef
        The function.
    """

    function: FunctionRef

    def run(self, state: State) -> tuple[Handle, ...]:
        """Return the blocks, in program order."""
        name = self.function.function
        tree = state.tree(name)
        outputs = set(tree.function.buffer_params)
        found = (b for b in tree.outermost_blocks() if any(w.buffer in outputs for w in b.writes))
        return tuple(block_ref(name, b) for b in found)


def _name_of(function: FunctionRef | None) -> str | None:
    return None if function is None else function.function
