"""The table of element functions: one row per function.

A row states the name, the operands, the reference of the interpreter, the domain, results at
special values, the error of compiled code, the cost, and the names of the function elsewhere.
Parser, printer, type checking, interpreter, cost estimates, graph operators, importers, and the
page ``docs/numerics.md`` read the table; ``codegen.lower.math`` registers the expansion of each
function. A new function needs its row, its expansion, and an exact function to be tested against;
tests report each part that is missing.

All functions are total, that is, defined for all operands. Integer arithmetic wraps around. Integer
division by zero returns 0. Shifts by the bit width or more return 0, or the sign for an arithmetic
right shift. Functions such as ``exp`` are computed in float64 and rounded once.

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
from math import inf, nan, pi
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from ...errors import TilewrightError
from ...nearest import did_you_mean
from ..dtype import DType, bool_, f64, i32, u32, u64
from ..words import Word
from . import complex_references as pairs, element_references as of
from .complex_references import of_kind
from .element_references import Scalar, in_double, of_each, sigmoid_of_arrays
from .float_division import floor_divide
from .gamma_references import digamma as digamma_of, log_gamma

__all__ = [  # noqa: RUF022  # the functions that are keywords of the text format, as ordered below
    "exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "sigmoid", "tanh", "erf", "erfc", "erfinv",
    "lgamma", "digamma", "sin", "cos", "exp2", "log2", "log10", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "asinh", "acosh", "atanh", "floor", "ceil", "trunc", "isnan", "isinf", "sign",
    "popcount", "clz", "ctz", "atan2", "hypot", "fmod", "copysign", "nextafter", "random_bits",
    "ldexp", "fma", "real", "imag", "conj", "angle",
]  # fmt: skip

Operands: TypeAlias = Literal[
    "any", "ordered", "field", "number", "inexact", "float", "format", "integer", "bitwise", "bool",
    "bits", "word", "complex", "part",
]  # fmt: skip
"""A class of dtypes.

``ordered`` excludes complex numbers, ``field`` excludes bool, and ``number`` excludes both.
``inexact`` are floats and complex numbers, ``part`` the floats of the parts of complex numbers.
``bits`` are integers and bool. ``format`` and ``bitwise`` are the floats
and integers of machines, whose bits matter; ``word`` are unsigned integers of 32 and 64 bits.
"""

Result: TypeAlias = Literal["operand", "bool", "part", "complex"]
"""The dtype of a result: that of the operands, bool, that of their parts, or of their pairs."""

FUNCTION_UNITS = 4
"""The error of functions such as ``exp`` in unit roundoffs: two units in the last place."""

COMPLEX_UNITS = 6
"""The error of functions such as ``log`` of complex numbers in unit roundoffs."""

POWER_UNITS = 64
"""The error of powers of complex numbers of usual size in unit roundoffs."""

HALF_ULPS = 0.501
"""The bound of functions such as ``exp`` of 16-bit floats: two ulp of float32 before rounding."""


class ElementFunctionError(TilewrightError):
    """An element function that is not registered, or that is registered twice."""

    title = "Element function"


@dataclass(frozen=True, slots=True)
class Names:
    """The names of an element function elsewhere; empty where there is no such function.

    Parameters
    ----------
    operator : str
        The graph operator that applies the function alone.
    numpy : str
        The function of NumPy.
    torch : str
        The ATen operator with this meaning for all operands.
    onnx : str
        The ONNX operator with this meaning for all operands.
    """

    operator: str = ""
    numpy: str = ""
    torch: str = ""
    onnx: str = ""


NO_NAMES: Final = Names()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ElementFunction(Word):
    """A row of the table: a function of elements, and a keyword of the text format.

    Parameters
    ----------
    name : str
        The name in the text format and in nodes.
    operands : str
        The class of dtypes that the function is defined for. All operands have one dtype, unless
        the row states that of the second.
    reference : callable
        The function of NumPy scalars. It is total and returns the dtype of the result.
    domain : str
        The numbers for which the result is a number, as text.
    special : tuple of tuple of float
        Operands, and last the result, where a formula could miss it. Other operands that are NaN
        or outside of the domain have the result NaN.
    arity : int
        The number of operands.
    second : DType, optional
        The dtype of the second operand; by default that of the first.
    units : int
        The maximal change of a float result by rounding, in unit roundoffs, from which the error
        bounds of programs are derived; 0 for exact functions.
    bounds : tuple of float, optional
        The maximal error of compiled code for float64 and float32, in ulp; by default, a unit
        roundoff is half an ulp.
    note : str
        A restriction of the bounds, as text.
    cost : int
        The estimated number of instructions for one vector of elements.
    result : str
        The dtype of the result.
    arrays : callable, optional
        The function of NumPy arrays in their dtype, at least float32, for the reference of the
        graph operator. By default `reference`.
    names : Names
        The names elsewhere.
    complex_units : int
        The maximal change of the parts of a complex result in unit roundoffs of its absolute
        value; 0 for that of a float result.
    """

    name: str
    operands: Operands
    reference: Callable[..., Scalar]
    domain: str
    special: tuple[tuple[float, ...], ...] = ()
    arity: int = 1
    second: DType | None = None
    units: int = 0
    bounds: tuple[float, float] | None = None
    note: str = ""
    cost: int = 1
    result: Result = "operand"
    arrays: Callable[..., Any] | None = None
    names: Names = NO_NAMES
    complex_units: int = 0

    @property
    def predicate(self) -> bool:
        """Whether the result has dtype bool."""
        return self.result == "bool"

    def accepts(self, dtype: DType) -> bool:
        """Return whether the function is defined for operands of a dtype."""
        match self.operands:
            case "any":
                return True
            case "ordered":
                return not dtype.is_complex
            case "field":
                return dtype != bool_
            case "number":
                return dtype != bool_ and not dtype.is_complex
            case "inexact":
                return dtype.is_inexact
            case "float":
                return dtype.is_float
            case "format":
                return dtype.is_float and dtype.is_machine
            case "integer":
                return dtype.is_integer
            case "bitwise":
                return dtype.is_integer and dtype.is_machine
            case "bool":
                return dtype == bool_
            case "bits":
                return not dtype.is_inexact
            case "complex":
                return dtype.is_complex
            case "part":
                return dtype.paired is not None
            case "word":
                return dtype in (u32, u64)

    def ulps(self, dtype: DType) -> float:
        """Return the bound of the error of compiled code, in units in the last place.

        The error is the distance from the exact result; 0.5 is a correctly rounded result. Floats
        of 16 bits or less are computed in float32 and rounded once more.
        """
        if not dtype.is_float or self.predicate:
            return 0.0
        double, single = self.bounds or (self.units / 2, self.units / 2)
        if dtype.compute != dtype:
            return min(single, HALF_ULPS)
        return double if dtype == f64 else single

    def result_dtype(self, dtype: DType) -> DType:
        """Return the dtype of the result for operands of a dtype."""
        match self.result:
            case "operand":
                return dtype
            case "bool":
                return bool_
            case "part":
                return dtype.part
            case "complex":
                return dtype.paired or dtype

    def operand_dtype(self, result: DType | None) -> DType | None:
        """Return the dtype of the operands for a dtype of the result, or None if unknown."""
        if self.operands == "bool":
            return bool_
        if self.predicate or result is None:
            return None
        if self.operands == "complex" and self.result == "part":
            return result.paired
        if self.result == "complex":
            return result.part if result.is_complex else None
        return result

    def rounding_units(self, dtype: DType) -> int:
        """Return the maximal change of a result by rounding for operands of a dtype."""
        return self.complex_units or self.units if dtype.is_complex else self.units


erf_of_arrays = of_each(math.erf)
"""The error function of arrays, in float64."""

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


def named(elsewhere: str) -> Mapping[str, ElementFunction]:
    """Return the functions that exist elsewhere, by their names there.

    Parameters
    ----------
    elsewhere : str
        A field of :class:`Names`.
    """
    found = {getattr(f.names, elsewhere): f for f in _FUNCTIONS.values()}
    return {name: f for name, f in found.items() if name}


def elementary(
    name: str,
    compute: Callable[[Any], Any],
    domain: str,
    *special: tuple[float, ...],
    scalar: Callable[[np.float64], Scalar] | None = None,
    units: int = FUNCTION_UNITS,
    bounds: tuple[float, float] | None = None,
    note: str = "",
    cost: int = 24,
    numpy: str = "",
    torch: str = "",
    onnx: str = "",
    complex_units: int = 0,
) -> ElementFunction:
    """Register a function of one float that is computed in float64 and rounded once.

    Parameters
    ----------
    name : str
        The name in the text format, and of the graph operator.
    compute : callable
        The function of NumPy arrays.
    domain : str
        The numbers for which the result is a number, as text.
    *special : tuple of float
        An operand and the result.
    scalar : callable, optional
        The function of a float64, by default `compute`.
    units, bounds, note, cost
        As for :class:`ElementFunction`.
    numpy, torch, onnx : str
        The names elsewhere.
    complex_units : int
        As for :class:`ElementFunction`; 0 if the function of complex numbers is not defined.
    """
    reference, arrays, operands = in_double(scalar or compute), compute, "float"
    if complex_units:
        wide = pairs.in_wide(compute)
        reference, arrays, operands = of_kind(reference, wide), of_kind(compute, wide), "inexact"
    return register(
        ElementFunction(
            name, operands, reference, domain, special, units=units, bounds=bounds, note=note,
            cost=cost, arrays=arrays, names=Names(name, numpy, torch, onnx),
            complex_units=complex_units,
        )
    )  # fmt: skip


def _unary(
    name: str,
    operands: Operands,
    reference: Callable[[Any], Any],
    *special: tuple[float, ...],
    result: Result = "operand",
    units: int = 0,
    arrays: Callable[[Any], Any] | None = None,
    names: Names,
) -> ElementFunction:
    """Register an exact function of one operand."""
    return register(
        ElementFunction(
            name, operands, reference, "all", special, units=units, result=result, arrays=arrays,
            names=names,
        )
    )  # fmt: skip


def _binary(
    name: str,
    operands: Operands,
    reference: Callable[[Any, Any], Any],
    domain: str,
    *special: tuple[float, ...],
    units: int = 0,
    second: DType | None = None,
    bounds: tuple[float, float] | None = None,
    cost: int = 1,
    result: Result = "operand",
    arrays: Callable[..., Any] | None = None,
    names: Names = NO_NAMES,
    complex_units: int = 0,
) -> ElementFunction:
    """Register a function of two operands."""
    return register(
        ElementFunction(
            name, operands, reference, domain, special, 2, second, units, bounds, cost=cost,
            result=result, arrays=arrays, names=names, complex_units=complex_units,
        )
    )  # fmt: skip


_BELOW_ZERO: Final = "f64, x < 0: 4 units in the last place of the result for 1 - x, at least of 1"
_NO_FMA: Final = "f64 on machines without fused multiply-add: 1 ulp"
_SIGNED_ZERO: Final = (-0.0, -0.0)
_ODD: Final = (_SIGNED_ZERO, (inf, inf), (-inf, -inf))
"""The special values of odd functions that are unbounded."""

# One paragraph per function.
# fmt: off
_unary("neg", "field", of.negate, (0.0, -0.0), arrays=np.negative, names=Names("negative",
       "negative", "neg", "Neg"))
_unary("abs", "field", of_kind(np.abs, pairs.magnitude), (-0.0, 0.0), (-inf, inf), result="part",
       names=Names("abs", "abs", "abs", "Abs"))
_unary("not", "bool", of.logical_not, result="bool", arrays=np.logical_not,
       names=Names("logical_not", "logical_not", onnx="Not"))
exp = register(ElementFunction("exp", "inexact", of_kind(in_double(np.exp), pairs.exponential),
               "all", ((-inf, 0.0), (inf, inf), (0.0, 1.0)), units=FUNCTION_UNITS, cost=24,
               arrays=of_kind(np.exp, pairs.exponential), names=Names("exp", "exp", "exp", "Exp"),
               complex_units=12))
log = elementary("log", np.log, "x > 0", (0.0, -inf), (-0.0, -inf), (-1.0, nan), (inf, inf), (1.0,
                 0.0), numpy="log", torch="log", onnx="Log", complex_units=COMPLEX_UNITS)
log1p = elementary("log1p", np.log1p, "x > -1", (-1.0, -inf), (-2.0, nan), (inf, inf), _SIGNED_ZERO,
                   numpy="log1p", torch="log1p")
expm1 = elementary("expm1", np.expm1, "all", (-inf, -1.0), (inf, inf), _SIGNED_ZERO, numpy="expm1",
                   torch="expm1")
sqrt = elementary("sqrt", np.sqrt, "x >= 0", _SIGNED_ZERO, (-1.0, nan), (inf, inf), units=1,
                  numpy="sqrt", torch="sqrt", onnx="Sqrt", complex_units=COMPLEX_UNITS)
rsqrt = elementary("rsqrt", of.inverse_root, "x > 0", (0.0, inf), (-0.0, -inf), (-1.0, nan), (inf,
                   0.0), torch="rsqrt")
sigmoid = elementary("sigmoid", sigmoid_of_arrays, "all", (-inf, 0.0), (inf, 1.0), (0.0, 0.5),
                     scalar=of.sigmoid, torch="sigmoid", onnx="Sigmoid")
tanh = elementary("tanh", np.tanh, "all", _SIGNED_ZERO, (-inf, -1.0), (inf, 1.0), numpy="tanh",
                  torch="tanh", onnx="Tanh", complex_units=COMPLEX_UNITS)
erf = elementary("erf", erf_of_arrays, "all", _SIGNED_ZERO, (-inf, -1.0), (inf, 1.0),
                 scalar=math.erf, torch="erf", onnx="Erf")
erfc = elementary("erfc", of_each(math.erfc), "all", (-inf, 2.0), (inf, 0.0), (0.0, 1.0),
                  scalar=math.erfc, bounds=(3.0, 2.0), cost=48, torch="erfc")
erfinv = elementary("erfinv", of_each(of.inverse_erf), "abs(x) <= 1", _SIGNED_ZERO, (1.0, inf),
                    (-1.0, -inf), (2.0, nan), scalar=of.inverse_erf, bounds=(3.0, 2.0), cost=48,
                    torch="erfinv")
lgamma = elementary("lgamma", of_each(log_gamma), "all", (1.0, 0.0), (2.0, 0.0), (0.0, inf),
                    (-0.0, inf), (-1.0, inf), (inf, inf), (-inf, inf), scalar=log_gamma,
                    bounds=(4.0, 2.0), note=_BELOW_ZERO, cost=96, torch="lgamma")
digamma = elementary("digamma", of_each(digamma_of), "x > 0 or non-integer x", (0.0, -inf), (-0.0,
                     inf), (-1.0, nan), (inf, inf), (-inf, nan), scalar=digamma_of, bounds=(4.0,
                     2.0), note=_BELOW_ZERO, cost=96, torch="digamma")
sin = elementary("sin", np.sin, "finite", _SIGNED_ZERO, (inf, nan), numpy="sin", torch="sin",
                 onnx="Sin", complex_units=COMPLEX_UNITS)
cos = elementary("cos", np.cos, "finite", (0.0, 1.0), (inf, nan), numpy="cos", torch="cos",
                 onnx="Cos", complex_units=COMPLEX_UNITS)
exp2 = elementary("exp2", np.exp2, "all", (-inf, 0.0), (inf, inf), (0.0, 1.0), (-1.0, 0.5),
                  numpy="exp2", torch="exp2")
log2 = elementary("log2", np.log2, "x > 0", (0.0, -inf), (-0.0, -inf), (-1.0, nan), (inf, inf),
                  (0.125, -3.0), numpy="log2", torch="log2")
log10 = elementary("log10", np.log10, "x > 0", (0.0, -inf), (-0.0, -inf), (-1.0, nan), (inf, inf),
                   (1000.0, 3.0), numpy="log10", torch="log10")
tan = elementary("tan", np.tan, "finite", _SIGNED_ZERO, (inf, nan), numpy="tan", torch="tan",
                 onnx="Tan", complex_units=COMPLEX_UNITS)
asin = elementary("asin", np.arcsin, "abs(x) <= 1", _SIGNED_ZERO, (1.0, pi / 2), (-1.0, -pi / 2),
                  (2.0, nan), numpy="arcsin", torch="asin", onnx="Asin",
                  complex_units=COMPLEX_UNITS)
acos = elementary("acos", np.arccos, "abs(x) <= 1", (1.0, 0.0), (-1.0, pi), (0.0, pi / 2), (2.0,
                  nan), numpy="arccos", torch="acos", onnx="Acos", complex_units=COMPLEX_UNITS)
atan = elementary("atan", np.arctan, "all", _SIGNED_ZERO, (inf, pi / 2), (-inf, -pi / 2),
                  numpy="arctan", torch="atan", onnx="Atan", complex_units=COMPLEX_UNITS)
sinh = elementary("sinh", np.sinh, "all", *_ODD, numpy="sinh", torch="sinh", onnx="Sinh",
                  complex_units=COMPLEX_UNITS)
cosh = elementary("cosh", np.cosh, "all", (0.0, 1.0), (-inf, inf), (inf, inf), numpy="cosh",
                  torch="cosh", onnx="Cosh", complex_units=COMPLEX_UNITS)
asinh = elementary("asinh", np.arcsinh, "all", *_ODD, numpy="arcsinh", torch="asinh", onnx="Asinh",
                   complex_units=COMPLEX_UNITS)
acosh = elementary("acosh", np.arccosh, "x >= 1", (1.0, 0.0), (0.5, nan), (-inf, nan), (inf, inf),
                   numpy="arccosh", torch="acosh", onnx="Acosh", complex_units=COMPLEX_UNITS)
atanh = elementary("atanh", np.arctanh, "abs(x) < 1", _SIGNED_ZERO, (1.0, inf), (-1.0, -inf), (2.0,
                   nan), numpy="arctanh", torch="atanh", onnx="Atanh", complex_units=COMPLEX_UNITS)
floor = _unary("floor", "number", np.floor, _SIGNED_ZERO, (-0.5, -1.0), (inf, inf),
               names=Names("floor", "floor", "floor", "Floor"))
ceil = _unary("ceil", "number", np.ceil, (-0.5, -0.0), (0.5, 1.0), (-inf, -inf), names=Names("ceil",
              "ceil", "ceil", "Ceil"))
_unary("round", "number", of.round_to_even, (-0.5, -0.0), (1.5, 2.0), (inf, inf),
       names=Names("round", "rint", "round", "Round"))
trunc = _unary("trunc", "number", np.trunc, (-0.5, -0.0), (-1.5, -1.0), (inf, inf),
               names=Names("trunc", "trunc", "trunc"))
isnan = _unary("isnan", "float", np.isnan, (nan, 1.0), (inf, 0.0), result="bool",
               names=Names("isnan", "isnan", "isnan", "IsNaN"))
isinf = _unary("isinf", "float", np.isinf, (nan, 0.0), (-inf, 1.0), result="bool",
               names=Names("isinf", "isinf", "isinf"))
sign = _unary("sign", "number", of.sign, (-0.0, 0.0), (-inf, -1.0), arrays=np.sign,
              names=Names("sign", "sign", onnx="Sign"))
popcount = _unary("popcount", "bitwise", of.count_ones, arrays=of.of_each_integer(of.count_ones),
                  names=Names("popcount"))
clz = _unary("clz", "bitwise", of.leading_zeros, arrays=of.of_each_integer(of.leading_zeros),
             names=Names("clz"))
ctz = _unary("ctz", "bitwise", of.trailing_zeros, arrays=of.of_each_integer(of.trailing_zeros),
             names=Names("ctz"))
_unary("bitnot", "integer", np.invert, names=Names("bitwise_not", "invert", onnx="BitwiseNot"))
_binary("add", "field", lambda a, b: a + b, "all", (inf, -inf, nan), (-0.0, -0.0, -0.0), units=1,
        arrays=np.add, names=Names("add", "add", onnx="Add"))
_binary("sub", "field", lambda a, b: a - b, "all", (inf, inf, nan), (-0.0, 0.0, -0.0), units=1,
        arrays=np.subtract, names=Names("subtract", "subtract", onnx="Sub"))
_binary("mul", "any", of_kind(of.multiply, pairs.multiply), "all", (0.0, inf, nan), (-0.0, 1.0,
        -0.0), units=1, arrays=of_kind(np.multiply, pairs.multiply), names=Names("multiply",
        "multiply", "mul", "Mul"), complex_units=3)
_binary("div", "inexact", of_kind(of.divide, pairs.divide), "y != 0", (1.0, -0.0, -inf), (0.0, 0.0,
        nan), (inf, inf, nan), units=1, cost=8, arrays=of_kind(np.divide, pairs.divide),
        names=Names("divide", "divide"), complex_units=8)
_binary("floordiv", "number", floor_divide, "y != 0", (1.0, 0.0, inf), (0.0, 0.0, nan), (inf, 1.0,
        nan), (-1.0, inf, -1.0), units=1, cost=16, names=Names("floor_divide", "floor_divide",
        "floor_divide"))
_binary("mod", "number", np.mod, "y != 0", (1.0, 0.0, nan), (inf, 1.0, nan), (1.0, -inf, -inf),
        (-0.0, 1.0, 0.0), units=1, cost=16, names=Names("mod", "mod", "remainder"))
_binary("min", "ordered", np.minimum, "all", (nan, 1.0, nan), (-inf, inf, -inf),
        names=Names("minimum", "minimum", "minimum"))
_binary("max", "ordered", np.maximum, "all", (nan, 1.0, nan), (-inf, inf, inf),
        names=Names("maximum", "maximum", "maximum"))
_binary("pow", "field", of_kind(of.power, pairs.power), "x >= 0 or integer y", (nan, 0.0, 1.0),
        (1.0, nan, 1.0), (-1.0, inf, 1.0), (-8.0, 0.5, nan), (-0.0, -1.0, -inf), units=4, cost=8,
        names=Names(numpy="power"), complex_units=POWER_UNITS)
_binary("and", "bits", lambda a, b: a & b, "all", names=Names("bitwise_and", "bitwise_and",
        onnx="BitwiseAnd"))
_binary("or", "bits", lambda a, b: a | b, "all", names=Names("bitwise_or", "bitwise_or",
        onnx="BitwiseOr"))
_binary("xor", "bits", lambda a, b: a ^ b, "all", names=Names("bitwise_xor", "bitwise_xor",
        onnx="BitwiseXor"))
_binary("shl", "integer", np.left_shift, "all", names=Names("left_shift",
        "left_shift"))
_binary("shr", "integer", np.right_shift, "all", names=Names("right_shift",
        "right_shift"))
atan2 = _binary("atan2", "float", in_double(np.arctan2), "all", (0.0, -1.0, pi), (-0.0, -1.0, -pi),
                (inf, inf, pi / 4), (-0.0, 0.0, -0.0), units=4, cost=8, arrays=np.arctan2,
                names=Names("atan2", "arctan2", "atan2"))
hypot = _binary("hypot", "float", in_double(np.hypot), "all", (-3.0, 4.0, 5.0), (inf, nan, inf),
                (nan, -inf, inf), (-0.0, -0.0, 0.0), units=4, cost=16, arrays=np.hypot,
                names=Names("hypot", "hypot", "hypot"))
fmod = _binary("fmod", "number", of.truncated_remainder, "y != 0", (1.0, 0.0, nan), (inf, 1.0, nan),
               (1.0, -inf, 1.0), (-0.0, 1.0, -0.0), (-5.0, 3.0, -2.0), cost=16, arrays=np.fmod,
               names=Names("fmod", "fmod", "fmod"))
copysign = _binary("copysign", "float", np.copysign, "all", (1.0, -0.0, -1.0), (-inf, 1.0, inf),
                   (-0.0, 2.0, 0.0), names=Names("copysign", "copysign", "copysign"))
nextafter = _binary("nextafter", "format", of.neighbor, "all", (1.0, 1.0, 1.0), (0.0, -0.0, -0.0),
                    (nan, 1.0, nan), (1.0, nan, nan), (inf, inf, inf), units=2, bounds=(0.0, 0.0),
                    arrays=of.neighbors, names=Names("nextafter", "nextafter", "nextafter"))
random_bits = _binary("random_bits", "word", of.random_bits, "all", cost=80)
ldexp = _binary("ldexp", "float", of.scaled, "all", (inf, 1.0, inf), (-0.0, 5.0, -0.0), (1.0,
                -2000.0, 0.0), (-1.0, 2000.0, -inf), (1.5, 3.0, 12.0), second=i32, units=1, cost=12,
                names=Names(numpy="ldexp"))
real = _unary("real", "complex", np.real, result="part", names=Names("real", "real"))
imag = _unary("imag", "complex", np.imag, result="part", names=Names("imag", "imag"))
conj = _unary("conj", "complex", np.conjugate, names=Names("conj", "conj"))
angle = _unary("angle", "complex", pairs.angle, result="part", units=4, names=Names("angle",
               "angle"))
_binary("complex", "part", pairs.paired, "all", result="complex", names=Names("complex"))
fma = register(ElementFunction("fma", "float", of.fused, "all", ((inf, 0.0, 1.0, nan), (-0.0, 1.0,
               -0.0, -0.0), (1.0, 1.0, -1.0, 0.0), (1.0, inf, -inf, nan)), 3, units=1,
               note=_NO_FMA))
# fmt: on
