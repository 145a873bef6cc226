"""Rejection of kernels whose thread blocks depend on each other."""

from __future__ import annotations

import pytest

from tilewright.ir.kernel_errors import MemoryScopeError

from tests.codegen.lower.passes.running import GPU, both, check_comparison, racing, rejected

NAME = "check_interblock_memory"

FILLED = """
n, m = symbols("n m", lower=1)

@prim_func
def filled({m}x: Buffer[(n,), i32], y: Out[({size},), i32]):
    for i in thread({size}, "blockIdx.x"):
        with block("zero"):
            vi = spatial({size}, i)
            guard({zero})
            y[vi] = 0
    for j in thread({size}, "blockIdx.x"):
        with block("copy"):
            vj = spatial({size}, j)
            guard({copy})
            y[{at}] = x[vj]
"""


def filled(size, at, zero="i < n", copy="j < n"):
    """Return a program that stores zeros, then elements of x at other indices."""
    m = "m: Int, " if "m" in size else ""
    return FILLED.format(size=size, at=at, zero=zero, copy=copy, m=m)


def test_golden(golden):
    """Each element is written by one thread block, then by two."""
    good, bad = filled("n", "vj"), filled("n", "n - 1 - vj")
    golden(f"{NAME}.txt", check_comparison(NAME, (good, GPU), (bad, GPU), MemoryScopeError))


@pytest.mark.parametrize(
    ("size", "at"), [("n", "vj"), ("2 * n", "vj + n")], ids=["same block", "disjoint"]
)
def test_independent_thread_blocks(size, at):
    first, second = both(NAME, filled(size, at), GPU)
    assert second is first


@pytest.mark.parametrize(
    ("size", "at"), [("n + m", "vj + m"), ("n", "n - 1 - vj")], ids=["shifted", "reversed"]
)
def test_an_element_of_another_thread_block(size, at):
    text = filled(size, at, zero="i >= 0")
    message = "two statements access 'y', at least one writes it"
    error = rejected(NAME, text, GPU, MemoryScopeError, message, "another thread block")
    assert error.details == {"buffer": "y"}


def test_reads_of_another_thread_block():
    """The second nest reads elements that the first nest wrote."""
    text = """
n = symbols("n", lower=1)

@prim_func
def shifted(x: Buffer[(n,), i32], y: Out[(n,), i32], z: Out[(n,), i32]):
    for i in thread(n, "blockIdx.x"):
        with block("copy"):
            vi = spatial(i)
            y[vi] = x[vi]
    for j in thread(n, "blockIdx.x"):
        with block("shift"):
            vj = spatial(j)
            z[vj] = y[{at}]
"""
    rejected(NAME, text.format(at="max(vj - 1, 0)"), GPU, MemoryScopeError, "'y'")
    first, second = both(NAME, text.format(at="vj"), GPU)
    assert second is first


def test_a_single_thread_block():
    text = filled("n", "n - 1 - vj").replace(", lower=1)", ", lower=1, upper=64)")
    text = text.replace('thread(n, "blockIdx.x")', "range(n)").replace(
        "    for i in", '    for b in thread(1, "blockIdx.x"):\n      for i in'
    )
    first, second = both(NAME, text, GPU)
    assert second is first


OVERLAPPING = """
@prim_func
def f(x: Buffer[(16,), i32], y: Out[(16,), i32], z: Out[(4,), i32]):
    for b in thread(4, "blockIdx.x"):
        for t in thread(4, "threadIdx.x"):
            with block("fill"):
                vb, vt = spatial(b), spatial(t)
                y[{write}] = x[vb * 4 + vt]
        with block("read"):
            vb = spatial(b)
            z[vb] = y[{read}]
"""


def test_regions_of_thread_blocks_that_overlap():
    """Block b writes b, b + 4, ...; element b + 1 is in this interval, but of block b + 1."""
    message = "another thread block"
    interleaved = OVERLAPPING.format(write="vb + vt * 4", read="vb + 1")
    rejected(NAME, racing(interleaved), GPU, MemoryScopeError, message)
    first, second = both(NAME, OVERLAPPING.format(write="vb * 4 + vt", read="vb * 4 + 1"), GPU)
    assert second is first


def test_elements_at_loaded_indices_of_different_thread_blocks():
    """Thread blocks load different integers: ``p`` of one may be ``p + 1`` of another."""
    text = """
@prim_func
def f(at: Buffer[(8,), i32], x: Buffer[(8,), i32], y: InOut[(9,), i32], z: Out[(8,), i32]):
    for i in thread(8, "blockIdx.x"):
        with checked(at[i], 0, 8) as p:
            with block("add"):
                vi, vp = spatial(i), spatial(8, p)
                y[vp] = y[vp] + x[vi]
            with block("read"):
                ui, up = spatial(8, i), spatial(8, p)
                z[ui] = y[up + 1]
"""
    rejected(NAME, racing(text), GPU, MemoryScopeError, "another thread block")


PARTS = """
n = symbols("n", lower=1)

@prim_func
def parts(x: Buffer[(n, 64), i32], y: InOut[(n * 64,), i32]):
    for p in thread(n, "blockIdx.x"):
        for q in thread(8, "threadIdx.x"):
            for j in range(8):
                with block("step"):
                    vp, vq, vj = spatial(p), spatial(q), ordered(j)
                    y[vp * 64 + vq * 8 + vj] = x[vp, vq * 8 + vj]
            for k in range(8):
                with block("sum"):
                    wp, wq, wk = spatial(p), spatial(q), ordered(k)
                    y[wp * 64 + wq * 8 + wk] = y[wp * 64 + wq * 8 + wk] + where(
                        {condition}, y[wp * 64 + wq * 8 + wk - 1], 0
                    )
"""


def test_a_recurrence_inside_of_the_part_of_a_thread_block():
    """The selection excludes the element before the part."""
    first, second = both(NAME, PARTS.format(condition="wk >= 1"), GPU)
    assert second is first
    crossing = PARTS.format(condition="wp * 64 + wq * 8 + wk >= 1")
    rejected(NAME, racing(crossing), GPU, MemoryScopeError, "another thread block")


SEGMENTS = """
n, m = symbols("n m", lower=0)

@prim_func
def segments(n: Int, off: Buffer[(n + 1,), i32], x: Buffer[(m,), i32], y: InOut[(m,), i32]):
    for i in thread(n, "blockIdx.x"):
        with checked(off[i], 0, m + 1) as lo:
            with checked(off[i + 1], lo, m + 1) as hi:
                for j in range(hi - lo):
                    with block("scan"):
                        vl, vj = spatial(m + 1, lo), ordered(m, j)
                        y[vl + vj] = scan(add, x[vl + vj])
                for k in range(hi - lo):
                    with block("again"):
                        wl, wk = spatial(m + 1, lo), spatial(m, k)
                        y[wl + wk] = {value}
"""


def test_segments_between_offsets_of_different_thread_blocks():
    text = SEGMENTS.format(value="y[wl + wk] * 2")
    first, second = both(NAME, text, GPU)
    assert second is first


def test_elements_before_the_segment_of_a_thread_block():
    text = SEGMENTS.format(value="where(condition(wl + wk >= 1), y[wl + wk - 1], 0)")
    rejected(NAME, racing(text), GPU, MemoryScopeError, "another thread block")
