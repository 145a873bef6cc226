"""Binary arithmetic operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...dtype import DType, from_numpy
from ...loop.element_functions import FUNCTIONS, ElementFunction
from ...loop.nodes import Binary, Element, Number, Unary
from ...symbolic import Expr, const_value, maximum, minimum
from ..nodes import Operand, ScalarLiteral
from .composition import Composer
from .derivatives import BINARY_DERIVATIVES
from .elementwise import Elementwise, number_like, table
from .evaluation import Array, Evaluation
from .gradients import GradientCall
from .operator import operator, register
from .shape_inference import CallFacts
from .signature import DTypeClass, OperandKind, OperandSpec, Signature
from .special import rounded

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
        The broadcast shape and the dtype of the operands; for ``complex``, the dtype of the pairs.

    Raises
    ------
    OperandError
        If the dtypes differ, if both operands are numbers, or if a number is not a value of the
        dtype, as 300 of ``i8``.
    ShapeMismatchError
        If the shapes do not broadcast.

    Attributes
    ----------
    function : ElementFunction
        The loop-level function, with its NumPy reference.
    symbolic : callable, optional
        The function on symbolic integers, for tensors with symbolic element values.

    Notes
    -----
    16-bit floats are computed in float32 and rounded once, except by ``nextafter``, which returns a
    neighbor in their dtype. Integers wrap; integer division by zero gives 0; shifts by the bit
    width or more give 0, or -1 for a negative number that is shifted right. ``maximum`` and
    ``minimum`` propagate NaN.

    [table]

    Examples
    --------
    >>> next(op for op in BINARY if op.name == "mod").reference((np.array([-7, 7]), 3))
    array([2, 1])
    """

    name: str
    signature: Signature
    function: ElementFunction
    symbolic: Symbolic | None = None

    def result_dtype(self, dtype: DType) -> DType:
        """Return the dtype of the result of the function."""
        return self.function.result_dtype(dtype)

    def accepts(self, dtype: DType) -> bool:
        """Return whether the function is defined for a dtype."""
        return self.function.accepts(dtype)

    def exact(self, values: tuple[Expr, ...]) -> Expr | None:
        """Return the symbolic form, or None if the function has none."""
        return None if self.symbolic is None else self.symbolic(*values)

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Return the loop-level function applied to two elements."""
        del call
        return Binary(self.function.name, *operands)

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Apply the NumPy function; the result has the dtype that the table states."""
        del run
        apply = self.function.arrays or self.function.reference
        dtype = self.result_dtype(from_numpy(operands[0].dtype))
        if self.function.operands == "format":
            with np.errstate(all="ignore"):
                return np.asarray(apply(*operands)).astype(dtype.numpy)
        return np.asarray(rounded(apply, *operands)).astype(dtype.numpy)

    @property
    def has_gradient(self) -> bool:
        """Whether the function has derivatives."""
        return self.name in BINARY_DERIVATIVES

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand | None:
        """Multiply the cotangent by the derivative of the function."""
        rules = BINARY_DERIVATIVES.get(self.name)
        x, y = call.args
        return rules and rules[position](graph, x, y, call.result, call.cotangent(graph))


_SYMBOLIC: Final[Mapping[str, Symbolic]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "floordiv": _exact_floordiv,
    "mod": _exact_mod,
    "max": maximum,
    "min": minimum,
}
_CLASSES: Final[Mapping[str, DTypeClass]] = {
    "any": "field",
    "ordered": "number",
    "field": "field",
    "number": "number",
    "inexact": "inexact",
    "float": "float",
    "format": "float",
    "part": "part",
    "integer": "integer",
    "bits": "integer",
}
"""The operands of an operator by those of its function: operators of Booleans have other names."""


def _operator(function: ElementFunction) -> BinaryOperator:
    return BinaryOperator(
        function.names.operator,
        operands_of(_CLASSES[function.operands]),
        function,
        _SYMBOLIC.get(function.name),
    )


BINARY = tuple(
    _operator(function)
    for function in FUNCTIONS.values()
    if function.arity == 2 and function.names.operator
)
"""One operator per element function of two operands that names an operator."""

for _binary in BINARY:
    register(_binary)


def _table() -> str:
    """Return the operators as a table of the documentation."""
    head = ("Operator", "Element function", "Dtypes", "NumPy", "ONNX")
    rows = [
        (
            f"``{o.name}``",
            f"``{o.function.name}``",
            o.signature.operands[0].dtypes,
            *(f"``{n}``" if n else "" for n in (o.function.names.numpy, o.function.names.onnx)),
        )
        for o in BINARY
    ]
    return table(head, rows)


BinaryOperator.__doc__ = (BinaryOperator.__doc__ or "").replace("[table]", _table())


@operator
class Power(Elementwise):
    """Raise a tensor to a power: ``x ** y``.

    Parameters
    ----------
    x, y : tensor or number
        Floating-point or complex, shapes that broadcast, the same dtype; a number takes the dtype
        of the tensor.

    Returns
    -------
    tensor
        The broadcast shape and the dtype of the operands.

    Notes
    -----
    The constant exponents 2, 3, -1, 0.5 and -0.5 become products, a quotient, ``sqrt`` and
    ``rsqrt`` (2 and 0.5 also of complex numbers). NumPy: ``power``; ONNX: ``Pow``.

    Examples
    --------
    >>> Power().reference((np.array([2.0, 3.0]), 2.0))
    array([4., 9.])
    """

    name = "power"
    signature = operands_of("inexact")

    def element(self, call: CallFacts, operands: tuple[Element, ...]) -> Element:
        """Return the power; a product or a root for the exponents that have one."""
        del call
        x, y = operands
        match y:
            case Number(value=2.0):
                return Binary("mul", x, x)
            case Number(value=0.5):
                return Unary("sqrt", x)
            case Number(value=-0.5, dtype=dtype) if dtype.is_float:
                return Unary("rsqrt", x)
            case Number(value=3.0, dtype=dtype) if dtype.is_float:
                return Binary("mul", Binary("mul", x, x), x)
            case Number(value=-1.0, dtype=dtype) if dtype.is_float:
                return Binary("div", number_like(1.0, x), x)
            case _:
                return Binary("pow", x, y)

    def compute(self, run: Evaluation, operands: tuple[Array, ...]) -> Array:
        """Compute the power with NumPy."""
        del run
        return np.asarray(rounded(np.power, *operands)).astype(operands[0].dtype)

    def gradient(self, call: GradientCall, position: int, graph: Composer) -> Operand:
        """Return ``y * x ** (y - 1)`` or ``log(x) * x ** y`` times the cotangent."""
        (x, y), g = call.args, call.cotangent(graph)
        if position:
            if isinstance(x, ScalarLiteral):
                factor = graph.emit("multiply", call.result, math.log(x.value))
                return graph.emit("multiply", g, factor)
            safe = graph.emit("where", graph.emit("equal", x, 0.0), 1.0, x)  # 0 ** y is constant
            return graph.emit(
                "multiply", g, graph.emit("multiply", call.result, graph.emit("log", safe))
            )
        less: Any = y.value - 1 if isinstance(y, ScalarLiteral) else graph.emit("subtract", y, 1.0)
        slope = graph.emit("multiply", graph.emit("power", x, less), y)
        return graph.emit("multiply", g, slope)
