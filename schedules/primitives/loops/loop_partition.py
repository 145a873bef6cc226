"""Loop partition: one loop becomes two, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import feeds_kind, within_loop
from ....ir.loop.nodes import Block, For, IterVar, Let, Stmt
from ....ir.loop.visit import children, seq, substitute_in, with_children
from ....ir.symbolic import (
    Expr,
    Facts,
    Proved,
    SymInt,
    Var,
    as_expr,
    free_vars,
    prove,
    simplify,
    substitute,
    to_text,
    var,
)
from ...common import counterexample, serial_problems
from ...edit import Edit, rebind
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import LoopRef, Ref
from ...state import State


@primitive(family="loops", returns=tuple[LoopRef, LoopRef])
@dataclass(frozen=True, slots=True)
class LoopPartition(Primitive):
    """Run a loop in two parts, so that what holds in one of them need not be checked there.

    Before::

        for i in range(ceildiv(n, 8)):
            for j in range(8):
                if i * 8 + j < n:
                    body(i, j)

    After (``point="n // 8"``)::

        for i in range(n // 8):
            for j in range(8):
                body(i, j)
        for i_1 in range(ceildiv(n, 8) - n // 8):
            for j_1 in range(8):
                if (i_1 + n // 8) * 8 + j_1 < n:
                    body(i_1 + n // 8, j_1)

    Parameters
    ----------
    loop : LoopRef
        The loop. It keeps its handle, as all in it do, and becomes the first part.
    point : SymInt
        The first iteration of the second part.

    Requires
    --------
    1. The loop is serial and carries no annotations.
    2. The point mentions function symbols only, and provably lies between 0 and the extent.
    3. Where the loop feeds a reduction that holds its initialisation, no reduction starts in the
       second part.

    Notes
    -----
    The second part is a copy with handles of its own. Gives both loops. Source: TensorIR §3.2.
    """

    loop: LoopRef
    point: SymInt

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the kind and what the point mentions."""
        yield from serial_problems(state, self.loop, 1)
        if not free_vars(as_expr(self.point)) <= state.tree(self.loop.function).symbols():
            yield Problem(
                2, f"point {to_text(as_expr(self.point))} mentions a loop variable", (self.loop,)
            )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check where the point lies, and where reductions start."""
        tree, loop = state.tree(self.loop.function), state.loop(self.loop)
        facts, point = tree.facts(loop), as_expr(self.point)
        for claim, relation in ((point >= 0, "below 0"), (point <= loop.extent, "past the end")):
            verdict = prove(claim, facts)
            if not isinstance(verdict, Proved):
                yield Problem(
                    2,
                    f"point {to_text(point)} may lie {relation} of loop {loop.var.name!r}, whose "
                    f"extent is {to_text(loop.extent)}",
                    (self.loop,),
                    {"point": to_text(point), "extent": to_text(loop.extent)},
                    counterexample(verdict),
                )
                return
        shift: dict[Var, Expr] = {loop.var: loop.var + point}
        for block in tree.blocks_in(loop.body):
            if block.init is not None and "reduce" in feeds_kind(loop, block):
                later = [substitute(v.binding, shift) for v in _fed(loop, block)]
                inside = within_loop(tree.facts(block), loop.var, loop.extent)
                if not any(isinstance(prove(b >= 1, inside), Proved) for b in later):
                    yield Problem(
                        3,
                        f"a reduction of block {block.name!r} may start in the second part",
                        (self.loop,),
                    )

    def rewrite(self, state: State) -> Rewrite:
        """Shorten the loop, and put a copy of it for the rest behind it."""
        edit = Edit(state, self.loop.function)
        loop, point = state.loop(self.loop), as_expr(self.point)
        facts = edit.tree.facts(loop)
        rest = simplify(loop.extent - point, facts)
        first = replace(loop, extent=point, body=_cleaned(loop, point, facts))
        variable = edit.loop_var(loop.var.name, rest)
        inside = within_loop(facts, variable, rest)
        copy = _copied(edit, _without_starts(loop.body, loop))
        body = rebind(copy, {loop.var: variable + point}, inside)
        second = edit.loop(variable, rest, body, loop)
        results = (edit.loop_ref(first), edit.loop_ref(second))
        return edit.finish(edit.replaced(loop, seq(first, second)), results=results)

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """The part of a guarded loop in which its guard holds."""
        if not isinstance(selection, LoopRef):
            return
        tree, loop = state.tree(selection.function), state.loop(selection)
        for block in tree.blocks_in(loop.body):
            for item in block.iters:
                inner = [x for x in tree.loops_above(block) if x is not loop]
                tile = substitute(item.binding, {loop.var: 1} | {x.var: 0 for x in inner})
                zero = substitute(item.binding, {loop.var: 0} | {x.var: 0 for x in inner})
                step = simplify(tile - zero, Facts())
                if loop.var in free_vars(block.predicate) and step.lower and step.lower > 0:
                    yield cls(selection, item.extent // step)
                    return


def _fed(loop: For, block: Block) -> list[IterVar]:
    return [v for v in block.iters if v.kind == "reduce" and loop.var in free_vars(v.binding)]


def _cleaned(loop: For, point: Expr, facts: Facts) -> Stmt:
    """The body with what the smaller range makes superfluous taken out."""
    return rebind(loop.body, {loop.var: loop.var}, facts.with_loop(loop.var, point))


def _without_starts(statement: Stmt, loop: For) -> Stmt:
    """Drop the initialisations that the first part has run."""
    new = with_children(statement, tuple(_without_starts(c, loop) for c in children(statement)))
    if isinstance(new, Block) and new.init is not None and "reduce" in feeds_kind(loop, new):
        return replace(new, init=None)
    return new


def _copied(edit: Edit, statement: Stmt) -> Stmt:
    """Copy a statement under fresh names and handles."""
    inner = with_children(statement, tuple(_copied(edit, c) for c in children(statement)))
    match inner:
        case For(var=variable, extent=extent):
            new = edit.loop_var(variable.name, extent)
            renamed = substitute_in(inner.body, {variable: new})
            return replace(inner, uid=edit.mint(), var=new, body=renamed)
        case Block():
            return _copied_block(edit, inner)
        case Let(var=variable):
            name = edit.fresh(variable.name)
            value = var(name, lower=variable.lower, upper=variable.upper)
            return replace(inner, var=value, body=substitute_in(inner.body, {variable: value}))
        case _:
            return inner


def _copied_block(edit: Edit, block: Block) -> Block:
    fresh: dict[Var, Var] = {v.var: edit.loop_var(v.var.name, v.extent) for v in block.iters}
    copy = replace(block, uid=edit.mint(), name=edit.fresh(block.name))
    renamed = substitute_in(copy, fresh)
    if not isinstance(renamed, Block):
        raise TypeError(f"block {block.name!r} became another statement")
    iters = tuple(replace(v, var=fresh[v.var]) for v in renamed.iters)
    return replace(renamed, iters=iters)
