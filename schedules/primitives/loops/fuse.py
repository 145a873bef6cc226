"""The ``fuse`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from ....ir.analysis import within_loop
from ....ir.loop.nodes import For
from ....ir.symbolic import Expr, Var, free_vars, product, to_text
from ...apply import Primitive, Rewrite
from ...checks import same_function_problems, serial_problems
from ...edit import Edit, rebind
from ...handles import Handle, LoopRef
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State


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
            y[i_j // 8, i_j % 8] = x[i_j // 8, i_j % 8]
    """

    class Requires(Requirement):
        """The requirements of ``fuse``."""

        DIFFERENT_LOOPS = "there are at least two different loops, all of one function"
        SERIAL = "every loop is serial and has no annotations"
        PERFECT_NEST = "every loop but the first is the whole body of the previous loop"
        INDEPENDENT_EXTENTS = "no extent depends on the variable of another of the loops"

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

    def rewrite(self, state: State) -> Rewrite:
        """Replace the loops by one loop, and their variables by quotients and remainders."""
        edit = Edit(state, self.loops[0].function)
        loops = [state.loop(ref) for ref in self.loops]
        extent = product(tuple(x.extent for x in loops))
        variable = edit.loop_var("_".join(x.var.name for x in loops), extent)
        fused = edit.loop(variable, extent, loops[-1].body, loops[0])
        facts = within_loop(edit.tree.facts(loops[0]), variable, extent)
        body = rebind(loops[-1].body, _old_indices(variable, loops), facts)
        origins = frozenset(o for x in loops for o in x.origins)
        fused = replace(fused, body=body, origins=origins)
        result = edit.loop_ref(fused)
        return edit.finish(
            edit.replaced(loops[0], fused),
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


def _old_indices(variable: Var, loops: list[For]) -> dict[Var, Expr]:
    found: dict[Var, Expr] = {}
    rest: Expr = variable
    for loop in reversed(loops[1:]):
        found[loop.var] = rest % loop.extent
        rest = rest // loop.extent
    found[loops[0].var] = rest
    return found
