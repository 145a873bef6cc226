"""Cache read: a block reads a copy of a buffer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import accesses, reads
from ....ir.loop.nodes import IndexMap
from ....ir.loop.visit import replace_statement
from ...common import known_scope_problems, tensorized_problems
from ...edit import Edit
from ...nests import before, buffer_span, copy_block, nest, outermost_without, swap_buffer
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import BlockRef, BufferRef, Ref
from ...state import State
from ..layout.transform_layout import TransformLayout


@primitive(family="caching", returns=BlockRef)
@dataclass(frozen=True, slots=True)
class CacheRead(Primitive):
    """Copy what a block reads of a buffer into a new buffer, and let the block read that.

    Before::

        for i, j in grid(n, m):
            C[i, j] = A[i, j] * 2

    After::

        for i, j in grid(n, m):
            A_local[i, j] = A[i, j]
        for i, j in grid(n, m):
            C[i, j] = A_local[i, j] * 2

    Parameters
    ----------
    block : BlockRef
        The reading block.
    buffer : BufferRef
        The buffer it reads.
    scope : str
        Where the copy lives: ``"global"``, ``"local"``, ``"shared"`` or ``"fragment"``.
    index_map : IndexMap or None
        Where an element lies in the copy: a function of the old indices that gives the new ones,
        or the text of a lambda; None means as in the buffer.

    Requires
    --------
    1. The block reads the buffer.
    2. The block does not write the buffer.
    3. The scope is one that the target has.
    4. The map, if there is one, sends different elements to different places, as
       ``transform_layout`` asks.
    5. No instruction does the block's work: it was matched with the buffers it has.

    Notes
    -----
    The copy is made right before the outermost statement around the block in which nobody writes
    the buffer; ``compute_at`` moves it further in. The new buffer has the shape of the old one,
    and lowering keeps only what is live. Gives the copying block. Source: TensorIR §3.2.
    """

    block: BlockRef
    buffer: BufferRef
    scope: str = "local"
    index_map: IndexMap | None = None

    def structural(self, state: State) -> Iterator[Problem]:
        """Check that there is something to cache."""
        block, buffer = state.block(self.block), state.buffer(self.buffer)
        read = list(dict.fromkeys(a.buffer.name for a in accesses(block) if not a.writes))
        if buffer.name not in read:
            yield Problem(
                1,
                f"block {block.name!r} does not read {buffer.name!r}; it reads "
                f"{', '.join(read) or 'nothing'}",
                (self.block, self.buffer),
                {"reads": ", ".join(read)},
            )
        elif any(a.writes and a.buffer is buffer for a in accesses(block)):
            yield Problem(
                2,
                f"block {block.name!r} also writes {buffer.name!r}, so a copy would be stale",
                (self.block, self.buffer),
            )
        yield from known_scope_problems(self.scope, 3)
        yield from tensorized_problems(state, self.block, 5)

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check the map."""
        if self.index_map is not None:
            after, step = self._relaid(state, self.index_map)
            for problem in step.check(after):
                yield Problem(4, problem.message, (self.block, self.buffer), problem.numbers)

    def rewrite(self, state: State) -> Rewrite:
        """Insert the copy, redirect the block, and lay the copy out."""
        made = self._copied(state)
        if self.index_map is None:
            return made
        after, step = self._relaid(state, self.index_map)
        laid = step.rewrite(after)
        return replace(made, module=laid.module, decisions=laid.decisions)

    def _relaid(self, state: State, index_map: IndexMap) -> tuple[State, TransformLayout]:
        """The program with the plain copy, and the step that lays it out."""
        after = state.with_module(self._copied(state).module)
        name = self.block.function
        cache = after.module.prim(name).buffers[-1]
        return after, TransformLayout(BufferRef(name, cache.uid, cache.name), index_map)

    def _copied(self, state: State) -> Rewrite:
        edit = Edit(state, self.block.function)
        block, buffer = state.block(self.block), state.buffer(self.buffer)
        site = outermost_without(edit.tree, block, edit.tree.writers(buffer))
        cache = edit.buffer(f"{buffer.name}_{self.scope}", buffer.shape, buffer.dtype, self.scope)
        copy = copy_block(edit, buffer, cache, block)
        box = buffer_span(edit.tree, site, (block,), buffer)
        spans = {v.var: span for v, span in zip(copy.iters, box, strict=True)}
        reader = swap_buffer(block, buffer, cache, stores=False)
        nested = nest(edit, copy, spans, edit.tree.facts(site))
        body = before(edit.tree.function.body, site, nested)
        return edit.finish(
            replace_statement(body, block, reader),
            results=(edit.block_ref(copy),),
            buffers=(*edit.tree.function.buffers, cache),
        )

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """Every buffer that the selected block reads."""
        if isinstance(selection, BlockRef):
            for buffer in dict.fromkeys(a.buffer for a in reads(state.block(selection))):
                ref = BufferRef(selection.function, buffer.uid, buffer.name)
                yield cls(selection, ref, "global")
                yield cls(selection, ref, "local")
                if state.target is not None and state.target.is_gpu:
                    yield cls(selection, ref, "shared")
