"""The ``split`` primitive."""

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
from ...apply import Primitive, Rewrite
from ...checks import counterexample, serial_problems
from ...edit import Edit, rebind
from ...handles import Handle, LoopRef
from ...problem import Problem
from ...registry import primitive
from ...state import State


@primitive(family="loops", returns=tuple[LoopRef, ...])
@dataclass(frozen=True, slots=True)
class Split(Primitive):
    """Split a loop into nested loops whose extents multiply to at least the old extent.

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
        The loop to split.
    factors : tuple of SymInt or None
        Extents of the new loops in iterations, outermost first. At most one factor may be None; it
        is the old extent divided by the product of the other factors, rounded up.

    Requires
    --------
    1. The loop is serial and has no annotations.
    2. There are at least two factors, and at most one of them is None.
    3. Every factor is a provably positive integer over the symbols of the function.
    4. If no factor is None, their product is provably at least the extent of the loop.

    Notes
    -----
    The blocks in the body get the predicate that the old loop variable is less than its extent,
    unless the factors provably multiply to exactly the extent. The decision ``guard`` records the
    choice: ``"predicate"`` or ``"none"``. Cost: linear in the size of the loop body.

    Names elsewhere: TVM ``split``; Halide ``split``.

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
    >>> outer, inner = sch.split("i", factors=(None, 8))
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        for i_0 in range(4):
            for i_1 in range(8):
                y[i_0 * 8 + i_1] = x[i_0 * 8 + i_1]
    """

    loop: LoopRef
    factors: tuple[SymInt | None, ...]

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the loop and the number of factors."""
        yield from serial_problems(state, self.loop, 1)
        derived = sum(f is None for f in self.factors)
        if len(self.factors) < 2 or derived > 1:
            yield Problem(
                2,
                f"got {len(self.factors)} factors, {derived} of them None; expected at least two "
                "factors, at most one of them None",
                (self.loop,),
                {"factors": len(self.factors), "derived": derived},
                fixes=tuple(_tiles(state, self.loop)),
            )
            return
        yield from self._factor_problems(state)

    def _factor_problems(self, state: State) -> Iterator[Problem]:
        symbols = state.tree(self.loop.function).symbols()
        for factor in self.factors:
            if factor is None:
                continue
            term = as_expr(factor)
            size = const_value(term)
            if size is not None and size <= 0:
                yield self._not_positive(state, term, None)
            elif not free_vars(term) <= symbols:
                yield Problem(
                    3,
                    f"factor {to_text(term)} is not a term over the symbols of the function",
                    (self.loop,),
                )

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
        """Check that the factors are positive and cover the extent."""
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
            f"the product of the factors is {to_text(total)}, which {relation} the extent "
            f"{to_text(loop.extent)} of loop {loop.var.name!r}",
            (self.loop,),
            {"product": to_text(total), "extent": to_text(loop.extent)},
            counterexample(verdict),
            (replace(self, factors=(None, *factors[1:])),),
        )

    def rewrite(self, state: State) -> Rewrite:
        """Replace the loop by nested loops, and its variable by a term over theirs."""
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
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield splits by powers of two that divide the extent, or by all if it is symbolic."""
        if isinstance(selection, LoopRef):
            yield from _tiles(state, selection)


def tile_fixes(ref: LoopRef, *sizes: int) -> tuple[Split, ...]:
    """Return splits with an inner loop of a constant extent, as fixes of other steps."""
    return tuple(Split(ref, (None, size)) for size in sizes)


def _tiles(state: State, ref: LoopRef) -> Iterator[Split]:
    loop = state.loop(ref)
    if loop.kind != "serial" or loop.annotations:
        return
    upper = const_value(loop.extent)
    for size in (8, 16, 32, 64):
        if upper is None or (size < upper and upper % size == 0):
            yield Split(ref, (None, size))
