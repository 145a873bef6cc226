"""The ``split`` primitive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ....ir.analysis import bound_kinds, statements_around, within_loop, within_loops
from ....ir.copies import replace
from ....ir.loop.decompose import (
    around,
    bound_variables,
    reduction_position,
    separate_init,
    starts_before_reduction,
)
from ....ir.loop.determined_loops import determined_loops
from ....ir.loop.nodes import Block, For, Stmt
from ....ir.loop.ranges import loop_var
from ....ir.loop.visit import seq, walk
from ....ir.symbolic import (
    TRUE,
    Bool,
    Expr,
    Facts,
    Proved,
    Refuted,
    SymInt,
    Var,
    as_expr,
    ceildiv,
    const_value,
    eq,
    free_vars,
    is_proved,
    linear_form,
    maximum,
    product,
    prove,
    simplify,
    to_text,
)
from ...apply import Primitive, Rewrite, check
from ...checks import counterexample, serial_problems
from ...copies import copied, without_inits
from ...domain_checks import changed_conditions, facts_of_inits, iterates_reduction
from ...edit import Edit, rebind
from ...handles import FunctionRef, Handle, LoopRef, block_ref
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State
from ...values import Value
from ..specialize.assume import Assume


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

    After (``factors=(None, 8), tail="epilogue"``)::

        for i_0 in range(n // 8):
            for i_1 in range(8):
                body(i_0 * 8 + i_1)
        for i_tail in range(n % 8):
            body(n // 8 * 8 + i_tail)

    Parameters
    ----------
    loop : LoopRef
        The loop to split.
    factors : tuple of SymInt or None
        Extents of the new loops in iterations, outermost first. At most one factor may be None; it
        is the old extent divided by the product of the other factors, rounded up, or rounded down
        with ``tail="epilogue"``.
    tail : {"predicate", "epilogue", "perfect"}
        The treatment of an extent that is not the product of the factors. ``"predicate"``: the
        last iterations are guarded. ``"epilogue"``: the new loops run the complete tiles without
        a guard, and another loop runs the remaining iterations. ``"perfect"``: the product must be
        the extent.

    Notes
    -----
    With ``tail="predicate"``, the blocks in the body get the predicate that the old loop variable
    is less than its extent, unless the factors provably multiply to exactly the extent. With
    ``tail="epilogue"``, the results are the loops of the complete tiles, and existing handles
    refer to these. The loop of the remaining iterations has the name of the old loop with the
    suffix ``_tail``, and its blocks are copies with this suffix: ``get_loop("i_tail")`` and
    ``get_block("C_tail")`` return them. It is omitted if provably no iterations remain; the loops
    of the complete tiles run no iteration if the extent is less than one tile. The decision
    ``guard`` records the outcome: ``"predicate"``, ``"epilogue"`` or ``"none"``. Cost: linear in
    the size of the loop body.

    Names elsewhere: TVM ``split``; Halide ``split``, whose ``TailStrategy`` is ``GuardWithIf`` for
    ``"predicate"`` and ``RoundUp`` for ``"perfect"``.

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
                with block("y"):
                    vi = spatial(32, i_0 * 8 + i_1)
                    y[vi] = x[vi]
    >>> sch = tw.Schedule(module)
    >>> outer, inner = sch.split("i", factors=(None, 10), tail="epilogue")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(32,), f32], y: Out[(32,), f32]):
        for i_0 in range(3):
            for i_1 in range(10):
                with block("y"):
                    vi = spatial(32, i_0 * 10 + i_1)
                    y[vi] = x[vi]
        for i_tail in range(2):
            with block("y_tail"):
                vi_1 = spatial(32, i_tail + 30)
                y[vi_1] = x[vi_1]
    >>> sch.get_loop("i_tail").name
    'i_tail'
    """

    class Requires(Requirement):
        """The requirements of ``split``."""

        SERIAL = "the loop is serial and has no annotations"
        FACTOR_COUNT = "there are at least two factors, and at most one of them is None"
        POSITIVE_FACTORS = (
            "every factor is a provably positive integer over the symbols of the function"
        )
        COVERS_EXTENT = (
            "with a predicate as tail, the product of the factors is provably at least the extent "
            "of the loop"
        )
        PERFECT = (
            "with a perfect tail, the product of the factors is provably equal to the extent of "
            "the loop"
        )
        WITHIN_EXTENT = (
            "with an epilogue as tail, the product of the factors is provably at most the extent "
            "of the loop"
        )
        INIT_BEFORE_TILES = (
            "with an epilogue as tail, a block whose reduction the loop iterates has an init that "
            "runs before the loop, and no spatial iteration variable that the loop binds"
        )
        SAME_INITS = (
            "the init of a block in the loop runs for the same elements and before the same "
            "iterations: all new loops of a reduction loop iterate the reduction, extents on which "
            "the elements of an init depend do not become larger, and conditions that depend on "
            "the reduction still do in the complete tiles"
        )

    loop: LoopRef
    factors: tuple[SymInt | None, ...]
    tail: Literal["predicate", "epilogue", "perfect"] = "predicate"

    def chosen(self) -> tuple[tuple[str, Value], ...]:
        """Return the fields; the default of ``tail`` is omitted, as in traces without the field."""
        found = Primitive.chosen(self)  # `super()` does not know a class with slots
        return tuple((n, v) for n, v in found if n != "tail" or v != "predicate")

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the loop and the number of factors."""
        yield from serial_problems(state, self.loop, self.Requires.SERIAL)
        derived = sum(f is None for f in self.factors)
        if len(self.factors) < 2 or derived > 1:
            yield Problem(
                self.Requires.FACTOR_COUNT,
                f"got {len(self.factors)} factors, {derived} of them None; expected at least two "
                "factors, at most one of them None",
                (self.loop,),
                {"factors": len(self.factors), "derived": derived},
                fixes=tuple(_powers(state, self.loop)),
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
                    self.Requires.POSITIVE_FACTORS,
                    f"factor {to_text(term)} is not a term over the symbols of the function",
                    (self.loop,),
                )

    def _not_positive(self, state: State, term: Expr, found: dict[str, int] | None) -> Problem:
        return Problem(
            self.Requires.POSITIVE_FACTORS,
            f"factor {to_text(term)} is not provably positive",
            (self.loop,),
            {"factor": to_text(term)},
            found,
            tuple(_powers(state, self.loop)),
        )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that the factors are positive and cover the extent."""
        facts = facts_of_inits(state.tree(self.loop.function), state.loop(self.loop))
        positive = True
        for factor in self.factors:
            term = None if factor is None else as_expr(factor)
            if term is None or const_value(term) is not None:
                continue
            verdict = prove(term >= 1, facts)
            if not isinstance(verdict, Proved):
                positive = False
                yield self._not_positive(state, term, counterexample(verdict))
        if positive:
            wrong = list(self._tail_problems(state, facts))
            yield from wrong or self._changed_inits(state, facts)

    def _tail_problems(self, state: State, facts: Facts) -> Iterator[Problem]:
        loop = state.loop(self.loop)
        match self.tail:
            case "predicate" if None not in self.factors:
                yield from self._size_problems(state, facts, self._product() >= loop.extent)
            case "perfect" if None in self.factors:
                claim = eq(loop.extent % self._product(), 0)
                yield from self._size_problems(state, facts, claim)
            case "perfect":
                claim = eq(self._product(), loop.extent)
                yield from self._size_problems(state, facts, claim)
            case "epilogue":
                if None not in self.factors:
                    yield from self._size_problems(state, facts, self._product() <= loop.extent)
                if not self._is_exact(loop, facts):
                    yield from self._init_problems(state)
            case _:
                pass

    def _product(self) -> Expr:
        """Return the product of the factors that are not None."""
        return product(tuple(as_expr(f) for f in self.factors if f is not None))

    def _size_problems(self, state: State, facts: Facts, claim: Bool) -> Iterator[Problem]:
        """Yield the problem of a product that does not have the required relation to the extent."""
        verdict = prove(claim, facts)
        if isinstance(verdict, Proved):
            return
        requires = self.Requires
        requirement, relation = {
            "predicate": (requires.COVERS_EXTENT, "less than"),
            "perfect": (requires.PERFECT, "different from"),
            "epilogue": (requires.WITHIN_EXTENT, "greater than"),
        }[self.tail]
        loop, total = state.loop(self.loop), self._product()
        verb = "is" if isinstance(verdict, Refuted) else "may be"
        extent = f"the extent {to_text(loop.extent)} of loop {loop.var.name!r}"
        product_text = f"the product of the factors is {to_text(total)}"
        message = f"{product_text}, which {verb} {relation} {extent}"
        if None in self.factors:
            multiple = f"a multiple of {to_text(total)}, the product of the factors"
            sure = isinstance(verdict, Refuted) and not free_vars(claim)
            message = f"{extent} {'is not' if sure else 'may not be'} {multiple}"
        yield Problem(
            requirement,
            message,
            (self.loop,),
            {"product": to_text(total), "extent": to_text(loop.extent)},
            counterexample(verdict),
            tuple(self._size_fixes(state)),
        )

    def _size_fixes(self, state: State) -> Iterator[Primitive]:
        """Yield splits with a derived factor, and the assumption that makes an extent a multiple.

        With a derived factor, every tail but ``"perfect"`` applies to every extent.
        """
        derived = self.factors if None in self.factors else (None, *self.factors[1:])
        tails = ("predicate", "epilogue") if self.tail == "perfect" else (self.tail,)
        fixes = [replace(self, factors=derived, tail=tail) for tail in tails]
        yield from (fix for fix in fixes if not check(state, fix))
        extent, size = state.loop(self.loop).extent, const_value(self._product())
        if self.tail == "perfect" and isinstance(extent, Var) and size and None in self.factors:
            assumption = Assume(FunctionRef(self.loop.function), extent.name, multiple_of=size)
            if not check(state, assumption):
                yield assumption

    def _init_problems(self, state: State) -> Iterator[Problem]:
        """Yield the blocks whose init does not run before both parts of the loop."""
        tree, loop = state.tree(self.loop.function), state.loop(self.loop)
        for block in tree.blocks_in(loop.body):
            kinds = bound_kinds(loop, block)
            if block.init is None or not iterates_reduction(tree, block, loop):
                continue
            where = (self.loop, block_ref(self.loop.function, block))
            fixes = (replace(self, tail="predicate"),) if None in self.factors else ()
            if "spatial" in kinds:
                yield Problem(
                    self.Requires.INIT_BEFORE_TILES,
                    f"loop {loop.var.name!r} iterates spatial and reduction iteration variables of "
                    f"block {block.name!r}, which has an init",
                    where,
                    fixes=fixes,
                )
            elif not starts_before_reduction(statements_around(tree, block), block):
                yield Problem(
                    self.Requires.INIT_BEFORE_TILES,
                    f"the init of block {block.name!r} runs in the first iteration of its "
                    "reduction, which may be in either part",
                    where,
                    fixes=fixes,
                )

    def _changed_inits(self, state: State, facts: Facts) -> Iterator[Problem]:
        """Yield the blocks whose init would run for other elements, or more often."""
        tree, loop = state.tree(self.loop.function), state.loop(self.loop)
        for block in tree.blocks_in(loop.body):
            path = statements_around(tree, block)
            if block.init is None or loop not in path[reduction_position(path, block) :]:
                continue
            where = (self.loop, block_ref(self.loop.function, block))
            widened = self._widens(loop, facts) and not starts_before_reduction(path, block)
            if widened and not _sets_whole_domain(path, block, facts):
                message = (
                    f"the elements that the init of block {block.name!r} sets depend on loops of "
                    f"its reduction, and a partial tile of loop {loop.var.name!r} would add some"
                )
                yield Problem(self.Requires.SAME_INITS, message, where)
            elif self._shortens(loop, facts) and (added := self._conditions(state, block, facts)):
                message = (
                    f"in the complete tiles of loop {loop.var.name!r}, a condition on the "
                    f"reduction of block {block.name!r} becomes {to_text(added[0])}, and would "
                    "keep its init from running"
                )
                yield Problem(self.Requires.SAME_INITS, message, where)
            elif repeated := self._repeating(state, path, block, facts):
                message = (
                    f"loop {loop.var.name!r} iterates the reduction of block {block.name!r}, whose "
                    f"init would not run as often in loop {', '.join(repeated)}"
                )
                yield Problem(self.Requires.SAME_INITS, message, where)

    def _widens(self, loop: For, facts: Facts) -> bool:
        """Return whether the new loops may run more iterations, which a predicate excludes."""
        return self.tail == "predicate" and not self._is_exact(loop, facts)

    def _shortens(self, loop: For, facts: Facts) -> bool:
        """Return whether the new loops may run fewer iterations, and another loop the others."""
        return self.tail == "epilogue" and not self._is_exact(loop, facts)

    def _conditions(self, state: State, block: Block, facts: Facts) -> tuple[Bool, ...]:
        """Return the conditions that would apply to an init in the complete tiles only."""
        tree, loop = state.tree(self.loop.function), state.loop(self.loop)
        above, found = self._tiles(state, block, facts)
        inner = statements_around(tree, block)
        return changed_conditions(tree, block, found, (*inner[: inner.index(loop)], *above))

    def _tiles(self, state: State, block: Block, facts: Facts) -> tuple[tuple[Stmt, ...], Block]:
        """Return the new loops and the statements in them around a block, and the new block."""
        loop = state.loop(self.loop)
        guarded = self._widens(loop, facts)
        nest = self._nest(Edit(state, self.loop.function), loop, facts, guarded=guarded)
        found = next(s for s in walk(nest[0]) if isinstance(s, Block) and s.uid == block.uid)
        return around(nest[0], found), found

    def _repeating(
        self, state: State, path: tuple[Stmt, ...], block: Block, facts: Facts
    ) -> list[str]:
        """Return the names of the loops that would repeat an init, and did not, or vice versa."""
        loop = state.loop(self.loop)
        if _is_kept(loop, block):
            return []
        above, found = self._tiles(state, block, facts)
        inner = (*path[: path.index(loop)], *above)
        before, after = reduction_position(path, block), reduction_position(inner, found)
        known = determined_loops(inner, found) if before < after else frozenset[Var]()
        return [
            x.var.name
            for x in inner[min(before, after) : max(before, after)]
            if isinstance(x, For) and x.var not in known and const_value(x.extent) != 1
        ]

    def rewrite(self, state: State) -> Rewrite:
        """Replace the loop by nested loops, and its variable by a term over theirs."""
        edit, loop = Edit(state, self.loop.function), state.loop(self.loop)
        facts = facts_of_inits(edit.tree, loop)
        exact = self._is_exact(loop, facts)
        guarded = not exact and self.tail == "predicate"
        nest = self._nest(edit, loop, facts, guarded=guarded)
        parts: list[Stmt] = [nest[0]]
        if not exact and self.tail == "epilogue":
            parts.append(self._remainder(edit, loop, facts))
        results = tuple(edit.loop_ref(x) for x in nest)
        return edit.finish(
            edit.replaced(loop, seq(*parts)),
            results=results,
            moved={self.loop: results},
            decisions={"guard": "none" if exact else self.tail},
        )

    def _is_exact(self, loop: For, facts: Facts) -> bool:
        """Return whether the new loops provably run as many iterations as the old one."""
        if self.tail == "perfect":
            return True
        claim = eq(product(self._extents(loop, facts)), loop.extent)
        return isinstance(prove(claim, facts), Proved)

    def _extents(self, loop: For, facts: Facts) -> tuple[Expr, ...]:
        """Return the extents of the new loops."""
        match self.tail:
            case "predicate":
                derived = ceildiv(loop.extent, self._product())
            case "perfect":
                derived = simplify(loop.extent // self._product(), facts)
            case "epilogue":
                derived = simplify(_positive(loop, facts) // self._product(), facts)
        return tuple(derived if f is None else as_expr(f) for f in self.factors)

    def _nest(self, edit: Edit, loop: For, facts: Facts, *, guarded: bool) -> tuple[For, ...]:
        """Return the new loops, outermost first; the first one contains the others."""
        extents = self._extents(loop, facts)
        if guarded and const_value(maximum(loop.extent, 0)) == 0:  # a guard would stop inits
            extents, guarded = (as_expr(0), *extents[1:]), False
        names = [f"{loop.var.name}_{k}" for k in range(len(extents))]
        variables = [edit.loop_var(n, e) for n, e in zip(names, extents, strict=True)]
        index: Expr = variables[0]
        for variable, extent in zip(variables[1:], extents[1:], strict=True):
            index = index * extent + variable
        new = [edit.loop(v, e, loop.body, loop) for v, e in zip(variables, extents, strict=True)]
        guard = index < loop.extent if guarded else TRUE
        body: Stmt = rebind(loop.body, {loop.var: index}, within_loops(facts, tuple(new)), guard)
        nest: list[For] = []
        for outer in reversed(new):
            body = replace(outer, body=body)
            nest.insert(0, body)
        return tuple(nest)

    def _remainder(self, edit: Edit, loop: For, facts: Facts) -> For:
        """Return the loop over the iterations after the complete tiles, on a copy of the body."""
        extent, size = _positive(loop, facts), self._product()
        rest = simplify(extent % size if None in self.factors else extent - size, facts)
        start = simplify(product(self._extents(loop, facts)), facts)
        variable = loop_var(edit.fresh(f"{loop.var.name}_tail"), rest)
        copy = copied(edit, without_inits(edit.tree, loop), "_tail")
        inside = within_loop(facts, variable, rest)
        return edit.loop(variable, rest, rebind(copy, {loop.var: variable + start}, inside), loop)

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield splits by powers of two that divide the extent, or by all if it is symbolic."""
        if isinstance(selection, LoopRef):
            yield from _powers(state, selection)


def tile_fixes(state: State, ref: LoopRef, *sizes: int) -> tuple[Split, ...]:
    """Return splits with an inner loop of a constant extent, as fixes of other steps.

    They are legal unless a part of the loop may not iterate a reduction as the loop does.
    """
    loop = state.loop(ref)
    splits = tuple(Split(ref, (None, size)) for size in sizes)
    blocks = state.tree(ref.function).blocks_in(loop.body)
    if all(block.init is None or _is_kept(loop, block) for block in blocks):
        return splits
    return tuple(split for split in splits if not check(state, split))


def _is_kept(loop: For, block: Block) -> bool:
    """Return whether all parts of a loop surely iterate the same reduction as the loop.

    A remainder ``k % 2`` loses the outer part of a split by 2, and a loop that is bound by spatial
    variables, too, may become constant during the reduction.
    """
    spatial, reducing = bound_variables(block.iters)
    if not spatial.isdisjoint(reducing):
        return False
    for item in block.iters:
        form = linear_form(item.binding, (loop.var,)) if loop.var in item.binding.free else None
        if item.kind == "reduce" and form is not None and loop.var in form.coefficients:
            return True
    return loop.var not in spatial | reducing


def _sets_whole_domain(path: tuple[Stmt, ...], block: Block, facts: Facts) -> bool:
    """Return whether an init provably runs for all values of the spatial iteration variables."""
    start = separate_init(path, block)
    if start is None:
        return False
    extents = {x.var: x.extent for x in walk(start.nest) if isinstance(x, For)}
    return all(
        isinstance(item.binding, Var)
        and item.binding in extents
        and is_proved(eq(extents[item.binding], item.extent), facts)
        for item in start.block.iters
    )


def _positive(loop: For, facts: Facts) -> Expr:
    """Return the number of iterations of a loop, whose extent may be negative."""
    extent = loop.extent
    return extent if isinstance(prove(extent >= 0, facts), Proved) else maximum(extent, 0)


def _powers(state: State, ref: LoopRef) -> Iterator[Split]:
    loop = state.loop(ref)
    if loop.kind != "serial" or loop.annotations:
        return
    upper = const_value(loop.extent)
    for size in (8, 16, 32, 64):
        if upper is None or (size < upper and upper % size == 0):
            yield Split(ref, (None, size))
