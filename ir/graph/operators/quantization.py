"""Conversions to and from quantized elements, with scales per tensor, slice or block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dtype import BYTE, DType, f32, f64, from_numpy
from ...loop.nodes import Binary, Element, Number, Unary
from ...narrowing import narrowed
from ...symbolic import Expr, as_expr, ceildiv, const_value
from ..nodes import Info, TensorInfo
from .binary import EITHER
from .casting import convert
from .errors import OperatorAttributeError
from .evaluation import Array, Evaluation
from .lowering import Lowering, Source, cast_to, literal_number
from .operator import Operator, operator
from .shape_inference import CallFacts, Tensor, shape_text
from .signature import AttributeSpec, OperandSpec, Signature, kind_of

_LAYOUT = (AttributeSpec("axis", "int", 1), AttributeSpec("block_size", "int", 0))
_EXACT_IN_SINGLE = 16
"""The most bits of integers whose sums and differences are exact in f32."""
_SCALE, _ZERO = 1, 2
_WORD = 32


@operator
class QuantizeLinear(Operator):
    """Quantize a tensor: ``saturate(round(x / scale) + zero_point)``.

    Parameters
    ----------
    x : tensor
        A floating-point dtype or i32, any shape ``(...,)``.
    scale : tensor or number
        A floating-point dtype. For one scale, shape ``()`` or ``(1,)``; for one scale per slice
        along `axis`, the size of this dimension, shape ``(d,)``; for one scale per block along
        `axis`, the shape of `x` with this dimension divided by `block_size` and rounded up.
    zero_point : tensor or number, optional
        Dtype `dtype`, the shapes of `scale`; by default 0. Float dtypes have no zero point.
    dtype : str
        The dtype of the result: an integer dtype of at most 32 bits, or a float dtype of 8 bits.
    axis : int, default 1
        The axis of several scales.
    block_size : int, default 0
        The number of elements along `axis` with a common scale; 0 if there are no blocks. The last
        block may be partial.
    saturate : bool, default True
        For float dtypes, whether numbers beyond the largest finite one become this one; otherwise
        they become infinity, or NaN if the dtype has no infinity.
    precision : str, default ""
        The dtype of the quotient; by default the wider one of `x` and `scale`.

    Returns
    -------
    tensor
        The shape of `x`, dtype `dtype`.

    Raises
    ------
    OperandError
        If a dtype is illegal, or the zero point has another dtype than `dtype`.
    OperatorAttributeError
        If `dtype` is not a quantized dtype, or `block_size` is negative.
    ShapeMismatchError
        If the shape of a scale or zero point is illegal.

    Notes
    -----
    Quotients are rounded to the nearest integer, halves to even; NaN becomes 0. Float dtypes are
    rounded once, from the quotient. ONNX: ``QuantizeLinear``.

    Examples
    --------
    >>> x = np.array([0.5, 1.5, -300.0], np.float32)
    >>> QuantizeLinear().reference((x, np.float32([1.0]), np.int8([1])), {"dtype": "i8"})
    array([   1,    3, -128], dtype=int8)
    """

    name = "quantize_linear"
    signature = Signature(
        (
            OperandSpec("x", dtypes="number"),
            OperandSpec("scale", EITHER, "float"),
            OperandSpec("zero_point", EITHER, "number", optional=True),
        ),
        (
            AttributeSpec("dtype", "dtype"),
            *_LAYOUT,
            AttributeSpec("saturate", "bool", default=True),
            AttributeSpec("precision", "dtype", ""),
        ),
    )

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape of ``x``; check dtypes, and the shapes of scale and zero point."""
        x, target = call.tensor(0), call.attributes.dtype("dtype")
        if not x.dtype.is_float and (x.dtype.kind != "int" or x.dtype.bits != _WORD):
            raise call.error(0, f"expected a floating-point dtype or i32, got {x.dtype}")
        if not is_quantized(target):
            raise OperatorAttributeError(
                f"{target} is not a quantized dtype",
                where=call.attributes.where,
                hint="expected an integer dtype of at most 32 bits, or a float dtype of 8 bits",
            )
        _precision(call, x.dtype)
        _check_layout(call, x, target)
        return TensorInfo(x.shape, target)

    def evaluate(self, run: Evaluation) -> Array:
        """Quantize with NumPy."""
        x, target = run.array(0), run.attributes.dtype("dtype")
        scale = _expanded(run, _SCALE, x.shape, f32.numpy)
        given = run.attributes.text("precision")
        own = quotient_dtype(from_numpy(x.dtype), from_numpy(scale.dtype))
        precision = run.attributes.dtype("precision") if given else own
        wide = f64 if run.wide else precision.compute
        left, right = (_as(_as(v, precision), wide) for v in (x, scale))
        with np.errstate(all="ignore"):
            quotient: Array = left / right
            quotient = quotient if run.wide else narrowed(quotient, precision)
            if target.is_float:
                return self._as_float(run, quotient, target)
            sums = f32 if target.bits <= _EXACT_IN_SINGLE and not run.wide else f64
            found = _as(np.round(_as(quotient, wide)), sums)
            if run.has(_ZERO):
                found = found + _as(_expanded(run, _ZERO, x.shape, target.numpy), sums)
        return convert(found, target.numpy)

    def _as_float(self, run: Evaluation, quotient: Array, target: DType) -> Array:
        if run.attributes.flag("saturate"):
            quotient = np.clip(_as(quotient, f64), -target.largest, target.largest)
        return narrowed(quotient, target).astype(run.dtype_of(target))

    def define(self, low: Lowering) -> None:
        """Define one block over the elements."""
        target = low.attributes.dtype("dtype")
        x = low.sources[0]
        precision = _precision(low.call, x.dtype)
        sums = f32 if target.bits <= _EXACT_IN_SINGLE else f64

        def value(*indices: Expr) -> Element:
            by = _loaded(low, _SCALE, indices, precision)
            quotient = Binary("div", cast_to(precision, x(*indices)), cast_to(precision, by))
            if target.is_float:
                return _saturated(quotient, low.attributes.flag("saturate"), target)
            found: Element = cast_to(sums, Unary("round", quotient))
            if low.call.has(_ZERO):
                zero = cast_to(sums, _loaded(low, _ZERO, indices, target))
                found = Binary("add", found, zero)
            return cast_to(target, found)

        low.builder.compute(low.out, value, name=self.name)


@operator
class DequantizeLinear(Operator):
    """Dequantize a tensor: ``(x - zero_point) * scale``.

    Parameters
    ----------
    x : tensor
        An integer dtype of at most 32 bits, or a float dtype of 8 bits, any shape ``(...,)``.
    scale : tensor or number
        A floating-point dtype. For one scale, shape ``()`` or ``(1,)``; for one scale per slice
        along `axis`, the size of this dimension, shape ``(d,)``; for one scale per block along
        `axis`, the shape of `x` with this dimension divided by `block_size` and rounded up.
    zero_point : tensor or number, optional
        The dtype of `x`, the shapes of `scale`; by default 0. Float dtypes have no zero point.
    axis : int, default 1
        The axis of several scales.
    block_size : int, default 0
        The number of elements along `axis` with a common scale; 0 if there are no blocks. The last
        block may be partial.
    dtype : str, default ""
        The dtype of the result, a floating-point dtype; by default that of `scale`, or f32 if it is
        a number.

    Returns
    -------
    tensor
        The shape of `x`, dtype `dtype`.

    Raises
    ------
    OperandError
        If a dtype is illegal, or the zero point has another dtype than `x`.
    OperatorAttributeError
        If `dtype` is not a floating-point dtype, or `block_size` is negative.
    ShapeMismatchError
        If the shape of a scale or zero point is illegal.

    Notes
    -----
    Differences are exact for dtypes of at most 16 bits. The product is computed in f32 (f64 if a
    dtype is f64) and rounded once. A product of matrices fuses the operator, so the weights remain
    quantized in memory. ONNX: ``DequantizeLinear``.

    Examples
    --------
    >>> x, scale = np.array([[1, -2, 3, 7]], np.int8), np.array([[0.5, 2.0]], np.float32)
    >>> DequantizeLinear().reference((x, scale), {"block_size": 2})
    array([[ 0.5, -1. ,  6. , 14. ]], dtype=float32)
    """

    name = "dequantize_linear"
    signature = Signature(
        (
            OperandSpec("x", dtypes="number"),
            OperandSpec("scale", EITHER, "float"),
            OperandSpec("zero_point", EITHER, "number", optional=True),
        ),
        (*_LAYOUT, AttributeSpec("dtype", "dtype", "")),
    )

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape of ``x``; check dtypes, and the shapes of scale and zero point."""
        x = call.tensor(0)
        if not is_quantized(x.dtype):
            raise call.error(
                0, f"expected an integer dtype of at most 32 bits or a float dtype of 8 bits, got "
                f"{x.dtype}",
            )  # fmt: skip
        target = _result_dtype(call)
        if not target.is_float:
            raise OperatorAttributeError(
                f"dtype must be a floating-point dtype, got {target}", where=call.attributes.where
            )
        _check_layout(call, x, x.dtype)
        return TensorInfo(x.shape, target)

    def evaluate(self, run: Evaluation) -> Array:
        """Dequantize with NumPy."""
        x = run.array(0)
        scale = _expanded(run, _SCALE, x.shape, f32.numpy)
        given = run.attributes.text("dtype")
        target = run.attributes.dtype("dtype") if given else from_numpy(scale.dtype)
        wide = f64 if run.wide else _product_dtype(from_numpy(scale.dtype), target)
        with np.errstate(all="ignore"):
            found = _as(x, f64)
            if run.has(_ZERO):
                found = found - _as(_expanded(run, _ZERO, x.shape, x.dtype), f64)
            product: Array = _as(found, wide) * _as(scale, wide)
            return narrowed(product, target).astype(run.dtype_of(target))

    def define(self, low: Lowering) -> None:
        """Define one block over the elements."""
        target, x = low.out.dtype, low.sources[0]
        scale = _scale_dtype(low.call)
        product = _product_dtype(scale, target)
        wide = f32 if x.dtype.bits <= _EXACT_IN_SINGLE else f64

        def value(*indices: Expr) -> Element:
            found = x(*indices)
            if low.call.has(_ZERO):
                zero = cast_to(wide, _loaded(low, _ZERO, indices, x.dtype))
                found = Binary("sub", cast_to(wide, found), zero)
            by = cast_to(product, _loaded(low, _SCALE, indices, scale))
            return cast_to(target, Binary("mul", cast_to(product, found), by))

        low.builder.compute(low.out, value, name=self.name)


def is_quantized(dtype: DType) -> bool:
    """Return whether a dtype is one of quantized tensors.

    Examples
    --------
    >>> from ...dtype import bf16, f8_e4m3, i4, i64
    >>> [is_quantized(d) for d in (i4, f8_e4m3, bf16, i64)]
    [True, True, False, False]
    """
    return dtype.bits <= (BYTE if dtype.is_float else _WORD) and dtype.kind != "bool"


def _as(array: Array, dtype: DType) -> Array:
    return array.astype(dtype.numpy)


def quotient_dtype(x: DType, scale: DType) -> DType:
    """Return the dtype of quotients of two dtypes: the wider one, or that of the scale."""
    if not x.is_float or x.is_exact_in(scale):
        return scale
    return x if scale.is_exact_in(x) else f32


def _scale_dtype(call: CallFacts) -> DType:
    """Return the dtype of the scale; f32 for a number."""
    return f32 if kind_of(call.args[_SCALE]) == "number" else call.tensor(_SCALE).dtype


def _precision(call: CallFacts, x: DType) -> DType:
    """Return the dtype of quotients."""
    if not call.attributes.text("precision"):
        return quotient_dtype(x, _scale_dtype(call))
    found = call.attributes.dtype("precision")
    if not found.is_float:
        raise OperatorAttributeError(
            f"precision must be a floating-point dtype, got {found}", where=call.attributes.where
        )
    return found


def _result_dtype(call: CallFacts) -> DType:
    """Return the dtype of dequantized elements."""
    given = call.attributes.text("dtype")
    return call.attributes.dtype("dtype") if given else _scale_dtype(call)


def _product_dtype(scale: DType, target: DType) -> DType:
    return f64 if f64 in (scale, target) else f32


def _saturated(quotient: Element, saturate: bool, target: DType) -> Element:  # noqa: FBT001
    """Return a quotient as a float, limited to the finite numbers if ``saturate``."""
    if saturate:
        wide = cast_to(f32, quotient) if quotient.dtype.bits < f32.bits else quotient
        low, high = (Number(sign * target.largest, wide.dtype) for sign in (-1.0, 1.0))
        quotient = Binary("min", Binary("max", wide, low), high)
    return cast_to(target, quotient)


def _check_layout(call: CallFacts, x: Tensor, quantized: DType) -> None:
    """Check the dtype of the zero point, and the shapes of scale and zero point."""
    block = call.attributes.integer("block_size")
    if block < 0:
        raise OperatorAttributeError(
            f"the size of a block must be at least 0, got {block}", where=call.attributes.where
        )
    _check_shape(call, _SCALE, x, block)
    if not call.has(_ZERO):
        return
    if quantized.is_float:
        raise call.error(_ZERO, f"dtype {quantized} has no zero point", hint="omit the operand")
    if kind_of(call.args[_ZERO]) == "number":
        value = call.literal(_ZERO).value
        if value != int(value) or not quantized.lowest <= value <= quantized.highest:
            message = f"zero point {value} is not in {quantized.lowest} to {quantized.highest}"
            raise call.error(_ZERO, f"{message}, the values of dtype {quantized}")
        return
    found = call.tensor(_ZERO).dtype
    if found != quantized:
        raise call.error(
            _ZERO, f"expected dtype {quantized}, that of the quantized elements, got {found}"
        )
    _check_shape(call, _ZERO, x, block)


def _check_shape(call: CallFacts, position: int, x: Tensor, block: int) -> None:
    """Require the shape of a scale or zero point: of one element, of an axis, or of blocks."""
    if kind_of(call.args[position]) == "number":
        return
    shape = call.tensor(position).shape
    if _is_single(shape):
        return
    rank = x.rank if block else 1
    if len(shape) != rank:
        per = f"per block of {block} elements" if block else "per slice"
        raise call.error(
            position,
            f"expected rank {rank} for one {call.name(position)} {per} of a tensor of shape "
            f"{shape_text(x.shape)}, got shape {shape_text(shape)}",
            "pass block_size for scales of blocks" if not block else "",
        )
    axis = call.attributes.axis("axis", x.rank)
    if not block:
        reason = f"axis {axis} of shape {shape_text(x.shape)} needs one {call.name(position)} each"
        call.require_equal(shape[0], x.shape[axis], reason)
        return
    for k, (have, size) in enumerate(zip(shape, x.shape, strict=True)):
        wanted = ceildiv(size, block) if k == axis else size
        blocks = f"; blocks of {block} elements along axis {axis}" if k == axis else ""
        reason = f"{call.name(position)} of shape {shape_text(shape)} for {shape_text(x.shape)}"
        call.require_equal(have, wanted, f"{reason}: dimension {k}{blocks}")


def _is_single(shape: Sequence[Expr]) -> bool:
    return not shape or (len(shape) == 1 and const_value(shape[0]) == 1)


def _loaded(low: Lowering, position: int, indices: tuple[Expr, ...], dtype: DType) -> Element:
    """Return the element of a scale or zero point for an element of ``x``."""
    if kind_of(low.call.args[position]) == "number":
        return literal_number(low.call.literal(position), dtype)
    source = low.sources[position]
    return source(*_positions(low, source, indices))


def _positions(low: Lowering, source: Source, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    if _is_single(source.shape):
        return tuple(as_expr(0) for _ in source.shape)
    axis = low.attributes.axis("axis", len(indices))
    block = low.attributes.integer("block_size")
    if not block:
        return (indices[axis],)
    return tuple(i // block if k == axis else i for k, i in enumerate(indices))


def _expanded(
    run: Evaluation, position: int, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array:
    """Return a scale or zero point that broadcasts to a shape; a number gets a dtype."""
    value = run.args[position]
    if not isinstance(value, np.ndarray):
        return np.asarray(run.number(position), dtype)
    if value.ndim == 0 or value.shape == (1,):
        return value.reshape(())
    axis, block = run.attributes.axis("axis", len(shape)), run.attributes.integer("block_size")
    if not block:
        return value.reshape([d if k == axis else 1 for k, d in enumerate(shape)])
    return np.repeat(value, block, axis=axis).take(np.arange(shape[axis]), axis=axis)
