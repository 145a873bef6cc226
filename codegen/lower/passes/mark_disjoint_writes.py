"""Blocks whose writes are disjoint across the threads of a thread block."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import gcd
from typing import Final

from ....ir.analysis import tree_of
from ....ir.analysis.occurrences import Occurrence, occurrences, separated_by
from ....ir.analysis.segments import in_own_segment
from ....ir.identity import Uid
from ....ir.loop.nodes import INTRINSIC, Block, Buffer, For, Let, PrimFunc
from ....ir.loop.visit import loads, stores, walk
from ....ir.symbolic import Expr, Facts, Var, const_value, free_vars, linear_form, substitute
from ....schedules.launch.annotations import DISJOINT, IN_PLACE, OWN_PARTS
from ....schedules.launch.lowering_pass import GPU, Pass
from ....target.gpus import BLOCK_AXES, THREAD_AXES
from ....target.target import Target

_AXES: Final = frozenset((*BLOCK_AXES, *THREAD_AXES))


class MarkDisjointWrites(Pass):
    """Record the blocks whose iterations within a thread block write different elements.

    Before::
        for tx in thread(64, "threadIdx.x"):
            block B: C[tx] = A[tx]
    After::
        attributes: disjoint = (uid of B,)
        for tx in thread(64, "threadIdx.x"):
            block B: C[tx] = A[tx]

    The proof needs the indices of each dimension. It is no longer possible after lowering, when an
    access is an address with symbolic strides. The attribute ``in_place`` records those blocks that
    only read the elements that they write. The attribute ``own_parts`` records the buffers that
    each thread accesses only at indices that no other thread uses, such as the rows ``C[tx, j]``
    of a running sum, or the elements between consecutive offsets.
    """

    targets = GPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Return the function with the attribute ``disjoint``."""
        del target
        writes: dict[Uid, list[Occurrence]] = {}
        found_in: dict[Buffer, list[Occurrence]] = {}
        for access in occurrences(func.body):
            found_in.setdefault(access.buffer, []).append(access)
            if access.writes and access.block is not None and access.buffer.scope == "global":
                writes.setdefault(access.block.uid, []).append(access)
        uids = tuple(
            uid
            for uid, found in writes.items()
            if all(_is_disjoint(write, func.facts) for write in found)
            and all(_never_overlap(a, b) for a, b in combinations(found, 2))
        )
        attributes = (*func.attributes, (DISJOINT, uids))
        parts = tuple(
            b.name
            for b, found in found_in.items()
            if _in_own_parts(b, found, func) or _in_own_segments(b, found, func)
        )
        attributes = (*attributes, (OWN_PARTS, parts)) if parts else attributes
        blocks = (s for s in walk(func.body) if isinstance(s, Block) and s.uid in uids)
        own = tuple(block.uid for block in blocks if _is_in_place(block))
        return replace(func, attributes=(*attributes, (IN_PLACE, own)) if own else attributes)


def _is_in_place(block: Block) -> bool:
    """Return whether a block reads elements of the buffers that it writes, only those it writes."""
    written = {(s.buffer, s.indices) for s in stores(block.body)}
    buffers = {buffer for buffer, _ in written}
    read = [load for load in loads(block.body) if load.buffer in buffers]
    return bool(read) and all((load.buffer, load.indices) in written for load in read)


def _never_overlap(a: Occurrence, b: Occurrence) -> bool:
    """Return whether two disjoint writes of a block cannot write one element in two iterations.

    They have the same indices, or indices with different remainders, as ``2 * i`` and
    ``2 * i + 1``.
    """
    if a.buffer is not b.buffer or a.indices == b.indices:
        return True
    return any(_remainders_differ(a, b, axis) for axis in range(len(a.indices)))


def _remainders_differ(a: Occurrence, b: Occurrence, axis: int) -> bool:
    """Return whether an index of two writes differs by no multiple of its steps."""
    forms = [linear_form(x.indices[axis], [v.var for v in x.binders]) for x in (a, b)]
    steps: list[int | None] = []
    rests: list[Expr] = []
    for form in forms:
        if form is None:
            return False
        steps += [const_value(c) for c in form.coefficients.values()]
        rests.append(form.rest)
    distance = const_value(rests[0] - rests[1])
    known = [s for s in steps if s is not None]
    if distance is None or len(known) < len(steps):
        return False
    step = gcd(*known)
    return distance % step != 0 if step else distance != 0


def _is_disjoint(write: Occurrence, facts: Facts) -> bool:
    moving = [x for x in write.loops if x.thread not in BLOCK_AXES and const_value(x.extent) != 1]
    if not moving:
        return True
    inside = [
        x
        for x in write.binders[write.binders.index(moving[0]) :]
        if not isinstance(x, For) or x in moving
    ]
    return {x.var for x in moving} <= separated_by(write.indices, inside, facts)


def _in_own_parts(buffer: Buffer, accesses: list[Occurrence], func: PrimFunc) -> bool:
    """Return whether each thread accesses only its own part of some dimensions of a buffer.

    The indices of these dimensions are the same terms of thread indices in all accesses. A buffer
    that one block only writes is not examined.
    """
    kinds = {(None if a.block is None else a.block.uid, a.writes) for a in accesses}
    if buffer.scope != "global" or len(kinds) < 2 or not any(a.writes for a in accesses):
        return False
    if any(a.block is not None and INTRINSIC in dict(a.block.annotations) for a in accesses):
        return False  # the threads of an instruction may exchange elements
    axes = {x.thread for x in walk(func.body) if isinstance(x, For) and x.thread in THREAD_AXES}
    uniform: dict[str | None, Var] = {}
    each = [_uniform_indices(access, uniform) for access in accesses]
    common = [i for i, *others in zip(*each, strict=True) if i is not None and {i} >= {*others}]
    threads = [x for x in accesses[0].loops if x.thread in axes]
    if any(axes - {x.thread for x in a.loops} for a in accesses) or not threads:
        return False
    return {x.var for x in threads} <= separated_by(common, threads, func.facts)


def _in_own_segments(buffer: Buffer, found: list[Occurrence], func: PrimFunc) -> bool:
    """Return whether each thread accesses only elements between its offsets, loaded from memory."""
    first = found[0]
    axes = {x.thread for x in walk(func.body) if isinstance(x, For) and x.thread in THREAD_AXES}
    threads = [x for x in first.loops if x.thread in axes]
    loaded = any(isinstance(x, Let) for x in first.binders)
    if not (loaded and threads and buffer.scope == "global" and any(a.writes for a in found)):
        return False
    if {x.thread for x in threads} != axes or any(
        a.block is None or INTRINSIC in dict(a.block.annotations) or not set(threads) <= {*a.loops}
        for a in found
    ):
        return False
    tree = tree_of(func)
    return all(in_own_segment(tree, x, buffer) for x in threads)


def _uniform_indices(access: Occurrence, names: dict[str | None, Var]) -> list[Expr | None]:
    """Return the indices over thread and block indices alone, with one name per axis."""
    axes = {x.var: names.setdefault(x.thread, x.var) for x in access.loops if x.thread in _AXES}
    varying = {x.var for x in access.binders} - axes.keys()
    return [
        substitute(index, axes) if free_vars(index).isdisjoint(varying) else None
        for index in access.indices
    ]
