"""Split: one loop becomes several nested ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import within_loops
from ....ir.loop.nodes import For, Stmt
from ....ir.symbolic import (
    TRUE,
    Expr,
    Facts,
    Proved,
    Refuted,
    SymInt,
    as_expr,
    ceildiv,
    const_value,
    eq,
    free_vars,
    product,
    prove,
    to_text,
)
from ...common import counterexample, serial_problems
from ...edit import Edit, rebind
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import LoopRef, Ref
from ...state import State


@primitive(family="loops", returns=tuple[LoopRef, ...])
@dataclass(frozen=True, slots=True)
class Split(Primitive):
    """Cut one loop into nested loops whose extents multiply to at least the old one.

    Before::

        for i in range(n):
            body(i)

    After (``factors=(None, 8)``)::

        for i_0 in range(ceildiv(n, 8)):
            for i_1 in range(8):
                if i_0 * 8 + i_1 < n:
                    body(i_0 * 8 + i_1)

    Parameters
    ----------
    loop : LoopRef
        The loop to cut.
    factors : tuple of SymInt or None
        Extents of the new loops, outermost first. One may be None: it is derived, rounding up.

    Requires
    --------
    1. The loop is serial and carries no annotations.
    2. There are at least two factors, and at most one of them is None.
    3. Every factor is a provably positive integer, and mentions function symbols only.
    4. Where no factor is None, they provably multiply to at least the extent of the loop.

    Notes
    -----
    Blocks below get the predicate that the old variable stays below its extent, unless the
    factors provably multiply to exactly the extent; the decision ``guard`` says which.
    Cost: linear in the size of the loop's body. Source: TensorIR §3.2.
    """

    loop: LoopRef
    factors: tuple[SymInt | None, ...]

    def structural(self, state: State) -> Iterator[Problem]:
        """Check kinds and arity."""
        yield from serial_problems(state, self.loop, 1)
        derived = sum(f is None for f in self.factors)
        if len(self.factors) < 2 or derived > 1:
            yield Problem(
                2,
                f"{len(self.factors)} factors of which {derived} are None; there have to be at "
                "least two, and at most one None",
                (self.loop,),
                {"factors": len(self.factors), "derived": derived},
                fixes=tuple(_tiles(state, self.loop)),
            )
            return
        yield from self._foreign(state)

    def _foreign(self, state: State) -> Iterator[Problem]:
        symbols = state.tree(self.loop.function).symbols()
        for factor in self.factors:
            if factor is None:
                continue
            term = as_expr(factor)
            size = const_value(term)
            if size is not None and size <= 0:
                yield self._not_positive(state, term, None)
            elif not free_vars(term) <= symbols:
                yield Problem(3, f"factor {to_text(term)} mentions a loop variable", (self.loop,))

    def _not_positive(self, state: State, term: Expr, found: dict[str, int] | None) -> Problem:
        return Problem(
            3,
            f"factor {to_text(term)} is not provably positive",
            (self.loop,),
            {"factor": to_text(term)},
            found,
            tuple(_tiles(state, self.loop)),
        )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that factors are positive and cover the loop."""
        facts = state.tree(self.loop.function).facts(state.loop(self.loop))
        positive = True
        for factor in self.factors:
            term = None if factor is None else as_expr(factor)
            if term is None or const_value(term) is not None:
                continue
            verdict = prove(term >= 1, facts)
            if not isinstance(verdict, Proved):
                positive = False
                yield self._not_positive(state, term, counterexample(verdict))
        if positive and None not in self.factors:
            yield from self._uncovered(state, facts)

    def _uncovered(self, state: State, facts: Facts) -> Iterator[Problem]:
        loop = state.loop(self.loop)
        factors = tuple(as_expr(f) for f in self.factors if f is not None)
        total = product(factors)
        verdict = prove(total >= loop.extent, facts)
        if isinstance(verdict, Proved):
            return
        relation = "is less than" if isinstance(verdict, Refuted) else "may be less than"
        yield Problem(
            4,
            f"the factors multiply to {to_text(total)}, which {relation} the extent "
            f"{to_text(loop.extent)} of loop {loop.var.name!r}",
            (self.loop,),
            {"product": to_text(total), "extent": to_text(loop.extent)},
            counterexample(verdict),
            (replace(self, factors=(None, *factors[1:])),),
        )

    def rewrite(self, state: State) -> Rewrite:
        """Nest the new loops and put their combination in the old variable's place."""
        edit = Edit(state, self.loop.function)
        loop = state.loop(self.loop)
        outside = edit.tree.facts(loop)
        extents = self._extents(loop)
        names = [f"{loop.var.name}_{k}" for k in range(len(extents))]
        variables = [edit.loop_var(n, e) for n, e in zip(names, extents, strict=True)]
        index: Expr = variables[0]
        for variable, extent in zip(variables[1:], extents[1:], strict=True):
            index = index * extent + variable
        exact = isinstance(prove(eq(product(extents), loop.extent), outside), Proved)
        new = [edit.loop(v, e, loop.body, loop) for v, e in zip(variables, extents, strict=True)]
        facts = within_loops(outside, tuple(new))
        guard = TRUE if exact else index < loop.extent
        body: Stmt = rebind(loop.body, {loop.var: index}, facts, guard)
        nest: list[For] = []
        for outer in reversed(new):
            body = replace(outer, body=body)
            nest.insert(0, body)
        results = tuple(edit.loop_ref(x) for x in nest)
        return edit.finish(
            edit.replaced(loop, body),
            results=results,
            moved={self.loop: results},
            decisions={"guard": "none" if exact else "predicate"},
        )

    def _extents(self, loop: For) -> tuple[Expr, ...]:
        others = product(tuple(as_expr(f) for f in self.factors if f is not None))
        derived = ceildiv(loop.extent, others)
        return tuple(derived if f is None else as_expr(f) for f in self.factors)

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """Tiles by powers of two that are not larger than the loop."""
        if isinstance(selection, LoopRef):
            yield from _tiles(state, selection)


def tile_fixes(ref: LoopRef, *sizes: int) -> tuple[Split, ...]:
    """Splits whose inner loop has a constant extent, as fixes of other steps."""
    return tuple(Split(ref, (None, size)) for size in sizes)


def _tiles(state: State, ref: LoopRef) -> Iterator[Split]:
    loop = state.loop(ref)
    if loop.kind != "serial" or loop.annotations:
        return
    upper = const_value(loop.extent)
    for size in (8, 16, 32, 64):
        if upper is None or (size < upper and upper % size == 0):
            yield Split(ref, (None, size))
