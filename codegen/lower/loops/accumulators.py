"""Vectorized reduction loops: a vector accumulates over the serial loop around, folded once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.dtype import DType
from ....ir.identity import Uid
from ....ir.loop.builder import Combiner, identity_of
from ....ir.loop.nodes import Binary, Block, Buffer, For, If, Let, Load, PrimFunc, Stmt, Store
from ....ir.loop.visit import children, loads, seq, transform, walk, with_children
from ....ir.symbolic import TRUE, Bool, Expr, Var, all_of, const_value
from .folds import fold_of
from .known import conjuncts

LARGEST = 4096
"""Bytes of accumulators above which partial sums would not stay in registers."""


class Accumulation:
    """Rewrites one function's body; :attr:`buffers` are the accumulators it adds."""

    def __init__(self, next_uid: Uid) -> None:
        """Start minting uids of buffers and loops at one that is free."""
        self.buffers: list[Buffer] = []
        self._next = next_uid

    def _mint(self) -> Uid:
        self._next += 1
        return self._next - 1

    def rewrite(self, statement: Stmt) -> Stmt:
        """Give vectorized reductions their accumulators.

        Before::
            for k0 in range(n):
                for k1 in vectorized(16): C[i] = C[i] + A[i, k0 * 16 + k1]
        After::
            for k1 in vectorized(16):
                acc[k1] = 0
            for k0 in range(n):
                for k1 in vectorized(16):
                    acc[k1] = acc[k1] + A[i, k0 * 16 + k1]
            for k1 in vectorized(16):
                C[i] = C[i] + acc[k1]
        """
        if isinstance(statement, For) and statement.kind == "serial":
            found = _reductions(statement)
            if found is not None:
                return self._accumulate(statement, found)
        below = tuple(self.rewrite(c) for c in children(statement))
        return with_children(statement, below)

    def _accumulate(self, loop: For, found: list[_Reduction]) -> Stmt:
        first: list[Stmt] = []
        last: list[Stmt] = []
        body: Stmt = loop
        for one in found:
            shape = tuple(t.extent for t in (*one.tiles, one.lanes))
            partial = Buffer(self._mint(), f"{one.store.buffer.name}_partial", shape, one.dtype,
                             "local")  # fmt: skip
            self.buffers.append(partial)
            first.append(self._nest(one, partial, start=True))
            last.append(self._nest(one, partial, start=False))
            body = _redirect(body, one, partial)
        return seq(*first, body, *last)

    def _nest(self, one: _Reduction, partial: Buffer, *, start: bool) -> Stmt:
        loops = (*one.tiles, one.lanes)
        index = tuple(t.var for t in loops)
        if start:
            neutral = identity_of(one.op, one.dtype)
            body: Stmt = Store(partial, index, neutral, one.store.origins)
        else:
            own = Load(one.store.buffer, one.store.indices)
            value = Binary(one.step.op, own, Load(partial, index))
            body = replace(one.store, value=value)
            body = body if one.guard is TRUE else If(one.guard, body)
        for around in reversed(loops):
            body = replace(around, uid=self._mint(), body=body)
        return body


@dataclass(frozen=True, slots=True)
class _Reduction:
    """A store that folds the lanes of a vectorized loop, and the unrolled loops it varies with."""

    store: Store
    op: Combiner
    step: Binary
    tiles: tuple[For, ...]
    lanes: For
    guard: Bool

    @property
    def dtype(self) -> DType:
        """The dtype that is accumulated."""
        return self.store.buffer.dtype


def _reductions(loop: For) -> list[_Reduction] | None:
    """Give the folds a serial loop consists of, if it consists of nothing else."""
    found: list[_Reduction] = []
    for store, path in _stores(loop, ()):
        one = _reduction(store, path)
        if one is None:
            return None
        found.append(one)
    targets = {one.store.buffer for one in found}
    reads = [load for load in loads(loop) if load.buffer in targets]
    if not found or len(targets) != len(found) or len(reads) != len(found):
        return None
    return found


def _stores(statement: Stmt, path: tuple[Stmt, ...]) -> Iterator[tuple[Store, tuple[Stmt, ...]]]:
    if isinstance(statement, Store):
        yield statement, path
    for child in children(statement):
        yield from _stores(child, (*path, statement))


def _reduction(store: Store, path: tuple[Stmt, ...]) -> _Reduction | None:
    step = fold_of(store)
    loops = [s for s in path if isinstance(s, For)]
    branches = [s for s in path if isinstance(s, If)]
    if step is None or any(isinstance(s, Let) for s in path):
        return None
    if any(b.otherwise is not None for b in branches):
        return None
    free = frozenset[Var]().union(*(i.free for i in store.indices))
    lanes = [f for f in loops if f.kind == "vectorized"]
    tiles = tuple(f for f in loops if f.kind == "unrolled" and f.var in free)
    others = [f for f in loops if f.kind != "unrolled" and f.var in free]
    if len(lanes) != 1 or others or not _small(store, (*tiles, lanes[0])):
        return None
    inner = {f.var for f in loops if f not in tiles}
    parts = [p for b in branches for p in conjuncts(b.condition) if p.free.isdisjoint(inner)]
    return _Reduction(store, step[0], step[1], tiles, lanes[0], all_of(*parts))


def _small(store: Store, loops: tuple[For, ...]) -> bool:
    total = store.buffer.dtype.bytes
    for one in loops:
        count = const_value(one.extent)
        if count is None:
            return False
        total *= count
    return total <= LARGEST


def _redirect(body: Stmt, one: _Reduction, partial: Buffer) -> Stmt:
    index: tuple[Expr, ...] = tuple(t.var for t in (*one.tiles, one.lanes))

    def change(statement: Stmt) -> Stmt:
        if statement is not one.store:
            return statement
        value = Binary(one.step.op, Load(partial, index), one.step.right)
        return replace(one.store, buffer=partial, indices=index, value=value)

    return transform(body, change)


def accumulate(func: PrimFunc) -> PrimFunc:
    """Give every vectorized reduction of a function its accumulators."""
    pass_ = Accumulation(largest_uid(func.body, (*func.buffers, *func.buffer_params)) + 1)
    body = pass_.rewrite(func.body)
    return replace(func, body=body, buffers=(*func.buffers, *pass_.buffers))


def largest_uid(statement: Stmt, buffers: tuple[Buffer, ...]) -> Uid:
    """Give the largest uid in use."""
    own = [s.uid for s in walk(statement) if isinstance(s, For | Block)]
    return max([*own, *(b.uid for b in buffers)], default=0)
