"""Convolution of images of any number of spatial dimensions."""

from __future__ import annotations

import itertools
import math
from typing import Final

import numpy as np

from ...loop.nodes import Binary, Condition, Element, Number, Where
from ...symbolic import Bool, Expr, all_of, as_expr, const_value, eq, to_text
from ..nodes import Info, Operand, TensorInfo
from .composition import Composer
from .errors import OperatorAttributeError
from .evaluation import Array, Evaluation, accumulator_dtype
from .gradients import GradientCall
from .lowering import Lowering, Source, accumulator, buffer_source, cast_to
from .operator import Operator, operator
from .shape_inference import CallFacts, Tensor, shape_text
from .signature import AttributeSpec, OperandSpec, Signature
from .window_gradients import image_gradient, transpose_gradient, weight_gradient
from .windows import LEAD, WINDOWS, Windows, windows_of

_LEAST_RANK: Final = LEAD + 1
_GROUPS: Final = AttributeSpec("groups", "int", 1)


def _operands(call: CallFacts) -> tuple[Tensor, Tensor, int]:
    """Return the image, the weights, and the number of groups, after checks."""
    x = call.require_rank(0, _LEAST_RANK)
    w = call.require_rank(1, x.rank, x.rank)
    call.require_same_dtype((0, 1))
    groups = call.attributes.integer("groups")
    if groups < 1:
        raise OperatorAttributeError(
            f"groups must be at least 1, got {groups}", where=f"operator {call.op}"
        )
    return x, w, groups


def _require_multiple(call: CallFacts, channels: Expr, groups: int, noun: str) -> None:
    """Require that a number of channels is a multiple of the number of groups."""
    if groups > 1:
        reason = f"{to_text(channels)} {noun} channels are not a multiple of {groups} groups"
        call.require(eq(channels % groups, 0), reason)


@operator
class Conv(Operator):
    """Compute a convolution, without mirroring the weights, over the spatial dimensions.

    Parameters
    ----------
    x : tensor
        A numeric or complex dtype, shape ``(n, c, d0, ..., dk)``.
    w : tensor
        The dtype of `x`, shape ``(o, c / groups, k0, ..., kk)``.
    strides : tuple of int, default all 1
        The distance of neighboring windows.
    padding : tuple of int, default all 0
        The number of zeros before the image in each spatial dimension, then of those after it.
    dilation : tuple of int, default all 1
        The distance of neighboring elements of a window.
    groups : int, default 1
        The number of groups of channels; the channels of a group of the result depend on the
        channels of the same group of `x`.

    Returns
    -------
    tensor
        The dtype of `x`, shape ``(n, o, e0, ..., ek)`` with
        ``e = (d + before + after - dilation * (k - 1) - 1) // stride + 1``.

    Raises
    ------
    OperandError
        If the ranks are less than 3 or differ, or the dtypes differ.
    OperatorAttributeError
        If an attribute has a wrong number of values, or a value that is out of range.
    ShapeMismatchError
        If the channels do not match, or a window exceeds the padded image.

    Notes
    -----
    16-bit floats are accumulated in float32. ONNX: ``Conv`` without bias; PyTorch: ``convolution``.

    Examples
    --------
    >>> x, w = np.arange(5).reshape(1, 1, 5), np.array([[[1, 0, -1]]])
    >>> Conv().reference((x, w), {"strides": (2,)})
    array([[[-2, -2]]])
    """

    name = "conv"
    signature = Signature(
        (OperandSpec("x", dtypes="field"), OperandSpec("w", dtypes="field")), (*WINDOWS, _GROUPS)
    )

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape of the result; require matching channels and windows that fit."""
        x, w, groups = _operands(call)
        text = f"cannot convolve {shape_text(x.shape)} with {shape_text(w.shape)}"
        within = f" in {groups} groups" if groups > 1 else ""
        _require_multiple(call, w.shape[0], groups, "output")
        call.require_equal(x.shape[1], w.shape[1] * groups, f"{text}{within}; input channels")
        windows = windows_of(call.op, call.attributes, w.shape[LEAD:])
        windows.require(call, x.shape[LEAD:])
        return TensorInfo((x.shape[0], w.shape[0], *windows.counts(x.shape[LEAD:])), x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Add the matrix products of all positions in the window with NumPy."""
        x, w = run.arrays()
        wide = accumulator_dtype(x.dtype)
        x_wide, w_wide = x.astype(wide), w.astype(wide)
        kernel = w.shape[LEAD:]
        windows = windows_of(self.name, run.attributes, tuple(map(as_expr, kernel)))
        groups = run.attributes.integer("groups")
        patch = windows.patches(x_wide, 0)
        first = patch((0,) * len(kernel))
        image = first.shape[LEAD:]
        windows_count = math.prod(image)
        found = np.zeros((x.shape[0], groups, w.shape[0] // groups, windows_count), wide)
        with np.errstate(all="ignore"):
            for at in itertools.product(*map(range, kernel)):
                terms = patch(at).reshape(x.shape[0], groups, w.shape[1], found.shape[-1])
                factors = w_wide[(slice(None), slice(None), *at)]
                found += factors.reshape(groups, found.shape[2], w.shape[1]) @ terms
            return found.reshape(x.shape[0], w.shape[0], *image).astype(x.dtype)

    def define(self, low: Lowering) -> None:
        """Define the padded image and one reduction block."""
        x, w = low.sources
        windows = windows_of(self.name, low.attributes, w.shape[LEAD:])
        _define(low, windows.extended(low, x, Number(0, x.dtype)), windows, self.name)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Spread the cotangent by the weights, or convolve the image with it."""
        x, w = call.tensor(0), call.tensor(1)
        windows = windows_of(self.name, call.attributes, w.shape[LEAD:])
        groups, g = call.attributes.integer("groups"), call.cotangent(graph)
        if position:
            return weight_gradient(graph, call.args[0], g, windows, w.shape, groups=groups)
        return image_gradient(graph, g, call.args[1], windows, x.shape[LEAD:], groups=groups)


def _define(low: Lowering, x: Source, windows: Windows, name: str) -> None:
    """Define the reduction of a convolution; 16-bit floats use a float32 temporary."""
    w, out = low.sources[1], low.out
    groups = low.attributes.integer("groups")
    wide = accumulator(out.dtype)
    target = out if wide == out.dtype else low.builder.temporary("partial", out.shape, wide)
    rank = len(windows.kernel)
    pointwise = groups == 1 and windows.pointwise

    def value(*indices: Expr) -> Element:
        batch, channel, *window = indices[: out.rank]
        part, *at = indices[out.rank :] + (as_expr(0),) * (rank if pointwise else 0)
        group = _group(channel, w.shape[0], groups)
        own = group * w.shape[1] + part
        image = windows.element(x, (batch, own), window, at)
        return Binary("mul", cast_to(wide, image), cast_to(wide, w(channel, part, *at)))

    letters = [f"d{k}" for k in range(rank)] if rank > 2 else ["y", "x"][-rank:]
    names = ("n", "o", *letters, "c", *(f"k{letter}" for letter in letters))
    terms = w.shape[1:2] if pointwise else w.shape[1:]
    low.builder.reduce(target, terms, value, name=name, names=names[: out.rank + len(terms)])
    if target is not out:
        read = buffer_source(target)
        low.builder.compute(out, lambda *i: cast_to(out.dtype, read(*i)), name="rounded")


def _group(channel: Expr, channels: Expr, groups: int) -> Expr:
    """Return the group of an output channel."""
    if groups == 1:
        return as_expr(0)
    known = const_value(channels)
    return channel // (channels // groups if known is None else known // groups)


@operator
class ConvTranspose(Operator):
    """Compute the transpose of a convolution, which spreads each element over a window.

    Parameters
    ----------
    x : tensor
        A numeric or complex dtype, shape ``(n, c, d0, ..., dk)``.
    w : tensor
        The dtype of `x`, shape ``(c, o / groups, k0, ..., kk)``.
    strides : tuple of int, default all 1
        The distance of neighboring windows in the result.
    padding : tuple of int, default all 0
        The number of elements to remove from the result at the beginning of each spatial dimension,
        then at the end.
    dilation : tuple of int, default all 1
        The distance of neighboring elements of a window.
    output_padding : tuple of int, default all 0
        The number of elements to add to the result at the end of each spatial dimension.
    groups : int, default 1
        The number of groups of channels.

    Returns
    -------
    tensor
        The dtype of `x`, shape ``(n, o, e0, ..., ek)`` with ``e = (d - 1) * stride
        + dilation * (k - 1) + 1 + output_padding - before - after``.

    Raises
    ------
    OperandError
        If the ranks are less than 3 or differ, or the dtypes differ.
    OperatorAttributeError
        If an attribute has a wrong number of values, or a value that is out of range.
    ShapeMismatchError
        If the channels do not match, or the padding exceeds the result.

    Notes
    -----
    16-bit floats are accumulated in float32. ONNX: ``ConvTranspose`` without bias; PyTorch:
    ``convolution`` with ``transposed``.

    Examples
    --------
    >>> x, w = np.array([[[1, 2]]]), np.array([[[1, 1, 1]]])
    >>> ConvTranspose().reference((x, w), {"strides": (2,)})
    array([[[1, 1, 3, 2, 2]]])
    """

    name = "conv_transpose"
    signature = Signature(
        (OperandSpec("x", dtypes="field"), OperandSpec("w", dtypes="field")),
        (*WINDOWS, AttributeSpec("output_padding", "ints", ()), _GROUPS),
    )

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape of the result; require matching channels and legal padding."""
        x, w, groups = _operands(call)
        text = f"cannot convolve {shape_text(x.shape)} with {shape_text(w.shape)}"
        _require_multiple(call, x.shape[1], groups, "input")
        call.require_equal(x.shape[1], w.shape[0], f"{text} transposed; input channels")
        windows = windows_of(call.op, call.attributes, w.shape[LEAD:])
        more = _output_padding(call.op, call.attributes.integers("output_padding"), windows)
        sizes = _spread_sizes(windows, x.shape[LEAD:], more)
        for axis, size in enumerate(sizes):
            reason = f"the result has {to_text(size)} elements in spatial dimension {axis}"
            call.require(size >= 0, reason)
        return TensorInfo((x.shape[0], w.shape[1] * groups, *sizes), x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Add the products of all positions in the window with NumPy."""
        x, w = run.arrays()
        wide = accumulator_dtype(x.dtype)
        kernel = w.shape[LEAD:]
        windows = windows_of(self.name, run.attributes, tuple(map(as_expr, kernel)))
        more = _output_padding(self.name, run.attributes.integers("output_padding"), windows)
        groups = run.attributes.integer("groups")
        n, c, *image = x.shape
        terms = x.astype(wide).reshape(n, groups, c // groups, math.prod(image))
        factors = w.astype(wide).reshape(groups, c // groups, *w.shape[1:])
        geometry = (image, windows.strides, windows.dilation, kernel, more)
        ends = [
            max((d - 1) * s + dil * (k - 1) + 1, 0) + p
            for d, s, dil, k, p in zip(*geometry, strict=True)
        ]
        found = np.zeros((n, groups, w.shape[1], *ends), wide)
        with np.errstate(all="ignore"):
            for at in itertools.product(*map(range, kernel)):
                part = factors[(slice(None), slice(None), slice(None), *at)]
                product = np.swapaxes(part, 1, 2) @ terms
                where = [
                    slice(k * dil, k * dil + (d - 1) * s + 1 if d else k * dil, s)
                    for k, dil, d, s in zip(
                        at, windows.dilation, image, windows.strides, strict=True
                    )
                ]
                found[(..., *where)] += product.reshape(n, groups, w.shape[1], *image)
        kept = [
            slice(b, end - a) for b, a, end in zip(windows.before, windows.after, ends, strict=True)
        ]
        return found.reshape(n, groups * w.shape[1], *ends)[(..., *kept)].astype(x.dtype)

    def define(self, low: Lowering) -> None:
        """Define a reduction over the positions in a window that reach an element."""
        x, w = low.sources
        out = low.out
        windows = windows_of(self.name, low.attributes, w.shape[LEAD:])
        groups = low.attributes.integer("groups")
        wide = accumulator(out.dtype)
        target = out if wide == out.dtype else low.builder.temporary("partial", out.shape, wide)
        geometry = (windows.dilation, windows.before, windows.strides, x.shape[LEAD:])

        def value(*indices: Expr) -> Element:
            batch, channel, *place = indices[: out.rank]
            part, *at = indices[out.rank :]
            group = as_expr(0) if groups == 1 else channel // w.shape[1]
            own = group * (x.shape[1] if groups == 1 else x.shape[1] // groups) + part
            found: list[Expr] = []
            reached: list[Bool] = []
            for i, k, (dilation, before, stride, size) in zip(
                place, at, zip(*geometry, strict=True), strict=True
            ):
                distance = i + before - k * dilation
                if stride > 1:
                    reached.append(eq(distance % stride, 0))
                found.append(distance // stride)
                reached += [distance >= 0, found[-1] < size]
            image = cast_to(wide, x(batch, own, *found))
            weight = cast_to(wide, w(own, channel - group * w.shape[1], *at))
            return Where(Condition(all_of(*reached)), Binary("mul", image, weight), Number(0, wide))

        parts = x.shape[1] if groups == 1 else x.shape[1] // groups
        low.builder.reduce(target, (parts, *w.shape[LEAD:]), value, name=self.name)
        if target is not out:
            read = buffer_source(target)
            low.builder.compute(out, lambda *i: cast_to(out.dtype, read(*i)), name="rounded")

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Convolve the cotangent with the weights, or with the image."""
        w = call.tensor(1)
        windows = windows_of(self.name, call.attributes, w.shape[LEAD:])
        groups = call.attributes.integer("groups")
        return transpose_gradient(call, position, graph, windows, groups)


def _output_padding(op: str, given: tuple[int, ...], windows: Windows) -> tuple[int, ...]:
    """Return the elements to add to the result, which are fewer than a stride or a dilation."""
    found = given or (0,) * len(windows.kernel)
    limits = tuple(map(max, windows.strides, windows.dilation))
    if len(found) != len(limits) or any(
        not 0 <= v < m for v, m in zip(found, limits, strict=False)
    ):
        raise OperatorAttributeError(
            f"output_padding must be {len(limits)} integers of at least 0 and below the stride or "
            f"the dilation {limits}, got {found}",
            where=f"operator {op}",
        )
    return found


def _spread_sizes(
    windows: Windows, sizes: tuple[Expr, ...], more: tuple[int, ...]
) -> tuple[Expr, ...]:
    """Return the spatial dimensions of a transposed convolution."""
    geometry = (sizes, windows.strides, windows.spans, more, windows.before, windows.after)
    return tuple(
        (d - 1) * s + span + 1 + (m - b - a) for d, s, span, m, b, a in zip(*geometry, strict=True)
    )
