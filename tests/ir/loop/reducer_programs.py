"""Programs of reductions, scans, and narrow weights, with their exact results and error bounds."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

UNIT = 2.0**-24
"""The relative rounding error of single precision."""

LAST = np.iinfo(np.int64).max
SIZES = ((0, 0), (0, 5), (1, 0), (1, 1), (3, 13), (2, 200), (5, 64))
"""Rows and terms: empty, one, a prime, more than two vectors, and whole vectors."""

_ROWS = """
@prim_func
def {name}(x: Buffer[(n, m), f32], best: Out[(n,), f32], at: Out[(n,), i64]):
    for i in range(n):
        for k in range(m):
            with block("find"):
                vi, vk = spatial(i), reduce(k)
                with init(): best[vi], at[vi] = {start}, 9223372036854775807
                best[vi], at[vi] = {name}(x[vi, vk], vk)
"""

MOMENTS = """
@prim_func
def moments(x: Buffer[(n, m), f32], mean: Out[(n,), f32], variance: Out[(n,), f32]):
    c = alloc((n,), f32)
    square = alloc((n,), f32)
    for i in range(n):
        for k in range(m):
            with block("reduce"):
                vi, vk = spatial(i), reduce(k)
                with init(): c[vi], mean[vi], square[vi] = 0.0, 0.0, 0.0
                c[vi], mean[vi], square[vi] = welford(1.0, x[vi, vk], 0.0)
    for j in range(n):
        with block("divide"):
            vj = spatial(j)
            variance[vj] = square[vj] / c[vj]
"""

LOGSUMEXP = """
@prim_func
def log_sum(x: Buffer[(n, m), f32], y: Out[(n,), f32]):
    top = alloc((n,), f32)
    total = alloc((n,), f32)
    for i in range(n):
        for k in range(m):
            with block("reduce"):
                vi, vk = spatial(i), reduce(k)
                with init(): top[vi], total[vi] = -inf, 0.0
                top[vi], total[vi] = logsumexp(x[vi, vk], 1.0)
    for j in range(n):
        with block("log"):
            vj = spatial(j)
            y[vj] = top[vj] + log(total[vj])
"""

ATTENTION = """
@prim_func
def attention(x: Buffer[(n, m), f32], v: Buffer[(m,), f32], y: Out[(n,), f32]):
    top = alloc((n,), f32)
    total = alloc((n,), f32)
    sum = alloc((n,), f32)
    for i in range(n):
        for k in range(m):
            with block("reduce"):
                vi, vk = spatial(i), reduce(k)
                with init(): top[vi], total[vi], sum[vi] = -inf, 0.0, 0.0
                top[vi], total[vi], sum[vi] = online_softmax(x[vi, vk], 1.0, v[vk])
    for j in range(n):
        with block("divide"):
            vj = spatial(j)
            y[vj] = sum[vj] / total[vj]
"""

OFFSETS = """
@prim_func
def offsets(
    off: Buffer[(n + 1,), i32], x: Buffer[(m,), f32], scale: Buffer[(n,), f32],
    best: Out[(n,), f32], at: Out[(n,), i64],
):
    for i in range(n):
        with checked(off[i], 0, m + 1) as lo:
            with checked(off[i + 1], lo, m + 1) as hi:
                for k in range(hi - lo):
                    with block("find"):
                        vi, vl, vk = spatial(n, i), spatial(m + 1, lo), reduce(m, k)
                        with init(): best[vi], at[vi] = -inf, 9223372036854775807
                        best[vi], at[vi] = argmax(x[vl + vk] * scale[vi], vl + vk)
"""

NUMBERS = """
@prim_func
def numbers(
    seg: Buffer[(m,), i32], x: Buffer[(m,), f32], total: InOut[(n,), f32], c: InOut[(n,), i32],
):
    for k in range(m):
        with block("add"):
            vk = reduce(k)
            @reducer(identity=(0.0, 0))
            def counted(a: f32, i: i32, b: f32, j: i32):
                return a + b, i + j
            with checked(seg[vk], 0, n) as p:
                total[p], c[p] = counted(x[vk], 1)
"""

SCATTER = """
@prim_func
def scatter(
    seg: Buffer[(m,), i32], x: Buffer[(m,), f32], best: InOut[(n,), f32], at: InOut[(n,), i64],
    top: InOut[(n,), f32], total: InOut[(n,), f32],
):
    for k in range(m):
        with block("find"):
            vk = reduce(k)
            with checked(seg[vk], 0, n) as p:
                best[p], at[p] = argmax(x[vk], vk)
    for k1 in range(m):
        with block("max"):
            vk = reduce(k1)
            with checked(seg[vk], 0, n) as q:
                top[q] = max(top[q], x[vk])
    for k2 in range(m):
        with block("add"):
            vk = reduce(k2)
            with checked(seg[vk], 0, n) as r:
                total[r] += x[vk]
"""

_SILUS = "".join(f"                v{k + 1} = v{k} * sigmoid(v{k})\n" for k in range(20))
CHAIN = f"""
@prim_func
def chain(x: Buffer[(n, m), f32], y: Out[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            with block("chain"):
                vi, vj = spatial(i), spatial(j)
                v0 = x[vi, vj]
{_SILUS}                y[vi, vj] = v20
"""

SUMS = """
@prim_func
def sums(x: Buffer[(n, m), f32], y: Out[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            with block("sums"):
                vi, vj = spatial(i), ordered(j)
                y[vi, vj] = scan(add, x[vi, vj])
"""

STATES = """
@prim_func
def states(
    a: Buffer[(n, m), f32], b: Buffer[(n, m), f32], p: Out[(n, m), f32], h: Out[(n, m), f32],
):
    for i in range(n):
        for j in range(m):
            with block("states"):
                vi, vj = spatial(i), ordered(j)
                p[vi, vj], h[vi, vj] = scan(linear_recurrence, a[vi, vj], b[vi, vj])
"""

COLUMNS, GROUP = 7, 32
"""The columns of weights, so that an odd number of elements of 4 bits is stored; a group's rows."""

INT4 = f"""
@prim_func
def int4(
    x: Buffer[(n, m), f32], w: Buffer[(m, {COLUMNS}), i4],
    s: Buffer[(ceildiv(m, {GROUP}), {COLUMNS}), f32], y: Out[(n, {COLUMNS}), f32],
):
    for i in range(n):
        for j in range({COLUMNS}):
            for k in range(m):
                with block("product"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): y[vi, vj] = 0.0
                    y[vi, vj] += x[vi, vk] * (f32(w[vk, vj]) * s[vk // {GROUP}, vj])
"""

FP8 = f"""
@prim_func
def fp8(x: Buffer[(n, m), f32], w: Buffer[(m, {COLUMNS}), f8_e4m3], y: Out[(n, {COLUMNS}), f32]):
    for i in range(n):
        for j in range({COLUMNS}):
            for k in range(m):
                with block("product"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): y[vi, vj] = 0.0
                    y[vi, vj] += x[vi, vk] * f32(w[vk, vj])
"""

PROGRAMS = {
    "argmax": _ROWS.format(name="argmax", start="-inf"),
    "argmin": _ROWS.format(name="argmin", start="inf"),
    "moments": MOMENTS,
    "log_sum": LOGSUMEXP,
    "attention": ATTENTION,
    "offsets": OFFSETS,
    "numbers": NUMBERS,
    "scatter": SCATTER,
    "chain": CHAIN,
    "sums": SUMS,
    "states": STATES,
    "int4": INT4,
    "fp8": FP8,
}
"""The functions by name; one module may contain all of them."""

MODULE = 'n, m = symbols("n m", lower=0)\n' + "\n".join(PROGRAMS.values())


def inputs(name: str, n: int, m: int) -> list[np.ndarray]:
    """Return the in and inout arrays: values with ties, and some that are NaN or infinite."""
    rng = np.random.default_rng(100 * n + m)
    x = rng.normal(3, 2, (n, m)).astype(np.float32)
    row = rng.normal(3, 2, m).astype(np.float32)
    if name in ("argmax", "argmin") and n and m > 2:
        x[:, m // 2] = x[:, 0]
        x[0, m // 2 :] = np.nan
        x[-1, [1, m - 1]] = -np.inf if name == "argmin" else np.inf
    seg = rng.integers(0, max(n, 1), m if n else 0).astype(np.int32)
    cuts = np.sort(rng.integers(0, m + 1, n + 1)).astype(np.int32)
    scale = rng.choice([0.5, 2.0], n).astype(np.float32)
    zeros, ones = np.zeros(n, np.float32), np.full(n, -np.inf, np.float32)
    match name:
        case "attention":
            return [x, row]
        case "offsets":
            return [cuts, row, scale]
        case "numbers":
            return [seg, row[: len(seg)], zeros, np.zeros(n, np.int32)]
        case "states":
            return [rng.uniform(-1, 1, (n, m)).astype(np.float32), x]
        case "int4":
            scales = rng.uniform(0.5, 2, (-(-m // GROUP), COLUMNS)).astype(np.float32)
            return [x, rng.integers(-8, 8, (m, COLUMNS)).astype(ml_dtypes.int4), scales]
        case "fp8":
            return [x, rng.normal(0, 9, (m, COLUMNS)).astype(ml_dtypes.float8_e4m3fn)]
        case "scatter":
            return [seg, row[: len(seg)], ones, np.full(n, LAST), ones.copy(), zeros]
        case _:
            return [x]


def outputs(name: str, n: int, m: int) -> list[np.ndarray]:
    """Return uninitialized arrays for the out parameters."""
    match name:
        case "chain" | "sums":
            return [np.empty((n, m), np.float32)]
        case "states":
            return [np.empty((n, m), np.float32) for _ in range(2)]
        case "int4" | "fp8":
            return [np.empty((n, COLUMNS), np.float32)]
        case "argmax" | "argmin" | "offsets":
            return [np.empty(n, np.float32), np.empty(n, np.int64)]
        case "moments":
            return [np.empty(n, np.float32) for _ in range(2)]
        case "log_sum" | "attention":
            return [np.empty(n, np.float32)]
        case _:
            return []


def exact(
    name: str, arrays: Sequence[np.ndarray], terms: int | None = None
) -> list[tuple[np.ndarray, np.ndarray | float]]:
    """Return the results in double precision, each with a bound of its absolute error.

    ``terms`` are the terms combined in sequence, by default all.
    """
    wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]
    with np.errstate(all="ignore"):
        match name:
            case "argmax" | "argmin":
                return [(a, 0.0) for a in _extremes(name, wide[0])]
            case "moments":
                return _moments(wide[0], terms)
            case "log_sum":
                return [_log_sum(wide[0], terms)]
            case "attention":
                return [_attention(*wide, terms=terms)]
            case "offsets":
                return [(a, 0.0) for a in _offsets(*wide)]
            case "chain":
                return [_chain(wide[0])]
            case "sums":
                bound = UNIT * (terms or wide[0].shape[1]) * np.abs(wide[0]).cumsum(1)
                return [(wide[0].cumsum(1), bound)]
            case "states":
                return _states(*wide)
            case "int4" | "fp8":
                return [_product(*(a.astype(np.float64) for a in arrays))]
            case _:
                return _scattered(name, *wide)


def _extremes(name: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    start = -np.inf if name == "argmax" else np.inf
    if x.shape[1] == 0:
        return np.full(len(x), start), np.full(len(x), LAST)
    at = np.argmax(x, 1) if name == "argmax" else np.argmin(x, 1)
    return x[np.arange(len(x)), at], at


def _moments(x: np.ndarray, terms: int | None) -> list[tuple[np.ndarray, np.ndarray | float]]:
    """Return mean and variance.

    A step rounds four times: the difference, the weight, their product and the sum; each is at most
    twice the largest magnitude. The square adds three more, of at most four times its square.
    """
    n, m = x.shape
    if m == 0:
        return [(np.zeros(n), 0.0), (np.full(n, np.nan), 0.0)]
    top, steps = np.abs(x).max(1), terms or m
    return [(x.mean(1), 8 * steps * UNIT * top), (x.var(1), 32 * steps * UNIT * top**2)]


def _log_sum(x: np.ndarray, terms: int | None) -> tuple[np.ndarray, np.ndarray | float]:
    """Return the logarithm; a step of the sum rounds a scale, a product and a sum, relatively."""
    n, m = x.shape
    if m == 0:
        return np.full(n, -np.inf), 0.0
    top = x.max(1)
    want = top + np.log(np.exp(x - top[:, None]).sum(1))
    return want, UNIT * (6 * (terms or m) + 4 + 2 * np.abs(want))


def _attention(
    x: np.ndarray, v: np.ndarray, terms: int | None
) -> tuple[np.ndarray, np.ndarray | float]:
    n, m = x.shape
    if m == 0:
        return np.full(n, np.nan), 0.0
    weights = np.exp(x - x.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    span = np.abs(x).max(1) + np.log(m + 1)  # the argument of exp is rounded, too
    return weights @ v, UNIT * (12 * (terms or m) + 8 + 4 * span) * (weights @ np.abs(v))


def _offsets(off: np.ndarray, x: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    best, at = np.full(len(scale), -np.inf), np.full(len(scale), LAST)
    for i, (low, high) in enumerate(pairwise(off)):
        if low < high:
            part = x[low:high] * scale[i]
            at[i] = low + np.argmax(part)
            best[i] = part.max()
    return best, at


def _chain(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return 20 chained SiLUs; each has a derivative of at most 1.1 and rounds within 4 units."""
    value, error = x, np.zeros(x.shape)
    for _ in range(20):
        value = value / (1 + np.exp(-value))
        error = 1.1 * error + 4 * UNIT * np.abs(value)
    return value, 1.1 * error


PART = 1000
"""The columns of one part of a long recurrence."""


def _states(a: np.ndarray, b: np.ndarray) -> list[tuple[np.ndarray, np.ndarray | float]]:
    """Return products and states; each step rounds a product and a sum, or underflows."""
    product, state = _recurrence(a, b)
    steps, tiny = 2 * UNIT * (a.shape[1] + 1), a.shape[1] * 2.0**-149
    size = _recurrence(np.abs(a), np.abs(b))[1]
    return [(product, steps * np.abs(product) + tiny), (state, steps * size + tiny)]


def _recurrence(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the running products, and the states ``h[j] = a[j] * h[j - 1] + b[j]``."""
    n, m = a.shape
    if n and m > PART and m % PART == 0:
        parts = _recurrence(a.reshape(-1, PART), b.reshape(-1, PART))
        product, state = (x.reshape(n, -1, PART) for x in parts)
        before, start = _recurrence(product[:, :, -1], state[:, :, -1])
        state[:, 1:] += product[:, 1:] * start[:, :-1, None]
        product[:, 1:] *= before[:, :-1, None]
        return product.reshape(n, m), state.reshape(n, m)
    product, state = np.empty_like(a), np.empty_like(a)
    p, h = np.ones(n), np.zeros(n)
    for j in range(m):
        p, h = p * a[:, j], a[:, j] * h + b[:, j]
        product[:, j], state[:, j] = p, h
    return product, state


def _product(x: np.ndarray, w: np.ndarray, *scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the product with a weight, which is scaled by groups of rows."""
    for s in scales:
        w = w * np.repeat(s, GROUP, axis=0)[: len(w)]
    return x @ w, UNIT * (len(w) + 2) * (np.abs(x) @ np.abs(w))


def _scattered(
    name: str, seg: np.ndarray, x: np.ndarray, *outputs: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray | float]]:
    n = len(outputs[0])
    parts = [x[seg == k] for k in range(n)]
    total = np.array([p.sum() for p in parts])
    bound = np.array([UNIT * len(p) * np.abs(p).sum() for p in parts])
    if name == "numbers":
        return [(total, bound), (np.array([len(p) for p in parts]), 0.0)]
    at = [np.flatnonzero(seg == k)[np.argmax(p)] if len(p) else LAST for k, p in enumerate(parts)]
    top = np.array([p.max(initial=-np.inf) for p in parts])
    return [(top, 0.0), (np.array(at), 0.0), (top, 0.0), (total, bound)]


def check(
    name: str,
    results: Sequence[np.ndarray],
    arrays: Sequence[np.ndarray],
    terms: int | None = None,
) -> None:
    """Compare results with the exact ones."""
    for got, (want, bound) in zip(results, exact(name, arrays, terms), strict=True):
        assert got.shape == np.shape(want)
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        with np.errstate(all="ignore"):
            close = np.abs(got.astype(np.float64) - want) <= bound
        assert np.all(same | (np.isfinite(got) & close)), (name, got, want, bound)
