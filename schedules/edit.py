"""What rewrites share: fresh names and uids, substitution with clean-up, and the new module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from ..ir.analysis import Tree, within_loop
from ..ir.dtype import DType
from ..ir.errors import Json
from ..ir.identity import fresh_name
from ..ir.loop.nodes import (
    Attribute,
    Attributes,
    Block,
    Buffer,
    For,
    If,
    IterVar,
    Let,
    PrimFunc,
    Scope,
    Seq,
    Stmt,
    Store,
)
from ..ir.loop.visit import replace_statement, seq, substitute_in
from ..ir.symbolic import (
    TRUE,
    Bool,
    Expr,
    Facts,
    SymInt,
    Var,
    as_expr,
    const_value,
    free_vars,
    simplify,
    substitute,
    var,
)
from .primitive import Rewrite
from .refs import BlockRef, BufferRef, Gone, LoopRef, Ref, block_ref, loop_ref
from .state import State


class Edit:
    """The making of one step's new function."""

    def __init__(self, state: State, function: str) -> None:
        """Start from a function of a state."""
        self.state = state
        self.name = function
        self.tree: Tree = state.tree(function)
        self.mint = state.minted()
        self._taken: set[str] | None = None

    # ------------------------------------------------------------ making parts

    def fresh(self, base: str) -> str:
        """A printed name that nothing in the function has."""
        if self._taken is None:
            self._taken = self.tree.names()
        chosen = fresh_name(base, self._taken)
        self._taken.add(chosen)
        return chosen

    def loop_var(self, base: str, extent: SymInt) -> Var:
        """A variable for a loop or an iteration of that extent, under a fresh name."""
        size = const_value(as_expr(extent))
        upper = None if size is None else max(size - 1, 0)
        return var(self.fresh(base), lower=0, upper=upper)

    def loop(self, variable: Var, extent: SymInt, body: Stmt, like: For | None = None) -> For:
        """A loop; it takes kind, notes and origins from ``like``."""
        if like is None:
            return For(self.mint(), variable, as_expr(extent), body)
        return replace(like, uid=self.mint(), var=variable, extent=as_expr(extent), body=body)

    def buffer(self, base: str, shape: tuple[Expr, ...], dtype: DType, scope: Scope) -> Buffer:
        """A temporary buffer under a fresh name."""
        return Buffer(self.mint(), self.fresh(base), shape, dtype, scope)

    def loop_ref(self, loop: For) -> LoopRef:
        """The handle of a loop of this function."""
        return loop_ref(self.name, loop)

    def block_ref(self, block: Block) -> BlockRef:
        """The handle of a block of this function."""
        return block_ref(self.name, block)

    def buffer_ref(self, buffer: Buffer) -> BufferRef:
        """The handle of a buffer of this function."""
        return BufferRef(self.name, buffer.uid, buffer.name)

    # ------------------------------------------------------------ finishing

    def gone(self, loops: Iterable[For], reason: str) -> dict[Ref, tuple[Ref, ...] | Gone]:
        """The record of loops that a step took away."""
        return {self.loop_ref(loop): Gone(reason) for loop in loops}

    def replaced(self, old: Stmt, new: Stmt) -> Stmt:
        """The function's body with one statement replaced."""
        return replace_statement(self.tree.function.body, old, new)

    def finish(
        self,
        body: Stmt,
        *,
        results: tuple[Ref, ...] = (),
        moved: Mapping[Ref, tuple[Ref, ...] | Gone] | None = None,
        decisions: Mapping[str, Json] | None = None,
        buffers: tuple[Buffer, ...] | None = None,
    ) -> Rewrite:
        """Put the new body into the module and mark the function as scheduled."""
        old = self.tree.function
        new = replace(
            old,
            body=body,
            buffers=old.buffers if buffers is None else buffers,
            attributes=with_attribute(old.attributes, "scheduled", value=True),
        )
        module = self.state.module.with_functions(new)
        return Rewrite(module, results, dict(moved or {}), dict(decisions or {}))


def with_attribute(attributes: Attributes, key: str, *, value: Attribute) -> Attributes:
    """Set one attribute, in its place if it is there already.

    Examples
    --------
    >>> with_attribute((("a", 1), ("b", 2)), "a", value=3)
    (('a', 3), ('b', 2))
    """
    return tuple((dict(attributes) | {key: value}).items())


def attribute(function: PrimFunc, key: str) -> Attribute | None:
    """Read one attribute of a function."""
    return dict(function.attributes).get(key)


# ---------------------------------------------------------------- substitution


def rebind(
    statement: Stmt, mapping: Mapping[Var, SymInt], facts: Facts, guard: Bool = TRUE
) -> Stmt:
    """Replace loop variables in extents, bindings and predicates, and simplify what changed.

    Every outermost block gets the guard as part of its predicate, and so does what stands
    outside of blocks. Bodies of blocks are not visited: they mention no loop variable.

    Parameters
    ----------
    statement : Stmt
        What is below the loops whose variables go.
    mapping : Mapping[Var, SymInt]
        The terms that stand for them.
    facts : Facts
        What holds at the statement, of the new variables.
    guard : Bool
        What has to hold for the statement to run at all.
    """
    match statement:
        case For(extent=extent, body=body):
            extent = _term(extent, mapping, facts)
            inner = rebind(body, mapping, within_loop(facts, statement.var, extent), guard)
            return replace(statement, extent=extent, body=inner)
        case Seq(body=parts):
            return seq(*(rebind(p, mapping, facts, guard) for p in parts))
        case Block():
            return _rebind_block(statement, mapping, facts, guard)
        case If(condition=condition, then=then, otherwise=otherwise):
            other = None if otherwise is None else rebind(otherwise, mapping, facts, guard)
            claim = _claim(condition, mapping, facts)
            return If(claim, rebind(then, mapping, facts, guard), other)
        case Store() | Let():
            new = substitute_in(statement, mapping)
            return new if guard == TRUE else If(guard, new)
        case _:
            assert_never(statement)


def _rebind_block(block: Block, mapping: Mapping[Var, SymInt], facts: Facts, guard: Bool) -> Block:
    iters = tuple(_rebind_iter(v, mapping, facts) for v in block.iters)
    predicate = _claim(block.predicate, mapping, facts) & guard
    return replace(block, iters=iters, predicate=predicate)


def _rebind_iter(item: IterVar, mapping: Mapping[Var, SymInt], facts: Facts) -> IterVar:
    binding = _term(item.binding, mapping, facts)
    return item if binding is item.binding else replace(item, binding=binding)


def _term(term: Expr, mapping: Mapping[Var, SymInt], facts: Facts) -> Expr:
    if free_vars(term).isdisjoint(mapping):
        return term
    return simplify(substitute(term, mapping), facts)


def _claim(claim: Bool, mapping: Mapping[Var, SymInt], facts: Facts) -> Bool:
    if free_vars(claim).isdisjoint(mapping):
        return claim
    return simplify(substitute(claim, mapping), facts)
