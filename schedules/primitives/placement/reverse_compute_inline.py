"""Reverse compute inline: a consumer dissolves into its producer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import Tree, is_plain, reads, with_regions, writes
from ....ir.loop.nodes import Block, Buffer, Element, Load, Store
from ....ir.loop.visit import Rebuilder, replace_statement, substitute_in_element
from ....ir.symbolic import Expr, Var, eq, is_proved, substitute, to_text
from ...edit import Edit
from ...moving import between_problems, movable_problems, told_apart_problems
from ...nests import ZERO, loops_gone, without
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import BlockRef, Gone, Ref, block_ref
from ...state import State


@primitive(family="placement", returns=None)
@dataclass(frozen=True, slots=True)
class ReverseComputeInline(Primitive):
    """Apply a consumer to its producer's value at once, and drop the consumer and the temporary.

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
        The consumer.

    Requires
    --------
    1. The block has spatial iterations only, no initialisation, writes one element of one buffer in
       an iteration, which nobody else writes, and its predicate only keeps its iterations inside
       their extents.
    2. It reads exactly one temporary that one other block writes, and no other block reads that.
    3. That producer has spatial iterations only, no initialisation, and writes one element in an
       iteration, at distinct iteration variables that run through the whole temporary.
    4. The indices that the block reads the temporary at are its iteration variables, each once, and
       these run through the whole temporary.
    5. Nobody between producer and block touches what the block writes, or writes what it reads.
    6. Different iterations of the block write different elements.

    Notes
    -----
    Cost: linear in the size of the function. Source: TensorIR §3.2.
    """

    block: BlockRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the block, its producer and what lies between."""
        tree, block = state.tree(self.block.function), state.block(self.block)
        if block.init is not None or any(v.kind != "spatial" for v in block.iters):
            yield Problem(1, f"block {block.name!r} has iterations that reduce", (self.block,))
            return
        found = tuple(movable_problems(state, self.block, 1, temporary=False))
        if found:
            yield from found
            return
        pairs = _sources(tree, block)
        if len(pairs) != 1:
            names = ", ".join(buffer.name for buffer, _ in pairs) or "none"
            yield Problem(
                2,
                f"block {block.name!r} reads {len(pairs)} temporaries of "
                f"its own ({names}), not one",
                (self.block,),
                {"temporaries": names},
            )
            return
        buffer, producer = pairs[0]
        yield from self._producer(producer, buffer)
        yield from self._indices(block, buffer)
        yield from between_problems(state, self.block, 5, producer, later=False)

    def _producer(self, producer: Block, buffer: Buffer) -> Iterator[Problem]:
        found = writes(producer)
        spatial = producer.init is None and all(v.kind == "spatial" for v in producer.iters)
        plain = is_plain(producer) and len(found) == 1 and not reads(producer, buffer)
        variables = [i for i in found[0].indices if isinstance(i, Var)] if found else []
        every = len(variables) == len(set(variables)) == buffer.rank
        if not (spatial and plain and every):
            yield Problem(
                3,
                f"producer {producer.name!r} does not write one element of {buffer.name!r} in each "
                "of its iterations, once",
                (block_ref(self.block.function, producer),),
            )

    def _indices(self, block: Block, buffer: Buffer) -> Iterator[Problem]:
        places = {a.indices for a in reads(block, buffer)}
        indices = next(iter(places))
        variables = [i for i in indices if isinstance(i, Var)]
        moving = {v.var for v in block.iters if v.extent != 1}
        if len(places) > 1 or len(set(variables)) < buffer.rank or not moving <= set(variables):
            shown = " and ".join(f"({', '.join(map(str, p))})" for p in places)
            yield Problem(
                4,
                f"block {block.name!r} reads {buffer.name!r} at {shown}, "
                "which is not its iteration "
                "variables, each once",
                (self.block,),
                {"indices": shown},
            )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that the block reads the whole temporary, and writes nothing twice."""
        yield from told_apart_problems(state, self.block, 6)
        tree, block = state.tree(self.block.function), state.block(self.block)
        buffer, producer = _sources(tree, block)[0]
        for number, user, indices in (
            (4, block, reads(block, buffer)[0].indices),
            (3, producer, writes(producer)[0].indices),
        ):
            extents = {v.var: v.extent for v in user.iters}
            for index, size in zip(indices, buffer.shape, strict=True):
                extent = extents[index] if isinstance(index, Var) else size
                if not is_proved(eq(extent, size), tree.function.facts):
                    yield Problem(
                        number,
                        f"iteration {to_text(index)} of block {user.name!r} runs to "
                        f"{to_text(extent)}, but {buffer.name!r} has "
                        f"{to_text(size)} elements there",
                        (block_ref(self.block.function, user),),
                        {"extent": to_text(extent), "size": to_text(size)},
                    )

    def rewrite(self, state: State) -> Rewrite:
        """Store the consumer's value in the producer, then drop the consumer and the buffer."""
        edit = Edit(state, self.block.function)
        tree, block = edit.tree, state.block(self.block)
        buffer, producer = _sources(tree, block)[0]
        joined = with_regions(_joined(producer, block, buffer))
        kept = without(replace_statement(tree.function.body, producer, joined), block)
        if kept is None:
            raise TypeError(f"nothing is left of {edit.name!r}")
        reason = f"dissolved block {block.name!r}"
        moved = edit.gone(loops_gone(tree, kept), reason)
        moved |= {
            self.block: Gone(f"dissolved it into block {producer.name!r}"),
            edit.buffer_ref(buffer): Gone(reason),
        }
        buffers = tuple(b for b in tree.function.buffers if b is not buffer)
        return edit.finish(kept, moved=moved, buffers=buffers)

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """The selected block, where it reads what another block makes."""
        if isinstance(selection, BlockRef):
            tree = state.tree(selection.function)
            if _sources(tree, state.block(selection)):
                yield cls(selection)


def _sources(tree: Tree, block: Block) -> list[tuple[Buffer, Block]]:
    """The temporaries that a block reads, nobody else reads and one block writes."""
    found: list[tuple[Buffer, Block]] = []
    for buffer in dict.fromkeys(a.buffer for a in reads(block)):
        writers = tree.writers(buffer)
        others = [b for b in tree.leaf_blocks() if b is not block and reads(b, buffer)]
        if buffer in tree.function.buffers and len(writers) == 1 and not others:
            found.append((buffer, writers[0]))
    return found


class _Joiner(Rebuilder):
    """Puts a value in the place of the loads of a buffer."""

    def __init__(self, buffer: Buffer, value: Element) -> None:
        self._buffer, self._value = buffer, value

    def load(self, load: Load) -> Element:
        return self._value if load.buffer is self._buffer else load


def _joined(producer: Block, block: Block, buffer: Buffer) -> Block:
    """The producer that stores what the consumer would."""
    inner, outer = producer.body, block.body
    if not isinstance(inner, Store) or not isinstance(outer, Store):
        raise TypeError(f"blocks {producer.name!r} and {block.name!r} are no single stores")
    read = reads(block, buffer)[0].indices
    at: dict[Var, Expr] = {
        mine: theirs
        for mine, theirs in zip(read, inner.indices, strict=True)
        if isinstance(mine, Var)
    }
    at |= {v.var: ZERO for v in block.iters if v.var not in at}
    value = _Joiner(buffer, inner.value).element(substitute_in_element(outer.value, at))
    origins = inner.origins | outer.origins
    indices = tuple(substitute(i, at) for i in outer.indices)
    body = Store(outer.buffer, indices, value, origins)
    return replace(producer, body=body, origins=producer.origins | block.origins)
