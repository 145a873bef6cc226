"""Default rule for matrix products: register tiles, a packed right operand, a fused epilogue.

The tile is the largest that fits the vector registers: for f32 on AVX-512, 14 rows of 32 columns
in 28 accumulators. Rows may be symbolic; code generation emits the partial last tile. A right
operand that all rows share is packed into panels of the tile's columns, by a block that
``hoist_block`` moves to load time if the right operand is a weight.
"""

from __future__ import annotations

from typing import Final, cast

from ...ir.dtype import BYTE
from ...ir.graph.nodes import CallTIR, ConstantRef
from ...ir.loop.nodes import Block, Buffer, IndexMap, Load
from ...ir.loop.visit import loads
from ...ir.symbolic import Facts, Var, const_value, eq, is_proved, var
from ..composite import composite
from ..handles import BlockRef, FunctionRef, block_ref, buffer_ref
from ..library._products import written
from ..library.pack import padding_of
from ..machine import Machine, Tile, machine_of
from ..patterns import Matmul, classify
from ..primitives.graph.hoist_block import HoistBlock
from ..primitives.placement.compute_inline import ComputeInline
from ..primitives.specialize.specialize import Specialize
from ..problem import RuleNotApplicableError
from ..schedule import Schedule
from ..transposed_operands import transposed_load

PANEL_RANK: Final = 3
"""The rank of a packed operand whose columns are in the order of the panel."""

UNBATCHED: Final = 3
"""The number of iteration variables of a product without a batch."""

WHOLE: Final = 2
"""The number of tiles of a panel, packed for wider registers, that are computed as one tile."""

WHOLE_ROWS: Final = 2
"""The rows of such a tile, which reads a panel from memory in its order: it has four vectors per
row, so that eight sums hide the latency of multiply-adds.
"""

GEMV_PANELS: Final = 4
"""The number of panels that the one-row version reads concurrently, to hide load latency."""


@composite
def schedule_matmul(sch: Schedule, function: FunctionRef) -> None:
    """Schedule a matrix product for the vector registers of a CPU.

    Before::

        for i in range(n):
            for j in range(m):
                for k in range(d):
                    C[i, j] += A[i, k] * B[k, j]

    After::

        for k in parallel(d):
            for j in vectorized(m):
                P[j // 32, k, j % 32] = B[k, j]
        for j_0 in parallel(ceildiv(m, 32)):
            for i_0 in range(ceildiv(n, 14)):
                tile(C, A, P, i_0, j_0)

    Parameters
    ----------
    function : FunctionRef
        The function. Its product may be followed by element-wise blocks.

    Notes
    -----
    ``pack``, ``hoist_block`` if the right operand is a weight, ``specialize`` for one row if the
    number of rows is symbolic, then ``register_tile`` and ``schedule_copy``. The sizes of the tile
    are those of the target's registers, or of its dot-product instruction for the dtypes. A single
    row of sums of products that are adjacent in both operands is scheduled by ``schedule_nests``.

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
    >>> sch = tw.Schedule(module, tw.Target("cpu", features=("avx512",)))
    >>> sch.schedule_matmul("mm")
    >>> print(sch.trace.folded())
    mm = sch.get_function(name='mm')
    sch.schedule_matmul(function=mm)
    """
    name, machine = function.function, machine_of(sch.state.target_of(function.function))
    _inline_weights(sch, name)
    _inline_transposes(sch, name)
    pattern = classify(sch.module.prim(name))
    if not isinstance(pattern, Matmul):
        raise RuleNotApplicableError(f"function {name!r} is not a matrix product")
    tile = _tile(sch, name, pattern, machine)
    dots = tile.group == 1 and _sums_adjacent(sch, name, pattern)
    if dots and const_value(pattern.row.extent) == 1:
        sch.schedule_nests(function)
        return
    for version in _versions(sch, function, pattern) if dots else []:
        sch.schedule_nests(FunctionRef(version))
    panel = tile.columns
    if _is_packed(sch, name, pattern):
        panel = _panel(sch, name, pattern, machine, tile)
        _pack(sch, name, pattern, tile, panel)
    plain = tile.group == 1 and not dots and len(pattern.block.iters) == UNBATCHED
    versions = _versions(sch, function, pattern) if plain else []
    for version in (name, *versions):
        prim = sch.module.prim(version)
        found = classify(prim)
        if isinstance(found, Matmul) and not (version != name and _is_unit(found, prim.facts)):
            _tiled(sch, version, found, tile, panel)


def _is_unit(pattern: Matmul, facts: Facts) -> bool:
    """Return whether a version has one column, and no loop over it, because facts imply it."""
    return is_proved(eq(pattern.column.extent, 1), facts)


def _inline_weights(sch: Schedule, name: str) -> None:
    """Inline the conversion of quantized weights into the product, so that it reads the weights."""
    while True:
        pattern = classify(sch.module.prim(name))
        if not isinstance(pattern, Matmul):
            return
        last = _conversion(pattern)
        if last is None:
            return
        step = ComputeInline(block_ref(name, last))
        if sch.check(step):
            return
        sch.apply(step)


def _conversion(pattern: Matmul) -> Block | None:
    """Return the last block that converts the right operand from weights of at most 8 bits."""
    converted: set[Buffer] = set()
    found: Block | None = None
    for block in pattern.prologue:
        written = block.writes[0].buffer
        read = {load.buffer for load in loads(block)}
        if written.dtype.bits > BYTE and any(b in converted or b.dtype.bits <= BYTE for b in read):
            converted.add(written)
            found = block if written is pattern.right.buffer else found
    return found


def _inline_transposes(sch: Schedule, name: str) -> None:
    """Inline permutations of dimensions before the product, so that it reads their source."""
    pattern = classify(sch.module.prim(name))
    blocks = pattern.prologue if isinstance(pattern, Matmul) else ()
    for block in reversed(blocks):
        step = ComputeInline(block_ref(name, block))
        if transposed_load(block) is not None and not sch.check(step):
            sch.apply(step)


def _sums_adjacent(sch: Schedule, name: str, pattern: Matmul) -> bool:
    """Return whether a result is the sum of products of adjacent elements in both operands.

    A single row then reads the right operand once, in its order; a copy into panels would read it
    twice. Weights are copied at load time.
    """
    return (
        not (pattern.prologue or pattern.scaled)
        and pattern.packable
        and pattern.right.indices[-1] == pattern.depth.var
        and _left_is_contiguous(pattern)
        and not is_weight(sch, name, pattern.right.buffer)
    )


def _is_packed(sch: Schedule, name: str, pattern: Matmul) -> bool:
    """Return whether the right operand is copied into panels.

    A copy that shares bytes between elements is not parallel, so only weights are copied then.
    """
    if not pattern.packable or (pattern.batched and pattern.row_major):
        return False
    return not pattern.right.dtype.is_packed or is_weight(sch, name, pattern.right.buffer)


def _panel(sch: Schedule, name: str, pattern: Matmul, machine: Machine, tile: Tile) -> int:
    """Return the number of columns of a panel; several kinds of processors share that of weights.

    The elements of one byte belong to the vectors of one kind of processor.
    """
    right = pattern.right
    shared = is_weight(sch, name, right.buffer) and not right.dtype.is_packed
    return machine.panel(tile) if shared else tile.columns


def _pack(sch: Schedule, name: str, pattern: Matmul, tile: Tile, columns: int) -> None:
    """Pack the right operand; move the copies of weights to load time."""
    product = block_ref(name, pattern.block)
    scales = _transposed_scales(pattern)
    copy = sch.pack(product, columns, tile.group)
    _at_load(sch, name, pattern.right.buffer, copy, tile)
    for load, at in scales.items():
        scale = buffer_ref(name, load.buffer)
        copy = sch.cache_read(product, scale, "global")
        sch.transform_layout(written(sch, copy), _axis_last(len(load.indices), at))
        _at_load(sch, name, load.buffer, copy, tile)


def _at_load(sch: Schedule, name: str, source: Buffer, copy: BlockRef, tile: Tile) -> None:
    """Move a copy to load time if its source is a weight."""
    if is_weight(sch, name, source) and not sch.check(HoistBlock(copy)):
        block = sch.state.block(copy).name
        at_load = sch.hoist_block(copy)
        moved = sch.get_block(block, at_load.function)
        sch.schedule_copy(moved, tile.columns, tile.group)


def _transposed_scales(pattern: Matmul) -> dict[Load, int]:
    """Return the loads in a scaled factor along whose last axis columns are not adjacent.

    The values are the positions of the column in the indices.
    """
    found: dict[Load, int] = {}
    column = pattern.column.var
    for load in loads(pattern.block.body) if pattern.scaled else ():
        wide = [k for k, dim in enumerate(load.buffer.shape) if const_value(dim) != 1]
        copied = load.buffer in (pattern.left.buffer, pattern.right.buffer)
        if not copied and column in load.indices and load.indices.index(column) != wide[-1]:
            found[load] = load.indices.index(column)
    return found


def _axis_last(rank: int, axis: int) -> IndexMap:
    """Return the map that moves an axis behind all others."""
    inputs = tuple(var(f"d{k}", lower=0) for k in range(rank))
    return IndexMap(inputs, (*inputs[:axis], *inputs[axis + 1 :], inputs[axis]))


def _tiled(sch: Schedule, name: str, pattern: Matmul, tile: Tile, panel: int) -> None:
    """Tile a version of the product, and schedule the copies before it."""
    one_row = const_value(pattern.row.extent) == 1 and tile.group == 1
    parts = pattern.right.dtype.per_byte if len(pattern.right.indices) > PANEL_RANK else 1
    whole = panel == WHOLE * tile.columns and not one_row
    sch.register_tile(
        block_ref(name, pattern.block),
        rows=1 if one_row else WHOLE_ROWS if whole else tile.rows,
        columns=tile.columns // parts,
        panels=WHOLE if whole else parts * (_gemv_panels(pattern, tile.columns) if one_row else 1),
        group=tile.group,
        intrinsic="" if whole else tile.intrinsic,
    )
    for block in pattern.prologue:
        sch.schedule_copy(block_ref(name, block), tile.columns, tile.group)


def _tile(sch: Schedule, name: str, pattern: Matmul, machine: Machine) -> Tile:
    """Return the tile of an instruction if the operands can have its layout, else a plain one."""
    output = pattern.block.writes[0].buffer.dtype
    found = machine.tile_of(pattern.left.dtype, pattern.right.dtype, output)
    fits = (
        not pattern.scaled
        and pattern.packable
        and not pattern.batched
        and _left_is_contiguous(pattern)
    )
    one = 1 in (const_value(pattern.row.extent), const_value(pattern.column.extent))
    if found.group == 1 or (fits and not one and _is_groupable(sch, name, pattern, found.group)):
        return found
    return machine.tile(output)


def _is_groupable(sch: Schedule, name: str, pattern: Matmul, group: int) -> bool:
    """Return whether the number of products is a multiple of a group, or can be padded to one."""
    padding = padding_of(sch.state, block_ref(name, pattern.block), pattern, group)
    return padding is None or not sch.check(padding)


def _left_is_contiguous(pattern: Matmul) -> bool:
    """Return whether the left operand is contiguous along k."""
    return pattern.left.indices[-1] == pattern.depth.var


def _gemv_panels(pattern: Matmul, columns: int) -> int:
    """Return the number of panels of a one-row tile: at most ``GEMV_PANELS``."""
    total = const_value(pattern.column.extent)
    return GEMV_PANELS if total is None else min(GEMV_PANELS, -(-total // columns))


def is_weight(sch: Schedule, function: str, buffer: Buffer) -> bool:
    """Return whether every call of a kernel passes a constant for a parameter."""
    params = sch.module.prim(function).buffer_params
    if buffer not in params:
        return False  # a copy
    position = params.index(buffer)
    calls = [
        b.right
        for g in sch.module.graphs
        for b in g.bindings
        if isinstance(b.right, CallTIR) and b.right.function == function
    ]
    return bool(calls) and all(isinstance(c.args[position], ConstantRef) for c in calls)


def _versions(sch: Schedule, function: FunctionRef, pattern: Matmul) -> list[str]:
    """Create the one-row version if the rows are symbolic; return names.

    There is none if it is not legal: the calls cannot choose it, because the memory of the caller
    is planned, or a fact excludes a single row.
    """
    extent = pattern.row.extent
    if not isinstance(extent, Var):
        return []
    version = Specialize(function, extent.name, 1, 1)
    if sch.check(version):
        return []
    (made,) = sch.apply(version).results
    return [cast("FunctionRef", made).function]
