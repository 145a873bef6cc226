"""Default rule for kernels that reduce rows: softmax, norms, means, with fused neighbors.

All blocks process a row while it is in cache. Reductions keep partial results in vector lanes.
"""

from __future__ import annotations

from ...ir.symbolic import const_value
from ..composite import composite
from ..handles import BlockRef, FunctionRef
from ..library.vectorize_inner import lanes_of
from ..patterns import Rows, classify
from ..problem import RuleNotApplicableError
from ..schedule import Schedule


@composite
def schedule_rows(sch: Schedule, function: FunctionRef) -> None:
    """Schedule reductions of rows for the vector registers of a CPU.

    Before::

        for i in range(n):
            for j in range(m):
                s[i] += x[i, j]
        for i in range(n):
            for j in range(m):
                y[i, j] = x[i, j] / s[i]

    After::

        for i in parallel(n):
            for j_0 in range(ceildiv(m, 16)):
                for j_1 in vectorized(16):
                    s[i] += x[i, j_0 * 16 + j_1]
            for j_0 in range(ceildiv(m, 16)):
                for j_1 in vectorized(16):
                    y[i, j_0 * 16 + j_1] = x[i, j_0 * 16 + j_1] / s[i]

    Parameters
    ----------
    function : FunctionRef
        The function. Its blocks have common outer dimensions, and some reduce the inner ones.

    Notes
    -----
    ``compute_at`` under the row loops of the last block, ``decompose_reduction``, and
    ``vectorize`` in vectors of the target's registers.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(4, 64), f32], y: Out[(4,), f32]):
    ...     for i in range(4):
    ...         for j in range(64):
    ...             with block("sum"):
    ...                 vi, vj = spatial(i), reduce(j)
    ...                 with init(): y[vi] = 0.0
    ...                 y[vi] += x[vi, vj]
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    >>> sch.schedule_rows("f")
    >>> [sch.state.loop(loop).kind for loop in sch.get_loops("sum")]
    ['parallel', 'serial', 'vectorized']
    """
    name = function.function
    pattern = classify(sch.module.prim(name))
    if not isinstance(pattern, Rows):
        raise RuleNotApplicableError(f"function {name!r} does not reduce rows")
    refs = sch.get_blocks(name)
    if pattern.shared:
        refs = _gathered(sch, refs, pattern.shared)
    for ref in refs:
        if len(sch.get_loops(ref)) > pattern.shared:
            sch.vectorize_block(ref, lanes_of(sch, ref))
    if not pattern.shared:
        return
    outer = sch.get_loops(refs[-1])[0]
    if const_value(sch.state.loop(outer).extent) != 1:
        sch.parallel(outer)


def _gathered(sch: Schedule, refs: tuple[BlockRef, ...], shared: int) -> tuple[BlockRef, ...]:
    """Move every block but the last under the innermost row loop of the last; return all blocks.

    A block without consumers is not moved.
    """
    *before, last = refs
    row = sch.get_loops(last)[shared - 1]
    for block in reversed(before):
        if sch.get_consumers(block):
            sch.compute_at(block, row)
    return refs
