"""Reductions over threads: partial results per thread, then one combine step."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tilewright
from tilewright.ir.interpreter import run_prim
from tilewright.ir.kernel_errors import KernelStatementError
from tilewright.ir.script import parse

from tests.codegen.arrays import data, outputs
from tests.codegen.gpu.running import agrees
from tests.codegen.lower.passes.running import (
    GPU,
    both,
    comparison,
    program,
    racing,
    rejected,
    same_results,
    text_of,
    unchanged,
)
from tests.codegen.simt.launching import Launcher

if TYPE_CHECKING:
    from tilewright.ir.loop.nodes import PrimFunc

NAME = "combine_cross_thread_reductions"

SUMS = """
n = symbols("n", lower=1)

@prim_func
def sums(x: Buffer[(n, 64), i32], y: Out[(n,), i32]):
    for i in thread(n, "blockIdx.x"):
        for k in thread(64, "threadIdx.x"):
            with block("sum"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0
                y[vi] += x[vi, vk]
"""
TAIL = """
m, n = symbols("m n", lower=1)

@prim_func
def largest(x: Buffer[(m, n), i32], y: Out[(m,), i32]):
    for i in thread(m, "blockIdx.x"):
        for k0 in range(ceildiv(n, 8)):
            for k1 in thread(8, "threadIdx.x"):
                with block("largest"):
                    vi, vk = spatial(i), reduce(n, k0 * 8 + k1)
                    guard(k0 * 8 + k1 < n)
                    with init(): y[vi] = -7
                    y[vi] = max(y[vi], x[vi, vk])
"""
"""Several elements per thread, a tail, and an init that is not the identity of max."""


def test_golden(golden):
    golden(f"{NAME}.txt", comparison(NAME, SUMS, GPU))


@pytest.mark.parametrize("n", [1, 3])
def test_results(n):
    same_results(*both(NAME, SUMS, GPU), n=n)


@pytest.mark.parametrize("n", [1, 8, 13])
def test_a_tail(n):
    same_results(*both(NAME, TAIL, GPU), m=2, n=n)


def test_an_init_that_is_not_the_identity_counts_once():
    first, second = both(NAME, SUMS.replace("= 0", "= 7"), GPU)
    assert "y[i] = 7 + y_part[i]" in text_of(second)
    same_results(first, second, n=2)


def test_the_annotation_names_operation_buffer_and_axes():
    text = SUMS.replace("64", "8").replace(
        "for k in thread(8", 'for j in thread(4, "threadIdx.y"):\n         for k in thread(8'
    )
    text = text.replace("(n, 8)", "(n, 32)").replace("reduce(k)", "reduce(32, j * 8 + k)")
    first, second = both(NAME, text, GPU)
    assert 'threads=combined("add", "y_part", "threadIdx.x", "threadIdx.y")' in text_of(second)
    same_results(first, second, n=2)


@pytest.mark.parametrize(
    ("kind", "read"), [("range(64)", program), ('thread(64, "vthread")', racing)]
)
def test_a_reduction_within_each_thread_is_not_changed(kind, read):
    text = SUMS.replace('thread(64, "threadIdx.x")', kind).replace("blockIdx.x", "threadIdx.x")
    assert unchanged(NAME, read(text.replace("thread(n,", "thread(4,").replace("(n,", "(4,")), GPU)


def test_an_update_that_is_not_commutative():
    text = SUMS.replace("y[vi] += x[vi, vk]", "y[vi] = x[vi, vk] - y[vi]")
    func = racing(text)
    error = rejected(NAME, func, GPU, KernelStatementError, "'sum'", "C = C op value")
    assert error.where == "block 'sum' of function 'sums'"


def test_a_spatial_loop_whose_extent_depends_on_the_threads():
    text = """
@prim_func
def triangle(x: Buffer[(4, 4), i32], y: Out[(4,), i32]):
    for k in thread(4, "threadIdx.x"):
        for i in range(4 - k):
            with block("sum"):
                vi, vk = spatial(4, i), reduce(k)
                with init(): y[vi] = 0
                y[vi] += x[vi, vk]
"""
    rejected(NAME, text, GPU, KernelStatementError, "block 'sum'", "depend on its reduction loops")


PRODUCT = """
n = symbols("n", lower=1)

@prim_func
def product(b: Buffer[(5,), i32], y: InOut[(n + 4,), i32], n: Int):
    for i in range(n):
        for r in thread(5, "threadIdx.x"):
            with block("product"):
                vo, vk = spatial(n + 4, i + r), reduce(r)
                y[vo] += b[vk]
"""
"""Each thread updates another element; several iterations of i update one element."""
ROWS = """
@prim_func
def rows(x: Buffer[(64,), i32], y: Out[(8,), i32]):
    for f in thread(64, "threadIdx.x"):
        with block("sum"):
            vi, vk = spatial(8, f // 8), reduce(8, f % 8)
            with init(): y[vi] = 0
            y[vi] += x[vi * 8 + vk]
"""


@pytest.mark.parametrize("init", [False, True], ids=["in place", "init"])
def test_threads_that_update_different_elements_are_not_combined(init):
    """The results of the iterations of i are ordered by barriers."""
    text = PRODUCT
    if init:
        text = text.replace("y[vo] +=", "with init(): y[vo] = 0\n                y[vo] +=")
    assert unchanged(NAME, text, GPU)
    launcher = Launcher(parse(text).prims[0])
    b, y = np.arange(1, 6, dtype=np.int32), np.arange(8, dtype=np.int32)
    expected = y.copy()
    run_prim(launcher.source, [b, expected], {"n": 4})
    report = launcher.run([b, y], {"n": 4})
    np.testing.assert_array_equal(y, expected)
    assert report.findings == ()


PARTS = """
n = symbols("n", lower=0)

@prim_func
def parts(x: Buffer[(4, n, 3), i32], y: Out[(4,), i32]):
    for i in thread(4, "threadIdx.y"):
        for r_0 in range(ceildiv(n, 8)):
            for r_1 in thread(8, "threadIdx.x"):
                for k in range(2):
                    with block("first"):
                        vi, vr, vk = spatial(i), reduce(n, r_0 * 8 + r_1), reduce(3, k)
                        guard(r_0 * 8 + r_1 < n)
                        with init(): y[vi] = 5
                        y[vi] += x[vi, vr, vk]
                for k_1 in range(1):
                    with block("rest"):
                        wi, wr, wk = spatial(i), reduce(n, r_0 * 8 + r_1), reduce(3, k_1 + 2)
                        guard(r_0 * 8 + r_1 < n)
                        y[wi] += x[wi, wr, wk]
"""
"""Two parts of one reduction inside the loop that is bound to threads."""
ONE_PART = """
n = symbols("n", lower=0)

@prim_func
def one_part(x: Buffer[(n, 9), i32], y: Out[(), i32]):
    for i in range(n):
        for k in thread(8, "threadIdx.x"):
            with block("first"):
                vi, vk = reduce(i), reduce(9, k)
                with init(): y[()] = 5
                y[()] += x[vi, vk]
        for k_1 in range(1):
            with block("rest"):
                wi, wk = reduce(i), reduce(9, k_1 + 8)
                y[()] += x[wi, wk]
"""
"""Two parts of one reduction, only the first of which is bound to threads."""
OTHER_PART = ONE_PART.replace('thread(8, "threadIdx.x")', "range(1)")
OTHER_PART = OTHER_PART.replace("for k_1 in range(1)", 'for k_1 in thread(8, "threadIdx.x")')
OTHER_PART = OTHER_PART.replace("k_1 + 8", "k_1 + 1")
RUNNING = """
n = symbols("n", lower=0)

@prim_func
def running(x: Buffer[(n, 8), i32], y: Out[(), i32], z: Out[(n,), i32]):
    for i in range(n):
        for k in thread(8, "threadIdx.x"):
            with block("sum"):
                vi, vk = reduce(i), reduce(k)
                with init(): y[()] = 5
                y[()] += x[vi, vk]
        with block("copy"):
            wi = spatial(i)
            z[wi] = y[()]
"""
"""A block that reads the result after each term of the outer reduction loop."""


def ran(func: PrimFunc, **sizes: int) -> list[np.ndarray]:
    """Check a kernel on the emulator against the interpreter, and return the outputs."""
    launcher = Launcher(func)
    inputs = [a for a, p in zip(data(func, sizes), func.params, strict=False) if p.access == "in"]
    actual, report = launcher.outputs(inputs, sizes)
    assert report.findings == ()
    arrays = data(func, sizes)
    run_prim(func, arrays, sizes)
    for mine, theirs in zip(actual, outputs(func, arrays), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    return actual


@pytest.mark.parametrize("n", [0, 1, 8, 13])
@pytest.mark.parametrize(
    "text", [PARTS, ONE_PART, OTHER_PART, RUNNING], ids=["both", "first", "rest", "read"]
)
def test_other_blocks_that_access_the_result_inside_the_reduction(text, n):
    first, second = both(NAME, text, GPU)
    same_results(first, second, n=n)
    ran(parse(text).prims[0], n=n)


def test_the_init_runs_before_the_parts_of_a_reduction():
    """It counts once, and no part overwrites the sum of another one."""
    text = text_of(both(NAME, PARTS, GPU)[1])
    assert text.count("= 5") == 1
    assert text.index("y[vi_init] = 5") < text.index("y[i] += y_part[i]")


@pytest.mark.parametrize("a", [0, 1, 2])
@pytest.mark.parametrize("condition", ["i < a", "i >= a"])
def test_a_condition_between_the_threads_and_the_reduction(condition, a):
    """The results of the other rows keep their values."""
    text = f"""
a = symbols("a")

@prim_func
def rows(a: Int, x: Buffer[(2, 4), i32], y: InOut[(2,), i32]):
    for i in range(2):
        for k in thread(4, "threadIdx.x"):
            if {condition}:
                with block("sum"):
                    vi, vk = spatial(i), reduce(k)
                    with init(): y[vi] = 0
                    y[vi] += x[vi, vk]
"""
    first, second = both(NAME, text, GPU)
    same_results(first, second, a=a)
    launcher = Launcher(first)
    x, y = data(first, {"a": a})
    expected = np.where((np.arange(2) < a) == (condition == "i < a"), x.sum(axis=1), y)
    assert launcher.run([x, y], {"a": a}).findings == ()
    np.testing.assert_array_equal(y, expected)


def test_a_block_that_reads_the_result_inside_the_loop_of_the_threads():
    first, last = RUNNING.split('        with block("copy')
    text = first + indent(f'        with block("copy{last}', "    ")
    names = ("'k'", "'sum'", "'copy'")
    rejected(NAME, racing(text), GPU, KernelStatementError, *names, "inside this loop")


def test_threads_that_share_elements_of_a_reduction_with_an_init_are_rejected():
    message = "update the same element"
    rejected(NAME, racing(ROWS), GPU, KernelStatementError, "loop 'f'", message)


FUSED = """
@prim_func
def fused(x: Buffer[(3, 8), i32], y: Out[(3,), i32]):
    s = alloc((3,), i32, scope="local")
    for e in range(EXTENT):
        for t in thread(THREADS, "threadIdx.x"):
            with block("sum"):
                vi, vk = spatial(3, ROW), reduce(8, COLUMN)
                with init(): s[vi] = 0
                s[vi] += x[vi, vk]
    for i in range(3):
        with block("copy"):
            vj = spatial(i)
            y[vj] = s[vj]
"""


def fused(extent: int, threads: int, row: str, column: str) -> str:
    """Return a reduction of rows of 8 elements, whose loops are fused and split."""
    text = FUSED.replace("EXTENT", str(extent)).replace("THREADS", str(threads))
    return text.replace("ROW", row).replace("COLUMN", column)


def test_a_loop_that_repeats_the_combination_for_an_element_is_rejected():
    text = fused(6, 4, "e // 2", "(e % 2) * 4 + t")
    message = "combined more than once per element"
    rejected(NAME, text, GPU, KernelStatementError, "loop 'e'", "block 'sum'", message)


SUMMED = """
@prim_func
def summed(x: Buffer[(16,), i32], y: InOut[(16,), i32]):
    for j in range(2):
        for i in range(3):
            for k in thread(4, "threadIdx.x"):
                with block("y"):
                    vi, vk = spatial(16, ROW), reduce(16, COLUMN)
                    with init(): y[vi] = 0
                    y[vi] += x[vk]
"""


@pytest.mark.parametrize(("row", "column"), [("i + j", "k + i"), ("2 * j + i", "k + j")])
def test_loops_that_reach_an_element_together_several_times_are_rejected(row, column):
    text = SUMMED.replace("ROW", row).replace("COLUMN", column)
    text = text.replace("thread(4", "thread(1")
    message = "iterates the reduction and a spatial iteration variable"
    rejected(NAME, text, GPU, KernelStatementError, message, "block 'y'")


@pytest.mark.parametrize(("row", "column"), [("j", "4 * j + k"), ("j", "k * 2 + j")])
def test_a_loop_that_repeats_a_whole_reduction(row, column):
    text = SUMMED.replace("ROW", row).replace("COLUMN", column)
    before, after = both(NAME, text, GPU)
    same_results(before, after)


def test_a_fused_loop_that_reaches_each_element_once():
    same_results(*both(NAME, fused(3, 8, "e", "t"), GPU))


VECTORS = """
n = symbols("n", lower=0)

@prim_func
def columns(x: Buffer[(n, 7), i32], y: Out[(7,), i32]):
    for k0 in range(ceildiv(n, 4)):
        for k1 in thread(4, "threadIdx.x"):
            for j in vectorized(7):
                with block("least"):
                    vk, vj = reduce(n, k0 * 4 + k1), spatial(j)
                    guard(k0 * 4 + k1 < n)
                    with init(): y[vj] = 9
                    y[vj] = min(y[vj], x[vk, vj])
"""


@pytest.mark.parametrize("n", [0, 1, 9])
def test_each_lane_of_a_vectorized_loop_is_combined_on_its_own(n):
    """The combination of the parts of the threads is not a vector operation."""
    first, second = both(NAME, VECTORS, GPU)
    same_results(first, second, n=n)
    x = np.random.default_rng(0).integers(-9, 9, (n, 7)).astype(np.int32)
    run = tilewright.compile(parse(VECTORS), target="simt")
    np.testing.assert_array_equal(run(x), np.min(x, axis=0, initial=9))


ROWS_OF_VECTORS = """
n, k = symbols("n k", lower=0)

@prim_func(scheduled=True)
def rows(x: Buffer[(n, k, 32), f32], y: Out[(n, k), f32]):
    for i in thread(n, "blockIdx.x"):
        for a in range(k // 4):
            for b in vectorized(4):
                for r in thread(32, "threadIdx.x"):
                    with block("y"):
                        vi, va, vr = spatial(i), spatial(k, a * 4 + b), reduce(r)
                        with init(): y[vi, va] = 0.0
                        y[vi, va] += x[vi, va, vr]
        for c in range(k % 4):
            for d in thread(32, "threadIdx.x"):
                with block("z"):
                    wi, wc, wr = spatial(i), spatial(k, k // 4 * 4 + c), reduce(d)
                    with init(): y[wi, wc] = 0.0
                    y[wi, wc] += x[wi, wc, wr]
"""


@pytest.mark.parametrize(("n", "k"), [(0, 3), (1, 1), (2, 5), (3, 8)])
def test_a_warp_combines_outside_of_a_choice_by_alignment(n, k):
    """Vectors of results are aligned only if `k` is a multiple of 4, which the kernel decides."""
    x = np.random.default_rng(0).standard_normal((n, k, 32), np.float32)
    run = tilewright.compile(parse(ROWS_OF_VECTORS), target="simt")
    np.testing.assert_allclose(run(x), x.sum(-1, dtype=np.float64), rtol=1e-5, atol=1e-5)


ISOLATED = """
n = symbols("n", lower=0)

@prim_func(scheduled=True)
def largest(x: Buffer[(3, n), i32], y: InOut[(3,), i32]):
    for i in thread(3, "threadIdx.y"):
        with block("rows"):
            wi = spatial(i)
            for j in range(ceildiv(n, 4)):
                for t in thread(4, "threadIdx.x"):
                    with block("y"):
                        vi, vj = spatial(3, wi), reduce(n, j * 4 + t)
                        guard(j * 4 + t < n)
                        with init(): y[vi] = -9
                        y[vi] = max(y[vi], x[vi, vj])
"""


@pytest.mark.parametrize("n", [0, 1, 9])
def test_threads_outside_of_the_block_of_a_reduction_have_their_own_results(n):
    """The loop of the rows is around the block that contains the reduction over threads."""
    x = np.random.default_rng(n).integers(-20, 20, (3, n)).astype(np.int32)
    run = tilewright.compile(parse(ISOLATED), target="simt")
    expected = np.max(x, axis=1, initial=-9)
    np.testing.assert_array_equal(run(x, np.zeros(3, np.int32)), expected)


TILES = """
n = symbols("n", lower=0)

@prim_func
def rows(x: Buffer[(n, 5), i32], y: Out[(5,), i32], p: Out[(5,), i64]):
    for k0 in range(ceildiv(n, 4)):
        for k1 in thread(4, "threadIdx.x"):
            for i0 in range(2):
                for i1 in range(4):
                    with block("best"):
                        vk, vi = reduce(n, k0 * 4 + k1), spatial(5, i0 * 4 + i1)
                        guard(k0 * 4 + k1 < n and i0 * 4 + i1 < 5)
                        with init(): y[vi], p[vi] = -2147483648, 9223372036854775807
                        y[vi], p[vi] = argmax(x[vk, vi], vk)
"""
SUM_OF_TILES = (
    TILES.replace("y[vi], p[vi] = -2147483648, 9223372036854775807", "y[vi] = 0")
    .replace("y[vi], p[vi] = argmax(x[vk, vi], vk)", "y[vi] += x[vk, vi]")
    .replace(", p: Out[(5,), i64]", "")
)


@pytest.mark.parametrize("n", [1, 4, 9])
@pytest.mark.parametrize("text", [TILES, SUM_OF_TILES], ids=["argmax", "sum"])
def test_the_parts_have_an_element_for_each_iteration_of_a_partial_tile(text, n):
    """All iterations initialize an element, also those that have no element of the result."""
    x = np.random.default_rng(n).integers(-9, 9, (n, 5)).astype(np.int32)
    run = tilewright.compile(parse(text), target="simt")
    made = run(x)
    results = made if isinstance(made, tuple) else (made,)
    expected = (x.max(0), np.argmax(x, 0)) if text is TILES else (x.sum(0),)
    for result, want in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, want)


TILES_OF_A_BLOCK = """
n = symbols("n", lower=0)

@prim_func
def rows(x: Buffer[(n, 5), i32], y: Out[(5,), i32]):
    for i0 in range(1):
        with block("tile"):
            vo = spatial(i0)
            reads(x[0:n, vo * 8:vo * 8 + 8])
            writes(y[vo * 8:vo * 8 + 8])
            for k0 in range(ceildiv(n, 4)):
                for k1 in thread(4, "threadIdx.x"):
                    for i1 in range(8):
                        with block("sum"):
                            vk, vi = reduce(n, k0 * 4 + k1), spatial(5, vo * 8 + i1)
                            guard(k0 * 4 + k1 < n and vo * 8 + i1 < 5)
                            with init(): y[vi] = 0
                            y[vi] += x[vk, vi]
"""


@pytest.mark.parametrize("n", [0, 1, 9])
def test_the_parts_of_a_tile_that_is_a_block_have_an_element_for_each_iteration(n):
    """Walk 142002687: the index of the result has a variable of the outer block."""
    x = np.random.default_rng(n).integers(-9, 9, (n, 5)).astype(np.int32)
    run = tilewright.compile(parse(TILES_OF_A_BLOCK), target="simt")
    np.testing.assert_array_equal(run(x), x.sum(0))


@pytest.mark.parametrize("rows", [1, 3, 5])
def test_threads_sum_into_a_partial_tile_of_results(rows):
    """Each iteration of a tile initializes its part, also those without a result."""
    module = parse(f"""
@prim_func
def f(x: Buffer[({rows}, 32), i32], y: Out[({rows},), i32]):
    for i0 in range(2):
        for i1 in range(4):
            for k in thread(32, "threadIdx.x"):
                with block("sum"):
                    vi, vk = spatial({rows}, i0 * 4 + i1), reduce(k)
                    guard(i0 * 4 + i1 < {rows})
                    with init(): y[vi] = 0
                    y[vi] += x[vi, vk]
""")
    exe = tilewright.compile(module, target=tilewright.Target("simt", arch="sm_80"))
    x = np.arange(rows * 32, dtype=np.int32).reshape(rows, 32)
    np.testing.assert_array_equal(exe(x), x.sum(axis=1))


TWO_PARTS = """
k = symbols("k", lower=0)

@prim_func
def f(x: Buffer[(7, k), i32], m: InOut[(7,), i32], p: InOut[(7,), i32]):
    for k0 in range(ceildiv(k, 4)):
        for k1 in thread(4, "threadIdx.x"):
            for i in range(5):
                with block("first"):
                    vi, vk = spatial(7, i), reduce(k, k0 * 4 + k1)
                    guard(k0 * 4 + k1 < k)
                    {first} = argmax(x[vi, vk], vk)
            for a in range({rows}):
                with block("rest"):
                    va, vb = spatial(7, a + {start}), reduce(k, k0 * 4 + k1)
                    guard(k0 * 4 + k1 < k)
                    {rest} = arg{op}(x[va, vb], vb)
"""
"""Two updates by a declared reducer inside the loop of the threads."""


@pytest.mark.parametrize(("rows", "start"), [(2, 5), (4, 3)], ids=["disjoint", "overlapping"])
@pytest.mark.parametrize("k", [0, 1, 4, 11])
def test_other_updates_by_the_declared_reducer_of_a_reduction(rows, start, k):
    names = {"first": "m[vi], p[vi]", "rest": "m[va], p[va]", "op": "max"}
    func = program(TWO_PARTS.format(rows=rows, start=start, **names))
    agrees(func, func, {"k": k})


@pytest.mark.parametrize(
    ("rest", "op"),
    [("m[va], p[va]", "min"), ("p[va], m[va]", "max"), ("m[va], p[6 - va]", "max")],
    ids=["another reducer", "exchanged results", "other pairs"],
)
def test_other_updates_that_do_not_commute_with_a_declared_reducer(rest, op):
    names = {"first": "m[vi], p[vi]", "rest": rest, "op": op}
    text = TWO_PARTS.format(rows=2, start=5, **names)
    rejected(NAME, parse(text, check=False).prims[0], GPU, KernelStatementError, "inside this loop")


SHARED_ROW = """
@prim_func
def f(x: Buffer[(1, 96), i32], {results}):
    for k0 in range({count}):
        for f in thread(4, "threadIdx.y"):
            for t in thread(16, "threadIdx.x"):
                with block("sum"):
                    vi, vk = spatial(1, f // 2), reduce(96, k0 * 32 + f % 2 * 16 + t)
                    guard(f < 2)
                    {update}
"""
"""Threads of both axes reduce into one element, but only one axis binds a reduction alone."""


@pytest.mark.parametrize("count", [0, 1, 3])
def test_threads_that_share_an_element_add_atomically(count):
    """No facts follow from iterations that do not exist, but the combination is executed."""
    text = SHARED_ROW.format(
        count=count, results="m: InOut[(1,), i32]", update="m[vi] += x[vi, vk]"
    )
    agrees(func := parse(text).prims[0], func, {})
    assert "m_part" not in text_of(both(NAME, text, GPU)[1])


def test_threads_that_share_elements_of_a_declared_reducer():
    results = "m: InOut[(1,), i32], p: InOut[(1,), i32]"
    update = "m[vi], p[vi] = argmax(x[vi, vk], vk)"
    text = SHARED_ROW.format(count=0, results=results, update=update)
    func = parse(text, check=False).prims[0]
    rejected(NAME, func, GPU, KernelStatementError, "would combine partial results", "'m'")
