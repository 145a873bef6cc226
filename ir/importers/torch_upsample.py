"""Import handlers of PyTorch operators that resize images to sizes that may be symbolic.

Positions are computed as PyTorch computes them, in float32 (float64 for float64 images), so the
nearest elements are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, Final

from ..dtype import DType, f32, f64, i64
from ..symbolic import Expr, SymInt, as_expr, const_value, to_text
from .elementwise import rounded_once
from .formulas import Formula, number, positions, size_of
from .tensors import Imported
from .torch_context import TorchContext, aten
from .unsupported import UnsupportedFormError

_CUBIC: Final = -0.75
"""The coefficient of the cubic convolution of PyTorch."""

_CUBIC_MEAN: Final = -0.5
"""The coefficient of PyTorch for weighted means of all neighbors."""

_DYADIC: Final = 2**20
"""The largest denominator of a factor of symbolic sizes, whose products with sizes are exact."""


@dataclass(frozen=True, slots=True)
class _Axis:
    """The resize of one axis; a factor that was given determines the positions."""

    number: int
    size: Expr
    out: Expr
    factor: float | None

    def scale(self, t: TorchContext, wide: DType, *, corners: bool) -> Formula:
        """Return the distance of the elements of the result, in elements of the operand."""
        real: Any = wide.numpy.type
        size, out = const_value(self.size), const_value(self.out)
        if corners:
            if size is not None and out is not None:
                exact = real(size - 1) / real(out - 1) if out > 1 else 0.0
                return number(t, float(exact), wide)
            steps = (size_of(t, self.out) - 1).to(wide)
            several = steps > 0.0
            ratio = (size_of(t, self.size) - 1).to(wide) / steps.maximum(1.0)
            return several.choose(ratio, 0.0, wide)
        if self.factor:
            return number(t, float(real(1.0 / self.factor)), wide)
        if size is not None and out:
            return number(t, float(real(size) / real(out)), wide)
        return size_of(t, self.size).to(wide) / size_of(t, self.out).to(wide)

    def centers(self, t: TorchContext, wide: DType, *, corners: bool) -> Formula:
        """Return the positions of the elements of the result for an interpolation."""
        at, scale = positions(t, self.out).to(wide), self.scale(t, wide, corners=corners)
        return scale * at if corners else scale * (at + 0.5) - 0.5


def _axes(
    x: Imported, sizes: Sequence[SymInt] | None, factors: Sequence[float | None]
) -> Iterator[_Axis]:
    """Yield the resize of each axis after the channels."""
    for k, size in enumerate(x.shape[2:]):
        factor = factors[k] if k < len(factors) else None
        if sizes is not None:
            yield _Axis(k + 2, size, as_expr(sizes[k]), factor)
        elif factor is not None:
            yield _Axis(k + 2, size, _product(size, factor), factor)
        else:
            raise UnsupportedFormError("an axis has neither a size nor a scale factor")


def _product(size: Expr, factor: float) -> Expr:
    """Return a size times a factor, rounded down."""
    known = const_value(size)
    if known is not None:
        return as_expr(int(known * factor))
    exact = Fraction(factor)
    if exact.denominator > _DYADIC:
        raise UnsupportedFormError(
            f"the scale factor {factor} of the symbolic size {to_text(size)} is not a sum of "
            "powers of two; pass the size of the result"
        )
    return size * exact.numerator // exact.denominator


def _factors(given: Sequence[Any]) -> list[float | None]:
    """Return the factors, which overloads take as one list or as one argument per axis."""
    flat: list[Any] = []
    for item in given:
        flat += [item] if item is None or isinstance(item, int | float) else item
    return [None if f is None else float(f) for f in flat]


def _wide(x: Imported) -> DType:
    return f64 if x.dtype is f64 else f32


@aten("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d")
def nearest(
    t: TorchContext, x: Imported, sizes: Sequence[SymInt] | None = None, *factors: Any, **named: Any
) -> Imported:
    """Import the nearest elements, by positions that are rounded down."""
    return _nearest(t, x, sizes, _factors([*factors, *named.values()]), 0.0)


@aten("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d")
def nearest_exact(
    t: TorchContext, x: Imported, sizes: Sequence[SymInt] | None = None, *factors: Any, **named: Any
) -> Imported:
    """Import the nearest elements, by the centers of elements."""
    return _nearest(t, x, sizes, _factors([*factors, *named.values()]), 0.5)


def _nearest(
    t: TorchContext, x: Imported, sizes: Sequence[SymInt] | None, factors: Sequence[float | None],
    center: float,
) -> Imported:  # fmt: skip
    found, wide = Formula(t, x), _wide(x)
    for axis in _axes(x, sizes, factors):
        at = positions(t, axis.out).to(wide)
        real = (at + center if center else at) * axis.scale(t, wide, corners=False)
        near = real.apply("floor").to(i64).minimum(size_of(t, axis.size) - 1)
        found = found.take(near, axis.number)
    return found.x


@aten("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d")
def linear(
    t: TorchContext, x: Imported, sizes: Sequence[SymInt] | None = None,
    corners: bool = False, *factors: Any, **named: Any,  # noqa: FBT001, FBT002
) -> Imported:  # fmt: skip
    """Import the interpolation between neighbors along each axis."""
    axes = list(_axes(x, sizes, _factors([*factors, *named.values()])))

    def compute(image: Imported) -> Imported:
        found, wide = Formula(t, image), _wide(x)
        for axis in axes:
            last = size_of(t, axis.size) - 1
            real = axis.centers(t, wide, corners=corners).maximum(0.0)
            base = real.apply("floor").minimum(last.to(wide))
            weight = _aligned(real - base, found.rank - axis.number - 1).clip(0.0, 1.0)
            low = base.to(i64)
            high = (low + 1).minimum(last)
            near, far = (found.take(index, axis.number) for index in (low, high))
            found = near * (1.0 - weight) + far * weight
        return found.x

    return rounded_once(t, compute, x)


@aten("upsample_bicubic2d")
def cubic(
    t: TorchContext, x: Imported, sizes: Sequence[SymInt] | None = None,
    corners: bool = False, *factors: Any, **named: Any,  # noqa: FBT001, FBT002
) -> Imported:  # fmt: skip
    """Import the cubic convolution of four neighbors along each axis."""
    axes = list(_axes(x, sizes, _factors([*factors, *named.values()])))

    def compute(image: Imported) -> Imported:
        found, wide = Formula(t, image), _wide(x)
        for axis in axes:
            last = size_of(t, axis.size) - 1
            real = axis.centers(t, wide, corners=corners)
            base = real.apply("floor")
            after = found.rank - axis.number - 1
            weights = [_aligned(w, after) for w in _cubic_weights(real - base)]
            low = base.to(i64)
            taps = (
                found.take((low + k).maximum(0).minimum(last), axis.number) for k in range(-1, 3)
            )
            terms = (tap * weight for tap, weight in zip(taps, weights, strict=True))
            found = reduce(lambda a, b: a + b, terms)
        return found.x

    return rounded_once(t, compute, x)


def _cubic_weights(part: Formula) -> list[Formula]:
    """Return the weights of the neighbors at distances 1 + part, part, 1 - part, 2 - part."""

    def near(d: Formula) -> Formula:
        return _cubic(d, _CUBIC)[0]

    def far(d: Formula) -> Formula:
        return _cubic(d, _CUBIC)[1]

    rest = 1.0 - part
    return [far(part + 1.0), near(part), near(rest), far(rest + 1.0)]


@aten("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")
def antialiased(
    t: TorchContext, x: Imported, sizes: Sequence[SymInt] | None = None,
    corners: bool = False, *factors: Any, **named: Any,  # noqa: FBT001, FBT002
) -> Imported:  # fmt: skip
    """Import the weighted means of all neighbors that an element of the result covers.

    The weights are matrices of both sizes of an axis, which multiply the image.
    """
    axes = list(_axes(x, sizes, _factors([*factors, *named.values()])))
    weigh = _cubic_mean if t.operator == "_upsample_bicubic2d_aa" else _linear_mean

    def compute(image: Imported) -> Imported:
        found, wide = Formula(t, image), _wide(x)
        for axis in reversed(axes):
            weights = _means(t, axis, wide, weigh, corners=corners).to(image.dtype)
            if axis.number == found.rank - 1:
                found = found @ weights.permute(1, 0)
            else:
                found = weights.unsqueeze(0, 1) @ found
        return found.x

    return rounded_once(t, compute, x)


def _means(
    t: TorchContext, axis: _Axis, wide: DType, weigh: Callable[[Formula], Formula], *, corners: bool
) -> Formula:
    """Return the weights of the elements, ``(elements of the result, elements)``."""
    scale = axis.scale(t, wide, corners=corners)
    center = (positions(t, axis.out).to(wide) + 0.5) * scale
    element = positions(t, axis.size).to(wide) + 0.5
    distance = (element.unsqueeze(0) - center.unsqueeze(1)) / scale.maximum(1.0)
    weights = weigh(distance.apply("abs"))
    return weights / weights.sum(1, keepdims=True)


def _linear_mean(distance: Formula) -> Formula:
    return (1.0 - distance).maximum(0.0)


def _cubic_mean(distance: Formula) -> Formula:
    near, far = _cubic(distance, _CUBIC_MEAN)
    far = (distance < 2.0).choose(far, 0.0, distance.dtype)
    return (distance < 1.0).choose(near, far, distance.dtype)


def _cubic(d: Formula, a: float) -> tuple[Formula, Formula]:
    """Return the weights of a cubic convolution at distances below 1, and from 1 to 2."""
    near = (d * (a + 2.0) - (a + 3.0)) * d * d + 1.0
    return near, ((d * a - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a


def _aligned(vector: Formula, after: int) -> Formula:
    """Return a vector with dimensions of size 1 after it."""
    return vector.unsqueeze(*range(1, after + 1))
