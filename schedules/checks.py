"""Requirement checks shared by many primitives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from ..ir.analysis import accesses, bound_kinds, iterated_kinds, reorders
from ..ir.analysis.dependences import Conflict
from ..ir.analysis.lane_scans import scans_lanes
from ..ir.analysis.scatter import is_scatter
from ..ir.copies import replace
from ..ir.identity import Uid
from ..ir.loop.memory_scopes import SCOPES
from ..ir.loop.nodes import INTRINSIC, Block, Buffer, For, LoopKind
from ..ir.loop.visit import walk
from ..ir.symbolic import Proved, Refuted, Unknown, const_value, to_text
from .allocations import sunk
from .apply import Primitive, Rewrite
from .edit import Edit
from .handles import BlockRef, BufferRef, Handle, LoopRef, block_ref, label, loop_ref, refs_of
from .problem import Problem
from .requirement import Requirement
from .state import State


def serial_problems(state: State, ref: LoopRef, requirement: Requirement) -> Iterator[Problem]:
    """Yield a problem if a loop is not serial, or has annotations."""
    loop = state.loop(ref)
    if loop.kind != "serial":
        yield Problem(
            requirement,
            f"loop {loop.var.name!r} is {loop.kind}; only serial loops can be transformed",
            (ref,),
            {"kind": loop.kind},
        )
    elif loop.annotations:
        keys = ", ".join(key for key, _ in loop.annotations)
        yield Problem(
            requirement,
            f"loop {loop.var.name!r} has annotations ({keys}) that the new loops would lose",
            (ref,),
            {"annotations": keys},
        )


def same_function_problems(
    loops: tuple[LoopRef, ...], requirement: Requirement
) -> Iterator[Problem]:
    """Yield a problem unless there are at least two different loops, all of one function."""
    names = ", ".join(label(ref) for ref in loops) or "none"
    if len(set(loops)) < 2 or len(set(loops)) < len(loops):
        yield Problem(
            requirement,
            f"at least two different loops are required, got {names}",
            loops,
            {"loops": len(loops)},
        )
    elif len({ref.function for ref in loops}) > 1:
        yield Problem(requirement, f"loops {names} belong to different functions", loops)


def kind_problems(state: State, ref: LoopRef, requirement: Requirement) -> Iterator[Problem]:
    """Yield a problem if a loop is not serial."""
    loop = state.loop(ref)
    if loop.kind != "serial":
        message = f"loop {loop.var.name!r} is already {loop.kind_text}"
        yield Problem(requirement, message, (ref,), {"kind": loop.kind})


def nesting_problems(
    state: State,
    ref: LoopRef,
    requirement: Requirement,
    *,
    inside: tuple[LoopKind, ...],
    around: tuple[LoopKind, ...],
) -> Iterator[Problem]:
    """Yield a problem for each loop of the given kinds inside or around a loop."""
    loop, tree = state.loop(ref), state.tree(ref.function)
    below = [s for s in walk(loop.body) if isinstance(s, For) and s.kind in inside]
    above = [s for s in tree.ancestors(loop) if isinstance(s, For) and s.kind in around]
    found = (*((x, "inside", inside) for x in below), *((x, "around", around) for x in above))
    for other, relation, kinds in found:
        yield Problem(
            requirement,
            f"loop {other.var.name!r} {relation} loop {loop.var.name!r} is {other.kind}; no loop "
            f"{relation} it may be {' or '.join(kinds)}",
            (ref, loop_ref(ref.function, other)),
            {"kind": other.kind},
        )


def iteration_kind_problems(
    state: State,
    ref: LoopRef,
    requirement: Requirement,
    others: Callable[[Block], tuple[Primitive, ...]],
) -> Iterator[Problem]:
    """Yield a problem for each reduction that a loop binds.

    Parameters
    ----------
    state : State
        The current state.
    ref : LoopRef
        The loop.
    requirement : Requirement
        The requirement to report.
    others : callable
        Returns the fixes for a block: the step on another loop.
    """
    loop, tree = state.loop(ref), state.tree(ref.function)
    for block in tree.blocks_in(loop.body):
        for kind in sorted(iterated_kinds(tree, loop, block) & {"reduce"}):
            message = f"loop {loop.var.name!r} binds a reduction of block {block.name!r}"
            if is_scatter(block):
                message += (
                    ", whose iterations may update the same elements at indices loaded from "
                    "memory; only the threads of a GPU update atomically"
                )
            where = (ref, block_ref(ref.function, block))
            yield Problem(requirement, message, where, {"kind": kind}, fixes=others(block))


def binds_reduction(state: State, ref: LoopRef) -> bool:
    """Return whether a loop binds a reduction of a block inside it."""
    loop, tree = state.loop(ref), state.tree(ref.function)
    return any("reduce" in bound_kinds(loop, b) for b in tree.blocks_in(loop.body))


def lane_reduction_problems(
    state: State,
    ref: LoopRef,
    requirement: Requirement,
    starts: Callable[[Block], tuple[Primitive, ...]],
) -> Iterator[Problem]:
    """Yield a problem for every reduction below a loop that cannot be split over vector lanes.

    Parameters
    ----------
    state : State
        The current state.
    ref : LoopRef
        The loop.
    requirement : Requirement
        The requirement to report.
    starts : callable
        Returns the fixes that move the init out of a block.
    """
    loop, tree = state.loop(ref), state.tree(ref.function)
    blocks = tuple(tree.blocks_in(loop.body))
    if scans_lanes(tree, loop):
        return
    for block in blocks:
        kinds = bound_kinds(loop, block)
        if "reduce" not in kinds:
            continue
        elif block.init is not None:
            reason = ", whose init is not decomposed"
        elif not reorders(block):
            reason = ", whose update does not have the form C = C op value"
        elif len(blocks) > 1 or kinds != frozenset({"reduce"}):
            reason = ", but must contain only that block and bind only its reduction"
        else:
            continue
        yield Problem(
            requirement,
            f"loop {loop.var.name!r} binds a reduction of block {block.name!r}{reason}",
            (ref, block_ref(ref.function, block)),
            {"kinds": ", ".join(sorted(kinds))},
            fixes=starts(block) if block.init is not None else (),
        )


def constant_extent_problems(
    state: State,
    ref: LoopRef,
    requirement: Requirement,
    *,
    limit: int,
    fixes: Callable[[], tuple[Primitive, ...]],
) -> Iterator[Problem]:
    """Yield a problem if a loop's extent is not a constant, or exceeds a limit."""
    loop = state.loop(ref)
    size = const_value(loop.extent)
    if size is not None and size <= limit:
        return
    plain = loop.kind == "serial" and not loop.annotations
    message = (
        f"extent {to_text(loop.extent)} of loop {loop.var.name!r} is not a constant"
        if size is None
        else f"extent {size} of loop {loop.var.name!r} exceeds {limit}"
    )
    yield Problem(
        requirement,
        message,
        (ref,),
        {"extent": to_text(loop.extent), "limit": limit},
        fixes=fixes() if plain else (),
    )


def dependence_problems(
    state: State, ref: LoopRef, found: Iterable[Conflict], requirement: Requirement
) -> Iterator[Problem]:
    """Yield a problem for each dependence between iterations of a loop."""
    loop = state.loop(ref)
    for conflict in found:
        where = (ref, *refs_of(ref.function, conflict.block, conflict.buffer))
        message = conflict.reason
        if "ordered" in bound_kinds(loop, conflict.block):
            message += (
                f"; loop {loop.var.name!r} binds an ordered iteration variable of block "
                f"{conflict.block.name!r}"
            )
        yield Problem(requirement, message, where)


def is_tensorized(block: Block) -> bool:
    """Return whether an instruction implements a block."""
    return any(key == INTRINSIC for key, _ in block.annotations)


def tensorized_problems(
    state: State, ref: BlockRef, buffers: Collection[Buffer], requirement: Requirement
) -> Iterator[Problem]:
    """Yield a problem if an instruction implements a block, or accesses buffers inside of it."""
    for block in (s for s in walk(state.block(ref)) if isinstance(s, Block)):
        outer = block.uid == ref.uid
        if is_tensorized(block) and (outer or any(a.buffer in buffers for a in accesses(block))):
            name = dict(block.annotations)[INTRINSIC]
            yield Problem(
                requirement,
                f"block {block.name!r} is tensorized: {name} requires the buffers that it accesses",
                (ref,) if outer else (ref, block_ref(ref.function, block)),
                {"intrinsic": str(name)},
            )
            return


def tensorized_buffer_problems(
    state: State, ref: BufferRef, requirement: Requirement
) -> Iterator[Problem]:
    """Yield a problem for each tensorized block that accesses a buffer."""
    buffer, tree = state.buffer(ref), state.tree(ref.function)
    for block in tree.blocks.values():
        if is_tensorized(block) and any(a.buffer is buffer for a in accesses(block)):
            yield Problem(
                requirement,
                f"{dict(block.annotations)[INTRINSIC]} accesses {buffer.name!r} in block "
                f"{block.name!r} and requires its current layout and memory scope",
                (ref, block_ref(ref.function, block)),
            )


def known_scope_problems(
    scope: str, where: tuple[Handle, ...], requirement: Requirement
) -> Iterator[Problem]:
    """Yield a problem at the given locations if a memory scope does not exist."""
    if scope not in SCOPES:
        yield Problem(
            requirement,
            f"no memory scope {scope!r}; memory scopes are {', '.join(SCOPES)}",
            where,
            {"scope": scope},
        )


def with_kind(state: State, ref: LoopRef, kind: LoopKind) -> Rewrite:
    """Return the rewrite that changes the kind of a loop."""
    edit = Edit(state, ref.function)
    loop = state.loop(ref)
    return edit.finish(edit.replaced(loop, replace(loop, kind=kind)))


def with_allocations_inside(made: Rewrite, loop: LoopRef, uids: Collection[Uid]) -> Rewrite:
    """Return a rewrite in which temporaries are allocated inside of a loop."""
    func = made.module.prim(loop.function)
    new = sunk(func, uids, loop.uid)
    return made if new is func else replace(made, module=made.module.with_functions(new))


def counterexample(verdict: Proved | Refuted | Unknown) -> dict[str, int] | None:
    """Return the values of a refutation by the names of the symbols; None without one."""
    if not isinstance(verdict, Refuted):
        return None
    return {v.name: value for v, value in verdict.counterexample.items()}


def temporary_problems(state: State, ref: BufferRef, requirement: Requirement) -> Iterator[Problem]:
    """Yield a problem if a buffer is a parameter."""
    buffer, tree = state.buffer(ref), state.tree(ref.function)
    if not tree.is_temporary(buffer):
        yield Problem(
            requirement,
            f"{buffer.name!r} is a parameter of {ref.function!r}, so its layout and memory scope "
            "are fixed; apply cache_read or cache_write, and change the copy",
            (ref,),
        )


def node_at(state: State, ref: LoopRef | BlockRef) -> For | Block:
    """Return the target of a loop or block handle."""
    return state.loop(ref) if isinstance(ref, LoopRef) else state.block(ref)
