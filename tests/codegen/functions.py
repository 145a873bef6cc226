"""Element functions compiled alone, and how far their results are from the exact ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import numpy as np
from scipy import special

from tilewright.ir.dtype import DType, f32, i32
from tilewright.ir.identity import UidSource
from tilewright.ir.loop.element_functions import FUNCTIONS
from tilewright.ir.loop.nodes import (
    Binary,
    Buffer,
    BufferParam,
    Cast,
    Compare,
    Element,
    For,
    If,
    Load,
    PrimFunc,
    Stmt,
    Store,
    Ternary,
    Unary,
)
from tilewright.ir.loop.visit import seq
from tilewright.ir.symbolic import as_expr, ceildiv, var

from tests.codegen.kernels import BEST, Kernel, build

UNARY = tuple(
    f.name
    for f in FUNCTIONS.values()
    if f.arity == 1 and f.accepts(f32) and not f.accepts(i32) and not f.predicate
)
"""The functions of one float that are not predicates."""


def elementwise(op: str, dtype: DType, level: str = BEST, *, arity: int = 1) -> Kernel:
    """Compile ``y[i] = op(x[i], ...)`` with vectors of 16 lanes and a tail."""
    return several(((op, dtype),), dtype, level, arity)


@functools.cache
def several(ops: tuple[tuple[str, DType], ...], dtype: DType, level: str, arity: int = 1) -> Kernel:
    """Compile several functions of the same operands; ``cast`` converts to the paired dtype."""
    return build(program(ops, dtype, arity), level)


def program(
    ops: tuple[tuple[str, DType], ...],
    dtype: DType,
    arity: int = 1,
    name: str = "f",
    lanes: int = 16,
) -> PrimFunc:
    """Return a function with one loop over vectors and a tail per operation."""
    mint, n = UidSource(), var("n", lower=0)
    second = next((f.second for op, _ in ops if (f := FUNCTIONS.get(op))), None)
    inputs = [
        Buffer(mint(), f"x{k}", (n,), second if k == 1 and second else dtype) for k in range(arity)
    ]
    outputs: list[Buffer] = []
    loops: list[Stmt] = []
    for k, (op, out) in enumerate(ops):
        outer, lane = var(f"i{k}", lower=0), var(f"lane{k}", lower=0, upper=lanes - 1)
        index = (outer * lanes + lane,)
        value = _element(op, [Load(x, index) for x in inputs], out)
        y = Buffer(mint(), f"y{k}", (n,), value.dtype)
        store = If(index[0] < n, Store(y, index, value))
        inner = For(mint(), lane, as_expr(lanes), store, "vectorized")
        loops.append(For(mint(), outer, ceildiv(n, lanes), inner))
        outputs.append(y)
    params = [*(BufferParam(x, "in") for x in inputs), *(BufferParam(y, "out") for y in outputs)]
    return PrimFunc(name, tuple(params), seq(*loops))


def one_vector(op: str, dtype: DType, arity: int = 1, lanes: int = 16) -> PrimFunc:
    """Return a function that applies an operation to one vector, without a tail."""
    mint, lane = UidSource(), var("lane", lower=0, upper=lanes - 1)
    second = FUNCTIONS[op].second if op in FUNCTIONS else None
    shape = (as_expr(lanes),)
    inputs = [
        Buffer(mint(), f"x{k}", shape, second if k == 1 and second else dtype) for k in range(arity)
    ]
    value = _element(op, [Load(x, (lane,)) for x in inputs], dtype)
    y = Buffer(mint(), "y", shape, value.dtype)
    body = For(mint(), lane, as_expr(lanes), Store(y, (lane,), value), "vectorized")
    return PrimFunc("f", (*(BufferParam(x, "in") for x in inputs), BufferParam(y, "out")), body)


def _element(op: str, operands: list[Element], out: DType) -> Element:
    if op == "cast":
        return Cast(out, operands[0])
    if op in ("lt", "le", "gt", "ge", "eq", "ne"):
        return Compare(op, *operands)
    return (Unary, Binary, Ternary)[len(operands) - 1](op, *operands)


def apply(kernel: Kernel, *arrays: np.ndarray) -> np.ndarray:
    """Call a kernel of :func:`elementwise`."""
    return apply_all(kernel, *arrays)[0]


def apply_all(kernel: Kernel, *arrays: np.ndarray) -> list[np.ndarray]:
    """Call a kernel of :func:`several`."""
    types = [b.dtype.numpy for b in kernel.source.buffer_params[len(arrays) :]]
    outs = [np.empty(arrays[0].shape, t) for t in types]
    assert kernel(*arrays, *outs) == 0
    return outs


def _sigmoid(x: np.ndarray) -> np.ndarray:
    z = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, z) / (1 + z)


_SERIES = [0.0, -np.euler_gamma, *((-1) ** k * special.zeta(k) / k for k in range(2, 18))]
"""The series of lgamma(1 + t)."""


def _erfinv(x: np.ndarray) -> np.ndarray:
    inside = np.abs(x) < 1
    found = np.where(np.abs(x) == 1, np.copysign(np.inf, x), np.nan)
    found[inside] = special.erfinv(x[inside])
    return np.where(x == 0, x, found)


def _log_gamma(x: np.ndarray) -> np.ndarray:
    found = _beside_roots(x, special.gammaln, _exact_log_gamma)
    for root in (1, 2):
        t = x - root
        near = np.abs(t) < 0.05
        below = np.polynomial.polynomial.polyval(t[near], _SERIES)
        found[near] = below if root == 1 else below + np.log1p(t[near])
    return np.where(np.isinf(x), np.inf, found)


def _digamma(x: np.ndarray) -> np.ndarray:
    poles = (x == np.floor(x)) & (x < 0)
    return np.where(poles, np.nan, _beside_roots(x, special.digamma, mpmath.digamma))


def _exact_log_gamma(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.re(mpmath.loggamma(x))


def _beside_roots(
    x: np.ndarray, apply: Callable[[np.ndarray], np.ndarray], exact: Callable[[mpmath.mpf], Any]
) -> np.ndarray:
    """Apply a function of SciPy, whose error is absolute, and compute small results exactly."""
    found = apply(x)
    for k in np.flatnonzero((np.abs(found) < 0.002) & (x < 0)):
        with mpmath.workprec(160):
            found[k] = float(exact(mpmath.mpf(float(x[k]))))
    return found


ARRAYS: Mapping[str, Callable[..., np.ndarray]] = {
    "sigmoid": _sigmoid,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": special.erf,
    "erfc": special.erfc,
    "erfinv": _erfinv,
    "lgamma": _log_gamma,
    "digamma": _digamma,
    **{f.name: getattr(np, f.names.numpy) for f in FUNCTIONS.values() if f.names.numpy},
}
"""The functions of float64 that results in single precision are compared with."""

EXACT: Mapping[str, Callable[..., Any]] = {
    **{name: getattr(mpmath, name) for name in (
        "exp", "log", "log1p", "expm1", "sqrt", "tanh", "erf", "sin", "cos", "tan", "asin", "acos",
        "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erfc", "erfinv", "digamma", "atan2",
        "hypot", "floor", "ceil", "sign",
    )},
    "neg": lambda x: -x,
    "abs": abs,
    "round": mpmath.nint,
    "trunc": lambda x: mpmath.sign(x) * mpmath.floor(abs(x)),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "exp2": lambda x: mpmath.power(2, x),
    "log2": lambda x: mpmath.log(x, 2),
    "log10": mpmath.log10,
    "lgamma": _exact_log_gamma,
    "pow": mpmath.power,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "min": min,
    "max": max,
    "ldexp": mpmath.ldexp,
    "fma": lambda x, y, z: x * y + z,
}  # fmt: skip
"""The functions of many digits that results in double precision are compared with."""


def reference(op: str, x: np.ndarray) -> np.ndarray:
    """Compute in float64 (arguments in single precision are exact there)."""
    with np.errstate(all="ignore"):
        return ARRAYS[op](x.astype(np.float64))


def error_in_ulps(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Distance from the exact value in units of the last place of the rounded one."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(found.dtype)
        unit = np.spacing(np.abs(rounded)).astype(np.float64)
        distance = np.abs(found.astype(np.longdouble) - exact) / unit
    same = (np.isnan(found) & np.isnan(exact)) | (found == rounded)
    return np.where(same, 0, np.where(np.isfinite(distance), distance, np.inf))


def sample(start: int, step: int) -> np.ndarray:
    """Return the single-precision numbers of every ``step``-th bit pattern."""
    return np.arange(start, 1 << 32, step, dtype=np.uint64).astype(np.uint32).view(np.float32)


SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1e-45, -1e-45, 1.1754944e-38,
     3.4028235e38, -3.4028235e38, 88.72283, 88.72284, -87.33655, -103.97, -104.0, -1e30, 1e4, -1e4],
    np.float32,
)  # fmt: skip
