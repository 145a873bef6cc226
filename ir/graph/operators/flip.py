"""The flip operator."""

from __future__ import annotations

import numpy as np

from ...loop.nodes import Element
from ...symbolic import Expr
from ..nodes import Info, Operand, TensorInfo
from .composition import Composer
from .evaluation import Array, Evaluation
from .gradients import GradientCall
from .lowering import Lowering
from .operator import Operator, operator
from .shape_inference import CallFacts
from .signature import AttributeSpec, OperandSpec, Signature


@operator
class Flip(Operator):
    """Reverse the order of the elements along some axes.

    Parameters
    ----------
    x : tensor
        Any dtype, shape ``(d0, ..., dn)``.
    axes : tuple of int
        The axes to reverse.

    Returns
    -------
    tensor
        The dtype and shape of `x`.

    Raises
    ------
    OperandError
        If an axis is out of range or listed twice.

    Notes
    -----
    NumPy and PyTorch: ``flip``.

    Examples
    --------
    >>> import numpy as np
    >>> Flip().reference((np.arange(3),), {"axes": (0,)})
    array([2, 1, 0])
    """

    name = "flip"
    signature = Signature((OperandSpec("x"),), (AttributeSpec("axes", "ints"),))

    def deduce(self, call: CallFacts) -> Info:
        """Return the shape of the operand."""
        x = call.tensor(0)
        call.attributes.axes("axes", x.rank)
        return TensorInfo(x.shape, x.dtype)

    def evaluate(self, run: Evaluation) -> Array:
        """Reverse with NumPy."""
        x = run.array(0)
        return np.flip(x, run.attributes.axes("axes", x.ndim)).copy()

    def define(self, low: Lowering) -> None:
        """Define one block over the result, which reads the operand from the end."""
        x = low.sources[0]
        axes = low.call.attributes.axes("axes", x.rank)

        def value(*indices: Expr) -> Element:
            return x(*(x.shape[k] - 1 - i if k in axes else i for k, i in enumerate(indices)))

        low.builder.compute(low.out, value, name=self.name)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Flip the cotangent."""
        del position
        axes = call.attributes.integers("axes")
        return graph.emit("flip", call.cotangent(graph), axes=axes)
