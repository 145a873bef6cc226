"""Operators that view complex numbers as pairs of floats, and pairs as complex numbers."""

from __future__ import annotations

import numpy as np

from ...dtype import from_numpy
from ...loop.nodes import Binary, Condition, Element, Unary, Where
from ...symbolic import Expr, as_expr, eq
from ..nodes import Info, TensorInfo
from .errors import OperandError
from .evaluation import Array, Evaluation
from .lowering import Lowering
from .operator import operator
from .shape_inference import CallFacts, shape_text
from .signature import OperandSpec, Signature
from .views import View


@operator
class ViewAsReal(View):
    """View complex numbers as pairs of floats, the real part first.

    Parameters
    ----------
    x : tensor
        A complex dtype, any shape ``(...,)``.

    Returns
    -------
    tensor
        The dtype of the parts, shape ``(..., 2)``.

    Notes
    -----
    Memory planning makes the result a view. PyTorch: ``view_as_real``.

    Examples
    --------
    >>> import numpy as np
    >>> ViewAsReal().reference((np.array([1 + 2j]),))
    array([[1., 2.]])
    """

    name = "view_as_real"
    signature = Signature((OperandSpec("x", dtypes="complex"),))

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape with a last dimension of 2."""
        x = call.tensor(0)
        return TensorInfo((*x.shape, as_expr(2)), x.dtype.part)

    def concrete_shape(self, run: Evaluation) -> tuple[int, ...]:
        """Return the shape with a last dimension of 2."""
        return (*run.array(0).shape, 2)

    def evaluate(self, run: Evaluation) -> Array:
        """View the parts with NumPy."""
        x = np.array(run.array(0), order="C")
        return x.view(from_numpy(x.dtype).part.numpy).reshape((*x.shape, 2))

    def define(self, low: Lowering) -> None:
        """Define one block that selects a part, for results that cannot share the storage."""

        def value(*indices: Expr) -> Element:
            x = low.sources[0](*indices[:-1])
            return Where(Condition(eq(indices[-1], 0)), Unary("real", x), Unary("imag", x))

        low.builder.compute(low.out, value, name=self.name)


@operator
class ViewAsComplex(View):
    """View pairs of floats as complex numbers, the real part first.

    Parameters
    ----------
    x : tensor
        Dtype f32 or f64, shape ``(..., 2)``.

    Returns
    -------
    tensor
        The complex dtype with parts of the dtype of `x`, shape ``(...,)``.

    Raises
    ------
    OperandError
        If `x` has rank 0.
    ShapeMismatchError
        If the last dimension is not 2.

    Notes
    -----
    Memory planning makes the result a view. PyTorch: ``view_as_complex``.

    Examples
    --------
    >>> import numpy as np
    >>> ViewAsComplex().reference((np.array([[1.0, 2.0]]),))
    array([1.+2.j])
    """

    name = "view_as_complex"
    signature = Signature((OperandSpec("x", dtypes="part"),))

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape without the last dimension, which must be 2."""
        x = call.require_rank(0, 1)
        dtype = x.dtype.paired
        if dtype is None:
            raise OperandError(f"no complex dtype has parts of dtype {x.dtype}", where=self.name)
        call.require_equal(x.shape[-1], as_expr(2), f"last dimension of {shape_text(x.shape)}")
        return TensorInfo(x.shape[:-1], dtype)

    def concrete_shape(self, run: Evaluation) -> tuple[int, ...]:
        """Return the shape without the last dimension."""
        return run.array(0).shape[:-1]

    def evaluate(self, run: Evaluation) -> Array:
        """Join the parts with NumPy."""
        x = run.array(0)
        dtype = from_numpy(x.dtype).paired
        return x if dtype is None else np.ascontiguousarray(x).view(dtype.numpy)[..., 0]

    def define(self, low: Lowering) -> None:
        """Define one block that joins the parts, for results that cannot share the storage."""
        x = low.sources[0]

        def value(*indices: Expr) -> Element:
            return Binary("complex", x(*indices, as_expr(0)), x(*indices, as_expr(1)))

        low.builder.compute(low.out, value, name=self.name)
