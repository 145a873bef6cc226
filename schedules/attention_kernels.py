"""Loop-level functions of attention, which keep a block of scores in cache.

Both visit the keys in blocks. They keep the largest score, the sum of exponentials and the weighted
sum of values of the keys before a block, and multiply them by ``exp(old - new)`` when a block
contains a larger score (online softmax).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final

from ..ir.analysis.store_blocks import with_store_blocks
from ..ir.dtype import f32
from ..ir.graph.nodes import Operand, TensorInfo, Value, operand_info
from ..ir.identity import UidSource, fresh_name
from ..ir.loop.nodes import (
    Alloc,
    Binary,
    Buffer,
    BufferParam,
    Compare,
    Condition,
    Element,
    For,
    If,
    Load,
    Number,
    PrimFunc,
    ScalarParam,
    Scope,
    Stmt,
    Store,
    Unary,
    Where,
)
from ..ir.loop.ranges import loop_var
from ..ir.loop.visit import seq
from ..ir.symbolic import (
    Expr,
    Facts,
    SymInt,
    Var,
    as_expr,
    ceildiv,
    free_vars,
    maximum,
    minimum,
)
from .attention import Attention, CausalStep, Indices

ATTENTION: Final = ("attention", True)
"""The attribute of the functions, which the rule ``schedule_attention`` schedules."""

_ZERO: Final = Number(0.0, f32)
_ONE: Final = Number(1.0, f32)
_LOWEST: Final = Number(-float("inf"), f32)


class _Kernel(ABC):
    """The parameters and the outer loops of a kernel."""

    def __init__(self, attention: Attention, name: str, block: int, facts: Facts) -> None:
        self.of, self._name, self._facts = attention, name, facts
        self.block = block
        self._mint = UidSource()
        self._taken = {name, *(v.name for v in _symbols(attention, facts))}
        self._params = {o: self._param(o) for o in attention.operands}
        shape = (*attention.outer, attention.queries, as_expr(attention.depth))
        self.out = self.buffer("out", shape)

    def function(self) -> PrimFunc:
        """Return the function, without a schedule."""
        body = self.nest(("batch",) * len(self.of.outer), self.of.outer, self.rows)
        read = (BufferParam(b, "in") for b in self._params.values())
        params = (*read, BufferParam(self.out, "out"))
        offsets = (s.offset for s in self.of.steps if isinstance(s, CausalStep))
        dims = [*offsets, *(d for p in params for d in p.buffer.shape)]
        symbols = {v for d in dims for v in free_vars(d)}
        scalars = tuple(ScalarParam(v) for v in sorted(symbols, key=lambda v: v.serial))
        made = PrimFunc(
            self._name, (*params, *scalars), body, facts=self._facts, attributes=(ATTENTION,)
        )
        return with_store_blocks(made)

    @abstractmethod
    def rows(self, *outer: Expr) -> Stmt:
        """Return the computation for one batch and head."""

    def fresh(self, name: str) -> str:
        """Return a name that is not in the function."""
        chosen = fresh_name(name, self._taken)
        self._taken.add(chosen)
        return chosen

    def buffer(self, name: str, shape: Sequence[SymInt], scope: Scope = "global") -> Buffer:
        """Return a new buffer."""
        dims = tuple(as_expr(d) for d in shape)
        return Buffer(self._mint(), self.fresh(name), dims, f32, scope)

    def _param(self, operand: Operand) -> Buffer:
        info = operand_info(operand)
        if not isinstance(info, TensorInfo) or info.shape is None:
            raise TypeError("an operand of attention is a tensor of known shape")
        name = operand.name if isinstance(operand, Value) else "constant"
        return Buffer(self._mint(), self.fresh(name), info.shape, info.dtype)

    def loop(self, name: str, extent: SymInt, body: Callable[[Expr], Stmt]) -> Stmt:
        """Return a loop."""
        variable = loop_var(self.fresh(name), extent)
        return For(self._mint(), variable, as_expr(extent), body(variable))

    def nest(
        self, names: Sequence[str], extents: Sequence[SymInt], body: Callable[..., Stmt]
    ) -> Stmt:
        """Return nested loops, the first one outermost."""
        if not names:
            return body()

        def inner(variable: Expr) -> Stmt:
            return self.nest(names[1:], extents[1:], lambda *rest: body(variable, *rest))

        return self.loop(names[0], extents[0], inner)

    def fill(self, names: Sequence[str], buffer: Buffer, value: Number) -> Stmt:
        """Return loops that store a number in all elements of a buffer."""

        def store(*at: Expr) -> Stmt:
            return _set(buffer, at, value)

        return self.nest(names, buffer.shape, store)

    def read(self, operand: Operand, at: Indices) -> Load:
        """Load an element of a parameter."""
        return Load(self._params[operand], at)

    def limit(self, last: Expr) -> Expr:
        """Return the number of keys that the queries up to ``last`` attend to."""
        found = self.of.keys
        for step in reversed(self.of.steps):
            if not step.keeps_lowest:  # it may change the scores that an earlier mask hides
                break
            if isinstance(step, CausalStep):
                found = minimum(found, last + 1 + step.offset)
        return found if found == self.of.keys else maximum(found, 0)

    def score(self, score: Element, at: Indices) -> Element:
        """Apply the steps between the first product and the softmax."""
        for step in self.of.steps:
            score = step.apply(score, at, self.read)
        return score

    def result(self, weighted: Element, top: Element, total: Element) -> Element:
        """Divide the weighted sum of values by the sum of the weights."""
        found: Element = Binary("mul", weighted, Binary("div", _ONE, total))
        if self.of.zero_rows:
            return Where(Compare("eq", top, _LOWEST), _ZERO, found)
        if (self.of.keys.lower or 0) > 0:
            return found
        return Where(Condition(self.of.keys <= 0), _ZERO, found)


def _symbols(attention: Attention, facts: Facts) -> set[Var]:
    """Return the symbols that a kernel may contain."""
    infos = [operand_info(o) for o in attention.operands]
    shapes = [info.shape or () for info in infos if isinstance(info, TensorInfo)]
    offsets = [s.offset for s in attention.steps if isinstance(s, CausalStep)]
    own = (*attention.outer, attention.queries, attention.keys, *offsets)
    terms = [*own, *(d for shape in shapes for d in shape)]
    of_facts = (v for fact in facts for v in fact.predicate.free)
    return {*of_facts, *(v for term in terms for v in free_vars(term))}


def _alloc(buffers: Sequence[Buffer], *body: Stmt) -> Stmt:
    found = seq(*body)
    for buffer in reversed(buffers):
        found = Alloc(buffer, found)
    return found


def _finite(top: Element) -> Element:
    """Return the largest score, or 0 if no key was visible: the weights are then 0, not NaN."""
    return Where(Compare("eq", top, _LOWEST), _ZERO, top)


def _weight(score: Element, top: Element) -> Element:
    """Return the exponential of a difference that is not positive."""
    return Unary("exp", Unary("neg", Unary("abs", Binary("sub", score, top))))


def _set(buffer: Buffer, at: Sequence[SymInt], value: Element) -> Store:
    return Store(buffer, tuple(as_expr(i) for i in at), value)


def _get(buffer: Buffer, *at: SymInt) -> Load:
    return Load(buffer, tuple(as_expr(i) for i in at))


def _added(buffer: Buffer, at: Sequence[SymInt], value: Element) -> Store:
    return _set(buffer, at, Binary("add", _get(buffer, *at), value))


class _Blocks(_Kernel):
    """Blocks of queries, one per lane: scores and results are transposed, keys and values not.

    Both products are sums over rows of a tile of scalars times vectors of queries.
    """

    def __init__(
        self, attention: Attention, name: str, facts: Facts, sizes: tuple[int, int, int]
    ) -> None:
        self.lanes, self.tile, tiles = sizes
        super().__init__(attention, name, self.tile * tiles, facts)
        self.part = _part(attention.depth, self.tile)

    def rows(self, *outer: Expr) -> Stmt:
        count = ceildiv(self.of.queries, self.lanes)
        return self.loop("i", count, lambda i: self._queries(outer, i * self.lanes))

    def _queries(self, outer: Indices, first: Expr) -> Stmt:
        """Return the computation for a block of queries; the last one is repeated to fill it."""
        of, lanes = self.of, self.lanes
        padded = -(-of.depth // self.part) * self.part
        transposed = self.buffer("query_t", (of.width, lanes))
        state = [self.buffer(x, (lanes,)) for x in ("top", "total")]
        weighted = self.buffer("weighted", (padded, lanes))
        top, total = state

        def row(lane: Expr) -> Expr:
            return minimum(first + lane, of.queries - 1)

        def query(c: Expr, lane: Expr) -> Stmt:
            source = of.query
            return _set(
                transposed, (c, lane), self.read(source.operand, source.at((*outer, row(lane), c)))
            )

        def result(e: Expr, lane: Expr) -> Stmt:
            found = self.result(_get(weighted, e, lane), _get(top, lane), _get(total, lane))
            store = _set(self.out, (*outer, first + lane, e), found)
            return If(first + lane < of.queries, store)

        limit = self.limit(first + (lanes - 1))
        return _alloc(
            [transposed, top, total, weighted],
            self.nest(("c", "lane"), (of.width, lanes), query),
            self.fill(("lane",), top, _LOWEST),
            self.fill(("lane",), total, _ZERO),
            self.fill(("e", "lane"), weighted, _ZERO),
            self.loop(
                "j",
                ceildiv(limit, self.block),
                lambda j: self._keys(
                    (outer, row),
                    (transposed, top, total, weighted),
                    j * self.block,
                    minimum(as_expr(self.block), limit - j * self.block),
                ),
            ),
            self.nest(("e", "lane"), (of.depth, lanes), result),
        )

    def _lane(self, body: Callable[[Expr], Stmt]) -> Stmt:
        return self.loop("lane", self.lanes, body)

    def _keys(
        self,
        at: tuple[Indices, Callable[[Expr], Expr]],
        buffers: tuple[Buffer, ...],
        first: Expr,
        count: Expr,
    ) -> Stmt:
        """Return the computation for a block of keys."""
        _, top, total, weighted = buffers
        scores = self.buffer("scores", (self.block, self.lanes))
        new, scale = (self.buffer(x, (self.lanes,)) for x in ("new_top", "scale"))

        def each(body: Callable[[Expr, Expr], Stmt]) -> Stmt:
            return self.nest(("key", "lane"), (count, self.lanes), body)

        def larger(key: Expr, lane: Expr) -> Stmt:
            return _set(new, (lane,), Binary("max", _get(new, lane), _get(scores, key, lane)))

        def weight(key: Expr, lane: Expr) -> Stmt:
            found = _weight(_get(scores, key, lane), _get(top, lane))
            return _set(scores, (key, lane), found)

        def rescaled(lane: Expr) -> Stmt:
            return _set(total, (lane,), Binary("mul", _get(total, lane), _get(scale, lane)))

        return _alloc(
            [scores, new, scale],
            self._scores(at, (scores, buffers[0]), first, count),
            self._lane(lambda lane: _set(new, (lane,), _get(top, lane))),
            each(larger),
            self._lane(
                lambda lane: _set(
                    scale, (lane,), _weight(_get(top, lane), _finite(_get(new, lane)))
                )
            ),
            self._lane(rescaled),
            self._lane(lambda lane: _set(top, (lane,), _finite(_get(new, lane)))),
            each(weight),
            each(lambda key, lane: _added(total, (lane,), _get(scores, key, lane))),
            self._lane(lambda lane: _set(top, (lane,), _get(new, lane))),
            self._values(at[0], (scores, scale, weighted), first, count),
        )

    def _scores(
        self,
        at: tuple[Indices, Callable[[Expr], Expr]],
        buffers: tuple[Buffer, Buffer],
        first: Expr,
        count: Expr,
    ) -> Stmt:
        """Return the first product, in tiles of keys; the last key is repeated to fill a tile."""
        (outer, row), (scores, transposed) = at, buffers
        of, sizes = self.of, (self.tile, self.lanes)

        def tile(t: Expr) -> Stmt:
            local = self.buffer("score", sizes, "local")

            def key(r: Expr) -> Expr:
                return minimum(first + t * self.tile + r, of.keys - 1)

            def term(c: Expr, r: Expr, lane: Expr) -> Stmt:
                found = self.read(of.key.operand, of.key.at((*outer, key(r), c)))
                product = Binary("mul", found, _get(transposed, c, lane))
                return _added(local, (r, lane), product)

            def finished(r: Expr, lane: Expr) -> Stmt:
                found = self.score(_get(local, r, lane), (*outer, row(lane), key(r)))
                return _set(scores, (t * self.tile + r, lane), found)

            names = ("row", "lane")
            return _alloc(
                [local],
                self.fill(names, local, _ZERO),
                self.nest(("c", *names), (of.width, *sizes), term),
                self.nest(names, sizes, finished),
            )

        return self.loop("tile", ceildiv(count, self.tile), tile)

    def _values(
        self, outer: Indices, buffers: tuple[Buffer, Buffer, Buffer], first: Expr, count: Expr
    ) -> Stmt:
        """Return the second product, in tiles of the elements of a value."""
        scores, scale, weighted = buffers
        of, sizes = self.of, (self.part, self.lanes)

        def tile(t: Expr) -> Stmt:
            local = self.buffer("sum", sizes, "local")

            def start(r: Expr, lane: Expr) -> Stmt:
                old = _get(weighted, t * self.part + r, lane)
                return _set(local, (r, lane), Binary("mul", old, _get(scale, lane)))

            def term(key: Expr, r: Expr, lane: Expr) -> Stmt:
                element = minimum(t * self.part + r, as_expr(of.depth - 1))
                found = self.read(of.value.operand, of.value.at((*outer, first + key, element)))
                return _added(local, (r, lane), Binary("mul", found, _get(scores, key, lane)))

            def stop(r: Expr, lane: Expr) -> Stmt:
                return _set(weighted, (t * self.part + r, lane), _get(local, r, lane))

            names = ("row", "lane")
            return _alloc(
                [local],
                self.nest(names, sizes, start),
                self.nest(("key", *names), (count, *sizes), term),
                self.nest(names, sizes, stop),
            )

        return self.loop("tile", -(-of.depth // self.part), tile)


def _part(depth: int, rows: int) -> int:
    """Return the rows of a tile that covers a depth in the least time.

    A tile takes time in proportion to its rows, and as much as one row more for its vectors.
    """
    sizes = range(1, rows + 1)
    return min(sizes, key=lambda r: (-(-depth // r) * (r + 1), -r))


class _Rows(_Kernel):
    """One query at a time: keys and values are read once, in the order of memory."""

    def __init__(
        self, attention: Attention, name: str, facts: Facts, sizes: tuple[int, int]
    ) -> None:
        self.lanes, block = sizes
        super().__init__(attention, name, block, facts)

    def rows(self, *outer: Expr) -> Stmt:
        return self.loop("i", self.of.queries, lambda i: self._query((*outer, i)))

    def _query(self, at: Indices) -> Stmt:
        depth = self.of.depth
        top, total = (self.buffer(x, ()) for x in ("top", "total"))
        weighted = self.buffer("weighted", (depth,))

        def result(e: Expr) -> Stmt:
            found = self.result(_get(weighted, e), _get(top), _get(total))
            return _set(self.out, (*at, e), found)

        limit = self.limit(at[-1])
        return _alloc(
            [top, total, weighted],
            _set(top, (), _LOWEST),
            _set(total, (), _ZERO),
            self.fill(("lane",), weighted, _ZERO),
            self.loop(
                "j",
                ceildiv(limit, self.block),
                lambda j: self._keys(
                    at,
                    (top, total, weighted),
                    j * self.block,
                    minimum(as_expr(self.block), limit - j * self.block),
                ),
            ),
            self.loop("lane", depth, result),
        )

    def _chunks(self, count: Expr, body: Callable[[Expr], Sequence[Stmt]]) -> Stmt:
        """Return loops over vectors of keys."""

        def each(chunk: Expr, lane: Expr) -> Stmt:
            key = chunk * self.lanes + lane
            return If(key < count, seq(*body(key)))

        return self.nest(("chunk", "lane"), (ceildiv(count, self.lanes), self.lanes), each)

    def _keys(
        self, at: Indices, buffers: tuple[Buffer, Buffer, Buffer], first: Expr, count: Expr
    ) -> Stmt:
        """Return the computation for a block of keys."""
        top, total, weighted = buffers
        of, depth = self.of, self.of.depth
        scores = self.buffer("scores", (self.block,))
        new, scale = (self.buffer(x, ()) for x in ("new_top", "scale"))
        local = self.buffer("sum", (depth,), "local")

        def term(key: Expr, chunk: Expr, lane: Expr) -> Stmt:
            c = chunk * self.lanes + lane
            query = self.read(of.query.operand, of.query.at((*at, c)))
            found = self.read(of.key.operand, of.key.at((*at[:-1], first + key, c)))
            added = _added(scores, (key,), Binary("mul", query, found))
            return added if of.width % self.lanes == 0 else If(c < of.width, added)

        def product(key: Expr) -> Stmt:
            sizes = -(-of.width // self.lanes), self.lanes

            def added(chunk: Expr, lane: Expr) -> Stmt:
                return term(key, chunk, lane)

            inner = self.nest(("chunk", "lane"), sizes, added)
            return seq(_set(scores, (key,), _ZERO), inner)

        def stepped(key: Expr) -> list[Stmt]:
            found = self.score(_get(scores, key), (*at, first + key))
            return [_set(scores, (key,), found)]

        def value(key: Expr, e: Expr) -> Stmt:
            found = self.read(of.value.operand, of.value.at((*at[:-1], first + key, e)))
            return _added(local, (e,), Binary("mul", _get(scores, key), found))

        def largest(key: Expr) -> list[Stmt]:
            return [_set(new, (), Binary("max", _get(new), _get(scores, key)))]

        def weight(key: Expr) -> list[Stmt]:
            return [_set(scores, (key,), _weight(_get(scores, key), _get(top)))]

        def summed(key: Expr) -> list[Stmt]:
            return [_added(total, (), _get(scores, key))]

        def lane(body: Callable[[Expr], Stmt]) -> Stmt:
            return self.loop("lane", depth, body)

        return _alloc(
            [scores, new, scale, local],
            self.loop("key", count, product),
            self._chunks(count, stepped),
            _set(new, (), _get(top)),
            self._chunks(count, largest),
            _set(scale, (), _weight(_get(top), _finite(_get(new)))),
            _set(total, (), Binary("mul", _get(total), _get(scale))),
            _set(top, (), _finite(_get(new))),
            self._chunks(count, weight),
            self._chunks(count, summed),
            _set(top, (), _get(new)),
            lane(lambda e: _set(local, (e,), Binary("mul", _get(weighted, e), _get(scale)))),
            self.nest(("key", "lane"), (count, depth), value),
            lane(lambda e: _set(weighted, (e,), _get(local, e))),
        )


def blocked_attention(
    attention: Attention, name: str, facts: Facts, sizes: tuple[int, int, int]
) -> PrimFunc:
    """Return the function for many queries.

    ``sizes`` are the queries of a block, the keys of a tile, and the tiles of a block of keys.
    """
    return _Blocks(attention, name, facts, sizes).function()


def row_attention(
    attention: Attention, name: str, facts: Facts, sizes: tuple[int, int]
) -> PrimFunc:
    """Return the function for few queries; ``sizes`` are the lanes and the keys of a block."""
    return _Rows(attention, name, facts, sizes).function()
