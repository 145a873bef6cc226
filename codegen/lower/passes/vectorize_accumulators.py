"""Vector accumulators of reductions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from ....ir.analysis import update_of
from ....ir.analysis.bounds import checks_stores
from ....ir.dtype import DType
from ....ir.identity import Uid
from ....ir.loop.combiners import Combiner, identity_of
from ....ir.loop.nodes import Binary, Block, Buffer, For, If, Let, Load, PrimFunc, Stmt, Store
from ....ir.loop.visit import children, loads, seq, substitute_in, transform, walk, with_children
from ....ir.sizes import storage_bytes
from ....ir.symbolic import TRUE, Bool, Expr, Var, all_of, as_expr, conjuncts, const_value, var
from ....schedules.launch.lowering_pass import CPU, Pass
from ....target.target import Target
from ..vector_unit import vector_unit

MAX_ACCUMULATOR_BYTES = 4096
"""The bytes of accumulators above which partial sums would not stay in registers."""

NUM_ACCUMULATORS: Final = 4
"""The number of interleaved accumulators, which hides the latency of the reduction operation."""


class AccumulatorRewriter:
    """A rewriter of the body of a function; :attr:`buffers` are the accumulators it adds."""

    def __init__(self, next_uid: Uid, register: int) -> None:
        """Initialize with the next free uid and the size of a vector register in bytes."""
        self.buffers: list[Buffer] = []
        self._next = next_uid
        self._register = register

    def _mint(self) -> Uid:
        self._next += 1
        return self._next - 1

    def rewrite(self, statement: Stmt) -> Stmt:
        """Add vector accumulators to the reductions in a statement.

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

        If one register holds all lanes, four accumulators are interleaved.
        """
        if isinstance(statement, For) and statement.kind == "serial":
            found = _reductions(statement)
            if found is not None:
                return self._accumulate(statement, found)
        below = tuple(self.rewrite(c) for c in children(statement))
        return with_children(statement, below)

    def _accumulate(self, loop: For, found: list[_Reduction]) -> Stmt:
        chains = NUM_ACCUMULATORS if self._can_interleave(loop, found) else 1
        partials = [self._partial(one, chains) for one in found]
        pairs = list(zip(found, partials, strict=True))
        first = [self._init(one, partial, chains) for one, partial in pairs]
        last = [s for one, partial in pairs for s in self._combine(one, partial, chains)]
        runs = loop.extent >= 1
        if runs is not TRUE:  # without iterations, the element may be outside of its buffer
            last = [If(runs, seq(*last))]
        if chains == 1:
            return seq(*first, _redirect(loop, pairs, as_expr(0)), *last)
        return seq(*first, *self._interleaved(loop, pairs), *last)

    def _can_interleave(self, loop: For, found: list[_Reduction]) -> bool:
        count = const_value(loop.extent)
        simple = all(not one.tiles and one.size <= self._register for one in found)
        nested = any(isinstance(s, For) and s.kind == "serial" for s in walk(loop.body))
        return simple and not nested and (count is None or count >= NUM_ACCUMULATORS)

    def _interleaved(self, loop: For, pairs: list[tuple[_Reduction, Buffer]]) -> tuple[Stmt, ...]:
        """Split the loop into groups of iterations, each iteration with its own accumulator."""
        groups = loop.extent // NUM_ACCUMULATORS
        group = var(loop.var.name, lower=0)
        member = var(f"{loop.var.name}_member", lower=0, upper=NUM_ACCUMULATORS - 1)
        index = group * NUM_ACCUMULATORS + member
        body = substitute_in(_redirect(loop.body, pairs, member), {loop.var: index})
        unrolled = For(self._mint(), member, as_expr(NUM_ACCUMULATORS), body, "unrolled")
        main = replace(loop, uid=self._mint(), var=group, extent=groups, body=unrolled)
        rest = substitute_in(
            _redirect(loop.body, pairs, as_expr(0)),
            {loop.var: groups * NUM_ACCUMULATORS + loop.var},
        )
        return main, replace(loop, extent=loop.extent - groups * NUM_ACCUMULATORS, body=rest)

    def _partial(self, one: _Reduction, chains: int) -> Buffer:
        shape = (as_expr(chains), *(t.extent for t in (*one.tiles, one.lanes)))
        name = f"{one.store.buffer.name}_partial"
        self.buffers.append(Buffer(self._mint(), name, shape, one.dtype, "local"))
        return self.buffers[-1]

    def _init(self, one: _Reduction, partial: Buffer, chains: int) -> Stmt:
        neutral = identity_of(one.op, one.dtype)
        bodies = [Store(partial, (as_expr(k), *one.index), neutral) for k in range(chains)]
        return seq(*(self._around(one, body) for body in bodies))

    def _combine(self, one: _Reduction, partial: Buffer, chains: int) -> list[Stmt]:
        """Combine the accumulators into the first, and its lanes into the element."""
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
    """A store that reduces the lanes of a vectorized loop, with the loops of its tile."""

    store: Store
    op: Combiner
    step: Binary
    tiles: tuple[For, ...]
    lanes: For
    guard: Bool

    @property
    def index(self) -> tuple[Expr, ...]:
        """The index of the partial result of a lane in an accumulator."""
        return tuple(t.var for t in (*self.tiles, self.lanes))

    @property
    def size(self) -> int:
        """The size of all lanes in bytes."""
        return storage_bytes(const_value(self.lanes.extent) or 0, self.dtype)

    @property
    def dtype(self) -> DType:
        """The dtype of the accumulated values."""
        return self.store.buffer.dtype


def _reductions(loop: For) -> list[_Reduction] | None:
    """Return the reductions in a serial loop, or None if it contains any other store."""
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
    step = update_of(store)
    loops = [s for s in path if isinstance(s, For)]
    branches = [s for s in path if isinstance(s, If)]
    if step is None or not store.buffer.dtype.is_machine or any(isinstance(s, Let) for s in path):
        return None
    if any(b.otherwise is not None for b in branches):
        return None
    if any(f.kind == "parallel" for f in loops):
        return None  # a worker does not see the registers around its loop
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
    total = 1
    for one in loops:
        count = const_value(one.extent)
        if count is None:
            return False
        total *= count
    return storage_bytes(total, store.buffer.dtype) <= MAX_ACCUMULATOR_BYTES


def _redirect(body: Stmt, pairs: list[tuple[_Reduction, Buffer]], chain: Expr) -> Stmt:
    """Redirect the reduction updates of a body to accumulators."""
    targets = {id(one.store): (one, partial) for one, partial in pairs}

    def change(statement: Stmt) -> Stmt:
        if not isinstance(statement, Store) or id(statement) not in targets:
            return statement
        one, partial = targets[id(statement)]
        index = (chain, *one.index)
        value = Binary(one.step.op, Load(partial, index), one.step.right)
        return replace(one.store, buffer=partial, indices=index, value=value)

    return transform(body, change)


class VectorizeAccumulators(Pass):
    """Reduce each vectorized reduction into a vector of partial results.

    Before::
        for k in range(n):
            for lane in vectorized(16):
                C = C + A[k * 16 + lane]
    After::
        P[0:16] = 0
        for k in range(n):
            for lane in vectorized(16):
                P[lane] = P[lane] + A[k * 16 + lane]
        C = C + sum of P
    """

    targets = CPU

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Rewrite all vectorized reductions."""
        if checks_stores(func):
            return func  # a store that is checked in the kernel does not move out of its branches
        uid = largest_uid(func.body, (*func.buffers, *func.buffer_params)) + 1
        rewriter = AccumulatorRewriter(uid, vector_unit(target).vector_bits // 8)
        body = rewriter.rewrite(func.body)
        return replace(func, body=body, buffers=(*func.buffers, *rewriter.buffers))


def largest_uid(statement: Stmt, buffers: tuple[Buffer, ...]) -> Uid:
    """Return the largest uid in use."""
    own = [s.uid for s in walk(statement) if isinstance(s, For | Block)]
    return max([*own, *(b.uid for b in buffers)], default=0)
