"""Import handlers of PyTorch operators that replace elements of a tensor.

PyTorch traces ``cache[2:6] = x`` and the methods that change a tensor in place to these operators,
which return the changed tensor. If the tensor is a state, they become updates in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtype import bool_, i64
from ..symbolic import Expr, SymInt, as_expr, const_value, is_proved, product
from .elementwise import convert, elementwise, where
from .shaping import axis_of, clamped, expand, expand_dims, permute, reshape, slice_exact, squeeze
from .tensors import Imported, Iota
from .torch_context import OperandLike, TorchContext, aten
from .unsupported import UnsupportedFormError


@aten("copy")
def copy(t: TorchContext, x: Imported, source: Imported, *_: Any) -> Imported:
    """Import the replacement of all elements: the source in the dtype and the shape of ``x``."""
    return expand(t, convert(t, source, x.dtype), x.shape)


@aten("fill")
def fill(t: TorchContext, x: Imported, value: OperandLike) -> Imported:
    """Import the replacement of all elements by one number."""
    return expand(t, convert(t, t.number(value, x.dtype), x.dtype), x.shape)


@aten("zero")
def zero(t: TorchContext, x: Imported) -> Imported:
    """Import the replacement of all elements by 0."""
    return t.uniform(0, x.shape, x.dtype)


@aten("index_put")
def index_put(
    t: TorchContext, x: Imported, indices: Sequence[Imported | None], values: Imported,
    accumulate: bool = False,  # noqa: FBT001, FBT002
) -> Imported:  # fmt: skip
    """Import ``x[indices] = values``, or the addition of the values."""
    given = [(k, i) for k, i in enumerate(indices) if i is not None]
    if any(i.dtype == bool_ for _, i in given):
        return _masked_put(t, x, given, values, accumulate=accumulate)
    write = _added if accumulate else index_copy
    if len(given) == 1 and given[0][1].rank == 1:
        return write(t, x, given[0][0], given[0][1], values)
    axes = [k for k, _ in given]
    others = [k for k in range(x.rank) if k not in axes]
    front = permute(t, x, (*axes, *others))
    rest = front.shape[len(axes) :]
    rows, at = _flattened(t, front, [i for _, i in given])
    first = axes[0] if axes == list(range(axes[0], axes[0] + len(axes))) else 0
    shape = (*rest[:first], *at.shape, *rest[first:])
    moved = (*range(first, first + at.rank), *range(first), *range(first + at.rank, len(shape)))
    slices = permute(t, expand(t, values, shape), moved)
    count = product(at.shape)
    found = write(t, rows, 0, reshape(t, at, (count,)), reshape(t, slices, (count, *rest)))
    inverse = sorted(range(x.rank), key=[*axes, *others].__getitem__)
    return permute(t, reshape(t, found, front.shape), inverse)


def _flattened(
    t: TorchContext, x: Imported, indices: Sequence[Imported]
) -> tuple[Imported, Imported]:
    """Return ``x`` with its indexed leading dimensions as one, and the positions along it."""
    sizes = x.shape[: len(indices)]
    at = t.uniform(0, (), i64)
    for size, given in zip(sizes, indices, strict=True):
        extent, i = t.number(size, i64), convert(t, given, i64)
        negative = elementwise(t, "less", [i, t.uniform(0, (), i64)])
        i = where(t, negative, elementwise(t, "add", [i, extent]), i)
        at = elementwise(t, "add", [elementwise(t, "multiply", [at, extent]), i])
    return reshape(t, x, (product(sizes), *x.shape[len(indices) :])), at


def _masked_put(
    t: TorchContext, x: Imported, given: Sequence[tuple[int, Imported]], values: Imported, *,
    accumulate: bool,
) -> Imported:  # fmt: skip
    """Import ``x[mask] = value`` for values that do not depend on the selected position."""
    (first, mask), *more = given
    rest = x.rank - first - mask.rank
    while not first and values.rank > rest and const_value(values.shape[0]) == 1:
        values = squeeze(t, values, (0,))
    if more or values.rank > rest:
        raise UnsupportedFormError(
            "index_put with a boolean mask is supported only with one mask and one value for all "
            f"selected elements; it has {len(given)} index tensors and values of rank "
            f"{values.rank}, where at most {rest} is possible"
        )
    chosen = expand_dims(t, mask, range(mask.rank, mask.rank + rest)) if rest else mask
    new = elementwise(t, "add", [x, values]) if accumulate else values
    return where(t, expand(t, chosen, x.shape), new, x)


@aten("index_copy")
def index_copy(
    t: TorchContext, x: Imported, dim: int, indices: Imported, values: Imported
) -> Imported:
    """Import the write of slices along a dimension; consecutive indices are a box."""
    if not x.rank:
        flat = [reshape(t, v, (1,)) for v in (x, indices)]
        return reshape(t, index_copy(t, flat[0], 0, flat[1], reshape(t, values, (1,))), ())
    axis = axis_of(dim, x.rank)
    count = indices.shape[0] if indices.rank else as_expr(1)
    updates = expand(t, values, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
    known = indices.known
    if isinstance(known, Iota) and is_proved(known.start >= 0, t.builder.facts):
        return _written(t, x, updates, axis, known.start)
    at = indices if indices.rank else expand_dims(t, indices, (0,))
    return t.apply("index_copy", t.plain(x), t.plain(at), t.plain(updates), axis=axis, wrap=True)


@aten("index_add")
def index_add(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, dim: int, indices: Imported, values: Imported,
    alpha: float = 1,
) -> Imported:  # fmt: skip
    """Import the addition of slices along a dimension; those of one index are all added."""
    if not x.rank:
        x, indices, values = (reshape(t, v, (1,)) for v in (x, indices, values))
        return reshape(t, index_add(t, x, 0, indices, values, alpha), ())
    return _added(t, x, axis_of(dim, x.rank), indices, _scaled(t, values, alpha), wrap=False)


def _added(
    t: TorchContext, x: Imported, axis: int, indices: Imported, values: Imported, *,
    wrap: bool = True,
) -> Imported:  # fmt: skip
    """Return ``x`` with slices added at the positions of an index vector."""
    at = indices if indices.rank else expand_dims(t, indices, (0,))
    updates = expand(t, values, (*x.shape[:axis], at.shape[0], *x.shape[axis + 1 :]))
    return t.apply("index_add", t.plain(x), t.plain(at), t.plain(updates), axis=axis, wrap=wrap)


def _scaled(t: TorchContext, values: Imported, alpha: float) -> Imported:
    return (
        values
        if alpha == 1
        else elementwise(t, "multiply", [values, t.number(alpha, values.dtype)])
    )


@aten("index_fill")
def index_fill(
    t: TorchContext, x: Imported, dim: int, indices: Imported, value: OperandLike
) -> Imported:
    """Import the write of one number to slices along a dimension."""
    return index_copy(t, x, dim, indices, convert(t, t.number(value, x.dtype), x.dtype))


@aten("scatter")
def scatter(
    t: TorchContext, x: Imported, dim: int, indices: Imported, values: OperandLike, **options: Any
) -> Imported:
    """Import the write of elements by index, or their addition."""
    reduction: str | None = options.get("reduce")
    updates = convert(t, t.number(values, x.dtype), x.dtype)
    if not updates.rank:
        updates = expand(t, updates, indices.shape)
    if reduction is None:
        return _scattered(t, "scatter_elements", x, dim, indices, updates)
    return scatter_reduce(t, x, dim, indices, updates, _REDUCTIONS.get(reduction, reduction))


_REDUCTIONS = {"add": "sum", "multiply": "mul", "prod": "mul", "amax": "max", "amin": "min"}
"""The names of reductions by their names in PyTorch."""


@aten("scatter_add")
def scatter_add(
    t: TorchContext, x: Imported, dim: int, indices: Imported, values: Imported
) -> Imported:
    """Import the addition of elements by index; those of one index are all added."""
    return _scattered(t, "scatter_add", x, dim, indices, values)


@aten("scatter_reduce")
def scatter_reduce(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, dim: int, indices: Imported, values: Imported, reduce: str,
    include_self: bool = True,  # noqa: FBT001, FBT002
) -> Imported:  # fmt: skip
    """Import the combination of elements by index."""
    if reduce == "sum" and include_self:
        return _scattered(t, "scatter_add", x, dim, indices, values)
    reduction = _REDUCTIONS.get(reduce, reduce)
    form = {"reduction": reduction, "include_self": include_self}
    return _scattered(t, "scatter_reduce", x, dim, indices, values, **form)


@aten("index_reduce")
def index_reduce(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, dim: int, indices: Imported, values: Imported, reduce: str,
    *, include_self: bool = True,
) -> Imported:  # fmt: skip
    """Import the combination of slices by index."""
    axis = axis_of(dim, x.rank)
    row = reshape(t, indices, tuple(-1 if k == axis else 1 for k in range(x.rank)))
    return scatter_reduce(t, x, dim, expand(t, row, values.shape), values, reduce, include_self)


def _scattered(  # noqa: PLR0917
    t: TorchContext, op: str, x: Imported, dim: int, indices: Imported, updates: Imported,
    **form: Any,
) -> Imported:  # fmt: skip
    """Return a scatter of the first updates, as many as there are indices in each dimension."""
    for axis, size in enumerate(indices.shape):
        if updates.shape[axis] != size:
            updates = slice_exact(t, updates, axis, (as_expr(0), size))
    if not x.rank:  # PyTorch accepts scalars as vectors of one element
        x, indices, updates = (reshape(t, v, (1,)) for v in (x, indices, updates))
        return reshape(t, _scattered(t, op, x, dim, indices, updates, **form), ())
    args = (t.plain(x), t.plain(indices), t.plain(updates))
    return t.apply(op, *args, axis=axis_of(dim, x.rank), **form)


@aten("diagonal_scatter")
def diagonal_scatter(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, values: Imported, offset: int = 0, first: int = 0,
    second: int = 1,
) -> Imported:  # fmt: skip
    """Import the write of the elements at equal indices of two dimensions."""
    axes = [axis_of(first, x.rank), axis_of(second, x.rank)]
    order = [*(k for k in range(x.rank) if k not in axes), *axes]
    rows = permute(t, x, order)
    height, width = rows.shape[-2:]
    lines = [Imported((n,), i64, known=Iota(0, as_expr(0))) for n in (height, width)]
    row, column = expand_dims(t, lines[0], (1,)), expand_dims(t, lines[1], (0,))
    moved = elementwise(t, "add", [row, t.uniform(offset, (), i64)])
    chosen = elementwise(t, "equal", [moved, column])
    at = elementwise(t, "subtract", [lines[0], t.uniform(max(-offset, 0), (), i64)])
    at = elementwise(t, "maximum", [at, t.uniform(0, (), i64)])
    count = t.number(values.shape[-1] - 1, i64)
    at = elementwise(t, "minimum", [at, convert(t, count, i64)])
    spread = t.apply("take", t.plain(values), t.plain(at), axis=values.rank - 1)
    found = where(t, chosen, expand_dims(t, spread, (spread.rank,)), rows)
    return permute(t, found, [order.index(k) for k in range(x.rank)])


@aten("slice_scatter")
def slice_scatter(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, values: Imported, dim: int = 0, start: SymInt | None = None,
    end: SymInt | None = None, step: int = 1,
) -> Imported:  # fmt: skip
    """Import the write of a slice; its end follows from the number of values."""
    del end
    axis = axis_of(dim, x.rank)
    first = clamped(t, as_expr(0 if start is None else start), x.shape[axis])
    if step != 1:
        bounds = (first, first + values.shape[axis] * step, step)
        return index_copy(t, x, axis, t.apply("arange", bounds, dtype="i64"), values)
    return _written(t, x, values, axis, first)


@aten("select_scatter")
def select_scatter(
    t: TorchContext, x: Imported, values: Imported, dim: int, position: SymInt
) -> Imported:
    """Import the write of one slice."""
    axis = axis_of(dim, x.rank)
    at = as_expr(position)
    known = const_value(at)
    at = at + x.shape[axis] if known is not None and known < 0 else at
    return _written(t, x, expand_dims(t, values, (axis,)), axis, at)


def _written(t: TorchContext, x: Imported, values: Imported, axis: int, first: Expr) -> Imported:
    """Return ``x`` with values from a position of an axis on."""
    begin = [first if k == axis else as_expr(0) for k in range(x.rank)]
    return t.apply("update_slice", t.plain(x), t.plain(values), begin)
