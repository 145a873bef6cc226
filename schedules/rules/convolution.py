"""Default rule for convolutions: register tiles of channels and columns, without copies of windows.

The sums of a tile stay in vector registers: some output channels, each with a strip of adjacent
columns of one row. Each element of the weights is multiplied by a strip of the image. The columns
of an image with a stride are stored by their remainder, so that every strip is contiguous. If each
channel has its own window, the image is padded per channel.
"""

from __future__ import annotations

from typing import Final

from ...ir.loop.nodes import Buffer, IndexMap, IterVar
from ...ir.loop.visit import loads, stores
from ...ir.symbolic import Expr, const_value, var
from ..composite import composite
from ..convolutions import Convolution, convolution_of
from ..handles import BlockRef, FunctionRef, LoopRef, block_ref, buffer_ref
from ..library._products import written
from ..machine import machine_of
from ..primitives.graph.hoist_block import HoistBlock
from ..primitives.placement.compute_at import ComputeAt
from ..problem import RuleNotApplicableError
from ..schedule import Schedule
from .convolution_tiles import ConvolutionTile, panel_of, tile_of
from .matmul import is_weight
from .nests import parallelize
from .strips import in_vectors, loop_of

MOST_COPIES: Final = 10
"""The most vectors of a row of a padded image that are unrolled."""


@composite
def schedule_convolution(sch: Schedule, function: FunctionRef) -> None:
    """Schedule a convolution for the vector registers of a CPU.

    Before::

        for o in range(m):
            for x in range(n):
                for c in range(d):
                    for k in range(3):
                        C[o, x] += A[c, x + k] * W[o, c, k]

    After::

        for o_0 in parallel(ceildiv(m, 8)):
            for x_0 in range(ceildiv(n, 48)):
                for c in range(d):
                    for k in range(3):
                        for o_1 in unrolled(8):
                            for x_1 in vectorized(48):
                                S[o_1, x_1] += A[c, x_0 * 48 + x_1 + k] * P[o_0, c, k, o_1]
                C[o_0 * 8 : o_0 * 8 + 8, x_0 * 48 : x_0 * 48 + 48] = S

    Parameters
    ----------
    function : FunctionRef
        The function. Its convolution may be preceded by padding, and followed by element-wise
        blocks.

    Notes
    -----
    ``transform_layout`` of the image if the windows have a stride, and of the weights, which
    ``hoist_block`` moves to load time if they are constants. Then ``compute_inline`` or
    ``cache_write``, ``split``, ``reorder``, ``compute_at``, ``decompose_reduction``, ``unroll`` and
    ``vectorize``. If each channel has its own window, ``compute_at`` also copies the image per
    channel. The tile is the one of the least estimated time for the sizes that are known.

    References
    ----------
    Georganas et al., Anatomy of High-Performance Deep Learning Convolutions on SIMD Architectures,
    2018.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def f(x: Buffer[(4, 34), f32], w: Buffer[(8, 4, 3), f32], y: Out[(8, 32), f32]):
    ...     for o in range(8):
    ...         for i in range(32):
    ...             for c in range(4):
    ...                 for k in range(3):
    ...                     with block("conv"):
    ...                         vo, vi, vc, vk = spatial(o), spatial(i), reduce(c), reduce(k)
    ...                         with init(): y[vo, vi] = 0.0
    ...                         y[vo, vi] += x[vc, vi + vk] * w[vo, vc, vk]
    ... ''')
    >>> sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    >>> sch.schedule_convolution("f")
    >>> [sch.state.loop(loop).kind for loop in sch.get_loops("conv")]
    ['parallel', 'serial', 'serial', 'unrolled', 'unrolled', 'vectorized']
    """
    name = function.function
    machine = machine_of(sch.state.target_of(name))
    pattern = convolution_of(sch.module.prim(name))
    if pattern is None:
        raise RuleNotApplicableError(f"function {name!r} is not a convolution")
    if const_value(pattern.column.extent) == 1:
        raise RuleNotApplicableError(f"the result of function {name!r} has one column")
    dtype = pattern.block.writes[0].buffer.dtype
    if dtype.is_packed or dtype.is_complex:
        raise RuleNotApplicableError(f"a register tile has no accumulators of dtype {dtype.name}")
    packed = is_weight(sch, name, pattern.weight.buffer)
    panel = panel_of(pattern, machine) if packed else 0
    tile = tile_of(pattern, machine, packed=packed, panel=panel)
    if not pattern.has_windows and not tile.by_channels:
        raise RuleNotApplicableError(f"function {name!r} is a product of matrices")
    conv = block_ref(name, pattern.block)
    copies = [] if tile.by_channels else _contiguous(sch, conv, pattern)
    copies += _packed(sch, conv, pattern, panel or tile.channels)
    image = _tiled(sch, conv, pattern, tile)
    for copy in (*(block_ref(name, b) for b in pattern.prologue), *copies):
        if image is not None and not sch.check(ComputeAt(copy, image)):
            sch.compute_at(copy, image)
        if pattern.stride > 1 and not tile.by_channels:
            _by_remainder(sch, copy, pattern.stride)
        sch.vectorize_nest(copy, tile.lanes)
        if image is not None:
            _unroll_columns(sch, copy)


def _unroll_columns(sch: Schedule, copy: BlockRef) -> None:
    """Unroll the vectors of a row of known size, so that the lanes of each vector are constant."""
    *outer, lanes = sch.get_loops(copy)
    column = next(v for v in sch.state.block(copy).iters[::-1] if v.binding.free)
    if sch.state.loop(lanes).kind != "vectorized":
        return
    copies = 1
    for loop in reversed(outer):
        found = sch.state.loop(loop)
        extent = const_value(found.extent)
        if found.kind != "serial" or found.var not in column.binding.free or extent is None:
            return
        copies *= extent
        if copies > MOST_COPIES:
            return
        sch.unroll(loop)


def _contiguous(sch: Schedule, conv: BlockRef, pattern: Convolution) -> list[BlockRef]:
    """Store the columns of a strided image by their remainder; return the block of a new copy."""
    stride, image = pattern.stride, pattern.image.buffer
    if stride == 1:
        return []
    buffer, copies = buffer_ref(conv.function, image), list[BlockRef]()
    if not _is_own(image, pattern):
        copies = [sch.cache_read(conv, buffer, "global")]
        buffer = written(sch, copies[0])
    *outer, last = (var(f"d{k}", lower=0) for k in range(image.rank))
    sch.transform_layout(buffer, IndexMap((*outer, last), (*outer, last % stride, last // stride)))
    return copies


def _by_remainder(sch: Schedule, copy: BlockRef, stride: int) -> None:
    """Make the loop over columns of one remainder the innermost: a vector is stored adjacently."""
    columns, remainder = sch.split(sch.get_loops(copy)[-1], factors=(None, stride))
    sch.reorder((remainder, columns))


def _is_own(image: Buffer, pattern: Convolution) -> bool:
    """Return whether only blocks before the convolution write an image, and only it reads it."""
    blocks = (*pattern.prologue, *pattern.epilogue)
    writers = [b for b in pattern.prologue if any(r.buffer is image for r in b.writes)]
    read = any(load.buffer is image for b in blocks for load in loads(b))
    return bool(writers) and not read


def _packed(sch: Schedule, conv: BlockRef, pattern: Convolution, channels: int) -> list[BlockRef]:
    """Store the weights of the channels of a panel adjacently, at load time; constants only."""
    name, weight = conv.function, pattern.weight
    if channels == 1 or not is_weight(sch, name, weight.buffer):
        return []
    copy = sch.cache_read(conv, buffer_ref(name, weight.buffer), "global")
    inputs = tuple(var(f"d{k}", lower=0) for k in range(weight.buffer.rank))
    at = weight.indices.index(pattern.channel.var)
    own, others = inputs[at], (*inputs[:at], *inputs[at + 1 :])
    outputs = (own // channels, *others, own % channels)
    sch.transform_layout(written(sch, copy), IndexMap(inputs, outputs))
    if sch.check(HoistBlock(copy)):
        return [copy]
    label = sch.state.block(copy).name
    moved = sch.get_block(label, sch.hoist_block(copy).function)
    parallelize(sch, moved)
    return []


def _tiled(
    sch: Schedule, conv: BlockRef, pattern: Convolution, tile: ConvolutionTile
) -> LoopRef | None:
    """Compute the convolution and the blocks after it per tile.

    If a channel of the result reads one channel of the image, the loop over channels is returned:
    the image is copied per channel, so that its copy is read while it is in cache.
    """
    depthwise = pattern.shared == 1
    result = next(stores(pattern.block.body)).indices
    last = _last(sch, conv, pattern)
    dims = _loops_of_result(sch, last)
    at, column = result.index(pattern.channel.var), dims[-1]
    if column is None:
        raise RuleNotApplicableError(f"function {conv.function!r} has one column")
    strips, strip = sch.split(column, factors=(None, tile.columns))
    channel, channels = _part(sch, dims[at], tile.channels)
    *lead, row = [x for k, x in enumerate(dims[:-1]) if k != at] or [None]
    row, rows = _part(sch, row, tile.rows)
    tiles = (channel, *lead, row) if tile.weights_first else (*lead, row, channel)
    if depthwise:
        tiles = (*lead, channel, row)
    outer = [x for x in (*tiles, strips) if x is not None]
    tiled = (rows, strip, channels) if tile.by_channels else (rows, channels, strip)
    inner = tuple(x for x in tiled if x is not None)
    sch.reorder((*outer, *inner))
    sch.compute_at(conv, strips)
    sums = written(sch, conv)
    sch.set_scope(sums, "local")
    if tile.masked or tile.by_channels:
        dim = at if tile.by_channels else len(result) - 1
        sch.transform_layout(sums, in_vectors(len(result), dim, tile.lanes))
    _sums(sch, conv, pattern, tile)
    _lanes(sch, inner, tile)
    many = [x for x in outer if const_value(sch.state.loop(x).extent) != 1]
    sch.parallel(many[0] if many else outer[0])
    return channel if depthwise else None


def _loops_of_result(sch: Schedule, block: BlockRef) -> list[LoopRef | None]:
    """Return the loop of each dimension of the result of a block; None for a single iteration."""
    found = sch.state.block(block)
    items: dict[Expr, IterVar] = {v.var: v for v in found.iters}
    return [loop_of(sch, block, items[i]) for i in next(stores(found.body)).indices if i in items]


def _part(sch: Schedule, loop: LoopRef | None, size: int) -> tuple[LoopRef | None, LoopRef | None]:
    """Split a loop into tiles; return the loop over tiles and the one of a tile, if there are."""
    if loop is None or size == 1:
        return loop, None
    outer, inner = sch.split(loop, factors=(None, size))
    return outer, inner


def _sums(sch: Schedule, conv: BlockRef, pattern: Convolution, tile: ConvolutionTile) -> None:
    """Schedule the loops of one tile: the terms outermost, then rows and channels, then columns.

    If each channel has its own window, the terms along the rows of the image are innermost and
    unrolled: a strip of a row is loaded once for all rows of the tile that it contributes to.
    """
    iters = sch.state.block(conv).iters
    before = (v.var for v in pattern.block.iters)
    now: dict[Expr, IterVar] = dict(zip(before, iters, strict=True))

    def loop(item: IterVar) -> LoopRef | None:
        return loop_of(sch, conv, now[item.var])

    last = pattern.along_rows if tile.reuses_rows else ()
    order = (*(v for v in pattern.terms if v not in last), *last)
    terms = [x for x in map(loop, order) if x is not None]
    row = pattern.rows[-1:] if tile.rows > 1 else ()
    channel = (pattern.channel,) if tile.channels > 1 else ()
    if not terms:
        raise RuleNotApplicableError(f"function {conv.function!r} adds one term per element")
    vector = (pattern.column, *channel) if tile.by_channels else (*channel, pattern.column)
    own = [x for x in map(loop, (*row, *vector)) if x is not None]
    sch.reorder((*terms, *own))
    init = sch.decompose_reduction(conv, terms[0])
    _lanes(sch, tuple(sch.get_loops(init)[-len(own) :]), tile)
    _lanes(sch, tuple(own), tile)
    unrolled = [loop(v) for v in last or pattern.terms] if tile.unrolled else []
    for term in terms[1:]:
        if term in unrolled:
            sch.unroll(term)


def _lanes(sch: Schedule, loops: tuple[LoopRef, ...], tile: ConvolutionTile) -> None:
    """Unroll the loops of a tile but the innermost, and vectorize that."""
    *others, lanes = loops
    for loop in others:
        sch.unroll(loop)
    if tile.masked and (tile.channels if tile.by_channels else tile.columns) > tile.lanes:
        vectors, lanes = sch.split(lanes, factors=(None, tile.lanes))
        sch.unroll(vectors)
    sch.vectorize(lanes)


def _last(sch: Schedule, conv: BlockRef, pattern: Convolution) -> BlockRef:
    """Inline the blocks after the convolution into the last one; without any, add a copy."""
    if not pattern.epilogue:
        buffer = pattern.block.writes[0].buffer
        return sch.cache_write(conv, buffer_ref(conv.function, buffer), "local")
    *between, last = (block_ref(conv.function, b) for b in pattern.epilogue)
    for block in between:
        sch.compute_inline(block)
    return last
