"""Requirements that many primitives share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from ..ir.analysis import accesses, conflicts, feeds_kind, reduction_update
from ..ir.loop.nodes import INTRINSIC, Block, For, LoopKind
from ..ir.loop.visit import walk
from ..ir.symbolic import Proved, Refuted, Unknown, const_value, to_text
from .edit import Edit
from .primitive import Primitive, Rewrite
from .problem import Problem
from .refs import BlockRef, BufferRef, LoopRef, block_ref, label, loop_ref
from .state import State


def serial_problems(state: State, ref: LoopRef, requirement: int) -> Iterator[Problem]:
    """Yield a problem where a loop is not a plain serial one."""
    loop = state.loop(ref)
    if loop.kind != "serial":
        yield Problem(
            requirement,
            f"loop {loop.var.name!r} is {loop.kind}; only serial loops are reshaped",
            (ref,),
            {"kind": loop.kind},
        )
    elif loop.annotations:
        keys = ", ".join(key for key, _ in loop.annotations)
        yield Problem(
            requirement,
            f"loop {loop.var.name!r} carries annotations ({keys}) that a new loop would lose",
            (ref,),
            {"annotations": keys},
        )


def same_function_problems(loops: tuple[LoopRef, ...], requirement: int) -> Iterator[Problem]:
    """Yield a problem where loops are fewer than two, repeated, or of several functions."""
    names = ", ".join(label(ref) for ref in loops) or "none"
    if len(set(loops)) < 2 or len(set(loops)) < len(loops):
        yield Problem(
            requirement,
            f"at least two different loops are needed; given are {names}",
            loops,
            {"loops": len(loops)},
        )
    elif len({ref.function for ref in loops}) > 1:
        yield Problem(requirement, f"loops {names} are of different functions", loops)


def kind_problems(state: State, ref: LoopRef, requirement: int) -> Iterator[Problem]:
    """Yield a problem where a loop has a kind already."""
    loop = state.loop(ref)
    if loop.kind != "serial":
        message = f"loop {loop.var.name!r} is {loop.kind} already"
        yield Problem(requirement, message, (ref,), {"kind": loop.kind})


def nesting_problems(
    state: State,
    ref: LoopRef,
    requirement: int,
    *,
    inside: tuple[LoopKind, ...],
    around: tuple[LoopKind, ...],
) -> Iterator[Problem]:
    """Yield a problem for every loop of some kinds inside a loop, and of others around it."""
    loop, tree = state.loop(ref), state.tree(ref.function)
    below = [s for s in walk(loop.body) if isinstance(s, For) and s.kind in inside]
    above = [s for s in tree.ancestors(loop) if isinstance(s, For) and s.kind in around]
    for other, relation in (*((x, "inside") for x in below), *((x, "around") for x in above)):
        yield Problem(
            requirement,
            f"loop {other.var.name!r} {relation} loop {loop.var.name!r} is {other.kind}",
            (ref, loop_ref(ref.function, other)),
            {"kind": other.kind},
        )


def iteration_kind_problems(state: State, ref: LoopRef, requirement: int) -> Iterator[Problem]:
    """Yield a problem for every block in which a loop feeds more than spatial iterations."""
    loop, tree = state.loop(ref), state.tree(ref.function)
    for block in tree.blocks_in(loop.body):
        for kind in sorted(feeds_kind(loop, block) - {"spatial"}):
            noun = "a reduction" if kind == "reduce" else "an ordered iteration"
            yield Problem(
                requirement,
                f"loop {loop.var.name!r} feeds {noun} of block {block.name!r}",
                (ref, block_ref(ref.function, block)),
                {"kind": kind},
            )


def feeds_reduction(state: State, ref: LoopRef) -> bool:
    """Whether a loop feeds a reduction of some block inside it."""
    loop, tree = state.loop(ref), state.tree(ref.function)
    return any("reduce" in feeds_kind(loop, b) for b in tree.blocks_in(loop.body))


def lane_reduction_problems(
    state: State, ref: LoopRef, requirement: int, starts: Callable[[Block], tuple[Primitive, ...]]
) -> Iterator[Problem]:
    """Yield a problem for every reduction that lanes of a vector could not share.

    ``starts`` gives the steps that take the initialisation out of a block.
    """
    loop, tree = state.loop(ref), state.tree(ref.function)
    blocks = tuple(tree.blocks_in(loop.body))
    for block in blocks:
        kinds = feeds_kind(loop, block)
        if "ordered" in kinds:
            reason = "feeds an ordered iteration"
        elif "reduce" not in kinds:
            continue
        elif block.init is not None:
            reason = "feeds a reduction that still holds its initialisation"
        elif reduction_update(block) is None:
            reason = "feeds a reduction that is no update C = C op value"
        elif len(blocks) > 1 or kinds != frozenset({"reduce"}):
            reason = "feeds a reduction and something else"
        else:
            continue
        yield Problem(
            requirement,
            f"loop {loop.var.name!r} {reason} of block {block.name!r}",
            (ref, block_ref(ref.function, block)),
            {"kinds": ", ".join(sorted(kinds))},
            fixes=starts(block) if block.init is not None else (),
        )


def constant_extent_problems(
    state: State, ref: LoopRef, requirement: int, *, limit: int, fixes: tuple[Primitive, ...]
) -> Iterator[Problem]:
    """Yield a problem where a loop's extent is no constant, or too large; splits are the fixes."""
    loop = state.loop(ref)
    size = const_value(loop.extent)
    if size is not None and size <= limit:
        return
    plain = loop.kind == "serial" and not loop.annotations
    message = (
        f"extent {to_text(loop.extent)} of loop {loop.var.name!r} is no constant"
        if size is None
        else f"extent {size} of loop {loop.var.name!r} is more than {limit}"
    )
    yield Problem(
        requirement,
        message,
        (ref,),
        {"extent": to_text(loop.extent), "limit": limit},
        fixes=fixes if plain else (),
    )


def independence_problems(
    state: State, ref: LoopRef, requirement: int, *, lanes: bool = False
) -> Iterator[Problem]:
    """Yield a problem for everything that makes iterations of a loop depend on each other."""
    tree = state.tree(ref.function)
    for conflict in conflicts(tree, state.loop(ref), lanes=lanes):
        yield Problem(requirement, conflict.reason, (ref, block_ref(ref.function, conflict.block)))


def is_tensorized(block: Block) -> bool:
    """Whether an instruction does the work of a block."""
    return any(key == INTRINSIC for key, _ in block.annotations)


def tensorized_problems(state: State, ref: BlockRef, requirement: int) -> Iterator[Problem]:
    """Yield a problem where an instruction does the work of a block."""
    block = state.block(ref)
    if is_tensorized(block):
        name = dict(block.annotations)[INTRINSIC]
        yield Problem(
            requirement,
            f"{name} does the work of block {block.name!r}, on the buffers it was matched with",
            (ref,),
            {"intrinsic": str(name)},
        )


def tensorized_buffer_problems(state: State, ref: BufferRef, requirement: int) -> Iterator[Problem]:
    """Yield a problem for every instruction that works on a buffer."""
    buffer, tree = state.buffer(ref), state.tree(ref.function)
    for block in tree.blocks.values():
        if is_tensorized(block) and any(a.buffer is buffer for a in accesses(block)):
            yield Problem(
                requirement,
                f"{dict(block.annotations)[INTRINSIC]} works on {buffer.name!r} in block "
                f"{block.name!r}, as it lies and where it is",
                (ref, block_ref(ref.function, block)),
            )


SCOPES = ("global", "local", "shared", "fragment")


def known_scope_problems(scope: str, requirement: int) -> Iterator[Problem]:
    """Yield a problem where no target has a scope of that name."""
    if scope not in SCOPES:
        yield Problem(
            requirement,
            f"no scope {scope!r}; scopes are {', '.join(SCOPES)}",
            numbers={"scope": scope},
        )


def with_kind(state: State, ref: LoopRef, kind: LoopKind) -> Rewrite:
    """Change the kind of a loop."""
    edit = Edit(state, ref.function)
    loop = state.loop(ref)
    return edit.finish(edit.replaced(loop, replace(loop, kind=kind)))


def counterexample(verdict: Proved | Refuted | Unknown) -> dict[str, int] | None:
    """Give the values that a refutation found, by the names of the symbols."""
    if not isinstance(verdict, Refuted):
        return None
    return {v.name: value for v, value in verdict.counterexample.items()}


def temporary_problems(state: State, ref: BufferRef, requirement: int) -> Iterator[Problem]:
    """Yield a problem where a buffer is a parameter."""
    buffer, tree = state.buffer(ref), state.tree(ref.function)
    if buffer not in tree.function.buffers:
        yield Problem(
            requirement,
            f"{buffer.name!r} is a parameter of {ref.function!r}, and callers depend on it; "
            "cache it and change the cache",
            (ref,),
        )


def node_at(state: State, ref: LoopRef | BlockRef) -> For | Block:
    """Give the loop or block a handle points at."""
    return state.loop(ref) if isinstance(ref, LoopRef) else state.block(ref)
