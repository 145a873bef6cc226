"""The ``rfactor`` primitive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ....ir.analysis import (
    Tree,
    accesses,
    assuming,
    bound_kinds,
    loop_values,
    reduction_of,
    results_domain,
    statements_around,
    with_regions,
)
from ....ir.loop.combiners import identity_of
from ....ir.loop.nodes import (
    Block,
    Buffer,
    Condition,
    Element,
    For,
    If,
    IterVar,
    Load,
    Number,
    Stmt,
    Where,
)
from ....ir.loop.reducers import Reducing
from ....ir.loop.straight_line import straight_line
from ....ir.loop.visit import replace_statement, substitute_in, substitute_in_element
from ....ir.symbolic import (
    TRUE,
    Bool,
    Expr,
    Var,
    all_of,
    conjuncts,
    const_value,
    free_vars,
    is_proved,
    maximum,
    substitute,
    to_text,
)
from ...apply import Primitive, Rewrite, check
from ...domain_checks import (
    condition_of_results,
    repeat_problems,
    whole_reduction_problems,
)
from ...edit import Edit
from ...handles import BlockRef, Handle, LoopRef, loop_ref, refs_of
from ...loop_nests import ZERO, after, buffer_span, nest, outermost_without, whole
from ...problem import Problem
from ...registry import primitive
from ...requirement import Requirement
from ...state import State


@primitive(family="reduction", returns=BlockRef, isolated=True)
@dataclass(frozen=True, slots=True)
class Rfactor(Primitive):
    """Factor a reduction into partial results per iteration of a loop, and a block combining them.

    Before::

        for i in range(n):
            for k0 in range(m // 8):
                for k1 in range(8):
                    with init:
                        C[i] = 0
                    C[i] += A[i, k0 * 8 + k1]

    After (``loop=k1``)::

        for i in range(n):
            for k0 in range(m // 8):
                for k1 in range(8):
                    with init:
                        C_rf[i, k1] = 0
                    C_rf[i, k1] += A[i, k0 * 8 + k1]
        for i in range(n):
            for r in range(8):
                with init:
                    C[i] = 0
                C[i] += C_rf[i, r]

    Parameters
    ----------
    block : BlockRef
        The reduction block. It keeps its handle and computes the partial results.
    loop : LoopRef
        The reduction loop that becomes spatial.

    Notes
    -----
    The reduction is evaluated in another order, which declared reductions allow. Iterations that a
    predicate excludes contribute the identity. The partial results are allocated in the innermost
    loop around their uses of which each iteration writes before it reads. The result is the handle
    of the combining block, which gets new loops. Cost: linear in the size of the function.

    Names elsewhere: TVM ``rfactor``; Halide ``rfactor``.

    References
    ----------
    TensorIR (ASPLOS '23), §3.2; "Parallel Associative Reductions in Halide" (CGO '17).

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(4, 8), f32], y: Out[(4,), f32]):
    ...     for i in range(4):
    ...         for k in range(8):
    ...             with block("y"):
    ...                 vi, vk = spatial(i), reduce(k)
    ...                 with init(): y[vi] = 0.0
    ...                 y[vi] += x[vi, vk]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> combine = sch.rfactor("y", "k")
    >>> print(sch)
    @prim_func(scheduled=True)
    def f(x: Buffer[(4, 8), f32], y: Out[(4,), f32]):
        y_rf = alloc((4, 8), f32)
        for i in range(4):
            for k in range(8):
                with block("y"):
                    vi, vk_1 = spatial(i), spatial(k)
                    with init(): y_rf[vi, vk_1] = 0.0
                    y_rf[vi, vk_1] += x[vi, vk_1]
        for i_all in range(4):
            for part in range(8):
                with block("y_combine"):
                    vi_all, vpart = spatial(i_all), reduce(part)
                    with init(): y[vi_all] = 0.0
                    y[vi_all] += y_rf[vi_all, vpart]
    """

    class Requires(Requirement):
        """The requirements of ``rfactor``."""

        COMMUTATIVE_REDUCTION = (
            "the block is a reduction with an init, its update ``C = C op value`` or its reducer "
            "is commutative, and no other block writes C"
        )
        REDUCTION_LOOP = (
            "the loop is around the block and binds reduction iteration variables only, and no "
            "other loop binds both spatial and reduction iteration variables"
        )
        WRITES_WHOLE_BOX = (
            "the output C is indexed by the spatial iteration variables, each once, and by "
            "terms without iteration variables, and a condition describes which elements the "
            "block writes"
        )
        RUNS_ONCE = (
            "the loops around the block compute whole reductions, run each instance of the block "
            "once, and its init can be separated from its reduction loops"
        )
        UNCONDITIONAL_TERMS = (
            "no branch around the block depends on a reduction loop, and the iteration variables "
            "determine the other loops in a predicate that does"
        )
        INDEPENDENT_EXTENT = (
            "the extent of the loop is a term over the symbols of the function, the bindings of "
            "the reduction iteration variables are terms over these and the reduction loops, and "
            "the extents of the spatial ones over these and loops that iteration variables are"
        )

    block: BlockRef
    loop: LoopRef

    def structural(self, state: State) -> Iterator[Problem]:
        """Check the block, and the iteration variables that the loop binds."""
        tree, block = state.tree(self.block.function), state.block(self.block)
        loop, where = state.loop(self.loop), (self.block, self.loop)
        update = reduction_of(block)
        starts = block.init is not None and straight_line(block.init) is not None
        if update is None or not starts or not update.reducer.commutative:
            yield Problem(
                self.Requires.COMMUTATIVE_REDUCTION,
                f"block {block.name!r} is not a reduction with an init and an update of the form "
                "C = C op value, or by a commutative reducer",
                (self.block,),
            )
            return
        for buffer in (target.buffer for target in update.targets):
            others = [b for b in tree.writers(buffer) if b is not block]
            if others:
                yield Problem(
                    self.Requires.COMMUTATIVE_REDUCTION,
                    f"other blocks also write {buffer.name!r}",
                    (self.block, *refs_of(self.block.function, *others, buffer)),
                )
        above = tree.loops_above(block)
        mixed = any(bound_kinds(x, block) == frozenset({"reduce", "spatial"}) for x in above)
        if loop not in above or mixed or bound_kinds(loop, block) != frozenset({"reduce"}):
            yield Problem(
                self.Requires.REDUCTION_LOOP,
                f"loop {loop.var.name!r} must be around block {block.name!r} and bind reduction "
                "iteration variables only",
                where,
                fixes=() if mixed else tuple(self._legal_steps(state, tree, block)),
            )
            return
        for target in update.targets:
            at = target.indices
            if not _is_box(block, at):
                yield Problem(
                    self.Requires.WRITES_WHOLE_BOX,
                    f"{target.buffer.name!r} is indexed by ({', '.join(map(str, at))}); expected "
                    "the spatial iteration variables, each once",
                    (self.block, *refs_of(self.block.function, target.buffer)),
                )
        if not free_vars(loop.extent) <= tree.symbols():
            yield Problem(
                self.Requires.INDEPENDENT_EXTENT,
                f"extent {loop.extent} of loop {loop.var.name!r} depends on another loop, or on a "
                "value that is read from memory",
                where,
            )
        for variable in (v for v in block.iters if v.kind == "spatial"):
            outer = free_vars(variable.extent) - _bound_whole(block).keys() - tree.symbols()
            if outer:
                names = ", ".join(sorted(repr(v.name) for v in outer))
                yield Problem(
                    self.Requires.INDEPENDENT_EXTENT,
                    f"extent {to_text(variable.extent)} of spatial iteration variable "
                    f"{variable.var.name!r} depends on {names}, which no iteration variable is",
                    where,
                )
        reducing = {x.var for x in above if "reduce" in bound_kinds(x, block)}
        for variable in (v for v in block.iters if v.kind == "reduce"):
            loaded = free_vars(variable.binding) - reducing - tree.symbols()
            if loaded:
                names = ", ".join(sorted(repr(v.name) for v in loaded))
                yield Problem(
                    self.Requires.INDEPENDENT_EXTENT,
                    f"reduction iteration variable {variable.var.name!r} is bound to "
                    f"{to_text(variable.binding)}, which depends on {names}, read from memory",
                    where,
                )
        yield from self._branches(tree, block)

    def _branches(self, tree: Tree, block: Block) -> Iterator[Problem]:
        """Yield a problem for each branch that excludes terms of the reduction."""
        terms = {x.var for x in tree.loops_above(block) if "reduce" in bound_kinds(x, block)}
        for above in statements_around(tree, block):
            if isinstance(above, If) and not terms.isdisjoint(free_vars(above.condition)):
                yield Problem(
                    self.Requires.UNCONDITIONAL_TERMS,
                    f"the branch {above.condition} around block {block.name!r} depends on a loop "
                    "of its reduction",
                    (self.block,),
                )

    def proofs(self, state: State) -> Iterator[Problem]:
        """Check that every instance of the block runs once."""
        tree, block = state.tree(self.block.function), state.block(self.block)
        update = reduction_of(block)
        if update is None:
            return
        site = _site(tree, block)
        yield from whole_reduction_problems(state, self.block, self.Requires.RUNS_ONCE, site)
        yield from repeat_problems(state, self.block, self.Requires.RUNS_ONCE, site)
        loops = {x.var: x for x in tree.loops_above(block)}
        known = {v for v, x in loops.items() if "reduce" in bound_kinds(x, block)}
        known |= {v.var for v in block.iters} | tree.symbols()
        lost = free_vars(_excluding(tree, block)) - known
        if lost:
            yield Problem(
                self.Requires.UNCONDITIONAL_TERMS,
                f"the predicate {block.predicate} of block {block.name!r} depends on "
                f"{', '.join(sorted(repr(v.name) for v in lost))}, which its iteration variables "
                "do not determine",
                (
                    self.block,
                    *refs_of(self.block.function, *(loops[v] for v in lost & loops.keys())),
                ),
            )
        domain = results_domain(tree, block, site)
        if domain.condition is None:
            yield Problem(
                self.Requires.WRITES_WHOLE_BOX,
                f"the elements that block {block.name!r} writes cannot be described: "
                f"{domain.reason}",
                (self.block, *refs_of(self.block.function, *(t.buffer for t in update.targets))),
            )

    def _legal_steps(self, state: State, tree: Tree, block: Block) -> Iterator[Rfactor]:
        """Yield the step at each legal loop."""
        for loop in tree.loops_above(block):
            if bound_kinds(loop, block) == frozenset({"reduce"}):
                other = replace(self, loop=loop_ref(self.block.function, loop))
                if not check(state, other):
                    yield other

    def rewrite(self, state: State) -> Rewrite:
        """Add a dimension for the loop to the result, and insert a block that reduces it."""
        edit = Edit(state, self.block.function)
        tree, block, loop = edit.tree, state.block(self.block), state.loop(self.loop)
        update = _reduction(block)
        count = loop.extent
        if not is_proved(count >= 0, tree.function.facts):
            count = maximum(count, 0)
        partials = tuple(
            edit.buffer(f"{b.name}_rf", (*b.shape, count), b.dtype, "global")
            for b in (target.buffer for target in update.targets)
        )
        site, first = _site(tree, block), update.targets[0]
        box = zip(first.indices, buffer_span(tree, site, (block,), first.buffer), strict=True)
        found = {i: span for i, span in box if isinstance(i, Var)}
        extents = {v.var: v.extent for v in block.iters}
        local = {v: extent for v, extent in extents.items() if v in found}
        local = {v: x for v, x in local.items() if not free_vars(x) <= tree.symbols()}
        extents |= {v: found[v].stop for v in local}  # the loops of the old extents end before
        combine, renamed = _combining(edit, block, partials, (count, extents))
        at = ((renamed[i], span) for i, span in found.items() if i in renamed)
        spans = whole(combine) | {v: span for v, span in at if isinstance(v, Var)}
        names = renamed | {x: renamed[v] for x, v in _bound_whole(block).items() if v in renamed}
        domain = (renamed[v] < substitute(extent, names) for v, extent in local.items())
        condition = substitute(condition_of_results(tree, block, site), names)
        condition = all_of(condition, *domain)
        nested = nest(edit, combine, spans, tree.facts(site), condition)
        body = after(tree.function.body, site, nested)
        return edit.finish(
            replace_statement(body, block, _factored(edit, block, loop, partials)),
            results=(edit.block_ref(combine),),
            buffers=(*tree.function.buffers, *partials),
            like=first.buffer,
            place=partials,
        )

    @classmethod
    def suggest(cls, state: State, selection: Handle) -> Iterator[Primitive]:
        """Yield the step for the selected reduction block at each of its reduction loops."""
        if isinstance(selection, BlockRef):
            tree, block = state.tree(selection.function), state.block(selection)
            for loop in tree.loops_above(block):
                if bound_kinds(loop, block) == frozenset({"reduce"}):
                    yield cls(selection, loop_ref(selection.function, loop))


def _bound_whole(block: Block) -> dict[Var, Var]:
    """Return the spatial iteration variables that are bound to a loop variable alone, by that."""
    spatial = (v for v in block.iters if v.kind == "spatial")
    return {v.binding: v.var for v in spatial if isinstance(v.binding, Var)}


def _is_box(block: Block, indices: tuple[Expr, ...]) -> bool:
    """Return whether indices are the spatial iteration variables, each once, and constants.

    Variables of extent 1 may be missing.
    """
    every = {v.var for v in block.iters}
    spatial = {v.var for v in block.iters if v.kind == "spatial"}
    moving = {v.var for v in block.iters if v.kind == "spatial" and const_value(v.extent) != 1}
    used = [i for i in indices if isinstance(i, Var) and i in every]
    others = (i for i in indices if i not in used)
    return (
        len(used) == len(set(used))
        and moving <= set(used) <= spatial
        and all(every.isdisjoint(free_vars(i)) for i in others)
    )


def _reduction(block: Block) -> Reducing:
    found = reduction_of(block)
    if found is None or block.init is None:
        raise TypeError(f"block {block.name!r} is not a reduction")
    return found


def _site(tree: Tree, block: Block) -> Stmt:
    """Return the outermost statement around a block without other users of its results."""
    results = {target.buffer for target in _reduction(block).targets}
    blocks = (b for b in tree.outermost_blocks() if b is not block)
    others = [b for b in blocks if any(a.buffer in results for a in accesses(b))]
    return outermost_without(tree, block, others)


def _excluding(tree: Tree, block: Block) -> Bool:
    """Return the conditions that exclude terms, over reduction loops and iteration variables."""
    reducing = {x.var for x in tree.loops_above(block) if "reduce" in bound_kinds(x, block)}
    parts = [p for p in conjuncts(block.predicate) if not free_vars(p).isdisjoint(reducing)]
    others = {v: e for v, e in loop_values(tree, block).items() if v not in reducing}
    return substitute(all_of(*parts), others)


def _factored(edit: Edit, block: Block, loop: For, partials: tuple[Buffer, ...]) -> Block:
    """Return the block that computes partial results per iteration of the loop."""
    reducing = [x for x in edit.tree.loops_above(block) if "reduce" in bound_kinds(x, block)]
    fresh = {x.var: edit.loop_var(f"v{x.var.name}", x.extent) for x in reducing}
    iters = [v for v in block.iters if v.kind == "spatial"]
    for outer in reducing:
        kind = "spatial" if outer is loop else "reduce"
        iters.append(IterVar(fresh[outer.var], outer.extent, kind, outer.var))
    old = {v.var: substitute(v.binding, fresh) for v in block.iters if v.kind == "reduce"}
    guard = substitute(substitute(_excluding(edit.tree, block), fresh), old)
    partial = _partial_update(block, partials, fresh[loop.var], old, guard)
    return with_regions(
        replace(
            block,
            iters=tuple(iters),
            predicate=_predicate(edit.tree, block, fresh),
            body=partial.body(),
            init=partial.starts(),
        )
    )


def _predicate(tree: Tree, block: Block, reducing: Mapping[Var, Var]) -> Bool:
    """Return the predicate without the conditions that exclude terms.

    Those may also have kept the spatial iteration variables in their domains.
    """
    kept = [p for p in conjuncts(block.predicate) if free_vars(p).isdisjoint(reducing)]
    if all_of(*kept) == block.predicate:
        return block.predicate
    spatial = (v for v in block.iters if v.kind == "spatial")
    ranges = (p for v in spatial for p in (v.binding >= 0, v.binding < v.extent))
    known = assuming(tree.facts(block), *kept)
    return all_of(*kept, *(p for p in ranges if not is_proved(p, known)))


def _partial_update(
    block: Block, partials: tuple[Buffer, ...], position: Var, old: Mapping[Var, Expr], guard: Bool
) -> Reducing:
    update = _reduction(block)
    pairs = zip(partials, update.targets, strict=True)
    targets = tuple(Load(part, (*target.indices, position)) for part, target in pairs)

    def guarded(value: Element, otherwise: Number) -> Element:
        new = substitute_in_element(value, old)
        return new if guard == TRUE else Where(Condition(guard), new, otherwise)

    terms = zip(update.terms, update.reducer.identities, strict=True)
    prefix = tuple(
        replace(bind, value=guarded(bind.value, identity_of("or", bind.local.dtype)))
        for bind in update.prefix
    )
    scratch = None if update.scratch is None else substitute_in(update.scratch, old)
    if scratch is not None and guard != TRUE:  # excluded terms need no temporaries
        scratch, guard = If(guard, scratch), TRUE
    return replace(
        update,
        prefix=prefix,
        targets=targets,
        terms=tuple(guarded(v, n) for v, n in terms),
        scratch=scratch,
    )


def _combining(
    edit: Edit, block: Block, partials: tuple[Buffer, ...], counts: tuple[Expr, Mapping[Var, Expr]]
) -> tuple[Block, dict[Var, Expr]]:
    """Return the block that combines the partial results, with the init of the old one.

    ``counts`` are the number of partial results, and the extents of the spatial iteration
    variables. The second result maps those of the old block to those of the new one.
    """
    update, (extent, extents) = _reduction(block), counts
    renamed: dict[Var, Expr] = {v.var: ZERO for v in block.iters if v.kind == "spatial"}
    iters: list[IterVar] = []
    for index in update.targets[0].indices:
        if isinstance(index, Var) and index in renamed:
            variable = edit.loop_var(f"{index.name}_all", extents[index])
            renamed[index] = variable
            iters.append(IterVar(variable, extents[index], "spatial", variable))
    part = edit.loop_var("vpart", extent)
    iters.append(IterVar(part, extent, "reduce", part))
    at = [tuple(substitute(i, renamed) for i in target.indices) for target in update.targets]
    combine = replace(
        update,
        prefix=(),
        scratch=None,
        targets=tuple(Load(t.buffer, i) for t, i in zip(update.targets, at, strict=True)),
        terms=tuple(Load(b, (*i, part)) for b, i in zip(partials, at, strict=True)),
    )
    start = None if block.init is None else substitute_in(block.init, renamed)
    made = Block(
        edit.mint(),
        edit.fresh(f"{block.name}_combine"),
        tuple(iters),
        (),
        (),
        combine.body(),
        start,
        origins=block.origins,
        reducer=combine.declared,
    )
    return with_regions(made), renamed
