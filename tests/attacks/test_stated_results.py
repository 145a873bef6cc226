"""Programs with stated results, compiled by the default rules alone for a CPU and for threads.

The programs run a part of their domain, reduce nothing for some sizes, or use integers that they
load; their references are NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw

from tests.schedules import test_domain_checks as domains
from tests.schedules.primitives.caching import test_caches as loaded
from tests.strategies import symbols_of

Arrays = list[np.ndarray]


def integers(*shape: int, seed: int = 0) -> np.ndarray:
    """Return small integers, of which sums are exact."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)


def square(n: int) -> Arrays:
    return [integers(n, n)]


def masked_rows(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return ``y`` with the sums of five columns in its first four rows."""
    return np.append(x[:4, :5].sum(1), y[4:]).astype(np.float32)


def causal(q: np.ndarray, w: np.ndarray, v: np.ndarray) -> np.ndarray:
    s = q @ w.T
    top = np.where(np.tri(len(s), dtype=bool), s, -np.inf).max(1)
    return np.tril(s - top[:, None]) @ v


def corners(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    n, m = (max(d - 3, 0) for d in x.shape)
    y = y.copy()
    y[:n, :m] = x[:n, :m] + 1
    return y


def scattered(at: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    y = y.copy()
    np.add.at(y, at, x)
    return y


ADDED = """
@prim_func
def f(idx: Buffer[(64,), i32], x: Buffer[(64,), f32], y: InOut[(8,), f32]):
    for i in range(64):
        with block("s"):
            vi = reduce(i)
            with checked(idx[vi], 0, 8) as p:
                y[p] += x[vi]
"""
HINT = """
n = symbols("n", lower=1)
@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    fact(n <= 8, "likely", by="assumed_hint")
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = where(condition(n <= 8), 1.0, 2.0)
"""
SIZES = (0, 1, 2, 7, 37)
PROGRAMS: dict[str, tuple[str, Callable[[int], Arrays], Callable[..., np.ndarray]]] = {
    "a sum of a row up to the diagonal": (
        domains.TRIANGLE, square, lambda s: s - np.tril(s).sum(1)[:, None],
    ),
    "sums of half of the columns": (
        domains.HALF, lambda n: [integers(6, 64)], lambda x: x[:, :32].sum(1),
    ),
    "a product over half of its depth": (
        domains.HALF_PRODUCT,
        lambda n: [integers(6, 64), integers(64, 16)],
        lambda a, b: a[:, :32] @ b[:32],
    ),
    "a lower-triangular product": (
        domains.TRMM, lambda n: [integers(n, n), integers(n, 5)], lambda a, b: np.tril(a) @ b,
    ),
    "a banded sum": (domains.BAND, square, lambda x: np.tril(np.triu(x, -2), 2).sum(1)),
    "causal attention": (
        domains.ATTENTION, lambda n: [integers(n, 6, seed=k) for k in range(3)], causal,
    ),
    "an element-wise block below a branch": (
        domains.BRANCH,
        lambda n: [integers(8), integers(8, seed=1)],
        lambda x, y: np.append(2 * x[:3] + 1, y[3:]),
    ),
    "a reduction below branches": (
        domains.BRANCH_SUM, lambda n: [integers(6, n), integers(6)], masked_rows,
    ),
    "a loop that repeats a sum": (
        domains.REPEATED, lambda n: [integers(6, 8)], lambda x: x.sum(1),
    ),
    "a product of polynomials": (
        domains.POLYNOMIALS, lambda n: [integers(7), integers(3)], np.convolve,
    ),
    "a loop that may be empty before its value is used": (
        domains.MAYBE_EMPTY, lambda n: [integers(6)], lambda x: x[[0, 0, 0, 3, 3, 3]],
    ),
    "two loops with negative extents": (
        domains.CORNERS, lambda n: [integers(n, 5), integers(n, 5, seed=1)], corners,
    ),
    "a sum without terms": (domains.SUMS, lambda n: [integers(4, n)], lambda x: x.sum(1)),
    "rows scaled by their sums": (
        domains.ROW_SCALE, lambda n: [integers(6, 20)], lambda e: e * e.sum(1)[:, None],
    ),
    "rows stored at loaded indices": (
        loaded.SCATTER,
        lambda n: [np.array([3, 5, 7, 9], np.int32), integers(4, 8), integers(16, 8)],
        lambda at, new, cache: np.stack(
            [new[list(at).index(r)] if r in at else cache[r] for r in range(16)]
        ),
    ),
    "elements at negative loaded indices": (
        loaded.GATHER,
        lambda n: [np.array([-2, -1, 0, 1], np.int32), integers(8)],
        lambda at, x: x[at + 2],
    ),
    "sums of rows with loaded bounds": (
        loaded.ROWS,
        lambda n: [
            np.array([0, 3, 3, 7, 9], np.int32), np.arange(64, dtype=np.float32).reshape(16, 4),
        ],
        lambda off, x: np.array(loaded.ROW_SUMS, np.float32),
    ),
    "terms added at duplicate loaded indices": (
        ADDED,
        lambda n: [np.arange(64, dtype=np.int32) ** 2 % 8, integers(64), integers(8)],
        scattered,
    ),
    "a hint that does not hold": (
        HINT, lambda n: [integers(n)], lambda x: np.full(len(x), 1 if len(x) <= 8 else 2, "f4"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("target", ["cpu", "simt"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_default_rules_keep_the_stated_result(name: str, target: str) -> None:
    text, arguments, reference = PROGRAMS[name]
    module = tw.parse(text)
    least = max((s.lower or 0 for s in symbols_of(module.prim("f"))), default=None)
    function = tw.compile(module, target)
    for n in (0,) if least is None else [max(n, least) for n in SIZES]:
        args = arguments(n)
        expected = reference(*args)
        found = function(*args)
        np.testing.assert_array_equal(args[-1] if found is None else found, expected)
