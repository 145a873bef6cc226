"""Functions of the GPU rules: fusion and order of the loops to bind."""

from __future__ import annotations

from typing import Final

from ....ir.analysis import iterated_kinds
from ....ir.analysis.scatter import is_scatter
from ....ir.loop.nodes import Block
from ...handles import BlockRef, LoopRef, block_ref
from ...problem import RuleNotApplicableError
from ...schedule import Schedule

THREADS: Final = 256
"""The largest number of threads of a thread block."""

WARP: Final = 32
"""The number of threads of a warp."""


def outermost_blocks(sch: Schedule, name: str) -> tuple[BlockRef, ...]:
    """Return the blocks of a function that are not in another block; only their loops are bound."""
    tree = sch.state.tree(name)
    return tuple(block_ref(name, block) for block in tree.outermost_blocks())


def is_dependent(sch: Schedule, name: str) -> bool:
    """Return whether a nest accesses a buffer that another one writes."""
    nodes = sch.state.tree(name).outermost_blocks()
    for node in nodes:
        written = {r.buffer for r in node.writes}
        for other in nodes:
            accessed = {r.buffer for r in (*other.reads, *other.writes)}
            if other is not node and written & accessed:
                return True
    return False


def separate_nests(sch: Schedule, name: str) -> tuple[BlockRef, ...]:
    """Return the outermost blocks of a function, each in loops of its own.

    Raises
    ------
    RuleNotApplicableError
        If two blocks are in the same loop.
    """
    blocks = outermost_blocks(sch, name)
    outer = [loops[0] for block in blocks if (loops := sch.get_loops(block))]
    if len(set(outer)) < len(outer):
        raise RuleNotApplicableError(f"blocks of function {name!r} are in the same loop")
    return blocks


def joined(sch: Schedule, loops: tuple[LoopRef, ...]) -> LoopRef:
    """Fuse directly nested loops into one."""
    first, *rest = loops
    return sch.fuse(loops) if rest else first


def spatial_first(sch: Schedule, block: BlockRef) -> tuple[LoopRef, ...]:
    """Move the spatial loops of a block outermost; without any, add a unit loop.

    The reduction loops of a scatter count as spatial, since its updates may be atomic, if machines
    compute with the dtypes of its results; complex numbers are two elements.

    Raises
    ------
    RuleNotApplicableError
        If the updates of a scatter without spatial loops cannot be atomic, or all iterations of a
        block depend on each other.
    """
    loops = sch.get_loops(block)
    state = sch.state
    node, tree = state.block(block), state.tree(block.function)
    updated = [r.buffer for r in node.writes]
    refused = [b for b in updated if b.dtype.is_complex or not b.dtype.part.is_machine]
    atomic = is_scatter(node) and not refused
    kinds = {"spatial", "reduce"} if atomic else {"spatial"}
    spatial = tuple(x for x in loops if iterated_kinds(tree, state.loop(x), node) <= kinds)
    if not spatial and is_scatter(node) and not atomic:
        raise RuleNotApplicableError(
            f"threads do not update {refused[0].name!r} atomically, whose dtype is "
            f"{refused[0].dtype}"
        )
    ordered = any(v.kind == "ordered" for v in node.iters)
    if ordered and not spatial:
        raise RuleNotApplicableError(f"the iterations of block {node.name!r} depend on each other")
    if not spatial:
        return (sch.add_unit_loop(loops[0] if loops else block),)
    rest = tuple(x for x in loops if x not in spatial)
    if rest and loops != (*spatial, *rest):
        sch.reorder((*spatial, *rest))
    return spatial


def require_exchange(block: Block) -> None:
    """Check that threads can exchange partial results of a reduction.

    Raises
    ------
    RuleNotApplicableError
        If machines do not compute with the dtype of a result.
    """
    found = next((r.buffer for r in block.writes if not r.buffer.dtype.part.is_machine), None)
    if found is not None:
        raise RuleNotApplicableError(
            f"threads do not exchange elements of dtype {found.dtype}, the dtype of {found.name!r}"
        )
