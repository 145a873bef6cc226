"""Complex programs: compiled code equals the interpreter, and NumPy where it is exact."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import TilewrightError
from tilewright.ir.dtype import c64, f32
from tilewright.ir.interpreter import call_prim
from tilewright.ir.loop.complex_references import divide, paired
from tilewright.ir.loop.element_functions import FUNCTIONS
from tilewright.ir.loop.nodes import Binary, Buffer, Load, Unary
from tilewright.ir.loop.typing import dtype_problems
from tilewright.ir.symbolic import as_expr
from tilewright.schedules.launch.complex_values import (
    ComplexValues,
    Pair,
)
from tilewright.target.target import Target

from tests.codegen.kernels import LEVELS

TARGETS = [*(Target("cpu", features=(level,)) for level in LEVELS), Target("simt")]
SIZES = (0, 1, 7, 37)
LIMITS = {"c64": 2.0**-23, "c128": 2.0**-52}

ELEMENTS = """
n = symbols("n")

@prim_func
def main(x: Buffer[(n,), {c}], w: Buffer[(n,), {c}], y: Out[(n,), {c}], q: Out[(n,), {c}],
         e: Out[(n,), {c}], a: Out[(n,), {f}], b: Out[(n,), bool]):
    for i in range(n):
        with block("y"):
            v = spatial(i)
            t = x[v] * w[v] - 2j
            y[v] = where(v >= 2, conj(t) * t, complex(imag(t), real(x[v]))) + 1.0
        with block("q"):
            v = spatial(i)
            q[v] = x[v] / w[v]
        with block("e"):
            v = spatial(i)
            e[v] = exp(x[v])
        with block("a"):
            v = spatial(i)
            a[v] = abs(x[v]) + angle(w[v])
        with block("b"):
            v = spatial(i)
            b[v] = x[v] == x[n - 1 - v] or x[v] != w[v]
"""

REDUCTIONS = """
n, m = symbols("n m")

@prim_func
def main(x: Buffer[(n, m), {c}], w: Buffer[(m, 3), {c}], s: Out[(), {c}], p: Out[(n,), {c}],
         z: Out[(n, 3), {c}]):
    for i in range(n):
        for k in range(m):
            with block("s"):
                vi, vk = reduce(i), reduce(k)
                with init():
                    s[()] = 0.0
                s[()] += x[vi, vk]
    for i1 in range(n):
        for k1 in range(m):
            with block("p"):
                vi, vk = spatial(i1), reduce(k1)
                with init():
                    p[vi] = 1.0
                p[vi] *= x[vi, vk]
    for i2 in range(n):
        for j2 in range(3):
            for k2 in range(m):
                with block("z"):
                    vi, vj, vk = spatial(i2), spatial(j2), reduce(k2)
                    with init():
                        z[vi, vj] = 0.0
                    z[vi, vj] += x[vi, vk] * w[vk, vj]
"""


def drawn(dtype, *shape):
    rng = np.random.default_rng(sum(shape))
    made = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return made.astype(tw.ir.dtype.dtype(dtype).numpy)


def text_for(template, dtype):
    return template.replace("{c}", dtype).replace("{f}", {"c64": "f32", "c128": "f64"}[dtype])


def compared(module, target, arguments, dtype, factor=8.0):
    """Check that compiled code equals the interpreter up to rounding."""
    got = tw.compile(module, target)(*arguments)
    got = got if isinstance(got, tuple) else (got,)
    wanted = call_prim(module.prim("main"), arguments)
    for have, want in zip(got, wanted, strict=True):
        assert have.dtype == want.dtype
        size = np.abs(want).max(initial=0)
        assert np.abs(have.astype(complex) - want).max(initial=0) <= factor * LIMITS[dtype] * size


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_elements_equal_the_interpreter(target, dtype):
    module = tw.parse(text_for(ELEMENTS, dtype))
    for n in SIZES:
        compared(module, target, [drawn(dtype, n), drawn(dtype, n)[::-1].copy()], dtype)


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_reductions_equal_the_interpreter(target, dtype):
    module = tw.parse(text_for(REDUCTIONS, dtype))
    for n, m in ((0, 3), (1, 0), (1, 1), (3, 37)):
        compared(module, target, [drawn(dtype, n, m), drawn(dtype, m, 3)], dtype, factor=64.0)


STARTS = """
n, m = symbols("n m")

@prim_func
def main(x: Buffer[(n, m), {c}], w: Buffer[(n,), {c}], y: Out[(n,), {c}]):
    for i in range(n):
        for k in range(m):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init():
                    y[vi] = w[vi] * 2j
                y[vi] += x[vi, vk] * w[vi]
"""


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_sums_that_start_from_a_product_equal_the_interpreter(target):
    module = tw.parse(text_for(STARTS, "c64"))
    for n, m in ((0, 3), (2, 0), (1, 1), (3, 37)):
        compared(module, target, [drawn("c64", n, m), drawn("c64", n)], "c64", factor=64.0)


SCANS = """
n, m = symbols("n m")

@prim_func
def main(x: Buffer[(n, m), {c}], y: Out[(n, m), {c}], z: Out[(n, m), {c}]):
    for i in range(n):
        for j in range(m):
            with block("sums"):
                vi, vj = spatial(i), ordered(j)
                y[vi, m - 1 - vj] = scan(add, x[vi, m - 1 - vj] * 2j, start=1j)
    for i1 in range(n):
        for j1 in range(m):
            with block("products"):
                vi, vj = spatial(i1), ordered(j1)
                z[vi, vj] = scan(mul, x[vi, vj])
"""


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_scans_equal_the_interpreter(target, dtype):
    module = tw.parse(text_for(SCANS, dtype))
    for n, m in ((0, 3), (1, 0), (1, 1), (3, 37)):
        compared(module, target, [drawn(dtype, n, m)], dtype, factor=128.0)


DIVISION = """
n = symbols("n")

@prim_func
def main(x: Buffer[(n,), c64], w: Buffer[(n,), c64], q: Out[(n,), c64], p: Out[(n,), c64],
         a: Out[(n,), f32], e: Out[(n,), c64]):
    for i in range(n):
        with block("q"):
            v = spatial(i)
            q[v] = x[v] / w[v]
            p[v] = x[v] * w[v]
            a[v] = abs(x[v])
            e[v] = exp(x[v])
"""

EDGES = (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan)


@pytest.fixture(scope="module")
def division():
    return tw.compile(tw.parse(DIVISION))


def same_bits(have, want):
    """Check that parts are equal with the sign of zeros; all NaN are equal."""
    for a, b in ((have.real, want.real), (have.imag, want.imag)):
        np.testing.assert_array_equal(a, b)
        number = ~np.isnan(b)
        np.testing.assert_array_equal(np.signbit(a)[number], np.signbit(b)[number])


def test_infinities_and_nan_are_those_of_numpy(division):
    a, b, c, d = np.array(list(itertools.product(EDGES, repeat=4)), np.float32).T.copy()
    x, w = paired(a, b), paired(c, d)
    q, p, size, e = division(x, w)
    with np.errstate(all="ignore"):
        same_bits(q, x / w)
        scalars = np.array([u * v for u, v in zip(x, w, strict=True)])
        same_bits(p, scalars)  # arrays of NumPy may use fused multiply-add
        np.testing.assert_array_equal(size, np.abs(x))
        wanted = np.exp(x)
    for have, want in ((e.real, wanted.real), (e.imag, wanted.imag)):
        np.testing.assert_allclose(have, want, rtol=1e-6)


def test_quotients_within_the_range_neither_overflow_nor_vanish(division):
    rng = np.random.default_rng(5)
    x, w = (
        paired(*(rng.standard_normal((2, 4000)) * 10.0 ** rng.uniform(-44, 38, (2, 4000))).astype(
            np.float32))
        for _ in range(2)
    )  # fmt: skip
    with np.errstate(all="ignore"):
        exact = x.astype(complex) / w.astype(complex)
        size = np.abs(exact)
        fits = (w != 0) & np.isfinite(x) & np.isfinite(w) & (size < 1.7e38)
        error = np.maximum(np.abs((q := division(x, w)[0]).real - exact.real),
                           np.abs(q.imag - exact.imag))  # fmt: skip
        assert np.isfinite(q[fits]).all()
        assert not np.isfinite((x / w)[fits]).all(), "NumPy overflows for some of them"
        assert (error[fits] <= 8 * 2.0**-24 * size[fits] + 2.0**-149).all()
        same_bits(q, divide(x, w))


def test_exp_and_abs_overflow_only_if_the_result_does(division):
    x = np.array([90 + 1.57j, 100 + 1.5707963j, 3e38 + 1e38j, 1e-40 + 1e-41j], np.complex64)
    with np.errstate(all="ignore"):
        _, _, size, e = division(x, x)
        wanted = np.exp(x.astype(complex))
    assert np.isfinite(size).all()
    np.testing.assert_allclose(size, np.abs(x.astype(complex)), rtol=3e-7, atol=2.0**-149)
    np.testing.assert_allclose(e[:2].real, wanted[:2].real, rtol=1e-6)
    assert np.isinf(e[0].imag)


SCATTER = """
n, m = symbols("n m")

@prim_func
def main(at: Buffer[(n,), i64], x: Buffer[(n,), c64], y: InOut[(m,), c64]):
    for i in range(n):
        with block("y"):
            v = ordered(i)
            with checked(at[v], 0, m) as j:
                y[j] = y[j] + x[v]
"""


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_updates_at_loaded_indices(target):
    module = tw.parse(SCATTER)
    at = np.array([0, 2, 0, 1, 2, 2])
    y = np.zeros(3, np.complex64)
    x = drawn("c64", 6)
    tw.compile(module, target)(at, x, y)
    wanted = np.zeros(3, np.complex64)
    np.add.at(wanted, at, x)
    np.testing.assert_allclose(y, wanted, rtol=1e-6)


def test_every_function_of_complex_numbers_is_split():
    x = Load(Buffer(1, "x", (as_expr(4),), c64), (as_expr(0),))
    parts = Buffer(2, "parts", (as_expr(4), as_expr(2)), f32)
    first, second = (Load(parts, (as_expr(0), as_expr(k))) for k in range(2))

    def read(load):
        return Pair(first, second, f32) if load is x else load

    for name, function in FUNCTIONS.items():
        if not function.accepts(c64):
            continue
        values = ComplexValues(read, {}, str)
        operands = (x,) * function.arity
        made = values.split((Unary if function.arity == 1 else Binary)(name, *operands))
        elements = [made.real, made.imag] if isinstance(made, Pair) else [made]
        assert isinstance(made, Pair) == function.result_dtype(c64).is_complex, name
        for element in (*elements, *(bind.value for bind in values.binds)):
            assert not list(dtype_problems(element)), name


def test_debug_code_checks_accesses():
    module = tw.parse(text_for(ELEMENTS, "c64"))
    x = drawn("c64", 5)
    plain = tw.compile(module)(x, x)
    for a, b in zip(plain, tw.compile(module, debug=True)(x, x), strict=True):
        np.testing.assert_allclose(a.astype(complex), b, rtol=1e-6)


def test_arguments_of_another_dtype_are_rejected():
    exe = tw.compile(tw.parse(text_for(ELEMENTS, "c64")))
    x = drawn("c64", 4)
    with pytest.raises(TilewrightError, match="expected dtype c64, got f32"):
        exe(x, x.real.copy())
    with pytest.raises(TilewrightError, match="expected dtype c64, got c128"):
        exe(x.astype(np.complex128), x)
    with pytest.raises(TilewrightError, match=r"strides|compact"):
        exe(np.repeat(x, 2)[::2], x)


def test_dlpack_of_complex_numbers_without_copies():
    import torch

    module = tw.parse(SCATTER)
    y = torch.zeros(2, dtype=torch.complex64)
    tw.compile(module)(torch.tensor([1]), torch.tensor([2 + 3j], dtype=torch.complex64), y)
    assert y.tolist() == [0j, 2 + 3j]


def test_steps_keep_the_results():
    """Vector lanes, worker threads, and partial sums of complex numbers."""
    module = tw.parse(text_for(REDUCTIONS, "c64"))
    schedule = tw.Schedule(module)
    outer, lanes = schedule.split("k1", (None, 8))
    schedule.decompose_reduction("p", outer)
    schedule.vectorize(lanes)
    schedule.parallel("i2")
    parts = schedule.split("k2", (None, 4))[1]
    schedule.rfactor("z", parts)
    x, w = drawn("c64", 3, 37), drawn("c64", 37, 3)
    got = tw.compile(schedule.module)(x, w)
    for have, want in zip(got, call_prim(module.prim("main"), [x, w]), strict=True):
        np.testing.assert_allclose(have, want, rtol=2e-5, atol=2e-5 * np.abs(want).max())
