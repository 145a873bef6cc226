"""Steps inside of blocks: the inside of a block as a function whose symbols are its variables.

A block is opaque to the statements around it, and its inside is isolated from them. A step that is
``isolated`` is therefore applied to a function that contains only the innermost block around its
targets: the buffers from outside are its parameters, the iteration variables its symbols. Only the
temporaries that are allocated inside are temporaries of this function. The new function then
replaces the inside of the block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from typing import Final, TypeAlias

from ..ir.analysis import Tree, tree_of, with_own_regions, with_regions, written_before_read
from ..ir.analysis.dependences import with_separate_inits
from ..ir.analysis.races import kind_conflicts
from ..ir.copies import replace
from ..ir.loop.memory_scopes import OF_BLOCK
from ..ir.loop.nodes import (
    Alloc,
    Block,
    Buffer,
    BufferParam,
    For,
    Let,
    PrimFunc,
    ScalarParam,
    Stmt,
)
from ..ir.loop.visit import (
    children,
    loads,
    stores,
    substitute_in,
    transform,
    used_variables,
    walk,
    with_children,
)
from ..ir.module import Module
from ..ir.symbolic import Facts, Var, const_value, free_vars
from ..target.gpus import BLOCK_AXES
from .handles import BlockRef, BufferRef, Handle, LoopRef, block_ref, label, refs_of
from .problem import Problem
from .requirement import CommonRequirement
from .state import Inside, State
from .step import Step

_CONCURRENT: Final = ("parallel", "thread")

_Part: TypeAlias = "tuple[Block, bool]"
"""A block, and whether its init is meant instead of its body."""


def entered(state: State, step: Step) -> State:
    """Return the state whose function is the inside of the block around the targets of a step.

    The targets are its loops and blocks, or else its buffers. Return the state itself if the step
    is not isolated, or its targets are not inside of a block.
    """
    if not step.isolated:
        return state
    refs = tuple(step.handles())
    nodes = tuple(ref for ref in refs if isinstance(ref, LoopRef | BlockRef))
    found = (scope_of(state, ref) for ref in nodes or refs)
    return next((scope for scope in found if scope is not None), state)


def selected(state: State, cls: type[Step], selection: Handle) -> State:
    """Return the state for which a type of steps suggests steps for a selection."""
    found = scope_of(state, selection) if cls.isolated else None
    return state if found is None else found


def scope_of(state: State, ref: Handle) -> State | None:
    """Return the state whose function is the inside of the block around a part, or None.

    The block around a buffer is that around its allocation. Handles of the state are also handles
    of the returned one.
    """
    if not isinstance(ref, LoopRef | BlockRef | BufferRef) or state.absence(ref) is not None:
        return None
    found = _block_around(state, ref)
    if found is None:
        return None
    key = ("inside", ref.function, *found)
    known = state.memo.get(key)
    if not isinstance(known, State):
        known = state.memo[key] = _inside(state, ref.function, *found)
    return known


def _block_around(state: State, ref: LoopRef | BlockRef | BufferRef) -> _Part | None:
    """Return the innermost block around a part, and whether the part is in its init."""
    tree = state.tree(ref.function)
    below = _node(state, ref)
    if below is None:
        return None
    for above in tree.ancestors(below):
        if isinstance(above, Block):
            return above, below is above.init
        below = above
    return None


def _node(state: State, ref: LoopRef | BlockRef | BufferRef) -> Stmt | None:
    """Return a loop, a block, or the allocation of a buffer, if it is a statement."""
    match ref:
        case LoopRef():
            return state.loop(ref)
        case BlockRef():
            return state.block(ref)
        case BufferRef():
            return state.tree(ref.function).allocs.get(state.buffer(ref))


def _inside(state: State, name: str, block: Block, init: bool) -> State:  # noqa: FBT001 - a key
    tree = state.tree(name)
    function = _function(tree, block, init, ())
    own = _own_temporaries(tree, block, function)
    if own:
        function = _function(tree, block, init, own)
    inside = Inside(state, block_ref(name, block), init)
    return replace(state, module=state.module.with_functions(function), inside=inside)


def _function(tree: Tree, block: Block, init: bool, own: tuple[Buffer, ...]) -> PrimFunc:  # noqa: FBT001
    """Return the inside of a block as a function that allocates some temporaries of the others."""
    body = block.init if init else block.body
    if body is None:
        raise TypeError(f"block {block.name!r} has no init")
    written = {store.buffer for store in stores(body)}
    outer = (*tree.function.buffer_params, *_allocated_around(tree, block))
    iters = tuple(v.var for v in block.iters if not (init and v.kind == "reduce"))
    return replace(
        tree.function,
        params=(
            *(BufferParam(b, "inout" if b in written else "in") for b in outer if b not in own),
            *(ScalarParam(v) for v in (*tree.function.scalar_params, *iters)),
        ),
        body=body,
        buffers=own,
        facts=_visible(tree, body, {*tree.symbols(), *iters}),
    )


def _allocated_around(tree: Tree, block: Block) -> tuple[Buffer, ...]:
    allocs = (s for s in tree.ancestors(block) if isinstance(s, Alloc))
    return (*tree.function.buffers, *(s.buffer for s in allocs))


def _own_temporaries(tree: Tree, block: Block, inside: PrimFunc) -> tuple[Buffer, ...]:
    """Return the temporaries from outside of a block that may be allocated inside instead.

    No other part of the function uses them, and each iteration of the block reads only elements
    that it wrote before. The threads of a loop around the block use the same shared memory.
    """
    used = Counter(_uses(inside.body))
    kept = frozenset(s.var for s in tree.ancestors(block) if isinstance(s, For | Let))
    kept |= {v.var for s in tree.ancestors(block) if isinstance(s, Block) for v in s.iters}
    found = [
        b
        for b in _allocated_around(tree, block)
        if used[b] and not (_variables(b) & kept) and b.scope not in OF_BLOCK
    ]
    if not found:
        return ()
    everywhere = Counter(_uses(tree.function.body))
    found = [b for b in found if everywhere[b] == used[b]]
    body = with_separate_inits(tree_of(inside), inside.body)
    covered = written_before_read(body, found, inside.facts)
    return tuple(b for b in found if b in covered)


def _uses(statement: Stmt) -> Iterator[Buffer]:
    yield from (store.buffer for store in stores(statement))
    yield from (load.buffer for load in loads(statement))


@lru_cache(maxsize=4096)
def _variables(buffer: Buffer) -> frozenset[Var]:
    dims = (*buffer.shape, *(buffer.strides or ()))
    return frozenset[Var]().union(*map(free_vars, dims))


def _visible(tree: Tree, body: Stmt, symbols: set[Var]) -> Facts:
    """Return the facts at the inside of a block over the variables that it may use."""
    facts = tree.facts(body)
    return Facts((f for f in facts if f.predicate.free <= symbols), facts.hints)


def left(state: State, made: Module) -> Module:
    """Return the whole module for a module that a step in a state made.

    The inside of the block becomes the body of the new function, and the regions of the blocks
    around it are computed again.
    """
    inside = state.inside
    if inside is None:
        return made
    around = inside.around
    if made is state.module:
        return around.module
    new, tree = made.prim(inside.block.function), around.tree(inside.block.function)
    old = tree.blocks[inside.block.uid]
    body = _isolated(new.body, frozenset(v.var for v in old.iters))
    for buffer in reversed(new.buffers):
        body = Alloc(buffer, body)
    block = replace(old, init=body) if inside.init else replace(old, body=body)
    visible = _allocated_around(tree, old)
    own = {b for b in visible if b not in state.module.prim(tree.function.name).buffer_params}
    whole = replace(
        tree.function,
        body=_replaced(tree, old, with_regions(block), own),
        buffers=tuple(b for b in tree.function.buffers if b not in own),
        attributes=new.attributes,
    )
    return around.module.with_functions(whole)


def _isolated(statement: Stmt, outer: frozenset[Var]) -> Stmt:
    """Return a statement whose blocks use their own iteration variables instead of outer ones.

    In a block that a variable is bound to, the variable is replaced by the iteration variable.
    """

    def change(part: Stmt) -> Stmt:
        if not isinstance(part, Block):
            return part
        own = {v.binding: v.var for v in part.iters if isinstance(v.binding, Var)}
        inner = [part.body] if part.init is None else [part.init, part.body]
        used = outer & own.keys() & frozenset[Var]().union(*map(used_variables, inner))
        terms = {variable: own[variable] for variable in used}
        new = tuple(substitute_in(x, terms) if terms else x for x in inner)
        return with_children(part, new)

    return transform(statement, change)


def _replaced(tree: Tree, old: Stmt, new: Stmt, own: Collection[Buffer]) -> Stmt:
    """Return the body of a function with a statement replaced; blocks around get new regions.

    The allocations of the buffers in ``own`` around the statement are removed.
    """
    for above in tree.ancestors(old):
        if isinstance(above, Alloc) and above.buffer in own:
            old = above
            continue
        new = with_children(above, tuple(new if c is old else c for c in children(above)))
        if isinstance(new, Block):
            new = with_own_regions(new)
        old = above
    return new


def whole(state: State) -> State:
    """Return the state around the inside of a block, or the state itself."""
    return state if state.inside is None else state.inside.around


def same_block_problems(state: State, step: Step) -> Iterator[Problem]:
    """Yield a problem unless the targets of an isolated step are inside of the same block.

    Parameters
    ----------
    state : State
        The state around the block.
    step : Step
        The step.
    """
    if not step.isolated:
        return
    handles = tuple(dict.fromkeys(step.handles()))
    nodes = [ref for ref in handles if isinstance(ref, LoopRef | BlockRef)]
    around = [_block_around(state, ref) for ref in nodes]
    if len(set(around)) > 1:
        positions = ", ".join(map(_position, nodes, around))
        yield Problem(
            CommonRequirement.SAME_BLOCK, f"{positions}; expected the same block", handles
        )
        return
    for ref in handles:
        if nodes and isinstance(ref, BufferRef):
            yield from _buffer_problems(state, ref, nodes[0], around[0])


def _position(ref: LoopRef | BlockRef, around: _Part | None) -> str:
    if around is None:
        return f"{label(ref)!r} is outside of blocks"
    return f"{label(ref)!r} is inside {_part_name(around)}"


def _part_name(part: _Part) -> str:
    block, init = part
    return f"the init of block {block.name!r}" if init else f"block {block.name!r}"


def _buffer_problems(
    state: State, ref: BufferRef, node: LoopRef | BlockRef, around: _Part | None
) -> Iterator[Problem]:
    """Yield a problem if a buffer does not exist in the block around another target."""
    tree, found = state.tree(ref.function), _block_around(state, ref)
    alloc, target = _node(state, ref), _node(state, node)
    if alloc is None or target is None or found == around or tree.contains(alloc, target):
        return
    where = () if found is None else (block_ref(ref.function, found[0]),)
    inside = "in another loop" if found is None else f"inside {_part_name(found)}"
    yield Problem(
        CommonRequirement.SAME_BLOCK,
        f"{label(ref)!r} is allocated {inside}, which is not around {label(node)!r}",
        (ref, node, *where),
    )


def isolation_problems(state: State, made: Callable[[], Module]) -> Iterator[Problem]:
    """Yield the conflicts that a step inside of a block causes in the loops around the block.

    Parameters
    ----------
    state : State
        The state of the inside of the block.
    made : callable
        Returns the module after the step, of this state.
    """
    inside = state.inside
    if inside is None:
        return
    name, around = inside.block.function, inside.around
    tree = around.tree(name)
    block = tree.blocks[inside.block.uid]
    loops = [s for s in tree.ancestors(block) if isinstance(s, For) and const_value(s.extent) != 1]
    vectors = [loop for loop in loops if loop.kind == "vectorized"]
    if vectors:
        yield Problem(
            CommonRequirement.ISOLATED,
            f"loop {vectors[0].var.name!r} around block {block.name!r} is vectorized",
            (inside.block, *refs_of(name, *vectors)),
        )
        return
    after = made()
    yield from _foreign_shapes(state, after)
    new = tree_of(left(state, after).prim(name))
    yield from _foreign_variables(state, new)
    concurrent = [loop for loop in loops if loop.kind in _CONCURRENT]
    for loop in concurrent:
        for conflict in kind_conflicts(new, new.loops[loop.uid]):
            where = refs_of(name, loop, *(b for b in (conflict.buffer,) if b.uid in tree.buffers))
            message = f"after this step, {conflict.reason}"
            yield Problem(CommonRequirement.ISOLATED, message, (inside.block, *where))
        if loop.kind == "thread" and loop.thread not in BLOCK_AXES:
            yield from _shared(state, after, loop)


def _new_temporaries(state: State, after: Module) -> tuple[Buffer, ...]:
    """Return the temporaries that a step created, and those that it changed."""
    inside = state.inside
    name = "" if inside is None else inside.block.function
    old = state.tree(name).allocs
    return tuple(b for b in tree_of(after.prim(name)).temporaries if b not in old)


def _foreign_shapes(state: State, after: Module) -> Iterator[Problem]:
    """Yield the new temporaries with shapes over variables from outside of the block."""
    inside = state.inside
    if inside is None:
        return
    tree, block = inside.around.tree(inside.block.function), inside.around.block(inside.block)
    outer = {s.var for s in tree.ancestors(block) if isinstance(s, For | Let)}
    outer |= {v.var for s in tree.ancestors(block) if isinstance(s, Block) for v in s.iters}
    for buffer in _new_temporaries(state, after):
        found = outer & _variables(buffer)
        if found:
            names = ", ".join(sorted(repr(v.name) for v in found))
            yield Problem(
                CommonRequirement.ISOLATED,
                f"the shape of a temporary inside block {block.name!r} would depend on {names}, "
                "which is known only outside of it",
                (inside.block,),
            )


def _foreign_variables(state: State, new: Tree) -> Iterator[Problem]:
    """Yield the first block that would use a variable from outside, or need it for its regions."""
    inside = state.inside
    if inside is None:
        return
    outer = new.blocks[inside.block.uid]
    around = [s for s in new.ancestors(outer) if isinstance(s, Block)]
    blocks = (*around, *(s for s in walk(outer) if isinstance(s, Block)))
    yield from _foreign_problems(new, blocks, (inside.block,))


def has_local_shapes(func: object) -> bool:
    """Return whether a function has temporaries whose shapes depend on loops or loaded integers."""
    if not isinstance(func, PrimFunc):
        return False
    tree = tree_of(func)
    symbols, allocs = tree.symbols(), tree.allocs
    return any(not _variables(b) <= symbols for b, alloc in allocs.items() if alloc is not None)


def region_problems(
    before: Module, after: Module, names: Iterable[str], where: tuple[Handle, ...]
) -> Iterator[Problem]:
    """Yield the blocks whose regions a step can only describe by variables from outside of them.

    The region of a temporary is its whole shape if no smaller one is known.
    """
    for name in names:
        if has_local_shapes(before.functions.get(name)):
            new = tree_of(after.prim(name))
            old = tree_of(before.prim(name)).blocks
            changed = (b for uid, b in new.blocks.items() if old.get(uid) is not b)
            yield from _foreign_problems(new, changed, where)


def _foreign_problems(
    tree: Tree, blocks: Iterable[Block], where: tuple[Handle, ...]
) -> Iterator[Problem]:
    for block in blocks:
        foreign = _reach(block) - tree.symbols() - {v.var for v in block.iters}
        if foreign:
            names = ", ".join(sorted(repr(v.name) for v in foreign))
            message = f"after this step, block {block.name!r} would use {names} from outside of it"
            yield Problem(CommonRequirement.ISOLATED, message, where)
            return


def _reach(block: Block) -> frozenset[Var]:
    """Return the variables in the inside and in the regions of a block that it does not bind."""
    parts = (block.body,) if block.init is None else (block.init, block.body)
    ranges = (r for region in (*block.reads, *block.writes) for r in region.ranges)
    ends = (r.start.free | r.extent.free for r in ranges)
    return frozenset[Var]().union(*map(used_variables, parts), *ends)


def _shared(state: State, after: Module, loop: For) -> Iterator[Problem]:
    """Yield the new temporaries that all threads of a loop around a block would share."""
    inside = state.inside
    for buffer in _new_temporaries(state, after):
        if inside is not None and buffer.scope in OF_BLOCK:
            yield Problem(
                CommonRequirement.ISOLATED,
                f"after this step, each iteration of block {inside.block.name!r} has its own "
                f"temporary in {buffer.scope} memory, which the threads of loop "
                f"{loop.var.name!r} share",
                (inside.block, *refs_of(inside.block.function, loop)),
            )
            return
