"""Tensorize: a tensor instruction does the work of a nest of loops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from ....ir.analysis import Tree, conjuncts, with_regions
from ....ir.loop.nodes import INTRINSIC, Block, Buffer, For, Stmt
from ....ir.loop.visit import replace_statement, substitute_in, walk
from ....ir.symbolic import SymInt, Var, all_of, const_value, is_proved, substitute
from ...common import is_tensorized
from ...edit import Edit, with_attribute
from ...intrinsics.difference import Kind
from ...intrinsics.match import Unified
from ...intrinsics.nest import Stray
from ...intrinsics.registry import get_intrinsic, has_intrinsic, intrinsics_for, unknown_text
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import BlockRef, Gone, LoopRef, Ref, loop_ref
from ...state import State
from ._blocks import Chain, blockized, chain_below, chain_problems
from ._site import Site, pattern_loops, site_of
from .explain import mismatch_of

MOST_NEAR = 4
"""Instructions suggested where none fits."""

REQUIREMENTS: Final[Mapping[Kind, int]] = MappingProxyType(
    {
        "extent": 3,
        "dtype": 4,
        "layout": 5,
        "access": 6,
        "reduction": 7,
        "scope": 8,
        "target": 9,
        "predicate": 10,
    }
)
"""Which requirement a mismatch of each kind violates."""


@primitive(family="tensorize", returns=BlockRef)
@dataclass(frozen=True, slots=True)
class Tensorize(Primitive):
    """Let a tensor instruction do the work of a nest of loops.

    Before::

        for i_1 in range(14):
            for j_1 in range(32):
                with block("C"):
                    vi, vj = spatial(M, i_0 * 14 + i_1), spatial(N, j_0 * 32 + j_1)
                    guard(i_0 * 14 + i_1 < M)
                    C[vi, vj] += A[vi] * B[vj]

    After (``intrinsic="avx512.fma.f32.14x32"``)::

        with block("C_o", intrinsic="avx512.fma.f32.14x32"):
            vi_0, vj_0 = spatial(i_0), spatial(j_0)
            for i_1 in unrolled(14):
                for j_1 in vectorized(32):
                    with block("C"):
                        vi, vj = spatial(M, vi_0 * 14 + i_1), spatial(N, vj_0 * 32 + j_1)
                        guard(vi_0 * 14 + i_1 < M)
                        C[vi, vj] += A[vi] * B[vj]

    Parameters
    ----------
    target : LoopRef or BlockRef
        The outermost loop of the nest, which becomes a block, or a block around such a nest.
    intrinsic : str
        The name of the instruction.

    Requires
    --------
    1. There is an instruction of that name.
    2. The target holds one nest of loops around one block of one store, is not tensorized already,
       and could be a block: what is around it feeds iterations of one kind each.
    3. The loops are those of the instruction: one for each, of the same extent, in any order.
    4. Elements have the dtypes of the instruction, and are converted where it does so.
    5. Buffers lie as the instruction asks: strides, and fragments for its own registers.
    6. Elements are read, computed with and written as in the instruction; the output is none of
       the inputs, and different iterations write different elements.
    7. Loops run through results or sum as in the instruction, by the same operation, and the
       initialisation is a block of its own.
    8. Buffers are in the memory that the instruction works on, and no loop around is bound to the
       threads that perform it together.
    9. The target has the instruction.
    10. A guard only cuts off the end of one loop, and where a warp performs the instruction there
        is none.

    Notes
    -----
    The program keeps what it computes: the block holds the loops of the instruction over the
    program's buffers, so all that looks at programs sees plain loops; code generation puts the
    instruction in their place, and where a tail leaves fewer iterations than it can do, runs the
    loops. Nothing inside the block can be changed any more; ``unannotate`` makes it an ordinary
    block again. Gives the block. Cost: linear in the size of the nest. Source: TensorIR §4.
    """

    target: LoopRef | BlockRef
    intrinsic: str

    def structural(self, state: State) -> Iterator[Problem]:
        """Check that there is an instruction, and a nest."""
        if not has_intrinsic(self.intrinsic):
            yield Problem(
                1, unknown_text(self.intrinsic), (self.target,), {"intrinsic": self.intrinsic}
            )
            return
        if isinstance(self.target, LoopRef):
            yield from chain_problems(state, self.target, 2, 2)
        else:
            yield from self._block_problems(state, self.target)

    def _block_problems(self, state: State, ref: BlockRef) -> Iterator[Problem]:
        block = state.block(ref)
        if is_tensorized(block):
            done = dict(block.annotations)[INTRINSIC]
            yield Problem(2, f"block {block.name!r} is tensorized already, by {done}", (ref,))
        elif not isinstance(block.body, For) or not isinstance(chain_below(block.body), Chain):
            message = f"block {block.name!r} holds no single nest of loops around one block"
            yield Problem(2, message, (ref,))

    def proofs(self, state: State) -> Iterator[Problem]:
        """Compare the nest with the instruction."""
        from .fixes import fixes_of  # fixes are steps, this one among them

        site = self.site(state)
        if isinstance(site.unified, Stray):
            yield Problem(2, site.unified.reason, (self.target,))
            return
        held = site.unified.program.blocks
        if len(held) != 1:
            names = ", ".join(b.name for b in held)
            yield Problem(2, f"there are several blocks one in the other: {names}", (self.target,))
            return
        for difference in site.differences:
            found = mismatch_of(site, difference, fixes_of(site, difference))
            yield Problem(
                REQUIREMENTS[difference.kind],
                found.message,
                found.where,
                found.numbers,
                fixes=found.fixes,
            )

    def site(self, state: State) -> Site:
        """Compare the place with the instruction."""
        return site_of(state, self.target, get_intrinsic(self.intrinsic))

    def rewrite(self, state: State) -> Rewrite:
        """Put the loops of the instruction into a block that bears its name."""
        edit = Edit(state, self.target.function)
        site = self.site(state)
        if not isinstance(site.unified, Unified):
            raise TypeError(f"{self.target} holds no nest")
        old, block = self._outer(edit, state)
        block = _retiled(block, site.unified)
        notes = with_attribute(block.annotations, INTRINSIC, value=self.intrinsic)
        block = with_regions(replace(block, annotations=notes))
        swap = _fragments(site)
        body = edit.replaced(old, block)
        body = substitute_in(body, buffers=swap) if swap else body
        buffers = tuple(swap.get(b, b) for b in edit.tree.function.buffers)
        dropped = set(site.unified.program.loops) - set(site.unified.loops)
        moved: dict[Ref, tuple[Ref, ...] | Gone] = {
            loop_ref(edit.name, x): Gone("dropped a loop of one iteration") for x in dropped
        }
        results = (edit.block_ref(block),)
        return edit.finish(body, results=results, moved=moved, buffers=buffers)

    def _outer(self, edit: Edit, state: State) -> tuple[Stmt, Block]:
        """What is replaced, and the block that holds the nest."""
        if isinstance(self.target, BlockRef):
            block = state.block(self.target)
            inner = _innermost(block)
            new = replace_statement(block, inner, _unguarded(edit.tree, inner))
            return block, _as_block(new)
        loop = state.loop(self.target)
        chain = chain_below(loop)
        if not isinstance(chain, Chain):
            raise TypeError(f"loop {loop.var.name!r} holds more than one block")
        return loop, blockized(edit, Chain(chain.loops, _unguarded(edit.tree, chain.block)))

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """The instructions of the target that fit the selected nest; else those that nearly do."""
        if not isinstance(selection, LoopRef | BlockRef):
            return
        ranked = _ranked(state, selection)
        fitting = [name for rank, name in ranked if rank == _FITS]
        for name in fitting or [name for _, name in ranked[:MOST_NEAR]]:
            yield cls(selection, name)


_FITS = (0, 0, 0)


def _ranked(state: State, where: LoopRef | BlockRef) -> list[tuple[tuple[int, int, int], str]]:
    """Compare a place with every instruction of no more loops: the nearest, then the largest."""
    start = state.loop(where) if isinstance(where, LoopRef) else state.block(where)
    if isinstance(start, Block) and is_tensorized(start):
        return []
    loops = sum(isinstance(s, For) for s in walk(start))
    found: list[tuple[tuple[int, int, int], int, str]] = []
    for intrinsic in intrinsics_for(state.target):
        if len(pattern_loops(intrinsic)) > loops:
            continue
        site = site_of(state, where, intrinsic)
        if not isinstance(site.unified, Unified):
            return []
        work = math.prod(const_value(x.extent) or 1 for x in pattern_loops(intrinsic))
        found.append((_distance(site), -work, intrinsic.name))
    return [(distance, name) for distance, _, name in sorted(found)]


def _distance(site: Site) -> tuple[int, int, int]:
    """How far a place is from an instruction: what it computes first, then its loops, then all."""
    kinds = [d.kind for d in site.differences]
    computed = kinds.count("dtype") + kinds.count("access") + kinds.count("layout")
    return computed, kinds.count("extent"), len(kinds)


def _retiled(block: Block, unified: Unified) -> Block:
    """Put the program's loops into the order and the kinds of the instruction."""
    held = _innermost(block)
    unit: dict[Var, SymInt] = {x.var: 0 for x in unified.program.loops if x not in unified.loops}
    if unit:
        iters = tuple(replace(v, binding=substitute(v.binding, unit)) for v in held.iters)
        held = replace(held, iters=iters, predicate=substitute(held.predicate, unit))
    body: Stmt = held
    for loop, wanted in zip(reversed(unified.loops), reversed(unified.pattern.loops), strict=True):
        body = replace(loop, extent=wanted.extent, kind=wanted.kind, thread="", body=body)
    return replace(block, body=body)


def _unguarded(tree: Tree, block: Block) -> Block:
    """Drop the guards that always hold, so that the instruction need not heed them."""
    facts = tree.facts(block)
    kept = tuple(p for p in conjuncts(block.predicate) if not is_proved(p, facts))
    return replace(block, predicate=all_of(*kept))


def _as_block(statement: Stmt) -> Block:
    if not isinstance(statement, Block):
        raise TypeError(f"{type(statement).__name__} is no block")
    return statement


def _innermost(block: Block) -> Block:
    """The block that the loops of another one hold."""
    below = block.body
    while isinstance(below, For):
        below = below.body
    if not isinstance(below, Block):
        raise TypeError(f"block {block.name!r} holds no block")
    return below


def _fragments(site: Site) -> dict[Buffer, Buffer]:
    """Give buffers that the instruction keeps in fragments their layout."""
    unified = site.unified
    layouts = site.intrinsic.layouts
    if not isinstance(unified, Unified) or not layouts:
        return {}
    pairs = zip(unified.windows, layouts, strict=True)
    return {
        w.buffer: replace(w.buffer, layout=layout)
        for w, layout in pairs
        if w is not None and layout is not None and w.buffer.layout is None
    }
