"""The allowed error of a result: neither too large nor too small."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.interpreter import Exact, compare, interpreted
from tilewright.ir.interpreter.rounding import gamma
from tilewright.ir.interpreter.translation import InterpreterInputError

MATMUL = """
n = symbols("n", lower=1)

@prim_func
def matmul(A: Buffer[(n, {k}), {t}], B: Buffer[({k}, 8), {t}], C: Out[(n, 8), {t}]):
    for i in range(n):
        for j in range(8):
            for k in range({k}):
                with block("C"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
"""

NETWORK = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 64), f32], y: Tensor[(64, 32), f32]):
    a = matmul(x, y)
    b = softmax(a, axis=-1)
    c = gelu(a)
    d = sum(c, axes=(1,))
    return a, b, c, d
"""

POSITIVE = """
@prim_func
def total(x: Buffer[(1000,), f32], y: Out[(1,), f32]):
    for i in range(1000):
        with block("y"):
            vi = reduce(i)
            with init(): y[0] = 0.0
            y[0] += x[vi]
"""


def draw(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def test_the_bound_of_a_product_depends_on_its_length_and_dtype() -> None:
    usual: dict[tuple[int, str], float] = {}
    for k, t, dtype in ((16, "f32", "float32"), (256, "f32", "float32"), (16, "f16", "float16")):
        module = tw.parse(MATMUL.format(k=k, t=t))
        inputs = [draw(4, k, dtype=dtype), draw(k, 8, dtype=dtype, seed=1)]
        exact = interpreted(module, "matmul", inputs)
        usual[k, t] = float(np.median(exact.allowed[0]))
        wide = [x.astype(np.float64) for x in inputs]
        assert np.array_equal(exact.values[0], wide[0] @ wide[1]) or np.allclose(
            exact.values[0], wide[0] @ wide[1], rtol=1e-12
        )
        if t == "f32":  # the worst case of any order limits the estimate
            assert (exact.allowed[0] < 16 * gamma(k) * (np.abs(wide[0]) @ np.abs(wide[1]))).all()
    assert 4 < usual[256, "f32"] / usual[16, "f32"] < 64
    assert 2**11 < usual[16, "f16"] / usual[16, "f32"] < 2**15


@pytest.mark.parametrize("size", [1, 9, 40])
def test_compiled_networks_agree_and_small_faults_do_not(size: int) -> None:
    module = tw.parse(NETWORK)
    inputs = [draw(size, 64), draw(64, 32, seed=1)]
    exact = interpreted(module, "main", inputs)
    got = tw.compile(module)(*inputs)
    seen = compare(got, exact)
    assert seen.agrees
    assert 0 < seen.error < seen.allowed
    for k in range(3):
        wrong = [np.array(r) for r in got]
        at = np.unravel_index(int(np.argmax(np.abs(wrong[k]))), wrong[k].shape)
        wrong[k][at] *= 1 + 1e-3
        found = compare(wrong, exact)
        assert not found.agrees
        assert (found.result, found.index) == (k, tuple(map(int, at)))
        assert f"result {k}[" in str(found)


GELU = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n,), f32]):
    y: Tensor[(n,), f32] = gelu(x, approximate="{kind}")
    return y
"""


@pytest.mark.parametrize("kind", ["none", "tanh"])
@pytest.mark.parametrize("count", [1, 100])
def test_the_rounding_of_canceled_values_is_allowed(count: int, kind: str) -> None:
    """For -5, one plus erf keeps few digits; the error is at most 4 u abs(x)."""
    x = np.linspace(-5.0, -5.4, count).astype(np.float32)
    module = tw.parse(GELU.format(kind=kind))
    exact = interpreted(module, "main", [x])
    got = tw.compile(module)(x)
    seen = compare([got], exact)
    assert seen.agrees, seen
    assert (exact.allowed[0] <= 6 * 2.0**-24 * np.abs(x)).all()
    assert not compare([got + 10 * 2.0**-24 * np.abs(x)], exact).agrees


LOG_SOFTMAX = """
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 3), f32], p: Tensor[(n, 3), bool]):
    y = log_softmax(x, axis=1)
    z = where(p, y, 0.0)
    return z
"""


def test_the_rounding_of_a_sum_near_one_is_allowed() -> None:
    """The logarithm of 1 + 0.005 is small, the rounding of the sum is not."""
    x = np.zeros((500, 3), np.float32)
    x[:, 1:] = -np.linspace(5.0, 7.0, 1000, dtype=np.float32).reshape(500, 2)
    p = np.zeros((500, 3), bool)
    p[::4, 0] = True
    module = tw.parse(LOG_SOFTMAX)
    exact = interpreted(module, "main", [x, p])
    got = tw.compile(module)(x, p)
    assert compare([got], exact).agrees
    assert (exact.allowed[0] <= 64 * 2.0**-24).all()
    assert not compare([got + 128 * 2.0**-24 * p], exact).agrees


def test_any_order_of_a_sum_of_positive_terms_agrees() -> None:
    """Terms of one sign maximize the rounding errors of the running sum."""
    x = np.abs(draw(1000))
    exact = interpreted(tw.parse(POSITIVE), "total", [x])
    orders = (x, x[::-1], np.sort(x), np.sort(x)[::-1])
    for order in orders:
        total = np.float32(0)
        for term in order:
            total += term
        assert compare([np.array([total])], exact).agrees
    assert not compare([np.array([x.sum() * (1 + 1e-4)])], exact).agrees


def test_integers_infinities_and_nan_agree_only_exactly() -> None:
    values = np.array([1.0, np.inf, np.nan, -np.inf])
    exact = Exact((values,), (np.full(4, 1e-3),), "")
    assert compare([values.copy()], exact).agrees
    for k, other in ((0, np.nan), (1, -np.inf), (1, 5.0), (2, 0.0), (3, np.nan)):
        wrong = values.copy()
        wrong[k] = other
        found = compare([wrong], exact)
        assert not found.agrees
        assert found.index == (k,)
    numbers = Exact((np.array([3, 4]),), (np.zeros(2),), "")
    assert compare([np.array([3, 4])], numbers).agrees
    assert not compare([np.array([3, 5])], numbers).agrees


def test_another_shape_does_not_agree() -> None:
    exact = Exact((np.zeros((2, 3)),), (np.ones((2, 3)),), "")
    assert not compare([np.zeros((3, 2))], exact).agrees


def test_operators_that_only_move_elements_are_exact_up_to_the_dtype() -> None:
    module = tw.parse("""
@graph_func
def main(x: Tensor[(3, 4), f32]):
    y = permute_dims(x, axes=(1, 0))
    return y
""")
    x = draw(3, 4)
    exact = interpreted(module, "main", [x])
    assert (exact.allowed[0] <= 2.0**-21 * np.abs(x.T) + 2.0**-125).all()


def test_rounding_of_tensors_of_rank_0() -> None:
    module = tw.parse(
        "@graph_func\ndef main(x: Tensor[(), f32]):\n"
        "    y = add(x, 1.0)\n    z = multiply(y, y)\n    return z\n"
    )
    exact = interpreted(module, "main", [np.array(2, np.float32)])
    assert exact.values[0] == 9
    assert exact.allowed[0] > 0


def test_values_of_symbols_that_no_argument_determines() -> None:
    module = tw.parse("""
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n + 2,), f32], y: Out[(n,), f32]):
    for i in range(n):
        y[i] = x[i] + x[i + 2]
""")
    x = draw(6)
    exact = interpreted(module, "f", [x], symbols={"n": 4})
    assert compare([x[:4] + x[2:]], exact).agrees
    with pytest.raises(InterpreterInputError, match="determines n"):
        interpreted(module, "f", [x])
