"""Indexing operators shared by the importers; known positions become slices."""

from __future__ import annotations

from collections.abc import Sequence

from ..symbolic import Expr, as_expr, const_value
from .emitter import Emitter
from .shaping import axis_of, expand_dims, permute, reshape, slice_exact
from .tensors import Imported, Iota, Uniform

_ONE = as_expr(1)


def take(
    e: Emitter,
    x: Imported,
    indices: Imported,
    axis: int,
    *,
    wrap: bool = False,
    name: str | None = None,
) -> Imported:
    """Look up slices of ``x`` along an axis; the indices replace that axis in the shape."""
    axis = axis_of(axis, x.rank)
    rows = _rows(e, x, indices, axis)
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    if rows is None:
        found = e.emit("take", e.plain(x), e.compact(indices), name=name, axis=axis, wrap=wrap)
        return Imported(shape, x.dtype, found)
    ones = tuple(
        rows.shape[axis] if isinstance(indices.known, Iota) and k == indices.known.axis else _ONE
        for k in range(indices.rank)
    )
    thin = reshape(e, rows, (*x.shape[:axis], *ones, *x.shape[axis + 1 :]))
    if isinstance(thin.known, Uniform):
        return e.uniform(thin.known.value, shape, x.dtype)
    return Imported(shape, x.dtype, e.compact(thin))


def _rows(e: Emitter, x: Imported, indices: Imported, axis: int) -> Imported | None:
    match indices.known:
        case Iota(axis=along, start=start):
            bounds = _front(start, start + indices.shape[along], x.shape[axis])
            return None if bounds is None else slice_exact(e, x, axis, bounds)
        case Uniform(value=value):
            at = as_expr(int(value))
            at = at + x.shape[axis] if int(value) < 0 else at
            return slice_exact(e, x, axis, (at, at + 1))
        case _:
            return None


def _front(begin: Expr, end: Expr, size: Expr) -> tuple[Expr, Expr] | None:
    """Return the bounds of neighboring indices, counted from the front; None if signs differ."""
    first, last = const_value(begin), const_value(end)
    if first is None or first >= 0:
        return begin, end
    return (begin + size, end + size) if last is not None and last <= 0 else None


def select(e: Emitter, x: Imported, axis: int, index: Expr) -> Imported:
    """Select one slice and remove the axis."""
    axis = axis_of(axis, x.rank)
    known = const_value(index)
    at = index + x.shape[axis] if known is not None and known < 0 else index
    thin = slice_exact(e, x, axis, (at, at + 1))
    return reshape(e, thin, (*x.shape[:axis], *x.shape[axis + 1 :]))


def gather(
    e: Emitter, x: Imported, axis: int, indices: Imported, *, wrap: bool = False
) -> Imported:
    """Look up elements along an axis: ``x[i, indices[i, j]]`` for axis 1."""
    axis = axis_of(axis, x.rank)
    if isinstance(x.known, Uniform):
        return e.uniform(x.known.value, indices.shape, x.dtype)
    return e.apply("gather_elements", e.plain(x), e.plain(indices), axis=axis, wrap=wrap)


def index(e: Emitter, x: Imported, indices: Sequence[Imported | None]) -> Imported:
    """Return ``x[i0, i1, ...]``; None selects all elements of a dimension.

    The dimensions of the indices replace neighboring indexed dimensions, and precede all others if
    the indexed dimensions are not neighbors.
    """
    given = [i for i in indices if i is not None]
    where = [k for k, i in enumerate(indices) if i is not None]
    if len(given) == 1:
        return take(e, x, given[0], where[0], wrap=True)
    others = [k for k in range(x.rank) if k not in where]
    found = _leading(e, permute(e, x, (*where, *others)), given)
    first, count = where[0], found.rank - len(others)
    if where != list(range(first, first + len(where))) or not first:
        return found
    return permute(e, found, (*range(count, count + first), *range(count),
                              *range(count + first, found.rank)))  # fmt: skip


def _leading(e: Emitter, x: Imported, given: Sequence[Imported]) -> Imported:
    """Return ``x[i0, i1, ...]`` of indices of the leading dimensions."""
    counted = _counted(e, x, given)
    if counted is not None:
        return counted
    found = e.emit("index", e.plain(x), *(e.compact(i) for i in given), wrap=True)
    chosen = e.broadcast_shapes([i.shape for i in given])
    return Imported((*chosen, *x.shape[len(given) :]), x.dtype, found)


def _counted(e: Emitter, x: Imported, indices: Sequence[Imported]) -> Imported | None:
    """Replace positions along ascending axes by slices and dimensions of size 1."""
    shape = e.broadcast_shapes([i.shape for i in indices])
    rank = len(shape)
    positions: list[int] = []
    for k, i in enumerate(indices):
        if not isinstance(i.known, Iota):
            return None
        bounds = _front(i.known.start, i.known.start + i.shape[i.known.axis], x.shape[k])
        if bounds is None:
            return None
        positions.append(i.known.axis + rank - i.rank)
        x = slice_exact(e, x, k, bounds)
    if positions != sorted(set(positions)):
        return None
    inserted = tuple(k for k in range(rank) if k not in positions)
    rest = x.shape[len(indices) :]
    thin = expand_dims(e, x, inserted) if inserted else x
    return Imported((*shape, *rest), x.dtype, e.compact(thin))
