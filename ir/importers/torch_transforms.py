"""Import handlers of PyTorch's Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence

from ..dtype import DType, f64
from ..symbolic import Expr, SymInt, as_expr, const_value, product
from .elementwise import convert, elementwise
from .shaping import axis_of
from .tensors import Imported
from .torch_context import TorchContext, aten

_BY_ROOT, _BY_SIZE = 1, 2
"""The codes of the normalizations of PyTorch; 0 is none."""


@aten("_fft_c2c")
def complex_transform(
    t: TorchContext,
    x: Imported,
    dims: Sequence[int],
    normalization: int,
    forward: bool,  # noqa: FBT001
) -> Imported:
    """Import the transform of complex numbers along several dimensions."""
    axes = [axis_of(d, x.rank) for d in dims]
    scaled = _normalized(t, x, [x.shape[a] for a in axes], normalization)
    for axis in axes:
        scaled = t.apply("dft", t.plain(scaled), axis=axis, inverse=not forward)
    return scaled


@aten("_fft_r2c")
def real_transform(
    t: TorchContext,
    x: Imported,
    dims: Sequence[int],
    normalization: int,
    onesided: bool,  # noqa: FBT001
) -> Imported:
    """Import the transform of real numbers; the last dimension may have the half only."""
    axes = [axis_of(d, x.rank) for d in dims]
    scaled = _normalized(t, x, [x.shape[a] for a in axes], normalization)
    form = "half" if onesided else "full"
    found = t.apply("dft", t.plain(scaled), axis=axes[-1], form=form)
    for axis in reversed(axes[:-1]):
        found = t.apply("dft", t.plain(found), axis=axis)
    return found


@aten("_fft_c2r")
def real_result(
    t: TorchContext, x: Imported, dims: Sequence[int], normalization: int, last: SymInt
) -> Imported:
    """Import the inverse transform to real numbers."""
    axes, size = [axis_of(d, x.rank) for d in dims], as_expr(last)
    found = x
    for axis in axes[:-1]:
        found = t.apply("dft", t.plain(found), axis=axis, inverse=True)
    found = t.apply("dft", t.plain(found), (size,), axis=axes[-1], form="real")
    return _normalized(t, found, [*(x.shape[a] for a in axes[:-1]), size], normalization)


def _normalized(
    t: TorchContext, x: Imported, sizes: Sequence[Expr], normalization: int
) -> Imported:
    """Divide by the number of elements of the transform, or by its root."""
    if normalization not in (_BY_ROOT, _BY_SIZE):
        return x
    return elementwise(t, "multiply", [x, _factor(t, product(sizes), normalization, x.dtype)])


def _factor(t: TorchContext, count: Expr, normalization: int, dtype: DType) -> Imported:
    known = const_value(count)
    if known is not None:
        power = -0.5 if normalization == _BY_ROOT else -1.0
        return t.uniform(float(max(known, 1)) ** power, (), dtype)
    size = convert(t, t.number(count, f64), f64)
    if normalization == _BY_ROOT:
        size = elementwise(t, "sqrt", [size])
    return convert(t, elementwise(t, "divide", [t.uniform(1.0, (), f64), size]), dtype)
