"""Gradients of operators over windows of images, in convolutions and slices."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from ...dtype import DType
from ...symbolic import Expr, as_expr, const_value, maximum
from ..nodes import Operand, Value
from .composition import Composer
from .gradients import GradientCall, shape_of
from .windows import LEAD, Windows


def image_gradient(
    graph: Composer,
    g: Operand,
    w: Operand,
    windows: Windows,
    sizes: Sequence[Expr],
    *,
    groups: int = 1,
) -> Operand:
    """Return the cotangent of an image: that of the results of windows, spread by a convolution.

    ``sizes`` are the spatial dimensions of the image.
    """
    spread = graph.emit(
        "conv_transpose", g, w, strides=windows.strides, dilation=windows.dilation, groups=groups
    )
    found = shape_of(spread)[LEAD:]
    ends = [b + d for b, d in zip(windows.before, sizes, strict=True)]
    missing = [maximum(0, end - f) for end, f in zip(ends, found, strict=True)]
    if any(const_value(m) != 0 for m in missing):
        none = (as_expr(0),) * (LEAD + len(missing))
        spread = graph.emit("pad", spread, none, (*none[:LEAD], *missing), 0.0)
    axes = tuple(range(LEAD, LEAD + len(ends)))
    return graph.emit("strided_slice", spread, windows.before, tuple(ends), axes=axes)


def weight_gradient(
    graph: Composer,
    image: Operand,
    g: Operand,
    windows: Windows,
    shape: Sequence[Expr],
    *,
    groups: int,
) -> Operand:
    """Return the cotangent of the weights: a convolution of the image with the cotangent.

    The batch is the dimension that is summed over; strides and dilation are exchanged. ``shape``
    is the shape of the weights.
    """
    batch, _, *sizes = shape_of(image)
    channels = shape[1]
    spatial = tuple(range(LEAD, len(shape)))
    parts = graph.emit("reshape", image, (batch, groups, channels, *sizes))
    turned = (2, 1, 0, *(k + 1 for k in spatial))
    image = graph.emit("permute_dims", parts, axes=turned)
    image = graph.emit("reshape", image, (channels, batch * groups, *sizes))
    factors = graph.emit("permute_dims", g, axes=(1, 0, *spatial))
    made = graph.emit(
        "conv", image, factors, strides=windows.dilation, dilation=windows.strides,
        padding=(*windows.before, *windows.after), groups=groups,
    )  # fmt: skip
    begin, end = (as_expr(0),) * len(spatial), tuple(shape[LEAD:])
    kernel = graph.emit("strided_slice", made, begin, end, axes=spatial)
    return graph.emit("permute_dims", kernel, axes=(1, 0, *spatial))


def transpose_gradient(
    call: GradientCall, position: int, graph: Composer, windows: Windows, groups: int
) -> Operand:
    """Return the cotangent of an operand of a transposed convolution.

    It is the transpose of the convolution of the cotangent of the result, whose image is therefore
    the cotangent. A dimension of the operand that may be empty is extended by a zero, because a
    convolution needs an image of at least one window.
    """
    x, w, g = call.tensor(0), call.tensor(1), call.cotangent(graph)
    sizes = x.shape[LEAD:]
    more = [0 if d.lower is not None and d.lower >= 1 else 1 for d in sizes]
    after = zip(windows.after, windows.strides, more, strict=True)
    windows = replace(windows, after=tuple(a + s * m for a, s, m in after))
    axes = tuple(range(LEAD, len(x.shape)))
    begin = (as_expr(0),) * len(axes)
    if not position:
        found = graph.emit(
            "conv", g, call.args[1], strides=windows.strides, dilation=windows.dilation,
            padding=(*windows.before, *windows.after), groups=groups,
        )  # fmt: skip
        whole = shape_of(found) == x.shape
        return found if whole else graph.emit("strided_slice", found, begin, sizes, axes=axes)
    image = call.args[0]
    if any(more):
        none = (as_expr(0),) * len(x.shape)
        image = graph.emit("pad", image, none, (*none[:LEAD], *map(as_expr, more)), 0.0)
    return weight_gradient(graph, g, image, windows, w.shape, groups=groups)


def mean_gradient(call: GradientCall, windows: Windows, graph: Composer, *, padding: bool) -> Value:
    """Return the cotangent of the image of a mean over windows."""
    x, g = call.tensor(0), call.cotangent(graph)
    ones = _ones(graph, (as_expr(1), as_expr(1), *windows.kernel), x.dtype)
    if padding:
        size = 1
        for k in windows.kernel:
            size *= const_value(k) or 1
        share: Operand = graph.emit("divide", g, float(size))
    else:
        inside = _ones(graph, (as_expr(1), as_expr(1), *x.shape[LEAD:]), x.dtype)
        count = graph.emit(
            "conv", inside, ones, strides=windows.strides, dilation=windows.dilation,
            padding=(*windows.before, *windows.after),
        )  # fmt: skip
        share = graph.emit("divide", g, count)
    single = _single_channel(graph, share)
    image = image_gradient(graph, single, ones, windows, x.shape[LEAD:])
    return graph.emit("reshape", image, x.shape)


def maximum_gradient(call: GradientCall, windows: Windows, graph: Composer) -> Value:
    """Return the cotangent of the image of a maximum over windows; equal maxima share it."""
    x, g = call.tensor(0), call.cotangent(graph)
    sizes, counts = x.shape[LEAD:], windows.counts(x.shape[LEAD:])
    image = _single_channel(graph, call.args[0])
    inside = _ones(graph, shape_of(image), x.dtype)
    largest = _single_channel(graph, call.result)
    positions = list(itertools.product(*(range(const_value(k) or 1) for k in windows.kernel)))
    reached: list[Value] = []
    for at in positions:
        found = _patch(graph, image, windows, counts, at)
        valid = _patch(graph, inside, windows, counts, at)
        equal = graph.emit("cast", graph.emit("equal", found, largest), dtype=x.dtype.name)
        reached.append(graph.emit("multiply", equal, valid))
    every = graph.emit("concat", *reached, axis=1)
    total = graph.emit("sum", every, axes=(1,), keepdims=True)
    share = graph.emit("divide", _single_channel(graph, g), total)
    spread = graph.emit("multiply", every, share)
    rows = [_one_hot(graph, at, windows.kernel, x.dtype) for at in positions]
    weights = graph.emit("concat", *rows, axis=0)
    made = image_gradient(graph, spread, weights, windows, sizes)
    return graph.emit("reshape", made, x.shape)


def _patch(
    graph: Composer, image: Value, windows: Windows, counts: Sequence[Expr], at: Sequence[int]
) -> Value:
    """Return the elements at one position of all windows; 0 outside of the image."""
    sizes = shape_of(image)[LEAD:]
    first = [k * d for k, d in zip(at, windows.dilation, strict=True)]
    last = [
        begin + (count - 1) * stride + 1
        for begin, count, stride in zip(first, counts, windows.strides, strict=True)
    ]
    after = [
        maximum(0, end - b - size) for end, b, size in zip(last, windows.before, sizes, strict=True)
    ]
    none = (as_expr(0),) * LEAD
    before = tuple(map(as_expr, windows.before))
    if any(const_value(k) != 0 for k in (*before, *after)):
        image = graph.emit("pad", image, (*none, *before), (*none, *after), 0.0)
    axes = tuple(range(LEAD, LEAD + len(first)))
    begin = tuple(map(as_expr, first))
    return graph.emit("strided_slice", image, begin, tuple(last), axes=axes, steps=windows.strides)


def _one_hot(graph: Composer, at: Sequence[int], kernel: Sequence[Expr], dtype: DType) -> Value:
    """Return a window with a one at a position."""
    one = _ones(graph, (as_expr(1),) * (LEAD + len(at)), dtype)
    none = (as_expr(0),) * LEAD
    before = tuple(map(as_expr, at))
    after = tuple(k - 1 - b for k, b in zip(kernel, at, strict=True))
    return graph.emit("pad", one, (*none, *before), (*none, *after), 0.0)


def _single_channel(graph: Composer, x: Operand) -> Value:
    """Return the channels of an image as images of their own."""
    shape = shape_of(x)
    return graph.emit("reshape", x, (shape[0] * shape[1], 1, *shape[LEAD:]))


def _ones(graph: Composer, shape: Sequence[Expr], dtype: DType) -> Value:
    return graph.emit("full", tuple(shape), 1.0, dtype=dtype.name)
