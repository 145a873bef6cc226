"""Interpolation of images whose sizes or scales are known when the program runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..dtype import f32, f64, i64
from ..graph.nodes import ConstantRef
from ..symbolic import Expr, as_expr, const_value, eq, is_proved
from .formulas import Formula, number, positions, size_of
from .onnx_context import OnnxContext
from .onnx_given_sizes import read_size
from .shaping import axis_of
from .tensors import Imported, Uniform
from .unsupported import UnsupportedFormError


def is_constant(x: Imported) -> bool:
    """Return whether the elements of a tensor are constants, or there are none."""
    empty = any(const_value(d) == 0 for d in x.shape)
    known = isinstance(x.known, Uniform) or isinstance(x.operand, ConstantRef)
    info = None if x.operand is None else x.operand.info
    elements = getattr(info, "elements", None)
    fixed = elements is not None and all(const_value(v) is not None for v in elements)
    return empty or known or fixed


@dataclass(frozen=True, slots=True)
class _Axis:
    """The resize of one axis; scale, region, and sizes are f64 tensors of shape ``()``."""

    number: int
    size: Expr
    out: Expr
    scale: Formula
    region: tuple[Formula, Formula] | None

    def positions(self, c: OnnxContext, kind: str) -> Formula:
        """Return the positions in the operand of the elements of the result."""
        at, scale = positions(c, self.out).to(f64), self.scale
        size, out = (size_of(c, n).to(f64) for n in (self.size, self.out))
        several = out > 1
        match kind:
            case "half_pixel":
                return (at + 0.5) / scale - 0.5
            case "pytorch_half_pixel":
                return several.choose((at + 0.5) / scale - 0.5, 0.0, f64)
            case "half_pixel_symmetric":
                shift = size / 2.0 * (1.0 - out / (scale * size))
                return shift + (at + 0.5) / scale - 0.5
            case "align_corners":
                whole = several.choose(scale * size - 1.0, 1.0, f64)
                return several.choose(at * (size - 1.0) / whole, 0.0, f64)
            case "asymmetric":
                return at / scale
            case "tf_crop_and_resize" if self.region is not None:
                first, last = self.region
                step = (last - first) * (size - 1.0) / (out - 1.0).maximum(1.0)
                middle = (first + last) * 0.5 * (size - 1.0)
                return several.choose(first * (size - 1.0) + at * step, middle, f64)
            case _:
                raise UnsupportedFormError(
                    f"coordinate_transformation_mode={kind} is not supported"
                )


def resized_by_data(c: OnnxContext) -> Imported:
    """Import the interpolation of an image, one axis after the other."""
    x = Formula(c, c.input(0))
    kind = str(c.attributes.get("coordinate_transformation_mode", "half_pixel"))
    for axis in _axes(c, x, kind):
        x = _resized(c, x, axis, kind)
    return x.x


def _axes(c: OnnxContext, x: Formula, kind: str) -> list[_Axis]:
    listed = c.attributes.get("axes") if c.opset >= 18 else None
    numbers = [axis_of(a, x.rank) for a in (range(x.rank) if listed is None else listed)]
    upsample = c.opset < 11
    given, wanted = c.optional(1 if upsample else 2), None if upsample else c.optional(3)
    regions: list[tuple[Formula, Formula]] | None = None
    if kind == "tf_crop_and_resize":
        roi = Formula(c, c.input(1)).to(f64)
        regions = [(roi.at(0, k), roi.at(0, k + len(numbers))) for k in range(len(numbers))]
    if wanted is not None and const_value(wanted.shape[0]) != 0:
        return _to_sizes(c, x, numbers, Formula(c, wanted).to(i64), regions)
    if given is None:
        raise UnsupportedFormError("scales or sizes are required")
    fixed = c.floats(given) if is_constant(given) else [math.nan] * len(numbers)
    scales, found = Formula(c, given).to(f64), list[_Axis]()
    for k, axis in enumerate(numbers):
        if regions is None and fixed[k].is_integer():
            if fixed[k] != 1:
                out = x.shape[axis] * int(fixed[k])
                found.append(_Axis(axis, x.shape[axis], out, number(c, fixed[k], f64), None))
            continue
        region = None if regions is None else regions[k]
        size = size_of(c, x.shape[axis]).to(f64)
        size = size if region is None else size * (region[1] - region[0])
        out = read_size(c, (size * scales.at(0, k)).apply("floor").to(i64))
        found.append(_Axis(axis, x.shape[axis], out, scales.at(0, k), region))
    return found


def _to_sizes(
    c: OnnxContext, x: Formula, numbers: list[int], wanted: Formula,
    regions: list[tuple[Formula, Formula]] | None,
) -> list[_Axis]:  # fmt: skip
    """Return axes for sizes of the result; a policy may require one scale for all axes."""
    policy = str(c.attributes.get("keep_aspect_ratio_policy", "stretch"))
    outs = [wanted.at(0, k) for k in range(len(numbers))]
    sizes = [size_of(c, x.shape[axis]).to(f64) for axis in numbers]
    scales = [out.to(f64) / size for out, size in zip(outs, sizes, strict=True)]
    if policy != "stretch":
        shared = scales[0]
        for other in scales[1:]:
            shared = shared.minimum(other) if policy == "not_larger" else shared.maximum(other)
        scales = [shared] * len(numbers)
        outs = [(size * shared + 0.5).apply("floor").to(i64) for size in sizes]
    dims = [read_size(c, out) for out in outs]
    return [
        _Axis(axis, x.shape[axis], dims[k], scales[k], None if regions is None else regions[k])
        for k, axis in enumerate(numbers)
        if regions is not None or not _same(c, dims[k], x.shape[axis])
    ]


def _same(c: OnnxContext, a: Expr, b: Expr) -> bool:
    return a is b or is_proved(eq(a, b), c.builder.facts)


def _resized(c: OnnxContext, x: Formula, axis: _Axis, kind: str) -> Formula:
    """Return an image after the interpolation of one axis."""
    at = axis.positions(c, kind)
    last = size_of(c, axis.size) - 1
    after = tuple(range(1, x.rank - axis.number))
    if c.attributes.get("mode", "nearest") == "nearest":
        near = _rounded(at, str(c.attributes.get("nearest_mode", "round_prefer_floor")))
        found = x.take(near.to(i64).clip(0, last), axis.number)
    else:
        near, weights = _taps(c, axis, at)
        wide = f64 if x.dtype is f64 else f32
        parts = x.to(wide).take(near.clip(0, last), axis.number)
        factors = weights.to(wide).unsqueeze(*range(2, 2 + len(after)))
        found = (parts * factors).sum(axis.number + 1).to(x.dtype)
    if kind != "tf_crop_and_resize":
        return found
    inside = ((at >= 0.0) & (at <= last.to(f64))).unsqueeze(*after)
    value = float(c.attributes.get("extrapolation_value", 0.0))
    return inside.choose(found, value, x.dtype)


def _rounded(at: Formula, kind: str) -> Formula:
    """Return the element that a position between elements is rounded to."""
    match kind:
        case "round_prefer_floor":
            return (at - 0.5).apply("ceil")
        case "round_prefer_ceil":
            return (at + 0.5).apply("floor")
        case "floor" | "ceil":
            return at.apply(kind)
        case _:
            raise UnsupportedFormError(f"nearest_mode={kind} is not supported")


def _taps(c: OnnxContext, axis: _Axis, at: Formula) -> tuple[Formula, Formula]:
    """Return the elements that each element of the result depends on, and their weights.

    Both are matrices with a row per element of the result. With antialiasing, a row is as long as
    the scale requires.
    """
    linear = c.attributes.get("mode") == "linear"
    reach = 1.0 if linear else 2.0
    antialias = bool(c.integer("antialias", 0))
    stretch = (1.0 / axis.scale).maximum(1.0) if antialias else number(c, 1.0, f64)
    extent = (stretch * reach).apply("ceil").to(i64)
    count = read_size(c, extent * 2) if antialias else as_expr(int(2 * reach))
    base = at.apply("floor").to(i64) - extent + 1
    near = base.unsqueeze(1) + positions(c, count)
    distance = ((at.unsqueeze(1) - near.to(f64)) / stretch).apply("abs")
    if linear:
        weights = (1.0 - distance).maximum(0.0)
    else:
        weights = _cubic(distance, float(c.attributes.get("cubic_coeff_a", -0.75)))
    outside = bool(c.integer("exclude_outside", 0))
    if outside:
        size = size_of(c, axis.size)
        weights = ((near >= 0) & (near < size)).choose(weights, 0.0, f64)
    if outside or antialias:
        weights = weights / weights.sum(1, keepdims=True)
    return near, weights


def _cubic(x: Formula, a: float) -> Formula:
    """Return the cubic convolution kernel with a coefficient."""
    inner = ((a + 2) * x - (a + 3)) * x * x + 1.0
    outer = (((x - 5.0) * x + 8.0) * x - 4.0) * a
    return (x <= 1.0).choose(inner, (x < 2.0).choose(outer, 0.0, f64), f64)
