"""The reinterpretation of bits."""

from __future__ import annotations

import numpy as np

from ...dtype import DType, bool_
from ...loop.nodes import Element, Reinterpret
from ...symbolic import Expr
from ..nodes import Info, TensorInfo
from .evaluation import Array, Evaluation
from .lowering import Lowering
from .operator import Operator, operator
from .shape_inference import CallFacts
from .signature import AttributeSpec, OperandSpec, Signature

_NARROW = {16: np.float16, 32: np.float32}


@operator
class Bitcast(Operator):
    """Reinterpret the bits of each element as another dtype of the same number of bits.

    Parameters
    ----------
    x : tensor
        A dtype of real numbers, any shape ``(...,)``.
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
        If the numbers of bits differ, or a dtype is bool, complex, or packed.

    Notes
    -----
    NumPy: ``view``; ONNX: ``BitCast``; PyTorch: ``view`` with a dtype.

    Examples
    --------
    >>> Bitcast().reference((np.array([1.0, -0.0], np.float32),), {"dtype": "u32"})
    array([1065353216, 2147483648], dtype=uint32)
    """

    name = "bitcast"
    signature = Signature((OperandSpec("x"),), (AttributeSpec("dtype", "dtype"),))

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape of ``x``; check the numbers of bits."""
        x, target = call.tensor(0), call.attributes.dtype("dtype")
        if x.dtype.bits != target.bits or not (_has_bits(x.dtype) and _has_bits(target)):
            raise call.error(
                0,
                f"the bits of dtype {x.dtype} ({x.dtype.bits}) are not those of dtype {target} "
                f"({target.bits})",
                "choose dtypes of real numbers with the same number of bits, of at least 8",
            )
        return TensorInfo(x.shape, target)

    def evaluate(self, run: Evaluation) -> Array:
        """Reinterpret with NumPy; floats that were widened are narrowed before."""
        x, target = run.array(0), run.attributes.dtype("dtype")
        if x.dtype == np.float64 and target.bits in _NARROW:
            x = x.astype(_NARROW[target.bits])
        return np.ascontiguousarray(x).view(target.numpy).reshape(x.shape).astype(
            run.dtype_of(target)
        )  # fmt: skip

    def define(self, low: Lowering) -> None:
        """Define one block over the elements."""
        target = low.attributes.dtype("dtype")

        def value(*indices: Expr) -> Element:
            x = low.sources[0](*indices)
            return x if x.dtype == target else Reinterpret(target, x)

        low.builder.compute(low.out, value, name="bitcast")


def _has_bits(dtype: DType) -> bool:
    return dtype is not bool_ and not dtype.is_complex and not dtype.is_packed
