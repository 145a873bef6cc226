"""Functions of complex numbers: bounds, branch cuts, and special values equal NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.dtype import c64, f32
from tilewright.ir.interpreter import call_prim
from tilewright.ir.loop.complex_references import paired
from tilewright.ir.loop.element_functions import COMPLEX_UNITS, element_function
from tilewright.ir.loop.nodes import Binary, Local
from tilewright.schedules.launch.complex_functions import (
    FUNCTIONS_OF_PARTS,
    elements_of,
    leaf,
)

from tests.codegen.kernels import BEST, LEVELS, build

NAMES = tuple(FUNCTIONS_OF_PARTS)
SOME = ("log", "sqrt", "tanh", "asin")
PARTS = {"c64": np.float32, "c128": np.float64}
WIDE = {"c64": np.complex128, "c128": np.clongdouble}
EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan)
BRANCH_POINTS = (0, 1, -1, 1j, -1j, 1j * np.pi / 2, np.pi / 2, np.pi)

SIZE = 3200
LANES = 8
"""The lanes of one register, so programs have one copy of the code."""

MODULE = """
@prim_func(scheduled=True)
def main(x: Buffer[({n},), {c}], {outs}):
    for i in range({n} // {lanes}):
        for j in vectorized({lanes}):
            with block("y"):
                v = spatial({n}, i * {lanes} + j)
{body}
"""

UNSCHEDULED = """
@prim_func
def main(x: Buffer[(8,), c64], {outs}):
    for i in range(8):
        with block("y"):
            v = spatial(i)
{body}
"""

POWERS = """
n = symbols("n")

@prim_func
def main(x: Buffer[(n,), {c}], w: Buffer[(n,), {c}], y: Out[(n,), {c}], a: Out[(n,), {c}],
         b: Out[(n,), {c}], e: Out[(n,), {c}]):
    for i in range(n):
        with block("y"):
            v = spatial(i)
            y[v] = pow(x[v], w[v])
            a[v] = pow(x[v], 2.0)
            b[v] = pow(x[v], -3.0)
            e[v] = pow(x[v], 0.0)
"""


def program(dtype, values, size):
    """Return a program that stores some values of each element."""
    outs = ", ".join(f"y{k}: Out[({size},), {dtype}]" for k in range(len(values)))
    body = "\n".join(f"{'':16}y{k}[v] = {value}" for k, value in enumerate(values))
    return tw.parse(MODULE.format(n=size, lanes=LANES, c=dtype, outs=outs, body=body))


@pytest.fixture(scope="module", params=[("c64", LEVELS[0]), ("c128", BEST)], ids="-".join)
def compiled(request):
    """All functions, compiled, and their dtype."""
    dtype, level = request.param
    module = program(dtype, [f"{name}(x[v])" for name in NAMES], SIZE)
    kernel = build(module.prims[0], level)

    def run(x):
        padded = np.ones(SIZE, x.dtype)
        padded[: len(x)] = x
        found = [np.empty_like(padded) for _ in NAMES]
        assert kernel(padded, *found) == 0
        return [y[: len(x)] for y in found]

    return dtype, run


def numpy_function(name):
    return getattr(np, element_function(name).names.numpy)


def wanted(name, x):
    with np.errstate(all="ignore"):
        return numpy_function(name)(x.astype(np.complex128)).astype(x.dtype)


def same_special_values(have, want, *, signs):
    for a, b in ((have.real, want.real), (have.imag, want.imag)):
        np.testing.assert_allclose(np.abs(a), np.abs(b), rtol=1e-5)
        fixed = ~np.isnan(b) if signs else ~np.isnan(want.real) & ~np.isnan(want.imag)
        np.testing.assert_array_equal(np.signbit(a)[fixed], np.signbit(b)[fixed])


def test_infinities_nan_signed_zeros_and_branch_cuts_are_those_of_numpy(compiled):
    dtype, run = compiled
    x = paired(*np.array(list(itertools.product(EDGES, repeat=2)), PARTS[dtype]).T.copy())
    for name, found in zip(NAMES, run(x), strict=True):
        signs = name not in ("sin", "cos", "sinh", "cosh")
        same_special_values(found, wanted(name, x), signs=signs)


def samples(dtype):
    """Return numbers of all sizes, and numbers near the branch points and on the axes."""
    rng, of = np.random.default_rng(3), PARTS[dtype]
    lowest, highest = np.log10(float(np.finfo(of).tiny)) - 5, np.log10(float(np.finfo(of).max)) - 1
    usual = rng.standard_normal((3, 2, 500))
    drawn = [usual[0], usual[1] * 10.0 ** rng.uniform(lowest, highest, (2, 500))]
    drawn.append(usual[2] * 10.0 ** rng.uniform(-4, 2.4, (2, 500)))
    for point in BRANCH_POINTS:
        near = rng.standard_normal((2, 200)) * 10.0 ** rng.uniform(-9, -0.3, (2, 200))
        near[rng.integers(2, size=100), np.arange(100)] = 0
        drawn.append(near + np.array([[point.real], [point.imag]]))
    return paired(*np.concatenate(drawn, axis=1).astype(of))


def error_units(found, exact, dtype):
    """Return the largest error of a part relative to the absolute value, in unit roundoffs."""
    info = np.finfo(PARTS[dtype])
    size = np.abs(exact)
    fits = np.isfinite(size) & (size < float(info.max) / 2)
    found, exact, size = found[fits], exact[fits], size[fits]
    assert np.isfinite(found).all()
    error = np.maximum(np.abs(found.real - exact.real), np.abs(found.imag - exact.imag))
    error = np.maximum(error - float(info.smallest_subnormal), 0)
    return float((error / np.where(size == 0, 1, size) / (info.eps / 2)).max())


def test_bounds_hold_near_branch_points_and_for_numbers_of_all_sizes(compiled):
    dtype, run = compiled
    x = samples(dtype)
    for name, found in zip(NAMES, run(x), strict=True):
        with np.errstate(all="ignore"):
            exact = numpy_function(name)(x.astype(WIDE[dtype]))
        assert error_units(found, exact, dtype) <= COMPLEX_UNITS, name


def test_results_are_finite_where_the_formula_would_overflow(compiled):
    dtype, run = compiled
    large, small = (85.0, 150.0) if dtype == "c64" else (705.0, 1400.0)
    tiny = np.finfo(PARTS[dtype]).smallest_subnormal
    x = paired(*np.array([[large, small, 0.3], [1.57, tiny, large]], PARTS[dtype]))
    found = dict(zip(NAMES, run(x), strict=True))
    for name in ("sinh", "cosh", "sin", "cos"):
        with np.errstate(all="ignore"):
            exact = numpy_function(name)(x.astype(WIDE[dtype]))
        for a, b in ((found[name].real, exact.real), (found[name].imag, exact.imag)):
            fits = np.abs(b) < float(np.finfo(PARTS[dtype]).max)
            assert fits.any()
            np.testing.assert_allclose(a[fits], b[fits].astype(a.dtype), rtol=2e-5)


def test_compiled_code_for_threads_equals_the_interpreter():
    outs = ", ".join(f"y{k}: Out[(8,), c64]" for k in range(len(SOME)))
    body = "\n".join(f"{'':12}y{k}[v] = {name}(x[v])" for k, name in enumerate(SOME))
    module = tw.parse(UNSCHEDULED.format(outs=outs, body=body))
    x = samples("c64")[:1600:200].copy()
    got = tw.compile(module, "simt")(x)
    for name, have, want in zip(SOME, got, call_prim(module.prim("main"), [x]), strict=True):
        np.testing.assert_allclose(have, want, rtol=2e-5, err_msg=name)


@pytest.fixture(scope="module")
def powers():
    """Powers of numbers of dtype c64."""
    return tw.compile(tw.parse(POWERS.format(c="c64")))


def test_powers(powers):
    rng = np.random.default_rng(0)
    x, w = (paired(*(rng.standard_normal((2, 3000)) * 3).astype(np.float32)) for _ in range(2))
    power, square, inverse, unit = powers(x, w)
    wide = x.astype(complex)
    logarithms = np.abs(w * np.log(wide)) + 1
    exact = wide ** w.astype(complex)
    scaled = exact + (power - exact) / logarithms
    assert error_units(scaled, exact, "c64") <= 4
    assert error_units(square, wide * wide, "c64") <= 3
    assert error_units(inverse, 1 / (wide * wide * wide), "c64") <= 8
    assert (unit == 1).all()
    wanted = call_prim(tw.parse(POWERS.format(c="c64")).prim("main"), [x[:50], w[:50]])
    for have, want in zip((power, square, inverse, unit), wanted, strict=True):
        np.testing.assert_allclose(have[:50], want, rtol=1e-4)


def test_powers_of_zero_and_with_exponent_zero_are_those_of_numpy(powers):
    finite = [v for v in EDGES if np.isfinite(v)]
    a = np.array(list(itertools.product(finite, repeat=4)), np.float32).T.copy()
    x, w = paired(a[0], a[1]), paired(a[2], a[3])
    with np.errstate(all="ignore"):
        want = np.power(x.astype(complex), w.astype(complex)).astype(x.dtype)
    size = np.abs(np.nan_to_num(want)).max()
    np.testing.assert_allclose(powers(x, w)[0], want, rtol=1e-5, atol=1e-6 * size)
    nan = np.full(1, np.nan, x.dtype)
    assert powers(nan, np.zeros(1, x.dtype))[0] == 1


def test_nested_functions_below_a_condition():
    value = "where(real(x[v]) > 0.0, acos(asin(x[v])), sqrt(log(x[v] * 1j)))"
    module = program("c64", [value], 64)
    x = samples("c64")[:64]
    have, want = tw.compile(module)(x), call_prim(module.prim("main"), [x])
    np.testing.assert_allclose(have, want[0], rtol=2e-4, atol=1e-5)


def test_values_that_are_used_several_times_are_bound_once():
    bound = []

    def bind(element, dtype):
        bound.append(element)
        return Local(f"part{len(bound)}", dtype)

    x = leaf(Local("x", f32), f32)
    root = (x * x + 1.0).of("sqrt")
    first, second = elements_of((root + x, root * 2.0), bind)
    assert len(bound) == 1
    assert isinstance(first, Binary)
    assert first.left is second.left


def test_every_function_of_the_table_with_the_common_bound_has_a_formula():
    for name in NAMES:
        assert element_function(name).accepts(c64)
        assert element_function(name).complex_units == COMPLEX_UNITS
