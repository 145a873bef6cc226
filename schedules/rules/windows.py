"""Default rule for reductions of windows, such as the pooling of images.

The lanes of vectors are adjacent results. The partial results of some vectors stay in registers
while the elements of their windows are read, in unrolled loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...ir.loop.nodes import Condition, Index, IterVar, Load, Number, Where
from ...ir.loop.visit import elements, stores
from ...ir.symbolic import Expr, const_value
from ..composite import composite
from ..handles import BlockRef, FunctionRef, LoopRef, block_ref, buffer_ref
from ..inline_checks import stays_small
from ..library._products import written
from ..machine import machine_of
from ..primitives.placement.compute_at import ComputeAt
from ..primitives.placement.compute_inline import ComputeInline
from ..problem import RuleNotApplicableError
from ..schedule import Schedule
from ..windows import WindowReduction, windows_of
from .strips import in_vectors, loop_of

VECTORS: Final = 2
"""The vectors of a strip of adjacent results: more have longer code for the end of a row."""

LONG: Final = 8
"""The number of vectors of a row from which a part of a strip may be unused."""


@composite
def schedule_windows(sch: Schedule, function: FunctionRef) -> None:
    """Schedule reductions of windows for the vector registers of a CPU.

    Before::

        for i in range(n):
            for j in range(m):
                for k in range(3):
                    for l in range(3):
                        y[i, j] = max(y[i, j], x[i * 2 + k, j * 2 + l])

    After::

        for i in parallel(n):
            for j_0 in range(ceildiv(m, 32)):
                for k in unrolled(3):
                    for l in unrolled(3):
                        for j_1 in unrolled(2):
                            for j_2 in vectorized(16):
                                Y[j_1, j_2] = max(
                                    Y[j_1, j_2],
                                    x[i * 2 + k, (j_0 * 32 + j_1 * 16 + j_2) * 2 + l],
                                )
                y[i, j_0 * 32 : j_0 * 32 + 32] = Y

    Parameters
    ----------
    function : FunctionRef
        The function. Its reduction of windows of at most 64 elements may be preceded by padding,
        and followed by element-wise blocks. Adjacent results read elements at a distance of at most
        4.

    Notes
    -----
    ``compute_inline`` of the padding, ``compute_at`` of other blocks before the reduction,
    ``cache_write`` or ``compute_inline`` of those after it, ``split``, ``compute_at``,
    ``set_scope`` and ``transform_layout`` of the partial results, ``decompose_reduction``,
    ``reorder``, ``unroll`` and ``vectorize``.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(4, 64), f32], y: Out[(4, 32), f32]):
    ...     for i in range(4):
    ...         for j in range(32):
    ...             for k in range(2):
    ...                 with block("max"):
    ...                     vi, vj, vk = spatial(i), spatial(j), reduce(k)
    ...                     with init(): y[vi, vj] = -inf
    ...                     y[vi, vj] = max(y[vi, vj], x[vi, vj * 2 + vk])
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    >>> sch.schedule_windows("f")
    >>> [sch.state.loop(loop).kind for loop in sch.get_loops("max")]
    ['parallel', 'serial', 'unrolled', 'unrolled', 'vectorized']
    """
    name = function.function
    pattern = windows_of(sch.module.prim(name))
    if pattern is None:
        raise RuleNotApplicableError(f"function {name!r} does not reduce windows")
    dtype = pattern.block.writes[0].buffer.dtype
    if dtype.is_packed or dtype.is_complex:
        raise RuleNotApplicableError(f"the results of function {name!r} have no vectors")
    strip = _strip(pattern, machine_of(sch.state.target_of(name)).lanes(dtype))
    copies = [b for b in pattern.prologue if not _inlined(sch, block_ref(name, b))]
    head = block_ref(name, pattern.block)
    image = _in_strips(sch, head, pattern, strip)
    for copy in (block_ref(name, b) for b in reversed(copies)):
        if image is not None and not sch.check(ComputeAt(copy, image)):
            sch.compute_at(copy, image)
        sch.vectorize_nest(copy, strip.lanes)


@dataclass(frozen=True, slots=True)
class _Strip:
    """Adjacent results that are computed together: some vectors, each with some lanes."""

    lanes: int
    vectors: int
    unrolled: bool
    """Whether all loops of a window are unrolled, not only the innermost."""


def _strip(pattern: WindowReduction, lanes: int) -> _Strip:
    """Return the strip of a row of results; a short row has shorter vectors.

    The code of each element of a window has versions for its conditions, unless the sizes that they
    compare are known.
    """
    extent, slid = const_value(pattern.column.extent), pattern.slid
    images = [v.extent for v in pattern.block.iters if v.var in slid]
    unrolled = not pattern.prologue or all(const_value(size) is not None for size in images)
    if extent is None:
        return _Strip(lanes, VECTORS if unrolled else 1, unrolled)
    lanes = min(lanes, 1 << (extent - 1).bit_length())
    count = -(-extent // lanes)
    vectors = VECTORS if count % VECTORS == 0 or count > LONG else 1
    return _Strip(lanes, vectors, unrolled)


def _inlined(sch: Schedule, ref: BlockRef) -> bool:
    """Inline a block that only moves elements, such as padding; return whether it is inlined."""
    block, step = sch.state.block(ref), ComputeInline(ref)
    moved = all(
        isinstance(e, Load | Where | Condition | Number | Index) for e in elements(block.body)
    )
    if not moved or sch.check(step) or not stays_small(sch.state, ref):
        return False
    sch.apply(step)
    return True


def _in_strips(
    sch: Schedule, head: BlockRef, pattern: WindowReduction, strip: _Strip
) -> LoopRef | None:
    """Compute the reduction and the blocks after it per strip.

    Returns
    -------
    LoopRef or None
        The innermost loop around all windows of an image, if there is one.
    """
    slid = [index in pattern.slid for index in pattern.rows]
    last = _last(sch, head, pattern)
    found = sch.state.block(last)
    items: dict[Expr, IterVar] = {v.var: v for v in found.iters}
    dims = [loop_of(sch, last, items[i]) for i in next(stores(found.body)).indices if i in items]
    *rows, column = dims
    if column is None or len(rows) != len(slid):
        raise RuleNotApplicableError(f"function {head.function!r} has one column")
    strips, lanes = sch.split(column, factors=(None, strip.lanes * strip.vectors))
    outer = [x for x in (*rows, strips) if x is not None]
    sch.reorder((*outer, lanes))
    sch.compute_at(head, strips)
    partial = written(sch, head)
    sch.set_scope(partial, "local")
    sch.transform_layout(partial, in_vectors(len(dims), len(dims) - 1, strip.lanes))
    _reduced(sch, head, pattern, strip)
    _vectors(sch, lanes, strip)
    many = [x for x in outer if const_value(sch.state.loop(x).extent) != 1]
    sch.parallel(many[0] if many else outer[0])
    whole = rows[: slid.index(True)] if True in slid else rows
    return next((x for x in reversed(whole) if x is not None), None)


def _last(sch: Schedule, head: BlockRef, pattern: WindowReduction) -> BlockRef:
    """Inline the blocks after the reduction into the last one; without any, add a copy."""
    name = head.function
    if not pattern.epilogue:
        return sch.cache_write(head, buffer_ref(name, pattern.block.writes[0].buffer), "local")
    *between, last = (block_ref(name, b) for b in pattern.epilogue)
    for block in between:
        sch.compute_inline(block)
    return last


def _reduced(sch: Schedule, head: BlockRef, pattern: WindowReduction, strip: _Strip) -> None:
    """Schedule the loops of one strip: the elements of a window outermost, then the results."""
    items = sch.state.block(head).iters
    column = loop_of(sch, head, items[pattern.block.iters.index(pattern.column)])
    terms = [x for v in items if v.kind == "reduce" and (x := loop_of(sch, head, v))]
    if column is None or not terms:
        raise RuleNotApplicableError(f"function {head.function!r} has one column")
    sch.reorder((*terms, column))
    init = sch.decompose_reduction(head, terms[0])
    _vectors(sch, sch.get_loops(init)[-1], strip)
    _vectors(sch, column, strip)
    for term in terms if strip.unrolled else terms[-1:]:
        sch.unroll(term)


def _vectors(sch: Schedule, loop: LoopRef, strip: _Strip) -> None:
    """Split the results of a strip into vectors, whose loop is unrolled."""
    if strip.vectors > 1:
        vectors, loop = sch.split(loop, factors=(None, strip.lanes))
        sch.unroll(vectors)
    sch.vectorize(loop)
