"""Complex numbers as pairs of floats: the programs after the pass, and their results."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.analysis.value_size import value_size
from tilewright.ir.interpreter import run_prim
from tilewright.ir.loop.nodes import Bind, Block, Store
from tilewright.ir.loop.reducers import reducing
from tilewright.ir.loop.scans import scanning
from tilewright.ir.loop.visit import walk
from tilewright.ir.script import parse
from tilewright.schedules.launch.split_complex import SplitComplex

from tests.codegen.lower.passes.running import CPU, comparison, program, text_of, unchanged

NAME = "split_complex"

ROWS = """
n, m = symbols("n m")

@prim_func
def rows(x: Buffer[(n, m), c64], w: Buffer[(m,), c64], s: Out[(n,), c64], y: Out[(n,), f32]):
    t = alloc((n,), c64)
    for i in range(n):
        for k in range(m):
            with block("t"):
                vi, vk = spatial(i), reduce(k)
                with init():
                    t[vi] = 0.0
                t[vi] += x[vi, vk] * w[vk]
        with block("s"):
            vi = spatial(i)
            s[vi] = conj(t[vi]) + 1j
        with block("y"):
            vi = spatial(i)
            y[vi] = abs(t[vi])
"""

MIXED = """
n, m = symbols("n m")

@prim_func
def mixed(x: Buffer[(n, m), c64], s: Out[(n,), c64], e: Out[(n,), f32]):
    for i in range(n):
        for k in range(m):
            with block("fold"):
                vi, vk = spatial(i), reduce(k)
                @reducer(identity=(0.0, 0.0))
                def both(a0: c64, a1: f32, b0: c64, b1: f32):
                    return a0 + b0, a1 + b1
                with init(): s[vi], e[vi] = 0.0, 0.0
                t = conj(x[vi, vk])
                s[vi], e[vi] = both(t, imag(t))
"""

TEMPLATE = """
n = symbols("n")

@prim_func
def f(x: Buffer[(n,), c64], w: Buffer[(n,), c64], y: InOut[(n,), c64]):
    for i in range(n):
        with block("y"):
            v = spatial(i)
            {}
"""

BODIES = [
    "y[v] = y[v] * x[v]",
    "y[v] = x[v] / w[v]",
    "y[v] = exp(x[v]) - w[v]",
    "y[v] = where(v < 3, x[v] * w[v] * x[v], conj(y[v]))",
    "y[v] = where(v >= 1, x[v - 1] * w[v - 1] / x[v], complex(angle(x[v]), 2.0))",
    "y[v] = where(real(x[v]) > 0.0, where(v >= 1, x[v - 1] * x[v - 1] * w[v], w[v]), x[v])",
    "y[v] = where(x[v] == w[v], x[v], 2.0 * w[v])",
    "y[v] = where(x[v] != w[v] and abs(x[v] * w[v]) < 1.0, -x[v], 1j)",
    "t = x[v] * w[v]\n            u = t * t\n            y[v] = u * t",
    "y[v] = c64(v) + c64(c128(x[v]) * c128(w[v]))",
]


def split(text):
    """Return a program before and after the pass, which is applied alone."""
    func = program(text)
    return func, SplitComplex().run(func, CPU)


def parts(array):
    """Return complex numbers as pairs."""
    return array.view(array.real.dtype).reshape(*array.shape, 2)


def drawn(*shape):
    rng = np.random.default_rng(len(shape) + sum(shape))
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, ROWS, CPU))


@pytest.mark.parametrize("body", BODIES)
def test_results(body):
    first, second = split(TEMPLATE.format(body))
    x, w, y = drawn(5), drawn(5)[::-1].copy(), drawn(5) * 2
    again = y.copy()
    run_prim(first, [x, w, y])
    run_prim(second, [parts(x), parts(w), parts(again)])
    np.testing.assert_allclose(again, y, rtol=2e-6)


def test_a_sum_becomes_two_sums_in_planes():
    first, second = split(ROWS)
    x, w = drawn(3, 4), drawn(4)
    wanted, got = ([np.empty(3, np.complex64), np.empty(3, np.float32)] for _ in range(2))
    run_prim(first, [x, w, *wanted])
    run_prim(second, [parts(x), parts(w), parts(got[0]), got[1]])
    np.testing.assert_allclose(got[0], wanted[0], rtol=1e-6)
    assert [b.name for b in second.buffers] == ["t_real", "t_imag"]
    stores = [s for s in walk(second.body) if isinstance(s, Store)]
    assert sum(s.buffer.name.startswith("t_") for s in stores) == 4


def test_a_product_becomes_a_reduction_with_two_results():
    _, second = split(ROWS.replace("+= x[vi, vk] * w[vk]", "*= x[vi, vk]"))
    blocks = [s for s in walk(second.body) if getattr(s, "reducer", None) is not None]
    (block,) = blocks
    found = reducing(block)
    assert found is not None
    assert [t.buffer.name for t in found.targets] == ["t_real", "t_imag"]
    assert [n.value for n in found.reducer.identities] == [1.0, 0.0]


def test_a_reduction_of_a_complex_and_a_real_result_remains_one():
    _, second = split(MIXED)
    (block,) = (s for s in walk(second.body) if isinstance(s, Block))
    found = reducing(block)
    assert found is not None
    assert [t.buffer.name for t in found.targets] == ["s", "s", "e"]


def test_a_chain_of_products_grows_linearly():
    """Each product binds four products, and no value contains another copy of an operand."""
    sizes = []
    for count in (10, 20):
        chain = " * ".join(["x[v]", "w[v]"] * (count // 2))
        _, second = split(TEMPLATE.format(f"y[v] = {chain}"))
        values = [s.value for s in walk(second.body) if isinstance(s, Store | Bind)]
        sizes.append(sum(value_size(value).nodes for value in values))
    assert sizes[1] < 2.3 * sizes[0]


def test_real_programs_are_not_changed():
    assert unchanged(NAME, ROWS.replace("c64", "f32").replace("1j", "1.0").replace(
        "conj(t[vi])", "t[vi]"), CPU)  # fmt: skip


def test_strides_count_parts():
    text = TEMPLATE.format("y[v] = x[v]").replace(
        "x: Buffer[(n,), c64]", "x: Buffer((n,), c64, strides=(3,))"
    )
    assert "x: Buffer((n, 2), f32, strides=(6, 1))" in text_of(split(text)[1])


def test_a_scan_remains_a_scan_of_the_parts():
    text = TEMPLATE.format("y[v] = scan(mul, x[v] * w[v], start=1j)").replace("spatial", "ordered")
    func, made = split(text)
    (block,) = (s for s in walk(made.body) if isinstance(s, Block))
    found = scanning(block)
    assert found is not None
    assert (len(found.targets), len(found.terms)) == (2, 2)
    assert [n.value for n in found.reducer.identities] == [1.0, 0.0]
    assert [n.value for n in found.starts] == [0.0, 1.0]
    x, w, y = drawn(9), drawn(9)[::-1].copy(), np.zeros(9, np.complex64)
    arrays = [x, w, y]
    run_prim(func, arrays, {"n": 9})
    of_parts = [parts(x), parts(w), parts(np.zeros(9, np.complex64))]
    run_prim(made, of_parts, {"n": 9})
    np.testing.assert_allclose(of_parts[2], parts(y), rtol=1e-5, atol=1e-5 * np.abs(y).max())


@pytest.mark.parametrize(
    "value",
    ["real(x[v] * w[v])", "abs(x[v]), start=imag(x[0] * w[0])", "t, start=real(w[0] * x[0])"],
)
def test_a_scan_of_real_values_of_complex_numbers_remains_a_scan(value):
    text = TEMPLATE.format(f"t = real(x[v] * x[v])\n            y[v] = scan(add, {value})")
    text = text.replace("spatial", "ordered").replace("InOut[(n,), c64]", "InOut[(n,), f32]")
    func, made = split(text)
    (block,) = (s for s in walk(made.body) if isinstance(s, Block))
    assert scanning(block) is not None
    x, w = drawn(9), drawn(9)[::-1].copy()
    want, got = np.zeros(9, np.float32), np.zeros(9, np.float32)
    run_prim(func, [x, w, want], {"n": 9})
    run_prim(made, [parts(x), parts(w), got], {"n": 9})
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    exe = compile(parse(text), "cpu")
    got = np.zeros(9, np.float32)
    exe(x, w, got)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
