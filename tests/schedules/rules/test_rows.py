"""Default rules for kernels that reduce rows to narrow elements."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tilewright.ir.loop.nodes import For
from tilewright.ir.loop.visit import walk
from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.schedules.rules import with_default_schedule
from tilewright.schedules.rules.rows import PART
from tilewright.target.target import Target

from tests.codegen.kernels import Kernel, Runtime, build
from tests.fuzz import oracles
from tests.fuzz.program import Program

ROWS = """
n, m = symbols("n m", lower=0)

@prim_func
def random(x: Buffer[(n, m), {t}], y: Out[(n,), {t}]):
    for i in range(n):
        for k in range(m):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = {low}
                y[vi] = max(y[vi], x[vi, vk])
"""
CASES = (("i4", "i4(-8)"), ("u2", "u2(0)"), ("f8_e4m3", "-448.0"), ("f8_e5m2", "-inf"))
SIZES = ((0, 3), (1, 1), (5, 7), (4, 0), (3, 70))


@pytest.mark.parametrize(("t", "low"), CASES)
def test_rows_of_packed_results_run_in_parallel_by_groups(t, low):
    module = parse(ROWS.format(t=t, low=low))
    sch = Schedule(module, Target("cpu", features=("avx2",)))
    sch.schedule_kernel("random")
    function = sch.module.prims[0]
    assert "parallel" in [sch.state.loop(x).kind for x in sch.get_loops("y")]
    original = oracles.Original(Program("rows", ROWS.format(t=t, low=low)), module)
    kernel = oracles.native(function, "avx2", opt=0)
    for env in _sizes(original):
        oracles.run_native(original, kernel, env, "native code")


@pytest.mark.parametrize(("t", "low"), CASES)
def test_threads_do_not_exchange_narrow_elements(t, low):
    module = parse(ROWS.format(t=t, low=low))
    sch = Schedule(module, oracles.SIMT)
    sch.schedule_kernel("random")
    original = oracles.Original(Program("rows", ROWS.format(t=t, low=low)), module)
    artifact = oracles.lowered(sch.module.prims[0], oracles.SIMT)
    for env in _sizes(original):
        oracles.run_simt(original, artifact, env, "the emulated GPU")


def _sizes(original: oracles.Original):
    symbols = [v for d in original.function.params[0].buffer.shape for v in d.free]
    return [dict(zip(symbols, sizes, strict=True)) for sizes in SIZES]


MOMENTS = """
m = symbols("m", lower=0)

@prim_func
def moments(x: Buffer[(m,), f32], c: Out[(), f32], mean: Out[(), f32], square: Out[(), f32]):
    for k in range(m):
        with block("reduce"):
            vk = reduce(k)
            with init(): c[()], mean[()], square[()] = 0.0, 0.0, 0.0
            c[()], mean[()], square[()] = welford(1.0, x[vk], 0.0)
"""


@cache
def scheduled(text: str, name: str) -> tuple[Kernel, list[str]]:
    """Return a kernel by the default rule, and the kinds of its loops."""
    func = with_default_schedule(parse(text), Target("cpu", features=("avx2",))).prim(name)
    return build(func, "avx2"), [s.kind for s in walk(func.body) if isinstance(s, For)]


@pytest.mark.parametrize("m", [0, 1, 70, PART - 1, 3 * PART + 5])
def test_all_elements_are_reduced_in_parallel_parts(m):
    kernel, kinds = scheduled(MOMENTS, "moments")
    assert kinds == ["parallel", "serial", "vectorized", "serial", "vectorized"]
    x = np.random.default_rng(m).normal(3, 2, m).astype(np.float32)
    results = [np.empty((), np.float32) for _ in range(3)]
    assert kernel(x, *results, runtime=Runtime(threads=2)) == 0
    assert results[0] == m
    if m:
        np.testing.assert_allclose(results[1], x.mean(dtype=np.float64), rtol=1e-6)
        np.testing.assert_allclose(results[2] / m, x.astype(np.float64).var(), rtol=1e-5)


TOTALS = """
m = symbols("m", lower=0)

@prim_func
def sum(x: Buffer[(m,), f32], total: Out[(), f32]):
    for k in range(m):
        with block("sum"):
            vk = reduce(k)
            with init(): total[()] = 0.0
            total[()] += x[vk]

@prim_func
def mean(x: Buffer[(m,), f32], y: Out[(), f32]):
    total = alloc((), f32)
    for k in range(m):
        with block("sum"):
            vk = reduce(k)
            with init(): total[()] = 0.0
            total[()] += x[vk] * x[vk]
    with block("divide"):
        y[()] = total[()] / f32(i64(m))

@prim_func
def largest(x: Buffer[(m,), f32], y: Out[(), f32]):
    for k in range(m):
        with block("max"):
            vk = reduce(k)
            with init(): y[()] = -inf
            y[()] = max(y[()], x[vk])
"""


@pytest.mark.parametrize(
    "m", [0, 1, 7, 70, PART - 1, PART, PART + 1, 3 * PART + 17, 40 * PART + 17]
)
@pytest.mark.parametrize("name", ["sum", "mean", "largest"])
def test_totals_of_one_array_are_summed_in_parallel_parts(name, m):
    kernel, kinds = scheduled(TOTALS, name)
    assert kinds == ["parallel", "serial", "vectorized", "serial", "vectorized"]
    x = np.random.default_rng(m).normal(3, 2, m).astype(np.float32)
    wide, found, runtime = x.astype(np.float64), np.empty((), np.float32), Runtime(threads=2)
    assert kernel(x, found, runtime=runtime) == 0
    assert runtime.regions == (m > 40 * PART)
    if name == "largest":
        assert found == x.max(initial=-np.inf)
    else:
        terms, count = (wide, 1) if name == "sum" else (wide**2, m)
        with np.errstate(invalid="ignore"):
            expected = terms.sum() / np.float64(count)
        bound = 2 * 128 * 2.0**-24 * np.abs(terms).sum() / max(count, 1)
        np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


GRIDS = """
n, m = symbols("n m", lower=0)

@prim_func
def total(x: Buffer[(n, m), f32], w: Buffer[(m,), f32], y: Out[(), f32]):
    for i in range(n):
        for k in range(m):
            with block("sum"):
                vi, vk = reduce(i), reduce(k)
                with init(): y[()] = 0.0
                y[()] += x[vi, vk]
"""


@pytest.mark.parametrize("feature", ["avx2", "avx512"])
def test_totals_over_two_loops_run_in_parallel_whichever_is_long(feature):
    func = with_default_schedule(parse(GRIDS), Target("cpu", features=(feature,))).prim("total")
    kinds = [s.kind for s in walk(func.body) if isinstance(s, For)]
    assert kinds == ["parallel", "serial", "vectorized", "serial", "vectorized"]
    kernel = build(func, feature)
    for n, m in ((0, 3), (3, 0), (1, 1), (7, 13), (1, 40 * PART + 5), (PART + 3, 45), (300, 9001)):
        x = np.random.default_rng(n).normal(3, 2, (n, m)).astype(np.float32)
        found, runtime = np.empty((), np.float32), Runtime(threads=2)
        assert kernel(x, np.ones(m, np.float32), found, runtime=runtime) == 0
        assert runtime.regions == (n * m > 40 * PART)
        wide = x.astype(np.float64)
        bound = 2 * 128 * 2.0**-24 * np.abs(wide).sum()
        np.testing.assert_allclose(found, wide.sum(), rtol=0, atol=bound)


@pytest.mark.parametrize("old", ["x[vi, vk]", "x["])
def test_totals_of_other_elements_than_adjacent_ones_are_not_fused(old):
    new = {"x[vi, vk]": "x[vi, vk] * w[vk]", "x[": "f32(i64(vk)) * x["}[old]
    text = GRIDS.replace(old, new)
    func = with_default_schedule(parse(text), Target("cpu", features=("avx2",))).prim("total")
    assert func.buffers == ()
    original = oracles.Original(Program("grid", text), parse(text))
    n, m = (next(iter(d.free)) for d in original.function.params[0].buffer.shape)
    kernel = oracles.native(func, "avx2", opt=0)
    for sizes in ((0, 3), (1, 1), (5, 70)):
        oracles.run_native(original, kernel, dict(zip((n, m), sizes, strict=True)), "native code")


EXTREME = """
m = symbols("m", lower=0)

@prim_func
def random(x: Buffer[(m,), {t}], value: Out[(), {t}], at: Out[(), i64]):
    for k in range(m):
        with block("extreme"):
            vk = reduce(k)
            with init(): value[()], at[()] = {low}, 0
            value[()], at[()] = argmax(x[vk], vk)
"""


@pytest.mark.parametrize(("t", "low"), CASES[:2])
def test_packed_partial_results_are_combined_in_parallel_groups(t, low):
    """Partial results of two parts share a byte, so a thread computes the parts of whole bytes."""
    text = EXTREME.format(t=t, low=low)
    target = Target("cpu", features=("avx2",))
    function = with_default_schedule(parse(text), target).prim("random")
    kinds = [s.kind for s in walk(function.body) if isinstance(s, For)]
    assert kinds == ["parallel", "serial", "serial", "vectorized", "serial", "vectorized"]
    original = oracles.Original(Program("extreme", text), parse(text))
    kernel = oracles.native(function, "avx2", opt=0)
    (symbol,) = original.function.params[0].buffer.shape[0].free
    for m in (0, 1, PART, 4 * PART + 5):
        oracles.run_native(original, kernel, {symbol: m}, "native code")


COLUMNS = """
k = symbols("k", lower=1)

@prim_func
def columns(x: Buffer[(1, k), i32], y: Out[(k,), i32]):
    for i in range(1):
        for j in range(k):
            with block("fold"):
                vi, vj = reduce(1, i), spatial(k, j)
                with init(): y[vj] = i32(0)
                y[vj] = y[vj] | x[vi, vj]
"""


def test_columns_of_one_row_are_not_one_result():
    """The loop over the columns is spatial, so a part of it has no partial result."""
    kernel = with_default_schedule(parse(COLUMNS), Target("cpu", features=("avx2",)))
    program = Program("columns", COLUMNS)
    original = oracles.Original(program, parse(COLUMNS))
    (symbol,) = original.function.params[1].buffer.shape[0].free
    native = oracles.native(kernel.prim("columns"), "avx2", opt=0)
    for k in (1, 7, 70000):
        oracles.run_native(original, native, {symbol: k}, "native code")


WELFORD_ROWS = """
n, m = symbols("n m", lower=0)

@prim_func
def rows(x: Buffer[(n, m), f32], mean: Out[(n,), f32], y: Out[(n, m), f32]):
    c = alloc((n,), f32)
    square = alloc((n,), f32)
    for i in range(n):
        for k in range(m):
            with block("reduce"):
                vi, vk = spatial(i), reduce(k)
                with init(): c[vi], mean[vi], square[vi] = 0.0, 0.0, 0.0
                c[vi], mean[vi], square[vi] = welford(1.0, x[vi, vk], 0.0)
    for j in range(n):
        for l in range(m):
            with block("divide"):
                vj, vl = spatial(j), spatial(l)
                y[vj, vl] = (x[vj, vl] - mean[vj]) / sqrt(square[vj] / c[vj])
"""


def test_rows_of_several_results_are_reduced_in_lanes():
    """Their block does not move into the rows of the next one, and its terms are adjacent."""
    sch = Schedule(parse(WELFORD_ROWS), Target("cpu", features=("avx2",)))
    sch.schedule_kernel("rows")
    for block in ("reduce", "divide"):
        kinds = [sch.state.loop(x).kind for x in sch.get_loops(block)]
        assert kinds == ["parallel", "serial", "vectorized"]
    (_, *_, lanes) = sch.get_loops("reduce")
    assert sch.state.loop(lanes).extent == 32
