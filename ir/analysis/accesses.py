"""Reads and writes of blocks, over iteration variables or over the enclosing loop variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from ..loop.nodes import (
    Alloc,
    Bind,
    Block,
    Buffer,
    Condition,
    Element,
    For,
    If,
    Let,
    Load,
    Stmt,
    Store,
    Where,
)
from ..loop.visit import children, operands
from ..symbolic import TRUE, Bool, Expr, Var, substitute
from .intervals import Interval


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """A load or store.

    Parameters
    ----------
    block : Block
        The block that contains the access.
    buffer : Buffer
        The accessed buffer.
    indices : tuple of Expr
        The indices, over the iteration variables of the block and variables bound in its body.
        Iteration variables of nested blocks are replaced by their bindings.
    inner : Mapping[Var, Interval]
        The variables bound in the body, with the intervals of their values. A loop variable takes
        every value of its interval; a variable of a ``Let`` takes arbitrary ones.
    writes : bool
        Whether the access is a store.
    guard : Bool
        The condition of the selections around a load, over the variables of its indices: without
        it, the element is not read.
    """

    block: Block
    buffer: Buffer
    indices: tuple[Expr, ...]
    inner: Mapping[Var, Interval]
    writes: bool
    guard: Bool = TRUE

    def bound(self) -> tuple[Expr, ...]:
        """Return the indices over the variables of the loops around the block."""
        bindings = bindings_of(self.block)
        return tuple(substitute(i, bindings) for i in self.indices)

    def bound_inner(self) -> dict[Var, Interval]:
        """Return the intervals of ``inner`` over the variables of the loops around the block."""
        bindings = bindings_of(self.block)
        return {v: interval.substitute(bindings) for v, interval in self.inner.items()}


def values_of(binder: For | Let) -> Interval:
    """Return the interval of the values of the variable that a statement binds.

    The values of an integer loaded from memory are arbitrary: the interval is only a bound, and
    different iterations may load the same value.
    """
    if isinstance(binder, For):
        return Interval.full(binder.extent)
    return Interval(binder.lower, binder.upper - binder.lower, exhaustive=False)


def ranges_of(binders: Iterable[For | Let]) -> dict[Var, Interval]:
    """Return the variables that statements bind, with the intervals of their values."""
    return {binder.var: values_of(binder) for binder in binders}


def domain_of(block: Block) -> dict[Var, Interval]:
    """Return the iteration variables of a block with their intervals."""
    return {v.var: Interval.full(v.extent) for v in block.iters}


def bindings_of(block: Block) -> dict[Var, Expr]:
    """Return the bindings of a block's iteration variables."""
    return {v.var: v.binding for v in block.iters}


@lru_cache(maxsize=4096)
def accesses(block: Block) -> tuple[Access, ...]:
    """Return the loads and stores of a block, including its init, in program order.

    Accesses to buffers that the block allocates itself are omitted.
    """
    parts = () if block.init is None else (block.init,)
    return tuple([Access(block, *a) for part in (*parts, block.body) for a in _accesses_of(part)])


@lru_cache(maxsize=4096)
def _accesses_of(statement: Stmt) -> tuple[_Found, ...]:
    """Return the accesses of the init or the body of a block, which most steps do not change."""
    return tuple(_in(statement, {}, {}))


def reads(block: Block, buffer: Buffer | None = None) -> tuple[Access, ...]:
    """Return the loads of a block from one or all buffers, except loads of its accumulator."""
    found = _reads(block)
    return found if buffer is None else tuple(a for a in found if a.buffer is buffer)


@lru_cache(maxsize=4096)
def _reads(block: Block) -> tuple[Access, ...]:
    own = {(a.buffer, a.indices) for a in accesses(block) if a.writes}
    return tuple(a for a in accesses(block) if not a.writes and (a.buffer, a.indices) not in own)


def writes(block: Block, buffer: Buffer | None = None) -> tuple[Access, ...]:
    """Return the stores of a block to one or all buffers, without repeated indices."""
    found = _writes(block)
    return found if buffer is None else tuple(a for a in found if a.buffer is buffer)


@lru_cache(maxsize=4096)
def _writes(block: Block) -> tuple[Access, ...]:
    return tuple({(a.buffer, a.indices): a for a in accesses(block) if a.writes}.values())


_Found: TypeAlias = "tuple[Buffer, tuple[Expr, ...], Mapping[Var, Interval], bool, Bool]"
"""The fields of an access after its block, in order."""


def _in(
    statement: Stmt, inner: Mapping[Var, Interval], bound: Mapping[Var, Expr]
) -> Iterator[_Found]:
    """Yield accesses; ``bound`` maps the iteration variables of nested blocks to bindings."""

    def access(
        buffer: Buffer, indices: tuple[Expr, ...], guard: Bool = TRUE, *, writes: bool
    ) -> _Found:
        at = tuple([substitute(i, bound) for i in indices]) if bound else indices
        when = substitute(guard, bound) if bound and guard is not TRUE else guard
        return buffer, at, inner, writes, when

    match statement:
        case Store(buffer=buffer, indices=indices, value=value):
            for load, guard in guarded_loads(value):
                yield access(load.buffer, load.indices, guard, writes=False)
            yield access(buffer, indices, writes=True)
        case Bind(value=value):
            for load, guard in guarded_loads(value):
                yield access(load.buffer, load.indices, guard, writes=False)
        case Let(load=load):
            yield access(load.buffer, load.indices, writes=False)
            inner = {**inner, statement.var: values_of(statement).substitute(bound)}
        case For():
            inner = {**inner, statement.var: values_of(statement).substitute(bound)}
        case Block(iters=iters):
            bound = {**bound, **{v.var: substitute(v.binding, bound) for v in iters}}
        case Alloc(buffer=own, body=body):
            yield from (found for found in _in(body, inner, bound) if found[0] is not own)
            return
        case _:
            pass
    for child in children(statement):
        yield from _in(child, inner, bound)


def guarded_loads(element: Element) -> Iterator[tuple[Load, Bool]]:
    """Yield the loads of an element in order, with the condition of the selections around them."""
    stack: list[tuple[Element, Bool]] = [(element, TRUE)]
    while stack:
        top, guard = stack.pop()
        if isinstance(top, Load):
            yield top, guard
        elif isinstance(top, Where) and isinstance(top.condition, Condition):
            claim = top.condition.value
            stack += [(top.otherwise, guard & ~claim), (top.then, guard & claim)]
        else:
            stack.extend((part, guard) for part in reversed(operands(top)))


def is_plain(block: Block) -> bool:
    """Return whether a block is straight-line code: no loops, branches, or other scopes."""
    parts = [block.body] if block.init is None else [block.init, block.body]
    scopes = (Alloc, For, If, Let, Block)
    return not any(isinstance(s, scopes) for part in parts for s in _statements(part))


def _statements(statement: Stmt) -> Iterator[Stmt]:
    yield statement
    for child in children(statement):
        yield from _statements(child)
