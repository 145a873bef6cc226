"""Reductions whose iterations are threads: each has a part, which all then combine."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ....ir.analysis import reduction_update
from ....ir.gpu import THREAD_AXES
from ....ir.loop.builder import Combiner, identity_of
from ....ir.loop.decompose import Namer, Start, around, namer_of, split_off
from ....ir.loop.nodes import Binary, Block, Buffer, For, If, Load, PrimFunc, Stmt, Store
from ....ir.loop.visit import replace_statement, seq, substitute_in, walk
from ....ir.symbolic import TRUE, Var, free_vars
from .errors import KernelStatementError

ACROSS: Final = "across"
"""Annotates what is done once the threads have their parts: operation, part and axes."""


def combine_threads(func: PrimFunc) -> PrimFunc:
    """Let every thread reduce into a register of its own, then combine what the threads have.

    Before::
        for k0 in range(n):
            for k1 in thread(32, "threadIdx.x"):
                block: C[i] = C[i] + A[i, k0 * 32 + k1], starting at 0
    After::
        for k0 in range(n):
            for k1 in thread(32, "threadIdx.x"):
                block: C_part[i] = C_part[i] + A[i, k0 * 32 + k1], starting at 0
        across threadIdx.x: C[i] = C_part[i]
    """
    while (block := _next(func.body)) is not None:
        func = _combined(func, block)
    return func


def _next(body: Stmt) -> Block | None:
    blocks = (s for s in walk(body) if isinstance(s, Block))
    return next((b for b in blocks if _axes(b, around(body, b)) and not _is_done(b)), None)


def _is_done(block: Block) -> bool:
    return any(key == ACROSS for key, _ in block.annotations)


def _axes(block: Block, path: tuple[Stmt, ...]) -> tuple[str, ...]:
    """Give the thread axes whose loops feed a reduction."""
    reducing = _reducing(block)
    found = {s.thread for s in path if isinstance(s, For) and s.var in reducing}
    return tuple(axis for axis in THREAD_AXES if axis in found)


def _reducing(block: Block) -> frozenset[Var]:
    return frozenset[Var]().union(
        *(free_vars(v.binding) for v in block.iters if v.kind == "reduce")
    )


def _combined(func: PrimFunc, block: Block) -> PrimFunc:
    found = reduction_update(block)
    if found is None:
        raise KernelStatementError(
            f"a reduction of block {block.name!r} is bound to threads, but is no update C = C op "
            "value, which they could combine",
            where=f"block {block.name!r}",
            hint="bind a loop that feeds spatial iterations",
        )
    store, update = found
    names, path = namer_of(func), around(func.body, block)
    reducing = _reducing(block)
    first = next(k for k, s in enumerate(path) if isinstance(s, For) and s.var in reducing)
    result = store.buffer
    part = Buffer(names.mint(), names.fresh(f"{result.name}_part"), result.shape, result.dtype)
    part = replace(part, scope="local")
    axes = _axes(block, path)
    total = _total(block, store, part, update.op)
    last = _last(total, path[first:], names, (update.op, part.name, *axes))
    own = _partial(block, store, part, update)
    start = _first(own, path[first:], names)
    new = seq(start, replace_statement(path[first], block, replace(own, init=None)), last)
    body = replace_statement(func.body, path[first], new)
    return replace(func, body=body, buffers=(*func.buffers, part))


def _partial(block: Block, store: Store, part: Buffer, update: Binary) -> Block:
    """Give the block that reduces into the thread's own part."""
    neutral = identity_of(_combiner(update.op), part.dtype)
    value = Binary(update.op, Load(part, store.indices), update.right)
    body = replace(store, buffer=part, value=value)
    return replace(
        block,
        body=body,
        init=Store(part, store.indices, neutral),
        writes=tuple(replace(r, buffer=part) for r in block.writes),
        # What it combines is marked as done by its annotation.
        annotations=(*block.annotations, (ACROSS, "part")),
    )


def _first(own: Block, path: tuple[Stmt, ...], names: Namer) -> Stmt:
    """Give the nest that starts the parts: all of them, for all threads take part in the end."""
    made = _split(own, path, names)
    bare = replace(made.block, predicate=TRUE)
    return bare if made.nest is made.block else replace_statement(made.nest, made.block, bare)


def _split(block: Block, path: tuple[Stmt, ...], names: Namer) -> Start:
    made = split_off(block, path, names)
    if made is None:
        raise KernelStatementError(
            f"loops around block {block.name!r} depend on each other, so its threads cannot "
            "combine what they have",
            where=f"block {block.name!r}",
            hint="bind a loop that stands alone around the reduction",
        )
    return made


def _combiner(op: str) -> Combiner:
    match op:
        case "add" | "mul" | "min" | "max" | "and" | "or" | "xor":
            return op
        case _:
            raise TypeError(f"no neutral element of {op!r}")


def _total(block: Block, store: Store, part: Buffer, op: str) -> Block:
    """Give the block with what it makes of the combined parts in the place of its start."""
    total = Load(part, store.indices)
    start = block.init.value if isinstance(block.init, Store) else Load(store.buffer, store.indices)
    neutral = identity_of(_combiner(op), part.dtype)
    value = total if start == neutral else Binary(_combiner(op), start, total)
    return replace(block, init=replace(store, value=value))


def _last(block: Block, path: tuple[Stmt, ...], names: Namer, notes: tuple[str, ...]) -> Stmt:
    """Give the nest that combines the parts and writes the result."""
    made = _split(block, path, names)
    shell = made.block
    body = substitute_in(shell.body, {v.var: v.binding for v in shell.iters})
    guarded = body if shell.predicate is TRUE else If(shell.predicate, body)
    new = replace(
        shell,
        iters=(),
        reads=(),
        writes=(),
        predicate=TRUE,
        body=guarded,
        annotations=((ACROSS, notes),),
    )
    return new if made.nest is shell else replace_statement(made.nest, shell, new)
