"""The ``transform_layout`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import (
    Interval,
    Tree,
    accesses,
    injective_in,
    interval_of,
    with_regions,
    within_loop,
)
from ....ir.loop.nodes import Block, Buffer, Element, IndexMap, Let, Load, Stmt, Store
from ....ir.loop.visit import Rebuilder, replace_statement, transform
from ....ir.symbolic import Expr, Facts, Var, eq, is_proved, product, simplify, substitute
from ...allocations import with_allocation
from ...apply import Primitive, Rewrite
from ...checks import temporary_problems, tensorized_buffer_problems
from ...edit import Edit
from ...handles import BufferRef, loop_ref
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ...values import index_map_text


@primitive(family="layout", returns=None, isolated=True)
@dataclass(frozen=True, slots=True)
class TransformLayout(Primitive):
    """Transform the layout of a temporary by a map of its indices.

    Before::

        B_packed: f32[k, n]
        ... B_packed[i, j] ...

    After (``index_map=lambda i, j: (j // 32, i, j % 32)``)::

        B_packed: f32[ceildiv(n, 32), k, 32]
        ... B_packed[j // 32, i, j % 32] ...

    Parameters
    ----------
    buffer : BufferRef
        The temporary.
    index_map : IndexMap
        The new layout: a function from the old indices to the new ones, or the text of a lambda.

    Notes
    -----
    The size of each new dimension is the extent of its index. If the image of the map does not fill
    the new buffer, as for 100 columns in tiles of 32, the remaining elements are padding that is
    never read; the decision ``padded`` records this. Cost: linear in the size of the function.

    Names elsewhere: TVM ``transform_layout``; Halide ``reorder_storage`` (permutations only).

    References
    ----------
    TensorIR (ASPLOS '23), §3.2.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
    ...     t = alloc((32,), f32)
    ...     for i in range(32):
    ...         t[i] = x[i] * 2.0
    ...     for j in range(32):
    ...         y[j] = t[j] + 1.0
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.transform_layout("t", lambda i: (i // 8, i % 8))
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        t = alloc((4, 8), f32)
        for i in range(32):
            with block("t"):
                vi = spatial(i)
                t[vi // 8, vi % 8] = x[vi] * 2.0
        for j in range(32):
            with block("y"):
                vj = spatial(j)
                y[vj] = t[vj // 8, vj % 8] + 1.0
    """

    class Requires(Requirement):
        """The requirements of ``transform_layout``."""

        ROW_MAJOR_TEMPORARY = "the buffer is a temporary with compact row-major strides"
        MATCHING_RANK = (
            "the map has as many inputs as the buffer has dimensions, and at least one output"
        )
        INJECTIVE_MAP = "the map is injective"
        BOUNDED_INDICES = "every new index is bounded and starts at 0"
        NOT_TENSORIZED = "no tensorized block accesses the buffer"
        WHOLE_BYTES = (
            "the elements of the buffer fill bytes, or no parallel or thread-bound loop accesses it"
        )

    buffer: BufferRef
    index_map: IndexMap

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the buffer and the arity of the map."""
        buffer = state.buffer(self.buffer)
        yield from temporary_problems(state, self.buffer, self.Requires.ROW_MAJOR_TEMPORARY)
        if buffer.strides is not None or buffer.layout is not None:
            yield Problem(
                self.Requires.ROW_MAJOR_TEMPORARY,
                f"{buffer.name!r} already has strides or a layout",
                (self.buffer,),
            )
        yield from tensorized_buffer_problems(state, self.buffer, self.Requires.NOT_TENSORIZED)
        given, wanted = len(self.index_map.inputs), buffer.rank
        if given != wanted or not self.index_map.outputs:
            yield Problem(
                self.Requires.MATCHING_RANK,
                f"got an index map with {given} inputs and {len(self.index_map.outputs)} outputs; "
                f"expected {wanted} inputs, one per dimension of {buffer.name!r}, and at least one "
                "output",
                (self.buffer,),
                {"inputs": given, "rank": wanted},
            )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that the map is injective and bounded."""
        tree, buffer = state.tree(self.buffer.function), state.buffer(self.buffer)
        ranges, facts = self._ranges(tree, buffer)
        known = injective_in(self.index_map.outputs, ranges, facts)
        lost = [v.name for v in self.index_map.inputs if v not in known]
        if lost:
            yield Problem(
                self.Requires.INJECTIVE_MAP,
                f"{index_map_text(self.index_map)} is not provably injective in "
                f"{', '.join(lost)}: two elements may get the same indices",
                (self.buffer,),
                {"lost": ", ".join(lost)},
            )
        for number, output in enumerate(self.index_map.outputs):
            span = interval_of(output, ranges, facts)
            if span is None or span.start != 0:
                start = "is unbounded" if span is None else f"starts at {span.start}"
                yield Problem(
                    self.Requires.BOUNDED_INDICES,
                    f"new index {number}, {output}, {start}; it must be bounded and start at 0",
                    (self.buffer,),
                    {"index": number},
                )

        yield from self._shared_bytes(tree, buffer)

    def _shared_bytes(self, tree: Tree, buffer: Buffer) -> Iterator[Problem]:
        """Check that no two threads may write packed elements that share a byte after the step."""
        if not buffer.dtype.is_packed:
            return
        for loop in tree.loops.values():
            concurrent = loop.kind in ("parallel", "thread")
            blocks = tree.blocks_in(loop.body) if concurrent else ()
            if any(a.buffer is buffer for b in blocks for a in accesses(b)):
                yield Problem(
                    self.Requires.WHOLE_BYTES,
                    f"a byte contains {buffer.dtype.per_byte} elements of {buffer.name!r}, and "
                    f"loop {loop.var.name!r}, which accesses it, is {loop.kind_text}: with the new "
                    "layout, iterations may write elements of one byte",
                    (self.buffer, loop_ref(self.buffer.function, loop)),
                )

    def _ranges(self, tree: Tree, buffer: Buffer) -> tuple[dict[Var, Interval], Facts]:
        sizes = dict(zip(self.index_map.inputs, buffer.shape, strict=True))
        facts = tree.function.facts
        for variable, size in sizes.items():
            facts = within_loop(facts, variable, size)
        return {v: Interval.full(size) for v, size in sizes.items()}, facts

    def rewrite(self, state: State) -> Rewrite:
        """Change the shape of the buffer, and map the indices of every access."""
        edit = Edit(state, self.buffer.function)
        tree, old = edit.tree, state.buffer(self.buffer)
        ranges, facts = self._ranges(tree, old)
        spans = [interval_of(o, ranges, facts) for o in self.index_map.outputs]
        shape = tuple(s.extent for s in spans if isinstance(s, Interval))
        new = replace(old, shape=shape)
        body = tree.function.body
        for block in tree.outermost_blocks():
            if any(a.buffer is old for a in accesses(block)):
                inside = tree.facts(block.body)
                mapper = _Mapper(old, new, self.index_map, inside)
                body = replace_statement(body, block, _mapped(block, mapper))
        for let in tree.outer_lets(old):
            body = _Mapper(old, new, self.index_map, tree.facts(let)).outer_let(body, let.var)
        exact = is_proved(eq(product(shape), product(old.shape)), facts)
        buffers = tuple(new if b is old else b for b in tree.function.buffers)
        body = with_allocation(body, old, new)
        return edit.finish(body, buffers=buffers, decisions={"padded": not exact})


class _Mapper(Rebuilder):
    """Rebuilder that maps the indices of all accesses to one buffer."""

    def __init__(self, old: Buffer, new: Buffer, index_map: IndexMap, facts: Facts) -> None:
        self._old, self._new, self._map, self._facts = old, new, index_map, facts

    def _indices(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        at = dict(zip(self._map.inputs, indices, strict=True))
        return tuple(simplify(substitute(o, at), self._facts) for o in self._map.outputs)

    def load(self, load: Load) -> Element:
        return Load(self._new, self._indices(load.indices)) if load.buffer is self._old else load

    def store(self, store: Store) -> Stmt:
        if store.buffer is not self._old:
            return store
        return replace(store, buffer=self._new, indices=self._indices(store.indices))

    def outer_let(self, body: Stmt, variable: Var) -> Stmt:
        """Map the load of one integer; other statements are kept."""

        def change(statement: Stmt) -> Stmt:
            if isinstance(statement, Let) and statement.var is variable:
                return replace(statement, load=self.index_load(statement.load))
            return statement

        return transform(body, change)


def _mapped(block: Block, mapper: _Mapper) -> Block:
    init = None if block.init is None else mapper.statement(block.init)
    return with_regions(replace(block, init=init, body=mapper.statement(block.body)))
