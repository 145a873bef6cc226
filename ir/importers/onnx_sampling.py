"""Import handlers of ONNX operators that read images at computed positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import product as combinations
from typing import Final

from ..dtype import f32, f64, i64
from ..symbolic import Expr, as_expr, const_value, product
from .formulas import Formula, number, positions, size_of
from .onnx_context import OnnxContext, onnx_op
from .onnx_given_sizes import read_size
from .onnx_schema import malformed
from .tensors import Imported
from .unsupported import UnsupportedFormError

_LEAD: Final = 2
"""The dimensions of batch and channels."""
_CUBIC: Final = -0.75


def looked_up(x: Formula, batch: Formula, at: Sequence[Formula]) -> Formula:
    """Return ``x[batch, :, at...]``: the shape of the positions, then the channels."""
    order = (0, *range(_LEAD, x.rank), 1)
    sizes = x.shape[_LEAD:]
    rows = x.permute(*order).reshape(x.shape[0] * product(sizes), x.shape[1])
    flat = batch
    for size, index in zip(sizes, at, strict=True):
        flat = flat * size_of(x.e, size) + index
    return rows.take(flat, 0)


def bilinear(  # an image, and how it is read
    x: Formula, batch: Formula, at: Sequence[Formula], *, zeros: bool = True
) -> Formula:
    """Interpolate between the neighbors of positions; elements outside are zeros or the border."""
    floors = [p.apply("floor") for p in at]
    parts: list[Formula] = []
    for corner in combinations((0, 1), repeat=len(at)):
        weight, near = number(x.e, 1.0, at[0].dtype), list[Formula]()
        for p, low, up, size in zip(at, floors, corner, x.shape[_LEAD:], strict=True):
            index = low.to(i64) + up
            part = p - low if up else 1.0 - (p - low)
            last = size_of(x.e, size) - 1
            if zeros:
                part = ((index >= 0) & (index <= last)).choose(part, 0.0, part.dtype)
            weight = weight * part
            near.append(index.clip(0, last))
        parts.append(looked_up(x, batch, near) * weight.to(x.dtype).unsqueeze(weight.rank))
    return reduce(lambda a, b: a + b, parts)


def _cubic_weights(fraction: Formula) -> list[Formula]:
    """Return the weights of four neighbors of a position by cubic convolution."""

    def far(x: Formula) -> Formula:
        return ((_CUBIC * x - 5 * _CUBIC) * x + 8 * _CUBIC) * x - 4 * _CUBIC

    def close(x: Formula) -> Formula:
        return ((_CUBIC + 2) * x - (_CUBIC + 3)) * x * x + 1.0

    other = 1.0 - fraction
    return [far(fraction + 1.0), close(fraction), close(other), far(other + 1.0)]


@onnx_op("GridSample")
def grid_sample(c: OnnxContext) -> Imported:
    """Import the interpolation of an image at positions of a grid."""
    image, grid = Formula(c, c.input(0)), Formula(c, c.input(1))
    wide = f64 if image.dtype is f64 else f32
    x, corners = image.to(wide), bool(c.integer("align_corners", 0))
    mode = str(c.attributes.get("mode", "linear")).removeprefix("bi")
    padding = str(c.attributes.get("padding_mode", "zeros"))
    sizes = x.shape[_LEAD:]
    at: list[Formula] = []
    for k, size in enumerate(sizes):
        length = size_of(c, size).to(f64)
        place = grid.at(grid.rank - 1, len(sizes) - 1 - k).to(f64) + 1.0
        found = place / 2.0 * (length - 1.0) if corners else (place * length - 1.0) / 2.0
        at.append(found.apply("round") if mode == "nearest" else found)
    batch = positions(c, x.shape[0]).unsqueeze(*range(1, grid.rank - 1))
    found = _sampled(c, x, batch, [_inside(c, p, s, padding, corners=corners) for p, s in
                                   zip(at, sizes, strict=True)], mode, padding)  # fmt: skip
    last = found.rank - 1
    return found.permute(0, last, *range(1, last)).to(image.dtype).x


def _inside(c: OnnxContext, at: Formula, size: Expr, padding: str, *, corners: bool) -> Formula:
    """Return positions limited to an image, or reflected at its border."""
    last = (size_of(c, size) - 1).to(f64)
    match padding:
        case "zeros":
            return at
        case "border":
            return at.clip(0.0, last)
        case "reflection":
            return reflected(at, last, corners=corners)
        case _:
            raise malformed(c.node, f"padding_mode {padding!r} is unknown")


def reflected(at: Formula, last: Formula, *, corners: bool) -> Formula:
    """Reflect positions at the centers or at the edges of the first and last elements."""
    low = 0.0 if corners else -0.5
    extent = (last if corners else last + 1.0).maximum(1e-30)
    turn = (at - low) % (extent * 2.0)
    folded = (turn < extent).choose(turn, extent * 2.0 - turn, at.dtype)
    return folded + low


def _sampled(  # noqa: PLR0917  # an image, and how it is read
    c: OnnxContext, x: Formula, batch: Formula, at: Sequence[Formula], mode: str, padding: str
) -> Formula:
    corners = bool(c.integer("align_corners", 0))
    match mode:
        case "nearest":
            near = [p.to(i64) for p in at]
            lasts = [size_of(c, s) - 1 for s in x.shape[_LEAD:]]
            found = looked_up(x, batch, [p.clip(0, n) for p, n in zip(near, lasts, strict=True)])
            if padding != "zeros":
                return found
            inside = [(p >= 0) & (p <= n) for p, n in zip(near, lasts, strict=True)]
            mask = reduce(lambda a, b: a & b, inside)
            return mask.unsqueeze(mask.rank).choose(found, 0, x.dtype)
        case "linear":
            return bilinear(x, batch, at, zeros=padding == "zeros")
        case "cubic":
            return _cubic_sampled(c, x, batch, at, padding, corners=corners)
        case _:
            raise UnsupportedFormError(f"mode={mode} is not supported")


def _cubic_sampled(  # an image, and how it is read
    c: OnnxContext, x: Formula, batch: Formula, at: Sequence[Formula], padding: str, *,
    corners: bool,
) -> Formula:  # fmt: skip
    floors = [p.apply("floor") for p in at]
    weights = [_cubic_weights(p - f) for p, f in zip(at, floors, strict=True)]
    parts: list[Formula] = []
    for corner in combinations(range(4), repeat=len(at)):
        weight, near = number(c, 1.0, f64), list[Formula]()
        for axis, k in enumerate(corner):
            size, factor = x.shape[_LEAD + axis], weights[axis][k]
            index = floors[axis] + float(k - 1)
            last = size_of(c, size) - 1
            if padding == "zeros":
                outside = (index < 0.0) | (index > last.to(f64))
                factor = outside.choose(0.0, factor, f64)
            index = _inside(c, index, size, padding, corners=corners)
            near.append(index.apply("trunc").to(i64).clip(0, last))
            weight = weight * factor
        parts.append(looked_up(x, batch, near) * weight.to(x.dtype).unsqueeze(weight.rank))
    return reduce(lambda a, b: a + b, parts)


@onnx_op("RoiAlign")
def roi_align(c: OnnxContext) -> Imported:
    """Import the mean or maximum of interpolated samples in regions of images."""
    image, rois, batch = (Formula(c, c.input(k)) for k in range(3))
    wide = f64 if image.dtype is f64 else f32
    x = image.to(wide)
    default = "half_pixel" if c.opset >= 16 else "output_half_pixel"
    half = c.attributes.get("coordinate_transformation_mode", default) == "half_pixel"
    sizes = [c.integer("output_height", 1), c.integer("output_width", 1)]
    ratio = c.integer("sampling_ratio", 0)
    scale = float(c.attributes.get("spatial_scale", 1.0))
    corner = [rois.at(1, k).to(f64) * scale - (0.5 if half else 0.0) for k in range(4)]
    at: list[Formula] = []
    counts: list[Formula] = []
    for axis, (first, last) in enumerate(((corner[1], corner[3]), (corner[0], corner[2]))):
        extent = last - first if half else (last - first).maximum(1.0)
        width = extent / float(sizes[axis])
        count = number(c, ratio, i64).expand(rois.shape[0]) if ratio > 0 else (
            width.apply("ceil").to(i64)
        )  # fmt: skip
        most = as_expr(ratio) if ratio > 0 else read_size(c, count.reduce("max", 0).maximum(0))
        cell = positions(c, sizes[axis]).to(f64).unsqueeze(0, 2)
        part = positions(c, most).to(f64).unsqueeze(0, 1)
        wide_ = width.unsqueeze(1, 2)
        steps = count.to(f64).maximum(1.0).unsqueeze(1, 2)
        at.append(first.unsqueeze(1, 2) + cell * wide_ + (part + 0.5) * wide_ / steps)
        counts.append(count)
    used = [
        positions(c, p.shape[2]).unsqueeze(0) < n.unsqueeze(1)
        for p, n in zip(at, counts, strict=True)
    ]
    y, z = at[0].unsqueeze(2, 4), at[1].unsqueeze(1, 3)
    return _pooled(c, x, batch.to(i64), (y, z), used, counts).to(image.dtype).x


def _pooled(  # noqa: PLR0917  # samples, and how they are combined
    c: OnnxContext, x: Formula, batch: Formula, at: tuple[Formula, Formula],
    used: Sequence[Formula], counts: Sequence[Formula],
) -> Formula:  # fmt: skip
    """Combine the samples ``(region, row, column, i, j)`` of each cell."""
    shape = c.broadcast_shapes([at[0].shape, at[1].shape])
    parts: list[tuple[Formula, Formula]] = []
    valid = used[0].unsqueeze(1, 2, 4) & used[1].unsqueeze(1, 2, 3)
    ends: list[list[tuple[Formula, Formula]]] = []
    for p, size in zip(at, x.shape[_LEAD:], strict=True):
        last = size_of(c, size) - 1
        valid = valid & (p >= -1.0) & (p <= (last + 1).to(f64))
        near = p.maximum(0.0).minimum(last.to(f64))
        low = near.apply("floor")
        fraction = near - low
        high = (low.to(i64) + 1).minimum(last)
        ends.append([(low.to(i64).clip(0, last), 1.0 - fraction), (high.maximum(0), fraction)])
    rows = batch.unsqueeze(1, 2, 3, 4)
    for (i, a), (j, b) in combinations(*ends):
        weight = valid.choose(a * b, 0.0, f64).to(x.dtype)
        parts.append((looked_up(x, rows, [i, j]), weight.unsqueeze(5)))
    terms = [found * weight for found, weight in parts]
    if str(c.attributes.get("mode", "avg")) == "max":
        best = reduce(lambda a, b: a.maximum(b), terms)
        inside = (used[0].unsqueeze(1, 2, 4) & used[1].unsqueeze(1, 2, 3)).expand(*shape)
        best = inside.unsqueeze(5).choose(best, -math.inf, x.dtype)
        pooled = best.reduce("max", 3, 4)
        any_ = (counts[0] * counts[1] > 0).unsqueeze(1, 2, 3)
        pooled = any_.choose(pooled, 0.0, x.dtype)
    else:
        whole = (counts[0] * counts[1]).maximum(1).to(x.dtype)
        pooled = reduce(lambda a, b: a + b, terms).sum(3, 4) / whole.unsqueeze(1, 2, 3)
    return pooled.permute(0, 3, 1, 2)


@onnx_op("DeformConv")
def deform_conv(c: OnnxContext) -> Imported:
    """Import a convolution that reads its operand at offsets, perhaps with factors."""
    image, weight, offset = (Formula(c, c.input(k)) for k in range(3))
    bias, mask = c.optional(3), c.optional(4)
    kernel = [const_value(k) for k in weight.shape[_LEAD:]]
    if None in kernel or len(kernel) != 2:
        raise UnsupportedFormError("DeformConv supports kernels of two constant sizes only")
    kh, kw = (k or 0 for k in kernel)
    strides = c.attributes.get("strides") or [1, 1]
    dilation = c.attributes.get("dilations") or [1, 1]
    pads = c.attributes.get("pads") or [0] * 4
    groups, parts = c.integer("group", 1), c.integer("offset_group", 1)
    n, channels = image.shape[:_LEAD]
    oh, ow = offset.shape[_LEAD:]
    x = image.reshape(n * parts, channels // parts, *image.shape[_LEAD:])
    moved = offset.reshape(n * parts, kh, kw, 2, oh, ow).to(f64)
    at: list[Formula] = []
    for axis, (size, extent) in enumerate(((oh, kh), (ow, kw))):
        taps = positions(c, extent).to(f64) * float(dilation[axis])
        starts = positions(c, size).to(f64) * float(strides[axis]) - float(pads[axis])
        if axis:
            grid = taps.unsqueeze(1, 2) + starts.unsqueeze(0, 1)
        else:
            grid = taps.unsqueeze(1, 2, 3) + starts.unsqueeze(0, 1, 3)
        at.append(moved.at(3, axis) + grid)
    rows = positions(c, n * parts).unsqueeze(1, 2, 3, 4)
    found = bilinear(x, rows, at)
    if mask is not None:
        found = found * Formula(c, mask).reshape(n * parts, kh, kw, oh, ow).unsqueeze(5)
    columns = found.permute(0, 5, 1, 2, 3, 4).reshape(
        n, groups, channels // groups * (kh * kw), oh * ow
    )
    out = weight.shape[0]
    matrix = weight.reshape(1, groups, out // groups, channels // groups * (kh * kw))
    result = (matrix @ columns).reshape(n, out, oh, ow)
    return (result if bias is None else result + Formula(c, bias).unsqueeze(1, 2)).x


@onnx_op("Col2Im")
def col2im(c: OnnxContext) -> Imported:
    """Import the sum of overlapping blocks of an image."""
    x = Formula(c, c.input(0))
    sizes, kernel = c.sizes(c.input(1)), c.sizes(c.input(2))
    rank = len(sizes)
    strides = c.attributes.get("strides") or [1] * rank
    dilation = c.attributes.get("dilations") or [1] * rank
    pads = c.attributes.get("pads") or [0] * 2 * rank
    blocks = [
        (size + pads[k] + pads[k + rank] - dilation[k] * (kernel[k] - 1) - 1) // strides[k] + 1
        for k, size in enumerate(sizes)
    ]
    for count in blocks:
        if const_value(count) is None:
            c.read(size_of(c, count).x)
    flat, mask = number(c, 0, i64), None
    for k, size in enumerate(sizes):
        taps = positions(c, kernel[k]) * dilation[k] - pads[k]
        starts = positions(c, blocks[k]) * strides[k]
        at = taps.unsqueeze(*range(1, 2 * rank - k)) + starts.unsqueeze(*range(1, rank - k))
        inside = (at >= 0) & (at < size_of(c, size))
        mask = inside if mask is None else mask & inside
        flat = flat * size_of(c, size) + at
    if mask is None:
        raise malformed(c.node, "the image has no dimensions")
    whole, area = product(sizes), product(kernel) * product(blocks)
    target = mask.choose(flat, size_of(c, whole), i64).expand(*kernel, *blocks).reshape(area)
    channels = x.shape[1] // product(kernel)
    columns = x.reshape(x.shape[0], channels, area)
    start = Formula(c, c.uniform(0, (x.shape[0], channels, whole + 1), x.dtype))
    found = start.call("index_add", target, columns, axis=2).cut(2, 0, whole)
    return found.reshape(x.shape[0], channels, *sizes).x
