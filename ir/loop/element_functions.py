"""The table of element functions: names, dtypes, references, errors, and costs.

Parser, printer, type checking, interpreter, cost estimates, and the element-wise graph operators
read this table; ``codegen.lower.math`` registers the expansion of each function. All functions are
total, that is, defined for all operands. Integer arithmetic wraps around. Integer division by zero
returns 0. Shifts by the bit width or more return 0, or the sign for an arithmetic right shift.
Functions such as ``exp`` are computed in float64 and rounded once.

Examples
--------
>>> FUNCTIONS["tanh"].reference(np.float32(1.0))
np.float32(0.7615942)
>>> isnan.predicate, atan2.arity
(True, 2)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import TilewrightError
from ...nearest import did_you_mean
from ..dtype import DType, bool_, f32
from ..words import Word
from .float_division import floor_divide

__all__ = [  # noqa: RUF022  # the functions that are keywords of the text format, as ordered below
    "exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "sigmoid", "tanh", "erf", "sin", "cos",
    "floor", "ceil", "trunc", "isnan", "isinf", "sign", "atan2",
]  # fmt: skip


Scalar: TypeAlias = Any
"""A NumPy scalar of any dtype that the function is defined for."""

Operands: TypeAlias = Literal["any", "number", "float", "integer", "bool", "bits"]
"""A class of dtypes; ``number`` excludes bool, ``bits`` are integers and bool."""

FUNCTION_UNITS = 4
"""The error of functions such as ``exp`` in unit roundoffs: two units in the last place."""


HALF_ULPS = 0.501
"""The bound of functions such as ``exp`` of 16-bit floats: two ulp of float32 before rounding."""


class ElementFunctionError(TilewrightError):
    """An element function that is not registered, or that is registered twice."""

    title = "Element function"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ElementFunction(Word):
    """A function of one or two elements, and a keyword of the text format.

    Parameters
    ----------
    name : str
        The name in the text format and in nodes.
    arity : int
        The number of operands, 1 or 2. All operands have the same dtype.
    operands : str
        The class of dtypes that the function is defined for.
    reference : callable
        The function of NumPy scalars. It is total and returns the dtype of the result.
    units : int
        The maximal error of a float result, in unit roundoffs.
    cost : int
        The estimated number of instructions for one vector of elements.
    predicate : bool
        Whether the result has dtype bool; otherwise it has the dtype of the operands.
    arrays : callable, optional
        The function of NumPy arrays in their dtype, at least float32, for the reference of the
        graph-level operator. By default `reference`.
    """

    name: str
    arity: int
    operands: Operands
    reference: Callable[..., Scalar]
    units: int = FUNCTION_UNITS
    cost: int = 1
    predicate: bool = False
    arrays: Callable[..., Any] | None = None

    def accepts(self, dtype: DType) -> bool:
        """Return whether the function is defined for operands of a dtype."""
        match self.operands:
            case "any":
                return True
            case "number":
                return dtype != bool_
            case "float":
                return dtype.is_float
            case "integer":
                return dtype.is_integer
            case "bool":
                return dtype == bool_
            case "bits":
                return not dtype.is_float

    def ulps(self, dtype: DType) -> float:
        """Return the bound of the error of compiled code, in units in the last place.

        The error is the distance from the exact result; 0.5 is a correctly rounded result. 16-bit
        floats are computed in float32 and rounded once more.
        """
        if not dtype.is_float or self.units == 0 or self.predicate:
            return 0.0
        if dtype.bits < f32.bits:
            return 0.5 if self.units == 1 else HALF_ULPS
        return self.units / 2

    def result_dtype(self, dtype: DType) -> DType:
        """Return the dtype of the result for operands of a dtype."""
        return bool_ if self.predicate else dtype

    def operand_dtype(self, result: DType | None) -> DType | None:
        """Return the dtype of the operands for a dtype of the result, or None if unknown."""
        if self.operands == "bool":
            return bool_
        return None if self.predicate else result


_FUNCTIONS: dict[str, ElementFunction] = {}

FUNCTIONS: Mapping[str, ElementFunction] = MappingProxyType(_FUNCTIONS)
"""Every element function, by name, in the order of registration."""


def register(function: ElementFunction) -> ElementFunction:
    """Register an element function under its name.

    Raises
    ------
    ElementFunctionError
        If the name is registered.
    """
    if function.name in _FUNCTIONS:
        raise ElementFunctionError(f"element function {function.name!r} is registered twice")
    _FUNCTIONS[function.name] = function
    return function


def element_function(name: str) -> ElementFunction:
    """Return the element function with this name.

    Raises
    ------
    ElementFunctionError
        If the name is not registered; the hint lists similar names.
    """
    found = _FUNCTIONS.get(name)
    if found is None:
        hint = did_you_mean(name, _FUNCTIONS) or f"functions are {', '.join(_FUNCTIONS)}"
        raise ElementFunctionError(f"no element function {name!r}", hint=hint)
    return found


def elementary(
    name: str,
    compute: Callable[[Any], Any],
    *,
    scalar: Callable[[np.float64], Scalar] | None = None,
    cost: int = 24,
    units: int = FUNCTION_UNITS,
) -> ElementFunction:
    """Register a function of one float that is computed in float64 and rounded once.

    Parameters
    ----------
    name : str
        The name in the text format.
    compute : callable
        The function of NumPy arrays.
    scalar : callable, optional
        The function of a float64, by default `compute`.
    cost : int
        The estimated number of instructions for one vector of elements.
    units : int
        The maximal error of compiled code, in unit roundoffs.
    """
    wide = scalar or compute

    def reference(x: Scalar) -> Scalar:
        return type(x)(wide(np.float64(x)))

    return register(
        ElementFunction(name, 1, "float", reference, units=units, cost=cost, arrays=compute)
    )


def _negate(x: Scalar) -> Scalar:
    return type(x)(0) - x if x.dtype.kind in "iu" else -x


def _logical_not(x: Scalar) -> Scalar:
    return np.bool_(not x)


def _sign(x: Scalar) -> Scalar:
    return type(x)(np.sign(np.float64(x))) if x.dtype.kind not in "iu" else np.sign(x)


def _round(x: Any) -> Any:
    """Round halves to even; ``rint`` would convert an integer to a float."""
    return x if x.dtype.kind in "iu" else np.rint(x)


def _inverse_root(x: NDArray[Any]) -> NDArray[Any]:
    return 1.0 / np.sqrt(x)


def _sigmoid(x: np.float64) -> Scalar:
    return 1.0 / (1.0 + np.exp(-x)) if x >= 0 else np.exp(x) / (1.0 + np.exp(x))


def sigmoid_of_arrays(x: NDArray[Any]) -> NDArray[Any]:
    """Return ``1 / (1 + exp(-x))``, computed without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, np.ones_like(x), small) / (1 + small)


def _erf(x: np.float64) -> float:
    return math.erf(x)


_erf_of_each: Callable[[Any], Any] = np.vectorize(math.erf, otypes=[np.float64])


def erf_of_arrays(x: NDArray[Any]) -> NDArray[Any]:
    """Return the error function in float64."""
    return _erf_of_each(x.astype(np.float64)) if x.size else np.empty(x.shape)


def _wrapped(value: int, like: Scalar) -> Scalar:
    """Return the low bits of a value as an integer of the dtype of ``like``."""
    word = value % (1 << (8 * like.dtype.itemsize))
    return np.dtype(f"u{like.dtype.itemsize}").type(word).view(like.dtype)


def _divide(a: Scalar, b: Scalar) -> Scalar:
    """Divide; integer quotients are truncated, and integer division by zero returns 0."""
    if a.dtype.kind not in "iu":
        return a / b
    x, y = int(a), int(b)
    size = abs(x) // abs(y) if y else 0
    return _wrapped(-size if (x < 0) != (y < 0) else size, a)


def _power(a: Scalar, b: Scalar) -> Scalar:
    if a.dtype.kind in "iu":
        width: int = 1 << (8 * a.dtype.itemsize)
        return _wrapped(pow(int(a), int(b), width) if b >= 0 else 0, a)
    return type(a)(np.power(np.float64(a), np.float64(b)))


def _arctangent(a: Scalar, b: Scalar) -> Scalar:
    return type(a)(np.arctan2(np.float64(a), np.float64(b)))


def _unary(
    name: str,
    operands: Operands,
    reference: Callable[[Any], Any],
    *,
    units: int = 0,
    predicate: bool = False,
    arrays: Callable[[Any], Any] | None = None,
) -> ElementFunction:
    function = ElementFunction(
        name, 1, operands, reference, units=units, predicate=predicate, arrays=arrays
    )
    return register(function)


def _binary(
    name: str, operands: Operands, reference: Callable[[Any, Any], Any], units: int, cost: int = 1
) -> ElementFunction:
    return register(ElementFunction(name, 2, operands, reference, units=units, cost=cost))


_unary("neg", "number", _negate, arrays=np.negative)
_unary("abs", "number", np.abs)
_unary("not", "bool", _logical_not, predicate=True, arrays=np.logical_not)
exp = elementary("exp", np.exp)
log = elementary("log", np.log)
log1p = elementary("log1p", np.log1p)
expm1 = elementary("expm1", np.expm1)
sqrt = elementary("sqrt", np.sqrt, units=1)
rsqrt = elementary("rsqrt", _inverse_root)
sigmoid = elementary("sigmoid", sigmoid_of_arrays, scalar=_sigmoid)
tanh = elementary("tanh", np.tanh)
erf = elementary("erf", erf_of_arrays, scalar=_erf)
sin = elementary("sin", np.sin)
cos = elementary("cos", np.cos)
floor = _unary("floor", "number", np.floor)
ceil = _unary("ceil", "number", np.ceil)
_unary("round", "number", _round)
trunc = _unary("trunc", "number", np.trunc)
isnan = _unary("isnan", "float", np.isnan, predicate=True)
isinf = _unary("isinf", "float", np.isinf, predicate=True)
sign = _unary("sign", "number", _sign, arrays=np.sign)
_unary("bitnot", "integer", np.invert)

_binary("add", "number", lambda a, b: a + b, 1)
_binary("sub", "number", lambda a, b: a - b, 1)
_binary("mul", "any", lambda a, b: a * b, 1)
_binary("div", "float", _divide, 1, cost=8)
_binary("floordiv", "number", floor_divide, 1, cost=16)
_binary("mod", "number", np.mod, 1, cost=16)
_binary("min", "any", np.minimum, 0)
_binary("max", "any", np.maximum, 0)
_binary("pow", "number", _power, 4, cost=8)
_binary("and", "bits", lambda a, b: a & b, 0)
_binary("or", "bits", lambda a, b: a | b, 0)
_binary("xor", "bits", lambda a, b: a ^ b, 0)
_binary("shl", "integer", np.left_shift, 0)
_binary("shr", "integer", np.right_shift, 0)
atan2 = _binary("atan2", "float", _arctangent, 4, cost=8)
