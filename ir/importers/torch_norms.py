"""Import handlers of batch normalization, which changes its running statistics in training."""

from __future__ import annotations

import math
from typing import Any

from ..dtype import DType, f32, f64
from ..symbolic import const_value, product
from .elementwise import convert, elementwise
from .shaping import expand_dims
from .tensors import Imported
from .torch_context import TorchContext, aten


@aten("_native_batch_norm_legit_no_training")
def batch_norm_of_running_statistics(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, weight: Imported | None, bias: Imported | None,
    mean: Imported, var: Imported, _momentum: float, eps: float,
) -> list[Imported]:  # fmt: skip
    """Import batch normalization in evaluation mode."""
    wide = _accumulator(x.dtype)
    inverse = _inverse(t, convert(t, var, wide), eps)
    return [_normalized(t, x, (weight, bias), convert(t, mean, wide), inverse)]


@aten("_native_batch_norm_legit_functional")
def batch_norm_with_updates(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, weight: Imported | None, bias: Imported | None,
    mean: Imported, var: Imported, training: bool, momentum: float, eps: float,  # noqa: FBT001
) -> list[Imported]:  # fmt: skip
    """Import batch normalization that returns new running statistics.

    The running variance is that of a sample, with a divisor less by 1.
    """
    if not training:
        (found,) = batch_norm_of_running_statistics(t, x, weight, bias, mean, var, momentum, eps)
        return [found, mean, var, mean, var]
    own, spread, inverse = _statistics(t, x, eps)
    found = _normalized(t, x, (weight, bias), own, inverse)
    sample = elementwise(t, "multiply", [spread, _correction(t, x, spread.dtype)])
    running = [_running(t, *pair, momentum) for pair in ((mean, own), (var, sample))]
    return [found, own, inverse, *running]


@aten("_native_batch_norm_legit")
def batch_norm_without_statistics(
    t: TorchContext, x: Imported, weight: Imported | None, bias: Imported | None, *rest: Any
) -> list[Imported]:
    """Import batch normalization without running statistics."""
    own, _, inverse = _statistics(t, x, rest[-1])
    return [_normalized(t, x, (weight, bias), own, inverse), own, inverse]


def _accumulator(dtype: DType) -> DType:
    return f64 if dtype is f64 else f32


def _statistics(t: TorchContext, x: Imported, eps: float) -> tuple[Imported, Imported, Imported]:
    """Return the mean, the variance, and the inverse of the standard deviation per channel."""
    wide = convert(t, x, _accumulator(x.dtype))
    axes = tuple(k for k in range(x.rank) if k != 1)
    mean = t.apply("mean", t.plain(wide), axes=axes)
    centered = elementwise(t, "subtract", [wide, _channels(t, mean, x.rank)])
    squares = elementwise(t, "multiply", [centered, centered])
    var = t.apply("mean", t.plain(squares), axes=axes)
    return mean, var, _inverse(t, var, eps)


def _inverse(t: TorchContext, var: Imported, eps: float) -> Imported:
    shifted = elementwise(t, "add", [var, t.uniform(eps, (), var.dtype)])
    return elementwise(t, "rsqrt", [shifted])


def _channels(t: TorchContext, x: Imported, rank: int) -> Imported:
    """Return a vector of one number per channel, aligned with dimension 1."""
    return expand_dims(t, x, tuple(range(1, rank - 1))) if rank > 2 else x


def _normalized(
    t: TorchContext,
    x: Imported,
    factors: tuple[Imported | None, Imported | None],
    mean: Imported,
    inverse: Imported,
) -> Imported:
    """Return ``(x - mean) * inverse * weight + bias`` in the dtype of ``x``."""
    wide = mean.dtype

    def aligned(vector: Imported) -> Imported:
        return _channels(t, convert(t, vector, wide), x.rank)

    weight, bias = factors
    found = elementwise(t, "subtract", [convert(t, x, wide), aligned(mean)])
    found = elementwise(t, "multiply", [found, aligned(inverse)])
    if weight is not None:
        found = elementwise(t, "multiply", [found, aligned(weight)])
    if bias is not None:
        found = elementwise(t, "add", [found, aligned(bias)])
    return convert(t, found, x.dtype)


def _correction(t: TorchContext, x: Imported, dtype: DType) -> Imported:
    """Return ``n / (n - 1)`` for ``n`` elements per channel."""
    count = product(tuple(d for k, d in enumerate(x.shape) if k != 1))
    known = const_value(count)
    if known is not None:
        return t.uniform(math.inf if known == 1 else known / (known - 1), (), dtype)
    above, below = (convert(t, t.number(n, dtype), dtype) for n in (count, count - 1))
    return elementwise(t, "divide", [above, below])


def _running(t: TorchContext, old: Imported, new: Imported, momentum: float) -> Imported:
    """Return ``(1 - momentum) * old + momentum * new`` in the dtype of ``old``."""
    parts = [
        elementwise(t, "multiply", [convert(t, x, new.dtype), t.uniform(f, (), new.dtype)])
        for x, f in ((old, 1 - momentum), (new, momentum))
    ]
    return convert(t, elementwise(t, "add", parts), old.dtype)
