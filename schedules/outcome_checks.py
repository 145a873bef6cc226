"""Checks of the outcome of a step, where its requirements do not decide.

Most steps keep the elements that each iteration of a loop accesses, and with them the kind of the
loop. Concurrent iterations that write packed elements must also write whole bytes, a vectorized
loop that scans its lanes must have the form of a scan, and so must the block of each scan. The
iterations that write segments between loaded integers, also those read outside of the loop, are
independent only if no access of theirs leaves its segment. Lanes and threads combine a reduction
only if it is the only update of its elements inside their loop, except by blocks without an init
and with the same operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from ..ir.analysis import Tree, tree_of, written_buffers
from ..ir.analysis.lane_scans import scans_lanes
from ..ir.analysis.races import kind_conflicts, races
from ..ir.loop.nodes import Block, Buffer, For, Let, PrimFunc, Stmt
from ..ir.loop.scans import declaration_problems
from ..ir.loop.visit import walk
from ..ir.module import Module
from ..ir.symbolic import Var, const_value, free_vars
from .handles import block_ref, loop_ref
from .problem import Problem
from .requirement import CommonRequirement

_CONCURRENT: Final = frozenset({"parallel", "vectorized", "thread"})
_NO_VARIABLES: Final = frozenset[Var]()


def outcome_problems(before: Module, after: Module, names: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem for each concurrent loop and scan that loses its form by a step.

    Parameters
    ----------
    before : Module
        The program.
    after : Module
        The program after the step.
    names : iterable of str
        The names of the functions that the step changes.
    """
    for name in names:
        old, new = before.functions.get(name), after.functions.get(name)
        if isinstance(old, PrimFunc) and isinstance(new, PrimFunc) and new is not old:
            yield from _scan_problems(tree_of(old), tree_of(new))
            yield from _loop_problems(tree_of(old), tree_of(new))


def needs_outcome(func: object) -> bool:
    """Return whether the outcome of a step on a function must be checked."""
    if not isinstance(func, PrimFunc):
        return False
    tree = tree_of(func)
    known = tree.memo.get("needs_outcome")
    if known is None:
        blocks = tree.blocks.values()
        known = tree.memo["needs_outcome"] = any(map(_is_ordered, blocks)) or _is_unclear(tree)
    return known is True


def _is_unclear(tree: Tree) -> bool:
    """Return whether a step may break the kind of a concurrent loop of a function."""
    concurrent = {loop.var for loop in tree.loops.values() if loop.kind in _CONCURRENT}
    if not concurrent:
        return False
    reduced = _NO_VARIABLES.union(*map(_reduced, tree.blocks.values()))
    if tree.lets or not concurrent.isdisjoint(reduced):
        return True
    return _has_packed((*tree.function.buffer_params, *tree.allocs))


@lru_cache(maxsize=1024)
def _has_packed(buffers: tuple[Buffer, ...]) -> bool:
    return any(b.dtype.is_packed for b in buffers)


def _loads_integers(statement: Stmt) -> bool:
    return any(isinstance(s, Let) for s in walk(statement))


@lru_cache(maxsize=4096)
def _is_ordered(block: Block) -> bool:
    return any(v.kind == "ordered" for v in block.iters)


@lru_cache(maxsize=4096)
def _reduced(block: Block) -> frozenset[Var]:
    """Return the variables in the bindings of the reduction of a block."""
    bindings = (v.binding for v in block.iters if v.kind == "reduce")
    return _NO_VARIABLES.union(*map(free_vars, bindings))


def _scans(block: Block) -> bool:
    return block.reducer is not None and _is_ordered(block)


def _delicate(tree: Tree, other: Tree) -> Iterator[For]:
    """Yield the loops whose kind a step may break; ``other`` is the tree before or after it.

    A loop that only combines a reduction keeps its kind if the step keeps the whole loop.
    """
    for loop in tree.loops.values():
        if loop.kind not in _CONCURRENT or const_value(loop.extent) == 1:
            continue
        blocks = tree.blocks_in(loop.body)
        written = (b for block in blocks for b in written_buffers(block))
        changed = other.loops.get(loop.uid) is not loop
        if (
            (changed and any(loop.var in _reduced(block) for block in blocks))
            or any(b.dtype.is_packed for b in written)
            or any(map(_is_ordered, blocks))
            or _loads_integers(loop.body)
            or any(isinstance(s, Let) for s in tree.ancestors(loop))
        ):
            yield loop


def _scan_problems(old: Tree, new: Tree) -> Iterator[Problem]:
    for block in filter(_scans, new.blocks.values()):
        before = old.blocks.get(block.uid)
        if before is block:
            continue
        for reason in declaration_problems(block):
            where = () if before is None else (block_ref(old.function.name, before),)
            yield Problem(CommonRequirement.SCANS, f"after this step, {reason}", where)


def _loop_problems(old: Tree, new: Tree) -> Iterator[Problem]:
    kept = {loop.uid: new.loops[loop.uid] for loop in _delicate(old, new) if loop.uid in new.loops}
    for uid, loop in ({loop.uid: loop for loop in _delicate(new, old)} | kept).items():
        before = old.loops.get(uid)
        scans = before is not None and before.kind == "vectorized" and scans_lanes(old, before)
        conflict = next(kind_conflicts(new, loop), None) if scans else None
        found = conflict or next(races(new, loop), None)
        if found is not None:
            where = () if before is None else (loop_ref(old.function.name, before),)
            kind = f"loop {loop.var.name!r} is {loop.kind_text}"
            message = f"after this step, {kind}, but {found.reason}"
            yield Problem(CommonRequirement.INDEPENDENT, message, where)
