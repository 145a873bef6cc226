"""Default rule for kernels without reductions: vectorize the last dimension."""

from __future__ import annotations

from ..composite import composite
from ..handles import BlockRef, FunctionRef
from ..inline_checks import stays_small
from ..library.vectorize_inner import lanes_of
from ..patterns import Elementwise, classify
from ..primitives.placement.compute_inline import ComputeInline
from ..problem import RuleNotApplicableError
from ..schedule import Schedule
from .transposed import schedule_transposed


@composite
def schedule_elementwise(sch: Schedule, function: FunctionRef) -> None:
    """Schedule element-wise blocks for the vector registers of a CPU.

    Before::

        for i in range(n):
            for j in range(m):
                t[i, j] = x[i, j] + 1.0
        for i in range(n):
            for j in range(m):
                y[i, j] = max(t[i, j], 0.0)

    After::

        for i in parallel(n):
            for j_0 in range(ceildiv(m, 16)):
                for j_1 in vectorized(16):
                    y[i, j_0 * 16 + j_1] = max(x[i, j_0 * 16 + j_1] + 1.0, 0.0)

    Parameters
    ----------
    function : FunctionRef
        The function, without reductions.

    Notes
    -----
    ``compute_inline`` for temporaries where it is legal, and ``vectorize_nest`` for the other
    blocks, in vectors of the target's registers. A block that loads adjacent elements along another
    loop than it stores them, such as a transpose, is divided into tiles of at least 16 by 16
    elements with complete cache lines along both loops (``split``, ``reorder``, ``vectorize``).

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(4, 64), f32], y: Out[(4, 64), f32]):
    ...     for i in range(4):
    ...         for j in range(64):
    ...             with block("add"):
    ...                 vi, vj = spatial(i), spatial(j)
    ...                 y[vi, vj] = x[vi, vj] + 1.0
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    >>> sch.schedule_elementwise("f")
    >>> [sch.state.loop(loop).kind for loop in sch.get_loops("add")]
    ['parallel', 'serial', 'vectorized']
    """
    name = function.function
    pattern = classify(sch.module.prim(name))
    if not isinstance(pattern, Elementwise):
        raise RuleNotApplicableError(f"function {name!r} is not element-wise")
    temporaries = sch.state.tree(name).temporaries
    kept: list[BlockRef] = []
    for ref, block in zip(sch.get_blocks(name), pattern.blocks, strict=True):
        step = ComputeInline(ref)
        written = {region.buffer for region in block.writes}
        inlined = written <= set(temporaries) and stays_small(sch.state, ref)
        if inlined and not sch.check(step):
            sch.apply(step)
        else:
            kept.append(ref)
    for ref in kept:
        if not schedule_transposed(sch, ref):
            sch.vectorize_nest(ref, lanes_of(sch, ref))
