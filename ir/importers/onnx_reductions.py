"""Import handlers of ONNX operators that reduce or accumulate along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ..dtype import i64
from ..symbolic import as_expr, product
from .elementwise import elementwise, rounded_once, where
from .formulas import Formula, joined, positions, size_of
from .onnx_context import OnnxContext, onnx_op
from .onnx_given_sizes import (
    axes_last,
    axes_mask,
    axes_restored,
    constant_length,
    kept_dims,
    scalar,
    vector,
)
from .shaping import axis_of, reshape, squeeze
from .tensors import Imported

_REDUCTIONS: Final = {
    "ReduceSum": "sum", "ReduceMean": "mean", "ReduceMax": "max", "ReduceMin": "min",
    "ReduceProd": "prod",
}  # fmt: skip
_Axes: TypeAlias = "tuple[int, ...]"


def _over_axes(
    c: OnnxContext, input_since: int, compute: Callable[[Imported, _Axes], Imported]
) -> Imported:
    """Apply a reduction that keeps dimensions over the axes of a node; by default over all."""
    x, keepdims = c.input(0), bool(c.integer("keepdims", 1))
    given = c.optional(1) if c.opset >= input_since else None
    if given is not None and c.known(1) is None:
        count = constant_length(c, given)
        if count:
            return _over_given_axes(c, vector(c, given), count, compute)
        axes: Sequence[int] | None = ()
    else:
        axes = c.axes(1, attribute_below=input_since)
    if not axes and c.integer("noop_with_empty_axes", 0):
        return compute(x, ())
    front = tuple(axis_of(a, x.rank) for a in axes or range(x.rank))
    found = compute(x, front)
    return found if keepdims or not x.rank else squeeze(c, found, front)


def _over_given_axes(
    c: OnnxContext, axes: Formula, count: int, compute: Callable[[Imported, _Axes], Imported]
) -> Imported:
    """Apply a reduction over axes that depend on data, which are moved to the end before."""
    x = Formula(c, c.input(0))
    if count >= x.rank:
        mask = axes_mask(c, axes, count, x.rank)
        found = compute(x.x, tuple(range(x.rank)))
    else:
        moved = axes_last(c, x, axes, count)
        mask = moved.mask
        found = compute(moved.x.x, tuple(range(x.rank - count, x.rank)))
    if c.integer("keepdims", 1):
        return reshape(c, found, kept_dims(c, x.shape, mask))
    return squeeze(c, found, range(x.rank - count, x.rank))


@onnx_op(*_REDUCTIONS)
def reduction(c: OnnxContext) -> Imported:
    """Import a reduction; without axes, it is over all dimensions."""
    op = _REDUCTIONS[c.node.op_type]

    def compute(x: Imported, axes: _Axes) -> Imported:
        own = {"max": "any", "min": "all"}[op] if x.dtype.kind == "bool" else op
        return c.apply(own, c.plain(x), axes=axes, keepdims=True) if axes else x

    return _over_axes(c, 13 if op == "sum" else 18, compute)


@onnx_op("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
def norm_reduction(c: OnnxContext) -> Imported:
    """Import a norm, or the logarithm of a sum; without axes, it is over all dimensions."""

    def compute(x: Imported, axes: _Axes) -> Imported:
        def norm(wide: Imported) -> Imported:
            return _norm(c, wide, axes)

        return rounded_once(c, norm, x)

    return _over_axes(c, 18, compute)


def _norm(c: OnnxContext, x: Imported, axes: _Axes) -> Imported:
    def total(y: Imported) -> Imported:
        return c.apply("sum", c.plain(y), axes=axes, keepdims=True) if axes else y

    match c.node.op_type.removeprefix("Reduce"):
        case "L1":
            return total(elementwise(c, "abs", [x]))
        case "L2":
            return elementwise(c, "sqrt", [total(elementwise(c, "multiply", [x, x]))])
        case "SumSquare":
            return total(elementwise(c, "multiply", [x, x]))
        case "LogSum":
            return elementwise(c, "log", [total(x)])
        case _:
            return _log_sum_exp(c, x, axes, total)


def _log_sum_exp(
    c: OnnxContext, x: Imported, axes: _Axes, total: Callable[[Imported], Imported]
) -> Imported:
    """Return the logarithm of a sum of exponentials; an infinite maximum is the result."""
    if not x.dtype.is_inexact:
        return elementwise(c, "log", [total(elementwise(c, "exp", [x]))])
    top = c.apply("max", c.plain(x), axes=axes, keepdims=True) if axes else x
    start = where(c, elementwise(c, "isinf", [top]), c.uniform(0.0, top.shape, top.dtype), top)
    powers = elementwise(c, "exp", [elementwise(c, "subtract", [x, start])])
    return elementwise(c, "add", [elementwise(c, "log", [total(powers)]), start])


@onnx_op("ArgMax", "ArgMin")
def arg_extreme(c: OnnxContext) -> Imported:
    """Import the index of the first or last maximum or minimum."""
    x = c.input(0)
    op = "argmax" if c.node.op_type == "ArgMax" else "argmin"
    axis, keepdims = axis_of(c.integer("axis", 0), x.rank), bool(c.integer("keepdims", 1))
    if not c.integer("select_last_index", 0):
        return c.apply(op, c.plain(x), axis=axis, keepdims=keepdims)
    back = c.emit("flip", c.plain(x), axes=(axis,))
    found = Formula(c, c.apply(op, back, axis=axis, keepdims=keepdims))
    return (size_of(c, x.shape[axis] - 1) - found).x


@onnx_op("CumSum", "CumProd")
def accumulated(c: OnnxContext) -> Imported:
    """Import running sums or products, reversed or without the element if it is stated."""
    x, known = Formula(c, c.input(0)), c.known(1)
    if known is not None:
        return _accumulated(c, x, axis_of(known[0], x.rank)).x
    axis = scalar(c, c.input(1)).to(i64).reshape(1)
    if x.rank == 1:
        axes_mask(c, axis, 1, 1)
        return _accumulated(c, x, 0).x
    moved = axes_last(c, x, axis, 1)
    found = _accumulated(c, moved.x, x.rank - 1)
    return axes_restored(c, moved, found, x.shape).x


def _accumulated(c: OnnxContext, x: Formula, axis: int) -> Formula:
    product_ = c.node.op_type == "CumProd"
    op, start = ("cumprod", 1) if product_ else ("cumsum", 0)
    size, reverse = x.shape[axis], c.integer("reverse", 0)
    found = Formula(c, c.apply("flip", c.plain(x.x), axes=(axis,))) if reverse else x
    if c.integer("exclusive", 0):
        one = tuple(as_expr(1) if k == axis else d for k, d in enumerate(x.shape))
        found = joined([Formula(c, c.uniform(start, one, x.dtype)), found], axis)
    found = found.call(op, axis=axis)
    if c.integer("exclusive", 0):
        found = found.cut(axis, 0, size)
    return Formula(c, c.apply("flip", c.plain(found.x), axes=(axis,))) if reverse else found


@onnx_op("Hardmax")
def hardmax(c: OnnxContext) -> Imported:
    """Import a mask of the first maximum along an axis, below opset 13 of all later dimensions."""
    x = c.input(0)
    axis = axis_of(c.integer("axis", -1 if c.opset >= 13 else 1), x.rank)
    if c.opset < 13:
        rows = reshape(c, x, (product(x.shape[:axis]), product(x.shape[axis:])))
        return reshape(c, _first_maximum(c, rows, 1), x.shape)
    return _first_maximum(c, x, axis)


def _first_maximum(c: OnnxContext, x: Imported, axis: int) -> Imported:
    at = Formula(c, c.apply("argmax", c.plain(x), axis=axis, keepdims=True))
    counted = positions(c, x.shape[axis]).unsqueeze(*range(1, x.rank - axis))
    return at.equal(counted).to(x.dtype).x
