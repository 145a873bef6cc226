"""Comparison of a loop nest with an intrinsic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....ir.analysis import Tree
from ....ir.loop.nodes import Block, Buffer, For, Stmt
from ....ir.symbolic import free_vars
from ....target.target import Target, provides
from ...handles import BlockRef, BufferRef, Handle, LoopRef, loop_ref
from ...intrinsics.contract import Intrinsic
from ...intrinsics.difference import Difference
from ...intrinsics.match import Unified, overlap, pattern_of, unify
from ...intrinsics.nest import ImperfectNest, Nest, nest_of
from ...state import State


@dataclass(frozen=True, slots=True, eq=False)
class TensorizeSite:
    """The comparison of a loop, or a block around loops, with an intrinsic.

    Parameters
    ----------
    state : State
        The program.
    where : LoopRef or BlockRef
        The loop or block.
    intrinsic : Intrinsic
        The intrinsic.
    unified : Unified or ImperfectNest
        The comparison; an ``ImperfectNest`` if there is no nest to compare.
    differences : tuple of Difference
        All differences, including those of the target.
    """

    state: State
    where: LoopRef | BlockRef
    intrinsic: Intrinsic
    unified: Unified | ImperfectNest
    differences: tuple[Difference, ...]

    @property
    def tree(self) -> Tree:
        """The index of the function."""
        return self.state.tree(self.where.function)

    @property
    def nest(self) -> Nest | None:
        """The nest of the program, or None."""
        return None if isinstance(self.unified, ImperfectNest) else self.unified.program

    @property
    def block(self) -> Block | None:
        """The innermost block of the nest, or None."""
        nest = self.nest
        return nest.blocks[-1] if nest is not None and nest.blocks else None

    def refs(self, difference: Difference) -> tuple[Handle, ...]:
        """Return the handles of the subject of a difference; by default the compared node."""
        name = self.where.function
        match difference.subject:
            case For() as loop:
                return (loop_ref(name, loop),)
            case Buffer(uid=uid) as buffer:
                return (BufferRef(name, uid, buffer.name),)
            case None:
                return (self.where,)
            case guard:
                nest = self.nest
                loops = () if nest is None else nest.loops
                return tuple(loop_ref(name, x) for x in loops if x.var in free_vars(guard))


def site_of(state: State, where: LoopRef | BlockRef, intrinsic: Intrinsic) -> TensorizeSite:
    """Return the comparison of a loop or block with an intrinsic, memoized per state.

    Suggestions, checks and fixes all use it, and fixes compare with every intrinsic.
    """
    key = (TensorizeSite, where, intrinsic.name)
    known = state.memo.get(key)
    if not isinstance(known, TensorizeSite):
        known = state.memo[key] = _compared(state, where, intrinsic)
    return known


def _compared(state: State, where: LoopRef | BlockRef, intrinsic: Intrinsic) -> TensorizeSite:
    tree = state.tree(where.function)
    start: Stmt = state.loop(where) if isinstance(where, LoopRef) else _body(state.block(where))
    found = nest_of(start, tree.facts(start))
    if isinstance(found, ImperfectNest):
        difference = Difference("access", found.reason, "", found.reason)
        return TensorizeSite(state, where, intrinsic, found, (difference,))
    unified = unify(found, intrinsic)
    differences = (
        *unified.differences,
        *_init_differences(state, where, unified, intrinsic),
        *_block_differences(unified),
        *_thread_differences(state, where, intrinsic),
        *_target_differences(state.target_of(where.function), intrinsic),
    )
    return TensorizeSite(state, where, intrinsic, unified, differences)


def _body(block: Block) -> Stmt:
    """Return the loops or block inside a block, or the block itself if it has none."""
    return block.body if isinstance(block.body, For | Block) else block


def _init_differences(
    state: State, where: LoopRef | BlockRef, unified: Unified, intrinsic: Intrinsic
) -> Iterator[Difference]:
    around = (state.block(where),) if isinstance(where, BlockRef) else ()
    for block in dict.fromkeys((*around, *unified.program.blocks)):
        if block.init is not None:
            yield Difference(
                "reduction",
                "with init(): ...",
                "",
                f"block {block.name!r} has an init, but {intrinsic.name} only updates its output",
            )


def _block_differences(unified: Unified) -> Iterator[Difference]:
    names = ", ".join(b.name for b in unified.program.blocks)
    if len(unified.program.blocks) != 1:
        message = f"the loops contain {names or 'no block'}; expected one block with one store"
        yield Difference("access", names, "", message)
    for variable in overlap(unified):
        loop = next(x for x in unified.loops if x.var is variable)
        buffer = unified.program.store.buffer
        yield Difference(
            "access",
            buffer.name,
            "",
            f"iterations of loop {variable.name!r} may write the same elements of {buffer.name!r}",
            loop,
        )


def _thread_differences(
    state: State, where: LoopRef | BlockRef, intrinsic: Intrinsic
) -> Iterator[Difference]:
    if intrinsic.scope == "thread":
        return
    tree = state.tree(where.function)
    start = state.loop(where) if isinstance(where, LoopRef) else state.block(where)
    for loop in (start, *tree.ancestors(start)):
        if isinstance(loop, For) and loop.thread == "threadIdx.x":
            yield Difference(
                "scope",
                f"for {loop.var.name} in thread(..., 'threadIdx.x')",
                intrinsic.scope,
                f"loop {loop.var.name!r} is bound to threadIdx.x, the axis that {intrinsic.name} "
                f"uses for the threads of its {intrinsic.scope}",
                loop,
            )


def _target_differences(target: Target | None, intrinsic: Intrinsic) -> Iterator[Difference]:
    if target is None:
        return
    missing = [need for need in intrinsic.needs if provides(target, need) is False]
    if missing:
        yield Difference(
            "target",
            str(target),
            f"needs {', '.join(intrinsic.needs)}",
            f"{intrinsic.name} needs {', '.join(missing)}, which {target} does not have",
        )


def pattern_loops(intrinsic: Intrinsic) -> tuple[For, ...]:
    """Return the loops of the semantics of an intrinsic, outermost first."""
    return pattern_of(intrinsic).loops
