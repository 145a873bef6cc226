"""Default rule for kernels of no other kind: each nest is vectorized and run in parallel."""

from __future__ import annotations

from ...ir.analysis import accesses, bound_kinds, is_reduction, reorders
from ...ir.symbolic import const_value
from ..composite import composite
from ..handles import BlockRef, FunctionRef, LoopRef
from ..library.vectorize_inner import lanes_of
from ..primitives.loops.parallel import Parallel
from ..primitives.loops.reorder import Reorder
from ..problem import StepError
from ..schedule import Schedule


@composite
def schedule_nests(sch: Schedule, function: FunctionRef) -> None:
    """Vectorize the innermost loop of every nest and run the outermost one in parallel, if legal.

    Before::

        for i in range(n):
            for j in range(i + 1):
                with init():
                    s[i] = 0.0
                s[i] += x[i, j]

    After::

        for i in parallel(n):
            s[i] = 0.0
            for j_0 in range(ceildiv(i + 1, 16)):
                for j_1 in vectorized(16):
                    if j_0 * 16 + j_1 < i + 1:
                        s[i] += x[i, j_0 * 16 + j_1]

    Parameters
    ----------
    function : FunctionRef
        The function.

    Notes
    -----
    For each block ``reorder`` if another than the innermost loop accesses adjacent elements,
    ``vectorize_block`` and ``parallel``, where they are legal. No block is moved, so the rule
    applies to nests that run a part of the domain of their blocks, such as the lower triangle of a
    causal attention. The outermost loop whose iterations are independent becomes parallel.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(64, 64), f32], y: Out[(64,), f32]):
    ...     for i in range(64):
    ...         for j in range(i + 1):
    ...             with block("sum"):
    ...                 vi, vj = spatial(i), reduce(64, j)
    ...                 with init(): y[vi] = 0.0
    ...                 y[vi] += x[vi, vj]
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    >>> sch.schedule_nests("f")
    >>> [sch.state.loop(loop).kind for loop in sch.get_loops("sum")]
    ['parallel', 'serial', 'vectorized']
    """
    for block in sch.get_blocks(function.function):
        schedule_nest(sch, block)


def schedule_nest(sch: Schedule, block: BlockRef) -> None:
    """Vectorize the innermost loop around a block and run the outermost in parallel, if legal."""
    _vectorize(sch, block)
    parallelize(sch, block)


def _vectorize(sch: Schedule, block: BlockRef) -> None:
    loops = sch.get_loops(block)
    if not loops or sch.state.loop(loops[-1]).kind != "serial":
        return
    contiguous = contiguous_loop(sch, block, loops)
    if contiguous not in (None, loops[-1]):
        order = (*(x for x in loops if x != contiguous), contiguous)
        step = Reorder(order[loops.index(contiguous) :])
        if not sch.check(step):
            sch.apply(step)
    try:
        sch.vectorize_block(block, lanes_of(sch, block))
    except StepError:
        return  # the block remains scalar


def contiguous_loop(sch: Schedule, block: BlockRef, loops: tuple[LoopRef, ...]) -> LoopRef | None:
    """Return the loop whose iterations access adjacent elements of most buffers.

    Of equal loops, the innermost is returned; None if no loop accesses adjacent elements. A loop
    over terms that must be combined in order is not considered.
    """
    found = sch.state.block(block)
    if is_reduction(found) and not reorders(found):
        loops = tuple(x for x in loops if "reduce" not in bound_kinds(sch.state.loop(x), found))
    results = found.writes if found.reducer is not None and found.init is not None else ()
    kept = {region.buffer for region in results}  # in registers while the terms are combined
    indices = {(a.buffer, a.bound()) for a in accesses(found) if a.buffer not in kept}

    def rank(loop: LoopRef) -> tuple[int, int]:
        variable = sch.state.loop(loop).var
        strided = sum(any(variable in i.free for i in at[:-1]) for _, at in indices)
        adjacent = sum(bool(at) and variable in at[-1].free for _, at in indices)
        return adjacent - strided, loops.index(loop)

    best = max(loops, key=rank, default=None)
    return best if best is not None and rank(best)[0] > 0 else None


def parallelize(sch: Schedule, block: BlockRef) -> None:
    """Run the outermost loop around a block that is legal to run in parallel so."""
    for loop in sch.get_loops(block):
        found = sch.state.loop(loop)
        if found.kind != "serial":
            return
        step = Parallel(loop)
        if const_value(found.extent) != 1 and not sch.check(step):
            sch.apply(step)
            return
