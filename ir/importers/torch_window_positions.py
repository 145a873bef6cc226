"""Import of maxima of windows with their positions, and of the return of maxima to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..dtype import i64
from ..graph.operators.windows import LEAD
from ..loop.combiners import identity_of
from ..symbolic import Expr, SymInt, as_expr
from .elementwise import elementwise, where
from .formulas import Formula
from .indexing import take
from .shaping import expand, expand_dims, permute, reshape
from .tensors import Imported, Iota
from .torch_context import TorchContext


@dataclass(frozen=True, slots=True)
class Axis:
    """The windows along one axis: positions ``(windows, elements)``, and which are in the image."""

    positions: Imported
    inside: Imported


def _line(t: TorchContext, size: Expr, axis: int) -> Imported:
    found = Imported((size,), i64, known=Iota(0, as_expr(0)))
    return expand_dims(t, found, (1 - axis,))


def strided(t: TorchContext, size: Expr, count: Expr, form: tuple[int, int, int, int]) -> Axis:
    """Return windows of ``kernel`` elements with a stride, padding before, and a dilation."""
    kernel, stride, before, dilation = form
    row, column = _line(t, count, 0), _line(t, as_expr(kernel), 1)
    starts = elementwise(t, "multiply", [row, t.uniform(stride, (), i64)])
    starts = elementwise(t, "subtract", [starts, t.uniform(before, (), i64)])
    steps = elementwise(t, "multiply", [column, t.uniform(dilation, (), i64)])
    return _axis(t, elementwise(t, "add", [starts, steps]), t.number(size, i64))


def adaptive(t: TorchContext, size: Expr, count: Expr) -> Axis:
    """Return the parts of an image that adaptive pooling reduces."""
    row, column = _line(t, count, 0), _line(t, size // count + 2, 1)
    whole, parts = t.number(size, i64), t.number(count, i64)
    begin = elementwise(t, "floor_divide", [elementwise(t, "multiply", [row, whole]), parts])
    after = elementwise(t, "multiply", [elementwise(t, "add", [row, t.uniform(1, (), i64)]), whole])
    rounded = elementwise(
        t, "subtract", [elementwise(t, "add", [after, parts]), t.uniform(1, (), i64)]
    )
    return _axis(
        t,
        elementwise(t, "add", [begin, column]),
        elementwise(t, "floor_divide", [rounded, parts]),
    )


def _axis(t: TorchContext, positions: Imported, end: Imported) -> Axis:
    zero = t.uniform(0, (), i64)
    inside = elementwise(
        t,
        "logical_and",
        [
            elementwise(t, "greater_equal", [positions, zero]),
            elementwise(t, "less", [positions, end]),
        ],
    )
    return Axis(where(t, inside, positions, zero), inside)


def maxima(t: TorchContext, x: Imported, axes: Sequence[Axis]) -> list[Imported]:
    """Return the maxima of windows of a batch of images, and their positions in the flat image."""
    count = len(axes)
    found, spread = x, list[tuple[int, int]]()
    for k, axis in enumerate(axes):  # axis k of the image becomes the axes 2 k and 2 k + 1
        found = take(t, found, axis.positions, LEAD + 2 * k)
        spread.append((2 * k, 2 * k + 1))
    lowest = t.uniform(identity_of("max", x.dtype).value, (), x.dtype)
    flat = t.uniform(0, (), i64)
    for (first, second), axis, size in zip(spread, axes, x.shape[LEAD:], strict=True):
        others = [k for k in range(2 * count) if k not in (first, second)]
        found = where(t, expand_dims(t, axis.inside, others), found, lowest)
        scaled = elementwise(t, "multiply", [flat, t.number(size, i64)])
        flat = elementwise(t, "add", [scaled, expand_dims(t, axis.positions, others)])
    outer = [2 * k for k in range(count)]
    inner = [2 * k + 1 for k in range(count)]
    shape = tuple(a.positions.shape[0] for a in axes)
    values = permute(t, found, (*range(LEAD), *(LEAD + k for k in (*outer, *inner))))
    values = reshape(t, values, (*x.shape[:LEAD], *shape, -1))
    full = tuple(d for a in axes for d in a.positions.shape)
    numbers = reshape(t, permute(t, expand(t, flat, full), (*outer, *inner)), (*shape, -1))
    best = best_of_rows(t, values)
    numbers = expand(t, numbers, values.shape)
    chosen = [
        t.apply("gather_elements", t.plain(v), t.plain(best), axis=values.rank - 1)
        for v in (values, numbers)
    ]
    return [reshape(t, v, (*x.shape[:LEAD], *shape)) for v in chosen]


def best_of_rows(t: TorchContext, rows: Imported) -> Imported:
    """Return the position of the first maximum along the last axis, or of the last NaN."""
    axis = rows.rank - 1
    best = t.apply("argmax", t.plain(rows), axis=axis, keepdims=True)
    if not rows.dtype.is_float:
        return best
    place = Formula(t, Imported(rows.shape, i64, known=Iota(axis, as_expr(0))))
    last = Formula(t, rows).apply("isnan").choose(place, -1, i64)
    last = last.reduce("max", axis, keepdims=True)
    return (last < 0).choose(Formula(t, best), last, i64).x


def returned(t: TorchContext, x: Imported, at: Imported, sizes: Sequence[SymInt]) -> Imported:
    """Return zeros with the elements of images at their positions in flat images."""
    lead = x.shape[: x.rank - len(sizes)]
    rows, ranks = (reshape(t, v, (*lead, -1)) for v in (x, at))
    total = as_expr(1)
    for size in sizes:
        total = total * as_expr(size)
    start = t.tensor(t.emit("full", (*lead, total), 0.0, dtype=x.dtype.name))
    axis = len(lead)
    found = t.apply("scatter_elements", t.plain(start), t.plain(ranks), t.plain(rows), axis=axis)
    return reshape(t, found, (*lead, *t.dims(sizes)))
