"""Shapes, bounds, and axes of ONNX operators that are known when the program runs.

Integers that depend on data are computed as small tensors. Sizes are then read from them and become
symbols, which later operators use as any other size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..dtype import bool_, i64
from ..symbolic import Expr, as_expr, const_value, product
from .formulas import Formula, joined, number, positions, size_of, sizes_of
from .onnx_context import OnnxContext
from .tensors import Imported
from .unsupported import UnsupportedFormError


def vector(c: OnnxContext, x: Imported) -> Formula:
    """Return an integer operand as an i64 vector."""
    c.check_vector(x)
    found = Formula(c, x).to(i64)
    return found if found.rank == 1 else found.reshape(product(x.shape))


def scalar(c: OnnxContext, x: Imported) -> Formula:
    """Return an operand of one element as a tensor of shape ``()``."""
    return Formula(c, x).reshape() if x.rank else Formula(c, x)


def read_size(c: OnnxContext, x: Formula) -> Expr:
    """Return a size as a term; one that depends on data is read when the program runs."""
    (found,) = c.sizes(x.x)
    return found


def constant_length(c: OnnxContext, x: Imported) -> int:
    """Return the number of elements of a vector of axes or sizes, which must be constant."""
    found = const_value(product(x.shape))
    if found is None:
        raise UnsupportedFormError(
            f"{c.node.op_type} with an operand of sizes or axes of unknown length is not supported"
        )
    return found


def reshaped_dims(c: OnnxContext, x: Imported, given: Imported, *, keep: bool) -> tuple[Expr, ...]:
    """Return the shape that a reshape to integers of data has.

    -1 is the size that remains; 0 is the size of the operand at this position if ``keep``.
    """
    dims = vector(c, given)
    count = constant_length(c, given)
    if keep:
        padded = (*x.shape[:count], *(as_expr(0),) * (count - x.rank))
        dims = dims.equal(0).choose(sizes_of(c, padded), dims, i64) if count else dims
    free = dims.equal(-1)
    rest = free.choose(1, dims, i64).reduce("prod", 0)
    whole = size_of(c, product(x.shape))
    inferred = whole // rest.maximum(1)
    return c.read(free.choose(inferred, dims, i64).x)


def broadcast_dims(c: OnnxContext, shape: Sequence[Expr], given: Imported) -> tuple[Expr, ...]:
    """Return the common shape of a shape and of integers of data, where 1 keeps a dimension."""
    wanted, count = vector(c, given), constant_length(c, given)
    more = count - len(shape)
    if more < 0:
        wanted = joined([sizes_of(c, [1] * -more), wanted], 0) if count else sizes_of(c, shape)
    own = sizes_of(c, [as_expr(1)] * max(more, 0) + list(shape))
    return c.read(wanted.equal(1).choose(own, wanted, i64).x)


@dataclass(frozen=True, slots=True)
class Bounds:
    """A slice of one axis: the first index, the distance of indices, and their number."""

    start: Formula
    step: Formula
    count: Expr


def bounds_of(c: OnnxContext, size: Expr, start: Formula, end: Formula, step: Formula) -> Bounds:
    """Return the slice that Python takes for bounds that depend on data."""
    whole, forward = size_of(c, size), step > 0
    low = forward.choose(0, -1, i64)
    high = forward.choose(whole, whole - 1, i64)
    first = (start < 0).choose(start + whole, start, i64).clip(low, high)
    last = (end < 0).choose(end + whole, end, i64).clip(low, high)
    distance = step.apply("abs")
    c.read(distance.x, lower=1)
    extent = forward.choose(last - first, first - last, i64).maximum(0)
    count = (extent + distance - 1) // distance.maximum(1)
    return Bounds(first, step, read_size(c, count))


def sliced(c: OnnxContext, x: Formula, axis: int, bounds: Bounds) -> Formula:
    """Return a slice of one axis."""
    indices = bounds.start + bounds.step * positions(c, bounds.count)
    return x.take(indices, axis)


def front_axes(axes: Formula, rank: int) -> Formula:
    """Return axes counted from the front."""
    return (axes < 0).choose(axes + rank, axes, i64)


def axes_mask(c: OnnxContext, axes: Formula, count: int, rank: int) -> Formula:
    """Return a bool vector with an element per dimension: whether the axes contain it."""
    if not count:
        return Formula(c, c.uniform(value=False, shape=(as_expr(rank),), dtype=bool_))
    same = front_axes(axes, rank).unsqueeze(1).equal(positions(c, rank).unsqueeze(0))
    mask = same.reduce("any", 0)
    chosen = c.read(mask.to(i64).sum(0).x)
    c.same_size(chosen[0], as_expr(count), "the axes must be distinct and within the rank")
    return mask


@dataclass(frozen=True, slots=True)
class Moved:
    """A tensor with the axes that data states at the end, in ascending order.

    Parameters
    ----------
    x : Formula
        The tensor.
    order : Formula
        The dimension of the source at each dimension of ``x``.
    mask : Formula
        Whether each dimension of the source was moved to the end.
    """

    x: Formula
    order: Formula
    mask: Formula


def _by_strides(c: OnnxContext, x: Formula, dims: Sequence[Expr], strides: Formula) -> Formula:
    """Return elements at sums of indices times strides, which are a vector of data."""
    at = number(c, 0, i64)
    for k, size in enumerate(dims):
        after = tuple(range(1, len(dims) - k))
        at = at + (positions(c, size) * strides.at(0, k)).unsqueeze(*after)
    flat = x.reshape(product(x.shape))
    return flat.take(at.expand(*dims), 0)


def _strides(c: OnnxContext, dims: Sequence[Expr]) -> Formula:
    return sizes_of(c, [product(dims[k + 1 :]) for k in range(len(dims))])


def axes_last(c: OnnxContext, x: Formula, axes: Formula, count: int) -> Moved:
    """Move axes that depend on data to the end."""
    mask = axes_mask(c, axes, count, x.rank)
    order = mask.to(i64).call("argsort")
    dims = c.read(sizes_of(c, x.shape).take(order, 0).x)
    moved = _by_strides(c, x, dims, _strides(c, x.shape).take(order, 0))
    return Moved(moved, order, mask)


def axes_restored(c: OnnxContext, moved: Moved, x: Formula, shape: Sequence[Expr]) -> Formula:
    """Move the axes of a tensor of the shape of ``moved`` back."""
    back = moved.order.call("argsort")
    return _by_strides(c, x, shape, _strides(c, x.shape).take(back, 0))


def squeezed_dims(
    c: OnnxContext, shape: Sequence[Expr], axes: Formula, count: int
) -> tuple[Expr, ...]:
    """Return a shape without dimensions that depend on data."""
    if count == len(shape):
        return ()
    order = axes_mask(c, axes, count, len(shape)).to(i64).call("argsort")
    kept = order.cut(0, 0, len(shape) - count)
    return c.read(sizes_of(c, shape).take(kept, 0).x)


def unsqueezed_dims(
    c: OnnxContext, shape: Sequence[Expr], axes: Formula, count: int
) -> tuple[Expr, ...]:
    """Return a shape with dimensions of size 1 at axes that depend on data."""
    rank = len(shape) + count
    if not shape:
        return (as_expr(1),) * rank
    mask = axes_mask(c, axes, count, rank)
    before = mask.to(i64).call("cumsum", axis=0)
    source = (positions(c, rank) - before).clip(0, len(shape) - 1)
    return c.read(mask.choose(1, sizes_of(c, shape).take(source, 0), i64).x)


def kept_dims(c: OnnxContext, shape: Sequence[Expr], mask: Formula) -> tuple[Expr, ...]:
    """Return a shape in which the dimensions of a mask have size 1."""
    return c.read(mask.choose(1, sizes_of(c, shape), i64).x)
