"""Steps drawn in search of a legal one: all operands of a primitive, in random order.

Few operands of a step such as ``rfactor`` are legal in a program, so a random choice rarely finds
one. Here operands are tried one after the other.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from tilewright.ir.loop.nodes import Block, For
from tilewright.ir.loop.visit import walk as preorder
from tilewright.schedules.apply import Primitive
from tilewright.schedules.block_scope import selected
from tilewright.schedules.registry import STEPS

from tests.fuzz.steps import MAKERS, RULES, kernel, part_of
from tests.schedules.random_steps import blocks, loops, random_step, selections
from tests.strategies import symbols_of

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tilewright.schedules import LoopRef, State
    from tilewright.schedules.step import Step

    from tests.fuzz.walks import Walk

TRIES = 12
"""The largest number of operands that are tried."""

LANES = (4, 8, 16, 32)


def seek(walk: Walk, verb: str, tries: int = TRIES) -> bool:
    """Try operands of a step until one is legal; return whether one was."""
    steps = candidates(walk.rng, walk.state, verb)
    for _ in range(tries):
        with walk.phase("draw", verb):
            step = next(steps, None)
        if step is None:
            return False
        if walk.attempt(step):
            return True
    return False


def candidates(rng: random.Random, state: State, verb: str) -> Iterator[Step]:
    """Yield steps with different operands, in random order, then random ones."""
    cls = STEPS[verb]
    if verb in RULES:
        yield cls(kernel(state))
        return
    state = part_of(rng, state, verb)
    if verb in OPERANDS:
        found = [cls(*values) for values in OPERANDS[verb](rng, state)]
        rng.shuffle(found)
        yield from found
        return
    handles = [*selections(state), kernel(state)]
    rng.shuffle(handles)
    suggested = chain.from_iterable(
        _shuffled(rng, cls.suggest(selected(state, cls, h), h)) for h in handles
    )
    maker = MAKERS.get(verb)
    drawn = (_drawn(rng, state, cls, maker) for _ in range(TRIES))
    for either in zip(drawn, chain(suggested, [None] * TRIES), strict=False):
        yield from (step for step in either if step is not None)


def _shuffled(rng: random.Random, steps: Iterable[Step]) -> list[Step]:
    found = list(steps)
    rng.shuffle(found)
    return found


def _drawn(
    rng: random.Random, state: State, cls: type[Step], maker: Callable | None
) -> Step | None:
    if maker is not None:
        return maker(rng, state, cls)
    return random_step(rng, state, cls) if issubclass(cls, Primitive) else None


def _each_block(_: random.Random, state: State) -> Iterator[tuple[object, ...]]:
    for block in blocks(state):
        yield (block,)


def _reductions(_: random.Random, state: State) -> Iterator[tuple[object, ...]]:
    """Yield every block that reduces with every loop around it."""
    tree = state.tree(kernel(state).function)
    known = {x.uid: x for x in loops(state)}
    for block in blocks(state):
        if any(v.kind == "reduce" for v in state.block(block).iters):
            for loop in tree.loops_above(state.block(block)):
                yield block, known[loop.uid]


def _initialized(rng: random.Random, state: State) -> Iterator[tuple[object, ...]]:
    """Yield every block with an init with every loop around it."""
    for block, loop in _reductions(rng, state):
        if state.block(block).init is not None:
            yield block, loop


def _nests(state: State) -> Iterator[tuple[LoopRef, LoopRef]]:
    """Yield each serial loop with the serial loop that is its whole body."""
    known = {x.uid: x for x in loops(state)}
    for ref in known.values():
        outer = state.loop(ref)
        if isinstance(outer.body, For) and outer.kind == outer.body.kind == "serial":
            yield ref, known[outer.body.uid]


def _interchange(_: random.Random, state: State) -> Iterator[tuple[object, ...]]:
    yield from _nests(state)


def _tile(rng: random.Random, state: State) -> Iterator[tuple[object, ...]]:
    for i, j in _nests(state):
        yield i, j, (rng.choice([2, 3, 4, 8]), rng.choice([2, 4, 5, 8]))


def _inner(rng: random.Random, state: State) -> Iterator[tuple[object, ...]]:
    """Yield every innermost serial loop with a number of lanes."""
    for ref in loops(state):
        loop = state.loop(ref)
        if loop.kind == "serial" and not any(isinstance(s, For) for s in preorder(loop.body)):
            yield ref, rng.choice(LANES)


def _lanes(rng: random.Random, state: State) -> Iterator[tuple[object, ...]]:
    for block in blocks(state):
        yield block, rng.choice(LANES)


def _copies(rng: random.Random, state: State) -> Iterator[tuple[object, ...]]:
    for block in blocks(state):
        yield block, rng.choice(LANES), rng.choice([1, 1, 1, 2, 4])


def _products(rng: random.Random, state: State) -> Iterator[tuple[object, ...]]:
    """Yield every block of three or more variables as a product, with sizes of a tile."""
    for block in blocks(state):
        if len(state.block(block).iters) > 2:
            yield block, rng.choice([1, 2, 3, 6]), rng.choice(LANES), rng.choice([1, 1, 2])


def _packed(rng: random.Random, state: State) -> Iterator[tuple[object, ...]]:
    for block in blocks(state):
        if len(state.block(block).iters) > 2:
            yield block, rng.choice(LANES), rng.choice([1, 1, 2, 4])


def _threads(rng: random.Random, state: State) -> Iterator[tuple[object, ...]]:
    tree = state.tree(kernel(state).function)
    for block in blocks(state):
        if len(tree.loops_above(state.block(block))) > 1:
            yield block, rng.choice([1, 2, 4, 8]), rng.choice([2, 4, 8, 16])


def _disjoint(_: random.Random, state: State) -> Iterator[tuple[object, ...]]:
    """Yield every block with every loop that does not contain it."""
    for loop in loops(state):
        inside = {s.uid for s in preorder(state.loop(loop)) if isinstance(s, Block)}
        for block in blocks(state):
            if block.uid not in inside:
                yield block, loop


def _versions(rng: random.Random, state: State) -> Iterator[tuple[object, ...]]:
    for symbol in symbols_of(state.module.prims[0]):
        lower = rng.choice([None, 1, 2])
        yield kernel(state), symbol.name, lower, (lower or 0) + rng.choice([0, 1, 3, 9])


OPERANDS: Mapping[str, Callable[[random.Random, State], Iterator[tuple[object, ...]]]] = {
    "compute_at": _disjoint,
    "compute_inline": _each_block,
    "cooperative_copy": _threads,
    "decompose_reduction": _initialized,
    "interchange": _interchange,
    "pack": _packed,
    "register_tile": _products,
    "reverse_compute_at": _disjoint,
    "reverse_compute_inline": _each_block,
    "rfactor": _reductions,
    "schedule_copy": _copies,
    "specialize": _versions,
    "tile": _tile,
    "vectorize_block": _lanes,
    "vectorize_inner": _inner,
    "vectorize_nest": _lanes,
}
"""The operands of steps of which few are legal."""
