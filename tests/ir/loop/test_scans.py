"""Scans: their text, their meaning, and the rules for their form."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.errors import TilewrightError
from tilewright.ir.interpreter.loops import call_prim
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.scans import scan_variable, scanning
from tilewright.ir.loop.visit import walk
from tilewright.ir.script import parse
from tilewright.ir.structural_hash import structural_hash

SUMS = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n, m), f32], y: Out[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            with block("sums"):
                vi, vj = spatial(i), ordered(j)
                y[vi, vj] = scan(add, x[vi, vj])
"""
LINEAR = """
n, m = symbols("n m", lower=1)

@prim_func
def f(
    a: Buffer[(n, m), f32],
    b: Buffer[(n, m), f32],
    first: Buffer[(n,), f32],
    p: Out[(n, m), f32],
    h: Out[(n, m), f32],
):
    for i in range(n):
        for j in range(m):
            with block("states"):
                vi, vj = spatial(i), ordered(j)
                p[vi, vj], h[vi, vj] = scan(linear_recurrence, a[vi, vj], b[vi, vj], start=(1.0, first[vi]))
"""  # noqa: E501
OWN = """
n = symbols("n", lower=1)

@prim_func
def f(x: Buffer[(n,), i32], y: Out[(n,), i32], z: Out[(n,), i32]):
    for i in range(n):
        with block("pairs"):
            vi = ordered(i)
            @reducer(identity=(0, 1))
            def pair(a0: i32, a1: i32, b0: i32, b1: i32):
                d = a0 + b0
                return d, a1 * b1
            t = x[vi] * 2
            y[n - 1 - vi], z[n - 1 - vi] = scan(pair, t, t + 1)
"""


def sums(operation: str) -> str:
    return SUMS.replace("scan(add, x[vi, vj])", operation)


def block_of(text: str) -> Block:
    return next(s for s in walk(parse(text).prims[0].body) if isinstance(s, Block))


def reference(text: str, args: list[np.ndarray]) -> list[np.ndarray]:
    x = args[0].astype(np.float64)
    if text is SUMS:
        return [np.cumsum(x, 1)]
    if text is OWN:
        return [np.cumsum(args[0] * 2)[::-1], np.cumprod(args[0] * 2 + 1)[::-1]]
    h = np.zeros_like(x)
    state = args[2].astype(np.float64)
    for j in range(x.shape[1]):
        state = h[:, j] = x[:, j] * state + args[1][:, j]
    return [np.cumprod(x, 1), h]


def arguments(text: str, n: int, m: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n * 100 + m)
    if text is OWN:
        return [rng.integers(-2, 3, n).astype(np.int32)]
    x = [rng.random((n, m)).astype(np.float32) for _ in range(2)]
    return x[:1] if text is SUMS else [*x, rng.random(n).astype(np.float32)]


@pytest.mark.parametrize("text", [SUMS, LINEAR, OWN], ids=["sums", "linear", "own"])
def test_scans_round_trip_and_run(text):
    module = parse(text)
    assert str(parse(str(module))) == str(module)
    assert structural_hash(parse(str(module)).prim("f")) == structural_hash(module.prim("f"))
    assert scan_variable(block_of(text)) is not None
    exe = compile(module, "cpu")
    for n, m in ((0, 2), (1, 1), (3, 7), (2, 16), (5, 33)):
        if n == 0 and text is not SUMS:
            continue
        args = arguments(text, n, m)
        for found in (call_prim(module.prim("f"), args), exe(*args)):
            results = found if isinstance(found, tuple | list) else (found,)
            for got, want in zip(results, reference(text, args), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-30)


def test_the_text_of_a_start_states_its_sign():
    for start, shown in (("0.0", ""), ("-0.0", ", start=-0.0"), ("1.0", ", start=1.0")):
        text = str(parse(sums(f"scan(add, x[vi, vj], start={start})")))
        assert f"scan(add, x[vi, vj]{shown})" in text
        assert str(parse(text)) == text


def test_an_exclusive_scan_is_a_scan_of_shifted_terms():
    text = sums("scan(max, where(vj >= 1, x[vi, vj - 1], -inf))")
    x = np.array([[3, 1, 4, 1, 5]], np.float32)
    found = call_prim(parse(text).prims[0], [x])
    np.testing.assert_array_equal(found[0], [[-np.inf, 3, 3, 4, 4]])


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("scan(sub, x[vi, vj])", "expected a reducer"),
        ("scan(xor, x[vi, vj])", "xor is not defined for dtype f32"),
        ("scan(add, x[vi, vj], x[vi, vj])", "expected 1 values, got 2"),
        ("scan(argmax, x[vi, vj], vj)", "argmax is not defined for dtypes f32"),
        ("scan(add, x[vi, vj], start=(0.0, 1.0))", "expected 1 values of the start, got 2"),
        ("scan(add, x[vi, vj], start=x[vi, vj])", "start of a scan does not depend on 'vj'"),
        ("scan(add, y[vi, vj])", "is not a reduction by 'add'"),
        ("scan(add, x[vi, vj], begin=0.0)", "unexpected keyword argument 'begin'"),
        ("scan(add)", "expected 2 to 100 positional arguments"),
    ],
)
def test_scans_that_are_not_well_formed(operation, message):
    with pytest.raises(TilewrightError) as caught:
        parse(sums(operation))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ordered(j)", "spatial(j)", "one ordered iteration variable, got 0"),
        ("spatial(i), ordered(j)", "ordered(i), ordered(j)", "ordered iteration variable, got 2"),
        ("y[vi, vj] =", "y[vi, 0] =", "no index is a constant multiple"),
        ("y[vi, vj] =", "y[vi, vj // 2] =", "no index is a constant multiple"),
    ],
)
def test_scans_over_wrong_variables(old, new, message):
    with pytest.raises(TilewrightError) as caught:
        parse(SUMS.replace(old, new))
    assert message in str(caught.value)


def test_other_bodies_are_not_scans():
    plain = sums("where(vj >= 1, y[vi, vj - 1], 0.0) + x[vi, vj]")
    assert scanning(block_of(plain)) is None
    assert scanning(block_of(SUMS)) is not None


LOADED = """
@prim_func
def f(x: Buffer[(8,), f32], p: Buffer[(8,), i32], y: Out[(8,), f32]):
    for j in range(8):
        with block("sums"):
            vj = ordered(j)
            with {mode}(p[vj], 0, 8) as a:
                y[vj] = {value}
"""


@pytest.mark.parametrize("mode", ["checked", "clamped"])
def test_a_scan_of_terms_at_loaded_indices_names_the_reason(mode):
    with pytest.raises(TilewrightError) as caught:
        parse(LOADED.format(mode=mode, value="scan(add, x[a])"))
    assert "store the terms that it combines in a temporary" in str(caught.value)
    plain = LOADED.format(mode=mode, value="where(vj >= 1, y[vj - 1], 0.0) + x[a]")
    assert scanning(block_of(plain)) is None
