"""The ``cache_read`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import accesses, reads
from ....ir.loop.nodes import IndexMap
from ....ir.loop.visit import replace_statement
from ...apply import Primitive, Rewrite
from ...checks import known_scope_problems, tensorized_problems
from ...edit import Edit
from ...handles import BlockRef, BufferRef, Handle
from ...loop_nests import before, buffer_span, copy_block, nest, outermost_without, swap_buffer
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ...thread_checks import shared_scope_problems
from ..layout.transform_layout import TransformLayout


@primitive(family="caching", returns=BlockRef, isolated=True)
@dataclass(frozen=True, slots=True)
class CacheRead(Primitive):
    """Copy the region of a buffer that a block reads into a new buffer, and read the copy instead.

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
        The block that reads the buffer.
    buffer : BufferRef
        The buffer to cache. An integer ``k`` is the ``k``-th buffer, from 0, that the block only
        reads.
    scope : str
        The memory scope of the copy: ``"global"``, ``"local"``, ``"shared"`` or ``"fragment"``.
    index_map : IndexMap or None
        The layout of the copy: a function from the indices of the buffer to those of the copy, or
        the text of a lambda. None keeps the layout of the buffer.

    Notes
    -----
    The copy is inserted before the outermost statement around the block that contains no writer of
    the buffer; ``compute_at`` moves it further in. The new buffer has the shape of the old one, and
    lowering allocates only the live part. It is allocated in the innermost loop around its uses of
    which each iteration writes before it reads. The result is the handle of the copying block.
    Cost: linear in the size of the function.

    Names elsewhere: TVM ``cache_read``; Halide ``in``.

    References
    ----------
    TensorIR (ASPLOS '23), §3.2.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
    ...     for i in range(32):
    ...         with block("y"):
    ...             vi = spatial(i)
    ...             y[vi] = x[vi]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> copy = sch.cache_read("y", "x", "global")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        x_global = alloc((32,), f32)
        for ax0 in range(32):
            with block("copy_x"):
                vax0 = spatial(ax0)
                x_global[vax0] = x[vax0]
        for i in range(32):
            with block("y"):
                vi = spatial(i)
                y[vi] = x_global[vi]
    """

    class Requires(Requirement):
        """The requirements of ``cache_read``."""

        READS_BUFFER = "the block reads the buffer"
        ONLY_READS_BUFFER = "the block does not write the buffer"
        SCOPE_EXISTS = "the memory scope exists"
        INDEPENDENT_THREADS = (
            'if the memory scope is ``"shared"``, no two threads of the loops around the copy '
            "write the same element of it, and none reads an element that another one writes"
        )
        LEGAL_INDEX_MAP = "the index map, if given, is legal for ``transform_layout``"
        NOT_TENSORIZED = (
            "the block is not tensorized, and no tensorized block inside of it accesses the buffer"
        )

    block: BlockRef
    buffer: BufferRef
    scope: str = "local"
    index_map: IndexMap | None = None

    def structural(self, state: State) -> Iterator[Problem]:
        """Check that the block reads the buffer, and does not write it."""
        block, buffer = state.block(self.block), state.buffer(self.buffer)
        read = list(dict.fromkeys(a.buffer.name for a in accesses(block) if not a.writes))
        if buffer.name not in read:
            yield Problem(
                self.Requires.READS_BUFFER,
                f"block {block.name!r} does not read {buffer.name!r}; it reads "
                f"{', '.join(read) or 'nothing'}",
                (self.block, self.buffer),
                {"reads": ", ".join(read)},
            )
        elif any(a.writes and a.buffer is buffer for a in accesses(block)):
            yield Problem(
                self.Requires.ONLY_READS_BUFFER,
                f"block {block.name!r} also writes {buffer.name!r}, so the copy would be stale",
                (self.block, self.buffer),
            )
        yield from known_scope_problems(
            self.scope, (self.block, self.buffer), self.Requires.SCOPE_EXISTS
        )
        yield from tensorized_problems(
            state, self.block, (state.buffer(self.buffer),), self.Requires.NOT_TENSORIZED
        )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check the threads that share the copy, and the index map."""
        if self.scope == "shared":
            where = (self.block, self.buffer)
            plain, local = replace(self, index_map=None), replace(self, scope="local")
            yield from shared_scope_problems(
                state, plain, where, self.Requires.INDEPENDENT_THREADS, (local,)
            )
        if self.index_map is not None:
            after, step = self._layout_step(state, self.index_map)
            for problem in step.check(after):
                yield Problem(
                    self.Requires.LEGAL_INDEX_MAP,
                    problem.message,
                    (self.block, self.buffer),
                    problem.numbers,
                )

    def rewrite(self, state: State) -> Rewrite:
        """Insert the copy, read it in the block, and transform its layout."""
        made = self._with_copy(state)
        if self.index_map is None:
            return made
        after, step = self._layout_step(state, self.index_map)
        changed = step.rewrite(after)
        return replace(made, module=changed.module, decisions=changed.decisions)

    def _layout_step(self, state: State, index_map: IndexMap) -> tuple[State, TransformLayout]:
        """Return the state after a plain copy, and the step that transforms its layout."""
        after = state.with_module(self._with_copy(state).module)
        name = self.block.function
        known = state.tree(name).buffers
        cache = next(b for uid, b in after.tree(name).buffers.items() if uid not in known)
        return after, TransformLayout(BufferRef(name, cache.uid, cache.name), index_map)

    def _with_copy(self, state: State) -> Rewrite:
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
            like=buffer,
            place=(cache,),
        )

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for every buffer that the selected block reads."""
        if isinstance(selection, BlockRef):
            target = state.target_of(selection.function)
            for buffer in dict.fromkeys(a.buffer for a in reads(state.block(selection))):
                ref = BufferRef(selection.function, buffer.uid, buffer.name)
                yield cls(selection, ref, "global")
                yield cls(selection, ref, "local")
                if target is not None and target.is_gpu:
                    yield cls(selection, ref, "shared")
