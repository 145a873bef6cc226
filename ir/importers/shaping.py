"""Data-movement operators shared by the importers; broadcasts are not materialized."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.nodes import TensorInfo
from ..graph.operators.views import resolved_shape
from ..symbolic import (
    Expr,
    SymInt,
    Var,
    as_expr,
    ceildiv,
    const_value,
    is_proved,
    maximum,
    minimum,
)
from .emitter import Emitter, ImportMismatchError, equal_sizes
from .tensors import Imported, Iota, Uniform

_ONE = as_expr(1)


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the front; a scalar has the axes -1 and 0, as in PyTorch.

    Raises
    ------
    ImportMismatchError
        If the axis is out of range.
    """
    count = max(rank, 1)
    if not -count <= axis < count:
        raise ImportMismatchError(
            f"axis {axis} is out of range for {rank} dimensions",
            hint=f"axes range from {-count} to {count - 1}",
        )
    return axis % count


def _own(e: Emitter, x: Imported) -> tuple[Expr, ...]:
    """Return the shape of the tensor that broadcasts to a value."""
    info = e.compact(x).info
    return (info.shape or ()) if isinstance(info, TensorInfo) else ()


def with_unit_dims(e: Emitter, x: Imported, shapes: Sequence[tuple[Expr, ...]]) -> Imported:
    """Return a tensor whose dimensions that broadcast have size 1.

    A slice such as ``x[:1]`` has at most one element. If another shape has a different size at
    this dimension, a run-time check requires that the slice has one element.
    """
    facing = [tuple(reversed(s)) for s in shapes]
    axes = [
        k
        for k, size in enumerate(x.shape)
        if const_value(size) is None
        and not isinstance(size, Var)
        and is_proved(size <= 1, e.builder.facts)
        and any(_differs(e, size, s[x.rank - 1 - k]) for s in facing if len(s) >= x.rank - k)
    ]
    return expand_dims(e, squeeze(e, x, axes), axes) if axes else x


def _differs(e: Emitter, size: Expr, other: Expr) -> bool:
    """Return whether a size is neither 1 nor proved to be equal to another one."""
    return const_value(other) != 1 and not is_proved(equal_sizes(size, other), e.builder.facts)


def expand(e: Emitter, x: Imported, shape: Sequence[Expr]) -> Imported:
    """Broadcast to a shape; -1 keeps a dimension."""
    lead = len(shape) - x.rank
    want = tuple(
        x.shape[k - lead] if const_value(d) == -1 and k >= lead else d for k, d in enumerate(shape)
    )
    x = with_unit_dims(e, x, [want])
    full = e.broadcast_shapes([x.shape, want])
    if full == x.shape or isinstance(x.known, Uniform):
        return Imported(full, x.dtype, x.operand, x.known)
    if isinstance(x.known, Iota):
        return Imported(full, x.dtype, known=Iota(x.known.axis + lead, x.known.start))
    operand = e.compact(x)
    if lead:
        operand = e.emit("expand_dims", operand, axes=tuple(range(lead)))
    return Imported(full, x.dtype, operand)


def expand_dims(e: Emitter, x: Imported, axes: Sequence[int]) -> Imported:
    """Insert dimensions of size 1; the axes refer to the result."""
    rank = x.rank + len(axes)
    front = sorted(axis_of(a, rank) for a in axes)
    if len(set(front)) != len(front):
        raise ImportMismatchError(f"the inserted dimensions {tuple(axes)} contain an axis twice")
    dims = iter(x.shape)
    shape = tuple(_ONE if k in front else next(dims) for k in range(rank))
    if isinstance(x.known, Uniform):
        return e.uniform(x.known.value, shape, x.dtype)
    if isinstance(x.known, Iota):
        kept = [k for k in range(rank) if k not in front]
        return Imported(shape, x.dtype, known=Iota(kept[x.known.axis], x.known.start))
    return Imported(shape, x.dtype, e.emit("expand_dims", e.compact(x), axes=tuple(front)))


def squeeze(e: Emitter, x: Imported, axes: Sequence[int]) -> Imported:
    """Remove dimensions of size 1; a size that is not proved to be 1 is checked at run time."""
    front = {axis_of(a, x.rank) for a in axes}
    for k in front:
        e.same_size(x.shape[k], _ONE, f"cannot squeeze axis {k}")
    shape = tuple(d for k, d in enumerate(x.shape) if k not in front)
    if not front:
        return x
    if isinstance(x.known, Uniform):
        return e.uniform(x.known.value, shape, x.dtype)
    if isinstance(x.known, Iota) and x.known.axis not in front:
        axis = x.known.axis - sum(k < x.known.axis for k in front)
        return Imported(shape, x.dtype, known=Iota(axis, x.known.start))
    return Imported(shape, x.dtype, e.emit("squeeze", e.compact(x), axes=tuple(sorted(front))))


def permute(e: Emitter, x: Imported, axes: Sequence[int]) -> Imported:
    """Reorder dimensions."""
    front = tuple(axis_of(a, x.rank) for a in axes)
    if sorted(front) != list(range(x.rank)):
        raise ImportMismatchError(
            f"expected a permutation of {x.rank} dimensions, got {tuple(axes)}"
        )
    shape = tuple(x.shape[a] for a in front)
    if front == tuple(range(x.rank)):
        return x
    if isinstance(x.known, Uniform):
        return e.uniform(x.known.value, shape, x.dtype)
    if isinstance(x.known, Iota):
        return Imported(shape, x.dtype, known=Iota(front.index(x.known.axis), x.known.start))
    return Imported(shape, x.dtype, e.emit("permute_dims", e.compact(x), axes=front))


def reshape(e: Emitter, x: Imported, dims: Sequence[SymInt]) -> Imported:
    """Change the shape; one dimension may be -1, which is inferred."""
    shape = resolved_shape(x.shape, [as_expr(d) for d in dims])
    if shape == x.shape:
        return x
    if isinstance(x.known, Uniform):
        return e.uniform(x.known.value, shape, x.dtype)
    changed = _changed_unit_dims(x.shape, shape)
    if changed is not None:
        dropped, inserted = changed
        if not (dropped and inserted) or x.known is not None:
            thin = squeeze(e, x, dropped) if dropped else x
            return expand_dims(e, thin, inserted) if inserted else thin
    return e.apply("reshape", e.plain(x), shape)


def _changed_unit_dims(
    source: tuple[Expr, ...], target: tuple[Expr, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the removed and the inserted dimensions of size 1 if nothing else differs."""
    left = [k for k, d in enumerate(source) if const_value(d) == 1]
    right = [k for k, d in enumerate(target) if const_value(d) == 1]
    kept = [d for k, d in enumerate(source) if k not in left]
    if kept != [d for k, d in enumerate(target) if k not in right]:
        return None
    return tuple(left), tuple(right)


def clamped(e: Emitter, index: Expr, size: Expr) -> Expr:
    """Clamp a slice bound as Python does: negative bounds count from the end."""
    facts = e.builder.facts
    if is_proved(index < 0, facts):
        index = index + size
        return index if is_proved(index >= 0, facts) else maximum(index, 0)
    if not is_proved(index >= 0, facts):
        index = maximum(index, 0)
    return index if is_proved(index <= size, facts) else minimum(index, size)


def slice_axis(
    e: Emitter, x: Imported, axis: int, bounds: tuple[Expr, Expr], step: int = 1
) -> Imported:
    """Slice ``x[begin:end:step]`` along an axis; bounds follow the rules of Python slices."""
    axis = axis_of(axis, x.rank)
    size = x.shape[axis]
    low, high = clamped(e, bounds[0], size), clamped(e, bounds[1], size)
    if not is_proved(low <= high, e.builder.facts):
        high = maximum(low, high)
    return slice_exact(e, x, axis, (low, high), step)


def slice_exact(
    e: Emitter, x: Imported, axis: int, bounds: tuple[Expr, Expr], step: int = 1
) -> Imported:
    """Slice with bounds that must be in range; unproved bounds are checked at run time."""
    low, high = bounds
    size = x.shape[axis]
    if const_value(low) == 0 and high is size and step == 1:
        return x
    count = high - low if step == 1 else ceildiv(high - low, step)
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    if isinstance(x.known, Uniform):
        return e.uniform(x.known.value, shape, x.dtype)
    if isinstance(x.known, Iota) and x.known.axis == axis and step == 1:
        return Imported(shape, x.dtype, known=Iota(axis, x.known.start + low))
    if isinstance(x.known, Iota) and x.known.axis != axis:
        return Imported(shape, x.dtype, known=x.known)
    if const_value(_own(e, x)[axis]) == 1 and const_value(size) != 1:
        return Imported(shape, x.dtype, x.operand)
    found = e.emit("strided_slice", e.compact(x), (low,), (high,), axes=(axis,), steps=(step,))
    return Imported(shape, x.dtype, found)


def concat(e: Emitter, parts: Sequence[Imported], axis: int) -> Imported:
    """Concatenate tensors; empty vectors are ignored, as in PyTorch."""
    rank = max(p.rank for p in parts)
    kept = [p for p in parts if not (p.rank == 1 and const_value(p.shape[0]) == 0 and rank > 1)]
    if len(kept) == 1:
        return kept[0]
    return e.apply("concat", *(e.plain(p) for p in kept), axis=axis_of(axis, rank))
