"""Import handlers of ONNX operators over windows of images, and of their normalization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..dtype import f32, f64, i32, i64
from ..graph.operators.windows import LEAD
from ..symbolic import Expr, as_expr, const_value, product, to_text
from .elementwise import convert, elementwise, rounded_once, weighted_sum, where
from .formulas import Formula, number, positions, size_of
from .onnx_context import OnnxContext, onnx_op
from .shaping import axis_of, expand_dims, permute, reshape
from .tensors import Imported
from .unsupported import UnsupportedFormError
from .windows import with_bias


def _integers(c: OnnxContext, name: str, count: int, default: int) -> tuple[int, ...]:
    return tuple(c.attributes.get(name) or (default,) * count)


def _kernel(weight: Imported) -> tuple[int, ...]:
    """Return the sizes of the weights of a convolution in the spatial dimensions."""
    found = [const_value(k) for k in weight.shape[LEAD:]]
    if None in found:
        shown = ", ".join(map(to_text, weight.shape[LEAD:]))
        raise UnsupportedFormError(f"a kernel of symbolic size ({shown}) is not supported")
    return tuple(k or 0 for k in found)


def _geometry(c: OnnxContext, x: Imported, kernel: Sequence[int]) -> dict[str, Any]:
    """Return strides, padding and dilation of the windows of a node."""
    count = len(kernel)
    strides = _integers(c, "strides", count, 1)
    dilation = _integers(c, "dilations", count, 1)
    padding = _integers(c, "pads", 2 * count, 0)
    kind = c.attributes.get("auto_pad", "NOTSET")
    if kind == "VALID":
        padding = (0,) * (2 * count)
    elif kind != "NOTSET":
        windows = zip(x.shape[LEAD:], kernel, strides, dilation, strict=True)
        totals = [_same(size, (k - 1) * d + 1, s) for size, k, s, d in windows]
        low, high = [n // 2 for n in totals], [n - n // 2 for n in totals]
        padding = (*low, *high) if kind == "SAME_UPPER" else (*high, *low)
    return {"strides": strides, "padding": padding, "dilation": dilation}


def _same(size: Expr, extent: int, stride: int) -> int:
    """Return the padding for which the result has one element per stride."""
    if stride == 1:
        return extent - 1
    known = const_value(size)
    if known is None:
        raise UnsupportedFormError(
            f"auto_pad=SAME with stride {stride} needs constant image dimensions, "
            f"got {to_text(size)}",
            hint="export the model with explicit pads",
        )
    return max((-(-known // stride) - 1) * stride + extent - known, 0)


@onnx_op("Conv")
def conv(c: OnnxContext) -> Imported:
    """Import a convolution."""
    x, weight = c.input(0), c.input(1)
    geometry = _geometry(c, x, _kernel(weight))
    groups = c.integer("group", 1)
    found = c.apply("conv", c.plain(x), c.plain(weight), groups=groups, **geometry)
    return with_bias(c, found, c.optional(2))


@onnx_op("ConvTranspose")
def conv_transpose(c: OnnxContext) -> Imported:
    """Import a transposed convolution; a given shape of the result determines the padding."""
    x, weight = c.input(0), c.input(1)
    kernel = _kernel(weight)
    count = len(kernel)
    strides = _integers(c, "strides", count, 1)
    dilation = _integers(c, "dilations", count, 1)
    more = _integers(c, "output_padding", count, 0)
    padding = _integers(c, "pads", 2 * count, 0)
    kind = c.attributes.get("auto_pad", "NOTSET")
    wanted: Any = c.attributes.get("output_shape")
    if wanted is not None or kind.startswith("SAME"):
        totals: list[int] = []
        added: list[int] = []
        for axis, size in enumerate(x.shape[LEAD:]):
            extent = (kernel[axis] - 1) * dilation[axis] + 1
            target = size * strides[axis] if wanted is None else as_expr(wanted[axis])
            whole = (size - 1) * strides[axis] + extent + more[axis]
            total = const_value(whole - target)
            if total is None:
                raise UnsupportedFormError(
                    "output_shape needs constant image dimensions, got " + to_text(size)
                )
            totals.append(max(total, 0))
            added.append(max(-total, 0))
        low, high = [n // 2 for n in totals], [n - n // 2 for n in totals]
        padding = (*low, *high) if kind == "SAME_UPPER" else (*high, *low)
        more = tuple(m + a for m, a in zip(more, added, strict=True))
    elif kind == "VALID":
        padding = (0,) * (2 * count)
    found = c.apply(
        "conv_transpose",
        c.plain(x),
        c.plain(weight),
        strides=strides,
        padding=padding,
        dilation=dilation,
        output_padding=more,
        groups=c.integer("group", 1),
    )
    return with_bias(c, found, c.optional(2))


@onnx_op("MaxPool")
def max_pool(c: OnnxContext) -> list[Imported]:
    """Import the maxima of windows, and their positions if they are used."""
    x, kernel = c.input(0), tuple(c.attributes["kernel_shape"])
    ceil = bool(c.integer("ceil_mode", 0))
    geometry = _geometry(c, x, kernel)
    found = c.apply("max_pool", c.plain(x), kernel=kernel, ceil=ceil, **geometry)
    if len(c.node.output) == 1 or not c.node.output[1]:
        return [found]
    return [found, _positions_of_maxima(c, x, found.shape, kernel, geometry)]


def _positions_of_maxima(
    c: OnnxContext, x: Imported, shape: Sequence[Expr], kernel: Sequence[int], geometry: Any
) -> Imported:
    """Return the index of the first maximum of each window in the flattened images."""
    count, wide = len(kernel), f64 if x.dtype is f64 else f32
    at, inside = number(c, 0, i64), None
    order = range(count)
    by_columns = bool(c.integer("storage_order", 0))
    place = number(c, 0, i64)
    for k in order:
        starts = positions(c, shape[LEAD + k]) * geometry["strides"][k] - geometry["padding"][k]
        taps = positions(c, kernel[k]) * geometry["dilation"][k]
        own = starts.unsqueeze(*range(1, 2 * count - k)) + taps.unsqueeze(*range(1, count - k))
        size = size_of(c, x.shape[LEAD + k])
        valid = (own >= 0) & (own < size)
        inside = valid if inside is None else inside & valid
        at = at * size + own
        before = x.shape[LEAD : LEAD + k] if by_columns else x.shape[LEAD + k + 1 :]
        place = place + own * size_of(c, product(before))
    if inside is None:
        raise UnsupportedFormError("a pooling without windows is not supported")
    windows, area = shape[LEAD:], math.prod(kernel)
    whole = product(x.shape[LEAD:])
    dims = (product(windows), area)
    near = inside.choose(at, 0, i64).expand(*windows, *kernel).reshape(*dims)
    flat = Formula(c, x).to(wide).reshape(*x.shape[:LEAD], whole)
    mask = inside.expand(*windows, *kernel).reshape(*dims)
    rows = mask.choose(flat.take(near, LEAD), -math.inf, wide)
    first = Formula(c, c.apply("argmax", c.plain(rows.x), axis=LEAD + 1, keepdims=True))
    table = place.expand(*windows, *kernel).reshape(1, 1, *dims).expand(*rows.shape)
    found = table.call("gather_elements", first, axis=LEAD + 1).squeeze(LEAD + 1)
    image = positions(c, product(x.shape[:LEAD])).reshape(*x.shape[:LEAD], 1)
    return (found + image * size_of(c, whole)).reshape(*shape).x


@onnx_op("AveragePool")
def average_pool(c: OnnxContext) -> Imported:
    """Import the means of windows."""
    x, kernel = c.input(0), tuple(c.attributes["kernel_shape"])
    return c.apply(
        "avg_pool",
        c.plain(x),
        kernel=kernel,
        ceil=bool(c.integer("ceil_mode", 0)),
        count_padding=bool(c.integer("count_include_pad", 0)),
        **_geometry(c, x, kernel),
    )


@onnx_op("LpPool")
def norm_pool(c: OnnxContext) -> Imported:
    """Import the norms of windows, from the means of powers."""
    order, kernel = c.integer("p", 2), tuple(c.attributes["kernel_shape"])
    ceil = bool(c.integer("ceil_mode", 0))
    x = c.input(0)
    geometry = _geometry(c, x, kernel)
    elements = 1
    for k in kernel:
        elements *= k
    if ceil:
        raise UnsupportedFormError("ceil_mode=1 is not supported")

    def compute(image: Imported) -> Imported:
        powers = _power(c, elementwise(c, "abs", [image]), order)
        mean = c.apply("avg_pool", c.plain(powers), kernel=kernel, **geometry)
        return _power(c, _times(c, mean, elements), 1 / order)

    return rounded_once(c, compute, x)


def _times(c: OnnxContext, x: Imported, factor: float) -> Imported:
    return elementwise(c, "multiply", [x, c.uniform(float(factor), (), x.dtype)])


def _power(c: OnnxContext, x: Imported, exponent: float) -> Imported:
    return elementwise(c, "power", [x, c.uniform(float(exponent), (), x.dtype)])


@onnx_op("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(c: OnnxContext) -> Imported:
    """Import the mean, maximum, or norm of a whole image."""
    x = c.input(0)
    axes = tuple(range(LEAD, x.rank))
    if c.node.op_type != "GlobalLpPool":
        op = "max" if c.node.op_type == "GlobalMaxPool" else "mean"
        return c.apply(op, c.plain(x), axes=axes, keepdims=True)
    return _norm(c, x, axes, c.integer("p", 2))


def _norm(c: OnnxContext, x: Imported, axes: tuple[int, ...], order: int) -> Imported:
    """Return the norm over axes, which are kept."""

    def compute(wide: Imported) -> Imported:
        powers = _power(c, elementwise(c, "abs", [wide]), order)
        total = c.apply("sum", c.plain(powers), axes=axes, keepdims=True)
        return _power(c, total, 1 / order)

    return rounded_once(c, compute, x)


@onnx_op("LpNormalization")
def norm_normalization(c: OnnxContext) -> Imported:
    """Import the division by the norm along an axis; the result for a norm of 0 is 0."""
    x = c.input(0)
    axis = axis_of(c.integer("axis", -1), x.rank)
    size = _norm(c, x, (axis,), c.integer("p", 2))
    zero = elementwise(c, "equal", [size, c.uniform(0.0, (), x.dtype)])
    quotient = elementwise(c, "divide", [x, size])
    return where(c, zero, c.uniform(0.0, x.shape, x.dtype), quotient)


def _aligned(c: OnnxContext, vector: Imported, rank: int) -> Imported:
    """Return one number per channel, aligned with dimension 1."""
    return expand_dims(c, vector, tuple(range(1, rank - 1))) if rank > LEAD else vector


@onnx_op("BatchNormalization")
def batch_norm(c: OnnxContext) -> list[Imported]:
    """Import batch normalization in inference."""
    if not c.integer("spatial", 1):
        raise UnsupportedFormError("spatial=0 is not supported")
    x = c.input(0)
    wide = f64 if x.dtype is f64 else f32
    scale, bias, mean, var = (convert(c, c.input(k), wide) for k in range(1, 5))
    running: list[Imported] = []
    if c.integer("training_mode", 0):
        given = mean, var
        axes = [k for k in range(x.rank) if k != 1]
        image = Formula(c, convert(c, x, wide))
        center = image.reduce("mean", *axes, keepdims=True)
        distance = image - center
        mean = center.squeeze(*axes).x
        var = (distance * distance).reduce("mean", *axes).x
        momentum = float(c.attributes.get("momentum", 0.9))
        pairs = zip(given, (mean, var), strict=True)
        running = [weighted_sum(c, old, momentum, new, 1 - momentum) for old, new in pairs]
        running = [convert(c, r, c.input(3).dtype) for r in running]
    epsilon = c.uniform(float(c.attributes.get("epsilon", 1e-5)), (), wide)
    inverse = elementwise(c, "rsqrt", [elementwise(c, "add", [var, epsilon])])
    found = elementwise(c, "subtract", [convert(c, x, wide), _aligned(c, mean, x.rank)])
    for op, factor in (("multiply", inverse), ("multiply", scale), ("add", bias)):
        found = elementwise(c, op, [found, _aligned(c, factor, x.rank)])
    return [convert(c, found, x.dtype), *running]


@onnx_op("ConvInteger")
def conv_integer(c: OnnxContext) -> Imported:
    """Import a convolution of 8-bit integers less their zero points; its sums are exact in f64."""
    return convert(c, _integer_conv(c, c.input(0), c.input(1), (2, 3)), i32)


def _integer_conv(
    c: OnnxContext, x: Imported, weight: Imported, zeros: tuple[int, int]
) -> Imported:
    parts = [convert(c, v, f64) for v in (x, weight)]
    for k, zero in enumerate(map(c.optional, zeros)):
        if zero is not None:
            wide = convert(c, zero, f64)
            per_channel = wide.rank == 1 and const_value(wide.shape[0]) != 1
            rank = parts[k].rank
            aligned = expand_dims(c, wide, tuple(range(1, rank))) if per_channel else (
                reshape(c, wide, ()))  # fmt: skip
            parts[k] = elementwise(c, "subtract", [parts[k], aligned])
    geometry = _geometry(c, x, _kernel(weight))
    groups = c.integer("group", 1)
    return c.apply("conv", c.plain(parts[0]), c.plain(parts[1]), groups=groups, **geometry)


@onnx_op("QLinearConv")
def qlinear_conv(c: OnnxContext) -> Imported:
    """Import a convolution of quantized images, quantized again."""
    x, weight, zero = c.input(0), c.input(3), c.input(7)
    sums = _integer_conv(c, x, weight, (2, 5))
    bias = c.optional(8)
    sums = with_bias(c, sums, None if bias is None else convert(c, bias, f64))
    of_x, of_w, of_y = (convert(c, c.input(k), f32) for k in (1, 4, 6))
    if of_w.rank == 1 and const_value(of_w.shape[0]) != 1:
        of_w = expand_dims(c, of_w, tuple(range(1, sums.rank - 1)))
    scales = [v if v.rank != 1 or const_value(v.shape[0]) != 1 else reshape(c, v, ())
              for v in (of_x, of_w, of_y)]  # fmt: skip
    factor = elementwise(c, "multiply", [scales[0], scales[1]])
    factor = elementwise(c, "divide", [factor, scales[2]])
    scaled = elementwise(c, "multiply", [convert(c, sums, f32), factor])
    operands = [c.plain(scaled), 1.0, c.plain(reshape(c, zero, ()))]
    return c.apply("quantize_linear", *operands, dtype=zero.dtype.name)


@onnx_op("InstanceNormalization")
def instance_norm(c: OnnxContext) -> Imported:
    """Import the normalization of each channel of each image."""
    x = c.input(0)
    return _in_groups(c, x, tuple(x.shape[:LEAD]))


@onnx_op("GroupNormalization")
def group_norm(c: OnnxContext) -> Imported:
    """Import the normalization of groups of channels; below opset 21, factors are per group."""
    x, groups = c.input(0), c.integer("num_groups")
    if const_value(x.shape[1] % groups) != 0:
        raise UnsupportedFormError(
            f"{to_text(x.shape[1])} channels are not proved to be a multiple of {groups} groups"
        )
    return _in_groups(c, x, (x.shape[0], as_expr(groups)), per_group=c.opset < 21)


def _in_groups(
    c: OnnxContext, x: Imported, groups: tuple[Expr, ...], *, per_group: bool = False
) -> Imported:
    """Normalize groups of elements, and apply a factor and a summand per channel or group."""
    epsilon = float(c.attributes.get("epsilon", 1e-5))
    wide = f64 if x.dtype is f64 else f32
    rows = reshape(c, convert(c, x, wide), (*groups, -1))
    found = c.apply("layer_norm", c.plain(rows), epsilon=epsilon, axes=1)
    factors = [(op, convert(c, c.input(k), wide)) for k, op in ((1, "multiply"), (2, "add"))]
    if not per_group:
        found = reshape(c, found, x.shape)
    for op, factor in factors:
        found = elementwise(c, op, [found, _aligned(c, factor, found.rank)])
    return convert(c, reshape(c, found, x.shape), x.dtype)


@onnx_op("LRN")
def local_response(c: OnnxContext) -> Imported:
    """Import the normalization by the squares of neighboring channels."""
    x, size = c.input(0), c.integer("size")
    alpha, beta, bias = (
        float(c.attributes.get(k, v)) for k, v in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )

    def compute(image: Imported) -> Imported:
        squares = elementwise(c, "multiply", [image, image])
        lines = reshape(c, squares, (x.shape[0], 1, x.shape[1], -1))
        low = (size - 1) // 2
        mean = c.apply(
            "avg_pool", c.plain(lines), kernel=(size, 1), padding=(low, 0, size - 1 - low, 0)
        )
        mean = _times(c, reshape(c, mean, x.shape), alpha)
        base = elementwise(c, "add", [mean, c.uniform(bias, (), image.dtype)])
        return elementwise(c, "divide", [image, _power(c, base, beta)])

    return rounded_once(c, compute, x)


@onnx_op("DepthToSpace", "SpaceToDepth")
def blocks(c: OnnxContext) -> Imported:
    """Import the exchange of channels and spatial blocks."""
    x, b = c.input(0), c.integer("blocksize")
    n, channels, h, w = x.shape
    if c.node.op_type == "SpaceToDepth":
        parts = reshape(c, x, (n, channels, h // b, b, w // b, b))
        joined = (n, channels * b * b, h // b, w // b)
        columns_first = c.attributes.get("mode", "DCR") == "DCR"
        order = (0, 3, 5, 1, 2, 4) if columns_first else (0, 1, 3, 5, 2, 4)
        return reshape(c, permute(c, parts, order), joined)
    joined = (n, channels // (b * b), h * b, w * b)
    if c.attributes.get("mode", "DCR") == "DCR":
        parts = reshape(c, x, (n, b, b, channels // (b * b), h, w))
        return reshape(c, permute(c, parts, (0, 3, 4, 1, 5, 2)), joined)
    parts = reshape(c, x, (n, channels // (b * b), b, b, h, w))
    return reshape(c, permute(c, parts, (0, 1, 4, 2, 5, 3)), joined)
