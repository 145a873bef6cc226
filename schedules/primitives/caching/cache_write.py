"""The ``cache_write`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import (
    Access,
    Tree,
    accesses,
    is_reduction,
    reads,
    results_domain,
    writes,
    writes_always,
    written_in,
)
from ....ir.loop.nodes import Block, Buffer, For, Let, Stmt
from ....ir.loop.visit import replace_statement, walk
from ....ir.symbolic import TRUE, Bool, Expr, Var, as_expr, const_value, substitute
from ...apply import Primitive, Rewrite
from ...checks import known_scope_problems, tensorized_problems
from ...domain_checks import condition_of_results, init_problems
from ...edit import Edit
from ...handles import BlockRef, BufferRef, Handle, refs_of
from ...loop_nests import after, buffer_span, copy_block, nest, outermost_without, swap_buffer
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ...thread_checks import shared_scope_problems


@primitive(family="caching", returns=BlockRef, isolated=True)
@dataclass(frozen=True, slots=True)
class CacheWrite(Primitive):
    """Redirect the writes of a block to a new buffer, and copy it to the old buffer afterwards.

    Before::

        for i, j, k in grid(n, m, l):
            C[i, j] += A[i, k] * B[k, j]

    After::

        for i, j, k in grid(n, m, l):
            C_local[i, j] += A[i, k] * B[k, j]
        for i, j in grid(n, m):
            C[i, j] = C_local[i, j]

    Parameters
    ----------
    block : BlockRef
        The block that writes the buffer.
    buffer : BufferRef
        The buffer to cache. An integer ``k`` is the ``k``-th buffer, from 0, that the block writes.
    scope : str
        The memory scope of the new buffer: ``"global"``, ``"local"``, ``"shared"`` or
        ``"fragment"``.

    Notes
    -----
    The copy is inserted after the outermost statement around the block that contains no other user
    of the buffer; ``reverse_compute_at`` moves it further in. The new buffer has the shape of the
    old one, and lowering allocates only the live part. It is allocated in the innermost loop around
    its uses of which each iteration writes before it reads. The result is the handle of the copying
    block. Cost: linear in the size of the function.

    Names elsewhere: TVM ``cache_write``; Halide ``in``.

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
    >>> copy = sch.cache_write("y", "y", "global")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        y_global = alloc((32,), f32)
        for i in range(32):
            with block("y"):
                vi = spatial(i)
                y_global[vi] = x[vi]
        for ax0 in range(32):
            with block("copy_y_global"):
                vax0 = spatial(ax0)
                y[vax0] = y_global[vax0]
    """

    class Requires(Requirement):
        """The requirements of ``cache_write``."""

        WRITES_BUFFER = "the block writes the buffer"
        ONLY_WRITER = "no other block writes the buffer"
        IGNORES_OLD_CONTENTS = (
            "the block does not depend on earlier contents of the buffer: it reads only elements "
            "that it wrote itself, and a reduction has its init"
        )
        WRITES_WHOLE_BOX = (
            "the block writes every element of the bounding box of its writes, or its write "
            "indices are its spatial iteration variables, and a condition on them describes which "
            "elements it writes"
        )
        SCOPE_EXISTS = "the memory scope exists"
        INDEPENDENT_THREADS = (
            'if the memory scope is ``"shared"``, no two threads of the loops around the copy '
            "write the same element of it, and none reads an element that another one writes"
        )
        NOT_TENSORIZED = (
            "the block is not tensorized, and no tensorized block inside of it accesses the buffer"
        )

    block: BlockRef
    buffer: BufferRef
    scope: str = "local"

    def structural(self, state: State) -> Iterator[Problem]:
        """Check that the block is the only writer of the buffer."""
        yield from known_scope_problems(
            self.scope, (self.block, self.buffer), self.Requires.SCOPE_EXISTS
        )
        yield from tensorized_problems(
            state, self.block, (state.buffer(self.buffer),), self.Requires.NOT_TENSORIZED
        )
        block, buffer = state.block(self.block), state.buffer(self.buffer)
        where = (self.block, self.buffer)
        written = list(dict.fromkeys(a.buffer.name for a in writes(block)))
        if buffer.name not in written:
            yield Problem(
                self.Requires.WRITES_BUFFER,
                f"block {block.name!r} does not write {buffer.name!r}; it writes "
                f"{', '.join(written) or 'nothing'}",
                where,
                {"writes": ", ".join(written)},
            )
            return
        others = [b for b in state.tree(self.block.function).writers(buffer) if b is not block]
        if others:
            names = ", ".join(b.name for b in others)
            yield Problem(
                self.Requires.ONLY_WRITER,
                f"{buffer.name!r} is also written by {names}",
                (self.block, *refs_of(self.block.function, *others), self.buffer),
                {"writers": names},
            )
        if _reads_old_contents(block, buffer):
            yield Problem(
                self.Requires.IGNORES_OLD_CONTENTS,
                f"block {block.name!r} reads elements of {buffer.name!r} that it did not write",
                where,
            )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that every copied element was written, and the threads that share the copy."""
        tree = state.tree(self.block.function)
        block, buffer = state.block(self.block), state.buffer(self.buffer)
        store, *others = writes(block, buffer)
        site = outermost_without(tree, block, _users(state, self.block.function, block, buffer))
        domain = results_domain(tree, block, site)
        reason = ""
        if others or not writes_always(tree, block):
            reason = "it has several stores, branches, or nested blocks with predicates"
        elif not _is_plain(block, store):
            if not _fills_box(tree, site, block, buffer):
                shown = ", ".join(map(str, store.indices))
                reason = f"the indices ({shown}) may leave gaps"
        elif not _stores_always(tree, block, store):
            reason = "the loops in it may have no iterations"
        elif domain.condition is None:
            reason = domain.reason
        elif outer := _undescribed(tree, site, block, store):
            names = ", ".join(repr(v.name) for v in outer)
            reason = f"the extent of an iteration variable depends on loop {names}, which no index "
            reason += "determines"
        elif any(init_problems(state, self.block, self.Requires.WRITES_WHOLE_BOX)):
            reason = "its init runs only in the first iteration of its reduction"
        if reason:
            yield Problem(
                self.Requires.WRITES_WHOLE_BOX,
                f"block {block.name!r} does not provably write every element of the bounding box "
                f"of its writes to {buffer.name!r}: {reason}",
                (self.block, self.buffer),
            )
        elif self.scope == "shared":
            where = (self.block, self.buffer)
            yield from shared_scope_problems(
                state,
                self,
                where,
                self.Requires.INDEPENDENT_THREADS,
                (replace(self, scope="local"),),
            )

    def rewrite(self, state: State) -> Rewrite:
        """Write to the new buffer in the block, and insert the copy."""
        edit = Edit(state, self.block.function)
        block, buffer = state.block(self.block), state.buffer(self.buffer)
        site = outermost_without(edit.tree, block, _users(state, edit.name, block, buffer))
        cache = edit.buffer(f"{buffer.name}_{self.scope}", buffer.shape, buffer.dtype, self.scope)
        copy = copy_block(edit, cache, buffer, block)
        box = buffer_span(edit.tree, site, (block,), buffer)
        spans = {v.var: span for v, span in zip(copy.iters, box, strict=True)}
        condition = _copied(edit.tree, site, block, copy)
        nested = nest(edit, copy, spans, edit.tree.facts(site), condition)
        body = after(edit.tree.function.body, site, nested)
        return edit.finish(
            replace_statement(body, block, swap_buffer(block, buffer, cache)),
            results=(edit.block_ref(copy),),
            buffers=(*edit.tree.function.buffers, cache),
            like=buffer,
            place=(cache,),
        )

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for every buffer that the selected block writes."""
        if isinstance(selection, BlockRef):
            for buffer in dict.fromkeys(a.buffer for a in writes(state.block(selection))):
                ref = BufferRef(selection.function, buffer.uid, buffer.name)
                yield cls(selection, ref, "local")


def _is_plain(block: Block, store: Access) -> bool:
    """Return whether each spatial iteration variable is by itself an index of a store."""
    extents = {v.var: v.extent for v in block.iters if v.kind != "reduce"}
    indices = [i for i in store.indices if isinstance(i, Var)]
    whole = all(i in extents or const_value(i) is not None for i in store.indices)
    moving = {v for v, extent in extents.items() if const_value(extent) != 1}
    return whole and len(set(indices)) == len(indices) and moving <= set(indices)


def _stores_always(tree: Tree, block: Block, store: Access) -> bool:
    """Return whether every iteration of a block writes its element, in spite of loops in it."""
    if not any(isinstance(s, For) for s in walk(block.body)):
        return True
    if block.init is not None and not any(isinstance(s, For) for s in walk(block.init)):
        return True
    region = written_in(tree, block.body, store.buffer)
    at = None if region is None else tuple(x.start for x in region)
    return at == tuple(map(as_expr, store.indices))


def _loops_as_iters(block: Block, store: Access) -> dict[Var, Expr]:
    """Return the iteration variables that are indices of a store, by the loops they are bound to.

    Extents of iteration variables may contain these loops.
    """
    used = {i for i in store.indices if isinstance(i, Var)}
    return {v.binding: v.var for v in block.iters if isinstance(v.binding, Var) and v.var in used}


def _undescribed(tree: Tree, site: Stmt, block: Block, store: Access) -> tuple[Var, ...]:
    """Return the variables in extents that exist neither before a statement nor in the copy."""
    values = _loops_as_iters(block, store)
    known = {*tree.symbols(), *values.values()}
    known |= {s.var for s in tree.ancestors(site) if isinstance(s, For | Let)}
    known |= {v.var for s in tree.ancestors(site) if isinstance(s, Block) for v in s.iters}
    extents = (v.extent for v in block.iters if v.kind != "reduce")
    found = {v for e in extents for v in substitute(e, values).free}
    return tuple(sorted(found - known, key=lambda v: v.serial))


def _fills_box(tree: Tree, site: Stmt, block: Block, buffer: Buffer) -> bool:
    """Return whether a statement writes the whole bounding box of the writes of a block."""
    box = buffer_span(tree, site, (block,), buffer)
    return written_in(tree, site, buffer) == box


def _copied(tree: Tree, site: Stmt, block: Block, copy: Block) -> Bool:
    """Return the condition on the iteration variables of a copy that an element was written."""
    (store,) = writes(block, writes(copy)[0].buffer)
    if not _is_plain(block, store):
        return TRUE
    pairs = zip(store.indices, copy.iters, strict=True)
    at: dict[Var, Expr] = {i: item.var for i, item in pairs if isinstance(i, Var)}
    loops = {v: substitute(i, at) for v, i in _loops_as_iters(block, store).items()}
    extents = {v.var: substitute(v.extent, loops) for v in block.iters}
    inside = TRUE
    for index, item in zip(store.indices, copy.iters, strict=True):
        if isinstance(index, Var):
            inside &= TRUE if extents[index] is item.extent else item.var < extents[index]
    return inside & substitute(condition_of_results(tree, block, site), at)


def _reads_old_contents(block: Block, buffer: Buffer) -> bool:
    if reads(block, buffer):
        return True
    own = any(a.buffer is buffer and not a.writes for a in accesses(block))
    return own and (block.init is None or not is_reduction(block))


def _users(state: State, function: str, block: Block, buffer: Buffer) -> list[Stmt]:
    """Return the other blocks that access a buffer, and the lets that load an integer from it."""
    tree = state.tree(function)
    blocks = (
        b
        for b in tree.outermost_blocks()
        if b is not block and any(a.buffer is buffer for a in accesses(b))
    )
    return [*blocks, *tree.outer_lets(buffer)]
