"""Default rule for the kernels of attention that ``fuse_attention`` makes."""

from __future__ import annotations

from ...ir.loop.nodes import PrimFunc
from ...ir.symbolic import const_value
from ..apply import apply, check
from ..attention_kernels import ATTENTION
from ..composite import composite
from ..handles import BlockRef, FunctionRef, LoopRef
from ..primitives.loops.fuse import Fuse
from ..primitives.loops.parallel import Parallel
from ..problem import RuleNotApplicableError
from ..schedule import Schedule
from ..state import State


def is_attention(function: PrimFunc) -> bool:
    """Return whether ``fuse_attention`` made a function."""
    return ATTENTION in function.attributes


@composite
def schedule_attention(sch: Schedule, function: FunctionRef) -> None:
    """Schedule the kernel of an attention for the vector registers of a CPU.

    Before::

        for batch in range(8):
            for i in range(ceildiv(n, 32)):
                for j in range(ceildiv(m, 112)):
                    for tile in range(ceildiv(min(112, m - j * 112), 14)):
                        for c in range(64):
                            for row in range(14):
                                for lane in range(32):
                                    score[row, lane] += k[...] * query_t[c, lane]

    After::

        for batch_i in parallel(8 * ceildiv(n, 32)):
            for j in range(ceildiv(m, 112)):
                for tile in range(ceildiv(min(112, m - j * 112), 14)):
                    for c in range(64):
                        for row in unrolled(14):
                            for lane in vectorized(32):
                                score[row, lane] += k[...] * query_t[c, lane]

    Parameters
    ----------
    function : FunctionRef
        The function.

    Notes
    -----
    ``vectorize`` for the loop over lanes of each block, ``unroll`` for the rows of tiles, and
    ``fuse`` and ``parallel`` for the loops over batches, heads, and blocks of queries. A loop over
    the elements of a value is vectorized whole.

    References
    ----------
    Dao et al., FlashAttention, 2022.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @graph_func
    ... def main(q: Tensor[(64, 8), f32], k: Tensor[(64, 8), f32], v: Tensor[(64, 8), f32]):
    ...     t = permute_dims(k, axes=(1, 0))
    ...     s = matmul(q, t)
    ...     p = softmax(s)
    ...     y = matmul(p, v)
    ...     return y
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    >>> _ = sch.fuse_attention()
    >>> sch.schedule_attention("attention")
    >>> [sch.state.loop(loop).kind for loop in sch.get_loops("score")]
    ['parallel', 'serial', 'serial', 'unrolled', 'vectorized']
    """
    if not is_attention(sch.module.prim(function.function)):
        name = function.function
        raise RuleNotApplicableError(f"fuse_attention did not make function {name!r}")
    blocks = sch.get_blocks(function.function)
    for block in blocks:
        _vectorize(sch, block)
    outer = _shared(sch, blocks)
    for count in range(len(outer), 0, -1):
        if _runs_in_parallel(sch.state, outer[:count]):
            loop = sch.fuse(*outer[:count]) if count > 1 else outer[0]
            if const_value(sch.state.loop(loop).extent) != 1:
                sch.parallel(loop)
            return


def _vectorize(sch: Schedule, block: BlockRef) -> None:
    loops = sch.get_loops(block)
    lanes = [x for x in loops if sch.state.loop(x).var.name.startswith("lane")]
    rows = [x for x in loops if sch.state.loop(x).var.name.startswith("row")]
    for loop in rows:
        sch.unroll(loop)
    for loop in lanes:
        sch.vectorize(loop)


def _shared(sch: Schedule, blocks: tuple[BlockRef, ...]) -> tuple[LoopRef, ...]:
    """Return the loops around all blocks, outermost first."""
    nests = [sch.get_loops(block) for block in blocks]
    return tuple(x for x in nests[0] if all(x in nest for nest in nests))


def _runs_in_parallel(state: State, loops: tuple[LoopRef, ...]) -> bool:
    """Return whether the iterations of loops, fused into one, are proved to be independent."""
    if len(loops) == 1:
        return not check(state, Parallel(loops[0]))
    fuse = Fuse(loops)
    if check(state, fuse):
        return False
    applied = apply(state, fuse)
    fused = applied.results[0]
    if not isinstance(fused, LoopRef):
        raise TypeError("fuse returns a loop")
    return not check(applied.state, Parallel(fused))
