"""The conversion operator."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dtype import DType, from_numpy
from ...loop.nodes import Element
from ...narrowing import narrowed
from ...packing import pack, unpack
from ...symbolic import Expr
from ..nodes import Info, Operand, TensorInfo
from .composition import Composer
from .evaluation import Array, Evaluation
from .gradients import GradientCall
from .lowering import Lowering, cast_to
from .operator import Operator, operator
from .shape_inference import CallFacts
from .signature import AttributeSpec, OperandSpec, Signature


@operator
class Cast(Operator):
    """Convert the elements of a tensor to another dtype.

    Parameters
    ----------
    x : tensor
        Any dtype, any shape ``(...,)``.
    dtype : str
        The name of the new dtype.

    Returns
    -------
    tensor
        The shape of `x`, dtype `dtype`.

    Raises
    ------
    UnknownDTypeError
        If there is no such dtype.
    OperandError
        If `x` is complex and the new dtype is not.

    Notes
    -----
    Float to integer truncates, saturates and maps NaN to 0; integer to integer wraps. NumPy:
    ``astype``; ONNX: ``Cast``.

    Examples
    --------
    >>> Cast().reference((np.array([300.0, -1.5, np.nan]),), {"dtype": "u8"})
    array([255,   0,   0], dtype=uint8)
    """

    name = "cast"
    signature = Signature((OperandSpec("x"),), (AttributeSpec("dtype", "dtype"),))

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape of ``x``; keep symbolic values if the new dtype can represent them."""
        x = call.tensor(0)
        target = call.attributes.dtype("dtype")
        if x.dtype.is_complex and not target.is_complex:
            raise call.error(
                0, f"expected a dtype of real numbers, got {x.dtype}", "apply real, imag, or abs"
            )
        keeps = x.elements is not None and _keeps_values(x.dtype, target)
        return TensorInfo(x.shape, target, elements=x.elements if keeps else None)

    def evaluate(self, run: Evaluation) -> Array:
        """Convert with NumPy."""
        return convert(run.array(0), run.dtype_of(run.attributes.dtype("dtype")))

    def define(self, low: Lowering) -> None:
        """Define one block over the elements."""
        target = low.attributes.dtype("dtype")

        def value(*indices: Expr) -> Element:
            return cast_to(target, low.sources[0](*indices))

        low.builder.compute(low.out, value, name="cast")

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Cast the cotangent to the dtype of the operand."""
        del position
        return graph.emit("cast", call.cotangent(graph), dtype=call.tensor(0).dtype.name)


def _keeps_values(source: DType, target: DType) -> bool:
    wide_enough = target.is_integer and target.bits >= 32
    return wide_enough and (source.is_integer or source.kind == "bool")


def convert(x: Array, target: np.dtype[Any]) -> Array:
    """Convert an array with loop-level semantics: floats saturate to integers, integers wrap."""
    source, row = from_numpy(x.dtype), from_numpy(target)
    if source.is_float and row.is_integer:
        # 2**63 - 1 is not a float64 value, so compare before converting.
        wide = np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0)
        low, high = wide <= float(row.lowest), wide >= float(row.highest)
        whole = row.register.numpy
        inside = np.where(low | high, 0.0, wide).astype(whole)
        return (
            np.where(low, row.lowest, np.where(high, row.highest, inside))
            .astype(whole)
            .astype(target)
        )
    with np.errstate(all="ignore"):
        if source.is_integer and row.is_packed:
            return unpack(pack(x, row), x.shape, row)
        return narrowed(x, row) if row.is_float else x.astype(target)
