"""The ``loop_partition`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import Tree, bound_kinds, enclosing, statements_around, within_loop
from ....ir.loop.decompose import around, starts_before_reduction
from ....ir.loop.nodes import Block, For, IterVar
from ....ir.loop.ranges import loop_var
from ....ir.loop.visit import seq, walk
from ....ir.symbolic import (
    FALSE,
    Bool,
    Expr,
    Facts,
    Proved,
    SymInt,
    Var,
    as_expr,
    free_vars,
    is_proved,
    prove,
    simplify,
    substitute,
    to_text,
)
from ...apply import Primitive, Rewrite
from ...checks import counterexample, serial_problems
from ...copies import copied, without_inits
from ...domain_checks import changed_conditions, facts_of_inits, iterates_reduction
from ...edit import Edit, rebind
from ...handles import Handle, LoopRef, block_ref
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State


@primitive(family="loops", returns=tuple[LoopRef, LoopRef])
@dataclass(frozen=True, slots=True)
class LoopPartition(Primitive):
    """Partition a loop into two consecutive loops, and simplify each under its own range.

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
        The loop to partition. It becomes the first part; its handle and all handles inside persist.
    point : SymInt
        The first iteration of the second part.

    Notes
    -----
    The second part is a copy with new handles. The results are the handles of both loops. Cost:
    linear in the size of the loop body.

    Names elsewhere: TVM ``loop_partition``; Halide ``partition`` (sets a policy; the compiler
    chooses the points).

    References
    ----------
    TensorIR (ASPLOS '23), §3.2.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
    ...     for i in range(32):
    ...         y[i] = x[i]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> parts = sch.loop_partition("i", 24)
    >>> [str(sch.state.loop(part).extent) for part in parts]
    ['24', '8']
    """

    class Requires(Requirement):
        """The requirements of ``loop_partition``."""

        SERIAL = "the loop is serial and has no annotations"
        POINT_IN_RANGE = (
            "the point is a term over the symbols of the function, provably between 0 and the "
            "extent"
        )
        INIT_IN_FIRST_PART = (
            "if the loop iterates the reduction of a block with an init, that init provably never "
            "runs in the second part, the loop binds no spatial iteration variable, and conditions "
            "that depend on the reduction still do in the first part"
        )

    loop: LoopRef
    point: SymInt

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the loop and the variables of the point."""
        yield from serial_problems(state, self.loop, self.Requires.SERIAL)
        if not free_vars(as_expr(self.point)) <= state.tree(self.loop.function).symbols():
            yield Problem(
                self.Requires.POINT_IN_RANGE,
                f"point {to_text(as_expr(self.point))} is not a term over the symbols of the "
                "function",
                (self.loop,),
            )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that the point is in range, and that no init runs in the second part."""
        tree, loop = state.tree(self.loop.function), state.loop(self.loop)
        facts, point = facts_of_inits(tree, loop), as_expr(self.point)
        claims = ((point >= 0, "less than 0"), (point <= loop.extent, "past the end"))
        for claim, relation in claims:
            verdict = prove(claim, facts)
            if not isinstance(verdict, Proved):
                yield Problem(
                    self.Requires.POINT_IN_RANGE,
                    f"point {to_text(point)} may be {relation}: loop {loop.var.name!r} has extent "
                    f"{to_text(loop.extent)}",
                    (self.loop,),
                    {"point": to_text(point), "extent": to_text(loop.extent)},
                    counterexample(verdict),
                )
                return
        for block in tree.blocks_in(loop.body):
            if block.init is not None and iterates_reduction(tree, block, loop):
                yield from self._init_problems(tree, loop, block, facts)

    def _init_problems(
        self, tree: Tree, loop: For, block: Block, facts: Facts
    ) -> Iterator[Problem]:
        """Yield a problem if an init may run in the second part, or for fewer elements."""
        point = as_expr(self.point)
        shift: dict[Var, Expr] = {loop.var: loop.var + point}
        where = (self.loop, block_ref(self.loop.function, block))
        later = [substitute(v.binding, shift) for v in _reduction_iters(loop, block)]
        inside = within_loop(tree.facts(block), loop.var, loop.extent)
        before = is_proved(point >= 1, facts) and not self._excluded(tree, loop, block)
        whole = bound_kinds(loop, block) == frozenset({"reduce"})
        whole = whole and starts_before_reduction(statements_around(tree, block), block)
        if not before or not whole or not any(is_proved(b >= 1, inside) for b in later):
            message = f"the init of block {block.name!r} may have to run in the second part"
            yield Problem(self.Requires.INIT_IN_FIRST_PART, message, where)
        elif added := self._conditions(tree, loop, block, facts):
            message = (
                f"in the first part, a condition on the reduction of block {block.name!r} becomes "
                f"{to_text(added[0])}, and would keep its init from running"
            )
            yield Problem(self.Requires.INIT_IN_FIRST_PART, message, where)

    def _conditions(self, tree: Tree, loop: For, block: Block, facts: Facts) -> tuple[Bool, ...]:
        """Return the conditions that would apply to an init in the first part only."""
        first = self._first(loop, facts)
        found = next(s for s in walk(first) if isinstance(s, Block) and s.uid == block.uid)
        path = statements_around(tree, block)
        return changed_conditions(
            tree, block, found, (*path[: path.index(loop)], *around(first, found))
        )

    def _first(self, loop: For, facts: Facts) -> For:
        """Return the loop with the iterations before the point."""
        point = as_expr(self.point)
        variable = loop_var(loop.var.name, point)
        body = rebind(loop.body, {loop.var: variable}, within_loop(facts, variable, point))
        return replace(loop, var=variable, extent=point, body=body)

    def _excluded(self, tree: Tree, loop: For, block: Block) -> bool:
        """Return whether a condition excludes all terms of the first part of a reduction.

        The constant condition would keep the init from running, too.
        """
        facts = tree.facts(loop).with_loop(loop.var, as_expr(self.point))
        guards = enclosing(tree, block, loop).guards
        return any(simplify(g.condition, facts) is FALSE for g in guards)

    def rewrite(self, state: State) -> Rewrite:
        """Shorten the loop, and insert a copy of it for the remaining iterations."""
        edit = Edit(state, self.loop.function)
        loop, point = state.loop(self.loop), as_expr(self.point)
        facts = facts_of_inits(edit.tree, loop)
        rest = simplify(loop.extent - point, facts)
        first = self._first(loop, facts)
        variable = edit.loop_var(loop.var.name, rest)
        inside = within_loop(facts, variable, rest)
        copy = copied(edit, without_inits(edit.tree, loop))
        body = rebind(copy, {loop.var: variable + point}, inside)
        second = edit.loop(variable, rest, body, loop)
        results = (edit.loop_ref(first), edit.loop_ref(second))
        return edit.finish(edit.replaced(loop, seq(first, second)), results=results)

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the partition at the last full tile of a loop with a predicate inside."""
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


def _reduction_iters(loop: For, block: Block) -> list[IterVar]:
    return [v for v in block.iters if v.kind == "reduce" and loop.var in free_vars(v.binding)]
