"""The ``tensorize`` primitive."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from ....ir.analysis import Tree, with_regions
from ....ir.loop.nodes import INTRINSIC, Block, Buffer, For, Stmt
from ....ir.loop.visit import replace_statement, substitute_in, walk
from ....ir.symbolic import SymInt, Var, all_of, conjuncts, const_value, is_proved, substitute
from ...apply import Primitive, Rewrite
from ...checks import is_tensorized
from ...domain_checks import repeat_problems
from ...edit import Edit, with_attribute
from ...handles import (
    BlockRef,
    BufferRef,
    Handle,
    LoopRef,
    Removed,
    block_ref,
    loop_ref,
    refs_of,
)
from ...intrinsics.difference import Kind
from ...intrinsics.match import Unified
from ...intrinsics.nest import ImperfectNest
from ...intrinsics.registry import get_intrinsic, has_intrinsic, intrinsics_for, unknown_text
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ._blocks import Chain, blockized, chain_below, chain_problems
from ._site import TensorizeSite, pattern_loops, site_of
from .explain import mismatch_of

MOST_SIMILAR = 4
"""The maximum number of suggested intrinsics if none matches."""


@primitive(family="tensorize", returns=BlockRef)
@dataclass(frozen=True, slots=True)
class Tensorize(Primitive):
    """Map a loop nest to a tensor intrinsic.

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
        The name of the intrinsic.

    Notes
    -----
    The semantics of the program do not change: the new block contains the loops of the intrinsic
    over the buffers of the program, which analyses and the interpreter treat as ordinary loops.
    Code generation emits the intrinsic instead, and executes the loops for a partial tile that the
    intrinsic cannot handle. Later steps cannot change the inside of the block; ``unannotate``
    converts it to an ordinary block. The result is the handle of the block. Cost: linear in the
    size of the nest.

    Names elsewhere: TVM ``tensorize``; Halide: none.

    References
    ----------
    TensorIR (ASPLOS '23), §4.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(a: Buffer[(6, 64), f32], b: Buffer[(64, 16), f32], c: InOut[(6, 16), f32]):
    ...     for k in range(64):
    ...         for i in range(6):
    ...             for j in range(16):
    ...                 with block("mm"):
    ...                     vk, vi, vj = reduce(k), spatial(i), spatial(j)
    ...                     c[vi, vj] += a[vi, vk] * b[vk, vj]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.tensorize("i", "avx2.fma.f32.6x16")
    <block mm_o of f>
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(a: Buffer[(6, 64), f32], b: Buffer[(64, 16), f32], c: InOut[(6, 16), f32]):
        for k in range(64):
            with block("mm_o", intrinsic="avx2.fma.f32.6x16"):
                vk_1 = reduce(k)
                reads(a[0:6, vk_1], b[vk_1, 0:16])
                for i in unrolled(6):
                    for j in vectorized(16):
                        with block("mm"):
                            vk, vi, vj = reduce(vk_1), spatial(i), spatial(j)
                            c[vi, vj] += a[vi, vk] * b[vk, vj]
    """

    class Requires(Requirement):
        """The requirements of ``tensorize``."""

        INTRINSIC_EXISTS = "the intrinsic exists"
        PERFECT_NEST = (
            "the target contains one perfect nest of loops around one block with one store"
        )
        NOT_TENSORIZED = "the target is not tensorized"
        ONE_KIND_PER_VARIABLE = (
            "every outer variable that the block depends on binds iteration variables of one "
            "kind; the range of one that is read from memory depends on symbols only, that of an "
            "iteration variable of a block around the loop on variables inside of that block"
        )
        RUNS_ONCE = "the nest runs each instance of its block once"
        SAME_EXTENTS = (
            "the nest has the loops of the intrinsic, with the same extents, in any order"
        )
        SAME_DTYPES = "the elements have the dtypes of the intrinsic, and the same casts"
        SAME_LAYOUTS = (
            "the buffers have the layouts of the intrinsic: strides, and fragment layouts in "
            "registers"
        )
        SAME_ACCESSES = (
            "the store computes the same expression from the same accesses; the output is not an "
            "input, and the write indices are injective in the loops"
        )
        SAME_REDUCTION = (
            "loops are spatial or reduce as in the intrinsic, reductions use the same operation, "
            "and the init is decomposed"
        )
        SAME_SCOPES = (
            "the buffers have the memory scopes of the intrinsic, and no outer loop is bound to "
            "the thread axis on which the intrinsic executes"
        )
        SUPPORTED_BY_TARGET = "the target supports the intrinsic"
        LIMITING_PREDICATE = (
            "a predicate only limits the end of one loop, and an intrinsic executed by a warp has "
            "no predicate"
        )

    target: LoopRef | BlockRef
    intrinsic: str

    def structural(self, state: State) -> Iterator[Problem]:
        """Check that the intrinsic and the nest exist."""
        if not has_intrinsic(self.intrinsic):
            yield Problem(
                self.Requires.INTRINSIC_EXISTS,
                unknown_text(self.intrinsic),
                (self.target,),
                {"intrinsic": self.intrinsic},
            )
            return
        if isinstance(self.target, LoopRef):
            yield from chain_problems(
                state, self.target, self.Requires.PERFECT_NEST, self.Requires.ONE_KIND_PER_VARIABLE
            )
        else:
            yield from self._block_problems(state, self.target)

    def _block_problems(self, state: State, ref: BlockRef) -> Iterator[Problem]:
        block = state.block(ref)
        if is_tensorized(block):
            done = dict(block.annotations)[INTRINSIC]
            yield Problem(
                self.Requires.NOT_TENSORIZED,
                f"block {block.name!r} is already tensorized by {done}",
                (ref,),
            )
        elif not isinstance(block.body, For) or not isinstance(chain_below(block.body), Chain):
            message = f"block {block.name!r} does not contain a perfect nest around a single block"
            yield Problem(self.Requires.PERFECT_NEST, message, (ref,))

    def proofs(self, state: State) -> Iterator[Problem]:
        """Compare the nest with the intrinsic."""
        from .fixes import fixes_of  # avoids an import cycle: fixes include tensorize steps

        site = self.site(state)
        if isinstance(site.unified, ImperfectNest):
            yield Problem(self.Requires.PERFECT_NEST, site.unified.reason, (self.target,))
            return
        held = site.unified.program.blocks
        if len(held) != 1:
            names = ", ".join(b.name for b in held)
            yield Problem(
                self.Requires.PERFECT_NEST,
                f"the target contains nested blocks ({names})",
                (self.target, *refs_of(self.target.function, *held)),
            )
            return
        ref = block_ref(self.target.function, held[0])
        yield from repeat_problems(state, ref, self.Requires.RUNS_ONCE, self._nest(state))
        for difference in site.differences:
            found = mismatch_of(site, difference, fixes_of(site, difference))
            yield Problem(
                REQUIREMENTS[difference.kind],
                found.message,
                self._where(found.where),
                found.numbers,
                fixes=found.fixes,
            )

    def _nest(self, state: State) -> Stmt:
        """Return the loops of the target."""
        return (
            state.loop(self.target)
            if isinstance(self.target, LoopRef)
            else state.block(self.target).body
        )

    def _where(self, found: tuple[Handle, ...]) -> tuple[Handle, ...]:
        """Return the handles of a difference; buffers with the target that accesses them."""
        alone = all(isinstance(ref, BufferRef) for ref in found)
        return (self.target, *found) if alone else found

    def site(self, state: State) -> TensorizeSite:
        """Return the comparison of the target with the intrinsic."""
        return site_of(state, self.target, get_intrinsic(self.intrinsic))

    def rewrite(self, state: State) -> Rewrite:
        """Convert the nest to a block that is annotated with the intrinsic."""
        edit = Edit(state, self.target.function)
        site = self.site(state)
        if not isinstance(site.unified, Unified):
            raise TypeError(f"{self.target} does not contain a perfect nest")
        old, block = self._outer(edit, state)
        block = _retiled(block, site.unified)
        annotations = with_attribute(block.annotations, INTRINSIC, value=self.intrinsic)
        block = with_regions(replace(block, annotations=annotations))
        swap = _fragments(site)
        body = edit.replaced(old, block)
        body = substitute_in(body, buffers=swap) if swap else body
        buffers = tuple(swap.get(b, b) for b in edit.tree.function.buffers)
        dropped = set(site.unified.program.loops) - set(site.unified.loops)
        moved: dict[Handle, tuple[Handle, ...] | Removed] = {
            loop_ref(edit.name, x): Removed("removed a loop of one iteration") for x in dropped
        }
        results = (edit.block_ref(block),)
        return edit.finish(body, results=results, moved=moved, buffers=buffers)

    def _outer(self, edit: Edit, state: State) -> tuple[Stmt, Block]:
        """Return the statement to replace, and the block that contains the nest."""
        if isinstance(self.target, BlockRef):
            block = state.block(self.target)
            inner = _innermost(block)
            new = replace_statement(block, inner, _unguarded(edit.tree, inner))
            return block, _as_block(new)
        loop = state.loop(self.target)
        chain = chain_below(loop)
        if not isinstance(chain, Chain):
            raise TypeError(f"loop {loop.var.name!r} contains more than one block")
        return loop, blockized(edit, Chain(chain.loops, _unguarded(edit.tree, chain.block)))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the intrinsics that match the selected nest, or else the most similar ones."""
        if not isinstance(selection, LoopRef | BlockRef):
            return
        ranked = _ranked(state, selection)
        matching = [name for rank, name in ranked if rank == _MATCHES]
        for name in matching or [name for _, name in ranked[:MOST_SIMILAR]]:
            yield cls(selection, name)


REQUIREMENTS: Final[Mapping[Kind, Tensorize.Requires]] = MappingProxyType(
    {
        "extent": Tensorize.Requires.SAME_EXTENTS,
        "dtype": Tensorize.Requires.SAME_DTYPES,
        "layout": Tensorize.Requires.SAME_LAYOUTS,
        "access": Tensorize.Requires.SAME_ACCESSES,
        "reduction": Tensorize.Requires.SAME_REDUCTION,
        "scope": Tensorize.Requires.SAME_SCOPES,
        "target": Tensorize.Requires.SUPPORTED_BY_TARGET,
        "predicate": Tensorize.Requires.LIMITING_PREDICATE,
    }
)
"""The violated requirement by kind of mismatch."""


_MATCHES = (0, 0, 0)


def _ranked(state: State, where: LoopRef | BlockRef) -> list[tuple[tuple[int, int, int], str]]:
    """Return the intrinsics with at most as many loops, by distance, then by decreasing size."""
    start = state.loop(where) if isinstance(where, LoopRef) else state.block(where)
    if isinstance(start, Block) and is_tensorized(start):
        return []
    loops = sum(isinstance(s, For) for s in walk(start))
    found: list[tuple[tuple[int, int, int], int, str]] = []
    for intrinsic in intrinsics_for(state.target_of(where.function)):
        if len(pattern_loops(intrinsic)) > loops:
            continue
        site = site_of(state, where, intrinsic)
        if not isinstance(site.unified, Unified):
            return []
        work = math.prod(const_value(x.extent) or 1 for x in pattern_loops(intrinsic))
        found.append((_distance(site), -work, intrinsic.name))
    return [(distance, name) for distance, _, name in sorted(found)]


def _distance(site: TensorizeSite) -> tuple[int, int, int]:
    """Return the distance to an intrinsic: computation first, then loops, then all differences."""
    kinds = [d.kind for d in site.differences]
    computed = kinds.count("dtype") + kinds.count("access") + kinds.count("layout")
    return computed, kinds.count("extent"), len(kinds)


def _retiled(block: Block, unified: Unified) -> Block:
    """Reorder the loops as in the intrinsic, and set their kinds."""
    held = _innermost(block)
    unit: dict[Var, SymInt] = {x.var: 0 for x in unified.program.loops if x not in unified.loops}
    if unit:
        iters = tuple(
            replace(v, extent=substitute(v.extent, unit), binding=substitute(v.binding, unit))
            for v in held.iters
        )
        held = replace(held, iters=iters, predicate=substitute(held.predicate, unit))
    body: Stmt = held
    for loop, wanted in zip(reversed(unified.loops), reversed(unified.pattern.loops), strict=True):
        body = replace(loop, extent=wanted.extent, kind=wanted.kind, thread="", body=body)
    return replace(block, body=body)


def _unguarded(tree: Tree, block: Block) -> Block:
    """Remove the terms of the predicate that always hold, so that they need no match."""
    facts = tree.facts(block)
    kept = tuple(p for p in conjuncts(block.predicate) if not is_proved(p, facts))
    return replace(block, predicate=all_of(*kept))


def _as_block(statement: Stmt) -> Block:
    if not isinstance(statement, Block):
        raise TypeError(f"{type(statement).__name__} is not a block")
    return statement


def _innermost(block: Block) -> Block:
    """Return the block inside the loops of another block."""
    below = block.body
    while isinstance(below, For):
        below = below.body
    if not isinstance(below, Block):
        raise TypeError(f"block {block.name!r} does not contain a block")
    return below


def _fragments(site: TensorizeSite) -> dict[Buffer, Buffer]:
    """Return the buffers that get a fragment layout of the intrinsic, with that layout."""
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
