"""Import handlers of the quantization operators of ``torch.ops.quantized_decomposed``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dtype import DType, f32, f64
from ..graph.nodes import ConstantRef
from ..symbolic import as_expr, const_value
from .elementwise import convert, elementwise
from .shaping import reshape
from .tensors import Imported, Uniform
from .torch_constants import torch_dtype
from .torch_context import OperandLike, TorchContext, aten
from .unsupported import UnsupportedFormError

_NAMESPACE = "quantized_decomposed."


@aten(f"{_NAMESPACE}quantize_per_tensor")
def quantize_per_tensor(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, scale: OperandLike, zero: OperandLike, low: OperandLike,
    high: OperandLike, dtype: Any,
) -> Imported:  # fmt: skip
    """Import ``clamp(round(x * (1 / scale)) + zero, low, high)`` in f32."""
    wide = convert(t, x, f32)
    inverse = convert(t, _inverse(t, convert(t, t.number(scale, f64), f64)), f32)
    found = elementwise(t, "round", [elementwise(t, "multiply", [wide, _scalar(t, inverse)])])
    point = _scalar(t, convert(t, t.number(zero, f32), f32))
    return _clamped(t, elementwise(t, "add", [found, point]), low, high, dtype)


@aten(f"{_NAMESPACE}quantize_per_channel")
def quantize_per_channel(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, scales: Imported, zeros: Imported, axis: int, low: int,
    high: int, dtype: Any,
) -> Imported:  # fmt: skip
    """Import ``clamp(round(x * (1 / scales)) + zeros, low, high)`` with scales along an axis."""
    inverse = _along(t, _inverse(t, scales), x, axis)
    wide = convert(t, x, inverse.dtype)
    found = elementwise(t, "round", [elementwise(t, "multiply", [wide, inverse])])
    points = _along(t, convert(t, zeros, found.dtype), x, axis)
    return _clamped(t, elementwise(t, "add", [found, points]), low, high, dtype)


@aten(f"{_NAMESPACE}quantize_per_token")
def quantize_per_token(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, scales: Imported, zeros: Imported, low: int, high: int,
    dtype: Any,
) -> Imported:  # fmt: skip
    """Import ``clamp(round(x * (1 / scales) + zeros), low, high)`` with scales per row."""
    inverse = _inverse(t, scales)
    found = elementwise(t, "multiply", [convert(t, x, inverse.dtype), inverse])
    found = elementwise(t, "add", [found, convert(t, zeros, found.dtype)])
    return _clamped(t, elementwise(t, "round", [found]), low, high, dtype)


@aten(f"{_NAMESPACE}dequantize_per_tensor")
def dequantize_per_tensor(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, scale: OperandLike, zero: OperandLike, low: OperandLike,
    high: OperandLike, dtype: Any, *, out_dtype: Any = None,
) -> Imported:  # fmt: skip
    """Import ``(x - zero) * scale``, computed in ``out_dtype``."""
    del low, high, dtype
    target = f32 if out_dtype is None else torch_dtype(out_dtype)
    point = _scalar(t, convert(t, t.number(zero, target), target))
    found = elementwise(t, "subtract", [convert(t, x, target), point])
    by = _scalar(t, convert(t, t.number(scale, target), target))
    return elementwise(t, "multiply", [found, by])


@aten(f"{_NAMESPACE}dequantize_per_channel")
def dequantize_per_channel(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, scales: Imported, zeros: Imported | None, axis: int, low: int,
    high: int, dtype: Any, *, out_dtype: Any = None,
) -> Imported:  # fmt: skip
    """Import ``(x - zeros) * scales`` with scales and zero points along an axis."""
    del low, high, dtype
    target = f32 if out_dtype is None else torch_dtype(out_dtype)
    by = _along(t, scales, x, axis)
    points = None if zeros is None else _along(t, zeros, x, axis)
    return convert(t, _dequantized(t, x, by, points), target)


@aten(f"{_NAMESPACE}dequantize_per_token")
def dequantize_per_token(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, scales: Imported, zeros: Imported, low: int, high: int,
    dtype: Any, output_dtype: Any,
) -> Imported:  # fmt: skip
    """Import ``(x - zeros) * scales`` with scales and zero points per row."""
    del low, high, dtype
    return convert(t, _dequantized(t, x, scales, zeros), torch_dtype(output_dtype))


@aten(f"{_NAMESPACE}dequantize_per_channel_group")
def dequantize_per_channel_group(  # noqa: PLR0917  # the order of PyTorch
    t: TorchContext, x: Imported, scales: Imported, zeros: Imported | None, low: int, high: int,
    dtype: Any, group: int, output_dtype: Any,
) -> Imported:  # fmt: skip
    """Import ``(x - zeros) * scales`` with scales and zero points of groups of a row.

    Constant zero points become elements of the dtype of ``x``.
    """
    del low, high, dtype
    points = [] if zeros is None else [_narrow(t, zeros, x.dtype)]
    count = x.shape[-1] // group
    shape = (x.shape[0], count)
    operands = [t.plain(reshape(t, v, shape)) for v in (scales, *points) if v is not None]
    found = t.apply("dequantize_linear", t.plain(x), *operands, axis=1, block_size=group)
    return convert(t, found, torch_dtype(output_dtype))


def _dequantized(
    t: TorchContext, x: Imported, scales: Imported, zeros: Imported | None
) -> Imported:
    """Return ``(x - zeros) * scales`` in the dtype of the scales; the difference is exact."""
    found = convert(t, x, scales.dtype)
    if zeros is not None:
        found = elementwise(t, "subtract", [found, convert(t, zeros, scales.dtype)])
    return elementwise(t, "multiply", [found, scales])


def _clamped(
    t: TorchContext, x: Imported, low: OperandLike, high: OperandLike, dtype: Any
) -> Imported:
    """Limit rounded numbers to a range, and convert them."""
    for op, bound in (("maximum", low), ("minimum", high)):
        x = elementwise(t, op, [x, _scalar(t, convert(t, t.number(bound, x.dtype), x.dtype))])
    return convert(t, x, torch_dtype(dtype))


def _inverse(t: TorchContext, scale: Imported) -> Imported:
    """Return the reciprocals of scales in their dtype."""
    wide = scale.dtype if scale.dtype in (f32, f64) else f32
    return elementwise(t, "divide", [t.uniform(1.0, (), wide), convert(t, scale, wide)])


def _scalar(t: TorchContext, x: Imported) -> Imported:
    """Return a tensor of one element with rank 0."""
    return x if x.rank == 0 else reshape(t, x, ())


def _along(t: TorchContext, x: Imported, like: Imported, axis: int) -> Imported:
    """Return a vector as a tensor that broadcasts along an axis of another one."""
    own = axis % max(like.rank, 1)
    one = as_expr(1)
    return reshape(t, x, tuple(x.shape[0] if k == own else one for k in range(like.rank)))


def _narrow(t: TorchContext, zeros: Imported, dtype: DType) -> Imported | None:
    """Return constant zero points in the dtype of the quantized elements; None if they are 0.

    Raises
    ------
    UnsupportedFormError
        If they are not constants, or not numbers of the dtype.
    """
    if isinstance(zeros.known, Uniform) and zeros.known.value == 0:
        return None
    if not isinstance(zeros.operand, ConstantRef):
        raise UnsupportedFormError("zero points of groups must be constants")
    key = zeros.operand.key
    array: NDArray[Any] = np.asarray(t.constants[key].load())
    fits = array.size == 0 or dtype.lowest <= array.min() <= array.max() <= dtype.highest
    if not fits or np.any(np.mod(array.astype(np.float64), 1.0)):
        raise UnsupportedFormError(
            f"zero points of groups must be integers in {dtype.lowest} to {dtype.highest}, got "
            f"{array.min()} to {array.max()}"
        )
    sizes = tuple(const_value(d) or 0 for d in zeros.shape)
    return t.constant(f"{key}.{dtype}", sizes, dtype, lambda: array.astype(dtype.numpy))
