"""Temporaries shrunk to the part that is live at a time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.interpreter import call_prim
from tilewright.ir.kernel_errors import MemoryScopeError
from tilewright.ir.loop.visit import allocations
from tilewright.ir.script import parse
from tilewright.ir.verify import IllFormedProgramError
from tilewright.schedules import Schedule

from tests.codegen.kernels import LEVELS, Runtime, build
from tests.codegen.lower.passes.running import (
    CPU,
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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewright.ir.module import Module

NAME = "compact_buffers"

REVERSE = """
n = symbols("n", lower=1)

@prim_func
def reverse(x: Buffer[(n, 8), i32], y: Out[(n, 8), i32]):
    t = alloc((n, 8), i32)
    for i in {kind}(n):
        for j in range(8):
            with block("double"):
                vi, vj = spatial(i), spatial(j)
                t[vi, vj] = x[vi, vj] * 2
        for k in range(8):
            with block("reverse"):
                wi, wk = spatial(i), spatial(k)
                y[wi, wk] = t[{row}, 7 - wk]
"""
LANES = """
n = symbols("n", lower=1)

@prim_func
def lanes(x: Buffer[(n, 16), f32], y: Out[(n, 16), f32]):
    t = alloc((n, 16), f32)
    for i in range(n):
        for j in vectorized(16):
            with block("first"):
                vi, vj = spatial(i), spatial(j)
                t[vi, vj] = x[vi, vj] * 2.0
            with block("second"):
                wi, wj = spatial(i), spatial(j)
                y[wi, wj] = t[wi, wj] + 1.0
"""
TILES = """
n = symbols("n", lower=1)

@prim_func
def tiles(n: Int, x: Buffer[(n * 4,), i32], y: Out[(n * 4,), i32]):
    t = alloc((n * 4 + 1,), i32)
    for i in range(n):
        for j in range(5):
            with block("double"):
                vj = spatial(n * 4 + 1, i * 4 + j)
                t[vj] = x[min(vj, n * 4 - 1)] * 2
        for k in range(4):
            with block("sum"):
                vk = spatial(n * 4, i * 4 + k)
                y[vk] = t[vk] + t[vk + 1]
"""


EDGES = """
n = symbols("n", lower=1)

@prim_func
def edges(x: Buffer[(n,), i32], y: Out[(n,), i32]):
    t = alloc((n,), i32)
    for i in parallel(ceildiv(n, 8)):
        for j in range({size}):
            with block("double"):
                vj = spatial(n, max(i * 8 - 1, 0) + j)
                guard(max(i * 8 - 1, 0) + j < n)
                t[vj] = x[vj] * 2
        for k in range(8):
            with block("sum"):
                vk = spatial(n, i * 8 + k)
                guard(i * 8 + k < n)
                y[vk] = t[max(vk - 1, 0)] + t[min(vk + 1, n - 1)]
"""


def reverse(kind="range", row="wi"):
    """Return a program whose temporary has one live row."""
    return REVERSE.format(kind=kind, row=row)


def test_golden(golden):
    """Each worker of a parallel loop has a row."""
    golden(f"{NAME}.txt", comparison(NAME, reverse("parallel"), CPU))


@pytest.mark.parametrize("text", [reverse(), reverse("parallel"), LANES, TILES])
@pytest.mark.parametrize("n", [1, 4])
def test_results(text, n):
    same_results(*both(NAME, text, CPU), n=n)


def test_a_temporary_of_a_serial_loop_keeps_its_scope():
    assert "t = alloc((1, 8), i32)" in text_of(both(NAME, reverse(), CPU)[1])


def test_indices_are_relative_to_the_tile():
    text = text_of(both(NAME, TILES, CPU)[1])
    assert "t = alloc((5,), i32)" in text
    assert "t[k] + t[k + 1]" in text


@pytest.mark.parametrize("n", [1, 7, 8, 9, 30])
def test_windows_that_end_at_the_edges_are_inside_of_the_tile_that_is_written(n: int):
    first, second = both(NAME, EDGES.format(size=10), CPU)
    assert "t = alloc((10,), i32" in text_of(second)
    same_results(first, second, n=n)


def test_a_tile_that_is_written_in_part_is_not_shared():
    func = racing(EDGES.format(size=9))
    rejected(NAME, func, CPU, MemoryScopeError, "iterations of parallel loop 'i' share temporary")


@pytest.mark.parametrize("row", ["n - 1 - wi", "0", "max(wi - 1, 0)"])
def test_a_temporary_of_which_another_iteration_reads_is_not_changed(row):
    assert unchanged(NAME, reverse(row=row), CPU)


def test_parameters_are_not_changed():
    text = (
        reverse()
        .replace("    t = alloc((n, 8), i32)\n", "")
        .replace("y: Out[(n, 8), i32]", "y: Out[(n, 8), i32], t: Out[(n, 8), i32]")
    )
    first, second = both(NAME, text, CPU)
    assert second is first


def test_a_loop_of_one_iteration():
    text = reverse().replace("(n, 8)", "(1, 8)").replace("range(n)", "range(1)")
    text = text.replace('n = symbols("n", lower=1)\n', "").replace("spatial(i)", "spatial(1, i)")
    same_results(*both(NAME, text, CPU))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("around", ["range(n)", "parallel(n)"])
def test_each_lane_keeps_its_element(level: str, around: str) -> None:
    """Found by random programs: a temporary in a vectorized loop shrank to one element."""
    x = np.random.default_rng(0).random((300, 16), np.float32)
    y = np.empty_like(x)
    kernel = build(program(LANES.replace("range(n)", around)), level)
    assert kernel(x, y, runtime=Runtime(threads=2)) == 0
    np.testing.assert_array_equal(y, x * 2 + 1)


GUARDED = """
@prim_func(scheduled=True)
def windows(x: Buffer[(18,), f32], y: Out[(16,), f32]):
    t = alloc((18,), f32)
    for i in range(16):
        for r in range(3):
            with block("fill"):
                vi, vr = spatial(16, i), spatial(3, r)
                guard(i == 0 or r == 2)
                t[vi + vr] = x[vi + vr]
        with block("sum"):
            vk = spatial(16, i)
            y[vk] = t[vk] + t[vk + 1] + t[vk + 2]
"""

MAYBE_EMPTY = """
@prim_func
def skipped(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    t = alloc((8,), f32)
    for i in {kind}(8):
        for r in range((2 - i % 3) // 2):
            with block("fill"):
                vi, vr = spatial(8, i), spatial(1, r)
                t[{at}] = x[vi]
        with block("copy"):
            vi = spatial(8, i)
            y[vi] = t[{at}]
"""


def test_a_window_filled_under_a_guard_keeps_its_elements():
    """Iterations after the first write only the last element of their window."""
    assert unchanged(NAME, GUARDED, CPU)


@pytest.mark.parametrize("level", LEVELS)
def test_a_window_filled_under_a_guard_is_read_by_later_iterations(level: str) -> None:
    x, y = np.arange(18, dtype=np.float32), np.empty(16, np.float32)
    assert build(program(GUARDED), level)(x, y) == 0
    np.testing.assert_array_equal(y, 3 * np.arange(16, dtype=np.float32) + 3)


def test_a_write_in_a_loop_that_may_be_empty_does_not_count():
    assert unchanged(NAME, MAYBE_EMPTY.format(kind="range", at="vi"), CPU)
    shared = both(NAME, MAYBE_EMPTY.format(kind="parallel", at="vi"), CPU)[1]
    assert "t = alloc((8,), f32)" in text_of(shared)


def test_iterations_of_a_parallel_loop_that_share_an_element():
    func = racing(MAYBE_EMPTY.format(kind="parallel", at="0"))
    message = "iterations of parallel loop 'i' share temporary 't'"
    rejected(NAME, func, CPU, MemoryScopeError, message, "compute_at")


def test_an_element_at_an_index_loaded_from_memory_is_not_moved():
    text = """
@prim_func
def f(c: Buffer[(8,), i32], y: Out[(8,), i32]):
    t = alloc((4,), i32)
    for i in range(8):
        with checked(c[i], 0, 4) as p:
            with block("read"):
                vi, vp = spatial(i), spatial(4, p)
                y[vi] = where(condition(vi > 0), t[vp], 0)
            with block("write"):
                wi, wp = spatial(i), spatial(4, p)
                t[wp] = i32(7)
"""
    assert unchanged(NAME, text, CPU)


RAGGED = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(m,), f32], p: Buffer[(n + 1,), i32], size: Buffer[(n,), i32], y: Out[(n, m), f32]):
    for i in {kind}:
        with checked(p[i], 0, {end}) as lo:
            with checked(p[i + 1], 0, {end}) as hi:
                t = alloc((hi - lo,), f32{scope})
                for k in range(hi - lo):
                    with block("t"):
                        vl, vk = spatial({end}, lo), spatial({end}, k)
                        t[vk] = x[vl + vk] * 2.0
                for j in range(m):
                    with block("y"):
                        wi, wj = spatial(n, i), spatial(m, j)
                        wl, wh = spatial({end}, lo), spatial({end}, hi)
                        y[wi, wj] = where(wj < wh - wl, t[wh - wl - wj - 1], 0.0)
"""

ROWS = """
@prim_func
def f(x: Buffer[(4, 8), f32], p: Buffer[(4,), i32], y: Out[(4, 8), f32]):
    for i in thread(4, "{axis}"):
        with checked(p[i], 0, 9) as size:
            t = alloc((size,), f32{scope})
            for k in range(size):
                with block("t"):
                    vi, vk = spatial(4, i), spatial(9, k)
                    t[vk] = x[vi, vk] * 2.0
            for j in range(8):
                with block("y"):
                    wi, wj, ws = spatial(4, i), spatial(8, j), spatial(9, size)
                    y[wi, wj] = where(wj < ws, t[ws - wj - 1], 0.0)
"""

COOPERATIVE = """
@prim_func
def f(x: Buffer[(4, 3, 64), f32], y: Out[(4, 3, 64), f32]):
    for b in thread(4, "blockIdx.x"):
        for r in range(3):
            t = alloc((64,), f32{scope})
            for i in thread(64, "threadIdx.x"):
                with block("t"):
                    vb, vr, vi = spatial(b), spatial(r), spatial(i)
                    t[vi] = x[vb, vr, vi]
            for j in thread(64, "threadIdx.x"):
                with block("y"):
                    wb, wr, wj = spatial(b), spatial(r), spatial(j)
                    y[wb, wr, wj] = t[63 - wj]
"""

ROWS_OF_THREADS = """
@prim_func
def f(x: Buffer[(4, 16), f32], y: Out[(4, 16), f32]):
    for a in thread(4, "threadIdx.y"):
        t = alloc((16,), f32{scope})
        for i in thread(16, "threadIdx.x"):
            with block("t"):
                va, vi = spatial(a), spatial(i)
                t[vi] = x[va, vi]
        for j in thread(16, "threadIdx.x"):
            with block("y"):
                wa, wj = spatial(a), spatial(j)
                y[wa, wj] = t[15 - wj]
"""

OWN_LANES = """
@prim_func
def f(x: Buffer[(64,), f32], y: Out[(64,), f32]):
    for i in {kind}:
        for v in vectorized(16):
            t = alloc((2,), f32, scope="local")
            for k in range(2):
                with block("t"):
                    vi, vk = spatial(64, i * 16 + v), spatial(k)
                    t[vk] = x[vi] + index(vk, f32)
            with block("y"):
                wi = spatial(64, i * 16 + v)
                y[wi] = t[0] * t[1]
"""

VIRTUAL = """
@prim_func
def f(x: Buffer[(2, 32), f32], y: Out[(2, 32), f32]):
    for v in thread(2, "vthread"):
        t = alloc((1,), f32, scope="local")
        for i in thread(32, "threadIdx.x"):
            with block("t"):
                vv, vi = spatial(v), spatial(i)
                t[0] = x[vv, vi]
            with block("y"):
                wv, wi = spatial(v), spatial(i)
                y[wv, wi] = t[0] * 2.0
"""

COPY = """
@prim_func
def f(x: Buffer[(16, 16), f32], y: Out[(16, 16), f32]):
    for i in range(16):
        for j in range(16):
            with block("w"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 2.0
"""

WINDOW = """
@prim_func(scheduled=True)
def f(x: Buffer[(18,), f32], y: Out[(16,), f32]):
    tmp = alloc((18,), f32{scope})
    for i in range(16):
        for r in {kind}:
            with block("p"):
                vi, vr = spatial(16, i), spatial(3, r)
                guard(i == 0 or r == 2)
                tmp[vi + vr] = x[vi + vr]
        {last}with block("c"):
            vk = spatial(16, i)
            y[vk] = tmp[vk] + tmp[vk + 1] + tmp[vk + 2]
"""

SKIPPED = """
@prim_func(scheduled=True)
def f(x: Buffer[(6,), f32], y: Out[(6,), f32]):
    T = alloc((1,), f32)
    for i in {kind}:
        for r in range((2 - i % 3) // 2):
            with block("t"):
                vt = spatial(6, i)
                T[0] = x[vt]
        with block("y"):
            vy = spatial(6, i)
            y[vy] = T[0]
"""

X8 = np.arange(8, dtype=np.float32)
P = np.array([0, 3, 3, 8], np.int32)
GPU_OR_CPU = pytest.mark.parametrize("target", ["cpu", "simt"])


def check(module: Module | str, arrays: Sequence[np.ndarray], target: str) -> None:
    """Compare a compiled function with the interpreter, twice: memory is used again."""
    module = parse(module) if isinstance(module, str) else module
    (expected,) = call_prim(module.prim("f"), list(arrays))
    run = tw.compile(module, target)["f"]
    for _ in range(2):
        np.testing.assert_array_equal(run(*arrays), expected)


@pytest.mark.parametrize("scope", ["", ', scope="local"', ', scope="shared"'])
@pytest.mark.parametrize("kind", ["range(n)", "parallel(n)"])
def test_a_scratch_of_loaded_size_on_a_cpu(kind: str, scope: str):
    text = RAGGED.format(kind=kind, end="m + 1", scope=scope)
    check(text, (X8, P, P[:-1]), "cpu")
    sizes = np.array([0, 500, 1000, 9000], np.int32)
    check(text, (np.arange(9000, dtype=np.float32), sizes, sizes[:-1]), "cpu")
    check(text, (X8[:0], P[:1] * 0, P[:0]), "cpu")


@pytest.mark.parametrize("scope", ["", ', scope="local"', ', scope="shared"'])
def test_a_scratch_of_loaded_size_per_thread_block(scope: str):
    text = RAGGED.format(kind='thread(n, "blockIdx.x")', end="9", scope=scope)
    check(text, (X8, P, P[:-1]), "simt")


@pytest.mark.parametrize("scope", ["", ', scope="local"', ', scope="shared"'])
@pytest.mark.parametrize("axis", ["blockIdx.x", "threadIdx.x"])
def test_a_scratch_of_loaded_size_per_thread(axis: str, scope: str):
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    check(ROWS.format(axis=axis, scope=scope), (x, np.array([8, 0, 3, 1], np.int32)), "simt")


def test_a_scratch_of_unknown_size_per_thread_is_a_part_of_global_memory():
    text = ROWS.format(axis="threadIdx.x", scope="").replace("(4, 8)", "(4, m)")
    text = text.replace("spatial(9", "spatial(m + 1").replace("0, 9)", "0, m + 1)")
    text = text.replace("range(8)", "range(m)").replace("spatial(8, j)", "spatial(m, j)")
    for m in (8, 5, 1):
        x = np.arange(4 * m, dtype=np.float32).reshape(4, m)
        size = np.array([m, 0, 1, m // 2], np.int32)
        check(f"m = symbols('m', lower=1)\n{text}", (x, size), "simt")


@pytest.mark.parametrize("scope", ["", ', scope="shared"'])
def test_threads_of_a_block_share_its_temporary(scope: str):
    x = np.arange(768, dtype=np.float32).reshape(4, 3, 64)
    check(COOPERATIVE.format(scope=scope), (x,), "simt")


@pytest.mark.parametrize("scope", ["", ', scope="shared"'])
def test_each_row_of_threads_has_the_elements_that_it_allocates(scope: str):
    x = np.arange(64, dtype=np.float32).reshape(4, 16)
    check(ROWS_OF_THREADS.format(scope=scope), (x,), "simt")


def test_threads_do_not_share_private_elements():
    for text in (COOPERATIVE, ROWS_OF_THREADS):
        with pytest.raises(MemoryScopeError, match="a thread reads an element that another"):
            local = text.format(scope=', scope="local"')
            tw.compile(parse(local.replace("@prim_func", "@prim_func(scheduled=True)")), "simt")


def test_each_lane_has_the_elements_that_it_allocates():
    x = np.arange(64, dtype=np.float32)
    check(OWN_LANES.format(kind="range(4)"), (x,), "cpu")
    check(OWN_LANES.format(kind="parallel(4)"), (x,), "cpu")
    check(OWN_LANES.format(kind='thread(4, "threadIdx.x")'), (x,), "simt")


def test_each_virtual_thread_has_the_elements_that_it_allocates():
    check(VIRTUAL, (np.arange(64, dtype=np.float32).reshape(2, 32),), "simt")


def test_the_allocation_of_each_worker_is_a_part_of_the_arena():
    text = RAGGED.format(kind="parallel(n)", end="m + 1", scope="")
    lowered = tw.lower(parse(text), target="cpu", stop_after="to_thread")["f"].text
    assert "t = scratch + ceildiv(m, 16) * worker * 64" in lowered
    assert "alloc" not in lowered


def test_an_allocation_in_serial_loops_is_one_allocation():
    text = RAGGED.format(kind="range(n)", end="m + 1", scope="")
    first, second = both("compact_buffers", program(text), CPU)
    assert len(list(allocations(first.body))) == 1
    assert not list(allocations(second.body))
    assert len(second.buffers) == 1
    assert "t = alloc((m,), f32)" in text_of(second)


def test_a_size_without_a_bound_is_an_error_that_names_it():
    text = """
@prim_func
def f(x: Buffer[(8,), f32], p: Buffer[(8,), i64], y: Out[(8,), f32]):
    for i in {kind}:
        with checked(p[i], 0, 9) as a:
            with checked(p[i], 0, 9) as b:
                t = alloc(({size},), f32{scope})
                with block("t"):
                    va = spatial(9, a)
                    t[va] = 1.0
                with block("y"):
                    wi, wb = spatial(8, i), spatial(9, b)
                    y[wi] = t[wb]
"""
    check(
        text.format(kind="range(8)", size="a + b + 1", scope=""),
        (X8, np.arange(8, dtype=np.int64)),
        "cpu",
    )
    threads, shared = 'thread(8, "threadIdx.x")', ', scope="shared"'
    large = text.format(kind=threads, size="a * 10000 + 1", scope=shared)
    with pytest.raises(tw.TilewrightError, match="bytes of shared memory"):
        tw.compile(parse(large), "simt")


def test_a_size_that_no_symbol_limits_is_an_error_that_names_it():
    text = """
m = symbols("m", lower=1)
@prim_func
def f(x: Buffer[(m,), f32], p: Buffer[(8,), i64], y: Out[(8,), f32]):
    for i in parallel(8):
        with checked(p[i], 0, m + 1) as a:
            t = alloc(((a * 7) % (m + a) + 1,), f32)
            with block("t"):
                va = spatial(m + 1, a)
                t[va] = 1.0
            with block("y"):
                wi, wa = spatial(8, i), spatial(m + 1, a)
                y[wi] = t[wa]
"""
    message = "the largest size of temporary 't' is unknown when the kernel starts: "
    with pytest.raises(MemoryScopeError, match=message + re.escape("(a * 7) % (m + a) + 1")):
        tw.compile(parse(text), "cpu")


def test_an_index_outside_of_the_allocated_size_is_an_error():
    text = RAGGED.format(kind="range(n)", end="m + 1", scope="").replace(
        "t[wh - wl - wj - 1]", "t[wj + 1]"
    )
    run = tw.compile(parse(text), "cpu")["f"]
    with pytest.raises(tw.TilewrightError, match="axis 0 is out of bounds"):
        run(X8, P, P[:-1])


@GPU_OR_CPU
@pytest.mark.parametrize("names", [("ax0", "i"), ("i", "ax0")])
def test_a_copy_that_two_parallel_loops_share(names: tuple[str, str], target: str):
    sch = Schedule(parse(COPY))
    sch.cache_read(sch.get_block("w"), "x", "local" if target == "cpu" else "shared")
    for name in names:
        if target == "cpu":
            sch.parallel(name)
        else:
            sch.bind(name, "threadIdx.x")
    check(sch.module, (np.arange(256, dtype=np.float32).reshape(16, 16),), target)


@GPU_OR_CPU
def test_a_window_that_is_filled_under_a_guard(target: str):
    text = WINDOW.format(scope="", kind="range(3)", last="")
    if target == "simt":
        text = WINDOW.format(
            scope=', scope="shared"',
            kind='thread(3, "threadIdx.x")',
            last="",
        )
    check(text, (np.arange(18, dtype=np.float32),), target)


@GPU_OR_CPU
def test_a_write_in_a_loop_that_may_be_empty(target: str):
    serial = SKIPPED.format(kind="range(6)")
    x = np.arange(6, dtype=np.float32)
    check(serial if target == "cpu" else serial.replace("(scheduled=True)", ""), (x,), target)
    kind = "parallel(6)" if target == "cpu" else 'thread(6, "blockIdx.x")'
    with pytest.raises(IllFormedProgramError, match=r"reads T\[0\], which iteration 0 writes"):
        parse(SKIPPED.format(kind=kind))


def test_a_comment_states_the_placement_and_its_reason():
    ragged = RAGGED.format(kind="parallel(n)", end="m + 1", scope="")
    note = "# t: one per worker; allocated once for all iterations of i; (m,) instead of (hi - lo,)"
    assert f"{note} elements" in text_of(both("compact_buffers", program(ragged), CPU)[1])
    window = WINDOW.format(scope="", kind="range(3)", last="")
    note = "# tmp: not smaller: an iteration of i may read elements that it did not write before"
    assert note in text_of(both("compact_buffers", program(window), CPU)[1])
    note = "# t: one per thread block; allocated once for all iterations of blockIdx_x, "
    shared = program(COOPERATIVE.format(scope=""))
    assert note in text_of(both("compact_thread_buffers", shared, GPU)[1])


def test_lanes_beyond_the_edge_of_a_whole_buffer_do_not_enlarge_it():
    text = """
M = symbols("M", lower=0)

@prim_func
def f(A: Buffer[(M, 4), u8], W: Buffer[(8, 4), i8], C: Out[(M, 8), i32]):
    for i in range(M):
        for j in range(8):
            for k in range(4):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = 0
                    C[vi, vj] += i32(W[vj, vk]) * i32(A[vi, vk])
"""
    exe = tw.compile(parse(text))
    for m in (0, 1, 13, 15):
        a = np.arange(4 * m, dtype=np.uint8).reshape(m, 4)
        w = np.arange(-16, 16, dtype=np.int8).reshape(8, 4)
        assert (exe(a, w) == a.astype(np.int32) @ w.T.astype(np.int32)).all()
