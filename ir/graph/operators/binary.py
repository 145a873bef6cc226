"""Binary arithmetic operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...loop.float_division import floor_divide
from ...loop.nodes import Binary, BinaryOp, Element, Number, Unary
from ...symbolic import Expr, const_value, maximum, minimum
from .elementwise import Elementwise
from .evaluation import Array, Evaluation
from .operator import operator, register
from .shape_inference import CallFacts
from .signature import DTypeClass, OperandKind, OperandSpec, Signature
from .special import rounded

Apply = Callable[[Any, Any], Any]
Symbolic = Callable[[Expr, Expr], "Expr | None"]
EITHER: tuple[OperandKind, ...] = ("tensor", "number")


def operands_of(dtypes: DTypeClass) -> Signature:
    """Return the signature of two operands, tensors or numbers, of a class of dtypes."""
    return Signature((OperandSpec("x", EITHER, dtypes), OperandSpec("y", EITHER, dtypes)))


def _exact_floordiv(x: Expr, y: Expr) -> Expr | None:
    return None if const_value(y) == 0 else x // y


def _exact_mod(x: Expr, y: Expr) -> Expr | None:
    return None if const_value(y) == 0 else x % y


@dataclass(frozen=True)
class BinaryOperator(Elementwise):
    """An element-wise operator of two operands, implemented by one loop-level function.

    Parameters
    ----------
    x, y : tensor or number
        Shapes that broadcast and the same dtype, of the class listed below. At least one operand is
        a tensor; a number takes its dtype.

    Returns
    -------
    tensor
        The broadcast shape and the dtype of the operands.

    Raises
    ------
    OperandError
        If the dtypes differ, or if both operands are numbers.
    ShapeMismatchError
        If the shapes do not broadcast.

    Attributes
    ----------
    op : str
        The loop-level function.
    apply : callable
        The NumPy reference.
    symbolic : callable, optional
        The function on symbolic integers, for tensors with symbolic element values.

    Notes
    -----
    16-bit floats are computed in float32 and rounded once. Integers wrap; integer division by zero
    gives 0. ``maximum`` and ``minimum`` propagate NaN.

    ================ ================== ======= ================ ==============
    Operator         Formula            Dtypes  NumPy            ONNX
    ================ ================== ======= ================ ==============
    ``add``          ``x + y``          number  ``add``          ``Add``
    ``subtract``     ``x - y``          number  ``subtract``     ``Sub``
    ``multiply``     ``x * y``          number  ``multiply``     ``Mul``
    ``divide``       ``x / y``          float   ``divide``       ``Div``
    ``floor_divide`` ``floor(x / y)``   number  ``floor_divide``
    ``mod``          ``x - y * (x//y)`` number  ``mod``          ``Mod``
    ``maximum``      ``max(x, y)``      number  ``maximum``      ``Max``
    ``minimum``      ``min(x, y)``      number  ``minimum``      ``Min``
    ``bitwise_and``  ``x & y``          integer ``bitwise_and``  ``BitwiseAnd``
    ``bitwise_or``   ``x | y``          integer ``bitwise_or``   ``BitwiseOr``
    ``bitwise_xor``  ``x ^ y``          integer ``bitwise_xor``  ``BitwiseXor``
    ================ ================== ======= ================ ==============

    Examples
    --------
    >>> next(op for op in BINARY if op.name == "mod").reference((np.array([-7, 7]), 3))
    array([2, 1])
    """

    name: str
    signature: Signature
    op: BinaryOp
    apply: Apply
    symbolic: Symbolic | None = None

    def exact(self, values: tuple[Expr, ...]) -> Expr | None:
        """Return the symbolic form, or None if the function has none."""
        return None if self.symbolic is None else self.symbolic(*values)

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Return the loop-level function applied to two elements."""
        del call
        return Binary(self.op, *operands)

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Apply the NumPy function; the result has the dtype of the operands."""
        del run
        return np.asarray(rounded(self.apply, *operands)).astype(operands[0].dtype)


_NUMBERS = operands_of("number")
_INTEGERS = operands_of("integer")

BINARY = (
    BinaryOperator("add", _NUMBERS, "add", np.add, lambda x, y: x + y),
    BinaryOperator("subtract", _NUMBERS, "sub", np.subtract, lambda x, y: x - y),
    BinaryOperator("multiply", _NUMBERS, "mul", np.multiply, lambda x, y: x * y),
    BinaryOperator("divide", operands_of("float"), "div", np.divide),
    BinaryOperator("floor_divide", _NUMBERS, "floordiv", floor_divide, _exact_floordiv),
    BinaryOperator("mod", _NUMBERS, "mod", np.mod, _exact_mod),
    BinaryOperator("maximum", _NUMBERS, "max", np.maximum, maximum),
    BinaryOperator("minimum", _NUMBERS, "min", np.minimum, minimum),
    BinaryOperator("bitwise_and", _INTEGERS, "and", np.bitwise_and),
    BinaryOperator("bitwise_or", _INTEGERS, "or", np.bitwise_or),
    BinaryOperator("bitwise_xor", _INTEGERS, "xor", np.bitwise_xor),
)
for _binary in BINARY:
    register(_binary)


@operator
class Power(Elementwise):
    """Raise a tensor to a power: ``x ** y``.

    Parameters
    ----------
    x, y : tensor or number
        Floating-point, shapes that broadcast, the same dtype; a number takes the dtype of the
        tensor.

    Returns
    -------
    tensor
        The broadcast shape and the dtype of the operands.

    Notes
    -----
    The constant exponents 2, 0.5 and -0.5 become a product, ``sqrt`` and ``rsqrt``. NumPy:
    ``power``; ONNX: ``Pow``.

    Examples
    --------
    >>> Power().reference((np.array([2.0, 3.0]), 2.0))
    array([4., 9.])
    """

    name = "power"
    signature = operands_of("float")

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Return the power; a product or a root for the exponents that have one."""
        del call
        x, y = operands
        match y:
            case Number(value=2.0):
                return Binary("mul", x, x)
            case Number(value=0.5):
                return Unary("sqrt", x)
            case Number(value=-0.5):
                return Unary("rsqrt", x)
            case _:
                return Binary("pow", x, y)

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Compute the power with NumPy."""
        del run
        return np.asarray(rounded(np.power, *operands)).astype(operands[0].dtype)
