"""The ``bind`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....ir.analysis import OWN, Tree, iterated_kinds, private_copies, reorders
from ....ir.analysis.races import thread_conflicts, updates_atomically
from ....ir.loop.memory_scopes import OF_BLOCK
from ....ir.loop.nodes import For
from ....ir.loop.visit import walk
from ....ir.symbolic import Expr, const_value, free_vars, to_text
from ....target.gpus import BLOCK_AXES, TAGS, THREAD_AXES, limits_of
from ...apply import Primitive, Rewrite
from ...checks import dependence_problems, kind_problems, with_allocations_inside
from ...domain_checks import repeat_problems
from ...edit import Edit
from ...handles import Handle, LoopRef, block_ref, loop_ref
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from .split import tile_fixes


@primitive(family="loops", returns=None)
@dataclass(frozen=True, slots=True)
class Bind(Primitive):
    """Bind a loop to GPU thread blocks, threads or virtual threads.

    Before::

        for i in range(n):
            body(i)

    After (``thread="blockIdx.x"``)::

        for i in thread(n, "blockIdx.x"):
            body(i)

    Parameters
    ----------
    loop : LoopRef
        The loop to bind.
    thread : str
        The axis: ``blockIdx.x``, ``.y`` or ``.z``; ``threadIdx.x``, ``.y`` or ``.z``; ``vthread``,
        optionally with ``.x``, ``.y`` or ``.z``.

    Notes
    -----
    Virtual threads are iterations that one thread executes interleaved, with common barriers.
    Updates ``C[i] = C[i] op value`` that several threads may apply to one element, such as a
    scatter-add at indices loaded from memory, are atomic. The order of atomic updates is not
    defined, so results of floats differ in rounding between runs. Cost: at worst quadratic in the
    number of blocks inside the loop.

    Names elsewhere: TVM ``bind``; Halide ``gpu_blocks``, ``gpu_threads``.

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
    >>> sch.bind("i", "threadIdx.x")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        for i in thread(32, "threadIdx.x"):
            with block("y"):
                vi = spatial(i)
                y[vi] = x[vi]
    """

    class Requires(Requirement):
        """The requirements of ``bind``."""

        AXIS_EXISTS = "the thread axis exists"
        SERIAL = "the loop is serial"
        ONE_EXTENT_PER_AXIS = (
            "all loops of a function that are bound to one axis have the same extent"
        )
        NOT_NESTED = "no loop that is bound to the same axis is around the loop or inside it"
        KNOWN_EXTENT = (
            "the extent of a thread axis or virtual axis is a constant, and that of a block axis "
            "is a term over the symbols of the function"
        )
        AXIS_LIMIT = "a constant extent is within the limit of the axis"
        THREAD_LIMIT = "the number of threads per thread block is within the limit of the target"
        COMPATIBLE_NESTING = (
            "a loop of thread blocks is inside loops of thread blocks only, no loop around the "
            "loop or inside it is parallel, and no loop around it is vectorized or unrolled"
        )
        ITERATION_KINDS = (
            "the loop binds a reduction iteration variable only on a thread axis, where the update "
            "has the form ``C = C op value``, so that the threads can combine their partial "
            "results, or where the block has no init and each of its stores is such an update, "
            "which is then atomic"
        )
        RUNS_ONCE = "a reduction that the loop binds runs each instance once in the loop"
        INDEPENDENT_ITERATIONS = (
            "the iterations are independent: no two of them write the same element of a buffer "
            "that outlives the iteration, except by commutative updates with the same operator, "
            "and none reads an element that another one writes"
        )

    loop: LoopRef
    thread: str

    def structural(self, state: State) -> Iterator[Problem]:
        """Check axis, kinds and extents of loops, and kinds of iteration variables."""
        if self.thread not in TAGS:
            yield Problem(
                self.Requires.AXIS_EXISTS,
                f"no thread axis {self.thread!r}; thread axes are {', '.join(TAGS)}",
                (self.loop,),
                {"thread": self.thread},
            )
            return
        yield from kind_problems(state, self.loop, self.Requires.SERIAL)
        yield from self._same_axis(state)
        yield from self._extent(state)
        yield from self._threads(state)
        yield from self._nesting(state)
        yield from self._iterations(state)

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that the iterations are independent."""
        tree = state.tree(self.loop.function)
        loop = state.loop(self.loop)
        if const_value(loop.extent) == 1:
            return
        yield from self._repeated(tree, state, loop)
        found = thread_conflicts(tree, loop, self.thread)
        requirement = self.Requires.INDEPENDENT_ITERATIONS
        yield from dependence_problems(state, self.loop, found, requirement)

    def _repeated(self, tree: Tree, state: State, loop: For) -> Iterator[Problem]:
        """Check that the threads combine each term of a reduction once."""
        for block in tree.blocks_in(loop.body):
            if "reduce" in iterated_kinds(tree, loop, block) and not updates_atomically(
                block, self.thread
            ):
                ref = block_ref(self.loop.function, block)
                yield from repeat_problems(state, ref, self.Requires.RUNS_ONCE, loop)

    def rewrite(self, state: State) -> Rewrite:
        """Change the kind of the loop, and allocate the temporaries of an iteration inside it."""
        edit = Edit(state, self.loop.function)
        loop = state.loop(self.loop)
        own = OWN | OF_BLOCK if self.thread in BLOCK_AXES else OWN
        copies = private_copies(edit.tree, loop, own)
        uids = [b.uid for b in copies if self.thread in BLOCK_AXES or b.scope not in OF_BLOCK]
        made = edit.finish(edit.replaced(loop, replace(loop, kind="thread", thread=self.thread)))
        return with_allocations_inside(made, self.loop, uids)

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the free axes for a selected serial loop, unless the target is a CPU."""
        if not isinstance(selection, LoopRef):
            return
        target = state.target_of(selection.function)
        if target is not None and not target.is_gpu:
            return
        if state.loop(selection).kind != "serial":
            return
        used = {x.thread for x in _bound(state, selection.function)}
        for axes in (BLOCK_AXES, THREAD_AXES):
            free = next((a for a in axes if a not in used), None)
            if free is not None:
                yield cls(selection, free)

    def _same_axis(self, state: State) -> Iterator[Problem]:
        loop, tree = state.loop(self.loop), state.tree(self.loop.function)
        for other in _bound(state, self.loop.function):
            if other.thread != self.thread or other is loop:
                continue
            where = (self.loop, loop_ref(self.loop.function, other))
            if tree.contains(loop, other) or tree.contains(other, loop):
                message = (
                    f"loops {loop.var.name!r} and {other.var.name!r} are nested, so they cannot "
                    f"both be bound to {self.thread}"
                )
                yield Problem(self.Requires.NOT_NESTED, message, where, {"thread": self.thread})
            elif not self.thread.startswith("vthread") and other.extent != loop.extent:
                message = (
                    f"{self.thread} has extent {to_text(other.extent)} in loop {other.var.name!r}, "
                    f"but would have extent {to_text(loop.extent)} in loop {loop.var.name!r}"
                )
                numbers = {"has": to_text(other.extent), "would be": to_text(loop.extent)}
                yield Problem(
                    self.Requires.ONE_EXTENT_PER_AXIS,
                    message,
                    where,
                    numbers,
                    fixes=self._fit(state, other.extent),
                )

    def _fit(self, state: State, extent: Expr) -> tuple[Primitive, ...]:
        """Return splits that fit one part of the loop to the axis."""
        size = const_value(extent)
        own = const_value(state.loop(self.loop).extent)
        plain = state.loop(self.loop).kind == "serial" and not state.loop(self.loop).annotations
        if not size or not plain or size == own:
            return ()
        return tile_fixes(state, self.loop, size)

    def _extent(self, state: State) -> Iterator[Problem]:
        loop = state.loop(self.loop)
        limit = limits_of(state.target_of(self.loop.function)).axes.get(self.thread)
        size = const_value(loop.extent)
        text = to_text(loop.extent)
        if size is None and self.thread not in BLOCK_AXES:
            yield Problem(
                self.Requires.KNOWN_EXTENT,
                f"extent {text} of loop {loop.var.name!r} is not a constant, which {self.thread} "
                "requires",
                (self.loop,),
                {"extent": text},
                fixes=self._tiles(state),
            )
        elif self.thread in BLOCK_AXES and self._local_extent(state, loop):
            yield Problem(
                self.Requires.KNOWN_EXTENT,
                f"extent {text} of loop {loop.var.name!r} depends on a loop around it, but the "
                "grid size must be known at launch",
                (self.loop,),
                {"extent": text},
            )
        if size is not None and limit is not None and size > limit:
            yield Problem(
                self.Requires.AXIS_LIMIT,
                f"extent {size} of loop {loop.var.name!r} is greater than {limit}, the limit of "
                f"{self.thread}",
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
        return tile_fixes(state, self.loop, 256, 32) if plain else ()

    def _threads(self, state: State) -> Iterator[Problem]:
        if self.thread not in THREAD_AXES:
            return
        extents = {x.thread: x.extent for x in _bound(state, self.loop.function)}
        extents[self.thread] = state.loop(self.loop).extent
        sizes = {a: const_value(extents[a]) or 1 for a in THREAD_AXES if a in extents}
        total = 1
        for size in sizes.values():
            total *= size
        limit = limits_of(state.target_of(self.loop.function)).threads
        if total > limit:
            parts = " * ".join(f"{size} ({axis})" for axis, size in sizes.items())
            product = f"{parts} = {total}" if len(sizes) > 1 else parts
            yield Problem(
                self.Requires.THREAD_LIMIT,
                f"a thread block would have {product} threads; the limit is {limit}",
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
                self.Requires.COMPATIBLE_NESTING,
                f"loop {other.var.name!r} {relation} loop {loop.var.name!r} is {kind}, which is "
                f"incompatible with {self.thread}",
                (self.loop, loop_ref(self.loop.function, other)),
                {"kind": kind},
            )

    def _iterations(self, state: State) -> Iterator[Problem]:
        loop, tree = state.loop(self.loop), state.tree(self.loop.function)
        for block in tree.blocks_in(loop.body):
            kinds = iterated_kinds(tree, loop, block)
            where = (self.loop, block_ref(self.loop.function, block))
            if "reduce" not in kinds or updates_atomically(block, self.thread):
                continue
            elif self.thread not in THREAD_AXES:
                reason = (
                    f"binds a reduction of block {block.name!r}, but "
                    f"{self.thread} cannot combine partial results"
                )
            elif not reorders(block):
                reason = (
                    f"binds a reduction of block {block.name!r}, whose update does "
                    "not have the form C = C op value"
                )
            elif kinds != frozenset({"reduce"}):
                reason = f"binds a reduction and another iteration variable of block {block.name!r}"
            else:
                continue
            message = f"loop {loop.var.name!r} {reason}"
            yield Problem(
                self.Requires.ITERATION_KINDS, message, where, {"kinds": ", ".join(sorted(kinds))}
            )


def _bound(state: State, function: str) -> list[For]:
    """Return the thread-bound loops of a function."""
    return [x for x in state.tree(function).loops.values() if x.kind == "thread"]
