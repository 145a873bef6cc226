"""The ``fuse`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from ....ir.analysis import bound_kinds, enclosing, is_reduction, within_loop
from ....ir.loop.nodes import Block, For
from ....ir.loop.ranges import is_empty
from ....ir.naming import joined_name
from ....ir.symbolic import (
    Expr,
    Facts,
    SymInt,
    Var,
    const_value,
    free_vars,
    is_proved,
    maximum,
    product,
    substitute,
    to_text,
)
from ...apply import Primitive, Rewrite, check
from ...checks import same_function_problems, serial_problems
from ...domain_checks import loops_not_spatial, reduction_loops
from ...edit import Edit, rebind, started
from ...handles import Handle, LoopRef, block_ref
from ...loop_nests import ONE, ZERO
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ..reduction.decompose_reduction import DecomposeReduction


@primitive(family="loops", returns=LoopRef)
@dataclass(frozen=True, slots=True)
class Fuse(Primitive):
    """Fuse perfectly nested loops into one loop over the product of their extents.

    Before::

        for i in range(n):
            for j in range(m):
                body(i, j)

    After::

        for i_j in range(n * m):
            body(i_j // m, i_j % m)

    Parameters
    ----------
    loops : tuple of LoopRef
        The loops to fuse, outermost first. The method also accepts them separately:
        ``sch.fuse(i, j)``.

    Notes
    -----
    Cost: linear in the size of the innermost body.

    Names elsewhere: TVM ``fuse``; Halide ``fuse``.

    References
    ----------
    TensorIR (ASPLOS '23), §3.2.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(4, 8), f32], y: Out[(4, 8), f32]):
    ...     for i in range(4):
    ...         for j in range(8):
    ...             y[i, j] = x[i, j]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> fused = sch.fuse("i", "j")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(4, 8), f32], y: Out[(4, 8), f32]):
        for i_j in range(32):
            with block("y"):
                vi, vj = spatial(4, i_j // 8), spatial(8, i_j % 8)
                y[vi, vj] = x[vi, vj]
    """

    class Requires(Requirement):
        """The requirements of ``fuse``."""

        DIFFERENT_LOOPS = "there are at least two different loops, all of one function"
        SERIAL = "every loop is serial and has no annotations"
        PERFECT_NEST = "every loop but the first is the whole body of the previous loop"
        INDEPENDENT_EXTENTS = "no extent depends on the variable of another of the loops"
        INIT_BEFORE_LOOPS = (
            "the init of a reduction may run before all of the loops: the spatial iteration "
            "variables determine the iterations of those outside of the reduction, and a reduction "
            "loop that is fused with a spatial loop has at least one iteration, unless the init is "
            "decomposed"
        )

    loops: tuple[LoopRef, ...]

    def structural(self, state: State) -> Iterator[Problem]:
        """Check kinds, nesting and extents."""
        found = tuple(same_function_problems(self.loops, self.Requires.DIFFERENT_LOOPS))
        if found:
            yield from found
            return
        for ref in self.loops:
            yield from serial_problems(state, ref, self.Requires.SERIAL)
        loops = [state.loop(ref) for ref in self.loops]
        for outer, inner, refs in zip(loops, loops[1:], pairwise(self.loops), strict=False):
            if outer.body is not inner:
                yield Problem(
                    self.Requires.PERFECT_NEST,
                    f"loop {inner.var.name!r} is not the whole body of loop {outer.var.name!r}",
                    refs,
                )
        for loop, ref in zip(loops, self.loops, strict=True):
            bound = free_vars(loop.extent) & {x.var for x in loops}
            if bound:
                yield Problem(
                    self.Requires.INDEPENDENT_EXTENTS,
                    f"extent {to_text(loop.extent)} of loop {loop.var.name!r} depends on "
                    f"{', '.join(sorted(v.name for v in bound))}",
                    (ref,),
                    {"extent": to_text(loop.extent)},
                )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that the inits of reductions run as before."""
        tree = state.tree(self.loops[0].function)
        loops = tuple(state.loop(ref) for ref in self.loops)
        for block in tree.blocks_in(loops[-1].body):
            reducing = reduction_loops(tree, block)
            if block.init is None or not is_reduction(block):
                continue
            if not any(x in reducing for x in loops):
                continue
            outer = [x for x in tree.loops_above(loops[0]) if x in reducing]
            if outer and all("reduce" not in bound_kinds(x, block) for x in outer):
                yield self._init_problem(
                    state,
                    block,
                    f"results of block {block.name!r} get terms in several iterations of loop "
                    f"{outer[0].var.name!r}, which is not fused",
                )
                continue
            repeating = _repeating(block, loops)
            if repeating is not None and not outer:
                yield self._init_problem(
                    state,
                    block,
                    f"loop {repeating.var.name!r} repeats the reduction of block {block.name!r}, "
                    "whose only fused loops have one iteration; the init would be repeated, too",
                )
                continue
            before = tuple(x for x in loops if x not in reducing)
            moved = loops_not_spatial(tree, block, before, loops[0]) if before else ()
            for loop in moved:
                yield self._init_problem(
                    state,
                    block,
                    f"the init of block {block.name!r} runs in every iteration of loop "
                    f"{loop.var.name!r}, which repeats the reduction",
                )
            yield from () if moved else self._empty(state, block, loops)

    def _empty(self, state: State, block: Block, loops: tuple[For, ...]) -> Iterator[Problem]:
        """Yield a problem if an empty reduction would keep the init from running."""
        tree = state.tree(self.loops[0].function)
        spatial = frozenset[Var]().union(
            *(free_vars(v.binding) for v in block.iters if v.kind != "reduce")
        )
        if spatial.isdisjoint(x.var for x in loops):
            return
        others = [x for x in loops if x.var not in spatial]
        for loop in others:
            if not is_proved(loop.extent >= 1, tree.facts(loops[0])):
                yield self._init_problem(
                    state,
                    block,
                    f"loop {loop.var.name!r} of the reduction of block {block.name!r} may have no "
                    f"iterations (extent {to_text(loop.extent)}); then the init would not run",
                )
        first: dict[Var, SymInt] = {x.var: 0 for x in others}
        for guard in enclosing(tree, block, loops[0]).guards:
            if not first.keys().isdisjoint(free_vars(guard.condition)) and not is_proved(
                substitute(guard.condition, first), tree.facts(block)
            ):
                yield self._init_problem(
                    state,
                    block,
                    f"{guard.source} may exclude the first iteration of the reduction of block "
                    f"{block.name!r}; then the init would not run",
                )

    def _init_problem(self, state: State, block: Block, message: str) -> Problem:
        name = self.loops[0].function
        step = DecomposeReduction(block_ref(name, block), self.loops[0])
        fixes = () if check(state, step) else (step,)
        where = (*self.loops, block_ref(name, block))
        return Problem(self.Requires.INIT_BEFORE_LOOPS, message, where, fixes=fixes)

    def rewrite(self, state: State) -> Rewrite:
        """Replace the loops by one loop, and their variables by quotients and remainders."""
        edit = Edit(state, self.loops[0].function)
        loops = [state.loop(ref) for ref in self.loops]
        extents = _extents(loops, edit.tree.facts(loops[0]))
        extent = product(extents)
        variable = edit.loop_var(joined_name(tuple(x.var.name for x in loops)), extent)
        fused = edit.loop(variable, extent, loops[-1].body, loops[0])
        facts = within_loop(edit.tree.facts(loops[0]), variable, extent)
        body = rebind(loops[-1].body, _old_indices(variable, loops, extents), facts)
        origins = frozenset(o for x in loops for o in x.origins)
        fused = replace(fused, body=body, origins=origins)
        result = edit.loop_ref(fused)
        old = [x.var for x in loops]
        facts = edit.tree.facts(loops[0])
        return edit.finish(
            edit.replaced(loops[0], started(fused, loops[-1].body, old, facts)),
            results=(result,),
            moved=dict.fromkeys(self.loops, (result,)),
        )

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the fusion of the selected loop with the loop directly inside it."""
        if isinstance(selection, LoopRef):
            inner = state.loop(selection).body
            if isinstance(inner, For):
                yield cls((selection, LoopRef(selection.function, inner.uid, inner.var.name)))


def _extents(loops: list[For], facts: Facts) -> tuple[Expr, ...]:
    """Return the numbers of iterations: the product of two negative extents would be positive."""
    negative = [x for x in loops if not is_proved(x.extent >= 0, facts)]
    negative = negative if len(negative) > 1 else []
    return tuple(maximum(x.extent, 0) if x in negative else x.extent for x in loops)


def _repeating(block: Block, loops: tuple[For, ...]) -> For | None:
    """Return a loop that binds nothing, if the reduction loops of a block have one iteration.

    The binding of such a reduction loop is 0 after the fusion, so the fused loop is not a loop of
    the reduction.
    """
    reduced = [x for x in loops if "reduce" in bound_kinds(x, block)]
    if any(const_value(x.extent) != 1 for x in reduced):
        return None
    idle = (x for x in loops if not bound_kinds(x, block) and const_value(x.extent) != 1)
    return next(idle, None)


def _old_indices(variable: Var, loops: list[For], extents: tuple[Expr, ...]) -> dict[Var, Expr]:
    """Return the terms for the variables of the fused loops.

    Without iterations, quotients and remainders are 0. The new variable stands for that of the
    empty loop, which so remains a spatial one of an init, which would run otherwise.
    """
    empty = next((x for x in loops if is_empty(x)), None)
    if empty is not None:
        return {x.var: variable if x is empty else ZERO for x in loops}
    found: dict[Var, Expr] = {}
    rest: Expr = variable
    for loop, extent in zip(reversed(loops[1:]), reversed(extents[1:]), strict=True):
        divisor = extent if const_value(extent) != 0 else ONE
        found[loop.var] = rest % divisor
        rest = rest // divisor
    found[loops[0].var] = rest
    return found
