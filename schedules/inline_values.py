"""Inlining of the values that a block stores into the statements that load them.

A value that a consumer uses several times is bound once: copies would double with each block of a
chain. Small values are copied.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from ..ir.analysis.evaluated import evaluated_where
from ..ir.analysis.value_size import SHARED, value_size
from ..ir.dtype import DType
from ..ir.loop.nodes import (
    Bind,
    Block,
    Buffer,
    Condition,
    Element,
    Load,
    Local,
    Number,
    Seq,
    Stmt,
    Store,
    Where,
)
from ..ir.loop.reducers import first_of_update
from ..ir.loop.straight_line import (
    joined,
    own_values,
    statements_of,
    straight_line,
    used_binds,
)
from ..ir.loop.visit import Rebuilder, elements, walk_element
from ..ir.symbolic import TRUE, Bool, Expr, Var, as_expr, substitute

_COUNTED: Final = re.compile(r"(_\d+)+$")
_ZERO = as_expr(0)
_NOTHING = Seq(())

Point: TypeAlias = "tuple[Expr, ...]"
"""The iteration of a producer that computes a loaded element."""


@dataclass(frozen=True, slots=True)
class Producer:
    """The values that a block stores, each in a buffer of its own.

    Parameters
    ----------
    variables : tuple of Var
        The iteration variables.
    binds : tuple of Bind
        The values with names, in order.
    stores : Mapping[Buffer, Store]
        The store to each buffer.
    constants : Mapping[Var, Expr]
        The values, in the block that loads the elements, of iteration variables that are not
        indices of a store.
    """

    variables: tuple[Var, ...]
    binds: tuple[Bind, ...]
    stores: Mapping[Buffer, Store]
    constants: Mapping[Var, Expr] = field(default_factory=dict[Var, Expr])

    def point(self, load: Load) -> Point:
        """Return the iteration that computes a loaded element; 0 for variables of extent 1."""
        pairs = zip(self.stores[load.buffer].indices, load.indices, strict=True)
        at = {index: new for index, new in pairs if isinstance(index, Var)}
        known = {**self.constants, **at}
        return tuple(known.get(v, _ZERO) for v in self.variables)

    def loads(self, value: Element) -> Iterator[Load]:
        """Yield the loads in a value of the buffers that the block stores to."""
        for part in walk_element(value):
            if isinstance(part, Load) and part.buffer in self.stores:
                yield part

    def needed(self, buffers: frozenset[Buffer]) -> tuple[Bind, ...]:
        """Return the binds that the values of some buffers use, in order."""
        return used_binds(self.binds, (self.stores[b].value for b in buffers))


def producer_of(block: Block) -> Producer | None:
    """Return the values of a block of binds and stores to different buffers, else None."""
    parts = straight_line(block.body)
    if parts is None or block.init is not None:
        return None
    binds, stores = parts
    by_buffer = {store.buffer: store for store in stores}
    if not stores or len(by_buffer) < len(stores):
        return None
    return Producer(tuple(v.var for v in block.iters), binds, by_buffer)


class ValueInliner(Rebuilder):
    """A rewriter of statements that replaces loads by the values that a producer stores."""

    def __init__(self, producer: Producer, fresh: Callable[[str], str]) -> None:
        """Name bound values with ``fresh``."""
        self._producer = producer
        self._fresh = fresh
        self._known: dict[tuple[Buffer | Local, Point], Element] = {}
        self._update: Stmt | None = None

    def block(self, block: Block) -> Block:
        """Rewrite a block; an update by its reducer remains one, after all values."""
        outer, self._update = self._update, first_of_update(block)
        init = None if block.init is None else self.statement(block.init)
        new = replace(block, init=init, body=self.statement(block.body))
        self._update = outer
        return new

    def load(self, load: Load) -> Element:
        """Replace a load by a bound value, or by a copy of the value."""
        if load.buffer not in self._producer.stores:
            return load
        point = self._producer.point(load)
        known = self._known.get((load.buffer, point))
        return (
            self._copy(self._producer.stores[load.buffer].value, point) if known is None else known
        )

    def _copy(self, value: Element, point: Point) -> Element:
        """Return a value at an iteration of the producer; unbound locals are expanded."""
        terms = dict(zip(self._producer.variables, point, strict=True))
        bound: dict[Local, Element] = {}
        for bind in self._producer.binds:
            known = self._known.get((bind.local, point))
            bound[bind.local] = _At(terms, bound).element(bind.value) if known is None else known
        return _At(terms, bound).element(value)

    def statement(self, statement: Stmt) -> Stmt:
        """Rewrite a statement, with the values that it uses several times before their uses."""
        if not isinstance(statement, Store | Bind | Seq):
            return super().statement(statement)
        parts, outer = statements_of(statement), self._known.copy()
        binds = self._planned(parts)
        made: list[Stmt] = []
        for position, part in enumerate(parts):
            for point, buffers, guard in binds.get(position, ()):
                made += self._bound(point, buffers, guard)
            if isinstance(part, Bind):
                value = self.element(part.value)
                local = self.local(part.local, value.dtype)
                if local is not part.local:
                    self._locals = {**(self._locals or {}), part.local: local}
                made.append(Bind(local, value, _NOTHING))
            else:
                made.append(super().statement(part))
        self._known = outer
        return joined(tuple(made))

    def _planned(
        self, parts: tuple[Stmt, ...]
    ) -> dict[int, list[tuple[Point, Counter[Buffer], Bool]]]:
        """Return the iterations whose values to bind, by the position to bind them at.

        That is the position of their first use, or of an update by a reducer that contains it.
        """
        last = next((k for k, part in enumerate(parts) if part is self._update), len(parts))
        first: dict[Point, int] = {}
        uses: dict[Point, Counter[Buffer]] = {}
        for position, part in enumerate(parts):
            own = isinstance(part, Store | Bind)
            for value in (part.value,) if own else elements(part):
                for load in self._producer.loads(value) if own else _itself(self._producer, value):
                    point = self._producer.point(load)
                    if (load.buffer, point) not in self._known:
                        first.setdefault(point, min(position, last))
                        uses.setdefault(point, Counter())[load.buffer] += 1
        found: dict[int, list[tuple[Point, Counter[Buffer], Bool]]] = {}
        for point, counts in uses.items():
            if not self._producer.needed(frozenset(counts)) and max(counts.values()) < 2:
                continue
            guard = evaluated_where(own_values(parts), self._computes(point))
            if guard is not None:
                found.setdefault(first[point], []).append((point, counts, guard))
        return found

    def _computes(self, point: Point) -> Callable[[Element], bool]:
        """Return a test for the loads that an iteration of the producer computes."""
        stores = self._producer.stores

        def test(element: Element) -> bool:
            if not isinstance(element, Load) or element.buffer not in stores:
                return False
            return self._producer.point(element) == point

        return test

    def _bound(self, point: Point, counts: Counter[Buffer], guard: Bool) -> Iterator[Bind]:
        """Yield the binds of one iteration of the producer."""
        for bind in self._producer.needed(frozenset(counts)):
            yield self._named(bind.local, bind.local.name, bind.value, point, guard)
        for buffer, count in counts.items():
            value = self._producer.stores[buffer].value
            if count > 1 and value_size(value).nodes > SHARED:
                yield self._named(buffer, f"{buffer.name}_value", value, point, guard)

    def _named(
        self, key: Buffer | Local, name: str, value: Element, point: Point, guard: Bool
    ) -> Bind:
        local = Local(self._fresh(_COUNTED.sub("", name) or name), value.dtype)
        copy = self._copy(value, point)
        if guard is not TRUE:
            copy = Where(Condition(guard), copy, _zero(value.dtype))
        self._known[key, point] = local
        return Bind(local, copy, _NOTHING)


class _At(Rebuilder):
    """A substitution of iteration variables and locals in an element."""

    def __init__(self, terms: Mapping[Var, Expr], bound: Mapping[Local, Element]) -> None:
        self._terms = terms
        self._bound = bound

    def expr(self, term: Expr) -> Expr:
        return substitute(term, self._terms)

    def predicate(self, claim: Bool) -> Bool:
        return substitute(claim, self._terms)

    def element(self, element: Element) -> Element:
        if isinstance(element, Local) and element in self._bound:
            return self._bound[element]
        return super().element(element)


def _itself(producer: Producer, element: Element) -> Iterator[Load]:
    if isinstance(element, Load) and element.buffer in producer.stores:
        yield element


def _zero(dtype: DType) -> Number:
    return Number(dtype.number(0), dtype)
