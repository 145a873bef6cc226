"""The ``pack`` composite step."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.loop.nodes import IndexMap
from ...ir.symbolic import eq, is_proved, var
from ..apply import Composite
from ..composite import composite
from ..handles import BlockRef, Handle, buffer_ref
from ..machine import machine_of
from ..patterns import Matmul, classify
from ..primitives.tensorize.pad_einsum import PadEinsum
from ..schedule import Schedule
from ..state import State
from ._products import product_of, written


def _suggested(state: State, selection: Handle) -> Iterator[Composite]:
    if isinstance(selection, BlockRef):
        found = classify(state.module.prim(selection.function))
        block = state.block(selection)
        if isinstance(found, Matmul) and found.packable and found.block is block:
            dtype = block.writes[0].buffer.dtype
            yield pack(
                selection, machine_of(state.target_of(selection.function)).tile(dtype).columns
            )


@composite(suggest=_suggested)
def pack(sch: Schedule, product: BlockRef, columns: int, group: int = 1) -> BlockRef:
    """Copy the right operand of a matrix product into panels of columns.

    Before::

        for i in range(n):
            for j in range(m):
                for k in range(d):
                    C[i, j] += A[i, k] * B[k, j]

    After (``columns=32``)::

        for k in range(d):
            for j in range(m):
                P[j // 32, k, j % 32] = B[k, j]
        for i in range(n):
            for j in range(m):
                for k in range(d):
                    C[i, j] += A[i, k] * P[j // 32, k, j % 32]

    Parameters
    ----------
    product : BlockRef
        The block of the product.
    columns : int
        The number of columns of a panel.
    group : int
        The number of elements of k that are adjacent in memory, as some instructions require. Both
        operands are padded with zeros to a multiple of it.

    Returns
    -------
    BlockRef
        The block that copies the operand. ``hoist_block`` moves it to load time if the operand is
        a weight.

    Notes
    -----
    The elements of a byte of a packed dtype belong to equal parts of a panel, so that each part is
    one vector of bytes. One ``cache_read``, or ``pad_einsum`` for an extent that ``group`` does not
    divide, and one ``transform_layout``. Outer (batch) dimensions are unchanged. Cost: linear in
    the size of the function.

    References
    ----------
    Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008.

    Examples
    --------
    >>> import tilewright as tw
    >>> module = tw.parse('''
    ... @prim_func
    ... def mm(A: Buffer[(8, 16), f32], B: Buffer[(16, 64), f32], C: Out[(8, 64), f32]):
    ...     for i in range(8):
    ...         for j in range(64):
    ...             for k in range(16):
    ...                 with block("mm"):
    ...                     vi, vj, vk = spatial(i), spatial(j), reduce(k)
    ...                     with init(): C[vi, vj] = 0.0
    ...                     C[vi, vj] += A[vi, vk] * B[vk, vj]
    ... ''')
    >>> sch = tw.Schedule(module)
    >>> copy = sch.pack("mm", columns=32)
    >>> print(sch.state.block(copy).writes[0].buffer.shape)
    (2, 16, 32)
    """
    pattern = product_of(sch, product)
    padding = padding_of(sch.state, product, pattern, group)
    if padding is not None:
        copies = sch.pad_einsum(product, padding.padding)
        pattern = product_of(sch, product)
        right = pattern.right.buffer
        copy = next(c for c in copies if sch.state.block(c).writes[0].buffer is right)
    else:
        operand = buffer_ref(product.function, pattern.right.buffer)
        copy = sch.cache_read(product, operand, "global")
    sch.transform_layout(written(sch, copy), panel_map(pattern, columns, group))
    return copy


def padding_of(state: State, product: BlockRef, pattern: Matmul, group: int) -> PadEinsum | None:
    """Return the step that pads both operands to groups along k; None if k is a multiple."""
    facts = state.tree(product.function).facts(pattern.block)
    if is_proved(eq(pattern.depth.extent % group, 0), facts):
        return None
    return PadEinsum(
        product, tuple(group if v is pattern.depth else 1 for v in pattern.block.iters)
    )


def panel_map(pattern: Matmul, columns: int, group: int) -> IndexMap:
    """Return the map from indices of B to panels; outer (batch) dimensions are unchanged."""
    names = [f"d{k}" for k in range(len(pattern.right.indices))]
    inputs = tuple(var(n, lower=0) for n in names)
    at = pattern.right.indices.index(pattern.column.var)
    down = pattern.right.indices.index(pattern.depth.var)
    outer = tuple(v for k, v in enumerate(inputs) if k not in (at, down))
    column, depth = inputs[at], inputs[down]
    inner = () if group == 1 else (depth % group,)
    own = (column % columns,)
    per = pattern.right.dtype.per_byte
    if per > 1 and columns % per == 0:
        part = columns // per
        own = (column % part, column // part % per)
    return IndexMap(inputs, (*outer, column // columns, depth // group, *own, *inner))
