"""Element functions compiled alone, and how far their results are from the exact ones."""

from __future__ import annotations

import functools

import numpy as np
from scipy import special

from tilewright.ir.dtype import DType
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
    Unary,
)
from tilewright.ir.loop.visit import seq
from tilewright.ir.symbolic import as_expr, ceildiv, var

from tests.codegen.kernels import BEST, Kernel, build

UNARY = tuple(
    f.name for f in FUNCTIONS.values() if f.arity == 1 and f.operands == "float" and not f.predicate
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
    ops: tuple[tuple[str, DType], ...], dtype: DType, arity: int = 1, name: str = "f"
) -> PrimFunc:
    """Return a function with one loop over 16 lanes and a tail per operation."""
    mint, n = UidSource(), var("n", lower=0)
    inputs = [Buffer(mint(), f"x{k}", (n,), dtype) for k in range(arity)]
    outputs: list[Buffer] = []
    loops: list[Stmt] = []
    for k, (op, out) in enumerate(ops):
        outer, lane = var(f"i{k}", lower=0), var(f"lane{k}", lower=0, upper=15)
        index = (outer * 16 + lane,)
        value = _element(op, [Load(x, index) for x in inputs], out)
        y = Buffer(mint(), f"y{k}", (n,), value.dtype)
        store = If(index[0] < n, Store(y, index, value))
        inner = For(mint(), lane, as_expr(16), store, "vectorized")
        loops.append(For(mint(), outer, ceildiv(n, 16), inner))
        outputs.append(y)
    params = [*(BufferParam(x, "in") for x in inputs), *(BufferParam(y, "out") for y in outputs)]
    return PrimFunc(name, tuple(params), seq(*loops))


def _element(op: str, operands: list[Element], out: DType) -> Element:
    if op == "cast":
        return Cast(out, operands[0])
    if op in ("lt", "le", "gt", "ge", "eq", "ne"):
        return Compare(op, *operands)
    return Unary(op, operands[0]) if len(operands) == 1 else Binary(op, *operands)


def apply(kernel: Kernel, *arrays: np.ndarray) -> np.ndarray:
    """Call a kernel of :func:`elementwise`."""
    return apply_all(kernel, *arrays)[0]


def apply_all(kernel: Kernel, *arrays: np.ndarray) -> list[np.ndarray]:
    """Call a kernel of :func:`several`."""
    types = [b.dtype.numpy for b in kernel.artifact.buffers[len(arrays) :]]
    outs = [np.empty(arrays[0].shape, t) for t in types]
    assert kernel(*arrays, *outs) == 0
    return outs


def reference(op: str, x: np.ndarray) -> np.ndarray:
    """Compute in float64 (arguments in single precision are exact there)."""
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        if op == "sigmoid":
            z = np.exp(-np.abs(wide))
            return np.where(wide >= 0, 1, z) / (1 + z)
        if op == "rsqrt":
            return 1 / np.sqrt(wide)
        return getattr(np, op)(wide) if hasattr(np, op) else getattr(special, op)(wide)


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
