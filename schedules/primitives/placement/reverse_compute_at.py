"""The ``reverse_compute_at`` primitive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ....ir.analysis import (
    Access,
    Interval,
    Tree,
    accesses,
    assuming,
    covers,
    finished_inside,
    interval_of,
    reads,
    within_dimension,
    writes,
    written_in,
)
from ....ir.loop.nodes import Block, Buffer, For, IterVar, Stmt
from ....ir.symbolic import (
    Bool,
    Expr,
    Proved,
    Var,
    all_of,
    conjuncts,
    is_proved,
    prove,
    substitute,
    to_text,
)
from ...allocations import parts_of
from ...apply import Primitive, Rewrite
from ...checks import counterexample
from ...domain_checks import (
    branch_around,
    condition_of,
    described_problems,
    executed_after,
    whole_reduction_problems,
)
from ...edit import Edit
from ...handles import BlockRef, Handle, LoopRef, buffer_ref, loop_ref
from ...loop_nests import after, loops_removed, nest, whole, without
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
class ReverseComputeAt(Primitive):
    """Move a consumer into a loop of its producers, computing the region that one iteration writes.

    Before::

        for i0 in range(n // 8):
            for i1 in range(8):
                T[i0 * 8 + i1] = A[i0 * 8 + i1] * 2
        for i in range(n):
            C[i] = T[i] + 1

    After (``loop=i0``)::

        for i0 in range(n // 8):
            for i1 in range(8):
                T[i0 * 8 + i1] = A[i0 * 8 + i1] * 2
            for ax in range(8):
                C[i0 * 8 + ax] = T[i0 * 8 + ax] + 1

    Parameters
    ----------
    block : BlockRef
        The consumer.
    loop : LoopRef
        The destination loop. The consumer is inserted after its last producer in the loop body.

    Notes
    -----
    The block gets new loops over the box that one iteration of the destination loop writes. The
    temporaries that it accesses are allocated in the innermost loop around their uses of which each
    iteration writes before it reads. Cost: linear in the size of the function.

    Names elsewhere: TVM ``reverse_compute_at``; Halide: none (schedule the producer with
    ``compute_at``).

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
    >>> sch.reverse_compute_at("y", "i")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        for i in range(32):
            t = alloc((32,), f32)
            with block("t"):
                vi = spatial(i)
                t[vi] = x[vi] * 2.0
            with block("y"):
                vj = spatial(i)
                y[vj] = t[vj] + 1.0
    """

    class Requires(Requirement):
        """The requirements of ``reverse_compute_at``."""

        LOOP_NOT_AROUND = "the loop is not around the block"
        NO_ORDERED_ITERATIONS = "the block has no ordered iteration variables"
        ONE_STORE = "the block stores one element of one buffer per iteration"
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
        READS_FROM_LOOP = "a block in the loop writes a buffer that the block reads"
        KEEPS_DEPENDENCES = (
            "the block follows the loop; from the loop to the block, no other block accesses its "
            "output, and no block outside of the loop writes its inputs"
        )
        INDICES_OF_INPUTS = (
            "every iteration variable of the block is by itself an index of a buffer that it "
            "reads from the loop, or loops around both determine its value"
        )
        COMPLETE_INPUTS = (
            "one iteration of the loop completely writes a box of every buffer that the block "
            "reads from it, and the boxes of all iterations cover the domain of the block; a "
            "reduction gets all of its terms in one iteration"
        )
        NOT_VECTORIZED = "neither the loop nor a loop around it is vectorized"
        INDEPENDENT_ITERATIONS = (
            "the moved block does not write the same elements in different iterations of a "
            "parallel or thread-bound loop"
        )
        INJECTIVE_WRITES = (
            "the write indices of the block are injective in its spatial iteration variables"
        )

    block: BlockRef
    loop: LoopRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the block, its producers and the blocks between them."""
        tree, block = state.tree(self.block.function), state.block(self.block)
        loop, where = state.loop(self.loop), (self.block, self.loop)
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
        made = _loads_from(tree, block, loop)
        if not made:
            read = ", ".join(dict.fromkeys(a.buffer.name for a in reads(block))) or "nothing"
            yield Problem(
                self.Requires.READS_FROM_LOOP,
                f"no block in loop {loop.var.name!r} writes a buffer that block {block.name!r} "
                f"reads ({read})",
                where,
                {"reads": read},
            )
            return
        yield from dependence_problems(
            state, self.block, self.Requires.KEEPS_DEPENDENCES, loop, later=False
        )
        yield from vector_problems(state, self.loop, self.Requires.NOT_VECTORIZED)
        alone = {i for a in made for i in a.indices if isinstance(i, Var)}
        alone |= constant_iters(block, tree.common((block, loop))).keys()
        rest = [v.var.name for v in block.iters if v.var not in alone and v.extent != 1]
        if rest:
            yield Problem(
                self.Requires.INDICES_OF_INPUTS,
                f"iteration variables {', '.join(rest)} of block {block.name!r} are not plain "
                f"indices of a buffer that it reads from loop {loop.var.name!r}",
                where,
                {"iterations": ", ".join(rest)},
            )

    def _movable(self, state: State) -> Iterator[Problem]:
        requires = self.Requires
        found = Movable(
            requires.NO_ORDERED_ITERATIONS,
            requires.ONE_STORE,
            requires.ONLY_WRITER,
            requires.IGNORES_OLD_CONTENTS,
        )
        yield from movable_problems(state, self.block, found)
        yield from extent_problems(state, self.block, self.loop, requires.EXTENTS_IN_SCOPE)

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that an iteration provides the inputs of the block, and that all iterations run."""
        yield from injective_write_problems(state, self.block, self.Requires.INJECTIVE_WRITES)
        tree, block, loop = self._parts(state)
        spans = _domain(tree, block, loop)
        for access in _loads_from(tree, block, loop):
            message = _missing_input(tree, block, loop, access, spans)
            if message is not None:
                where = (self.loop, self.block, buffer_ref(self.block.function, access.buffer))
                yield Problem(
                    self.Requires.COMPLETE_INPUTS, message, where, {"buffer": access.buffer.name}
                )
                return
        old = branch_around(tree, block, loop)
        dropped = (
            *described_problems(state, self.block, self.Requires.DESCRIBED_DOMAIN, old),
            *whole_reduction_problems(state, self.block, self.Requires.WHOLE_REDUCTION, old),
        ) or tuple(self._dropped_iterations(state, spans))
        yield from dropped or parallel_problems(
            state, self, self.loop, self.Requires.INDEPENDENT_ITERATIONS
        )

    def _dropped_iterations(self, state: State, spans: Mapping[Var, Interval]) -> Iterator[Problem]:
        """Check that the moved block would still run all of its iterations."""
        tree, block, loop = self._parts(state)
        condition = condition_of(tree, block, branch_around(tree, block, loop))
        domain = all_of(condition, *(b for v in block.iters for b in _box(v)))
        for item in block.iters:
            if item.kind == "reduce" and not self._is_complete(tree, item, spans, domain):
                yield self._not_covered(
                    f"one iteration of loop {loop.var.name!r} does not provably provide all terms "
                    f"{item.var.name!r} of the reduction of block {block.name!r}",
                    item,
                )
                return
        new = executed_after(state, self, self.block, loop)
        if new.condition is None:
            yield self._not_covered(
                f"the iterations that block {block.name!r} would run in loop {loop.var.name!r} "
                f"cannot be described: {new.reason}"
            )
            return
        facts = assuming(tree.facts(tree.common((block, loop))), domain)
        for part in conjuncts(new.condition):
            verdict = prove(part, facts)
            if not isinstance(verdict, Proved):
                yield self._not_covered(
                    f"block {block.name!r} would run only the iterations with {part} in loop "
                    f"{loop.var.name!r}, which may not be all of its iterations",
                    example=counterexample(verdict),
                )
                return

    def _is_complete(
        self, tree: Tree, item: IterVar, spans: Mapping[Var, Interval], domain: Bool
    ) -> bool:
        """Return whether one iteration of the loop provides all terms of its results."""
        loop = tree.loops[self.loop.uid]
        block = tree.blocks[self.block.uid]
        own = (spans[v.var].contains(v.var) for v in block.iters if v.kind != "reduce")
        facts = assuming(tree.facts(loop.body), domain, *own)
        return all(is_proved(part, facts) for part in conjuncts(spans[item.var].contains(item.var)))

    def _not_covered(
        self,
        message: str,
        item: IterVar | None = None,
        example: dict[str, int] | None = None,
    ) -> Problem:
        numbers = {} if item is None else {"iteration": item.var.name}
        where = (self.block, self.loop)
        return Problem(self.Requires.COMPLETE_INPUTS, message, where, numbers, example)

    def _parts(self, state: State) -> tuple[Tree, Block, For]:
        return state.tree(self.block.function), state.block(self.block), state.loop(self.loop)

    def rewrite(self, state: State) -> Rewrite:
        """Insert the block under new loops at the destination, and remove the old loops."""
        edit = Edit(state, self.block.function)
        tree, block, loop = self._parts(state)
        condition = condition_of(tree, block, branch_around(tree, block, loop))
        facts = tree.facts(loop.body)
        moved = nest(edit, block, _domain(tree, block, loop), facts, condition)
        body = after(tree.function.body, _anchor(tree, block, loop), moved)
        kept = without(body, block)
        if kept is None:
            raise TypeError(f"the body of {self.block.function!r} is empty")
        removed = edit.removed(loops_removed(tree, kept), f"moved block {block.name!r} out of it")
        used = dict.fromkeys(access.buffer for access in accesses(block))
        return edit.finish(kept, moved=removed, place=used)

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the loops around the last producer of the selected block."""
        if not isinstance(selection, BlockRef):
            return
        tree, block = state.tree(selection.function), state.block(selection)
        for buffer in dict.fromkeys(a.buffer for a in reads(block)):
            for producer in tree.writers(buffer)[-1:]:
                for loop in tree.loops_above(producer):
                    if not tree.contains(loop, block):
                        yield cls(selection, loop_ref(selection.function, loop))


def _loads_from(tree: Tree, block: Block, loop: For) -> list[Access]:
    """Return the loads of a block from buffers that are written in a loop."""
    made: set[Buffer] = {w.buffer for b in tree.blocks_in(loop) for w in writes(b)}
    return [a for a in reads(block) if a.buffer in made]


def _producers(tree: Tree, loop: For, buffer: Buffer) -> list[Block]:
    return [b for b in tree.blocks_in(loop) if writes(b, buffer)]


def _written(tree: Tree, loop: For, buffer: Buffer) -> tuple[Interval, ...] | None:
    """Return a box that each iteration of a loop writes completely."""
    return written_in(tree, loop.body, buffer)


def _domain(tree: Tree, block: Block, loop: For) -> dict[Var, Interval]:
    """Return the interval of each iteration variable that one iteration of the loop provides."""
    spans: dict[Var, Interval] = {}
    facts = tree.facts(loop.body)
    extents = {v.var: v.extent for v in block.iters}
    for access in _loads_from(tree, block, loop):
        box = _written(tree, loop, access.buffer)
        for index, span in zip(access.indices, box or (), strict=bool(box)):
            if isinstance(index, Var) and index in extents:
                spans.setdefault(index, within_dimension(span, extents[index], facts))
    constant = constant_iters(block, tree.common((block, loop)))
    return whole(block) | constant | spans


def _missing_input(
    tree: Tree, block: Block, loop: For, access: Access, spans: dict[Var, Interval]
) -> str | None:
    """Return why one iteration of a loop does not provide the elements that a load reads."""
    name = access.buffer.name
    unfinished = [
        b.name for b in _producers(tree, loop, access.buffer) if not finished_inside(tree, loop, b)
    ]
    if unfinished:
        return (
            f"one iteration of loop {loop.var.name!r} does not complete the reduction of block "
            f"{unfinished[0]!r}, which writes {name!r}"
        )
    box = _written(tree, loop, access.buffer)
    if box is None:
        return f"one iteration of loop {loop.var.name!r} does not write a full box of {name!r}"
    facts = tree.facts(loop.body)
    ranges = {v.var: Interval.full(spans[v.var].extent) for v in block.iters} | dict(access.inner)
    shift: dict[Var, Expr] = {v.var: v.var + spans[v.var].start for v in block.iters}
    for index, written, size in zip(access.indices, box, access.buffer.shape, strict=True):
        needed = interval_of(substitute(index, shift), ranges, facts)
        if needed is None or not covers(written, needed, facts, size):
            return (
                f"index {to_text(index)} of {name!r} may be outside of the box that one iteration "
                f"of loop {loop.var.name!r} writes"
            )
    return None


def _box(item: IterVar) -> tuple[Bool, Bool]:
    return item.var >= 0, item.var < item.extent


def _anchor(tree: Tree, block: Block, loop: For) -> Stmt:
    """Return the last statement of a loop body that writes a buffer that the block reads."""
    made = {a.buffer for a in _loads_from(tree, block, loop)}
    parts = parts_of(loop)
    writing = [
        p for p in parts if any(w.buffer in made for b in tree.blocks_in(p) for w in writes(b))
    ]
    return writing[-1]
