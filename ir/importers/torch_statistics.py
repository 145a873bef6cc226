"""Import handlers of order statistics in PyTorch: median, kthvalue, mode, and searches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dtype import i32, i64
from ..symbolic import Expr, SymInt, as_expr
from .elementwise import convert, elementwise, where
from .ordering import sized_nonzero
from .shaping import axis_of, expand, expand_dims, reshape, squeeze
from .tensors import Imported, Iota
from .torch_context import OperandLike, TorchContext, aten
from .unsupported import UnsupportedFormError

Chosen = Callable[[TorchContext, Imported, Imported], Imported]
"""Returns the position in the sorted order, for the length and the number of elements that are not
NaN, which are tensors with the axis of dimension 1."""


def _sorted(t: TorchContext, x: Imported, axis: int) -> list[Imported]:
    return t.items(t.emit("sort", t.plain(x), axis=axis))


def _statistic(
    t: TorchContext, x: Imported, dim: int, choose: Chosen, *, keepdim: bool
) -> list[Imported]:
    """Return the element at a position of the sorted order, and its position along the axis."""
    if not x.rank:
        return [x, t.uniform(0, (), i64)]
    axis = axis_of(dim, x.rank)
    values, ranks = _sorted(t, x, axis)
    length = t.number(x.shape[axis], i64)
    count = length
    if x.dtype.is_float:
        number = elementwise(t, "logical_not", [elementwise(t, "isnan", [x])])
        count = t.apply("sum", t.plain(convert(t, number, i64)), axes=(axis,), keepdims=True)
    shape = tuple(as_expr(1) if k == axis else d for k, d in enumerate(x.shape))
    at = t.plain(expand(t, convert(t, choose(t, length, count), i64), shape))
    found = [t.apply("gather_elements", t.plain(v), at, axis=axis) for v in (values, ranks)]
    return found if keepdim else [squeeze(t, v, (axis,)) for v in found]


def _half(t: TorchContext, count: Imported) -> Imported:
    """Return the position of the lower median of a number of elements; 0 for none."""
    less = elementwise(t, "subtract", [count, t.uniform(1, (), i64)])
    half = elementwise(t, "floor_divide", [less, t.uniform(2, (), i64)])
    return elementwise(t, "maximum", [half, t.uniform(0, (), i64)])


def _lower_median(t: TorchContext, length: Imported, count: Imported) -> Imported:
    """Return the position of the lower median, or of the first NaN."""
    full = elementwise(t, "equal", [count, length])
    return where(t, full, _half(t, length), count)


def _median_of_numbers(t: TorchContext, length: Imported, count: Imported) -> Imported:
    del length
    return _half(t, count)


@aten("median", "nanmedian")
def median(
    t: TorchContext,
    x: Imported,
    dim: int | None = None,
    keepdim: bool = False,  # noqa: FBT001, FBT002
) -> Imported | list[Imported]:
    """Import the lower median; a NaN is the median, or ignored by ``nanmedian``."""
    choose = _lower_median if t.operator == "median" else _median_of_numbers
    if dim is None:
        return _statistic(t, reshape(t, x, (-1,)), 0, choose, keepdim=False)[0]
    return _statistic(t, x, dim, choose, keepdim=keepdim)


@aten("kthvalue")
def kthvalue(
    t: TorchContext,
    x: Imported,
    k: SymInt,
    dim: int = -1,
    keepdim: bool = False,  # noqa: FBT001, FBT002
) -> list[Imported]:
    """Import the element that is the k-th smallest along a dimension."""

    def choose(context: TorchContext, length: Imported, count: Imported) -> Imported:
        del length, count
        return context.number(as_expr(k) - 1, i64)

    return _statistic(t, x, dim, choose, keepdim=keepdim)


@aten("mode")
def mode(
    t: TorchContext,
    x: Imported,
    dim: int = -1,
    keepdim: bool = False,  # noqa: FBT001, FBT002
) -> list[Imported]:
    """Import the smallest of the most frequent elements, and its last position."""
    if not x.rank:
        return [x, t.uniform(0, (), i64)]
    axis = axis_of(dim, x.rank)
    values, ranks = _sorted(t, x, axis)
    left, right = expand_dims(t, values, (axis + 1,)), expand_dims(t, values, (axis,))
    same = convert(t, elementwise(t, "equal", [left, right]), i64)
    counts = t.apply("sum", t.plain(same), axes=(axis + 1,))
    first = t.apply("argmax", t.plain(counts), axis=axis, keepdims=True)
    most = t.apply("max", t.plain(counts), axes=(axis,), keepdims=True)
    less = elementwise(t, "subtract", [most, t.uniform(1, (), i64)])
    last = elementwise(t, "maximum", [less, t.uniform(0, (), i64)])
    at = t.plain(elementwise(t, "add", [first, last]))
    found = [t.apply("gather_elements", t.plain(v), at, axis=axis) for v in (values, ranks)]
    return found if keepdim else [squeeze(t, v, (axis,)) for v in found]


@aten("searchsorted")
def searchsorted(
    t: TorchContext, ends: Imported, x: OperandLike, *, out_int32: bool = False,
    right: bool = False, side: str | None = None, sorter: Imported | None = None,
) -> Imported:  # fmt: skip
    """Import the positions of numbers in sorted rows: the number of elements below them."""
    if sorter is not None:
        ends = t.apply("gather_elements", t.plain(ends), t.plain(sorter), axis=ends.rank - 1)
    return _positions(t, ends, x, right=right or side == "right", short=out_int32)


@aten("bucketize")
def bucketize(
    t: TorchContext, x: OperandLike, ends: Imported, *, out_int32: bool = False,
    right: bool = False,
) -> Imported:  # fmt: skip
    """Import the numbers of the intervals of sorted ends that contain numbers."""
    return _positions(t, ends, x, right=right, short=out_int32)


def _positions(
    t: TorchContext, ends: Imported, x: OperandLike, *, right: bool, short: bool
) -> Imported:
    """Return the number of ends that are less than each number, or not greater."""
    value = convert(t, t.number(x, ends.dtype), ends.dtype)
    line = ends if ends.rank > 1 or not value.rank else reshape(t, ends, (*(1,) * value.rank, -1))
    if ends.rank > 1:
        line = expand_dims(t, ends, (ends.rank - 1,))
    below = elementwise(
        t, "less_equal" if right else "less", [line, expand_dims(t, value, (value.rank,))]
    )
    if ends.dtype.is_float:  # NaN is greater than all numbers
        nan = elementwise(t, "isnan", [expand_dims(t, value, (value.rank,))])
        number = elementwise(t, "logical_not", [elementwise(t, "isnan", [line])])
        wanted = nan if right else elementwise(t, "logical_and", [nan, number])
        below = elementwise(t, "logical_or", [below, wanted])
    found = t.apply("sum", t.plain(convert(t, below, i64)), axes=(below.rank - 1,))
    return convert(t, found, i32) if short else found


@aten("masked_select")
def masked_select(t: TorchContext, x: Imported, mask: Imported) -> Imported:
    """Import the elements at the true positions; PyTorch names their number."""
    shape = t.broadcast_shapes([x.shape, mask.shape])
    flat = reshape(t, expand(t, x, shape), (-1,))
    chosen = reshape(t, expand(t, mask, shape), (-1,))
    return t.apply("take", t.plain(flat), t.plain(_true(t, chosen)), axis=0)


def _true(t: TorchContext, chosen: Imported) -> Imported:
    """Return the positions of the true elements of a vector."""
    count = t.symbols.size(t.node.meta["val"].shape[0])
    return reshape(t, sized_nonzero(t, chosen, count), (count,))


@aten("masked_scatter")
def masked_scatter(t: TorchContext, x: Imported, mask: Imported, source: Imported) -> Imported:
    """Import the replacement of the elements at true positions by the next ones of a source."""
    shape = t.broadcast_shapes([x.shape, mask.shape])
    chosen = reshape(t, expand(t, mask, shape), (-1,))
    counts = t.apply("cumsum", t.plain(convert(t, chosen, i64)), axis=0)
    before = elementwise(t, "subtract", [counts, t.uniform(1, (), i64)])
    at = where(t, chosen, before, t.uniform(0, (), i64))
    taken = t.apply("take", t.plain(reshape(t, source, (-1,))), t.plain(at), axis=0)
    found = where(t, chosen, taken, reshape(t, expand(t, x, shape), (-1,)))
    return reshape(t, found, shape)


@aten("put")
def put(
    t: TorchContext, x: Imported, indices: Imported, source: Imported,
    accumulate: bool = False,  # noqa: FBT001, FBT002
) -> Imported:  # fmt: skip
    """Import the replacement of elements of the flattened tensor."""
    op = "index_add" if accumulate else "index_copy"
    flat = [t.plain(reshape(t, v, (-1,))) for v in (x, indices, source)]
    return reshape(t, t.apply(op, *flat, axis=0, wrap=True), x.shape)


@aten("as_strided", "as_strided_copy")
def as_strided(
    t: TorchContext, x: Imported, sizes: Any, strides: Any, offset: SymInt | None = None
) -> Imported:
    """Import a view of the elements in row-major order at given distances."""
    at = t.plain(_strided(t, sizes, strides, offset))
    return t.apply("take", t.plain(reshape(t, x, (-1,))), at, axis=0)


@aten("as_strided_scatter")
def as_strided_scatter(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, source: Imported, sizes: Any, strides: Any,
    offset: SymInt | None = None,
) -> Imported:  # fmt: skip
    """Import the write of the elements of such a view."""
    parts = (x, _strided(t, sizes, strides, offset), source)
    flat = [t.plain(reshape(t, v, (-1,))) for v in parts]
    return reshape(t, t.apply("index_copy", *flat, axis=0, wrap=False), x.shape)


def _strided(t: TorchContext, sizes: Any, strides: Any, offset: SymInt | None) -> Imported:
    """Return the positions of the elements of a view in the elements of its base."""
    if t.node.args[0].meta["val"].is_contiguous() is not True:
        raise UnsupportedFormError(
            f"{t.operator} of a tensor that is not contiguous is not supported"
        )
    start = as_expr(0 if offset is None else offset)
    at = t.number(start, i64)
    shape: tuple[Expr, ...] = t.dims(sizes)
    for axis, (size, stride) in enumerate(zip(shape, t.dims(strides), strict=True)):
        line = Imported((size,), i64, known=Iota(0, as_expr(0)))
        line = expand_dims(t, line, [k for k in range(len(shape)) if k != axis])
        step = elementwise(t, "multiply", [line, t.number(stride, i64)])
        at = elementwise(t, "add", [at, step])
    return expand(t, at, shape)
