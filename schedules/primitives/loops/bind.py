"""Bind: the iterations of a loop become thread blocks or threads of a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import OWN, conflicts, feeds_kind, is_reduction, reduction_update, writes
from ....ir.gpu import BLOCK_AXES, TAGS, THREAD_AXES, limits_of
from ....ir.loop.nodes import Block, For
from ....ir.loop.visit import walk
from ....ir.symbolic import Expr, const_value, free_vars, to_text
from ...common import kind_problems
from ...edit import Edit
from ...primitive import Primitive, Rewrite, primitive
from ...problem import Problem
from ...refs import LoopRef, Ref, block_ref, loop_ref
from ...state import State
from .split import tile_fixes


@primitive(family="loops", returns=None)
@dataclass(frozen=True, slots=True)
class Bind(Primitive):
    """Let the iterations of a loop run as thread blocks or threads of a GPU, or as virtual ones.

    Before::

        for i in range(n):
            body(i)

    After (``thread="blockIdx.x"``)::

        for i in thread(n, "blockIdx.x"):
            body(i)

    Parameters
    ----------
    loop : LoopRef
        The loop.
    thread : str
        ``blockIdx.x``, ``.y``, ``.z``; ``threadIdx.x``, ``.y``, ``.z``; ``vthread``, alone or with
        ``.x``, ``.y``, ``.z``.

    Requires
    --------
    1. There is such an axis.
    2. The loop is serial.
    3. Loops bound to one axis of a function have one extent, and none is inside another.
    4. The extent of a thread axis or a virtual one is a constant, that of a block axis a term over
       the function's symbols, and neither is above the limit.
    5. All threads of a block together are within the limit.
    6. Around a loop of thread blocks there are only loops of thread blocks, and no loop around it
       or inside it is parallel; none around it is vectorized or unrolled.
    7. It feeds no ordered iteration. It feeds a reduction only if it is a thread axis and the
       reduction is of the form ``C = C op value``: the threads then combine what each has.
    8. Its iterations are independent: no two write one element of a buffer that outlives the
       iteration, and none reads what another one writes.

    Notes
    -----
    Virtual threads are iterations of one thread that run side by side, with the barriers in
    common. Cost: quadratic in the number of blocks inside at worst. Source: TensorIR §3.2.
    """

    loop: LoopRef
    thread: str

    def structural(self, state: State) -> Iterator[Problem]:
        """Check axis, kinds, extents and kinds of iterations."""
        if self.thread not in TAGS:
            yield Problem(
                1,
                f"no thread axis {self.thread!r}; axes are {', '.join(TAGS)}",
                (self.loop,),
                {"thread": self.thread},
            )
            return
        yield from kind_problems(state, self.loop, 2)
        yield from self._same_axis(state)
        yield from self._extent(state)
        yield from self._threads(state)
        yield from self._nesting(state)
        yield from self._iterations(state)

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that iterations are independent."""
        tree = state.tree(self.loop.function)
        loop = state.loop(self.loop)
        if const_value(loop.extent) == 1:
            return
        if self.thread in BLOCK_AXES:
            found = conflicts(tree, loop, own=OWN | {"shared"})
        else:
            found = conflicts(tree, loop, common=frozenset({"shared"}))
        for conflict in found:
            if not self._is_combined(loop, conflict.block, conflict.buffer.name):
                where = (self.loop, block_ref(self.loop.function, conflict.block))
                yield Problem(8, conflict.reason, where)

    def rewrite(self, state: State) -> Rewrite:
        """Change the kind of the loop."""
        edit = Edit(state, self.loop.function)
        loop = state.loop(self.loop)
        return edit.finish(edit.replaced(loop, replace(loop, kind="thread", thread=self.thread)))

    @classmethod
    def suggest(cls, state: State, selection: Ref) -> Iterator[Primitive]:
        """The selected loop, on axes that are free, unless the target is a processor."""
        processor = state.target is not None and not state.target.is_gpu
        if processor or not isinstance(selection, LoopRef):
            return
        if state.loop(selection).kind != "serial":
            return
        used = {x.thread for x in _bound(state, selection.function)}
        for axes in (BLOCK_AXES, THREAD_AXES):
            free = next((a for a in axes if a not in used), None)
            if free is not None:
                yield cls(selection, free)

    # ------------------------------------------------------------ requirements

    def _same_axis(self, state: State) -> Iterator[Problem]:
        loop, tree = state.loop(self.loop), state.tree(self.loop.function)
        for other in _bound(state, self.loop.function):
            if other.thread != self.thread or other is loop:
                continue
            where = (self.loop, loop_ref(self.loop.function, other))
            if tree.contains(loop, other) or tree.contains(other, loop):
                message = (
                    f"loops {loop.var.name!r} and {other.var.name!r}, one inside the other, "
                    f"would both be {self.thread}"
                )
                yield Problem(3, message, where, {"thread": self.thread})
            elif not self.thread.startswith("vthread") and other.extent != loop.extent:
                message = (
                    f"{self.thread} is {to_text(other.extent)} for loop {other.var.name!r}, and "
                    f"would be {to_text(loop.extent)} for loop {loop.var.name!r}"
                )
                numbers = {"has": to_text(other.extent), "would be": to_text(loop.extent)}
                yield Problem(3, message, where, numbers, fixes=self._fit(state, other.extent))

    def _fit(self, state: State, extent: Expr) -> tuple[Primitive, ...]:
        """Cut a loop so that one part fits the axis."""
        size = const_value(extent)
        own = const_value(state.loop(self.loop).extent)
        plain = state.loop(self.loop).kind == "serial" and not state.loop(self.loop).annotations
        if size is None or not plain or size == own:
            return ()
        return tile_fixes(self.loop, size)

    def _extent(self, state: State) -> Iterator[Problem]:
        loop = state.loop(self.loop)
        limit = limits_of(state.tree(self.loop.function).function.target).axes.get(self.thread)
        size = const_value(loop.extent)
        text = to_text(loop.extent)
        if size is None and self.thread not in BLOCK_AXES:
            yield Problem(
                4,
                f"extent {text} of loop {loop.var.name!r} is no constant, as {self.thread} needs",
                (self.loop,),
                {"extent": text},
                fixes=self._tiles(state),
            )
        elif self.thread in BLOCK_AXES and self._local_extent(state, loop):
            yield Problem(
                4,
                f"extent {text} of loop {loop.var.name!r} depends on a loop around it, but is "
                "needed before the launch",
                (self.loop,),
                {"extent": text},
            )
        if size is not None and limit is not None and size > limit:
            yield Problem(
                4,
                f"extent {size} of loop {loop.var.name!r} is above {limit}, the most that "
                f"{self.thread} may have",
                (self.loop,),
                {"extent": size, "limit": limit},
                fixes=self._tiles(state) if self.thread in THREAD_AXES else (),
            )

    def _local_extent(self, state: State, loop: For) -> bool:
        above = state.tree(self.loop.function).loops_above(loop)
        return not free_vars(loop.extent).isdisjoint({x.var for x in above if x is not loop})

    def _tiles(self, state: State) -> tuple[Primitive, ...]:
        loop = state.loop(self.loop)
        plain = loop.kind == "serial" and not loop.annotations
        return tile_fixes(self.loop, 256, 32) if plain else ()

    def _threads(self, state: State) -> Iterator[Problem]:
        if self.thread not in THREAD_AXES:
            return
        extents = {x.thread: x.extent for x in _bound(state, self.loop.function)}
        extents[self.thread] = state.loop(self.loop).extent
        sizes = {a: const_value(extents[a]) or 1 for a in THREAD_AXES if a in extents}
        total = 1
        for size in sizes.values():
            total *= size
        limit = limits_of(state.tree(self.loop.function).function.target).threads
        if total > limit:
            parts = " * ".join(f"{axis} {size}" for axis, size in sizes.items())
            yield Problem(
                5,
                f"a block would have {parts} = {total} threads, more than {limit}",
                (self.loop,),
                {"threads": total, "limit": limit},
            )

    def _nesting(self, state: State) -> Iterator[Problem]:
        loop, tree = state.loop(self.loop), state.tree(self.loop.function)
        above = [x for x in tree.ancestors(loop) if isinstance(x, For)]
        below = [x for x in walk(loop.body) if isinstance(x, For)]
        wrong = [
            (x, "around")
            for x in above
            if x.kind in ("parallel", "vectorized", "unrolled")
            or (self.thread in BLOCK_AXES and x.thread not in BLOCK_AXES)
        ]
        wrong += [
            (x, "inside")
            for x in below
            if x.kind == "parallel" or (self.thread not in BLOCK_AXES and x.thread in BLOCK_AXES)
        ]
        for other, relation in wrong:
            kind = other.thread or other.kind
            yield Problem(
                6,
                f"loop {other.var.name!r} {relation} loop {loop.var.name!r} is {kind}, and that "
                f"does not go with {self.thread}",
                (self.loop, loop_ref(self.loop.function, other)),
                {"kind": kind},
            )

    def _iterations(self, state: State) -> Iterator[Problem]:
        loop, tree = state.loop(self.loop), state.tree(self.loop.function)
        for block in tree.blocks_in(loop.body):
            kinds = feeds_kind(loop, block)
            where = (self.loop, block_ref(self.loop.function, block))
            if "ordered" in kinds:
                reason = "feeds an ordered iteration"
            elif "reduce" not in kinds:
                continue
            elif self.thread not in THREAD_AXES:
                reason = f"feeds a reduction, which {self.thread} cannot combine,"
            elif reduction_update(block) is None:
                reason = "feeds a reduction that is no update C = C op value"
            elif kinds != frozenset({"reduce"}):
                reason = "feeds a reduction and something else"
            else:
                continue
            message = f"loop {loop.var.name!r} {reason} of block {block.name!r}"
            yield Problem(7, message, where, {"kinds": ", ".join(sorted(kinds))})

    @staticmethod
    def _is_combined(loop: For, block: Block, buffer: str) -> bool:
        """Whether iterations meet only in a result that the threads combine."""
        if not is_reduction(block) or "reduce" not in feeds_kind(loop, block):
            return False
        return any(a.buffer.name == buffer for a in writes(block))


def _bound(state: State, function: str) -> list[For]:
    """Give the thread-bound loops of a function."""
    return [x for x in state.tree(function).loops.values() if x.kind == "thread"]
