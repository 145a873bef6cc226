"""Construction of loop nests around blocks, and removal of blocks from their loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from ..ir.analysis import (
    Interval,
    Tree,
    accesses,
    assuming,
    interval_of,
    ranges_of,
    union,
    with_regions,
    within_dimension,
    within_loop,
)
from ..ir.copies import replace
from ..ir.loop.nodes import Block, Buffer, For, If, IterVar, Let, Load, Seq, Stmt, Store
from ..ir.loop.visit import (
    Rebuilder,
    children,
    path_to,
    replace_statement,
    seq,
    walk,
    with_children,
)
from ..ir.symbolic import (
    TRUE,
    Bool,
    Expr,
    Facts,
    Le,
    Lt,
    Var,
    all_of,
    as_expr,
    conjuncts,
    const_value,
    free_vars,
    is_proved,
    linear_form,
    maximum,
    minimum,
    simplify,
    substitute,
)
from .edit import Edit

ZERO = as_expr(0)
ONE = as_expr(1)


def nest(
    edit: Edit,
    block: Block,
    spans: Mapping[Var, Interval],
    facts: Facts,
    condition: Bool = TRUE,
) -> Stmt:
    """Return a block under new loops that iterate over the interval of each iteration variable.

    The predicate excludes iterations outside the extents, unless there provably are none.
    Intervals of one element do not get a loop, unless the condition may exclude the only term of a
    reduction: without a loop of the reduction, it would exclude the init as well.

    Parameters
    ----------
    edit : Edit
        The edit of the step.
    block : Block
        The block; its bindings and its predicate are replaced.
    spans : Mapping[Var, Interval]
        The interval of every iteration variable, in terms of the enclosing variables.
    facts : Facts
        The facts at the destination.
    condition : Bool
        The condition on the iteration variables under which the block runs. Loops get the bounds
        that it states; the other parts become the predicate.

    Returns
    -------
    Stmt
        The outermost loop, or the block if there are no loops.
    """
    loops: list[tuple[Var, Expr]] = []
    iters: list[IterVar] = []
    parts = [p for p in conjuncts(condition) if p is not TRUE]
    own: dict[Var, Expr] = {}
    before = facts  # inside of the loops that an init runs in
    for item in block.iters:
        at = facts if item.kind == "reduce" else before
        span, parts = _limited(item, spans[item.var], parts, block, own, facts=at)
        binding = span.start
        if const_value(span.extent) != 1 or _excludes_terms(item, block, parts):
            variable = edit.loop_var(_loop_name(item), span.extent)
            loops.append((variable, span.extent))
            facts = within_loop(facts, variable, span.extent)
            if item.kind != "reduce" or block.init is None:
                before = within_loop(before, variable, span.extent)
            binding = span.start + variable
        own[item.var] = binding
        iters.append(replace(item, binding=binding))
    predicate = _within_extents(iters, parts, own, facts, before)
    body: Stmt = replace(block, iters=tuple(iters), predicate=predicate)
    for variable, extent in reversed(loops):
        body = replace(edit.loop(variable, extent, body), origins=block.origins)
    return body


def _excludes_terms(item: IterVar, block: Block, parts: Sequence[Bool]) -> bool:
    """Return whether a condition excludes terms of a reduction with an init, by their variable."""
    reduces = item.kind == "reduce" and block.init is not None
    return reduces and any(item.var in part.free for part in parts)


def _within_extents(
    iters: Sequence[IterVar],
    parts: Sequence[Bool],
    own: Mapping[Var, Expr],
    facts: Facts,
    before: Facts,
) -> Bool:
    """Return the condition that iterations are inside the extents and satisfy other conditions.

    That a reduction loop has iterations does not imply a condition on the spatial iterations,
    because the init runs nevertheless; ``before`` are the facts outside of the reduction loops.
    """
    reduced = {v.var for v in iters if v.kind == "reduce"}
    spatial = all_of(*(inside(v.binding, v.extent, before) for v in iters if v.kind != "reduce"))
    predicate = TRUE
    for item in iters:
        at = facts if item.kind == "reduce" else before
        predicate = predicate & inside(item.binding, item.extent, at)
    within, outside = assuming(facts, predicate), assuming(before, spatial)
    for part in parts:
        free = free_vars(part).isdisjoint(reduced)
        known, simple = (outside, before) if free else (within, facts)
        claim = substitute(part, own)
        predicate = predicate if is_proved(claim, known) else predicate & simplify(claim, simple)
    return predicate


def _limited(
    item: IterVar,
    span: Interval,
    parts: list[Bool],
    block: Block,
    own: Mapping[Var, Expr],
    *,
    facts: Facts,
) -> tuple[Interval, list[Bool]]:
    """Return the part of a whole interval that conditions allow, and the other conditions.

    The bounds are over the iteration variables in ``own``, which have bindings already. A loop of a
    reduction starts at 0: a start that depends on other loops would make them part of the
    reduction, whose init runs before all of its loops.
    """
    if span.start != ZERO or span.extent is not item.extent:
        return span, parts
    later = {v.var for v in block.iters} - own.keys() - {item.var}
    start, stop, left = span.start, span.stop, list[Bool]()
    for part in parts:
        form = linear_form(part.delta, (item.var,)) if isinstance(part, Le | Lt) else None
        scale = None if form is None else const_value(form.coefficients.get(item.var, ZERO))
        allowed = (1,) if item.kind == "reduce" else (1, -1)
        if form is None or scale not in allowed or not free_vars(part).isdisjoint(later):
            left.append(part)
        elif scale == 1:
            stop = minimum(stop, 1 - substitute(form.rest, own))
        else:
            start = maximum(start, substitute(form.rest, own))
    if start is span.start and stop is span.stop:
        return span, parts
    return Interval(simplify(start, facts), simplify(stop - start, facts), span.exhaustive), left


def _loop_name(item: IterVar) -> str:
    """Return the name of the loop of an iteration variable: without the leading ``v``."""
    base = item.var.name.removeprefix("v")
    return base if base.isidentifier() else "ax"


def inside(index: Expr, extent: Expr, facts: Facts) -> Bool:
    """Return the condition that an index is in ``[0, extent)``, without its provable parts."""
    low, high = index >= 0, index < extent
    kept = TRUE
    for claim in (low, high):
        kept = kept if is_proved(claim, facts) else kept & simplify(claim, facts)
    return kept


def copy_block(edit: Edit, source: Buffer, target: Buffer, like: Block) -> Block:
    """Return a block that copies a buffer to another one of the same shape."""
    iters: list[IterVar] = []
    for k, size in enumerate(source.shape):
        variable = edit.loop_var(f"vax{k}", size)
        iters.append(IterVar(variable, size, "spatial", variable))
    indices: tuple[Expr, ...] = tuple(v.var for v in iters)
    body = Store(target, indices, Load(source, indices), like.origins)
    name = edit.fresh(f"copy_{source.name}")
    block = Block(edit.mint(), name, tuple(iters), (), (), body, origins=like.origins)
    return with_regions(block)


def whole(block: Block) -> dict[Var, Interval]:
    """Return the full interval of every iteration variable of a block."""
    return {v.var: Interval(ZERO, v.extent) for v in block.iters}


def buffer_span(
    tree: Tree, site: Stmt, users: tuple[Block, ...], buffer: Buffer
) -> tuple[Interval, ...]:
    """Return the footprint of blocks on a buffer during one execution of a statement.

    Dimensions whose accesses cannot be bounded are covered completely.

    Parameters
    ----------
    tree : Tree
        The index of the function.
    site : Stmt
        The statement.
    users : tuple of Block
        Blocks inside the statement.
    buffer : Buffer
        The buffer.
    """
    facts = tree.facts(site)
    spans: list[list[Interval | None]] = [[] for _ in buffer.shape]
    for block in users:
        loops = binders_between(tree, site, block)
        for access in accesses(block):
            if access.buffer is not buffer:
                continue
            ranges = ranges_of(loops) | access.bound_inner()
            for dimension, index in enumerate(access.bound()):
                spans[dimension].append(interval_of(index, ranges, facts))
    return tuple(_hull(found, size, facts) for found, size in zip(spans, buffer.shape, strict=True))


def _hull(found: list[Interval | None], size: Expr, facts: Facts) -> Interval:
    known = [s for s in found if s is not None]
    joined = union(known, facts) if len(known) == len(found) else None
    return within_dimension(joined, size, facts)


def binders_between(tree: Tree, site: Stmt, inner: Stmt) -> tuple[For | Let, ...]:
    """Return the loops and lets from a statement, itself included, down to one inside it."""
    found: list[For | Let] = [inner] if isinstance(inner, For | Let) else []
    for above in tree.ancestors(inner) if inner is not site else ():
        if isinstance(above, For | Let):
            found.append(above)
        if above is site:
            break
    return tuple(reversed(found))


def outermost_without(tree: Tree, block: Block, others: Iterable[Stmt]) -> Stmt:
    """Return the outermost loop or branch around a block that contains no other statement.

    It is inside the statements that bind integers loaded from memory which the bindings of the
    block or the loops around it use: a copy at the site may use them, too.
    """
    site: Stmt = block
    kept = tuple(others)
    used = set(free_vars(block.predicate)).union(*(free_vars(v.binding) for v in block.iters))
    for above in tree.ancestors(block):
        if isinstance(above, Block) or any(tree.contains(above, b) for b in kept):
            break
        if isinstance(above, Let) and above.var in used:
            break
        if isinstance(above, For) and above.var in used:
            used |= free_vars(above.extent)
        if not isinstance(above, Seq):
            site = above
    return site


def before(root: Stmt, anchor: Stmt, new: Stmt) -> Stmt:
    """Return the tree with a statement inserted directly before another one."""
    return replace_statement(root, anchor, seq(new, anchor))


def after(root: Stmt, anchor: Stmt, new: Stmt) -> Stmt:
    """Return the tree with a statement inserted directly after another one."""
    return replace_statement(root, anchor, seq(anchor, new))


def without(root: Stmt, removed: Stmt) -> Stmt | None:
    """Return the tree without a statement, and without the loops and branches left empty."""
    path = path_to(root, removed)
    if not path:
        return root
    new: Stmt | None = None
    for old, above in pairwise(reversed(path)):
        new = _with_child(above, old, new)
    return new


def _with_child(above: Stmt, old: Stmt, new: Stmt | None) -> Stmt | None:
    """Return a statement with another child; None if nothing is left of it."""
    inner = tuple(new if child is old else child for child in children(above))
    if isinstance(above, If):
        return _without_branch(above, inner)
    kept = tuple(s for s in inner if s is not None)
    if isinstance(above, Seq):
        return seq(*kept) if kept else None
    return with_children(above, kept) if len(kept) == len(inner) else None


def _without_branch(root: If, new: tuple[Stmt | None, ...]) -> Stmt | None:
    then = new[0]
    otherwise = new[1] if len(new) > 1 else None
    if then is None and otherwise is None:
        return None
    return If(root.condition, Seq(()) if then is None else then, otherwise)


def loops_removed(old: Tree, new: Stmt) -> tuple[For, ...]:
    """Return the loops of a function that a new body does not contain."""
    kept = {s.uid for s in walk(new) if isinstance(s, For)}
    return tuple(loop for uid, loop in old.loops.items() if uid not in kept)


def swap_buffer(
    block: Block, old: Buffer, new: Buffer, *, loads: bool = True, stores: bool = True
) -> Block:
    """Return a block that accesses ``new`` instead of ``old``, at the same indices."""
    swapper = _Swapper(old, new, loads=loads, stores=stores)
    init = None if block.init is None else swapper.statement(block.init)
    return with_regions(replace(block, init=init, body=swapper.statement(block.body)))


class _Swapper(Rebuilder):
    def __init__(self, old: Buffer, new: Buffer, *, loads: bool, stores: bool) -> None:
        self._old, self._new = old, new
        self._loads, self._stores = loads, stores

    def load(self, load: Load) -> Load:
        swap = self._loads and load.buffer is self._old
        return Load(self._new, load.indices) if swap else load

    def store(self, store: Store) -> Store:
        swap = self._stores and store.buffer is self._old
        return replace(store, buffer=self._new) if swap else store
