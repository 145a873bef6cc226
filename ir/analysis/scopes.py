"""The conditions under which statements and elements of a loop-level function run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from ..identity import Uid
from ..loop.decompose import reduction_position, separate_init
from ..loop.nodes import (
    Alloc,
    Binary,
    Bind,
    Block,
    Condition,
    Element,
    For,
    If,
    IterVar,
    Let,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Unary,
    Where,
)
from ..loop.ranges import is_empty
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
from .domains import executed_domain
from .facts_at import assuming
from .tree import tree_of

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
        function: PrimFunc | None = None,
        certain: bool = True,
    ) -> None:
        """Add binders and conditions to ``outer``; the outermost scope is that of a function.

        ``certain`` states that the scope runs whenever ``outer`` runs and the conditions hold; it
        is false if the values of elements decide, too.
        """
        self.outer = outer
        self.binders = binders
        self.conditions = conditions
        self.block = block
        self.function: PrimFunc | None = outer.function if outer else function
        self.base: Facts = outer.base if outer else Facts() if function is None else function.facts
        self.certain: bool = certain and (outer is None or outer.certain)

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

    @cached_property
    def complete(self) -> bool:
        """Whether every iteration of the domains of all blocks around is proved to run."""
        if self.outer is None:
            return True
        if self.block is None:
            return self.outer.complete
        if self.function is None or not self.outer.complete:
            return False
        tree = tree_of(self.function)
        known = tree.blocks.get(self.block.uid) is self.block
        return known and executed_domain(tree, self.block).exact

    def near_conditions(self) -> tuple[Bool, ...]:
        """Return the conditions inside of the innermost block."""
        if self.outer is None or self.block is not None:
            return ()
        return (*self.outer.near_conditions(), *self.conditions)

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
    sides if it is symbolic. The body of a loop without iterations has no sites, apart from inits
    of reductions that it iterates.

    Examples
    --------
    >>> from ..script import parse
    >>> text = "@prim_func\ndef f(y: Out[(8,), f32]):\n    for i in range(8): y[i] = 0.0"
    >>> [type(site.node).__name__ for site in sites(parse(text).prim("f"))]
    ['For', 'Block', 'Store', 'Number']
    """
    yield from _statements(func.body, Scope(None, function=func), None, None, ())


_Path: TypeAlias = "tuple[tuple[Stmt, Scope], ...]"
"""The statements between the nearest enclosing block and a statement, with their scopes."""


def _statements(
    node: Stmt, scope: Scope, block: Block | None, loop: For | None, path: _Path
) -> Iterator[Site]:
    yield Site(node, scope, block, loop)
    match node:
        case Store(value=value) | Bind(value=value):
            yield from _elements((value,), scope, block, loop)
        case Let(load=load):
            yield from _elements((load,), scope, block, loop)
        case Block(init=init, body=body):
            if init is not None:
                yield from _init(node, init, path, scope)
            yield from _statements(body, _inside(scope, node), node, None, ())
            return
        case _:
            pass
    loop = node if isinstance(node, For) else loop
    below = (*path, (node, scope))
    for part, inner in _parts(node, scope):
        if isinstance(node, For) and is_empty(node):
            yield from _inits(part, inner, below)
        else:
            yield from _statements(part, inner, block, loop, below)


def _parts(node: Stmt, scope: Scope) -> Iterator[tuple[Stmt, Scope]]:
    """Yield the statements in a statement other than a block, with their scopes."""
    match node:
        case For(var=var, extent=extent, body=body):
            yield body, Scope(scope, (_iterated(var, extent),))
        case Let(var=var, body=body):
            bound = Binder(var, node.lower, node.upper - 1, repeats=False)
            yield body, Scope(scope, (bound,))
        case If(condition=condition, then=then, otherwise=otherwise):
            yield then, Scope(scope, (), (condition,))
            if otherwise is not None:
                yield otherwise, Scope(scope, (), (negate(condition),))
        case _:
            yield from ((child, scope) for child in children(node))


def _inits(node: Stmt, scope: Scope, path: _Path) -> Iterator[Site]:
    """Yield the sites of the inits that run before a loop without iterations around them."""
    if not isinstance(node, Block):
        for part, inner in _parts(node, scope):
            yield from _inits(part, inner, (*path, (node, scope)))
    elif node.init is not None:
        around = tuple(statement for statement, _ in path)
        outside = around[: reduction_position(around, node)]
        runs = not any(isinstance(x, For) and is_empty(x) for x in outside)
        if runs and not _is_plain(around, node):
            yield from _init(node, node.init, path, scope)


def _is_plain(path: tuple[Stmt, ...], block: Block) -> bool:
    """Return whether the loops around an init limit its iterations like those of its block."""
    reduced = frozenset[Var]().union(*(v.binding.free for v in block.iters if v.kind == "reduce"))
    spatial = frozenset[Var]().union(*(v.binding.free for v in block.iters if v.kind != "reduce"))
    loops = [s for s in path if isinstance(s, For)]
    omitted = {x.var for x in loops} - spatial
    return (
        len(loops) + sum(isinstance(s, Seq | Alloc) for s in path) == len(path)
        and block.predicate is TRUE
        and reduced.isdisjoint(spatial)
        and all(_repeats(v.extent) for v in block.iters if v.kind == "reduce")
        and all(_repeats(x.extent) for x in loops if x.var in omitted)
        and all(x.extent.free.isdisjoint(omitted) for x in loops if x.var in spatial)
    )


def _repeats(extent: Expr) -> bool:
    return extent.lower is not None and extent.lower > 0


def _inside(scope: Scope, block: Block) -> Scope:
    return Scope(scope, tuple(_iterated(v.var, v.extent) for v in block.iters), block=block)


def _init(block: Block, init: Stmt, path: _Path, scope: Scope) -> Iterator[Site]:
    """Yield the sites of an init, in the scope of the separate nest in which it runs.

    Conditions and loops of the reduction do not limit its iterations.
    """
    around = tuple(statement for statement, _ in path)
    if _is_plain(around, block):
        yield from _statements(init, _inside(scope, block), block, None, ())
        return
    separate = separate_init(around, block)
    if separate is None:
        return  # a violation of its own
    first = reduction_position(around, block)
    outer = path[first][1] if first < len(path) else scope
    for site in _statements(separate.nest, outer, None, None, ()):
        if site.block is not None:
            yield Site(site.node, site.scope, block, None)


def _elements(
    nodes: Iterable[Element], scope: Scope, block: Block | None, loop: For | None
) -> Iterator[Site]:
    stack = [(node, scope) for node in nodes]
    while stack:
        node, where = stack.pop()
        yield Site(node, where, block, loop)
        parts = [(part, where) for part in operands(node)]
        if isinstance(node, Where):
            certain = _is_symbolic(node.condition)
            claims = (implied(node.condition), implied(node.condition, holds=False))
            sides = (Scope(where, (), (claim,), certain=certain) for claim in claims)
            parts = [parts[0], *zip(operands(node)[1:], sides, strict=True)]
        stack.extend(reversed(parts))


def _is_symbolic(element: Element) -> bool:
    """Return whether a truth value depends on conditions over integers alone."""
    match element:
        case Condition():
            return True
        case Unary(op="not", operand=operand):
            return _is_symbolic(operand)
        case Binary(op="and" | "or", left=left, right=right):
            return _is_symbolic(left) and _is_symbolic(right)
        case _:
            return False


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
