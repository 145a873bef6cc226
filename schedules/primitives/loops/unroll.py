"""The ``unroll`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis.unrolled import (
    MOST_COPIES,
    UNROLL_LIMIT,
    copied_stores,
    copies_of,
    most_copied,
    product_text,
)
from ....ir.loop.nodes import For
from ...apply import Primitive, Rewrite
from ...checks import constant_extent_problems, kind_problems, with_kind
from ...handles import Handle, LoopRef, refs_of
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from .split import tile_fixes


@primitive(family="loops", returns=None)
@dataclass(frozen=True, slots=True)
class Unroll(Primitive):
    """Mark a short loop to be unrolled.

    Before::

        for i in range(4):
            body(i)

    After::

        for i in unrolled(4):
            body(i)

    Parameters
    ----------
    loop : LoopRef
        The loop to unroll.

    Notes
    -----
    Lowering replicates the body once per iteration; the scheduled program keeps the loop.

    Names elsewhere: TVM ``unroll``; Halide ``unroll``.

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
    >>> sch.unroll("i")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        for i in unrolled(32):
            with block("y"):
                vi = spatial(i)
                y[vi] = x[vi]
    """

    class Requires(Requirement):
        """The requirements of ``unroll``."""

        SERIAL = "the loop is serial"
        CONSTANT_EXTENT = "the extent is a constant of at most 256 iterations"
        COPIES = (
            "the function has at most 32,768 stores, counted once per iteration of the unrolled "
            "loops around them"
        )

    loop: LoopRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the kind and the extent of the loop."""
        yield from kind_problems(state, self.loop, self.Requires.SERIAL)
        yield from constant_extent_problems(
            state,
            self.loop,
            self.Requires.CONSTANT_EXTENT,
            limit=UNROLL_LIMIT,
            fixes=lambda: tile_fixes(state, self.loop, 16, 8),
        )
        yield from self._copies(state)

    def _copies(self, state: State) -> Iterator[Problem]:
        loop, tree = state.loop(self.loop), state.tree(self.loop.function)
        unrolled = replace(loop, kind="unrolled")
        around = [x for x in tree.ancestors(loop) if isinstance(x, For) and copies_of(x) > 1]
        stores = copied_stores(unrolled)
        for outer in around:
            stores *= copies_of(outer)
        if stores > MOST_COPIES:
            loops = (*reversed(around), *most_copied(unrolled))
            yield Problem(
                self.Requires.COPIES,
                f"with loop {loop.var.name!r}, unrolled loops make {product_text(loops)} copies of "
                f"a store, and {stores:,} stores in all",
                refs_of(self.loop.function, *loops),
                {"stores": stores},
            )

    def rewrite(self, state: State) -> Rewrite:
        """Change the kind of the loop."""
        return with_kind(state, self.loop, "unrolled")

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for a selected serial loop."""
        if isinstance(selection, LoopRef) and state.loop(selection).kind == "serial":
            yield cls(selection)
