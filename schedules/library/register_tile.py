"""The ``register_tile`` composite step."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.symbolic import const_value
from ..apply import Composite
from ..composite import composite
from ..handles import BlockRef, Handle, LoopRef, block_ref, buffer_ref
from ..machine import machine_of
from ..patterns import Matmul, classify
from ..primitives.tensorize.tensorize import Tensorize
from ..schedule import Schedule
from ..state import State
from ._products import loops_of, product_of, written
from .whole_bytes import parallelize


def _suggested(state: State, selection: Handle) -> Iterator[Composite]:
    if isinstance(selection, BlockRef):
        found = classify(state.module.prim(selection.function))
        if isinstance(found, Matmul) and found.block is state.block(selection):
            machine = machine_of(state.target_of(selection.function))
            tile = machine.tile(found.block.writes[0].buffer.dtype)
            yield register_tile(selection, tile.rows, tile.columns)


@composite(suggest=_suggested)
def register_tile(
    sch: Schedule,
    product: BlockRef,
    rows: int,
    columns: int,
    panels: int = 1,
    *,
    group: int = 1,
    intrinsic: str = "",
) -> None:
    """Compute a matrix product in tiles whose sums stay in vector registers.

    Before::

        for i in range(n):
            for j in range(m):
                for k in range(d):
                    C[i, j] += A[i, k] * B[k, j]

    After (``rows=14``, ``columns=32``)::

        for j_0 in parallel(ceildiv(m, 32)):
            for i_0 in range(ceildiv(n, 14)):
                for i_1 in unrolled(14):
                    for j_1 in vectorized(32):
                        S[i_1, j_1] = 0.0
                for k in range(d):
                    for i_1 in unrolled(14):
                        for j_1 in vectorized(32):
                            S[i_1, j_1] += A[i_0 * 14 + i_1, k] * B[k, j_0 * 32 + j_1]
                for i_1 in unrolled(14):
                    for j_1 in vectorized(32):
                        C[i_0 * 14 + i_1, j_0 * 32 + j_1] = S[i_1, j_1]

    Parameters
    ----------
    product : BlockRef
        The block of the product. Element-wise blocks after it are computed per tile.
    rows : int
        The number of rows of a tile. For 1, the row loop is not split.
    columns : int
        The number of columns of a vector.
    panels : int
        The number of vectors of a row of a tile.
    group : int
        The number of elements of k that one lane multiplies and adds.
    intrinsic : str
        The instruction that computes a tile, if it fits; empty for multiply-add instructions.

    Notes
    -----
    Steps: ``cache_write`` or ``compute_inline``, ``split``, ``reorder``, ``compute_at``,
    ``decompose_reduction``, then ``tensorize``, or ``unroll`` and ``vectorize``; the outermost loop
    of more than one iteration is ``parallel``. Code generation emits partial tiles. Cost: linear in
    the size of the function, and proofs of the motions.

    References
    ----------
    Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def mm(A: Buffer[(28, 16), f32], B: Buffer[(16, 64), f32], C: Out[(28, 64), f32]):
    ...     for i in range(28):
    ...         for j in range(64):
    ...             for k in range(16):
    ...                 with block("mm"):
    ...                     vi, vj, vk = spatial(i), spatial(j), reduce(k)
    ...                     with init(): C[vi, vj] = 0.0
    ...                     C[vi, vj] += A[vi, vk] * B[vk, vj]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> sch.register_tile("mm", rows=14, columns=32)
    >>> print(sch)
    @prim_func(scheduled=True)
    def mm(A: Buffer[(28, 16), f32], B: Buffer[(16, 64), f32], C: Out[(28, 64), f32]):
        for ax1_0 in parallel(2):
            for ax0_0 in range(2):
                C_local = alloc((28, 64), f32, scope="local")
                for i_1_init in unrolled(14):
                    for j_1_init in vectorized(32):
                        with block("mm_init"):
                            vi_init = spatial(28, ax0_0 * 14 + i_1_init)
                            vj_init = spatial(64, ax1_0 * 32 + j_1_init)
                            C_local[vi_init, vj_init] = 0.0
                for k_1 in range(16):
                    for i_1 in unrolled(14):
                        for j_1 in vectorized(32):
                            with block("mm"):
                                vi = spatial(28, ax0_0 * 14 + i_1)
                                vj = spatial(64, ax1_0 * 32 + j_1)
                                vk = reduce(k_1)
                                C_local[vi, vj] += A[vi, vk] * B[vk, vj]
                for ax0_1 in unrolled(14):
                    for ax1_1 in vectorized(32):
                        with block("copy_C_local"):
                            vax0 = spatial(28, ax0_0 * 14 + ax0_1)
                            vax1 = spatial(64, ax1_0 * 32 + ax1_1)
                            C[vax0, vax1] = C_local[vax0, vax1]
    """
    pattern = product_of(sch, product)
    width = columns * panels
    last = _epilogue(sch, pattern, product)
    loops = sch.get_loops(last)
    j0, j1 = sch.split(loops[-1], factors=(None, width))
    anchor, unrolled = j0, ()
    if rows > 1:
        i0, i1 = sch.split(loops[-2], factors=(None, rows))
        sch.reorder((j0, i0, i1, j1))
        anchor, unrolled = i0, (i1,)
    sch.compute_at(product, anchor)
    sch.set_scope(written(sch, product), "local")
    items = (pattern.row, pattern.column) if rows > 1 else (pattern.column,)
    k, *own = loops_of(sch, product, pattern, pattern.depth, *items)
    _inner(sch, product, k, tuple(own), (width, columns, group, intrinsic))
    _unroll_and_vectorize(sch, (*unrolled, j1), width, columns)
    outer = loops[:-2] if rows > 1 else loops[:-1]
    many = [x for x in outer if const_value(sch.state.loop(x).extent) != 1]
    parallelize(sch, many[0] if many else j0)


def _epilogue(sch: Schedule, pattern: Matmul, product: BlockRef) -> BlockRef:
    """Inline the blocks after the product into the last one; without any, add a copy."""
    if not pattern.epilogue:
        buffer = pattern.block.writes[0].buffer
        return sch.cache_write(product, buffer_ref(product.function, buffer), "local")
    *inner, last = (block_ref(product.function, b) for b in pattern.epilogue)
    for block in inner:
        sch.compute_inline(block)
    return last


def _inner(
    sch: Schedule,
    product: BlockRef,
    k: LoopRef,
    spatial: tuple[LoopRef, ...],
    sizes: tuple[int, int, int, str],
) -> None:
    """Schedule the loops of one tile: k outermost, rows unrolled, columns vectorized.

    If the tile has an instruction and it fits, the tile is tensorized instead.
    """
    width, columns, group, intrinsic = sizes
    groups = ()
    if group > 1:
        k, one = sch.split(k, factors=(None, group))
        groups = (one,)
    sch.reorder((k, *spatial, *groups))
    init = sch.decompose_reduction(product, k)
    step = Tensorize(spatial[0], intrinsic)
    if intrinsic and not sch.check(step):
        sch.apply(step)
    else:
        for loop in groups:
            sch.unroll(loop)
        _unroll_and_vectorize(sch, spatial, width, columns)
    _unroll_and_vectorize(sch, sch.get_loops(init)[-len(spatial) :], width, columns)


def _unroll_and_vectorize(
    sch: Schedule, loops: tuple[LoopRef, ...], width: int, columns: int
) -> None:
    """Unroll the rows and panels of a tile, and vectorize the columns of a panel."""
    *rows, column = loops
    for row in rows:
        sch.unroll(row)
    if width > columns:
        panel, column = sch.split(column, factors=(None, columns))
        sch.unroll(panel)
    sch.vectorize(column)
