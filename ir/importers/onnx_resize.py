"""Import handlers of ONNX operators that change the size of an image."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np

from ..dtype import i64
from ..module import Array
from ..symbolic import as_expr, const_value, to_text
from .elementwise import convert, elementwise, rounded_once, where
from .indexing import take
from .onnx_context import OnnxContext, onnx_op
from .onnx_resize_by_data import is_constant, resized_by_data
from .shaping import axis_of, expand_dims, slice_exact
from .tensors import Imported
from .unsupported import UnsupportedFormError

_NEAREST: Final[dict[str, Callable[[float], float]]] = {
    "round_prefer_floor": lambda x: math.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: math.floor(x + 0.5),
    "floor": math.floor,
    "ceil": math.ceil,
}
"""The element that a position between elements is rounded to."""


@dataclass(frozen=True, slots=True)
class _Axis:
    """The resize of one axis.

    Parameters
    ----------
    size, out : int
        The number of elements before and after.
    scale : float
        The factor between them, which need not be exact.
    first, last : float
        The region of interest, as a part of the axis.
    """

    size: int
    out: int
    scale: float
    first: float = 0.0
    last: float = 1.0

    def position(self, index: int, kind: str) -> float:
        """Return the position in the operand of an element of the result."""
        size, out, scale = self.size, self.out, self.scale
        match kind:
            case "half_pixel":
                return (index + 0.5) / scale - 0.5
            case "pytorch_half_pixel":
                return (index + 0.5) / scale - 0.5 if out > 1 else 0.0
            case "half_pixel_symmetric":
                exact = scale * size
                return size / 2 * (1 - out / exact) + (index + 0.5) / scale - 0.5
            case "align_corners":
                return index * (size - 1) / (scale * size - 1) if out > 1 else 0.0
            case "asymmetric":
                return index / scale
            case "tf_crop_and_resize":
                start = self.first * (size - 1)
                if out > 1:
                    return start + index * (self.last - self.first) * (size - 1) / (out - 1)
                return 0.5 * (self.first + self.last) * (size - 1)
            case _:
                raise UnsupportedFormError(
                    f"coordinate_transformation_mode={kind} is not supported"
                )


@onnx_op("Resize")
def resize(c: OnnxContext) -> Imported:
    """Import the interpolation of an image, one axis after the other."""
    x = c.input(0)
    if _depends_on_data(c, x):
        return resized_by_data(c)
    found = x
    kind = str(c.attributes.get("coordinate_transformation_mode", "half_pixel"))
    for number, axis in _axes(c, x).items():
        if axis.size == axis.out and axis.scale == 1 and kind != "tf_crop_and_resize":
            continue
        found = _resized(c, found, number, axis, kind)
    return found


def _depends_on_data(c: OnnxContext, x: Imported) -> bool:
    """Return whether a size, scale, or region of interest is unknown before the program runs."""
    operands = [c.optional(k) for k in range(1, len(c.inputs))]
    return not all(o is None or is_constant(o) for o in operands) or any(
        const_value(d) is None for d in x.shape[2:]
    )


@onnx_op("Upsample")
def upsample(c: OnnxContext) -> Imported:
    """Import the resize of opsets below 10."""
    x = c.input(0)
    c.attributes["nearest_mode"] = "floor"
    if "scales" not in c.attributes and not is_constant(c.input(1)):
        c.attributes["coordinate_transformation_mode"] = "asymmetric"
        return resized_by_data(c)
    scales = c.attributes.get("scales") or c.floats(c.input(1))
    for number, scale in enumerate(scales):
        size = _size(x, number)
        if scale != 1:
            axis = _Axis(size, math.floor(size * scale), float(scale))
            x = _resized(c, x, number, axis, "asymmetric")
    return x


def _size(x: Imported, axis: int) -> int:
    found = const_value(x.shape[axis])
    if found is None:
        raise UnsupportedFormError(
            f"the resize of an axis of symbolic size {to_text(x.shape[axis])} is not supported"
        )
    return found


def _axes(c: OnnxContext, x: Imported) -> dict[int, _Axis]:
    """Return the axes that a node resizes."""
    listed = c.attributes.get("axes") if c.opset >= 18 else None
    numbers = [axis_of(a, x.rank) for a in (range(x.rank) if listed is None else listed)]
    scales, sizes = c.optional(1 if c.opset < 11 else 2), c.optional(3)
    crops = c.attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    roi = c.floats(c.input(1)) if crops else []
    regions = list(zip(roi[: len(numbers)], roi[len(numbers) :], strict=True)) or [(0.0, 1.0)] * (
        len(numbers)
    )
    found: dict[int, _Axis] = {}
    if sizes is not None and sizes.shape and const_value(sizes.shape[0]) != 0:
        wanted = [int(n) for n in c.fixed(sizes)]
        for number, (out, scale) in zip(numbers, _kept_ratio(c, x, numbers, wanted), strict=True):
            first, last = regions[numbers.index(number)]
            found[number] = _Axis(_size(x, number), out, scale, first, last)
        return found
    if scales is None:
        raise UnsupportedFormError("scales or sizes are required")
    for number, scale, (first, last) in zip(numbers, c.floats(scales), regions, strict=True):
        if scale == 1 and not crops:
            continue
        size = _size(x, number)
        out = math.floor(size * (last - first) * scale)
        found[number] = _Axis(size, out, scale, first, last)
    return found


def _kept_ratio(
    c: OnnxContext, x: Imported, numbers: Sequence[int], wanted: Sequence[int]
) -> list[tuple[int, float]]:
    """Return size and factor of each axis; a policy may require one factor for all axes."""
    policy = c.attributes.get("keep_aspect_ratio_policy", "stretch")
    sizes = [_size(x, number) for number in numbers]
    factors = [n / size for n, size in zip(wanted, sizes, strict=True)]
    if policy == "stretch":
        return list(zip(wanted, factors, strict=True))
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [(math.floor(size * factor + 0.5), factor) for size in sizes]


def _resized(c: OnnxContext, x: Imported, number: int, axis: _Axis, kind: str) -> Imported:
    """Return an image after the interpolation of one axis."""
    mode = str(c.attributes.get("mode", "nearest"))
    positions = [axis.position(k, kind) for k in range(axis.out)]
    if mode == "nearest":
        rounding = _NEAREST[str(c.attributes.get("nearest_mode", "round_prefer_floor"))]
        chosen = [min(max(int(rounding(p)), 0), axis.size - 1) for p in positions]
        found = _taken(c, x, number, np.array(chosen))
    else:
        taps, weights = _taps(c, axis, positions, mode)

        def compute(image: Imported) -> Imported:
            terms: list[Imported] = []
            for k in range(taps.shape[1]):
                part = _taken(c, image, number, taps[:, k])
                factor = _vector(c, weights[:, k].astype(image.dtype.numpy))
                aligned = expand_dims(c, factor, tuple(range(1, x.rank - number)))
                terms.append(elementwise(c, "multiply", [part, aligned]))
            return reduce(lambda a, b: elementwise(c, "add", [a, b]), terms)

        found = rounded_once(c, compute, x)
    if kind != "tf_crop_and_resize":
        return found
    return _filled(c, found, number, [0 <= p <= axis.size - 1 for p in positions])


def _filled(c: OnnxContext, x: Imported, number: int, inside: Sequence[bool]) -> Imported:
    """Return an image with a constant in elements that are outside of the operand."""
    if all(inside):
        return x
    mask = expand_dims(c, _vector(c, np.array(inside)), tuple(range(1, x.rank - number)))
    value = float(c.attributes.get("extrapolation_value", 0.0))
    return where(c, mask, x, c.uniform(value, x.shape, x.dtype))


def _vector(c: OnnxContext, array: Array) -> Imported:
    """Return a constant vector of the import."""
    key = f"resize_{array.dtype.name}_{array.size}_{hash(array.tobytes()) & 0xFFFFFFFF:08x}"
    return c.literal(key, array)


def _taken(c: OnnxContext, x: Imported, number: int, indices: Array) -> Imported:
    first, count = int(indices[0]) if indices.size else 0, indices.size
    if indices.size and (indices == np.arange(first, first + count)).all():
        return slice_exact(c, x, number, (as_expr(first), as_expr(first + count)))
    return take(c, x, convert(c, _vector(c, indices.astype(np.int64)), i64), number)


def _taps(
    c: OnnxContext, axis: _Axis, positions: Sequence[float], mode: str
) -> tuple[Array, Array]:
    """Return the elements that each element of the result depends on, and their weights."""
    antialias = bool(c.integer("antialias", 0)) and axis.scale < 1
    stretch = 1 / axis.scale if antialias else 1.0
    reach = (1.0 if mode == "linear" else 2.0) * stretch
    kernel = (
        _triangle if mode == "linear" else _cubic(float(c.attributes.get("cubic_coeff_a", -0.75)))
    )
    outside = bool(c.integer("exclude_outside", 0))
    count = 2 * math.ceil(reach)
    taps = np.zeros((len(positions), count), np.int64)
    weights = np.zeros((len(positions), count))
    for row, position in enumerate(positions):
        base = math.floor(position) - math.ceil(reach) + 1
        near = base + np.arange(count)
        factor = np.array([kernel(abs(position - n) / stretch) for n in near])
        if outside:
            factor = np.where((near >= 0) & (near < axis.size), factor, 0.0)
        if outside or antialias:
            factor = factor / factor.sum()
        taps[row] = np.clip(near, 0, axis.size - 1)
        weights[row] = factor
    used = [k for k in range(count) if weights[:, k].any()] or [0]
    return taps[:, used], weights[:, used]


def _triangle(distance: float) -> float:
    return max(0.0, 1.0 - distance)


def _cubic(a: float) -> Callable[[float], float]:
    """Return the cubic convolution kernel with a coefficient."""

    def kernel(x: float) -> float:
        if x <= 1:
            return ((a + 2) * x - (a + 3)) * x * x + 1
        return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0

    return kernel
