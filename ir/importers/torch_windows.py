"""Import handlers of PyTorch operators over windows of images: convolution, pooling, padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from ..graph.operators.windows import LEAD
from ..symbolic import Expr, SymInt, as_expr, const_value, to_text
from .elementwise import elementwise, rounded_once
from .shaping import expand_dims, permute, reshape, squeeze
from .tensors import Imported
from .torch_context import Scalar, TorchContext, aten
from .torch_window_positions import adaptive, maxima, returned, strided
from .unsupported import UnsupportedFormError
from .windows import padded, with_bias

_Sizes: TypeAlias = "int | Sequence[int]"

_MODES: Final = {"constant": "constant", "reflect": "reflect", "replicate": "edge",
                 "circular": "wrap"}  # fmt: skip
"""The padding modes of ``torch.nn.functional.pad`` and their names in ``pad``."""

_NAMED: Final = {"reflection_pad": "reflect", "replication_pad": "edge", "_pad_circular": "wrap"}


def _each(values: _Sizes, count: int) -> tuple[int, ...]:
    """Return one integer per spatial dimension; one alone is that of all dimensions."""
    given = (values,) if isinstance(values, int) else tuple(values)
    return given * count if len(given) == 1 else given


def _batched(t: TorchContext, x: Imported, rank: int) -> Imported:
    """Return an image with a batch dimension, which an operator of PyTorch may lack."""
    return expand_dims(t, x, (0,)) if x.rank < rank else x


def _as_given(t: TorchContext, found: Imported, x: Imported) -> Imported:
    """Return a result without a batch dimension if the operand has none."""
    return squeeze(t, found, (0,)) if found.rank > x.rank else found


@aten("conv1d", "conv2d", "conv3d")
def conv(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, weight: Imported, bias: Imported | None = None,
    stride: _Sizes = 1, padding: _Sizes | str = 0, dilation: _Sizes = 1, groups: int = 1,
) -> Imported:  # fmt: skip
    """Import a convolution; the padding ``"same"`` keeps the spatial dimensions."""
    count = weight.rank - LEAD
    distances = _each(dilation, count)
    if isinstance(padding, str):
        before, after = _named_padding(padding, weight, distances)
    else:
        before = after = _each(padding, count)
    found = t.apply(
        "conv",
        t.plain(_batched(t, x, weight.rank)),
        t.plain(weight),
        name=t.leaf if bias is None else None,
        strides=_each(stride, count),
        padding=(*before, *after),
        dilation=distances,
        groups=groups,
    )
    return _as_given(t, with_bias(t, found, bias), x)


def _named_padding(
    padding: str, weight: Imported, dilation: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding before and after an image for ``"same"`` or ``"valid"``."""
    if padding == "valid":
        return (0,) * len(dilation), (0,) * len(dilation)
    kernel = [const_value(k) for k in weight.shape[LEAD:]]
    if None in kernel:
        shown = ", ".join(map(to_text, weight.shape[LEAD:]))
        raise UnsupportedFormError(f"padding='same' needs a constant kernel, got ({shown})")
    total = [d * ((k or 1) - 1) for d, k in zip(dilation, kernel, strict=True)]
    return tuple(n // 2 for n in total), tuple(n - n // 2 for n in total)


@aten("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, weight: Imported, bias: Imported | None = None,
    stride: _Sizes = 1, padding: _Sizes = 0, output_padding: _Sizes = 0, groups: int = 1,
    dilation: _Sizes = 1,
) -> Imported:  # fmt: skip
    """Import a transposed convolution."""
    count = weight.rank - LEAD
    found = t.apply(
        "conv_transpose",
        t.plain(_batched(t, x, weight.rank)),
        t.plain(weight),
        strides=_each(stride, count),
        padding=_each(padding, count) * 2,
        dilation=_each(dilation, count),
        output_padding=_each(output_padding, count),
        groups=groups,
    )
    return _as_given(t, with_bias(t, found, bias), x)


@aten("convolution", "_convolution")
def convolution(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, weight: Imported, bias: Imported | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], transposed: bool,  # noqa: FBT001
    output_padding: Sequence[int], groups: int, *_: bool,
) -> Imported:  # fmt: skip
    """Import a convolution or a transposed one."""
    if transposed:
        return conv_transpose(t, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return conv(t, x, weight, bias, stride, padding, dilation, groups)


@aten("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, kernel: _Sizes, stride: _Sizes = (), padding: _Sizes = 0,
    dilation: _Sizes = 1, ceil: bool = False,  # noqa: FBT001, FBT002
) -> Imported:  # fmt: skip
    """Import the maxima of windows."""
    count = _spatial(t)
    size = _each(kernel, count)
    found = t.apply(
        "max_pool",
        t.plain(_batched(t, x, count + LEAD)),
        kernel=size,
        strides=_each(stride, count) or size,
        padding=_each(padding, count) * 2,
        dilation=_each(dilation, count),
        ceil=ceil,
    )
    return _as_given(t, found, x)


@aten("max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool_with_indices(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, kernel: _Sizes, stride: _Sizes = (), padding: _Sizes = 0,
    dilation: _Sizes = 1, ceil: bool = False,  # noqa: FBT001, FBT002
) -> list[Imported | None]:  # fmt: skip
    """Import the maxima of windows and their positions in the flat image, if they are used."""
    found = max_pool(t, x, kernel, stride, padding, dilation, ceil)
    if not _uses_indices(t):
        return [found, None]
    count = _spatial(t)
    size = _each(kernel, count)
    forms = zip(
        size, _each(stride, count) or size, _each(padding, count), _each(dilation, count),
        strict=True,
    )  # fmt: skip
    axes = [
        strided(t, n, windows, form)
        for n, windows, form in zip(x.shape[-count:], found.shape[-count:], forms, strict=True)
    ]
    return [_as_given(t, v, x) for v in maxima(t, _batched(t, x, count + LEAD), axes)]


@aten("adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(t: TorchContext, x: Imported, sizes: _Sizes) -> list[Imported | None]:
    """Import the maxima of parts of an image, and their positions if they are used."""
    count = _spatial(t)
    batched, wanted = _batched(t, x, count + LEAD), t.dims(_each(sizes, count))
    if not _uses_indices(t):
        return [_as_given(t, t.apply("adaptive_max_pool", t.plain(batched), wanted), x), None]
    axes = [adaptive(t, n, m) for n, m in zip(x.shape[-count:], wanted, strict=True)]
    return [_as_given(t, v, x) for v in maxima(t, batched, axes)]


def _uses_indices(t: TorchContext) -> bool:
    """Return whether an operator uses the second result of the node."""
    return any(user.args[1:] == (1,) and user.users for user in t.node.users)


@aten("max_unpool2d", "max_unpool3d")
def max_unpool(
    t: TorchContext, x: Imported, at: Imported, sizes: Sequence[SymInt], *_: Any
) -> Imported:
    """Import the return of maxima to their positions among zeros."""
    return returned(t, x, at, sizes)


@aten("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, kernel: _Sizes, stride: _Sizes = (), padding: _Sizes = 0,
    ceil: bool = False, count_include_pad: bool = True,  # noqa: FBT001, FBT002
    divisor_override: int | None = None,
) -> Imported:  # fmt: skip
    """Import the means of windows; another divisor multiplies the mean of the whole window."""
    count = _spatial(t)
    size = _each(kernel, count)
    windows: dict[str, Any] = {
        "kernel": size,
        "strides": _each(stride, count) or size,
        "padding": _each(padding, count) * 2,
        "ceil": ceil,
        "count_padding": count_include_pad,
    }
    batched = _batched(t, x, count + LEAD)
    if divisor_override is None:
        return _as_given(t, t.apply("avg_pool", t.plain(batched), **windows), x)
    if ceil:
        batched = _filled(t, batched, windows)
        windows |= {"padding": (0,) * 2 * count, "ceil": False}
    elements = 1
    for k in size:
        elements *= k

    def compute(image: Imported) -> Imported:
        whole: dict[str, Any] = {**windows, "count_padding": True}
        found = t.apply("avg_pool", t.plain(image), **whole)
        factor = t.uniform(elements / divisor_override, (), image.dtype)
        return elementwise(t, "multiply", [found, factor])

    return _as_given(t, rounded_once(t, compute, batched), x)


def _filled(t: TorchContext, x: Imported, windows: dict[str, Any]) -> Imported:
    """Return an image with zeros around it, so that the last window of each axis is whole."""
    count, lead = len(windows["kernel"]), [as_expr(0)] * LEAD
    before = [as_expr(n) for n in windows["padding"][:count]]
    sizes = [t.symbols.size(n) for n in t.node.meta["val"].shape[-count:]]
    after = [
        (size - 1) * stride + kernel - have - first
        for size, stride, kernel, have, first in zip(
            sizes, windows["strides"], windows["kernel"], x.shape[LEAD:], before, strict=True
        )
    ]
    return padded(t, x, ([*lead, *before], [*lead, *after]), 0, "constant")


def _spatial(t: TorchContext) -> int:
    """Return the number of spatial dimensions of an operator such as ``max_pool2d``."""
    name = t.operator.removesuffix("_with_indices")
    return int(name.removesuffix("d")[-1])


@aten("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "_adaptive_avg_pool2d",
      "_adaptive_avg_pool3d")  # fmt: skip
def adaptive_avg_pool(t: TorchContext, x: Imported, sizes: _Sizes) -> Imported:
    """Import the means of parts of an image; the mean of the whole image is a reduction."""
    count = _spatial(t)
    wanted = _each(sizes, count)
    batched = _batched(t, x, count + LEAD)
    if all(const_value(as_expr(size)) == 1 for size in wanted):
        axes = tuple(range(LEAD, batched.rank))
        found = t.apply("mean", t.plain(batched), axes=axes, keepdims=True)
    else:
        found = t.apply("adaptive_avg_pool", t.plain(batched), t.dims(wanted))
    return _as_given(t, found, x)


@aten("constant_pad_nd")
def constant_pad(
    t: TorchContext, x: Imported, widths: Sequence[SymInt], value: Scalar = 0
) -> Imported:
    """Import the padding of the last dimensions; negative widths remove elements."""
    return _padded(t, x, widths, "constant", value)


@aten("pad")
def pad(
    t: TorchContext, x: Imported, widths: Sequence[SymInt], mode: str = "constant",
    value: Scalar | None = None,
) -> Imported:  # fmt: skip
    """Import the padding of the last dimensions in one of four modes."""
    return _padded(t, x, widths, _MODES[mode], 0 if value is None else value)


@aten("reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad1d",
      "replication_pad2d", "replication_pad3d", "_pad_circular")  # fmt: skip
def named_pad(t: TorchContext, x: Imported, widths: Sequence[SymInt]) -> Imported:
    """Import padding with elements of the tensor."""
    mode = next(mode for name, mode in _NAMED.items() if t.operator.startswith(name))
    return _padded(t, x, widths, mode, 0)


def _padded(
    t: TorchContext, x: Imported, widths: Sequence[SymInt], mode: str, value: Scalar
) -> Imported:
    """Pad the last dimensions, of which the last is first in ``widths``."""
    before, after = [as_expr(0)] * x.rank, [as_expr(0)] * x.rank
    for k, (low, high) in enumerate(zip(widths[::2], widths[1::2], strict=True)):
        before[x.rank - 1 - k], after[x.rank - 1 - k] = as_expr(low), as_expr(high)
    if isinstance(value, Expr):
        raise UnsupportedFormError(f"padding with a size, {to_text(value)}, is not supported")
    number = value if x.dtype.is_inexact else int(value)
    number = bool(value) if x.dtype.kind == "bool" else number
    return padded(t, x, (before, after), number, mode)


@aten("pixel_shuffle", "pixel_unshuffle")
def pixel_shuffle(t: TorchContext, x: Imported, factor: int) -> Imported:
    """Import the exchange of channels and spatial blocks of ``factor`` times ``factor``."""
    *lead, channels, height, width = x.shape
    first = len(lead)
    if t.operator == "pixel_shuffle":
        split = (*lead, channels // factor**2, factor, factor, height, width)
        order = (0, 3, 1, 4, 2)
        joined = (*lead, channels // factor**2, height * factor, width * factor)
    else:
        split = (*lead, channels, height // factor, factor, width // factor, factor)
        order = (0, 2, 4, 1, 3)
        joined = (*lead, channels * factor**2, height // factor, width // factor)
    axes = (*range(first), *(first + a for a in order))
    return reshape(t, permute(t, reshape(t, x, split), axes), joined)
