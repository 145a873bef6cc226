"""Transform layout: the elements of a temporary lie in another order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import Span, Tree, accesses, determined, span_of, with_regions, within_loop
from ....ir.loop.nodes import Block, Buffer, Element, IndexMap, Let, Load, Stmt, Store
from ....ir.loop.visit import Rebuilder, replace_statement
from ....ir.symbolic import Expr, Facts, Var, eq, is_proved, product, simplify, substitute
from ...common import temporary_problems, tensorized_buffer_problems
from ...edit import Edit
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import BufferRef
from ...state import State
from ...values import index_map_text


@primitive(family="layout", returns=None)
@dataclass(frozen=True, slots=True)
class TransformLayout(Primitive):
    """Let the elements of a temporary lie in another order, or in more dimensions.

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
        Where an element goes: a function of the old indices that gives the new ones, or the text
        of a lambda.

    Requires
    --------
    1. The buffer is a temporary with compact row-major strides.
    2. The map takes as many indices as the buffer has dimensions, and gives at least one.
    3. Different elements go to different places.
    4. Every new index is bounded, and starts at 0.
    5. No instruction works on the buffer: it was matched with the elements as they lie.

    Notes
    -----
    A new dimension is as long as its index gets. Where the map does not fill the new buffer, as
    with 100 columns in tiles of 32, the rest is padding that nobody reads; the decision ``padded``
    says so. Cost: linear in the size of the function. Source: TensorIR §3.2.
    """

    buffer: BufferRef
    index_map: IndexMap

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the buffer and the map's arity."""
        buffer = state.buffer(self.buffer)
        yield from temporary_problems(state, self.buffer, 1)
        if buffer.strides is not None or buffer.layout is not None:
            yield Problem(1, f"{buffer.name!r} has strides or a layout already", (self.buffer,))
        yield from tensorized_buffer_problems(state, self.buffer, 5)
        given, wanted = len(self.index_map.inputs), buffer.rank
        if given != wanted or not self.index_map.outputs:
            yield Problem(
                2,
                f"the map takes {given} indices and gives {len(self.index_map.outputs)}; "
                f"{buffer.name!r} has {wanted} dimensions",
                (self.buffer,),
                {"inputs": given, "rank": wanted},
            )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that the map is one to one and bounded."""
        tree, buffer = state.tree(self.buffer.function), state.buffer(self.buffer)
        ranges, facts = self._ranges(tree, buffer)
        known = determined(self.index_map.outputs, ranges, facts)
        lost = [v.name for v in self.index_map.inputs if v not in known]
        if lost:
            yield Problem(
                3,
                f"{index_map_text(self.index_map)} may send different elements to one place: "
                f"{', '.join(lost)} cannot be told from the new indices",
                (self.buffer,),
                {"lost": ", ".join(lost)},
            )
        for number, output in enumerate(self.index_map.outputs):
            span = span_of(output, ranges, facts)
            if span is None or span.start != 0:
                start = "unbounded" if span is None else f"from {span.start}"
                yield Problem(
                    4,
                    f"new index {number}, {output}, is {start}, not from 0",
                    (self.buffer,),
                    {"index": number},
                )

    def _ranges(self, tree: Tree, buffer: Buffer) -> tuple[dict[Var, Expr], Facts]:
        ranges = dict(zip(self.index_map.inputs, buffer.shape, strict=True))
        facts = tree.function.facts
        for variable, extent in ranges.items():
            facts = within_loop(facts, variable, extent)
        return ranges, facts

    def rewrite(self, state: State) -> Rewrite:
        """Give the buffer its new shape and map every access."""
        edit = Edit(state, self.buffer.function)
        tree, old = edit.tree, state.buffer(self.buffer)
        ranges, facts = self._ranges(tree, old)
        spans = [span_of(o, ranges, facts) for o in self.index_map.outputs]
        shape = tuple(s.extent for s in spans if isinstance(s, Span))
        new = replace(old, shape=shape)
        body = tree.function.body
        for block in tree.leaf_blocks():
            if any(a.buffer is old for a in accesses(block)):
                inside = tree.facts(block.body)
                mapper = _Mapper(old, new, self.index_map, inside)
                body = replace_statement(body, block, _mapped(block, mapper))
        exact = is_proved(eq(product(shape), product(old.shape)), facts)
        buffers = tuple(new if b is old else b for b in tree.function.buffers)
        return edit.finish(body, buffers=buffers, decisions={"padded": not exact})


class _Mapper(Rebuilder):
    """Maps the indices of one buffer's accesses."""

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

    def statement(self, statement: Stmt) -> Stmt:
        if isinstance(statement, Let) and statement.load.buffer is self._old:
            moved = Load(self._new, self._indices(statement.load.indices))
            return replace(statement, load=moved, body=self.statement(statement.body))
        return super().statement(statement)


def _mapped(block: Block, mapper: _Mapper) -> Block:
    init = None if block.init is None else mapper.statement(block.init)
    return with_regions(replace(block, init=init, body=mapper.statement(block.body)))
