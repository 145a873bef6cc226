"""The ``reorder`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....ir.analysis import (
    Tree,
    bound_kinds,
    conflicts,
    is_covered,
    is_private,
    is_reduction,
    reads,
    reorders,
    statements_around,
    tree_of,
    writes,
    writes_disjoint,
)
from ....ir.analysis.dependences import Conflict
from ....ir.analysis.races import kind_conflicts
from ....ir.copies import replace
from ....ir.loop.decompose import separate_init
from ....ir.loop.memory_scopes import SCOPES
from ....ir.loop.nodes import Block, For, Stmt
from ....ir.symbolic import free_vars, to_text
from ...apply import Primitive, Rewrite
from ...checks import same_function_problems
from ...domain_checks import iterates_reduction, loops_not_spatial
from ...edit import Edit
from ...handles import Handle, LoopRef, block_ref, refs_of
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State


@primitive(family="loops", returns=None)
@dataclass(frozen=True, slots=True)
class Reorder(Primitive):
    """Reorder loops of a perfect nest.

    Before::

        for i in range(n):
            for k in range(m):
                C[i] += A[i, k]

    After (``loops=(k, i)``)::

        for k in range(m):
            for i in range(n):
                C[i] += A[i, k]

    Parameters
    ----------
    loops : tuple of LoopRef
        The loops in the new order, outermost first. Loops of the nest that are not listed keep
        their positions. The method also accepts them separately: ``sch.reorder(k, i)``.

    Notes
    -----
    Reductions may be evaluated in another order, which declared reductions allow. Cost: linear in
    the size of the nest.

    Names elsewhere: TVM ``reorder``; Halide ``reorder`` (innermost loop first).

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
    >>> sch.reorder("j", "i")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(4, 8), f32], y: Out[(4, 8), f32]):
        for j in range(8):
            for i in range(4):
                with block("y"):
                    vi, vj = spatial(i), spatial(j)
                    y[vi, vj] = x[vi, vj]
    """

    class Requires(Requirement):
        """The requirements of ``reorder``."""

        DIFFERENT_LOOPS = "there are at least two different loops, all of one function"
        PERFECT_NEST = (
            "the loops belong to one perfect nest: from the outermost to the innermost, each loop "
            "is the whole body of the loop around it"
        )
        INDEPENDENT_EXTENTS = "no extent depends on a loop that would become an inner loop"
        COMMUTATIVE = (
            "two loops of a reduction exchange their order only if the reduction is commutative"
        )
        KEEPS_ORDER = (
            "if a loop binds an ordered iteration variable, or one of a reduction that is not "
            "commutative: of two loops that exchange their order, the outer one has independent "
            "iterations, before this step or after it"
        )
        INDEPENDENT_ITERATIONS = (
            "a loop that binds spatial iteration variables writes different elements in different "
            "iterations, except of a temporary that each iteration writes before it reads it, and "
            "a value read from another block inside the loops is written in the same iteration; "
            "the iterations of a parallel, vectorized or thread-bound loop remain independent with "
            "the loops that move into it"
        )

        INIT_BEFORE_LOOPS = (
            "the spatial iteration variables of a reduction with an init determine the iterations "
            "of every loop that would move into the reduction, or out of it, and the init can be "
            "separated from the reduction"
        )

    loops: tuple[LoopRef, ...]

    def structural(self, state: State) -> Iterator[Problem]:
        """Check nesting, extents and kinds of iteration variables."""
        found = tuple(same_function_problems(self.loops, self.Requires.DIFFERENT_LOOPS))
        if found:
            yield from found
            return
        tree = state.tree(self.loops[0].function)
        chain = _chain(self.loops[0].function, tree, [state.loop(ref) for ref in self.loops])
        if isinstance(chain, Problem):
            yield chain
            return
        yield from self._extents(state, chain)
        for block in tree.blocks_in(chain[-1].body):
            yield from self._terms(state, chain, block)

    def _extents(self, state: State, chain: list[For]) -> Iterator[Problem]:
        order = self._ordered(state, chain)
        for position, loop in enumerate(order):
            inside = {x.var for x in order[position:]} & free_vars(loop.extent)
            if inside:
                names = ", ".join(sorted(repr(v.name) for v in inside))
                yield Problem(
                    self.Requires.INDEPENDENT_EXTENTS,
                    f"extent {to_text(loop.extent)} of loop {loop.var.name!r} depends on {names}, "
                    "which would become an inner loop",
                    (LoopRef(self.loops[0].function, loop.uid, loop.var.name),),
                    {"extent": to_text(loop.extent)},
                )

    def _terms(self, state: State, chain: list[For], block: Block) -> Iterator[Problem]:
        """Check that the terms of a reduction that is not commutative keep their order."""
        if reorders(block):
            return
        old, new = (
            [x for x in loops if "reduce" in bound_kinds(x, block)]
            for loops in (chain, self._ordered(state, chain))
        )
        if old != new:
            yield Problem(
                self.Requires.COMMUTATIVE,
                f"block {block.name!r} is a reduction, but its body is not a commutative reduction "
                "update",
                (*self.loops, block_ref(self.loops[0].function, block)),
            )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that the result does not depend on the order of the iterations."""
        tree = state.tree(self.loops[0].function)
        loops = [state.loop(ref) for ref in self.loops]
        innermost = max(loops, key=lambda x: tree.order[x])
        blocks = tree.blocks_in(innermost.body)
        for block in blocks:
            yield from self._inits(state, tree, block)
        if any(_in_order(x, block) for x in loops for block in blocks):
            yield from self._exchanges(state)
        else:
            yield from self._dependences(state, tree, innermost, blocks)
        yield from self._concurrent(state)

    def _dependences(
        self, state: State, tree: Tree, innermost: For, blocks: tuple[Block, ...]
    ) -> Iterator[Problem]:
        """Check that no iteration writes an element that another one writes or reads."""
        for block in blocks:
            yield from self._overlaps(state, tree, block)
            for buffer in dict.fromkeys(a.buffer for a in reads(block)):
                written = any(writes(b, buffer) for b in blocks)
                if written and not is_covered(tree, innermost, buffer):
                    yield Problem(
                        self.Requires.INDEPENDENT_ITERATIONS,
                        f"block {block.name!r} may read elements of {buffer.name!r} that another "
                        f"iteration of loop {innermost.var.name!r} writes",
                        refs_of(self.loops[0].function, innermost, block, buffer),
                    )

    def _exchanges(self, state: State) -> Iterator[Problem]:
        """Check that every dependence keeps its direction.

        The loop that carries a dependence is the outermost one in which its iterations differ. A
        dependence is reversed only if this loop changes, and then neither the old loop nor the new
        one has independent iterations.
        """
        name = self.loops[0].function
        chain = _chain(name, state.tree(name), [state.loop(ref) for ref in self.loops])
        if isinstance(chain, Problem):
            return
        order = self._ordered(state, chain)
        after = tree_of(self.made(state).module.prim(name))
        new = {x.uid: x for x in after.loops.values()}
        for k, outer in enumerate(chain):
            exchanged = [x for x in chain[k + 1 :] if order.index(x) < order.index(outer)]
            if not exchanged or _dependence(state.tree(name), outer) is None:
                continue
            for inner in exchanged:
                carried = _dependence(after, new[inner.uid])
                if carried is not None:
                    yield Problem(
                        self.Requires.KEEPS_ORDER,
                        f"loops {outer.var.name!r} and {inner.var.name!r} would exchange their "
                        f"order, but {carried.reason}",
                        (*self.loops, *refs_of(name, carried.block, carried.buffer)),
                    )

    def _concurrent(self, state: State) -> Iterator[Problem]:
        """Check the concurrent loops that would contain loops which they do not contain now."""
        name = self.loops[0].function
        chain = _chain(name, state.tree(name), [state.loop(ref) for ref in self.loops])
        if isinstance(chain, Problem):
            return
        order = self._ordered(state, chain)
        grown = [
            x.uid
            for k, x in enumerate(order)
            if x.kind not in ("serial", "unrolled")
            and not set(order[k:]) <= set(chain[chain.index(x) :])
        ]
        if not grown:
            return
        tree = tree_of(self.made(state).module.prim(name))
        for loop in (x for x in tree.loops.values() if x.uid in grown):
            for conflict in kind_conflicts(tree, loop):
                yield Problem(
                    self.Requires.INDEPENDENT_ITERATIONS,
                    f"after this step, {conflict.reason}",
                    (*self.loops, *refs_of(name, conflict.block, conflict.buffer)),
                )

    def _inits(self, state: State, tree: Tree, block: Block) -> Iterator[Problem]:
        """Check that the init of a reduction runs before the same iterations."""
        chain = _chain(self.loops[0].function, tree, [state.loop(ref) for ref in self.loops])
        if block.init is None or not is_reduction(block) or isinstance(chain, Problem):
            return
        reducing = [x for x in tree.loops_above(block) if iterates_reduction(tree, block, x)]
        if not reducing or reducing[0] not in chain:
            return  # the init runs before all of the loops, or inside all of them
        old, new = chain.index(reducing[0]), self._ordered(state, chain)
        inside = new[next(k for k, x in enumerate(new) if x in reducing) :]
        moved = tuple(x for x in chain if (x in chain[old:]) is not (x in inside))
        unknown = loops_not_spatial(tree, block, moved, chain[0]) if moved else ()
        for loop in unknown:
            yield Problem(
                self.Requires.INIT_BEFORE_LOOPS,
                f"the iterations of loop {loop.var.name!r}, of which there may be none, repeat the "
                f"reduction of block {block.name!r}, whose init runs "
                + ("before them" if loop in chain[old:] else "in each of them"),
                (*self.loops, *refs_of(self.loops[0].function, block, loop)),
            )
        if not unknown and not self._separable(state, block):
            yield Problem(
                self.Requires.INIT_BEFORE_LOOPS,
                f"afterwards, the init of block {block.name!r} could not run before the reduction: "
                "how many iterations its spatial loops have would be known only inside of it",
                (*self.loops, block_ref(self.loops[0].function, block)),
            )

    def _separable(self, state: State, block: Block) -> bool:
        """Return whether the init of a block can run before its reduction after the step."""
        after = tree_of(self.made(state).module.prim(self.loops[0].function))
        new = after.blocks[block.uid]
        return separate_init(statements_around(after, new), new) is not None

    def _overlaps(self, state: State, tree: Tree, block: Block) -> Iterator[Problem]:
        innermost = max((state.loop(ref) for ref in self.loops), key=lambda x: tree.order[x])
        for ref in self.loops:
            loop = state.loop(ref)
            if bound_kinds(loop, block) != frozenset({"spatial"}) or iterates_reduction(
                tree, block, loop
            ):
                continue  # the terms of a reduction may be added in any order
            for buffer in dict.fromkeys(a.buffer for a in writes(block)):
                if is_private(tree, innermost, buffer, frozenset(SCOPES)):
                    continue
                if not writes_disjoint(tree, loop, block, buffer):
                    yield Problem(
                        self.Requires.INDEPENDENT_ITERATIONS,
                        f"iterations of loop {loop.var.name!r} may write the same elements of "
                        f"{buffer.name!r} in block {block.name!r}",
                        (ref, *refs_of(ref.function, block, buffer)),
                    )

    def _ordered(self, state: State, chain: list[For]) -> list[For]:
        wanted = iter([state.loop(ref) for ref in self.loops])
        named = {ref.uid for ref in self.loops}
        return [next(wanted) if x.uid in named else x for x in chain]

    def rewrite(self, state: State) -> Rewrite:
        """Nest the same loops in the new order."""
        edit = Edit(state, self.loops[0].function)
        chain = _chain(edit.name, edit.tree, [state.loop(ref) for ref in self.loops])
        if isinstance(chain, Problem):
            raise TypeError(chain.message)
        body: Stmt = chain[-1].body
        for loop in reversed(self._ordered(state, chain)):
            body = replace(loop, body=body)
        return edit.finish(edit.replaced(chain[0], body))

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the interchange of the selected loop with the loop directly inside it."""
        if isinstance(selection, LoopRef):
            inner = state.loop(selection).body
            if isinstance(inner, For):
                yield cls((LoopRef(selection.function, inner.uid, inner.var.name), selection))


def _in_order(loop: For, block: Block) -> bool:
    """Return whether the iterations of a loop around a block may have to run in order."""
    kinds = bound_kinds(loop, block)
    return "ordered" in kinds or ("reduce" in kinds and not reorders(block))


def _dependence(tree: Tree, loop: For) -> Conflict | None:
    """Return a dependence between iterations of a loop in the order of its function."""
    return next(conflicts(tree, loop, lanes=True), None)


def _chain(function: str, tree: Tree, loops: list[For]) -> list[For] | Problem:
    """Return the loops between the outermost and the innermost of some loops of one nest."""
    outermost = min(loops, key=lambda x: tree.order[x])
    missing, chain = set(loops), list[For]()
    below: Stmt = outermost
    while missing and isinstance(below, For):
        chain.append(below)
        missing.discard(below)
        below = below.body
    if not missing:
        return chain
    first = min(missing, key=lambda x: tree.order[x])
    return Problem(
        Reorder.Requires.PERFECT_NEST,
        f"loop {first.var.name!r} is not in a perfect nest with loop {outermost.var.name!r}: the "
        f"body of loop {chain[-1].var.name!r} is not a single loop",
        refs_of(function, first, chain[-1]),
    )
