"""Compute inline: a producer dissolves into its consumers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import (
    Tree,
    read_buffers,
    reads,
    with_regions,
    writes,
    written_buffers,
)
from ....ir.identity import Origins
from ....ir.loop.nodes import Block, Buffer, Element, Load, Stmt, Store
from ....ir.loop.visit import (
    Rebuilder,
    children,
    substitute_in_element,
    transform,
    with_children,
)
from ....ir.symbolic import Expr, Var, eq, is_proved, to_text
from ...common import tensorized_problems
from ...edit import Edit
from ...moving import movable_problems, plain_store_problems
from ...nests import loops_gone, without
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import BlockRef, BufferRef, Gone, Ref, block_ref
from ...state import State


@primitive(family="placement", returns=None)
@dataclass(frozen=True, slots=True)
class ComputeInline(Primitive):
    """Compute a producer's value wherever it is read, and drop the block and its buffer.

    Before::

        for i in range(n):
            T[i] = A[i] * 2
        for i in range(n):
            C[i] = T[i] + 1

    After::

        for i in range(n):
            C[i] = A[i] * 2 + 1

    Parameters
    ----------
    block : BlockRef
        The producer.

    Requires
    --------
    1. The block has spatial iterations only, and no initialisation.
    2. It writes one element of one temporary in an iteration, which nobody else writes, and its
       predicate only keeps its iterations inside their extents.
    3. The indices it writes at are distinct iteration variables, every one occurs, and they run
       through the whole buffer.
    4. Some block reads the temporary, and all reads are loads of elements after it.
    5. What the block reads is not written again before its last consumer is done.
    6. No instruction does the work of a consumer: it was matched with the loads it has.

    Notes
    -----
    Cost: linear in the size of the consumers. Source: TensorIR §3.2.
    """

    block: BlockRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the block, its consumers and what lies between."""
        block = state.block(self.block)
        if block.init is not None or any(v.kind != "spatial" for v in block.iters):
            kinds = ", ".join(dict.fromkeys(v.kind for v in block.iters))
            yield Problem(
                1,
                f"block {block.name!r} has iterations of kind {kinds}; a value read many times "
                "would be reduced many times",
                (self.block,),
                {"kinds": kinds},
            )
            return
        found = [
            *movable_problems(state, self.block, 2),
            *plain_store_problems(state, self.block, 3),
        ]
        if found:
            yield from found
            return
        yield from self._consumers(state, block, writes(block)[0].buffer)

    def _consumers(self, state: State, block: Block, buffer: Buffer) -> Iterator[Problem]:
        tree = state.tree(self.block.function)
        readers = [b for b in tree.leaf_blocks() if reads(b, buffer)]
        early = [b for b in readers if tree.order[b] < tree.order[block]]
        if not readers or early:
            names = ", ".join(b.name for b in early) or "nobody"
            relation = "before it is written" if early else ""
            yield Problem(
                4, f"{buffer.name!r} is read by {names} {relation}".rstrip(), (self.block,)
            )
            return
        for reader in readers:
            yield from tensorized_problems(state, block_ref(self.block.function, reader), 6)
        last = max(tree.order[b] for b in readers)
        inputs = read_buffers(block)
        for other in tree.leaf_blocks():
            between = tree.order[block] < tree.order[other] <= last
            again = other in _repeated(tree, block, readers) and other is not block
            for changed in written_buffers(other) & inputs if between or again else ():
                yield Problem(
                    5,
                    f"block {other.name!r} writes {changed.name!r} before {buffer.name!r} is read",
                    (self.block, block_ref(self.block.function, other)),
                    {"buffer": changed.name},
                )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that the block writes the whole buffer."""
        tree, block = state.tree(self.block.function), state.block(self.block)
        extents = {v.var: v.extent for v in block.iters}
        store = writes(block)[0]
        for index, size in zip(store.indices, store.buffer.shape, strict=True):
            extent = extents[index] if isinstance(index, Var) else size
            if not is_proved(eq(extent, size), tree.function.facts):
                yield Problem(
                    3,
                    f"iteration {to_text(index)} runs to {to_text(extent)}, but "
                    f"{store.buffer.name!r} "
                    f"has {to_text(size)} elements there",
                    (self.block,),
                    {"extent": to_text(extent), "size": to_text(size)},
                )

    def rewrite(self, state: State) -> Rewrite:
        """Put the value in the place of every load, then drop the block and the buffer."""
        edit = Edit(state, self.block.function)
        tree, block = edit.tree, state.block(self.block)
        access = writes(block)[0]
        if not isinstance(block.body, Store):
            raise TypeError(f"block {block.name!r} is no single store")
        inliner = _Inliner(access.buffer, access.indices, block.body.value)

        def change(statement: Stmt) -> Stmt:
            if isinstance(statement, Block):
                concerned = reads(statement, access.buffer)
                return _inlined(statement, inliner, block.origins) if concerned else statement
            return with_children(statement, tuple(change(c) for c in children(statement)))

        kept = without(tree.function.body, block)
        if kept is None:
            raise TypeError(f"nothing is left of {edit.name!r}")
        body = change(kept)
        reason = f"dissolved block {block.name!r}"
        moved = edit.gone(loops_gone(tree, body), reason)
        moved |= {
            self.block: Gone("dissolved it into its consumers"),
            edit.buffer_ref(access.buffer): Gone(reason),
        }
        buffers = tuple(b for b in tree.function.buffers if b is not access.buffer)
        return edit.finish(body, moved=moved, buffers=buffers)

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """The selected block, or the block that makes the selected temporary."""
        if isinstance(selection, BlockRef):
            yield cls(selection)
        elif isinstance(selection, BufferRef):
            tree = state.tree(selection.function)
            for block in tree.writers(state.buffer(selection))[:1]:
                yield cls(block_ref(selection.function, block))


def _repeated(tree: Tree, block: Block, readers: list[Block]) -> set[Block]:
    """The blocks in the loops around a producer and all its readers: those run again."""
    shared = tree.common((block, *readers))
    return set(tree.blocks_in(shared)) if tree.loops_above(shared) else set()


class _Inliner(Rebuilder):
    """Puts an element in the place of the loads of a buffer."""

    def __init__(self, buffer: Buffer, indices: tuple[Expr, ...], value: Element) -> None:
        self._buffer, self._indices, self._value = buffer, indices, value

    def load(self, load: Load) -> Element:
        if load.buffer is not self._buffer:
            return load
        pairs = zip(self._indices, load.indices, strict=True)
        at = {i: new for i, new in pairs if isinstance(i, Var)}
        return substitute_in_element(self._value, at)


def _inlined(block: Block, inliner: _Inliner, origins: Origins) -> Block:
    init = None if block.init is None else inliner.statement(block.init)
    body = transform(inliner.statement(block.body), lambda s: _with_origins(s, origins))
    return with_regions(replace(block, init=init, body=body, origins=block.origins | origins))


def _with_origins(statement: Stmt, origins: Origins) -> Stmt:
    if isinstance(statement, Store):
        return replace(statement, origins=statement.origins | origins)
    return statement
