"""The conditions under which statements and elements of a loop-level function run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ..identity import Uid
from ..loop.nodes import (
    Binary,
    Block,
    Condition,
    Element,
    For,
    If,
    IterVar,
    Let,
    PrimFunc,
    Stmt,
    Store,
    Unary,
    Where,
)
from ..loop.visit import children, operands
from ..symbolic import (
    TRUE,
    Bool,
    Expr,
    Facts,
    Var,
    all_of,
    as_expr,
    is_proved,
    is_simple,
    negate,
    substitute,
)
from .facts_at import assuming

_ZERO: Final = as_expr(0)


@dataclass(frozen=True, slots=True)
class Binder:
    """A variable in scope with its inclusive limits; ``repeats`` if a loop executes them all."""

    var: Var
    first: Expr
    last: Expr
    repeats: bool = True

    def substituted(self, values: Mapping[Var, Expr]) -> Binder:
        """Replace variables in the limits."""
        first, last = substitute(self.first, values), substitute(self.last, values)
        return Binder(self.var, first, last, self.repeats)

    @property
    def ranges(self) -> tuple[Bool, Bool]:
        """The limits as conditions."""
        return self.first <= self.var, self.var <= self.last


def _iterated(variable: Var, extent: Expr) -> Binder:
    return Binder(variable, _ZERO, extent - 1)


class Scope:
    """One level of a nest: binders and conditions that are added to those around it.

    Inside a block the variables are its iteration variables. The *near* view uses their declared
    extents only, the *far* view replaces them by their bindings and uses all loops, branches, and
    predicates around the block.
    """

    def __init__(
        self,
        outer: Scope | None,
        binders: tuple[Binder, ...] = (),
        conditions: tuple[Bool, ...] = (),
        *,
        block: Block | None = None,
        facts: Facts | None = None,
    ) -> None:
        """Add binders and conditions to ``outer``; ``facts`` are those of the function."""
        self.outer = outer
        self.binders = binders
        self.conditions = conditions
        self.block = block
        self.base: Facts = facts or (outer.base if outer else Facts())

    @cached_property
    def values(self) -> Mapping[Var, Expr]:
        """The iteration variables of the enclosing blocks over the loop variables."""
        outer = dict[Var, Expr]() if self.outer is None else self.outer.values
        if self.block is None:
            return outer
        own = {v.var: substitute(v.binding, outer) for v in self.block.iters}
        return {**outer, **own}

    @cached_property
    def near(self) -> Facts:
        """The facts in scope in the isolation of the innermost block."""
        if self.outer is None:
            return self.base
        ranges = (p for b in self.binders for p in b.ranges)
        if self.block is not None:
            return assuming(self.base, *ranges)
        return assuming(self.outer.near, *ranges, *self.conditions)

    @cached_property
    def far(self) -> Facts:
        """All facts in scope, over the variables of loops."""
        if self.outer is None:
            return self.base
        outer = self.outer
        if self.block is not None:
            predicate = substitute(self.block.predicate, outer.values)
            inside = self._domain() if self.contained else ()
            return assuming(outer.far, predicate, *inside)
        binders = [b.substituted(outer.values) for b in self.binders]
        conditions = (substitute(c, outer.values) for c in self.conditions)
        return assuming(outer.far, *(p for b in binders for p in b.ranges), *conditions)

    @cached_property
    def contained(self) -> bool:
        """Whether all iteration variables around are proved to be in their domains."""
        if self.outer is None:
            return True
        if self.block is None or not self.outer.contained:
            return self.outer.contained
        loops = {b.var: b for b in self.outer.all_binders()}
        rest = [v for v in self.block.iters if not _is_loop(v, loops)]
        if not rest:
            return True
        predicate = substitute(self.block.predicate, self.outer.values)
        known = assuming(self.outer.far, predicate)
        claims = [p for v in rest for p in self._within(v)]
        return all(is_simple(p, known) or is_proved(p, known) for p in claims)

    def _within(self, item: IterVar) -> tuple[Bool, Bool]:
        values = dict[Var, Expr]() if self.outer is None else self.outer.values
        value = substitute(item.binding, values)
        return value >= 0, value < substitute(item.extent, values)

    def _domain(self) -> Iterator[Bool]:
        for item in () if self.block is None else self.block.iters:
            yield from self._within(item)

    def all_binders(self) -> tuple[Binder, ...]:
        """Return the binders in scope over the variables of loops, outermost first."""
        if self.outer is None:
            return ()
        own = () if self.block is not None else self.binders
        return (*self.outer.all_binders(), *(b.substituted(self.outer.values) for b in own))

    def near_binders(self) -> tuple[Binder, ...]:
        """Return the binders of the innermost block and inside of it, outermost first."""
        if self.outer is None:
            return ()
        outer = () if self.block is not None else self.outer.near_binders()
        return (*outer, *self.binders)

    def all_conditions(self) -> tuple[Bool, ...]:
        """Return the conditions in scope over the variables of loops."""
        if self.outer is None:
            return ()
        own = self.conditions if self.block is None else (self.block.predicate,)
        return (*self.outer.all_conditions(), *(substitute(c, self.outer.values) for c in own))


def _is_loop(item: IterVar, loops: Mapping[Var, Binder]) -> bool:
    """Return whether an iteration variable is a loop variable of the same extent."""
    binding = item.binding
    loop = loops.get(binding) if isinstance(binding, Var) else None
    return loop is not None and loop.first is _ZERO and loop.last + 1 is item.extent


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """A statement or an evaluated element, with its scope, block, and innermost loop."""

    node: Stmt | Element
    scope: Scope
    block: Block | None
    loop: For | None

    @property
    def uid(self) -> Uid | None:
        """The uid of the innermost loop or block around the node."""
        if self.loop is not None:
            return self.loop.uid
        return None if self.block is None else self.block.uid


def sites(func: PrimFunc) -> Iterator[Site]:
    r"""Yield the statements and elements of a function with their scopes, in program order.

    Only the selected side of a ``Where`` is evaluated, so its condition is in the scope of the
    sides if it is symbolic.

    Examples
    --------
    >>> from ..script import parse
    >>> text = "@prim_func\ndef f(y: Out[(8,), f32]):\n    for i in range(8): y[i] = 0.0"
    >>> [type(site.node).__name__ for site in sites(parse(text).prim("f"))]
    ['For', 'Block', 'Store', 'Number']
    """
    yield from _statements(func.body, Scope(None, facts=func.facts), None, None)


def _statements(node: Stmt, scope: Scope, block: Block | None, loop: For | None) -> Iterator[Site]:
    yield Site(node, scope, block, loop)
    match node:
        case Store(value=value):
            yield from _elements((value,), scope, block, loop)
        case For(var=var, extent=extent):
            inner = Scope(scope, (_iterated(var, extent),))
            yield from _statements(node.body, inner, block, node)
        case Let(load=load, var=var):
            yield from _elements((load,), scope, block, loop)
            bound = Binder(var, node.lower, node.upper - 1, repeats=False)
            yield from _statements(node.body, Scope(scope, (bound,)), block, loop)
        case If(condition=condition, then=then, otherwise=otherwise):
            yield from _statements(then, Scope(scope, (), (condition,)), block, loop)
            if otherwise is not None:
                other = Scope(scope, (), (negate(condition),))
                yield from _statements(otherwise, other, block, loop)
        case Block(iters=iters):
            inner = Scope(scope, tuple(_iterated(v.var, v.extent) for v in iters), block=node)
            for child in children(node):
                yield from _statements(child, inner, node, None)
        case _:
            for child in children(node):
                yield from _statements(child, scope, block, loop)


def _elements(
    nodes: Iterable[Element], scope: Scope, block: Block | None, loop: For | None
) -> Iterator[Site]:
    stack = [(node, scope) for node in nodes]
    while stack:
        node, where = stack.pop()
        yield Site(node, where, block, loop)
        parts = [(part, where) for part in operands(node)]
        if isinstance(node, Where):
            claims = (TRUE, implied(node.condition), implied(node.condition, holds=False))
            parts = [
                (part, where if claim is TRUE else Scope(where, (), (claim,)))
                for (part, _), claim in zip(parts, claims, strict=True)
            ]
        stack.extend(reversed(parts))


def implied(element: Element, *, holds: bool = True) -> Bool:
    """Return a symbolic condition that follows from the truth value of an element."""
    match element:
        case Condition(value=value):
            return value if holds else negate(value)
        case Unary(op="not", operand=operand):
            return implied(operand, holds=not holds)
        case Binary(op="and" | "or" as op, left=left, right=right) if (op == "and") == holds:
            return all_of(implied(left, holds=holds), implied(right, holds=holds))
        case _:
            return TRUE
