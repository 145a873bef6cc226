"""The place that an instruction is tried at: its nest, and everything that differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....ir.analysis import Tree
from ....ir.loop.nodes import Block, Buffer, For, Stmt
from ....ir.symbolic import free_vars
from ....ir.target import provides
from ...intrinsics.contract import Intrinsic
from ...intrinsics.difference import Difference
from ...intrinsics.match import Unified, overlap, pattern_of, unify
from ...intrinsics.nest import Nest, Stray, nest_of
from ...refs import BlockRef, BufferRef, LoopRef, Ref, block_ref, loop_ref
from ...state import State


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A loop, or a block around loops, compared with an instruction.

    Parameters
    ----------
    state : State
        The program.
    where : LoopRef or BlockRef
        The place.
    intrinsic : Intrinsic
        The instruction.
    unified : Unified or Stray
        The comparison; a stray where there is no nest to compare.
    differences : tuple of Difference
        All that differs, the target included.
    """

    state: State
    where: LoopRef | BlockRef
    intrinsic: Intrinsic
    unified: Unified | Stray
    differences: tuple[Difference, ...]

    @property
    def tree(self) -> Tree:
        """The function's index."""
        return self.state.tree(self.where.function)

    @property
    def nest(self) -> Nest | None:
        """The nest of the program, where there is one."""
        return None if isinstance(self.unified, Stray) else self.unified.program

    @property
    def block(self) -> Block | None:
        """The innermost block of the nest, the one that computes."""
        nest = self.nest
        return nest.blocks[-1] if nest is not None and nest.blocks else None

    def refs(self, difference: Difference) -> tuple[Ref, ...]:
        """Give the handles of what a difference is about; the place where it is nothing."""
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


def site_of(state: State, where: LoopRef | BlockRef, intrinsic: Intrinsic) -> Site:
    """Compare a place of a program with an instruction, once a state.

    Suggestions, checks and fixes all ask, and fixes ask about every instruction.
    """
    key = (Site, where, intrinsic.name)
    known = state.memo.get(key)
    if not isinstance(known, Site):
        known = state.memo[key] = _compared(state, where, intrinsic)
    return known


def _compared(state: State, where: LoopRef | BlockRef, intrinsic: Intrinsic) -> Site:
    tree = state.tree(where.function)
    start: Stmt = state.loop(where) if isinstance(where, LoopRef) else _body(state.block(where))
    found = nest_of(start, tree.facts(start))
    if isinstance(found, Stray):
        stray = Difference("access", found.reason, "", found.reason)
        return Site(state, where, intrinsic, found, (stray,))
    unified = unify(found, intrinsic)
    differences = (
        *unified.differences,
        *_start_differences(state, where, unified, intrinsic),
        *_block_differences(unified),
        *_thread_differences(state, where, intrinsic),
        *_target_differences(state, intrinsic),
    )
    return Site(state, where, intrinsic, unified, differences)


def _body(block: Block) -> Stmt:
    """What a block around loops holds; a block without loops is looked at itself."""
    return block.body if isinstance(block.body, For | Block) else block


def _start_differences(
    state: State, where: LoopRef | BlockRef, unified: Unified, intrinsic: Intrinsic
) -> Iterator[Difference]:
    around = (state.block(where),) if isinstance(where, BlockRef) else ()
    for block in dict.fromkeys((*around, *unified.program.blocks)):
        if block.init is not None:
            yield Difference(
                "reduction",
                "with init(): ...",
                "",
                f"block {block.name!r} holds its initialisation, and {intrinsic.name} only adds "
                "to what is there",
            )


def _block_differences(unified: Unified) -> Iterator[Difference]:
    names = ", ".join(b.name for b in unified.program.blocks)
    if len(unified.program.blocks) != 1:
        message = f"the loops hold {names or 'no block'}, not one block of one store"
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
    place = state.loop(where) if isinstance(where, LoopRef) else state.block(where)
    for loop in (place, *tree.ancestors(place)):
        if isinstance(loop, For) and loop.thread == "threadIdx.x":
            yield Difference(
                "scope",
                f"for {loop.var.name} in thread(..., 'threadIdx.x')",
                intrinsic.scope,
                f"loop {loop.var.name!r} around is bound to threadIdx.x, and the {intrinsic.scope} "
                f"that performs {intrinsic.name} takes that axis itself",
                loop,
            )


def _target_differences(state: State, intrinsic: Intrinsic) -> Iterator[Difference]:
    target = state.target
    if target is None:
        return
    lacking = [need for need in intrinsic.needs if provides(target, need) is False]
    if lacking:
        yield Difference(
            "target",
            str(target),
            f"needs {', '.join(intrinsic.needs)}",
            f"{target} has no {', '.join(lacking)}, which {intrinsic.name} needs",
        )


def names_of(site: Site) -> tuple[Ref, ...]:
    """Give the handles of the blocks in the nest."""
    nest = site.nest
    blocks = () if nest is None else nest.blocks
    return tuple(block_ref(site.where.function, b) for b in blocks)


def pattern_loops(intrinsic: Intrinsic) -> tuple[For, ...]:
    """Give the loops of an instruction's semantics, outermost first."""
    return pattern_of(intrinsic).loops
