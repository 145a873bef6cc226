"""The ``compute_at`` primitive."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from ....ir.analysis import (
    Interval,
    Tree,
    accesses,
    reads,
    region_at,
    statements_around,
    within_dimension,
    writes,
)
from ....ir.loop.decompose import reduction_position
from ....ir.loop.nodes import Block, Buffer, For, Stmt
from ....ir.loop.visit import loads
from ....ir.symbolic import (
    Expr,
    Facts,
    FloorDiv,
    Mod,
    Var,
    ceildiv,
    const_value,
    is_proved,
    linear_form,
    ne,
    postorder,
)
from ...allocations import parts_of
from ...apply import Primitive, Rewrite, check
from ...domain_checks import (
    branch_around,
    condition_of,
    described_problems,
    whole_reduction_problems,
)
from ...edit import Edit
from ...handles import BlockRef, Handle, LoopRef, loop_ref, refs_of
from ...loop_nests import ZERO, before, loops_removed, nest, whole, without
from ...motion_checks import (
    Movable,
    constant_iters,
    dependence_problems,
    extent_problems,
    injective_write_problems,
    movable_problems,
    parallel_problems,
    vector_problems,
)
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State


@primitive(family="placement", returns=None, isolated=True)
@dataclass(frozen=True, slots=True)
class ComputeAt(Primitive):
    """Move a producer into a loop of its consumers, computing the region that one iteration reads.

    Before::

        for i in range(n):
            T[i] = A[i] * 2
        for i0 in range(n // 8):
            for i1 in range(8):
                C[i0 * 8 + i1] = T[i0 * 8 + i1] + 1

    After (``loop=i0``)::

        for i0 in range(n // 8):
            for ax in range(8):
                T[i0 * 8 + ax] = A[i0 * 8 + ax] * 2
            for i1 in range(8):
                C[i0 * 8 + i1] = T[i0 * 8 + i1] + 1

    Parameters
    ----------
    block : BlockRef
        The producer.
    loop : LoopRef
        The destination loop. The producer is inserted before its first consumer in the loop body.

    Notes
    -----
    The region to compute is the bounding box of the elements that one iteration of the destination
    loop reads. Its extents are constant if the extents of the loops inside the destination are. The
    block gets new loops. If the old loops, branches and predicates run only a part of its domain,
    such as a triangle, the new loops and a predicate run the same part. The temporaries that the
    block accesses are allocated in the innermost loop around their uses of which each iteration
    writes before it reads. Cost: linear in the size of the function.

    Names elsewhere: TVM ``compute_at``; Halide ``compute_at``.

    References
    ----------
    TensorIR (ASPLOS '23), §3.2.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
    ...     t = alloc((32,), f32)
    ...     for i in range(32):
    ...         with block("t"):
    ...             vi = spatial(i)
    ...             t[vi] = x[vi] * 2.0
    ...     for j in range(32):
    ...         with block("y"):
    ...             vj = spatial(j)
    ...             y[vj] = t[vj] + 1.0
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.compute_at("t", "j")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        for j in range(32):
            t = alloc((32,), f32)
            with block("t"):
                vi = spatial(j)
                t[vi] = x[vi] * 2.0
            with block("y"):
                vj = spatial(j)
                y[vj] = t[vj] + 1.0
    """

    class Requires(Requirement):
        """The requirements of ``compute_at``."""

        LOOP_NOT_AROUND = "the loop is not around the block"
        NO_ORDERED_ITERATIONS = "the block has no ordered iteration variables"
        ONE_STORE = "the block stores one element of one buffer per iteration"
        WRITES_TEMPORARY = "the block writes a temporary"
        ONLY_WRITER = "no other block writes the buffer that the block writes"
        IGNORES_OLD_CONTENTS = (
            "the block does not depend on earlier contents of its buffer: it does not update in "
            "place, and a reduction has its init"
        )
        DESCRIBED_DOMAIN = (
            "a condition on its iteration variables describes which iterations of the block run"
        )
        WHOLE_REDUCTION = (
            "the statements that move with the block compute its whole reduction, each term once, "
            "and its init can be separated from its reduction loops"
        )
        EXTENTS_IN_SCOPE = (
            "the extents of the iteration variables of the block do not depend on loops that are "
            "not around the loop"
        )
        INJECTIVE_WRITES = (
            "the write indices of the block are injective in its spatial iteration variables"
        )
        CONSUMERS_IN_LOOP = (
            "all blocks that read the temporary are in the loop, and so are their inits"
        )
        KEEPS_DEPENDENCES = (
            "the block precedes the loop, and no block between it and the end of the loop writes "
            "its inputs"
        )
        NOT_VECTORIZED = "neither the loop nor a loop around it is vectorized"
        INDEPENDENT_ITERATIONS = (
            "different iterations of a parallel or thread-bound loop around the destination do not "
            "write the same elements, unless each has its own copy of the temporary"
        )

    block: BlockRef
    loop: LoopRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the block, its consumers and the blocks between them."""
        tree, block, loop = (
            state.tree(self.block.function),
            state.block(self.block),
            state.loop(self.loop),
        )
        where = (self.block, self.loop)
        if tree.contains(loop, block):
            yield Problem(
                self.Requires.LOOP_NOT_AROUND,
                f"loop {loop.var.name!r} is already around block {block.name!r}",
                where,
            )
            return
        found = tuple(self._movable(state))
        if found:
            yield from found
            return
        buffer = writes(block)[0].buffer
        readers = [b for b in tree.outermost_blocks() if reads(b, buffer)]
        outside = [b for b in readers if not tree.contains(loop, b)]
        if outside or not readers:
            names = ", ".join(repr(b.name) for b in outside)
            yield Problem(
                self.Requires.CONSUMERS_IN_LOOP,
                f"no block reads {buffer.name!r}"
                if not readers
                else f"{buffer.name!r} is read by {names} outside of loop {loop.var.name!r}",
                (*where, *refs_of(self.block.function, *outside, buffer)),
                {"readers": ", ".join(b.name for b in outside)},
                fixes=tuple(self._destinations(state, readers)),
            )
            return
        inits = [b for b in readers if _starts_before(tree, b, loop, buffer)]
        if inits:
            names = ", ".join(repr(b.name) for b in inits)
            yield Problem(
                self.Requires.CONSUMERS_IN_LOOP,
                f"the init of {names} reads {buffer.name!r} before loop {loop.var.name!r}, which "
                "iterates the reduction",
                (*where, *refs_of(self.block.function, *inits, buffer)),
                fixes=tuple(self._destinations(state, readers)),
            )
            return
        yield from dependence_problems(
            state, self.block, self.Requires.KEEPS_DEPENDENCES, loop, later=True
        )
        yield from vector_problems(state, self.loop, self.Requires.NOT_VECTORIZED)

    def _movable(self, state: State) -> Iterator[Problem]:
        requires = self.Requires
        found = Movable(
            requires.NO_ORDERED_ITERATIONS,
            requires.ONE_STORE,
            requires.ONLY_WRITER,
            requires.IGNORES_OLD_CONTENTS,
            requires.WRITES_TEMPORARY,
        )
        yield from movable_problems(state, self.block, found)
        yield from extent_problems(state, self.block, self.loop, requires.EXTENTS_IN_SCOPE)

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that the block runs the same iterations, with the same results."""
        tree, block, loop = (
            state.tree(self.block.function),
            state.block(self.block),
            state.loop(self.loop),
        )
        old = branch_around(tree, block, loop)
        found = (
            *injective_write_problems(state, self.block, self.Requires.INJECTIVE_WRITES),
            *described_problems(state, self.block, self.Requires.DESCRIBED_DOMAIN, old),
            *whole_reduction_problems(state, self.block, self.Requires.WHOLE_REDUCTION, old),
        )
        yield from found or parallel_problems(
            state, self, self.loop, self.Requires.INDEPENDENT_ITERATIONS
        )

    def _destinations(self, state: State, readers: list[Block]) -> Iterator[ComputeAt]:
        """Yield the step at the innermost legal loop around all consumers."""
        if not readers:
            return
        tree, block = state.tree(self.block.function), state.block(self.block)
        around = [
            x for x in tree.loops_above(readers[0]) if all(tree.contains(x, b) for b in readers)
        ]
        buffer = writes(block)[0].buffer
        free = [
            x
            for x in reversed(around)
            if not tree.contains(x, block)
            and not any(_starts_before(tree, b, x, buffer) for b in readers)
        ]
        steps = (ComputeAt(self.block, loop_ref(self.block.function, x)) for x in free)
        yield from itertools.islice((s for s in steps if not check(state, s)), 1)

    def rewrite(self, state: State) -> Rewrite:
        """Insert the block under new loops at the destination, and remove the old loops."""
        edit = Edit(state, self.block.function)
        tree, block, loop = edit.tree, state.block(self.block), state.loop(self.loop)
        buffer = writes(block)[0].buffer
        spans = _needed(tree, block, loop, buffer)
        condition = condition_of(tree, block, branch_around(tree, block, loop))
        moved = nest(edit, block, spans, tree.facts(loop.body), condition)
        body = before(tree.function.body, _anchor(tree, loop, buffer), moved)
        kept = without(body, block)
        if kept is None:
            raise TypeError(f"the body of {self.block.function!r} is empty")
        removed = edit.removed(loops_removed(tree, kept), f"moved block {block.name!r} out of it")
        used = dict.fromkeys(access.buffer for access in accesses(block))
        return edit.finish(kept, moved=removed, place=used)

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the loops around the first consumer of the selected block."""
        if not isinstance(selection, BlockRef):
            return
        tree, block = state.tree(selection.function), state.block(selection)
        for buffer in dict.fromkeys(a.buffer for a in writes(block)):
            readers = [b for b in tree.outermost_blocks() if b is not block and reads(b, buffer)]
            for loop in tree.loops_above(readers[0]) if readers else ():
                if not tree.contains(loop, block):
                    yield cls(selection, loop_ref(selection.function, loop))


def _starts_before(tree: Tree, block: Block, loop: For, buffer: Buffer) -> bool:
    """Return whether the init of a block reads a buffer before the iterations of a loop."""
    if block.init is None or all(load.buffer is not buffer for load in loads(block.init)):
        return False
    path = statements_around(tree, block)
    first = (*path, block)[reduction_position(path, block)]
    return first is loop or not tree.contains(loop, first)


def _needed(tree: Tree, block: Block, loop: For, buffer: Buffer) -> dict[Var, Interval]:
    """Return the interval of each iteration variable that one iteration of the loop needs."""
    facts = tree.facts(loop.body)
    found = tuple(a for b in tree.blocks_in(loop) for a in reads(b, buffer))
    box = region_at(tree, loop, found, facts)
    spans = whole(block)
    alloc = tree.allocs[buffer]
    if alloc is not None:  # values that the loops around the allocation determine do not change
        used = frozenset[Var]().union(*(i.free for i in writes(block)[0].indices))
        constant = constant_iters(block, alloc)
        spans |= {v: span for v, span in constant.items() if v not in used}
    if box is None:
        return spans
    extents = {v.var: v.extent for v in block.iters}
    for index, span in zip(writes(block)[0].indices, box, strict=True):
        used = [v for v in extents if v in index.free]
        values = _values(index, used[0], span) if len(used) == 1 else None
        in_scope = index.free - set(used) <= tree.symbols()
        if values is not None and in_scope and _is_defined(values, facts):
            spans[used[0]] = within_dimension(values, extents[used[0]], facts)
    return spans


def _values(index: Expr, variable: Var, span: Interval) -> Interval | None:
    """Return an interval with the values of a variable at which an index is in an interval."""
    match index:
        case FloorDiv(numerator=numerator, divisor=size) if numerator is variable:
            return Interval(span.start * size, span.extent * size, span.exhaustive)
        case _:
            form = linear_form(index, (variable,))
    factor = None if form is None else const_value(form.coefficients.get(variable, ZERO))
    if form is None or not factor:
        return None
    first = span.start - form.rest
    if factor < 0:
        first, factor = 1 - first - span.extent, -factor
    return Interval(ceildiv(first, factor), ceildiv(span.extent, factor), span.exhaustive)


def _is_defined(span: Interval, facts: Facts) -> bool:
    """Return whether no divisor in the bounds of an interval can be 0.

    The divisors of indices are not 0 inside of their loops, which may have no iterations.
    """
    terms = (*postorder(span.start), *postorder(span.extent))
    divisors = {t.divisor for t in terms if isinstance(t, FloorDiv | Mod)}
    return all(is_proved(ne(d, ZERO), facts) for d in divisors if const_value(d) is None)


def _anchor(tree: Tree, loop: For, buffer: Buffer) -> Stmt:
    """Return the first statement of a loop body that reads a buffer."""
    parts = parts_of(loop)
    reading = (p for p in parts if any(reads(b, buffer) for b in tree.blocks_in(p)))
    return next(reading)
