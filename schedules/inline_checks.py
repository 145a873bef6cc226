"""Sizes of the expressions that inlining builds: the limit of steps, and that of default rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..ir.analysis import Tree
from ..ir.analysis.value_size import FUSED, LARGEST, SHARED, inlined_size, value_size
from ..ir.loop.nesting import MOST_NAMES, MOST_NESTED, most_names
from ..ir.loop.nodes import Alloc, Block, Buffer, Load
from ..ir.loop.straight_line import straight_line
from ..ir.loop.visit import elements
from .handles import BlockRef, refs_of
from .inline_values import Point, Producer, producer_of
from .problem import Problem
from .requirement import Requirement
from .state import State


def size_problems(
    tree: Tree, producer: Block, target: BlockRef, requirement: Requirement, *, whole: bool = False
) -> Iterator[Problem]:
    """Yield a problem if the values of consumers are too large with a producer inlined.

    Parameters
    ----------
    tree : Tree
        The index of the function.
    producer : Block
        The block whose values replace loads. One with loops or branches has other problems.
    target : BlockRef
        The block that the step names.
    requirement : Requirement
        The requirement of the step.
    whole : bool
        Whether the block also keeps the values that its consumers do not use.
    """
    values = producer_of(producer)
    if straight_line(producer.body) is None or values is None:
        return
    size, _ = inlined_size(tree, producer)
    if not size.within(LARGEST):
        yield Problem(
            requirement,
            f"a value would have {size.nodes:,} nodes and a depth of {size.depth:,}; the limits "
            f"are {LARGEST.nodes:,} nodes and a depth of {LARGEST.depth:,}",
            (target,),
            {"nodes": size.nodes, "depth": size.depth},
        )
        return
    for reader in tree.outermost_blocks():
        names = 0 if reader is producer else _names(reader, values, whole=whole)
        around = sum(isinstance(s, Alloc) for s in tree.ancestors(reader))
        if names > MOST_NAMES or (names and names + around > MOST_NESTED):
            yield Problem(
                requirement,
                f"block {reader.name!r} would bind {names} values; the limits are {MOST_NAMES} "
                f"values, and {MOST_NESTED} with the allocations around it",
                (target, *refs_of(target.function, reader)),
                {"names": names},
            )


def _names(reader: Block, producer: Producer, *, whole: bool) -> int:
    """Return the number of values that a block binds after inlining; 0 if it reads no value."""
    points: dict[Point, Counter[Buffer]] = {}
    parts = (reader.body,) if reader.init is None else (reader.init, reader.body)
    for load in (x for part in parts for x in elements(part) if isinstance(x, Load)):
        if load.buffer in producer.stores:
            points.setdefault(producer.point(load), Counter())[load.buffer] += 1
    if not points:
        return 0
    own = max(map(most_names, parts)) + (len(producer.binds) if whole else 0)
    return own + sum(_bound(producer, c, whole=whole) for c in points.values())


def _bound(producer: Producer, counts: Counter[Buffer], *, whole: bool) -> int:
    """Return the number of values of one iteration of a producer that are bound again."""
    several = (b for b, count in counts.items() if count > 1)
    shared = sum(value_size(producer.stores[b].value).nodes > SHARED for b in several)
    return shared + (0 if whole else len(producer.needed(frozenset(counts))))


def stays_small(state: State, ref: BlockRef) -> bool:
    """Return whether the default rules inline a block: whether the expressions stay small.

    A value of more than 100 nodes is not computed more than once; uses in one block share it.
    """
    size, repeated = inlined_size(state.tree(ref.function), state.block(ref))
    return size.within(FUSED) and not repeated
