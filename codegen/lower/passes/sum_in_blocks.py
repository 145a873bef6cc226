"""Partial sums of long reductions: blocks of terms with an accumulator of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from ....ir.analysis import update_of
from ....ir.identity import Uid
from ....ir.loop.combiners import identity_of
from ....ir.loop.nodes import (
    INTRINSIC,
    Binary,
    Block,
    Buffer,
    Cast,
    Element,
    For,
    If,
    Let,
    Load,
    PrimFunc,
    Stmt,
    Store,
)
from ....ir.loop.visit import children, loads, seq, stores, substitute_in, transform, with_children
from ....ir.sizes import storage_bytes
from ....ir.symbolic import (
    TRUE,
    Bool,
    Expr,
    Facts,
    Var,
    all_of,
    as_expr,
    bounds,
    ceildiv,
    conjuncts,
    const_value,
    minimum,
    var,
)
from ....schedules.launch.lowering_pass import Pass
from ....target.target import Target
from .vectorize_accumulators import MAX_ACCUMULATOR_BYTES, largest_uid

SUM_TERMS: Final = 32
"""The maximum number of terms that one accumulator adds in sequence.

The sum of equal terms has the largest error, because all roundings have the same sign: 1e-6 for
32 terms per level, 3e-6 for 128.
"""

CONTRACTION_TERMS: Final = 2048
"""The maximum number of products that one accumulator of a contraction adds in sequence.

The relative error of the sum of 2,048 equal products is about 3e-5, and 1.5e-5 for 1,024. With
blocks of 768, a product with 14 rows and K = 1,536 was 15 to 20 % slower while its weights were not
in cache, and not slower otherwise.
"""

SYMBOLIC_LEVELS: Final = 4
"""The number of levels of blocks of a sum whose length is not bounded: 32**5 terms per lane."""


@dataclass(frozen=True, slots=True)
class _Sum:
    """The additions to one private accumulator in a loop.

    Parameters
    ----------
    stores : tuple of Store
        The stores, which all have the same indices.
    tiles : tuple of For
        The loops inside of the loop that the indices depend on.
    lanes : tuple of For
        The vectorized loops around the loop: their iterations run at once, and each has its own
        partial sum.
    terms : int or None
        The number of terms per element and iteration; None if it is not constant.
    guard : Bool
        The condition of the stores outside of the loops that the indices depend on.
    block : Block or None
        The block around the stores, which the added statements belong to.
    """

    stores: tuple[Store, ...]
    tiles: tuple[For, ...]
    lanes: tuple[For, ...]
    terms: int | None
    guard: Bool
    block: Block | None

    @property
    def target(self) -> Buffer:
        """The accumulator."""
        return self.stores[0].buffer

    @property
    def index(self) -> tuple[Expr, ...]:
        """The index of a partial sum: lanes, and tiles in the order of the accumulator."""
        return tuple(t.var for t in (*self.lanes, *self._in_order))

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The shape of the partial sums."""
        return tuple(t.extent for t in (*self.lanes, *self._in_order))

    @property
    def _in_order(self) -> list[For]:
        indices = self.stores[0].indices
        return sorted(
            self.tiles, key=lambda t: next(k for k, i in enumerate(indices) if t.var in i.free)
        )

    @property
    def is_contraction(self) -> bool:
        """Whether all terms are products of two different elements."""
        return all(_is_product(_term(s)) for s in self.stores)


class SumInBlocks(Pass):
    """Add long sums in blocks: at most 32 terms per accumulator, 2,048 in contractions.

    Before::
        for k in range(n):
            acc[()] = acc[()] + x[k]
    After::
        for k in range(min(32, n)):
            acc[()] = acc[()] + x[k]
        if n > 32:
            for k_block in range(ceildiv(n - 32, 32)):
                part[()] = 0
                for k in range(min(32, n - 32 - k_block * 32)):
                    part[()] = part[()] + x[32 + k_block * 32 + k]
                acc[()] = acc[()] + part[()]

    Longer sums have several levels of blocks, so the rounding error grows with the logarithm of the
    number of terms. Only sums of floats in a buffer of scope ``local`` change; such a buffer is the
    private accumulator of a declared reduction. The order depends on shapes and schedule only.
    """

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Split all long sums."""
        local = frozenset(b for b in func.buffers if b.scope == "local" and b.dtype.is_float)
        if not local:
            return func
        names = {b.name for b in (*func.buffers, *func.buffer_params)}
        uid = largest_uid(func.body, (*func.buffers, *func.buffer_params)) + 1
        rewriter = _Rewriter(local, names, uid, target, func.facts)
        body = rewriter.rewrite(func.body)
        return replace(func, body=body, buffers=(*func.buffers, *rewriter.buffers))


class _Rewriter:
    """A rewriter of the body of a function; :attr:`buffers` are the accumulators it adds."""

    def __init__(
        self,
        local: frozenset[Buffer],
        names: set[str],
        next_uid: Uid,
        target: Target,
        facts: Facts,
    ) -> None:
        self.buffers: list[Buffer] = []
        self._facts = facts
        self._target = target
        self._local = local
        self._names = names
        self._next = next_uid
        self._free: list[Buffer] = []
        self._lanes: tuple[For, ...] = ()

    def _mint(self) -> Uid:
        self._next += 1
        return self._next - 1

    def rewrite(self, statement: Stmt) -> Stmt:
        """Split the long sums in a statement."""
        if isinstance(statement, For) and statement.kind == "serial":
            found = _sums(statement, self._local, self._lanes, self._target)
            if found:
                return self._split(statement, found)
        if isinstance(statement, For) and statement.kind == "parallel":
            # Each worker has its own accumulators, which no statement outside may use.
            outside, self._free = self._free, []
            statement = with_children(statement, (self.rewrite(statement.body),))
            self._free = outside
            return statement
        if isinstance(statement, For) and statement.kind == "vectorized":
            outside, self._lanes = self._lanes, (*self._lanes, statement)
            statement = with_children(statement, (self.rewrite(statement.body),))
            self._lanes = outside
            return statement
        return with_children(statement, tuple(self.rewrite(c) for c in children(statement)))

    def _split(self, loop: For, sums: list[_Sum]) -> Stmt:
        limit = CONTRACTION_TERMS if all(s.is_contraction for s in sums) else SUM_TERMS
        counts = [limit + 1 if s.terms is None else s.terms for s in sums]
        if max(counts) > limit:
            loop, sums = self._per_iteration(loop, sums)
            counts = [1]
        if max(counts) == 0:  # a loop inside has no iterations
            return loop
        block = limit // max(counts)
        length = const_value(loop.extent)
        bound = bounds(loop.extent, self._facts).upper if length is None else length
        if (bound is not None and bound <= block) or _has_guard(loop):
            return loop
        levels = 1
        if bound is None:
            levels = SYMBOLIC_LEVELS if limit == SUM_TERMS else 1
        else:
            while block * limit**levels < bound:
                levels += 1
        sizes = [block * limit**level for level in range(levels)]
        if length is not None and levels == 1:
            sizes = [_equal_block(length, block)]
        if length is not None or limit == CONTRACTION_TERMS or _has_loops(loop.body):
            return self._nest(loop, sums, loop.extent, as_expr(0), sizes)
        first = replace(loop, uid=self._mint(), extent=minimum(loop.extent, as_expr(block)))
        rest = self._nest(loop, sums, loop.extent - block, as_expr(block), sizes)
        return seq(first, If(loop.extent > block, rest))

    def _per_iteration(self, loop: For, sums: list[_Sum]) -> tuple[For, list[_Sum]]:
        """Return the loop and its sums, with an accumulator per iteration and a split body."""
        parts = self._acquire(sums, loop.body)
        body = _redirect(loop.body, sums, parts)
        self._local |= frozenset(parts)
        added = [self._add(s, p) for s, p in zip(sums, parts, strict=True)]
        first = [self._clear(s, p) for s, p in zip(sums, parts, strict=True)]
        around = [self._around(s, _guarded(s.guard, a)) for s, a in zip(sums, added, strict=True)]
        whole = replace(loop, body=seq(*first, self.rewrite(body), *around))
        self._free.extend(parts)
        return whole, [replace(s, stores=(a,), terms=1) for s, a in zip(sums, added, strict=True)]

    def _nest(
        self, loop: For, sums: list[_Sum], extent: Expr, start: Expr, sizes: list[int]
    ) -> Stmt:
        """Return the loop over ``extent`` iterations in blocks of the given sizes, largest last."""
        if not sizes:
            return replace(
                loop,
                uid=self._mint(),
                extent=extent,
                body=substitute_in(loop.body, {loop.var: start + loop.var}),
            )
        size = sizes[-1]
        parts = self._acquire(sums, loop.body)
        counter = var(f"{loop.var.name}_block{len(sizes)}", lower=0)
        within = replace(loop, body=_redirect(loop.body, sums, parts))
        inner_sums = [_moved(s, p) for s, p in zip(sums, parts, strict=True)]
        inner = self._nest(
            within,
            inner_sums,
            _block_length(extent, size, counter),
            start + counter * size,
            sizes[:-1],
        )
        self._free.extend(parts)
        first = [self._clear(s, p) for s, p in zip(sums, parts, strict=True)]
        last = [
            self._around(s, _guarded(s.guard, self._add(s, p)))
            for s, p in zip(sums, parts, strict=True)
        ]
        body = seq(*first, inner, *last)
        return For(self._mint(), counter, ceildiv(extent, size), body, "serial")

    def _acquire(self, sums: list[_Sum], body: Stmt) -> list[Buffer]:
        """Return an accumulator per sum that the body does not write; other loops share them."""
        busy = {s.buffer for s in stores(body)}
        found: list[Buffer] = []
        for one in sums:
            shape = one.shape
            like = (shape, one.target.dtype)
            free = [b for b in self._free if (b.shape, b.dtype) == like and b not in busy]
            if free:
                self._free.remove(free[0])
            found.append(free[0] if free else self._new(one.target, shape))
        return found

    def _new(self, target: Buffer, shape: tuple[Expr, ...]) -> Buffer:
        stem = re.sub(r"_block\d+$", "", target.name)
        name = next(f"{stem}_block{k}" for k in count(1) if f"{stem}_block{k}" not in self._names)
        self._names.add(name)
        self.buffers.append(Buffer(self._mint(), name, shape, target.dtype, "local"))
        return self.buffers[-1]

    def _clear(self, one: _Sum, part: Buffer) -> Stmt:
        return self._around(one, Store(part, one.index, identity_of("add", part.dtype)))

    def _add(self, one: _Sum, part: Buffer) -> Store:
        store = one.stores[0]
        own = Load(store.buffer, store.indices)
        return replace(store, value=Binary("add", own, Load(part, one.index)))

    def _around(self, one: _Sum, body: Stmt) -> Stmt:
        if one.block is not None:
            body = replace(one.block, body=body, annotations=(), threads=None)
        for tile in reversed(one.tiles):
            body = replace(tile, uid=self._mint(), body=body)
        return body


def _equal_block(length: int, limit: int) -> int:
    """Return the size of the fewest blocks of about the same size."""
    return -(-length // -(-length // limit))


def _block_length(extent: Expr, size: int, block: Var) -> Expr:
    """Return the number of iterations in a block: constant if all blocks are equal."""
    length = const_value(extent)
    if length is not None and length % size == 0:
        return as_expr(size)
    return minimum(as_expr(size), extent - block * size)


def _guarded(guard: Bool, body: Stmt) -> Stmt:
    return body if guard is TRUE else If(guard, body)


def _term(store: Store) -> Element:
    found = update_of(store)
    return store.value if found is None else found[1].right


def _is_product(term: Element) -> bool:
    while isinstance(term, Cast):
        term = term.operand
    return isinstance(term, Binary) and term.op == "mul" and term.left != term.right


def _moved(one: _Sum, part: Buffer) -> _Sum:
    """Return the additions redirected to another accumulator."""
    stores = tuple(_store_to(part, one, s) for s in one.stores)
    return replace(one, stores=stores, guard=TRUE)


def _store_to(part: Buffer, one: _Sum, store: Store) -> Store:
    value = Binary("add", Load(part, one.index), _term(store))
    return replace(store, buffer=part, indices=one.index, value=value)


def _redirect(body: Stmt, sums: list[_Sum], parts: list[Buffer]) -> Stmt:
    """Redirect the additions of a body to other accumulators."""
    targets = {one.target: (one, part) for one, part in zip(sums, parts, strict=True)}

    def change(statement: Stmt) -> Stmt:
        if not isinstance(statement, Store) or statement.buffer not in targets:
            return statement
        one, part = targets[statement.buffer]
        return _store_to(part, one, statement)

    return transform(body, change)


def _has_loops(body: Stmt) -> bool:
    return any(isinstance(s, For) and s.kind == "serial" for s, _ in _statements(body, ()))


def _has_guard(loop: For) -> bool:
    """Return whether a branch in the loop depends on its variable: it is a partial last tile."""
    return any(
        isinstance(s, If) and loop.var in s.condition.free for s, _ in _statements(loop.body, ())
    )


def _statements(statement: Stmt, path: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, tuple[Stmt, ...]]]:
    yield statement, path
    for child in children(statement):
        yield from _statements(child, (*path, statement))


def _sums(
    loop: For, local: frozenset[Buffer], lanes: tuple[For, ...], target: Target
) -> list[_Sum]:
    """Return the sums of a loop; none if it contains any other store."""
    found: dict[Buffer, _Sum] = {}
    for statement, path in _statements(loop.body, ()):
        if isinstance(statement, Let) or _is_opaque(statement, target):
            return []
        if not isinstance(statement, Store):
            continue
        one = _sum(statement, path, loop, lanes) if statement.buffer in local else None
        before = found.get(statement.buffer)
        if one is None or (before is not None and not _is_same_accumulator(before, one)):
            return []
        found[statement.buffer] = one if before is None else _joined(before, one)
    reads = [load for load in loads(loop) if load.buffer in found]
    if len(reads) != sum(len(one.stores) for one in found.values()):
        return []
    return list(found.values())


def _is_opaque(statement: Stmt, target: Target) -> bool:
    if isinstance(statement, Block):  # on a CPU, an instruction reads its operands from the body
        return target.is_gpu and INTRINSIC in dict(statement.annotations)
    return isinstance(statement, For) and statement.kind in ("parallel", "thread")


def _is_same_accumulator(left: _Sum, right: _Sum) -> bool:
    same = left.stores[0].indices == right.stores[0].indices and left.guard is right.guard
    return same and [(t.var, t.extent) for t in left.tiles] == [
        (t.var, t.extent) for t in right.tiles
    ]


def _joined(left: _Sum, right: _Sum) -> _Sum:
    known = left.terms is not None and right.terms is not None
    terms = (left.terms or 0) + (right.terms or 0) if known else None
    return replace(left, stores=(*left.stores, *right.stores), terms=terms)


def _sum(store: Store, path: tuple[Stmt, ...], loop: For, lanes: tuple[For, ...]) -> _Sum | None:
    found = update_of(store)
    if found is None or found[0] != "add" or not store.buffer.dtype.is_machine:
        return None
    free = frozenset[Var]().union(*(i.free for i in store.indices))
    loops = [s for s in path if isinstance(s, For)]
    tiles = tuple(f for f in loops if f.var in free)
    if loop.var in free or not _is_small(store, (*lanes, *tiles)):
        return None
    terms: int | None = 1
    for one in loops:
        extent = const_value(one.extent)
        if one not in tiles:
            terms = None if terms is None or extent is None else terms * max(extent, 0)
    branches = [s for s in path if isinstance(s, If)]
    inner = {loop.var} | {f.var for f in loops if f not in tiles}
    parts = [p for b in branches if b.otherwise is None for p in conjuncts(b.condition)]
    kept = [p for p in parts if p.free.isdisjoint(inner)]
    partial = len(kept) < len(parts) or any(b.otherwise is not None for b in branches)
    if partial and not _is_covered(store, (*lanes, *tiles)):
        return None
    block = next((s for s in reversed(path) if isinstance(s, Block)), None)
    return _Sum((store,), tiles, lanes, terms, all_of(*kept), block)


def _is_small(store: Store, tiles: tuple[For, ...]) -> bool:
    total = 1
    for one in tiles:
        extent = const_value(one.extent)
        if extent is None:
            return False
        total *= extent
    return storage_bytes(total, store.buffer.dtype) <= MAX_ACCUMULATOR_BYTES


def _is_covered(store: Store, loops: tuple[For, ...]) -> bool:
    """Return whether every iteration of the loops is inside the accumulator.

    A branch that is not repeated around the final addition may have restricted the indices.
    """
    extents = {t.var: const_value(t.extent) for t in loops}
    for index, size in zip(store.indices, store.buffer.shape, strict=True):
        if isinstance(index, Var) and index in extents:
            extent, room = extents[index], const_value(size)
            if extent is None or room is None or extent > room:
                return False
        elif const_value(index) is None:
            return False
    return True
