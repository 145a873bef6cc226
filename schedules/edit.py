"""Helpers of rewrites: fresh names and uids, substitution, and the new module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from ..errors import Json
from ..ir.analysis import Tree, outside_loops, within_loop
from ..ir.copies import replace
from ..ir.dtype import DType
from ..ir.identity import fresh_name
from ..ir.loop.decompose import bound_variables, without_variables
from ..ir.loop.nodes import (
    Alloc,
    Attribute,
    Attributes,
    Bind,
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
from ..ir.loop.ranges import loop_var
from ..ir.loop.visit import children, replaced_along, seq, substitute_in
from ..ir.naming import bounded_name
from ..ir.symbolic import (
    FALSE,
    TRUE,
    Bool,
    Expr,
    Facts,
    SymInt,
    Var,
    all_of,
    as_expr,
    conjuncts,
    const_value,
    free_vars,
    is_proved,
    simplify,
    substitute,
    var,
    without_zero_divisors,
)
from .allocations import settled, sunk
from .apply import Rewrite
from .handles import BlockRef, BufferRef, Handle, LoopRef, Removed, block_ref, loop_ref
from .state import State


class Edit:
    """A builder of the function that one step produces."""

    def __init__(self, state: State, function: str) -> None:
        """Start with a function of a state."""
        self.state = state
        self.name = function
        self.tree: Tree = state.tree(function)
        self.mint = state.minted()
        self._taken: set[str] | None = None

    def fresh(self, base: str) -> str:
        """Return a printed name that is unused in the function, from a base of any length."""
        if self._taken is None:
            self._taken = set(self.state.names(self.name))
        chosen = fresh_name(bounded_name(base), self._taken)
        self._taken.add(chosen)
        return chosen

    def loop_var(self, base: str, extent: SymInt) -> Var:
        """Return a variable with a fresh name for a loop or iteration of an extent."""
        size = const_value(as_expr(extent))
        upper = None if size is None else max(size - 1, 0)
        return var(self.fresh(base), lower=0, upper=upper)

    def loop(self, variable: Var, extent: SymInt, body: Stmt, like: For | None = None) -> For:
        """Return a loop with the kind, annotations and origins of ``like``."""
        if like is None:
            return For(self.mint(), variable, as_expr(extent), body)
        return replace(like, uid=self.mint(), var=variable, extent=as_expr(extent), body=body)

    def buffer(self, base: str, shape: tuple[Expr, ...], dtype: DType, scope: Scope) -> Buffer:
        """Return a temporary buffer with a fresh name."""
        return Buffer(self.mint(), self.fresh(base), shape, dtype, scope)

    def loop_ref(self, loop: For) -> LoopRef:
        """Return the handle of a loop of this function."""
        return loop_ref(self.name, loop)

    def block_ref(self, block: Block) -> BlockRef:
        """Return the handle of a block of this function."""
        return block_ref(self.name, block)

    def buffer_ref(self, buffer: Buffer) -> BufferRef:
        """Return the handle of a buffer of this function."""
        return BufferRef(self.name, buffer.uid, buffer.name)

    def removed(
        self, loops: Iterable[For], reason: str
    ) -> dict[Handle, tuple[Handle, ...] | Removed]:
        """Return the ``moved`` entries of removed loops."""
        return {self.loop_ref(loop): Removed(reason) for loop in loops}

    def replaced(self, old: Stmt, new: Stmt) -> Stmt:
        """Return the function's body with one statement replaced."""
        path = (old, *self.tree.ancestors(old))
        if path[-1] is not self.tree.function.body:
            raise ValueError(f"the statement to replace is not part of function {self.name!r}")
        return replaced_along(path[::-1], new)

    def finish(
        self,
        body: Stmt,
        *,
        results: tuple[Handle, ...] = (),
        moved: Mapping[Handle, tuple[Handle, ...] | Removed] | None = None,
        decisions: Mapping[str, Json] | None = None,
        buffers: tuple[Buffer, ...] | None = None,
        like: Buffer | None = None,
        place: Iterable[Buffer] = (),
    ) -> Rewrite:
        """Return the rewrite with a new body; the function is marked as scheduled.

        ``like`` is the buffer whose elements the new temporaries hold. Each temporary in ``place``
        is allocated as far inside of the loops around its uses as is proved.
        """
        old = self.tree.function
        new = replace(
            old,
            body=body,
            buffers=old.buffers if buffers is None else buffers,
            attributes=with_attribute(old.attributes, "scheduled", value=True),
        )
        new = sunk(settled(new, self.tree, like), [buffer.uid for buffer in place])
        module = self.state.module.with_functions(new)
        return Rewrite(module, results, dict(moved or {}), dict(decisions or {}))


def with_attribute(attributes: Attributes, key: str, *, value: Attribute) -> Attributes:
    """Return attributes with one set; an existing attribute keeps its position.

    Examples
    --------
    >>> with_attribute((("a", 1), ("b", 2)), "a", value=3)
    (('a', 3), ('b', 2))
    """
    return tuple((dict(attributes) | {key: value}).items())


def attribute(function: PrimFunc, key: str) -> Attribute | None:
    """Return one attribute of a function; None if it is not set."""
    return dict(function.attributes).get(key)


def rebind(
    statement: Stmt, mapping: Mapping[Var, SymInt], facts: Facts, guard: Bool = TRUE
) -> Stmt:
    """Return a statement with loop variables replaced, and the changed terms simplified.

    A divisor that becomes 0 belongs to code that never runs; it is removed. The guard becomes part
    of the predicate of every outermost block. A statement outside of blocks is put under an ``if``.
    Bodies of blocks are not visited, because they contain no loop variables.

    Parameters
    ----------
    statement : Stmt
        The statement below the loops whose variables are replaced.
    mapping : Mapping[Var, SymInt]
        The new terms of the variables.
    facts : Facts
        The facts at the statement, of the new variables.
    guard : Bool
        The condition under which the statement runs.
    """
    match statement:
        case For(extent=extent, body=body):
            copied = [b for b in _with_init(body) if _is_spatial(statement.var, b)]
            extent = _term(extent, mapping, _init_facts(copied, mapping, facts))
            variable = _loop_var(statement, extent, facts)
            if variable is not statement.var:
                mapping = {**mapping, statement.var: variable}
            inner = rebind(body, mapping, within_loop(facts, variable, extent), guard)
            return replace(statement, var=variable, extent=extent, body=inner)
        case Seq(body=parts):
            return seq(*(rebind(p, mapping, facts, guard) for p in parts))
        case Block():
            return _rebind_block(statement, mapping, facts, guard)
        case If(condition=condition, then=then, otherwise=otherwise):
            other = None if otherwise is None else rebind(otherwise, mapping, facts, guard)
            claim = _kept(condition, _with_init(statement), mapping, facts)
            if claim is FALSE:  # the inits of reductions inside may run nevertheless
                claim = substitute(condition, mapping)
            return If(claim, rebind(then, mapping, facts, guard), other)
        case Alloc():
            return _rebind_alloc(statement, mapping, facts, guard)
        case Store() | Let() | Bind():
            new = substitute_in(statement, mapping)
            return new if guard == TRUE else If(guard, new)
        case _:
            assert_never(statement)


def _loop_var(loop: For, extent: Expr, facts: Facts) -> Var:
    """Return the variable of a loop with a new extent; its declared range contains all values.

    The new extent may be larger where a guard keeps the body from running.
    """
    variable = loop.var
    if extent is loop.extent or variable.upper is None:
        return variable
    most = variable.upper + 1
    fits = extent.upper is not None and extent.upper <= most
    if fits or is_proved(extent <= most, facts):
        return variable
    return loop_var(variable.name, extent)


def _rebind_alloc(alloc: Alloc, mapping: Mapping[Var, SymInt], facts: Facts, guard: Bool) -> Alloc:
    old, body = alloc.buffer, rebind(alloc.body, mapping, facts, guard)
    shape = tuple(_term(dim, mapping, facts) for dim in old.shape)
    strides = old.strides and tuple(_term(s, mapping, facts) for s in old.strides)
    if (shape, strides) == (old.shape, old.strides):
        return replace(alloc, body=body)
    new = replace(old, shape=shape, strides=strides)
    return Alloc(new, substitute_in(body, buffers={old: new}))


def _rebind_block(block: Block, mapping: Mapping[Var, SymInt], facts: Facts, guard: Bool) -> Block:
    spatial = _init_facts(_with_init(block), mapping, facts)
    iters = tuple(
        _rebind_iter(v, mapping, facts if v.kind == "reduce" else spatial) for v in block.iters
    )
    parts = (_part(block, p, mapping, facts) for p in conjuncts(block.predicate))
    predicate = all_of(*parts, guard)
    return replace(block, iters=iters, predicate=predicate)


def _part(block: Block, part: Bool, mapping: Mapping[Var, SymInt], facts: Facts) -> Bool:
    """Return a part of a predicate; one that excludes all terms of a reduction is not simplified.

    Its init runs nevertheless, which a constant predicate could not express.
    """
    new = _kept(part, _with_init(block), mapping, facts)
    if new is FALSE and block.init is not None:
        return substitute(part, mapping)
    return new


def _kept(
    claim: Bool, blocks: Sequence[Block], mapping: Mapping[Var, SymInt], facts: Facts
) -> Bool:
    """Return a simplified condition that excludes the same inits of some blocks.

    An init runs even if its reduction has no iterations. That a loop of the reduction has
    iterations therefore does not imply a condition on the spatial iterations.
    """
    new = _claim(claim, mapping, facts)
    if not blocks or free_vars(claim).isdisjoint(mapping):
        return new
    spatial, reducing = _variables(blocks, mapping)
    before, after = free_vars(substitute(claim, mapping)), free_vars(new)
    if before.isdisjoint(spatial):
        return new
    if before & reducing and after & reducing and before & spatial <= after:
        return new  # it does not apply to the inits, and bounds the same iterations
    return _claim(claim, mapping, _init_facts(blocks, mapping, facts))


def _with_init(statement: Stmt) -> list[Block]:
    """Return the outermost blocks in a statement that have an init."""
    if isinstance(statement, Block):
        return [statement] if statement.init is not None else []
    return [b for part in children(statement) for b in _with_init(part)]


def _init_facts(blocks: Sequence[Block], mapping: Mapping[Var, SymInt], facts: Facts) -> Facts:
    """Return the facts that do not depend on the reductions of blocks."""
    return outside_loops(facts, _variables(blocks, mapping)[1]) if blocks else facts


def _variables(
    blocks: Sequence[Block], mapping: Mapping[Var, SymInt]
) -> tuple[frozenset[Var], frozenset[Var]]:
    """Return the spatial variables of blocks, and the variables of their reductions alone."""
    spatial, reducing = set[Var](), set[Var]()
    for block in blocks:
        iters = (replace(v, binding=substitute(v.binding, mapping)) for v in block.iters)
        own, other = bound_variables(iters)
        spatial |= own
        reducing |= other - own
    return frozenset(spatial), frozenset(reducing)


def started(loop: For, before: Stmt, variables: Iterable[Var], facts: Facts) -> Stmt:
    """Return a loop, under the condition that it has iterations if an init needs it.

    The init of a reduction does not run if a loop of its spatial variables is empty, but does if a
    loop of the reduction is, which the new loop becomes if its variable can only have one value in
    the terms of the former.

    Parameters
    ----------
    loop : For
        The new loop.
    before : Stmt
        The body of the loops that it replaces.
    variables : iterable of Var
        The variables of these loops.
    facts : Facts
        The facts at the loop.
    """
    old, new = _with_init(before), _with_init(loop.body)
    needed = any(
        not bound_variables(a.iters)[0].isdisjoint(variables)
        and not _is_spatial(loop.var, b)
        and loop.var in bound_variables(b.iters)[1]
        for a, b in zip(old, new, strict=True)
    )
    return If(loop.extent >= 1, loop) if needed and not is_proved(loop.extent >= 1, facts) else loop


def _is_spatial(variable: Var, block: Block) -> bool:
    return any(variable in free_vars(v.binding) for v in block.iters if v.kind != "reduce")


def _rebind_iter(item: IterVar, mapping: Mapping[Var, SymInt], facts: Facts) -> IterVar:
    extent, binding = (_term(x, mapping, facts) for x in (item.extent, item.binding))
    unchanged = extent is item.extent and binding is item.binding
    return item if unchanged else replace(item, extent=extent, binding=binding)


def _term(term: Expr, mapping: Mapping[Var, SymInt], facts: Facts) -> Expr:
    if free_vars(term).isdisjoint(mapping):
        return term
    return without_zero_divisors(simplify(substitute(term, mapping), facts))


def _claim(claim: Bool, mapping: Mapping[Var, SymInt], facts: Facts) -> Bool:
    """Replace variables in a condition.

    A variable that does not matter is removed: with a new loop that has more iterations than the
    old one, the condition would depend on it, and no longer keep the init of a reduction from
    running.
    """
    if free_vars(claim).isdisjoint(mapping):
        return claim
    for variable in sorted(free_vars(claim) & mapping.keys(), key=lambda v: v.serial):
        parts = [(p, without_variables(p, (variable,))) for p in conjuncts(claim)]
        claim = all_of(*(p if known is None else known for p, known in parts))
    return without_zero_divisors(simplify(substitute(claim, mapping), facts))
