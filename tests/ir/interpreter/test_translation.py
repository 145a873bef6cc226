"""The translation of loop-level functions to Python."""

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.ir.interpreter import OutOfBoundsError, run_prim
from tilewright.ir.script import parse
from tilewright.schedules import Schedule

RAGGED = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        t = alloc((i + 1,), f32)
        for j in range({extent}):
            with block("t"):
                vi, vj = spatial(i), spatial({extent}, j)
                t[vj] = x[vj] + 1.0
        with block("y"):
            wi = spatial(i)
            y[wi] = t[wi]
"""


def test_an_allocation_in_a_loop_has_its_own_sizes():
    y = np.zeros(5, np.float32)
    run_prim(
        parse(RAGGED.replace("{extent}", "i + 1"), check=False).prim("f"), [np.ones_like(y), y]
    )
    np.testing.assert_array_equal(y, np.full(5, 2, np.float32))


def test_an_index_is_compared_with_the_present_size_of_an_allocation():
    func = parse(RAGGED.replace("{extent}", "min(i + 2, n)"), check=False).prim("f")
    with pytest.raises(OutOfBoundsError, match=r"index 1 of axis 0 is not in \[0, 1\)"):
        run_prim(func, [np.ones(3, np.float32), np.zeros(3, np.float32)])


def test_products_of_complex_and_of_real_numbers_in_one_block():
    text = """
@prim_func
def f(x: Buffer[(3,), c64], s: Buffer[(3,), f32], y: Out[(3,), c64], z: Out[(3,), f32]):
    for i in range(3):
        with block("b"):
            vi = spatial(i)
            y[vi] = x[vi] * x[vi]
            z[vi] = s[vi] * s[2 - vi]
"""
    x, s = np.array([1j, 2, 1 + 1j], np.complex64), np.arange(3, dtype=np.float32)
    y, z = np.zeros_like(x), np.zeros_like(s)
    run_prim(parse(text).prim("f"), [x, s, y, z])
    np.testing.assert_array_equal(y, np.array([-1, 4, 2j], np.complex64))
    np.testing.assert_array_equal(z, np.array([0, 1, 0], np.float32))


def test_more_nested_loops_than_python_permits():
    """Python rejects more than 20 nested loops in one function."""
    depth = 40
    extents = {3: 2, 25: 2}
    lines = [f"{'    ' * k}    for i{k} in range({extents.get(k, 1)}):" for k in range(depth)]
    body = ['with block("b"):', "    a, b = spatial(i3), spatial(i25)", "    y[a, b] = 1.0"]
    lines += ["    " * (depth + 1) + line for line in body]
    text = "\n".join(["@prim_func", "def f(y: Out[(2, 2), f32]):", *lines])
    y = np.zeros((2, 2), np.float32)
    run_prim(parse(text).prim("f"), [y])
    np.testing.assert_array_equal(y, np.ones((2, 2)))


def test_statements_nested_deeper_than_python_permits():
    """Python rejects more than 100 levels of indentation; steps may nest more than text may."""
    sch = Schedule(parse(DEEP))
    for k in range(130):
        sch.add_unit_loop("i" if k == 0 else "u")
    x, y = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    expected = np.where(np.arange(6) % 2, 7, np.arange(6) + 1)
    func = sch.module.prim("f")
    assert max(len(line) - len(line.lstrip()) for line in str(func).splitlines()) > 4 * 100
    run_prim(func, [x, y])
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(compile(sch.module)(x), expected)


DEEP = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        t = alloc((i + 1,), f32)
        with block("t"):
            vi = spatial(i)
            t[vi] = x[vi] + 1.0
        for u in range(1):
            if i % 2 == 0:
                with block("even"):
                    wi = spatial(i)
                    a = t[wi]
                    y[wi] = a
            else:
                with block("odd"):
                    zi = spatial(i)
                    y[zi] = 7.0
"""
