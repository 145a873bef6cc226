"""Vectorized reduction loops: a vector accumulates over the serial loop around, folded once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from ....ir.dtype import DType
from ....ir.identity import Uid
from ....ir.loop.builder import Combiner, identity_of
from ....ir.loop.nodes import Binary, Block, Buffer, For, If, Let, Load, PrimFunc, Stmt, Store
from ....ir.loop.visit import (
    children,
    loads,
    seq,
    substitute_in,
    transform,
    walk,
    with_children,
)
from ....ir.symbolic import TRUE, Bool, Expr, Var, all_of, as_expr, const_value, var
from ...processors import Cpu
from .folds import fold_of
from .known import conjuncts

LARGEST = 4096
"""Bytes of accumulators above which partial sums would not stay in registers."""


CHAINS: Final = 4
"""Accumulators of one register each that a loop keeps: a sum waits this long for its last term."""


class Accumulation:
    """Rewrites one function's body; :attr:`buffers` are the accumulators it adds."""

    def __init__(self, next_uid: Uid, register: int) -> None:
        """Start minting uids at one that is free; ``register`` is the bytes of a register."""
        self.buffers: list[Buffer] = []
        self._next = next_uid
        self._register = register

    def _mint(self) -> Uid:
        self._next += 1
        return self._next - 1

    def rewrite(self, statement: Stmt) -> Stmt:
        """Give vectorized reductions their accumulators.

        Before::
            for k0 in range(n):
                for k1 in vectorized(64): C[i] = C[i] + A[i, k0 * 64 + k1]
        After::
            for k1 in vectorized(64):
                acc[0, k1] = 0
            for k0 in range(n):
                for k1 in vectorized(64):
                    acc[0, k1] = acc[0, k1] + A[i, k0 * 64 + k1]
            for k1 in vectorized(64):
                C[i] = C[i] + acc[0, k1]

        Where one register holds all lanes, four accumulators take turns.
        """
        if isinstance(statement, For) and statement.kind == "serial":
            found = _reductions(statement)
            if found is not None:
                return self._accumulate(statement, found)
        below = tuple(self.rewrite(c) for c in children(statement))
        return with_children(statement, below)

    def _accumulate(self, loop: For, found: list[_Reduction]) -> Stmt:
        chains = CHAINS if self._in_turns(loop, found) else 1
        partials = [self._partial(one, chains) for one in found]
        pairs = list(zip(found, partials, strict=True))
        first = [self._start(one, partial, chains) for one, partial in pairs]
        last = [s for one, partial in pairs for s in self._fold(one, partial, chains)]
        if chains == 1:
            return seq(*first, _redirect(loop, pairs, as_expr(0)), *last)
        return seq(*first, *self._turns(loop, pairs), *last)

    def _in_turns(self, loop: For, found: list[_Reduction]) -> bool:
        count = const_value(loop.extent)
        simple = all(not one.tiles and one.size <= self._register for one in found)
        nested = any(isinstance(s, For) and s.kind == "serial" for s in walk(loop.body))
        return simple and not nested and (count is None or count >= CHAINS)

    def _turns(self, loop: For, pairs: list[tuple[_Reduction, Buffer]]) -> tuple[Stmt, ...]:
        """Run the loop in groups of iterations, each with an accumulator of its own."""
        groups = loop.extent // CHAINS
        group = var(loop.var.name, lower=0)
        turn = var(f"{loop.var.name}_turn", lower=0, upper=CHAINS - 1)
        body = substitute_in(_redirect(loop.body, pairs, turn), {loop.var: group * CHAINS + turn})
        unrolled = For(self._mint(), turn, as_expr(CHAINS), body, "unrolled")
        main = replace(loop, uid=self._mint(), var=group, extent=groups, body=unrolled)
        rest = substitute_in(
            _redirect(loop.body, pairs, as_expr(0)), {loop.var: groups * CHAINS + loop.var}
        )
        return main, replace(loop, extent=loop.extent - groups * CHAINS, body=rest)

    def _partial(self, one: _Reduction, chains: int) -> Buffer:
        shape = (as_expr(chains), *(t.extent for t in (*one.tiles, one.lanes)))
        name = f"{one.store.buffer.name}_partial"
        self.buffers.append(Buffer(self._mint(), name, shape, one.dtype, "local"))
        return self.buffers[-1]

    def _start(self, one: _Reduction, partial: Buffer, chains: int) -> Stmt:
        neutral = identity_of(one.op, one.dtype)
        bodies = [Store(partial, (as_expr(k), *one.index), neutral) for k in range(chains)]
        return seq(*(self._around(one, body) for body in bodies))

    def _fold(self, one: _Reduction, partial: Buffer, chains: int) -> list[Stmt]:
        """Fold the accumulators into the first, and its lanes into the element."""
        head = (as_expr(0), *one.index)
        bodies: list[Stmt] = []
        for k in range(1, chains):
            other = Load(partial, (as_expr(k), *one.index))
            bodies.append(Store(partial, head, Binary(one.step.op, Load(partial, head), other)))
        own = Load(one.store.buffer, one.store.indices)
        final: Stmt = replace(one.store, value=Binary(one.step.op, own, Load(partial, head)))
        bodies.append(final if one.guard is TRUE else If(one.guard, final))
        return [self._around(one, body) for body in bodies]

    def _around(self, one: _Reduction, body: Stmt) -> Stmt:
        for loop in reversed((*one.tiles, one.lanes)):
            body = replace(loop, uid=self._mint(), body=body)
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
    def index(self) -> tuple[Expr, ...]:
        """Where an accumulator keeps the sum of a lane."""
        return tuple(t.var for t in (*self.tiles, self.lanes))

    @property
    def size(self) -> int:
        """Bytes that all lanes take."""
        return self.dtype.bytes * (const_value(self.lanes.extent) or 0)

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


def _redirect(body: Stmt, pairs: list[tuple[_Reduction, Buffer]], chain: Expr) -> Stmt:
    """Let the stores add to accumulators."""
    targets = {id(one.store): (one, partial) for one, partial in pairs}

    def change(statement: Stmt) -> Stmt:
        if not isinstance(statement, Store) or id(statement) not in targets:
            return statement
        one, partial = targets[id(statement)]
        index = (chain, *one.index)
        value = Binary(one.step.op, Load(partial, index), one.step.right)
        return replace(one.store, buffer=partial, indices=index, value=value)

    return transform(body, change)


def accumulate(func: PrimFunc, cpu: Cpu) -> PrimFunc:
    """Give every vectorized reduction of a function its accumulators."""
    pass_ = Accumulation(
        largest_uid(func.body, (*func.buffers, *func.buffer_params)) + 1, cpu.vector_bits // 8
    )
    body = pass_.rewrite(func.body)
    return replace(func, body=body, buffers=(*func.buffers, *pass_.buffers))


def largest_uid(statement: Stmt, buffers: tuple[Buffer, ...]) -> Uid:
    """Give the largest uid in use."""
    own = [s.uid for s in walk(statement) if isinstance(s, For | Block)]
    return max([*own, *(b.uid for b in buffers)], default=0)
