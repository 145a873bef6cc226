"""Requirements of steps that move a block past others, or dissolve it."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.analysis import (
    Tree,
    conflicts,
    determined,
    implied_by_domain,
    is_plain,
    read_buffers,
    tree_of,
    writes,
    written_buffers,
)
from ..ir.loop.nodes import Block, For, Stmt
from ..ir.symbolic import Var, const_value
from .primitive import Primitive
from .problem import Problem
from .refs import BlockRef, LoopRef, block_ref, loop_ref
from .state import State


def movable_problems(
    state: State, ref: BlockRef, requirement: int, *, temporary: bool = True
) -> Iterator[Problem]:
    """Yield what keeps a block from being computed elsewhere, at other iterations.

    It may be: an ordered iteration, a body that is more than one store, a parameter as output,
    another writer, an update without its initialisation, a predicate of its own.
    """
    tree, block = state.tree(ref.function), state.block(ref)
    for message in _reasons(tree, block, temporary=temporary):
        yield Problem(requirement, f"block {block.name!r} {message}", (ref,))


def _reasons(tree: Tree, block: Block, *, temporary: bool) -> Iterator[str]:
    if any(v.kind == "ordered" for v in block.iters):
        yield "has ordered iterations"
    found = writes(block)
    if not is_plain(block) or len(found) != 1:
        yield "is more than one store in an iteration"
        return
    buffer = found[0].buffer
    if temporary and buffer not in tree.function.buffers:
        yield f"writes {buffer.name!r}, which is a parameter and has to be written completely"
    others = [b.name for b in tree.writers(buffer) if b is not block]
    if others:
        yield f"is not the only one to write {buffer.name!r}: so does {', '.join(others)}"
    reduces = any(v.kind == "reduce" for v in block.iters)
    if reduces and block.init is None:
        yield "is a reduction without its initialisation"
    if not reduces and buffer in read_buffers(block):
        yield f"updates {buffer.name!r} in place"
    if not implied_by_domain(block, tree.facts(block)):
        yield f"runs only where {block.predicate} holds"


def plain_store_problems(state: State, ref: BlockRef, requirement: int) -> Iterator[Problem]:
    """Yield a problem where a block does not write at distinct iteration variables, all of them.

    A spatial iteration of extent 1 need not occur, and a constant may stand in a dimension of 1.
    """
    block = state.block(ref)
    found = writes(block)
    if len(found) != 1:
        return
    indices = found[0].indices
    variables = [i for i in indices if isinstance(i, Var)]
    spatial = {v.var for v in block.iters if v.kind == "spatial" and const_value(v.extent) != 1}
    others = [
        i
        for i, size in zip(indices, found[0].buffer.shape, strict=True)
        if not isinstance(i, Var) and size != 1
    ]
    if others or len(set(variables)) < len(variables) or not spatial <= set(variables):
        yield Problem(
            requirement,
            f"block {block.name!r} writes at ({', '.join(map(str, indices))}), which are not its "
            "spatial iteration variables, each once",
            (ref,),
            {"indices": ", ".join(map(str, indices))},
        )


def told_apart_problems(state: State, ref: BlockRef, requirement: int) -> Iterator[Problem]:
    """Yield a problem where two spatial iterations of a block may write the same element."""
    tree, block = state.tree(ref.function), state.block(ref)
    spatial = {v.var: v.extent for v in block.iters if v.kind == "spatial"}
    for access in writes(block):
        ranges = spatial | dict(access.inner)
        lost = set(spatial) - determined(access.indices, ranges, tree.facts(block.body))
        if lost:
            names = ", ".join(sorted(v.name for v in lost))
            yield Problem(
                requirement,
                f"iterations {names} of block {block.name!r} cannot be told from the indices it "
                f"writes at, ({', '.join(map(str, access.indices))})",
                (ref,),
                {"iterations": names},
            )


def between_problems(
    state: State, ref: BlockRef, requirement: int, place: Stmt, *, later: bool
) -> Iterator[Problem]:
    """Yield what lies in the way of a block that moves to a place, later or earlier in order.

    In the way is whoever writes what the block reads, and, unless it is in the place and reads the
    block's output, whoever touches what the block writes.
    """
    tree, block = state.tree(ref.function), state.block(ref)
    relation = "before" if later else "after"
    order = tree.order[block] < tree.order[place]
    if order is not later:
        yield Problem(
            requirement, f"block {block.name!r} does not come {relation} the place", (ref,)
        )
        return
    read, written = read_buffers(block) - written_buffers(block), written_buffers(block)
    for other in _in_the_way(tree, block, place, later=later):
        theirs = written_buffers(other)
        clash = theirs & (read | written)
        if not tree.contains(place, other):
            clash |= read_buffers(other) & written
        elif not later:
            clash = (clash - read) | ((read_buffers(other) | theirs) & written)
        for buffer in sorted(clash, key=lambda b: b.name):
            yield Problem(
                requirement,
                f"block {other.name!r} between block {block.name!r} and its place uses "
                f"{buffer.name!r}",
                (ref, block_ref(ref.function, other)),
                {"buffer": buffer.name},
            )


def _in_the_way(tree: Tree, block: Block, place: Stmt, *, later: bool) -> Iterator[Block]:
    """The blocks that run after a block up to the end of its place, or from the place on."""
    last = max(tree.order[b] for b in tree.blocks_in(place))
    low, high = (tree.order[block], last) if later else (tree.order[place], tree.order[block])
    for other in tree.leaf_blocks():
        if other is not block and low <= tree.order[other] <= high:
            yield other


def vector_problems(state: State, ref: LoopRef, requirement: int) -> Iterator[Problem]:
    """Yield a problem where a place is inside a vectorized loop."""
    tree, loop = state.tree(ref.function), state.loop(ref)
    for around in (loop, *tree.ancestors(loop)):
        if isinstance(around, For) and around.kind == "vectorized":
            yield Problem(
                requirement,
                f"loop {around.var.name!r} around the place is vectorized",
                (ref, loop_ref(ref.function, around)),
            )


def parallel_problems(
    state: State, step: Primitive, ref: LoopRef, requirement: int
) -> Iterator[Problem]:
    """Yield a problem where a step would make iterations of a parallel loop meet."""
    tree, loop = state.tree(ref.function), state.loop(ref)
    around = [s for s in (loop, *tree.ancestors(loop)) if isinstance(s, For)]
    for outer in around:
        if outer.kind == "parallel":
            new = tree_of(step.rewrite(state).module.prim(ref.function))
            for conflict in conflicts(new, new.loops[outer.uid]):
                yield Problem(
                    requirement,
                    f"afterwards {conflict.reason}",
                    (ref, loop_ref(ref.function, outer)),
                )
