"""Parts of matrix products, for composite steps that change one."""

from __future__ import annotations

from ...ir.loop.nodes import IterVar
from ...ir.symbolic import free_vars
from ..handles import BlockRef, BufferRef, LoopRef, buffer_ref
from ..patterns import Matmul, classify
from ..problem import RuleNotApplicableError
from ..schedule import Schedule


def product_of(sch: Schedule, block: BlockRef) -> Matmul:
    """Return the matrix product that a block computes.

    Raises
    ------
    RuleNotApplicableError
        If the function of the block is not a matrix product, or another block computes it.
    """
    found = classify(sch.module.prim(block.function))
    if not isinstance(found, Matmul) or found.block is not sch.state.block(block):
        name = sch.state.block(block).name
        raise RuleNotApplicableError(
            f"block {name!r} of function {block.function!r} is not a matrix product",
            hint="the block computes C[.., i, j] += A[.., i, k] * B[.., k, j]",
        )
    return found


def loops_of(
    sch: Schedule, product: BlockRef, pattern: Matmul, *items: IterVar
) -> tuple[LoopRef, ...]:
    """Return the innermost loops that bind iteration variables of a product."""
    loops, block = sch.get_loops(product), sch.state.block(product)
    found: list[LoopRef] = []
    for item in items:
        free = free_vars(block.iters[pattern.block.iters.index(item)].binding)
        found.append(next(x for x in reversed(loops) if sch.state.loop(x).var in free))
    return tuple(found)


def written(sch: Schedule, block: BlockRef) -> BufferRef:
    """Return the first buffer that a block writes."""
    buffer = sch.state.block(block).writes[0].buffer
    return buffer_ref(block.function, buffer)
