"""Import handlers of normalization over batches, groups and images; some change statistics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..dtype import DType, f32, f64
from ..symbolic import const_value, product, to_text
from .elementwise import convert, elementwise, rounded_once
from .shaping import expand_dims, reshape
from .tensors import Imported
from .torch_context import TorchContext, aten
from .unsupported import UnsupportedFormError


@aten("instance_norm")
def instance_norm(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, weight: Imported | None, bias: Imported | None,
    mean: Imported | None, var: Imported | None, use_input_stats: bool, _momentum: float,  # noqa: FBT001
    eps: float, *_: bool,
) -> Imported:  # fmt: skip
    """Import the normalization that changes no statistics; see `instance_norm_rules`."""
    if mean is not None and var is not None and not use_input_stats:
        (found,) = batch_norm_of_running_statistics(t, x, weight, bias, mean, var, 0.0, eps)
        return found
    wide = convert(t, x, _accumulator(x.dtype))
    rows = reshape(t, wide, (*x.shape[:2], -1))
    normal = reshape(t, t.apply("layer_norm", t.plain(rows), epsilon=eps, axes=1), x.shape)
    return convert(t, _affine(t, normal, (weight, bias)), x.dtype)


@aten("group_norm")
def group_norm(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, groups: int, weight: Imported | None = None,
    bias: Imported | None = None, eps: float = 1e-5, *_: bool,
) -> Imported:  # fmt: skip
    """Import the normalization of groups of channels of each image."""
    if const_value(x.shape[1] % groups) != 0:
        raise UnsupportedFormError(
            f"{to_text(x.shape[1])} channels are not proved to be a multiple of {groups} groups"
        )

    def compute(image: Imported) -> Imported:
        rows = reshape(t, image, (x.shape[0], groups, -1))
        normal = t.apply("layer_norm", t.plain(rows), epsilon=eps, axes=1)
        return _affine(t, reshape(t, normal, x.shape), (weight, bias))

    return rounded_once(t, compute, x)


@aten("batch_norm")
def batch_norm(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, weight: Imported | None, bias: Imported | None,
    mean: Imported | None, var: Imported | None, training: bool, momentum: float,  # noqa: FBT001
    eps: float, _cudnn: bool = True,  # noqa: FBT001, FBT002
) -> Imported:  # fmt: skip
    """Import batch normalization that changes no statistics; see `changes_operand`."""
    if training or mean is None or var is None:
        return batch_norm_without_statistics(t, x, weight, bias, training, momentum, eps)[0]
    (found,) = batch_norm_of_running_statistics(t, x, weight, bias, mean, var, momentum, eps)
    return found


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

    found = elementwise(t, "subtract", [convert(t, x, wide), aligned(mean)])
    found = elementwise(t, "multiply", [found, aligned(inverse)])
    return convert(t, _affine(t, found, factors), x.dtype)


def _affine(
    t: TorchContext, x: Imported, factors: tuple[Imported | None, Imported | None]
) -> Imported:
    """Return ``x * weight + bias`` with one number of each per channel; either may be absent."""
    for op, factor in zip(("multiply", "add"), factors, strict=True):
        if factor is not None:
            aligned = _channels(t, convert(t, factor, x.dtype), x.rank)
            x = elementwise(t, op, [x, aligned])
    return x


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


def instance_norm_rules() -> dict[Any, Callable[..., Any]]:
    """Return the definition of instance normalization that changes running statistics.

    PyTorch exports the operator without their changes.
    """
    import torch

    return {torch.ops.aten.instance_norm.default: _instance_norm}


def _instance_norm(  # noqa: PLR0917  # the order of PyTorch
    x: Any, weight: Any, bias: Any, mean: Any, var: Any, use_input_stats: bool, momentum: float,  # noqa: FBT001
    eps: float, _cudnn: bool,  # noqa: FBT001
) -> Any:  # fmt: skip
    """Return the normalized images in operators of PyTorch, and update running statistics."""
    import torch

    axes, ones = list(range(2, x.dim())), [1] * (x.dim() - 2)
    wide = x if x.dtype == torch.float64 else x.to(torch.float32)
    center, spread = mean, var
    if use_input_stats or mean is None:
        spread, center = torch.var_mean(wide, axes, correction=0)
        if mean is not None:
            sample = torch.var(wide, axes, correction=1)
            for old, new in ((mean, center), (var, sample)):
                old.copy_((1 - momentum) * old + momentum * new.mean(0))
    center, spread = (v.reshape(-1, x.shape[1], *ones).to(wide.dtype) for v in (center, spread))
    found = (wide - center) * torch.rsqrt(spread + eps)
    found = found if weight is None else found * weight.reshape(-1, *ones)
    found = found if bias is None else found + bias.reshape(-1, *ones)
    return found.to(x.dtype)
