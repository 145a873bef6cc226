"""Results and findings of four GPU kernels on the emulated GPU, with symbolic shapes.

Sums of products of small integers are exact in any order; they are compared bit for bit with the
interpreter. Other data are compared with float64, within bounds derived from the number of
roundings (u = 2**-24 is the unit roundoff of f32):

- Matrix products add K exact products to a sum, which is rounded each time. So the error is at most
  ``gamma(K)`` times ``sum |a| |b|`` (Higham, Accuracy and Stability, lemma 3.1). Products of f16
  are exact in f32, and a tensor core rounds less often than once per product.
- Softmax: ``x - max`` has an error of ``u |x - max|``, which ``exp`` turns into a relative error;
  ``exp`` itself is accurate to 2 ulp (4 u), the sum of n terms to ``(n - 1) u``, the quotient to u.
- The element-wise kernel: ``x + b`` is the same rounded number in both; ``sigmoid`` is accurate to
  2 ulp (4 u), and the product rounds once more.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.dtype import f32
from tilewright.ir.interpreter import run_prim
from tilewright.ir.interpreter.rounding import gamma, unit

from tests.codegen.gpu import kernels
from tests.codegen.simt.launching import Launcher

U = unit(f32)
PRODUCTS = [
    (1, 1, 1),
    (7, 13, 5),
    (17, 2, 31),
    (33, 65, 16),
    (64, 64, 64),
    (67, 3, 70),
    (1, 129, 2),
]
EXACT = PRODUCTS[:4]

launchers = {
    name: Launcher(kernels.function(getattr(kernels, name)()))
    for name in ("elementwise", "softmax", "matmul", "tensor_matmul")
}


def _run(name, inputs, sizes):
    (result,), report = launchers[name].outputs(inputs, sizes)
    assert report.findings == (), str(report)
    return result


def _interpreted(text, arrays, out):
    run_prim(next(iter(kernels.parse(text).prims)), [*arrays, out])
    return out


@pytest.mark.parametrize("size", EXACT, ids=str)
@pytest.mark.parametrize(
    ("name", "text", "dtype"),
    [("matmul", kernels.MATMUL, np.float32), ("tensor_matmul", kernels.TENSOR_MATMUL, np.float16)],
)
def test_products_of_integers_equal_the_interpreter(name, text, dtype, size):
    m, n, k = size
    rng = np.random.default_rng(m + n + k)
    a = rng.integers(-9, 10, (m, k)).astype(dtype)
    b = rng.integers(-9, 10, (k, n)).astype(dtype)
    result = _run(name, (a, b), {"M": m, "N": n, "K": k})
    assert (result == _interpreted(text, (a, b), np.zeros((m, n), np.float32))).all()


@pytest.mark.parametrize("size", PRODUCTS, ids=str)
@pytest.mark.parametrize(("name", "dtype"), [("matmul", np.float32), ("tensor_matmul", np.float16)])
def test_products_are_within_the_bound_of_float64(name, dtype, size):
    m, n, k = size
    rng = np.random.default_rng(m * n + k)
    a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    result = _run(name, (a, b), {"M": m, "N": n, "K": k})
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    bound = gamma(k) * (np.abs(wide_a) @ np.abs(wide_b))
    assert (np.abs(result - wide_a @ wide_b) <= bound).all()


@pytest.mark.parametrize("size", [(1, 1), (3, 7), (2, 256), (5, 257), (2, 1000), (31, 32)], ids=str)
def test_softmax_is_within_the_bound_of_float64(size):
    rows, columns = size
    x = np.random.default_rng(columns).normal(size=size, scale=5).astype(np.float32)
    result = _run("softmax", (x,), {"rows": rows, "columns": columns})
    wide = x.astype(np.float64)
    shifted = wide - wide.max(axis=1, keepdims=True)
    exact = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    magnitude = np.abs(shifted) + np.abs(shifted).max(axis=1, keepdims=True)
    bound = (magnitude + 4 + 4 + columns + 1) * U * exact
    assert (np.abs(result - exact) <= 1.01 * bound + 2.0**-149).all()


@pytest.mark.parametrize("size", [(1, 1), (1, 3), (7, 13), (31, 33), (64, 64), (2, 1021)], ids=str)
def test_the_elementwise_kernel_is_within_the_bound_of_float64(size):
    m, n = size
    rng = np.random.default_rng(m)
    x, b = rng.normal(size=size).astype(np.float32), rng.normal(size=n).astype(np.float32)
    result = _run("elementwise", (x, b), {"m": m, "n": n})
    t = (x + b).astype(np.float64)
    exact = t / (1 + np.exp(-t))
    assert (np.abs(result - exact) <= 1.01 * 5 * U * np.abs(exact)).all()


def test_tensor_matmul_reads_full_tiles_of_shared_memory_without_conflicts():
    a = np.ones((64, 64), np.float16)
    _, report = launchers["tensor_matmul"].outputs((a, a), {"M": 64, "N": 64, "K": 64})
    reads = [c for c in report.counters if c.space == "shared" and c.action == "read"]
    assert reads
    assert sum(c.conflicts for c in reads) == 0
