"""Flattened perfect nests of loops around one store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...ir.analysis import operation_on_own, within_loop
from ...ir.loop.combiners import COMBINERS
from ...ir.loop.nodes import Binary, Block, For, If, IterKind, Load, PrimFunc, Stmt, Store
from ...ir.loop.visit import Rebuilder
from ...ir.symbolic import (
    Bool,
    Expr,
    Facts,
    Var,
    as_expr,
    conjuncts,
    free_vars,
    linear_form,
    product,
    simplify,
    substitute,
    to_text,
)

_NO_KIND = frozenset[IterKind]()
COMMUTATIVE = frozenset(COMBINERS)


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """Loops around a store, and the conditions under which it runs.

    Parameters
    ----------
    loops : tuple of For
        The loops, outermost first.
    guards : tuple of Bool
        The conditions, as terms of loop variables and enclosing variables.
    store : Store
        The store; iteration variables are replaced by their bindings.
    kinds : Mapping[Var, frozenset of str]
        The kinds of the iteration variables that each loop binds.
    blocks : tuple of Block
        The blocks between the loops and the store, outermost first.
    facts : Facts
        The facts at the store.
    """

    loops: tuple[For, ...]
    guards: tuple[Bool, ...]
    store: Store
    kinds: Mapping[Var, frozenset[IterKind]]
    blocks: tuple[Block, ...]
    facts: Facts

    @property
    def variables(self) -> tuple[Var, ...]:
        """The variables of the loops."""
        return tuple(loop.var for loop in self.loops)

    @property
    def update(self) -> Binary | None:
        """The value ``own op other`` if the store updates the element it reads, else None."""
        return operation_on_own(self.store)


@dataclass(frozen=True, slots=True)
class ImperfectNest:
    """A statement that prevents a perfect nest around one store, with the reason."""

    reason: str
    found: Stmt


@dataclass(slots=True)
class _Walk:
    loops: list[For] = field(default_factory=list[For])
    guards: list[Bool] = field(default_factory=list[Bool])
    blocks: list[Block] = field(default_factory=list[Block])
    bound: dict[Var, Expr] = field(default_factory=dict[Var, Expr])
    kinds: dict[Var, frozenset[IterKind]] = field(default_factory=dict[Var, frozenset[IterKind]])


def nest_of(statement: Stmt, facts: Facts) -> Nest | ImperfectNest:
    """Return a statement as a flattened nest.

    Parameters
    ----------
    statement : Stmt
        Nested loops, blocks and branches without ``else`` around one store. The init of a block is
        ignored.
    facts : Facts
        The facts at the statement.
    """
    walk = _Walk()
    while not isinstance(statement, Store):
        match statement:
            case For(var=variable, extent=extent, body=body):
                loop = statement
                walk.loops.append(loop)
                facts = within_loop(facts, variable, substitute(extent, walk.bound))
                statement = body
            case Block(body=body):
                _enter(walk, statement)
                statement = body
            case If(condition=condition, then=then, otherwise=None):
                walk.guards.extend(conjuncts(substitute(condition, walk.bound)))
                statement = then
            case _:
                return ImperfectNest(_reason(statement, walk), statement)
    store = _Bound(walk.bound, facts).statement(statement)
    if not isinstance(store, Store):
        return ImperfectNest("the body of the nest is not a store", store)
    guards = tuple(sorted(dict.fromkeys(walk.guards), key=to_text))
    return Nest(tuple(walk.loops), guards, store, walk.kinds, tuple(walk.blocks), facts)


def _enter(walk: _Walk, block: Block) -> None:
    inside = {loop.var for loop in walk.loops}
    for item in block.iters:
        for variable in free_vars(item.binding):
            # An iteration variable of an enclosing block is replaced by the loops it depends on.
            meant = free_vars(walk.bound[variable]) if variable in walk.bound else {variable}
            for loop in meant & inside:
                walk.kinds[loop] = walk.kinds.get(loop, _NO_KIND) | frozenset((item.kind,))
    walk.guards.extend(conjuncts(substitute(block.predicate, walk.bound)))
    new = {v.var: substitute(v.binding, walk.bound) for v in block.iters}
    walk.bound.update(new)
    walk.blocks.append(block)


def _reason(statement: Stmt, walk: _Walk) -> str:
    loop = f"loop {walk.loops[-1].var.name!r}" if walk.loops else "the statement"
    names = {"Seq": "several statements", "If": "an else branch", "Let": "a let statement"}
    found = names.get(type(statement).__name__, "another statement")
    return f"{loop} contains {found} instead of one store"


class _Bound(Rebuilder):
    """A replacement of iteration variables by their simplified bindings."""

    def __init__(self, bound: Mapping[Var, Expr], facts: Facts) -> None:
        self._bound, self._facts = bound, facts

    def expr(self, term: Expr) -> Expr:
        return simplify(substitute(term, self._bound), self._facts)

    def predicate(self, claim: Bool) -> Bool:
        return substitute(claim, self._bound)


def compact_strides(shape: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return the strides of a row-major buffer, in elements."""
    return tuple(product(shape[k + 1 :]) for k in range(len(shape)))


def flat_index(load: Load) -> Expr:
    """Return the position of an element in its buffer's memory, in elements."""
    buffer = load.buffer
    strides = compact_strides(buffer.shape) if buffer.strides is None else buffer.strides
    total = as_expr(0)
    for index, stride in zip(load.indices, strides, strict=True):
        total = total + index * stride
    return total


def steps_of(term: Expr, loops: tuple[Var, ...]) -> dict[Var, Expr] | None:
    """Return the coefficient of each loop in a term; None if the term is not linear."""
    form = linear_form(term, loops)
    if form is None:
        return None
    return {v: form.coefficients.get(v, as_expr(0)) for v in loops}


def pattern_nest(semantics: PrimFunc) -> Nest:
    """Return the flattened semantics of an instruction.

    Raises
    ------
    TypeError
        If the semantics are not a perfect nest, which is an error in the instruction's definition.
    """
    found = nest_of(semantics.body, semantics.facts)
    if isinstance(found, ImperfectNest):
        raise TypeError(f"semantics {semantics.name!r}: {found.reason}")
    return found
