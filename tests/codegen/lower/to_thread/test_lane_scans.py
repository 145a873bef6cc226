"""Scans along the lanes of a vector."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.codegen.lower.pipeline import lower_kernel
from tilewright.codegen.lower.to_thread.lane_scans import BLOCK_VECTORS
from tilewright.ir.interpreter.loops import call_prim
from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.schedules.primitives.loops.vectorize import Vectorize
from tilewright.target.target import Target

from tests.codegen.kernels import LEVELS
from tests.ir.loop.test_scans import LINEAR, SUMS, arguments

SIZES = ((1, 1), (3, 7), (2, 33))
WIDTHS = [
    width
    for width in [("avx512", 16), ("avx512", 5), ("avx2", 8), ("avx2", 5), ("", 4)]
    if width[0] in ("", *LEVELS)
]
"""Feature sets of this machine, and numbers of lanes."""

FULL = [("avx512", 16), ("avx2", 8)]
"""Whole vectors."""

TEXTS = {
    "sums": SUMS,
    "linear": LINEAR,
    "bytes": SUMS.replace("f32", "i8"),
    "backward": SUMS.replace("vj] =", "m - 1 - vj] ="),
    "bits": SUMS.replace("scan(add, x[vi, vj])", 'scan("or", x[vi, vj])').replace("f32", "bool"),
}


def scheduled(text: str, lanes: int, target: Target) -> Schedule:
    sch = Schedule(parse(text.replace("lower=0", "lower=1")), target)
    (block,) = sch.get_blocks("f")
    _, inner = sch.split(sch.get_loops(block)[-1], factors=(None, lanes))
    sch.vectorize(inner)
    return sch


@pytest.mark.parametrize(("feature", "lanes"), WIDTHS)
@pytest.mark.parametrize("name", TEXTS)
def test_lanes_compute_the_same_scan(name, feature, lanes):
    text = TEXTS[name]
    target = Target("cpu", features=(feature,) if feature else ())
    sch = scheduled(text, lanes, target)
    exe = compile(sch, target)
    for n, m in SIZES:
        args = [np.arange(n * m).reshape(n, m).astype(np.int8)]
        if name in ("sums", "linear"):
            args = arguments(text, n, m)
        elif name == "backward":
            args = [args[0].astype(np.float32)]
        elif name == "bits":
            args = [args[0] % 5 == 3]
        want = call_prim(parse(text).prims[0], args)
        found = exe(*args)
        results = found if isinstance(found, tuple | list) else (found,)
        for got, expected in zip(results, want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-30)


def test_the_result_of_a_vector_stays_in_a_register():
    target = Target("cpu", features=("avx512",))
    lowered = lower_kernel(scheduled(SUMS, 16, target).module.prims[0], target)
    text = str(lowered.function)
    assert "shuffle(f32x16(0.0)" in text
    assert text.count("load.f32(y") == 1  # before the last, partial vector


@pytest.mark.parametrize(("feature", "lanes"), [w for w in WIDTHS if w in FULL])
@pytest.mark.parametrize("vectors", [1, 511, 512, 513, 1024, 100_000])
def test_sums_of_equal_terms_start_again_in_blocks_of_vectors(feature, lanes, vectors):
    target = Target("cpu", features=(feature,))
    exe = compile(scheduled(SUMS, lanes, target), target)
    m = vectors * lanes + 3
    x = np.full((2, m), 0.1, np.float32)
    exact = np.cumsum(x, axis=1, dtype=np.float64)
    passed = np.log2(lanes) + BLOCK_VECTORS + 2 + np.arange(m) / (BLOCK_VECTORS * lanes)
    assert np.all(np.abs(exe(x) - exact) <= passed * 2.0**-24 * exact)


@pytest.mark.parametrize("lanes", [8, 16])
def test_products_and_integers_do_not_start_again_in_blocks(lanes):
    """The product of a block overflows, although the result before it is zero."""
    target = Target("cpu")
    products = compile(scheduled(SUMS.replace("scan(add", "scan(mul"), lanes, target), target)
    x = np.ones((1, 3 * BLOCK_VECTORS * lanes), np.float32)
    x[0, 5], x[0, 10::lanes] = 0, 2
    found = products(x)
    assert np.all(found[0, :5] == 1)
    assert np.all(found[0, 5:] == 0)
    integers = compile(scheduled(TEXTS["bytes"], lanes, target), target)
    x = np.arange(x.size, dtype=np.int8).reshape(x.shape)
    np.testing.assert_array_equal(integers(x), np.cumsum(x, 1, dtype=np.int8))


def test_guards_that_skip_the_first_iterations_are_not_vectorized():
    guarded = SUMS.replace("y[vi, vj] =", "guard(j >= 3)\n                y[vi, vj] =")
    sch = Schedule(parse(guarded.replace("y: Out", "y: InOut")))
    loops = sch.get_loops("sums")
    _, inner = sch.split(loops[-1], factors=(None, 8))
    problems = sch.check(Vectorize(inner))
    message = "loop 'j_1' binds an ordered iteration variable of block 'sums'"
    assert any(message in problem.message for problem in problems)


LOCAL_START = """
n, m = symbols("n m", lower=1)

@prim_func
def f(x: Buffer[(n, m), f32], s: Buffer[(n,), f32], y: Out[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            with block("sums"):
                vi, vj = spatial(i), ordered(j)
                t = s[vi] * 2.0
                q = t * t + 1.0
                u = x[vi, vj] + t
                y[vi, vj] = scan(add, u, start=q)
"""


@pytest.mark.parametrize("factors", [(None, 8), (None, 2, 8), (2, None, 5)])
def test_the_start_of_a_scan_is_a_local(factors):
    target = Target("cpu")
    sch = Schedule(parse(LOCAL_START), target)
    *_, inner = sch.split(sch.get_loops("sums")[-1], factors=factors)
    sch.vectorize(inner)
    exe = compile(sch, target)
    for n, m in (*SIZES, (3, 8), (1, 40)):
        x = np.arange(n * m, dtype=np.float32).reshape(n, m) % 7
        s = np.arange(n, dtype=np.float32) - 1
        (want,) = call_prim(parse(LOCAL_START).prims[0], [x, s])
        np.testing.assert_array_equal(exe(x, s), want)


GUARDED = """
n, m = symbols("n m", lower=0)

@prim_func
def f(n: Int, x: Buffer[(3, m), f32], y: InOut[(3, m + 2), f32]):
    for i in range(n):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(n, i), ordered(m + 2, j + 2)
                guard(i // 3 == 0)
                y[vi, vj] = scan(add, x[vi, vj - 2])
"""


def test_rows_that_a_guard_excludes_do_not_load_a_start():
    target = Target("cpu", features=("avx512",))
    sch = scheduled(GUARDED, 16, target)
    lines = str(lower_kernel(sch.module.prims[0], target).function).split("\n")
    starts = [k for k, line in enumerate(lines) if "load.f32(y" in line]
    assert starts
    for k in starts:
        around = [line for line in lines[:k] if _depth(line) < _depth(lines[k])]
        assert any("i // 3 == 0" in line for line in around[-2:])


def test_rows_that_a_guard_excludes_are_not_changed():
    exe = compile(scheduled(GUARDED, 16, Target("cpu")), Target("cpu"))
    x, y = np.ones((3, 40), np.float32), np.ones((3, 42), np.float32)
    (want,) = call_prim(parse(GUARDED).prims[0], [x, y], {"n": 7})
    np.testing.assert_array_equal(exe(7, x, y), want)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
