"""Guards of partial tiles lifted; tails of every size; accumulators in registers."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tilewright.codegen.llvm import assembly
from tilewright.codegen.llvm.processor import resolve
from tilewright.ir.loop.nodes import For, If
from tilewright.ir.loop.visit import walk
from tilewright.ir.script import parse, to_text
from tilewright.target.target import Target

from tests.codegen.kernels import LEVELS, build
from tests.codegen.lower.passes.running import (
    CPU,
    before,
    both,
    comparison,
    same_results,
    text_of,
    unchanged,
)

NAME = "lift_tail_guards"

SUMS_OF_ROWS = """
m, n = symbols("m n", lower=1)

@prim_func
def sums(x: Buffer[(m, n), i32], y: InOut[(m,), i32]):
    for i0 in range(ceildiv(m, {rows})):
        for k in range(n):
            for i1 in {kind}({rows}):
                with block("sum"):
                    vi, vk = spatial(m, i0 * {rows} + i1), reduce(k)
                    guard({guard})
                    y[vi] += x[vi, vk]
"""


def rows(count: int = 3, kind: str = "unrolled", guard: str = "i0 * {rows} + i1 < m") -> str:
    """Return a program with tiles of rows."""
    guard = guard.format(rows=count)
    return SUMS_OF_ROWS.format(rows=count, kind=kind, guard=guard)


def test_golden(golden) -> None:
    golden(f"{NAME}.txt", comparison(NAME, rows(), CPU))


@pytest.mark.parametrize("kind", ["unrolled", "vectorized"])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 7])
def test_results(kind: str, m: int) -> None:
    same_results(*both(NAME, rows(kind=kind), CPU), m=m, n=2)


def test_a_partial_vector_has_one_masked_copy() -> None:
    lines = text_of(both(NAME, rows(8, "vectorized"), CPU)[1]).splitlines()
    assert sum("i0 * 8 + 8 <= m" in line for line in lines) == 1
    assert sum("i0 * 8 + i1 < m" in line for line in lines) == 1


@pytest.mark.parametrize(("count", "versions"), [(2, 1), (17, 16), (18, 1)])
def test_more_than_sixteen_partial_sizes_have_one_masked_copy(count: int, versions: int) -> None:
    text = text_of(both(NAME, rows(count), CPU)[1])
    assert text.count("m == i0") == (0 if versions == 1 and count > 2 else versions)
    assert text.count(f"i0 * {count} + i1 < m") == versions


def test_one_row_per_tile_has_no_guard() -> None:
    assert unchanged(NAME, rows(1, guard="i0 + i1 < m"), CPU)


def test_a_guard_that_is_not_a_limit_is_not_lifted() -> None:
    guard = "i0 * {rows} + i1 < m and (i0 * {rows} + i1) % 2 < 1"
    first, second = both(NAME, rows(guard=guard), CPU)
    assert text_of(second).count("% 2") == 3
    same_results(first, second, m=7, n=2)


MATMUL = """
m, k = symbols("m k", lower=1)

@prim_func
def matmul(
    a: Buffer[(m, k), f32], b: Buffer[({panels}, k, {lanes}), f32], c: Out[(m, {columns}), f32]
):
    c_local = alloc((m, {columns}), f32, scope="local")
    for j0 in parallel({panels}):
        for i0 in range(ceildiv(m, {rows})):
            for i_init in unrolled({rows}):
                for j_init in vectorized({lanes}):
                    with block("init"):
                        vi = spatial(m, i0 * {rows} + i_init)
                        vj = spatial({columns}, j0 * {lanes} + j_init)
                        guard(i0 * {rows} + i_init < m)
                        c_local[vi, vj] = 0.0
            for r in range(k):
                for i1 in unrolled({rows}):
                    for j1 in vectorized({lanes}):
                        with block("update"):
                            vi = spatial(m, i0 * {rows} + i1)
                            vj = spatial({columns}, j0 * {lanes} + j1)
                            vr = reduce(r)
                            guard(i0 * {rows} + i1 < m)
                            c_local[vi, vj] += a[vi, vr] * b[vj // {lanes}, vr, vj % {lanes}]
            for i2 in unrolled({rows}):
                for j2 in vectorized({lanes}):
                    with block("write"):
                        vi = spatial(m, i0 * {rows} + i2)
                        vj = spatial({columns}, j0 * {lanes} + j2)
                        guard(i0 * {rows} + i2 < m)
                        c[vi, vj] = c_local[vi, vj]
"""
TILES = {"avx512": {"rows": 14, "lanes": 32}, "avx2": {"rows": 6, "lanes": 16}}


def matmul(level: str, panels: int = 3):
    tile = TILES[level]
    text = MATMUL.format(**tile, panels=panels, columns=panels * tile["lanes"])
    return parse(text).functions["matmul"]


@pytest.mark.parametrize("level", LEVELS)
def test_every_number_of_rows(level: str) -> None:
    kernel, lanes = build(matmul(level), level), TILES[level]["lanes"]
    rng = np.random.default_rng(0)
    for rows in range(1, 31):
        a = rng.integers(-4, 5, (rows, 17)).astype(np.float32)
        b = rng.integers(-4, 5, (17, 3 * lanes)).astype(np.float32)
        packed = np.ascontiguousarray(b.reshape(17, 3, lanes).transpose(1, 0, 2))
        c = np.full((rows + 1, 3 * lanes), np.nan, np.float32)
        assert kernel(a, packed, c[:rows]) == 0
        np.testing.assert_array_equal(c[:rows], a @ b)
        assert np.isnan(c[rows]).all()


@pytest.mark.parametrize("level", LEVELS)
def test_accumulators_are_in_registers(level: str) -> None:
    kernel = build(matmul(level), level)
    text = assembly(kernel.text, kernel.target)
    loops = innermost_loops(text)
    full = max(loops, key=len)
    tile, cpu = TILES[level], resolve(kernel.target)
    expected = tile["rows"] * tile["lanes"] * 32 // cpu.vector_bits
    products = [line for line in full if "vfmadd" in line]
    assert len(products) % expected == 0
    assert products
    assert not [line for line in full if "(%rsp" in line]


def innermost_loops(text: str) -> list[list[str]]:
    """Instructions between a label and the jump back to it, without labels in between."""
    found: list[list[str]] = []
    label, lines = "", []
    for line in text.splitlines():
        name = re.match(r"(\.LBB\w+):", line)
        if name:
            label, lines = name.group(1), []
        elif label:
            lines.append(line.strip())
            if re.match(rf"\s*j\w+\s+{re.escape(label)}\b", line):
                found.append(lines)
    return found


@pytest.mark.usefixtures("every_level")
def test_the_main_tile_has_no_guards() -> None:
    _, func = both(NAME, matmul("avx512"), Target("cpu", features=("avx512",)))
    inner = [s for s in walk(func.body) if isinstance(s, For) and s.var.name == "r"]
    assert len(inner) == 14
    whole = max(inner, key=lambda s: not any(isinstance(x, If) for x in walk(s)))
    assert not [s for s in walk(whole) if isinstance(s, If)]


COLUMNS = """
n = symbols("n", lower=1)

@prim_func
def scale(x: Buffer[(3, n), {dtype}], y: Out[(3, n), {dtype}]):
    for i in range(3):
        for j0 in range(ceildiv(n, 48)):
            for j1 in vectorized(48):
                with block("scale"):
                    vi, vj = spatial(i), spatial(n, j0 * 48 + j1)
                    guard(j0 * 48 + j1 < n)
                    y[vi, vj] = x[vi, vj] + x[vi, vj]
"""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "i8", "f16", "u16"])
def test_columns_of_every_remainder(level: str, dtype: str) -> None:
    kernel = build(parse(COLUMNS.format(dtype=dtype)).functions["scale"], level)
    element = kernel.artifact.buffers[0].dtype.numpy
    for n in [*range(1, 50), 95, 96, 97]:
        x = (np.arange(3 * n) % 50).astype(element).reshape(3, n)
        y = np.zeros((4, n), element)
        assert kernel(x, y[:3]) == 0
        np.testing.assert_array_equal(y[:3], x + x)
        assert not y[3].any()


SUMS = """
n = symbols("n", lower=0)

@prim_func
def sums(x: Buffer[(5, n), {dtype}], total: Out[(5,), {dtype}], top: Out[(5,), {dtype}]):
    for i in range(5):
        with block("start"):
            vi = spatial(i)
            total[vi] = {zero}
        for j0 in range(ceildiv(n, {lanes})):
            for j1 in vectorized({lanes}):
                with block("sum"):
                    vi, vj = spatial(i), reduce(n, j0 * {lanes} + j1)
                    guard(j0 * {lanes} + j1 < n)
                    total[vi] += x[vi, vj]
        for j2 in vectorized(n):
            with block("top"):
                vi, vj = spatial(i), reduce(j2)
                with init(): top[vi] = {low}
                top[vi] = max(top[vi], x[vi, vj])
"""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("lanes", [16, 64])
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "i64", "i8"])
def test_reductions_over_lanes(level: str, lanes: int, dtype: str) -> None:
    integer = dtype.startswith("i")
    text = SUMS.format(
        dtype=dtype, lanes=lanes, zero=0 if integer else 0.0, low=-100 if integer else -100.0
    )
    kernel = build(parse(text).functions["sums"], level)
    element = kernel.artifact.buffers[0].dtype.numpy
    for n in [0, 1, 2, 15, 16, 17, 63, 64, 65, 200]:
        x = np.random.default_rng(n).integers(-9, 10, (5, n)).astype(element)
        total, top = np.empty(5, element), np.empty(5, element)
        assert kernel(x, total, top) == 0
        np.testing.assert_array_equal(total, x.sum(axis=1, dtype=element))
        np.testing.assert_array_equal(top, x.max(axis=1, initial=-100))


@pytest.mark.parametrize("level", LEVELS)
def test_sums_of_rows_accumulate_in_a_vector(level: str) -> None:
    text = SUMS.format(dtype="f32", lanes=16, zero=0.0, low=-100.0)
    kernel = build(parse(text).functions["sums"], level)
    register = {"avx512": "%zmm", "avx2": "%ymm"}[level]
    lines = [
        line for loop in innermost_loops(assembly(kernel.text, kernel.target)) for line in loop
    ]
    assert [line for line in lines if "vaddps" in line and register in line]
    assert not [line for line in lines if "vaddss" in line or "vhaddps" in line]


@pytest.mark.usefixtures("every_level")
def test_passes_keep_programs_printable() -> None:
    target = Target("cpu", features=("avx512",))
    func = before("lower_virtual_threads", matmul("avx512"), target)
    assert "if i0 * 14 + i1 < m" in to_text(func)


NESTED = """
m, n = symbols("m n", lower=1)

@prim_func
def nested(x: Buffer[(m, n), i32], y: Out[(m, n), i32]):
    for i0 in vectorized(ceildiv(m, 2)):
        for i1 in parallel(2):
            for j0 in vectorized(ceildiv(n, 2)):
                for j1 in range(2):
                    with block("copy"):
                        vi, vj = spatial(m, i0 * 2 + i1), spatial(n, j0 * 2 + j1)
                        guard(i0 * 2 + i1 < m and j0 * 2 + j1 < n)
                        y[vi, vj] = x[vi, vj] + 1
"""


@pytest.mark.parametrize("level", LEVELS)
def test_vectors_in_vectors_with_guards_about_both(level: str) -> None:
    kernel = build(parse(NESTED).functions["nested"], level)
    for m, n in [(1, 1), (2, 3), (5, 6), (33, 35), (7, 70)]:
        x = np.arange(m * n, dtype=np.int32).reshape(m, n)
        y = np.zeros((m + 1, n), np.int32)
        assert kernel(x, y[:m]) == 0
        np.testing.assert_array_equal(y[:m], x + 1)
        assert not y[m].any()
