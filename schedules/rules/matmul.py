"""Default rule for matrix products: register tiles, a packed right operand, a fused epilogue.

The tile is the largest that fits the vector registers: for f32 on AVX-512, 14 rows of 32 columns
in 28 accumulators. Rows may be symbolic; code generation emits the partial last tile. A right
operand that all rows share is packed into panels of the tile's columns, by a block that
``hoist_block`` moves to load time if the right operand is a weight.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.graph.nodes import CallTIR, ConstantRef
from ...ir.loop.nodes import Block, Buffer, IndexMap, Load, Store
from ...ir.symbolic import Var, const_value, var
from ..handles import BlockRef, BufferRef, FunctionRef, LoopRef
from ..primitives.graph.hoist_block import HoistBlock
from ..primitives.tensorize.tensorize import Tensorize
from ..schedule import Schedule
from .elementwise import vectorize_loop
from .machine import Machine, Tile
from .patterns import Matmul, classify, loop_of

GEMV_PANELS = 4
"""The number of panels that the one-row version reads concurrently, to hide load latency."""

MATRIX, PANELS = 2, 4
"""The number of dimensions of a right operand, plain and packed (panel, group, column, element)."""


def schedule_matmul(schedule: Schedule, function: str, pattern: Matmul, machine: Machine) -> None:
    """Pack the right operand, create the one-row version, and tile both versions."""
    tile = _tile(pattern, machine)
    if pattern.packable and not (pattern.batched and pattern.row_major):
        copy = pack(schedule, function, pattern, tile)
        hoist = HoistBlock(copy)
        if is_weight(schedule, function, pattern.right.buffer) and not schedule.check(hoist):
            name = schedule.state.block(copy).name
            at_load = schedule.hoist_block(copy)
            schedule_copy(schedule, schedule.get_block(name, at_load.function), tile, machine)
    versions = _versions(schedule, function, pattern) if tile.group == 1 else []
    for name in (function, *versions):
        found = classify_packed(schedule, name)
        if found is not None:
            one_row = const_value(found.row.extent) == 1 and tile.group == 1
            width = _gemv_width(found, tile.columns) if one_row else tile.columns
            tile_kernel(schedule, name, replace(tile, rows=1) if one_row else tile, width)
            for block in found.prologue:
                schedule_copy(schedule, schedule.get_block(block.name, name), tile, machine)


def schedule_copy(schedule: Schedule, copy: BlockRef, tile: Tile, machine: Machine) -> None:
    """Vectorize the copy of an operand; groups use the target's packing instruction if it fits."""
    block, loops = schedule.state.block(copy), schedule.get_loops(copy)
    instruction = machine.packing(block.writes[0].buffer.dtype, tile)
    if instruction and _whole_groups(schedule, block, loops, tile.group):
        _interleave(schedule, loops, tile, instruction)
    elif loops:  # a dimension of one element has no loop
        vectorize_loop(schedule, loops[-1], tile.columns)
        outer = schedule.get_loops(copy)[0]
        if schedule.state.loop(outer).kind == "serial":
            schedule.parallel(outer)


def _whole_groups(schedule: Schedule, copy: Block, loops: tuple[LoopRef, ...], group: int) -> bool:
    """Return whether a copy rearranges a matrix into complete groups without other computation."""
    if len(loops) != MATRIX or len(copy.writes[0].buffer.shape) != PANELS:
        return False
    depth = const_value(schedule.state.loop(loops[0]).extent)
    plain = isinstance(copy.body, Store) and isinstance(copy.body.value, Load)
    return plain and depth is not None and depth % group == 0


def _interleave(
    schedule: Schedule, loops: tuple[LoopRef, ...], tile: Tile, instruction: str
) -> None:
    """Pack one panel after the other, with one group of rows per instruction."""
    k, j = loops
    panel, column = schedule.split(j, factors=(None, tile.columns))
    groups, one = schedule.split(k, factors=(None, tile.group))
    schedule.reorder((panel, groups, column, one))
    schedule.parallel(panel)
    step = Tensorize(column, instruction)
    if schedule.check(step):
        schedule.vectorize(column)
        schedule.unroll(one)
    else:
        schedule.apply(step)


def _tile(pattern: Matmul, machine: Machine) -> Tile:
    """Return the tile of an instruction if the operands can have its layout, else a plain one."""
    output = pattern.block.writes[0].buffer.dtype
    found = machine.tile_of(pattern.left.dtype, pattern.right.dtype, output)
    fits = pattern.packable and not pattern.batched and _left_is_contiguous(pattern)
    one = 1 in (const_value(pattern.row.extent), const_value(pattern.column.extent))
    if found.group == 1 or (fits and not one):
        return found
    return machine.tile(output)


def _left_is_contiguous(pattern: Matmul) -> bool:
    """Return whether the left operand is contiguous along k."""
    return pattern.left.indices[-1] == pattern.depth.var


def _gemv_width(pattern: Matmul, columns: int) -> int:
    """Return the number of columns of a one-row tile: at most ``GEMV_PANELS`` panels."""
    total = const_value(pattern.column.extent)
    panels = GEMV_PANELS if total is None else min(GEMV_PANELS, -(-total // columns))
    return columns * panels


def is_weight(schedule: Schedule, function: str, buffer: Buffer) -> bool:
    """Return whether every call of a kernel passes a constant for a parameter."""
    position = schedule.module.prim(function).buffer_params.index(buffer)
    calls = [
        b.right
        for g in schedule.module.graphs
        for b in g.bindings
        if isinstance(b.right, CallTIR) and b.right.function == function
    ]
    return bool(calls) and all(isinstance(c.args[position], ConstantRef) for c in calls)


def classify_packed(schedule: Schedule, function: str) -> Matmul | None:
    """Return the pattern of a product after packing; None if it is no longer recognized."""
    found = classify(schedule.module.prim(function))
    return found if isinstance(found, Matmul) else None


def pack(schedule: Schedule, function: str, pattern: Matmul, tile: Tile) -> BlockRef:
    """Pack the right operand into panels, and return the block that copies it.

    The layout is ``(k, n) -> (n // columns, k, n % columns)``. If the instruction takes groups of
    k, the elements of a group are contiguous, and both operands are padded with zeros.
    """
    block = schedule.get_block(pattern.block.name, function)
    if tile.group > 1 and (const_value(pattern.depth.extent) or 1) % tile.group:
        _, copy = schedule.pad_einsum(block, _padding(pattern, tile))
    else:
        buffer = schedule.get_buffer(pattern.right.buffer.name, function)
        copy = schedule.cache_read(block, buffer, "global")
    packed = schedule.state.block(copy).writes[0].buffer
    panels = panel_map(pattern, tile)
    schedule.transform_layout(schedule.get_buffer(packed.name, function), panels)
    return copy


def _padding(pattern: Matmul, tile: Tile) -> tuple[int, ...]:
    return tuple(tile.group if v is pattern.depth else 1 for v in pattern.block.iters)


def panel_map(pattern: Matmul, tile: Tile) -> IndexMap:
    """Return the map from indices of B to panels; outer (batch) dimensions are unchanged."""
    names = [f"d{k}" for k in range(len(pattern.right.indices))]
    inputs = tuple(var(n, lower=0) for n in names)
    at = pattern.right.indices.index(pattern.column.var)
    down = pattern.right.indices.index(pattern.depth.var)
    outer = tuple(v for k, v in enumerate(inputs) if k not in (at, down))
    column, depth, group = inputs[at], inputs[down], tile.group
    inner = () if group == 1 else (depth % group,)
    return IndexMap(
        inputs, (*outer, column // tile.columns, depth // group, column % tile.columns, *inner)
    )


def _versions(schedule: Schedule, function: str, pattern: Matmul) -> list[str]:
    """Create the one-row version if the rows are symbolic and there is no batch; return names."""
    extent = pattern.row.extent
    if not isinstance(extent, Var) or len(pattern.block.iters) != 3:
        return []
    made = schedule.specialize(FunctionRef(function), symbol=extent.name, lower=1, upper=1)
    return [made.function]


def tile_kernel(schedule: Schedule, function: str, tile: Tile, width: int) -> None:
    """Tile the last block of a kernel, and compute the product per tile in registers.

    A tile has ``width`` columns, in vectors of one panel's columns. For one row, the row loop,
    which has at most one iteration, is not split.
    """
    pattern = classify_packed(schedule, function)
    if pattern is None:
        return
    product = schedule.get_block(pattern.block.name, function)
    last = _epilogue(schedule, function, pattern, product)
    loops = schedule.get_loops(last)
    j0, j1 = schedule.split(loops[-1], factors=(None, width))
    anchor, unrolled = j0, ()
    if tile.rows > 1:
        i0, i1 = schedule.split(loops[-2], factors=(None, tile.rows))
        schedule.reorder((j0, i0, i1, j1))
        anchor, unrolled = i0, (i1,)
    schedule.compute_at(product, anchor)
    schedule.set_scope(_written(schedule, product), "local")
    _inner(schedule, product, pattern, width, tile)
    _unroll_and_vectorize(schedule, (*unrolled, j1), width, tile.columns)
    outer = loops[:-2] if tile.rows > 1 else loops[:-1]
    many = [x for x in outer if const_value(schedule.state.loop(x).extent) != 1]
    schedule.parallel(many[0] if many else j0)


def _epilogue(schedule: Schedule, function: str, pattern: Matmul, product: BlockRef) -> BlockRef:
    """Inline the blocks after the product into the last one; without any, add a copy."""
    if not pattern.epilogue:
        written = pattern.block.writes[0].buffer.name
        return schedule.cache_write(product, schedule.get_buffer(written, function), "local")
    *inner, last = (schedule.get_block(b.name, function) for b in pattern.epilogue)
    for block in inner:
        schedule.compute_inline(block)
    return last


def _written(schedule: Schedule, block: BlockRef) -> BufferRef:
    buffer = schedule.state.block(block).writes[0].buffer
    return schedule.get_buffer(buffer.name, block.function)


def _inner(schedule: Schedule, product: BlockRef, pattern: Matmul, width: int, tile: Tile) -> None:
    """Schedule the loops of one tile: k outermost, rows unrolled, columns vectorized.

    If the tile has an instruction and it fits, the tile is tensorized instead.
    """
    tiled = (pattern.row, pattern.column) if tile.rows > 1 else (pattern.column,)
    k, *own = (loop_of(schedule, product, pattern, v) for v in (pattern.depth, *tiled))
    count, groups = len(tiled), ()
    spatial = tuple(own)
    if tile.group > 1:
        k, one = schedule.split(k, factors=(None, tile.group))
        groups = (one,)
    schedule.reorder((k, *spatial, *groups))
    init = schedule.decompose_reduction(product, k)
    step = Tensorize(spatial[0], tile.intrinsic)
    if tile.intrinsic and not schedule.check(step):
        schedule.apply(step)
    else:
        for loop in groups:
            schedule.unroll(loop)
        _unroll_and_vectorize(schedule, spatial, width, tile.columns)
    _unroll_and_vectorize(schedule, schedule.get_loops(init)[-count:], width, tile.columns)


def _unroll_and_vectorize(
    schedule: Schedule, loops: tuple[LoopRef, ...], width: int, columns: int
) -> None:
    """Unroll the rows and panels of a tile, and vectorize the columns of a panel."""
    *rows, column = loops
    for row in rows:
        schedule.unroll(row)
    if width > columns:
        panel, column = schedule.split(column, factors=(None, columns))
        schedule.unroll(panel)
    schedule.vectorize(column)
