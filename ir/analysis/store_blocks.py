"""Blocks around stores that are outside of blocks, with inferred iteration variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...errors import MalformedProgramError
from ..identity import fresh_name
from ..loop.nodes import (
    Alloc,
    Bind,
    Block,
    Buffer,
    Condition,
    Element,
    For,
    If,
    Index,
    IterKind,
    IterVar,
    Let,
    Load,
    PrimFunc,
    Seq,
    Stmt,
    Store,
)
from ..loop.ranges import loop_var
from ..loop.regions import access_regions
from ..loop.visit import (
    all_buffers,
    allocations,
    loads,
    seq,
    stores,
    substitute_in,
    walk,
    walk_element,
)
from ..symbolic import Expr, Var, as_expr, free_vars
from .accesses import ranges_of
from .facts_at import within_loops
from .intervals import Interval, interval_of
from .iter_map import injective_in
from .updates import update_of


class UnwrappableStoreError(MalformedProgramError):
    """A store outside of blocks for which no iteration variables can be inferred."""

    title = "Store outside of blocks"


def with_store_blocks(function: PrimFunc) -> PrimFunc:
    """Return the function with a block around every store that is outside of blocks.

    The iteration variables are inferred. A loop variable in which the written elements are
    injective is spatial, unless the store reads its buffer in other iterations. A loop that a
    commutative update accumulates over is a reduction; any other loop is ordered. A loop that
    neither the indices nor the value depend on gets no iteration variable, if repeating the store
    has no effect.

    Parameters
    ----------
    function : PrimFunc
        The function.

    Raises
    ------
    UnwrappableStoreError
        If a store uses an integer loaded from memory whose range is not known in terms of the
        symbols of the function.

    Examples
    --------
    >>> from ..script import parse
    >>> print(
    ...     parse('''
    ... @prim_func
    ... def f(x: Buffer[(8,), f32], y: InOut[(9,), f32]):
    ...     for i in range(8):
    ...         y[i + 1] = y[i] + x[i]
    ... ''')
    ... )
    @prim_func
    def f(x: Buffer[(8,), f32], y: InOut[(9,), f32]):
        for i in range(8):
            with block("y"):
                vi = ordered(i)
                y[vi + 1] = y[vi] + x[vi]
    """
    if not any(True for _ in _outside(function.body)):
        return function
    return replace(function, body=_Wrapper(function).statement(function.body, ()))


def _outside(statement: Stmt) -> Iterator[Store]:
    """Yield the stores that are outside of blocks."""
    stack = [statement]
    while stack:
        top = stack.pop()
        match top:
            case Store():
                yield top
            case For(body=body) | Let(body=body) | Alloc(body=body):
                stack.append(body)
            case Seq(body=parts):
                stack.extend(parts)
            case If(then=then, otherwise=otherwise):
                stack.extend(s for s in (then, otherwise) if s is not None)
            case Block() | Bind():  # a bind outside of blocks is ill-formed
                pass


@dataclass(frozen=True, slots=True)
class _Site:
    """A store, the lets directly around it, and the loops and lets around these."""

    statement: Store | Let
    store: Store
    lets: tuple[Let, ...]
    binders: tuple[For | Let, ...]

    @property
    def own_loads(self) -> tuple[Load, ...]:
        """The loads from the buffer that the store writes."""
        return tuple(x for x in loads(self.statement) if x.buffer is self.store.buffer)

    @property
    def is_update(self) -> bool:
        """Whether the store is ``C[idx] = C[idx] op value`` with a commutative operator."""
        found = update_of(self.store)
        return found is not None and found[1] is self.store.value and len(self.own_loads) == 1


class _Wrapper:
    """The rewriter of one function."""

    def __init__(self, function: PrimFunc) -> None:
        self._function = function
        statements = list(walk(function.body))
        buffers = all_buffers(function)
        nodes = (s for s in statements if isinstance(s, For | Block))
        self._scoped: dict[For, frozenset[Buffer]] = {}
        self._next = 1 + max((x.uid for x in (*nodes, *buffers)), default=0)
        self._blocks = {s.name for s in statements if isinstance(s, Block)}
        outer = (*function.buffer_params, *function.buffers)
        self._symbols = frozenset[Var](function.scalar_params).union(
            *(free_vars(d) for b in outer for d in b.shape)
        )
        self._taken = {b.name for b in buffers} | {v.name for v in self._symbols}
        self._taken |= {s.var.name for s in statements if isinstance(s, For | Let)}

    def statement(self, statement: Stmt, binders: tuple[For | Let, ...]) -> Stmt:
        """Return a statement with its stores in blocks."""
        match statement:
            case Store():
                return self._wrapped(_Site(statement, statement, (), binders))
            case Let():
                lets = tuple(_lets(statement))
                if isinstance(lets[-1].body, Store):
                    return self._wrapped(_Site(statement, lets[-1].body, lets, binders))
                return self._inside(statement, binders)
            case For():
                return self._inside(statement, binders)
            case Seq(body=parts):
                return seq(*(self.statement(p, binders) for p in parts))
            case If(then=then, otherwise=otherwise):
                then = self.statement(then, binders)
                other = None if otherwise is None else self.statement(otherwise, binders)
                return replace(statement, then=then, otherwise=other)
            case Alloc(body=body):
                return replace(statement, body=self.statement(body, binders))
            case Block() | Bind():
                return statement

    def _inside(self, binder: For | Let, binders: tuple[For | Let, ...]) -> Stmt:
        return replace(binder, body=self.statement(binder.body, (*binders, binder)))

    def _wrapped(self, site: _Site) -> Block:
        store = site.store
        iters: list[IterVar] = []
        values: dict[Var, Expr] = {}
        for binder, kind in self._kinds(site):
            interval = self._interval(site, binder)
            name = fresh_name(f"v{binder.var.name}", self._taken)
            variable = loop_var(name, interval.extent)
            iters.append(IterVar(variable, interval.extent, kind, binder.var - interval.start))
            values[binder.var] = variable + interval.start
        body = substitute_in(site.statement, values)
        name = fresh_name(store.buffer.name, self._blocks)
        self._blocks.add(name)
        reads, writes = access_regions(body)
        self._next += 1
        return Block(self._next - 1, name, tuple(iters), reads, writes, body, origins=store.origins)

    def _interval(self, site: _Site, binder: For | Let) -> Interval:
        """Return the range of an iteration variable, over the symbols of the function."""
        if isinstance(binder, For):
            return Interval.full(self._extent(site, binder))
        variable = binder.var
        lower = binder.lower if free_vars(binder.lower) <= self._symbols else variable.lower
        upper: Expr | int | None = binder.upper
        if not free_vars(binder.upper) <= self._symbols:
            upper = None if variable.upper is None else variable.upper + 1
        if lower is None or upper is None:
            raise UnwrappableStoreError(
                f"the store to {site.store.buffer.name!r} is outside of blocks and uses "
                f"{variable.name!r}, an integer loaded from memory whose range depends on a loop",
                where=f"function {self._function.name!r}",
                hint=f"write the store in a block with an iteration variable for "
                f"{variable.name!r}: v = spatial(extent, {variable.name})",
            )
        return Interval(as_expr(lower), as_expr(upper) - lower, exhaustive=False)

    def _extent(self, site: _Site, loop: For) -> Expr:
        """Return the largest extent of a loop, over the symbols if possible."""
        if free_vars(loop.extent) <= self._symbols:
            return loop.extent
        outer = ranges_of(site.binders[: site.binders.index(loop)])
        found = interval_of(loop.extent, outer, self._function.facts)
        if found is None or not free_vars(found.stop) <= self._symbols:
            return loop.extent
        return found.stop - 1

    def _kinds(self, site: _Site) -> Iterator[tuple[For | Let, IterKind]]:
        """Yield the loops and lets that get an iteration variable, with its kind."""
        facts = within_loops(self._function.facts, (*site.binders, *site.lets))
        ranges = ranges_of((*site.binders, *site.lets))
        separate = injective_in(self._separating(site), ranges, facts)
        used = _used(site.statement)
        for binder in site.binders:
            variable = binder.var
            if isinstance(binder, Let):
                if variable in used:
                    yield binder, "spatial"
            elif variable in separate and variable in used:
                yield binder, "spatial"
            elif site.store.buffer in self._allocated_in(binder):
                if variable in used or not self._repeatable(site, binder):
                    yield binder, "spatial"  # each iteration has its own elements
            elif site.is_update and self._accumulates(site, binder):
                yield binder, "reduce"
            elif variable in used or not self._repeatable(site, binder):
                yield binder, "ordered"

    def _allocated_in(self, loop: For) -> frozenset[Buffer]:
        """Return the temporaries that are allocated in each iteration of a loop."""
        known = self._scoped.get(loop)
        if known is None:
            known = frozenset(alloc.buffer for alloc in allocations(loop.body))
            self._scoped[loop] = known
        return known

    def _separating(self, site: _Site) -> tuple[Expr, ...]:
        """Return the write indices at which the store also reads its buffer, if it does."""
        indices = site.store.indices
        own = [x.indices for x in site.own_loads]
        if any(len(other) != len(indices) for other in own):
            return ()  # an ill-formed program, which the verification rejects
        kept = range(len(indices))
        return tuple(indices[d] for d in kept if all(other[d] is indices[d] for other in own))

    def _accumulates(self, site: _Site, loop: For) -> bool:
        """Return whether an update is a reduction over a loop.

        The written element must not depend on the loop, and no other statement of the loop may
        access the buffer, where it would see partial results.
        """
        buffer = site.store.buffer
        if any(loop.var in free_vars(i) for i in site.store.indices):
            return False
        others = (s for s in stores(loop.body) if s is not site.store)
        own = len(site.own_loads)
        return all(s.buffer is not buffer for s in others) and (
            sum(x.buffer is buffer for x in loads(loop.body)) == own
        )

    def _repeatable(self, site: _Site, loop: For) -> bool:
        """Return whether running a store that does not depend on a loop once is sufficient."""
        written = {s.buffer for s in stores(loop.body)}
        return not any(x.buffer in written for x in loads(site.statement))


def _lets(let: Let) -> Iterator[Let]:
    """Yield a let and the lets that are directly nested in it."""
    inner: Stmt = let
    while isinstance(inner, Let):
        yield inner
        inner = inner.body


def _used(statement: Stmt) -> frozenset[Var]:
    """Return the variables that a statement uses."""
    found: set[Var] = set()
    for inner in walk(statement):
        match inner:
            case Let(lower=lower, upper=upper, load=load):
                for term in (lower, upper, *load.indices):
                    found |= free_vars(term)
            case Store(indices=indices, value=value):
                for index in indices:
                    found |= free_vars(index)
                for element in walk_element(value):
                    found |= _variables(element)
            case _:
                pass
    return frozenset(found)


def _variables(element: Element) -> frozenset[Var]:
    match element:
        case Load(indices=indices):
            return frozenset[Var]().union(*(free_vars(i) for i in indices))
        case Index(value=value):
            return free_vars(value)
        case Condition(value=claim):
            return free_vars(claim)
        case _:
            return frozenset()
