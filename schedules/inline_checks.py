"""Sizes of the expressions that inlining builds: the limit of steps, and that of default rules."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.analysis import Tree
from ..ir.analysis.value_size import FUSED, LARGEST, inlined_size
from ..ir.loop.nodes import Block
from ..ir.loop.straight_line import straight_line
from .handles import BlockRef
from .problem import Problem
from .requirement import Requirement
from .state import State


def size_problems(
    tree: Tree, producer: Block, target: BlockRef, requirement: Requirement
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
    """
    if straight_line(producer.body) is None:
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


def stays_small(state: State, ref: BlockRef) -> bool:
    """Return whether the default rules inline a block: whether the expressions stay small.

    A value of more than 100 nodes is not computed more than once; uses in one block share it.
    """
    size, repeated = inlined_size(state.tree(ref.function), state.block(ref))
    return size.within(FUSED) and not repeated
