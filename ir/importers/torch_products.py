"""Import handlers of sums of products and of distances of rows in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

from ..dtype import i64
from ..symbolic import as_expr
from .elementwise import elementwise, weighted_sum
from .indexing import select
from .ordering import sized_nonzero
from .shaping import expand, expand_dims
from .tensors import Imported, Iota
from .torch_compound import vector_norm
from .torch_context import TorchContext, aten


@aten("addbmm")
def addbmm(
    t: TorchContext, bias: Imported, x: Imported, y: Imported, *, beta: float = 1, alpha: float = 1
) -> Imported:
    """Import ``beta * bias + alpha * sum(x @ y)`` over the batch."""
    product = t.apply("matmul", t.plain(x), t.plain(y))
    return weighted_sum(t, t.apply("sum", t.plain(product), axes=(0,)), alpha, bias, beta)


@aten("_trilinear")
def trilinear(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, y: Imported, z: Imported, of_x: Sequence[int],
    of_y: Sequence[int], of_z: Sequence[int], summed: Sequence[int], *_: int,
) -> Imported:  # fmt: skip
    """Import the sums of products of three tensors with inserted dimensions."""
    parts = [
        expand_dims(t, v, axes) if axes else v for v, axes in ((x, of_x), (y, of_y), (z, of_z))
    ]
    product = elementwise(t, "multiply", [elementwise(t, "multiply", parts[:2]), parts[2]])
    return t.apply("sum", t.plain(product), axes=tuple(summed)) if summed else product


@aten("_cdist_forward", "cdist")
def distances(
    t: TorchContext, x: Imported, y: Imported, order: float = 2, *_: int | None
) -> Imported:
    """Import the norms of the differences of all pairs of rows."""
    left, right = expand_dims(t, x, (x.rank - 1,)), expand_dims(t, y, (y.rank - 2,))
    return vector_norm(t, elementwise(t, "subtract", [left, right]), order, -1)


@aten("_pdist_forward")
def distances_of_pairs(t: TorchContext, x: Imported, order: float = 2) -> Imported:
    """Import the norms of the differences of each row and the rows after it."""
    size = x.shape[0]
    line = Imported((size,), i64, known=Iota(0, as_expr(0)))
    row, column = expand_dims(t, line, (1,)), expand_dims(t, line, (0,))
    count = size * (size - 1) // 2
    after = expand(t, elementwise(t, "less", [row, column]), (size, size))
    chosen = sized_nonzero(t, after, count)
    ends = [
        t.apply("take", t.plain(x), t.plain(select(t, chosen, 1, as_expr(k))), axis=0)
        for k in (0, 1)
    ]
    return vector_norm(t, elementwise(t, "subtract", ends), order, -1)
