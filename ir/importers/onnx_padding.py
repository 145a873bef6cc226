"""Import handlers of padding and cropping in ONNX."""

from __future__ import annotations

from collections.abc import Sequence

from ..dtype import i64
from ..graph.nodes import ConstantRef
from ..symbolic import Expr, as_expr
from .formulas import Formula, number, positions, size_of
from .onnx_context import OnnxContext, onnx_op
from .onnx_given_sizes import constant_length, front_axes, read_size, scalar, vector
from .onnx_schema import malformed
from .shaping import axis_of
from .tensors import Imported, Uniform
from .windows import padded


@onnx_op("Pad")
def pad(c: OnnxContext) -> Imported:
    """Import padding; negative numbers remove elements."""
    x, mode = c.input(0), str(c.attributes.get("mode", "constant"))
    if c.opset < 11:
        given = [as_expr(n) for n in c.attributes.get("pads") or c.attributes["paddings"]]
        value: float | int = float(c.attributes.get("value", 0.0))
        return _padded(c, x, given, list(range(x.rank)), value, mode)
    widths, axes = c.elements(c.input(1)), c.optional(3)
    fixed = tuple(range(x.rank)) if axes is None else c.known(3)
    filling = _number(c, c.optional(2), x)
    if widths is None or fixed is None or filling is None:
        return _padded_by_data(c, fixed, mode).x
    return _padded(c, x, widths, [axis_of(a, x.rank) for a in fixed], filling, mode)


def _padded(  # noqa: PLR0917  # the operands of the operator
    c: OnnxContext, x: Imported, widths: Sequence[Expr], axes: list[int], value: float, mode: str
) -> Imported:
    before, after = [as_expr(0)] * x.rank, [as_expr(0)] * x.rank
    for k, axis in enumerate(axes):
        before[axis], after[axis] = widths[k], widths[k + len(axes)]
    return padded(c, x, (before, after), value, mode)


def _number(c: OnnxContext, value: Imported | None, x: Imported) -> float | int | None:
    """Return the number that padding has, 0 by default; None if it depends on data."""
    if value is None:
        return 0
    if not isinstance(value.known, Uniform) and not isinstance(value.operand, ConstantRef):
        return None
    (found,) = c.floats(value)
    return float(found) if x.dtype.is_inexact else int(found)


def _padded_by_data(c: OnnxContext, fixed: tuple[int, ...] | None, mode: str) -> Formula:
    """Pad by widths, along axes, or with a number that depends on data."""
    x, given = Formula(c, c.input(0)), vector(c, c.input(1))
    count = constant_length(c, c.input(1)) // 2
    filling = c.optional(2)
    value = number(c, 0, x.dtype) if filling is None else scalar(c, filling)
    if fixed is not None:
        for k, axis in enumerate(fixed):
            widths = given.at(0, k), given.at(0, k + count)
            x = padded_axis(c, x, axis_of(axis, x.rank), widths, mode, value)
        return x
    axes = front_axes(vector(c, c.input(3)), x.rank)
    for axis in range(x.rank):
        own = axes.equal(axis)
        parts = (given.cut(0, 0, count), given.cut(0, count, 2 * count))
        low, high = (own.choose(part, 0, i64).sum(0) for part in parts)
        x = padded_axis(c, x, axis, (low, high), mode, value)
    return x


def padded_axis(  # noqa: PLR0917  # the operands of the operator, and the axis
    c: OnnxContext, x: Formula, axis: int, widths: tuple[Formula, Formula], mode: str,
    value: Formula, length: Expr | None = None,
) -> Formula:  # fmt: skip
    """Pad one axis by widths that depend on data: look up each element, or use a number."""
    size = size_of(c, x.shape[axis])
    length = read_size(c, size + widths[0] + widths[1]) if length is None else length
    at = positions(c, length) - widths[0]
    match mode:
        case "constant" | "edge":
            near = at.clip(0, size - 1)
        case "reflect":
            turn = at % ((size - 1) * 2).maximum(1)
            near = (turn < size).choose(turn, (size - 1) * 2 - turn, i64)
        case "wrap":
            near = at % size
        case _:
            raise malformed(c.node, f"padding mode {mode!r} is unknown")
    found = x.take(near, axis)
    if mode != "constant":
        return found
    inside = ((at >= 0) & (at < size)).unsqueeze(*range(1, x.rank - axis))
    return inside.choose(found, value, x.dtype)


@onnx_op("CenterCropPad")
def center_crop_pad(c: OnnxContext) -> Imported:
    """Import the crop or padding of axes to given sizes, at the center."""
    x, wanted = Formula(c, c.input(0)), c.optional(1)
    listed = c.attributes.get("axes")
    axes = [axis_of(a, x.rank) for a in (range(x.rank) if listed is None else listed)]
    sizes = c.sizes(c.input(1) if wanted is None else wanted)
    for axis, size in zip(axes, sizes, strict=True):
        x = _centered(c, x, axis, size)
    return x.x


def _centered(c: OnnxContext, x: Formula, axis: int, size: Expr) -> Formula:
    """Crop or pad one axis; the part at the end is larger by the odd element."""
    more = size_of(c, size) - size_of(c, x.shape[axis])
    before = more.apply("abs") // 2
    low = (more < 0).choose(-before, before, i64)
    zero = number(c, 0, x.dtype)
    return padded_axis(c, x, axis, (low, more - low), "constant", zero, size)
