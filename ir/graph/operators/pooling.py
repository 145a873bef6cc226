"""Pooling: maxima and means over windows of an image."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ...dtype import from_numpy
from ...loop.combiners import Combiner, identity_of
from ...loop.nodes import Buffer, Condition, Element, Where
from ...symbolic import (
    Bool,
    Expr,
    all_of,
    as_expr,
    ceildiv,
    eq,
    evaluate,
    is_proved,
    maximum,
    minimum,
    to_text,
)
from ..nodes import Info, Operand, TensorInfo
from .composition import Composer
from .errors import OperatorAttributeError
from .evaluation import Array, Evaluation, accumulator_dtype
from .gradients import GradientCall
from .lowering import Lowering, accumulator, buffer_source, cast_to, divided, extent_as
from .operator import Operator, operator
from .shape_inference import CallFacts
from .signature import AttributeSpec, AttributeValues, OperandSpec, Signature
from .window_gradients import maximum_gradient, mean_gradient
from .windows import LEAD, WINDOWS, Windows, windows_of

_POOLING: Final = (
    AttributeSpec("kernel", "ints"),
    *WINDOWS,
    AttributeSpec("ceil", "bool", default=False),
)


def _windows(op: str, attributes: AttributeValues, rank: int) -> Windows:
    """Return the windows of a call, over an image of this rank."""
    kernel = attributes.integers("kernel")
    if len(kernel) != rank - LEAD or any(k < 1 for k in kernel):
        raise OperatorAttributeError(
            f"kernel must be {rank - LEAD} integers of at least 1, got {kernel}",
            where=f"operator {op}",
            hint="it has the number of elements of a window in each spatial dimension",
        )
    ceil = attributes.flag("ceil")
    found = windows_of(op, attributes, tuple(map(as_expr, kernel)), ceil=ceil)
    for b, a, k, d in zip(found.before, found.after, kernel, found.dilation, strict=True):
        if max(b, a) > (k - 1) * d:
            raise OperatorAttributeError(
                f"padding {max(b, a)} is larger than {(k - 1) * d}, so that a window would contain "
                "padding only",
                where=f"operator {op}",
                hint="pad less than the extent of a window",
            )
    return found


class _Pooling(Operator):
    """An operator that reduces windows of an image."""

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape of the result; require that a window fits into the image."""
        x = call.require_rank(0, LEAD + 1)
        windows = _windows(call.op, call.attributes, x.rank)
        windows.require(call, x.shape[LEAD:])
        return TensorInfo((*x.shape[:LEAD], *windows.counts(x.shape[LEAD:])), x.dtype)


@operator
class MaxPool(_Pooling):
    """Compute the maximum of each window of an image.

    Parameters
    ----------
    x : tensor
        A dtype of real numbers, shape ``(n, c, d0, ..., dk)``.
    kernel : tuple of int
        The number of elements of a window in each spatial dimension.
    strides : tuple of int, default all 1
        The distance of neighboring windows.
    padding : tuple of int, default all 0
        The number of elements that windows may contain before the image in each spatial dimension,
        then of those after it; they do not contribute.
    dilation : tuple of int, default all 1
        The distance of neighboring elements of a window.
    ceil : bool, default False
        Whether the last window may exceed the padded image, as long as it starts inside of it.

    Returns
    -------
    tensor
        The dtype of `x`, shape ``(n, c, e0, ..., ek)`` with
        ``e = (d + before + after - dilation * (k - 1) - 1) // stride + 1``, rounded up by `ceil`.

    Raises
    ------
    OperandError
        If the rank is less than 3.
    OperatorAttributeError
        If an attribute has a wrong number of values, or a value that is out of range.
    ShapeMismatchError
        If a window exceeds the padded image.

    Notes
    -----
    The maximum of a window with a NaN is NaN. ONNX: the first output of ``MaxPool``.

    Examples
    --------
    >>> MaxPool().reference((np.array([[[1, 4, 2, 3]]]),), {"kernel": (2,), "strides": (2,)})
    array([[[4, 3]]])
    """

    name = "max_pool"
    signature = Signature((OperandSpec("x", dtypes="number"),), _POOLING)

    def evaluate(self, run: Evaluation) -> Array:
        """Compute the maximum over all positions in the window with NumPy."""
        x = run.array(0)
        windows = _windows(self.name, run.attributes, x.ndim)
        wide = x.astype(accumulator_dtype(x.dtype))
        patch = windows.patches(wide, identity_of("max", from_numpy(x.dtype)).value)
        parts = [patch(at) for at in _positions(windows)]
        found = parts[0]
        for part in parts[1:]:
            found = np.maximum(found, part)
        return found.astype(x.dtype)

    def define(self, low: Lowering) -> None:
        """Define the padded image and one reduction block."""
        x, out = low.sources[0], low.out
        windows = _windows(self.name, low.attributes, x.rank)
        padded = windows.extended(low, x, identity_of("max", x.dtype))

        def value(*indices: Expr) -> Element:
            lead, window = indices[:LEAD], indices[LEAD : out.rank]
            return windows.element(padded, lead, window, indices[out.rank :])

        low.builder.reduce(out, windows.kernel, value, combiner="max", name=self.name)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand | None:
        """Spread the cotangent to the maxima; windows beyond the image have no gradient."""
        del position
        windows = _windows(self.name, call.attributes, call.tensor(0).rank)
        return None if windows.ceil else maximum_gradient(call, windows, graph)


@operator
class AvgPool(_Pooling):
    """Compute the mean of each window of an image.

    Parameters
    ----------
    x : tensor
        A floating-point dtype, shape ``(n, c, d0, ..., dk)``.
    kernel : tuple of int
        The number of elements of a window in each spatial dimension.
    strides : tuple of int, default all 1
        The distance of neighboring windows.
    padding : tuple of int, default all 0
        The number of zeros that windows may contain before the image in each spatial dimension,
        then of those after it.
    dilation : tuple of int, default all 1
        The distance of neighboring elements of a window.
    ceil : bool, default False
        Whether the last window may exceed the padded image, as long as it starts inside of it.
    count_padding : bool, default True
        Whether the divisor counts the zeros of the padding.

    Returns
    -------
    tensor
        The dtype of `x`, shape ``(n, c, e0, ..., ek)`` with
        ``e = (d + before + after - dilation * (k - 1) - 1) // stride + 1``, rounded up by `ceil`.

    Raises
    ------
    OperandError
        If the rank is less than 3.
    OperatorAttributeError
        If an attribute has a wrong number of values, or a value that is out of range.
    ShapeMismatchError
        If a window exceeds the padded image.

    Notes
    -----
    Elements beyond the padding, which `ceil` adds, are never counted. 16-bit floats are accumulated
    in float32. ONNX: ``AveragePool``, where `count_padding` is ``count_include_pad``.

    Examples
    --------
    >>> AvgPool().reference((np.array([[[1.0, 3.0, 5.0]]]),), {"kernel": (2,)})
    array([[[2., 4.]]])
    """

    name = "avg_pool"
    signature = Signature(
        (OperandSpec("x", dtypes="float"),),
        (*_POOLING, AttributeSpec("count_padding", "bool", default=True)),
    )

    def evaluate(self, run: Evaluation) -> Array:
        """Compute the mean over all positions in the window with NumPy."""
        x = run.array(0)
        windows = _windows(self.name, run.attributes, x.ndim)
        wide = x.astype(accumulator_dtype(x.dtype))
        patch = windows.patches(wide, 0)
        total = sum((patch(at) for at in _positions(windows)), np.zeros((), wide.dtype))
        padding = run.attributes.flag("count_padding")
        counts = [
            _counted(windows, axis, size, padding=padding)
            for axis, size in enumerate(x.shape[LEAD:])
        ]
        with np.errstate(all="ignore"):
            return (total / _outer(counts, wide.dtype)).astype(x.dtype)

    def define(self, low: Lowering) -> None:
        """Define the padded image, one block that adds, and one that divides."""
        x, out = low.sources[0], low.out
        windows = _windows(self.name, low.attributes, x.rank)
        wide = accumulator(out.dtype)
        padded = windows.extended(low, x, identity_of("add", x.dtype))
        total = low.builder.temporary("total", out.shape, wide)

        def term(*indices: Expr) -> Element:
            lead, window = indices[:LEAD], indices[LEAD : out.rank]
            at = indices[out.rank :]
            return cast_to(wide, windows.element(padded, lead, window, at))

        low.builder.reduce(total, windows.kernel, term, name=self.name)
        read = buffer_source(total)
        counts_padding = low.attributes.flag("count_padding")

        def value(*indices: Expr) -> Element:
            sizes = x.shape[LEAD:]
            count = _count(windows, indices[LEAD:], sizes, padding=counts_padding)
            return cast_to(out.dtype, divided(read(*indices), extent_as(wide, count)))

        low.builder.compute(out, value, name="divide")

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand | None:
        """Spread the cotangent over the windows; those beyond the image have no gradient."""
        del position
        windows = _windows(self.name, call.attributes, call.tensor(0).rank)
        padding = call.attributes.flag("count_padding")
        return None if windows.ceil else mean_gradient(call, windows, graph, padding=padding)


def _positions(windows: Windows) -> itertools.product[tuple[int, ...]]:
    return itertools.product(*(range(evaluate(k, {})) for k in windows.kernel))


def _counted(windows: Windows, axis: int, size: int, *, padding: bool) -> list[int]:
    """Return the number of elements that count, for each window in one dimension."""
    before, after = (windows.before[axis], windows.after[axis]) if padding else (0, 0)
    (count,) = windows.counts((as_expr(size),) * len(windows.kernel))[axis : axis + 1]
    stride, dilation = windows.strides[axis], windows.dilation[axis]
    found: list[int] = []
    for i in range(evaluate(count, {})):
        first = i * stride - windows.before[axis]
        positions = range(first, first + evaluate(windows.kernel[axis], {}) * dilation, dilation)
        found.append(sum(-before <= position < size + after for position in positions))
    return found


def _outer(factors: Sequence[Sequence[int]], dtype: np.dtype[Any]) -> Array:
    """Return the products of one factor per dimension."""
    found = np.ones((), dtype)
    for factor in factors:
        found = found[..., None] * np.asarray(factor, dtype)
    return found


def _count(
    windows: Windows, window: Sequence[Expr], sizes: Sequence[Expr], *, padding: bool
) -> tuple[Expr, ...]:
    """Return the number of elements of a window that count in each dimension."""
    if padding and not windows.ceil:
        return windows.kernel
    first = windows.first(window)
    found: list[Expr] = []
    for axis, (start, size) in enumerate(zip(first, sizes, strict=True)):
        dilation = windows.dilation[axis]
        end = size + windows.after[axis] if padding else size
        stop = minimum(ceildiv(end - start, dilation), windows.kernel[axis])
        skipped = as_expr(0) if padding else maximum(ceildiv(-start, dilation), 0)
        found.append(stop - skipped)
    return tuple(found)


class _Adaptive(Operator):
    """An operator that reduces windows which divide an image into a given number of parts."""

    def deduce(self, call: CallFacts) -> Info:
        """Return the given spatial dimensions."""
        x, sizes = call.require_rank(0, LEAD + 1), call.dims(1)
        if len(sizes) != x.rank - LEAD:
            raise call.error(1, f"expected {x.rank - LEAD} sizes, got {len(sizes)}")
        for size, whole in zip(sizes, x.shape[LEAD:], strict=True):
            call.require(size >= 1, f"the size {to_text(size)} of the result is not positive")
            call.require(whole >= 1, f"the size {to_text(whole)} of the image is not positive")
        return TensorInfo((*x.shape[:LEAD], *sizes), x.dtype)

    def parts(self, run: Evaluation, reduce: Callable[..., Array]) -> Array:
        """Reduce the parts of an image with NumPy."""
        x, sizes = run.array(0), run.dims(1)
        found = np.empty((*x.shape[:LEAD], *sizes), x.dtype)
        axes = tuple(range(LEAD, x.ndim))
        for at in itertools.product(*map(range, sizes)):
            ranges = zip(at, x.shape[LEAD:], sizes, strict=True)
            part = [slice(i * d // s, -(-(i + 1) * d // s)) for i, d, s in ranges]
            of_part = x[(slice(None), slice(None), *part)].astype(accumulator_dtype(x.dtype))
            found[(slice(None), slice(None), *at)] = reduce(of_part, axis=axes)
        return found

    def combine(self, low: Lowering, out: Buffer, combiner: Combiner) -> None:
        """Define the reduction of parts, of which some have one element more than others."""
        x = low.sources[0]
        wholes, sizes = x.shape[LEAD:], out.shape[LEAD:]
        facts = low.call.facts
        equal = [is_proved(eq(d % s, 0), facts) for d, s in zip(wholes, sizes, strict=True)]
        extents = [
            d // s if e else ceildiv(d, s) + 1 for d, s, e in zip(wholes, sizes, equal, strict=True)
        ]

        def value(*indices: Expr) -> Element:
            at: list[Expr] = []
            inside: list[Bool] = []
            window = indices[LEAD : out.rank]
            for i, k, d, s, e in zip(
                window, indices[out.rank :], wholes, sizes, equal, strict=True
            ):
                at.append((i * (d // s) if e else i * d // s) + k)
                if not e:
                    inside.append(at[-1] < ceildiv((i + 1) * d, s))
            found = cast_to(out.dtype, x(*indices[:LEAD], *at))
            other = identity_of(combiner, out.dtype)
            return Where(Condition(all_of(*inside)), found, other) if inside else found

        low.builder.reduce(out, extents, value, combiner=combiner, name=self.name)


@operator
class AdaptiveAvgPool(_Adaptive):
    """Divide an image into parts of almost equal sizes, and compute the mean of each part.

    Parameters
    ----------
    x : tensor
        A floating-point dtype, shape ``(n, c, d0, ..., dk)``.
    sizes : tuple of integers
        The number of parts ``(e0, ..., ek)`` in each spatial dimension. Part ``i`` has the elements
        from ``i * d // e`` up to ``ceildiv((i + 1) * d, e)``; neighboring parts may overlap.

    Returns
    -------
    tensor
        The dtype of `x`, shape ``(n, c, e0, ..., ek)``.

    Raises
    ------
    OperandError
        If the rank is less than 3, or the number of sizes is not that of the spatial dimensions.
    ShapeMismatchError
        If a size is not positive.

    Notes
    -----
    16-bit floats are accumulated in float32. PyTorch: ``adaptive_avg_pool2d``.

    Examples
    --------
    >>> AdaptiveAvgPool().reference((np.array([[[1.0, 3.0, 5.0]]]), (2,)))
    array([[[2., 4.]]])
    """

    name = "adaptive_avg_pool"
    signature = Signature((OperandSpec("x", dtypes="float"), OperandSpec("sizes", ("dims",))))

    def evaluate(self, run: Evaluation) -> Array:
        """Compute the means with NumPy."""
        return self.parts(run, np.mean)

    def define(self, low: Lowering) -> None:
        """Define one block that adds and one that divides."""
        out = low.out
        wide = accumulator(out.dtype)
        total = low.builder.temporary("total", out.shape, wide)
        self.combine(low, total, "add")
        read, wholes, sizes = buffer_source(total), low.sources[0].shape[LEAD:], out.shape[LEAD:]

        def value(*indices: Expr) -> Element:
            window = zip(indices[LEAD:], wholes, sizes, strict=True)
            count = [ceildiv((i + 1) * d, s) - i * d // s for i, d, s in window]
            return cast_to(out.dtype, divided(read(*indices), extent_as(wide, count)))

        low.builder.compute(out, value, name="divide")


@operator
class AdaptiveMaxPool(_Adaptive):
    """Divide an image into parts of almost equal sizes, and compute the maximum of each part.

    Parameters
    ----------
    x : tensor
        A dtype of real numbers, shape ``(n, c, d0, ..., dk)``.
    sizes : tuple of integers
        The number of parts ``(e0, ..., ek)`` in each spatial dimension. Part ``i`` has the elements
        from ``i * d // e`` up to ``ceildiv((i + 1) * d, e)``; neighboring parts may overlap.

    Returns
    -------
    tensor
        The dtype of `x`, shape ``(n, c, e0, ..., ek)``.

    Raises
    ------
    OperandError
        If the rank is less than 3, or the number of sizes is not that of the spatial dimensions.
    ShapeMismatchError
        If a size is not positive.

    Notes
    -----
    PyTorch: the values of ``adaptive_max_pool2d``.

    Examples
    --------
    >>> AdaptiveMaxPool().reference((np.array([[[1, 5, 3]]]), (2,)))
    array([[[5, 5]]])
    """

    name = "adaptive_max_pool"
    signature = Signature((OperandSpec("x", dtypes="number"), OperandSpec("sizes", ("dims",))))

    def evaluate(self, run: Evaluation) -> Array:
        """Compute the maxima with NumPy."""
        return self.parts(run, np.max)

    def define(self, low: Lowering) -> None:
        """Define one reduction block."""
        self.combine(low, low.out, "max")
