"""Requirement checks on the iterations that a block runs, and how often."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.analysis import (
    Coverage,
    Domain,
    Instances,
    Tree,
    bound_kinds,
    determined,
    enclosing,
    executed_domain,
    instances,
    is_reduction,
    outside_loops,
    results_domain,
    statements_around,
    tree_of,
    within_loop,
)
from ..ir.analysis.facts_at import assuming, within_loops
from ..ir.loop.decompose import (
    bound_variables,
    init_condition,
    reduction_position,
    reduction_variables,
    starts_before_reduction,
)
from ..ir.loop.nodes import Alloc, Block, For, Seq, Stmt
from ..ir.symbolic import Bool, Facts, Var, all_of, conjuncts, free_vars, is_proved, to_text
from .apply import Primitive
from .handles import BlockRef, refs_of
from .problem import Problem
from .requirement import Requirement
from .state import State


def repeat_problems(
    state: State,
    ref: BlockRef,
    requirement: Requirement,
    within: Stmt | None = None,
    fixes: tuple[Primitive, ...] = (),
) -> Iterator[Problem]:
    """Yield a problem if a statement may run an instance of a block more than once.

    Parameters
    ----------
    state : State
        The current state.
    ref : BlockRef
        The block.
    requirement : Requirement
        The requirement to report.
    within : Stmt or None
        The statement, by default the outermost one around the block.
    fixes : tuple of Primitive
        The steps that remove the problem.
    """
    found = instances(state.tree(ref.function), state.block(ref), within)
    if not found.once:
        yield _repeated(ref, requirement, found, fixes)


def _repeated(
    ref: BlockRef, requirement: Requirement, found: Instances, fixes: tuple[Primitive, ...]
) -> Problem:
    names = ", ".join(x.var.name for x in found.loops)
    where = (ref, *refs_of(ref.function, *found.loops))
    return Problem(requirement, found.reason, where, {"loops": names}, fixes=fixes)


def described_problems(
    state: State, ref: BlockRef, requirement: Requirement, within: Stmt | None = None
) -> Iterator[Problem]:
    """Yield a problem if no condition describes which iterations of a block run."""
    tree, block = state.tree(ref.function), state.block(ref)
    found = executed_domain(tree, block, within)
    if found.condition is None:
        yield _limited(state, ref, requirement, found)
    elif _of_instances_and_inits(tree, block, within, found.condition) is None:
        message = (
            f"the iterations that block {block.name!r} runs cannot be described: a part of "
            f"{to_text(found.condition)} applies to the reduction, but not to its init"
        )
        yield Problem(requirement, message, (ref,))


def whole_domain_problems(
    state: State, ref: BlockRef, requirement: Requirement, within: Stmt | None = None
) -> Iterator[Problem]:
    """Yield a problem if a block may not run every iteration of its domain."""
    found = executed_domain(state.tree(ref.function), state.block(ref), within)
    if found.coverage is not Coverage.EXACT:
        yield _limited(state, ref, requirement, found)


def _limited(state: State, ref: BlockRef, requirement: Requirement, found: Domain) -> Problem:
    name = state.block(ref).name
    message = found.reason
    if found.condition is None:
        message = f"the iterations that block {name!r} runs cannot be described: {found.reason}"
    numbers = {} if found.condition is None else {"condition": str(found.condition)}
    return Problem(requirement, message, (ref,), numbers)


def condition_of(tree: Tree, block: Block, within: Stmt | None = None) -> Bool:
    """Return the condition on the iteration variables under which a block runs.

    The parts without variables of the reduction are those under which its init runs.

    Raises
    ------
    TypeError
        If there is none; `described_problems` reports it.
    """
    found = executed_domain(tree, block, within).condition
    condition = None if found is None else _of_instances_and_inits(tree, block, within, found)
    if condition is None:
        raise TypeError(f"the iterations of block {block.name!r} cannot be described")
    return condition


def _of_instances_and_inits(
    tree: Tree, block: Block, within: Stmt | None, condition: Bool
) -> Bool | None:
    """Return a condition for the same instances that does not exclude more inits, or None.

    That the loops of a reduction have iterations, such as ``k > 0``, does not apply to the init.
    """
    reduced = {v.var for v in block.iters if v.kind == "reduce"}
    if block.init is None or not reduced:
        return condition
    results = results_domain(tree, block, within).condition
    if results is None:
        return None
    parts = conjuncts(condition)
    own = [p for p in parts if not p.free.isdisjoint(reduced)]
    rest = [p for p in parts if p.free.isdisjoint(reduced)]
    known = tree.function.facts
    for item in block.iters:
        known = within_loop(known, item.var, item.extent)
    known = assuming(known, results, *own)
    implied = all(is_proved(p, known) for p in rest if p not in conjuncts(results))
    return all_of(results, *own) if implied else None


def condition_of_results(tree: Tree, block: Block, within: Stmt | None = None) -> Bool:
    """Return the condition on the spatial iteration variables under which a block has results.

    Raises
    ------
    TypeError
        If there is none.
    """
    found = results_domain(tree, block, within)
    if found.condition is None:
        raise TypeError(f"the results of block {block.name!r} cannot be described")
    return found.condition


def init_problems(state: State, ref: BlockRef, requirement: Requirement) -> Iterator[Problem]:
    """Yield a problem if the init of a reduction block cannot be separated from its loops."""
    tree, block = state.tree(ref.function), state.block(ref)
    if block.init is None or not is_reduction(block):
        return
    if not starts_before_reduction(statements_around(tree, block), block):
        yield Problem(
            requirement,
            f"the init of block {block.name!r} cannot be separated from its reduction loops: the "
            "extent of a spatial loop, or a spatial iteration variable, depends on one of them",
            (ref,),
        )


def whole_reduction_problems(
    state: State, ref: BlockRef, requirement: Requirement, within: Stmt
) -> Iterator[Problem]:
    """Yield the reasons why a statement does not compute whole reductions of a block, each once.

    A statement inside a reduction loop computes a part of the reduction; a loop in the reduction
    that repeats instances adds terms more than once; an init that cannot be separated from the
    reduction loops runs only if the first iteration does.
    """
    tree, block = state.tree(ref.function), state.block(ref)
    if not is_reduction(block):
        return
    path = (*statements_around(tree, block), block)
    first = path[reduction_position(path[:-1], block)]
    if not tree.contains(within, first):
        variable = first.var.name if isinstance(first, For) else block.name
        yield Problem(
            requirement,
            f"the reduction of block {block.name!r} is iterated by loop {variable!r}, which is "
            "around both the block and the destination",
            (ref, *(refs_of(ref.function, first) if isinstance(first, For) else ())),
        )
        return
    yield from init_problems(state, ref, requirement)
    yield from repeat_problems(state, ref, requirement, first)


def reduction_loops(tree: Tree, block: Block) -> tuple[For, ...]:
    """Return the loops around a block that run after its init, outermost first."""
    path = statements_around(tree, block)
    inner = path[reduction_position(path, block) :]
    return tuple(s for s in inner if isinstance(s, For))


def iterates_reduction(tree: Tree, block: Block, loop: For) -> bool:
    """Return whether a loop around a block iterates its reduction."""
    return loop.var in reduction_variables(statements_around(tree, block), block)


def facts_of_inits(tree: Tree, loop: For) -> Facts:
    """Return the facts in scope at a loop that also hold when the inits inside of it run.

    An init runs even if the loops of its reduction have no iterations. Their ranges are therefore
    not facts about a loop that iterates the results of a reduction.
    """
    facts, reducing = tree.facts(loop), frozenset[Var]()
    for block in tree.blocks_in(loop.body):
        if block.init is not None and "spatial" in bound_kinds(loop, block):
            reducing |= reduction_variables(statements_around(tree, block), block)
    return outside_loops(facts, reducing)


def changed_conditions(
    tree: Tree, block: Block, after: Block, path: tuple[Stmt, ...]
) -> tuple[Bool, ...]:
    """Return the conditions of an init that a step would add or remove.

    A condition on the reduction does not keep an init from running, unless all iterations of the
    reduction agree on it. In fewer iterations, more conditions have this property.

    Parameters
    ----------
    tree : Tree
        The function before the step.
    block : Block
        A block with an init.
    after : Block
        The block after the step.
    path : tuple of Stmt
        The statements around the block after the step. The loops that bind spatial iteration
        variables are those before the step.
    """
    old = statements_around(tree, block)
    first = reduction_position(old, block)
    left, right = init_condition(old, block), init_condition(path, after)
    if left is None or right is None:
        return ()
    spatial = bound_variables(block.iters)[0]
    loops = (s for s in old[first:] if isinstance(s, For) and s.var in spatial)
    facts = within_loops(tree.facts(old[first] if first < len(old) else block), loops)
    return tuple(
        part
        for one, other in ((left, right), (right, left))
        for part in conjuncts(other)
        if part not in conjuncts(one) and not is_proved(part, assuming(facts, one))
    )


def loops_not_spatial(
    tree: Tree, block: Block, loops: tuple[For, ...], within: Stmt | None = None
) -> tuple[For, ...]:
    """Return the loops that the spatial iteration variables of a block do not determine.

    The init of a reduction cannot move across such a loop: it runs once for all its iterations on
    one side, and once per iteration on the other. The same holds for a loop that binds no spatial
    iteration variable and may have no iterations: the init runs on one side only.
    """
    found = enclosing(tree, block, within)
    spatial = tuple(v for v in found.iters if v.kind != "reduce")
    known = determined(found, spatial, tree.facts(block.body))
    bound = frozenset[Var]().union(*(free_vars(v.binding) for v in spatial))

    def moves(loop: For) -> bool:
        return loop.var in known and (
            loop.var in bound or is_proved(loop.extent >= 1, tree.facts(loop))
        )

    return tuple(x for x in loops if not moves(x))


def branch_around(tree: Tree, block: Block, other: Stmt) -> Stmt:
    """Return the outermost statement around a block that does not contain another statement."""
    shared = tree.common((block, other))
    site: Stmt = block
    for above in tree.ancestors(block):
        if above is shared:
            break
        site = above
    return site


def executed_after(state: State, step: Primitive, ref: BlockRef, loop: For) -> Domain:
    """Return which iterations a block runs after a step that moves it into a loop.

    The domain is that of one execution of the outermost statement around the loop, but not around
    the block.
    """
    tree, block = state.tree(ref.function), state.block(ref)
    shared = tree.common((block, loop))
    depth = sum(not isinstance(s, Seq | Alloc) for s in (shared, *tree.ancestors(shared)))
    new = tree_of(step.made(state).module.prim(ref.function))
    moved = new.blocks[ref.uid]
    path = [moved, *new.ancestors(moved)][::-1]
    nested = [s for s in path if not isinstance(s, Seq | Alloc)]
    return executed_domain(new, moved, nested[depth])
