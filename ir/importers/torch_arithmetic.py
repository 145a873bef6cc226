"""Import handlers of element-wise PyTorch operators."""

from __future__ import annotations

import math

from ..dtype import DType, bool_, f32, i64
from ..loop.element_functions import named
from ..symbolic import Expr
from .elementwise import (
    convert,
    elementwise,
    integer_power,
    rounded_once,
    truncated_quotient,
    where,
)
from .shaping import expand_dims
from .tensors import Imported, Uniform
from .torch_context import OperandLike, TorchContext, aten


def _named(arity: int, *, predicate: bool = False) -> dict[str, str]:
    """Return the operators of element functions by their names in ATen."""
    return {
        name: f.names.operator
        for name, f in named("torch").items()
        if f.arity == arity and f.predicate == predicate
    }


_ALIASES = {
    "special_expm1": "expm1", "special_log1p": "log1p", "special_exp2": "exp2",
    "special_expit": "sigmoid", "special_erf": "erf", "special_erfc": "erfc",
    "special_erfinv": "erfinv", "special_gammaln": "lgamma", "special_psi": "digamma",
    "special_digamma": "digamma", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "absolute": "abs", "fix": "trunc",
}  # fmt: skip
"""Other names of functions of one operand."""

_UNARY = {
    **_named(1),
    **{alias: _named(1)[name] for alias, name in _ALIASES.items()},
    "relu": "relu",
    "silu": "silu",
}
_TESTS = _named(1, predicate=True)
_BINARY = {**_named(2), "arctan2": "atan2"}
_COMPARE = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal",
}  # fmt: skip
_LOGIC = {
    "logical_and": "and", "logical_or": "or", "logical_xor": "xor", "bitwise_and": "and",
    "bitwise_or": "or", "bitwise_xor": "xor", "__and__": "and", "__or__": "or", "__xor__": "xor",
}  # fmt: skip
_MOST_DECIMALS = 308
"""The largest power of 10 in float64."""
_OF_CONDITIONS = {
    "add": "logical_or", "multiply": "logical_and", "maximum": "logical_or",
    "minimum": "logical_and",
}  # fmt: skip
"""The operators that PyTorch applies to two conditions."""


def _operands(t: TorchContext, *values: OperandLike) -> list[Imported]:
    """Convert operands to the dtype of the result, following PyTorch's type promotion."""
    dtype = t.result_dtype()
    return [convert(t, t.number(v, dtype), dtype) for v in values]


def _of_kind(t: TorchContext, op: str) -> str:
    """Return an operator for the dtype of the result; PyTorch adds conditions by ``or``."""
    return _OF_CONDITIONS.get(op, op) if t.result_dtype() == bool_ else op


def _unary(name: str, op: str) -> None:
    @aten(name)
    def handler(t: TorchContext, x: Imported) -> Imported:  # pyright: ignore[reportUnusedFunction]
        return elementwise(t, op, [x] if x.dtype.is_complex else _operands(t, x))


def _test(name: str, op: str) -> None:
    @aten(name)
    def handler(t: TorchContext, x: Imported) -> Imported:  # pyright: ignore[reportUnusedFunction]
        return elementwise(t, op, [x])


def _binary(name: str, op: str) -> None:
    @aten(name)
    def handler(t: TorchContext, x: OperandLike, y: OperandLike) -> Imported:  # pyright: ignore[reportUnusedFunction]
        return elementwise(t, _of_kind(t, op), _operands(t, x, y))


def _compare(name: str, op: str) -> None:
    @aten(name)
    def handler(t: TorchContext, x: OperandLike, y: OperandLike) -> Imported:  # pyright: ignore[reportUnusedFunction]
        dtype = promoted(x, y)
        return elementwise(t, op, [convert(t, t.number(v, dtype), dtype) for v in (x, y)])


def _logic(name: str, op: str) -> None:
    @aten(name)
    def handler(t: TorchContext, x: OperandLike, y: OperandLike) -> Imported:  # pyright: ignore[reportUnusedFunction]
        family = "logical" if t.result_dtype() == bool_ else "bitwise"
        return elementwise(t, f"{family}_{op}", _operands(t, x, y))


for _table, _make in (
    (_UNARY, _unary), (_TESTS, _test), (_BINARY, _binary), (_COMPARE, _compare), (_LOGIC, _logic)
):  # fmt: skip
    for _name, _op in _table.items():
        _make(_name, _op)


def promoted(*values: OperandLike) -> DType:
    """Return the common dtype of the operands of a comparison."""
    tensors = [v.dtype for v in values if isinstance(v, Imported)]
    if not tensors:
        return i64
    ranks = [v.dtype for v in values if isinstance(v, Imported) and v.rank] or tensors
    widest = max(ranks, key=lambda d: (d.is_complex, d.is_float, d.is_integer, d.bits))
    if not widest.is_inexact and any(isinstance(v, float) for v in values):
        return f32
    whole = any(isinstance(v, int | Expr) and not isinstance(v, bool) for v in values)
    return i64 if widest == bool_ and whole else widest


@aten("add", "sub")
def add(t: TorchContext, x: OperandLike, y: OperandLike, *, alpha: float = 1) -> Imported:
    """Import ``x ± alpha * y``."""
    left, right = _operands(t, x, y)
    op = _of_kind(t, "add" if t.operator == "add" else "subtract")
    return _scaled_sum(t, op, left, right, alpha)


def _scaled_sum(
    t: TorchContext, op: str, left: Imported, right: Imported, alpha: float
) -> Imported:
    """Return ``left ± alpha * right``, rounded once."""
    if alpha == 1:
        return elementwise(t, op, [left, right])

    def compute(x: Imported, y: Imported) -> Imported:
        scaled = elementwise(t, "multiply", [y, t.uniform(alpha, (), y.dtype)])
        return elementwise(t, op, [x, scaled])

    return rounded_once(t, compute, left, right)


@aten("rsub")
def rsub(t: TorchContext, x: OperandLike, y: OperandLike, alpha: float = 1) -> Imported:
    """Import ``y - alpha * x``."""
    left, right = _operands(t, x, y)
    return _scaled_sum(t, "subtract", right, left, alpha)


@aten("div", "divide", "true_divide")
def div(
    t: TorchContext, x: OperandLike, y: OperandLike, *, rounding_mode: str | None = None
) -> Imported:
    """Import division without rounding, rounded down, or rounded toward zero."""
    left, right = _operands(t, x, y)
    if rounding_mode == "trunc":
        return truncated_quotient(t, left, right)
    return elementwise(t, "divide" if rounding_mode is None else "floor_divide", [left, right])


@aten("pow")
def power(t: TorchContext, x: OperandLike, y: OperandLike) -> Imported:
    """Import the power; that of integers has a constant exponent."""
    left, right = _operands(t, x, y)
    if left.dtype.is_integer and isinstance(right.known, Uniform):
        return integer_power(t, left, int(right.known.value))
    return elementwise(t, "power", [left, right])


@aten("reciprocal")
def reciprocal(t: TorchContext, x: Imported) -> Imported:
    """Import ``1 / x``."""
    return elementwise(t, "divide", _operands(t, 1.0, x))


@aten("sign")
def sign(t: TorchContext, x: Imported) -> Imported:
    """Import the sign; PyTorch defines the sign of NaN as 0."""
    found = elementwise(t, "sign", [x])
    if not x.dtype.is_float:
        return found
    nan = elementwise(t, "isnan", [x])
    return where(t, nan, t.uniform(0.0, x.shape, x.dtype), found)


@aten("square")
def square(t: TorchContext, x: Imported) -> Imported:
    """Import ``x * x``."""
    return elementwise(t, "multiply", [x, x])


@aten("logical_not", "bitwise_not")
def invert(t: TorchContext, x: Imported) -> Imported:
    """Import the logical or bitwise negation."""
    if t.operator == "logical_not":
        x = convert(t, x, bool_)
    return elementwise(t, "logical_not" if x.dtype == bool_ else "bitwise_not", [x])


@aten("round")
def round_(t: TorchContext, x: Imported, *, decimals: int = 0) -> Imported:
    """Import rounding to an integer or to decimals; negative decimals round digits before them."""
    (value,) = _operands(t, x)
    if not decimals:
        return elementwise(t, "round", [value])
    there, back = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")

    def compute(y: Imported) -> Imported:
        scale = 10.0 ** abs(decimals) if abs(decimals) <= _MOST_DECIMALS else math.inf
        power = t.uniform(scale, (), y.dtype)
        scaled = elementwise(t, "round", [elementwise(t, there, [y, power])])
        return elementwise(t, back, [scaled, power])

    return rounded_once(t, compute, value)


@aten("gelu")
def gelu(t: TorchContext, x: Imported, *, approximate: str = "none") -> Imported:
    """Import the Gaussian error linear unit."""
    found = t.emit("gelu", t.compact(x), approximate=approximate)
    return Imported(x.shape, x.dtype, found)


@aten("clamp", "clamp_min", "clamp_max")
def clamp(
    t: TorchContext, x: Imported, low: OperandLike | None = None, high: OperandLike | None = None,
    *, min: OperandLike | None = None, max: OperandLike | None = None,  # noqa: A002
) -> Imported:  # fmt: skip
    """Import clamping to a range."""
    if t.operator == "clamp_max":
        low, high = None, low
    low, high = (min if low is None else low), (max if high is None else high)
    (found,) = _operands(t, x)
    if low is not None:
        found = elementwise(t, "maximum", [found, *_operands(t, low)])
    if high is not None:
        found = elementwise(t, "minimum", [found, *_operands(t, high)])
    return found


@aten("where")
def where_(t: TorchContext, condition: Imported, x: OperandLike, y: OperandLike) -> Imported:
    """Import the element-wise selection."""
    left, right = _operands(t, x, y)
    return where(t, condition, left, right)


@aten("masked_fill")
def masked_fill(t: TorchContext, x: Imported, mask: Imported, value: OperandLike) -> Imported:
    """Import the replacement of masked elements by a number."""
    left, right = _operands(t, value, x)
    return where(t, mask, left, right)


@aten("outer", "ger")
def outer(t: TorchContext, x: Imported, y: Imported) -> Imported:
    """Import the products of all pairs of elements of two vectors."""
    left, right = _operands(t, x, y)
    return elementwise(t, "multiply", [expand_dims(t, left, (1,)), expand_dims(t, right, (0,))])
