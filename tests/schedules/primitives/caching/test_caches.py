"""Tests of cache_read and cache_write."""

import numpy as np
import pytest

from tilewright.codegen import compile as build
from tilewright.ir.interpreter import call_prim
from tilewright.ir.script import parse
from tilewright.ir.verify import violations
from tilewright.schedules.coerce import index_map
from tilewright.schedules.primitives.caching import cache_write
from tilewright.schedules.primitives.caching.cache_read import CacheRead
from tilewright.schedules.primitives.caching.cache_write import CacheWrite

from tests.schedules.helpers import CHAIN, MATMUL, rejected, schedule

IN_PLACE = """
@prim_func
def twice(x: InOut[(8,), i32]):
    for i in range(8):
        with block("double"):
            vi = spatial(i)
            x[vi] = x[vi] + x[vi]
"""

HOLES = """
@prim_func
def holes(x: Buffer[(8,), i32], y: Out[(16,), i32]):
    for i in range(16):
        with block("zero"):
            vz = spatial(i)
            y[vz] = 0
"""

EVEN = """
@prim_func
def even(x: Buffer[(8,), i32], y: InOut[(16,), i32]):
    for i in range(8):
        with block("spread"):
            vi = spatial(i)
            y[vi * 2] = x[vi]
"""

SCATTER = """
@prim_func
def f(pos: Buffer[(4,), i32], new: Buffer[(4, 8), f32], cache: InOut[(16, 8), f32]):
    for i in range(4):
        for j in range(8):
            with block("w"):
                vi, vj = spatial(i), spatial(j)
                with checked(pos[vi], 0, 16) as p:
                    cache[p, vj] = new[vi, vj]
"""

GATHER = """
@prim_func
def f(pos: Buffer[(4,), i32], x: Buffer[(8,), f32], y: Out[(4,), f32]):
    for i in range(4):
        with block("w"):
            vi = spatial(i)
            with checked(pos[vi], -2, 2) as p:
                y[vi] = x[p + 2]
"""

ROWS = """
@prim_func
def f(off: Buffer[(5,), i32], x: Buffer[(16, 4), f32], y: Out[(4, 4), f32]):
    for i in range(4):
        with checked(off[i], 0, 17) as lo:
            with checked(off[i + 1], lo, 17) as hi:
                for d in range(4):
                    for j in range(hi - lo):
                        with block("s"):
                            vi, vl = spatial(i), spatial(17, lo)
                            vd, vj = spatial(d), reduce(16, j)
                            with init(): y[vi, vd] = 0.0
                            y[vi, vd] += x[vl + vj, vd]
"""
WRITES_ROWS = """
@prim_func
def f(off: Buffer[(4,), i32], x: Buffer[(4, 4), f32], y: Out[(16,), f32]):
    for i in range(4):
        with checked(off[i], 0, 13) as lo:
            for j in range(4):
                with block("s"):
                    vi, vl, vj = spatial(i), spatial(13, lo), spatial(j)
                    y[vl + vj] = x[vi, vj]
"""
ROW_SUMS = [[12, 15, 18, 21], [0, 0, 0, 0], [72, 76, 80, 84], [60, 62, 64, 66]]


def test_cache_write_does_not_overwrite_elements_that_a_scatter_keeps():
    sch = schedule(SCATTER)
    rejected(
        sch,
        CacheWrite(sch.get_block("w"), sch.get_buffer("cache"), "local"),
        CacheWrite.Requires.WRITES_WHOLE_BOX,
    )
    expected = np.full((16, 8), 7.0, np.float32)
    positions = np.array([3, 5, 7, 9], np.int32)
    result = build(sch)(positions, np.ones((4, 8), np.float32), expected.copy())
    expected[positions] = 1
    np.testing.assert_array_equal(result, expected)


def test_cache_read_keeps_the_lower_bound_of_a_loaded_index():
    sch = schedule(GATHER)
    sch.cache_read("w", "x", "local")
    result = build(sch)(np.array([-2, -1, 0, 1], np.int32), np.arange(8, dtype=np.float32))
    np.testing.assert_array_equal(result, [0, 1, 2, 3])


def test_cache_read_copies_inside_the_binders_of_the_integers_that_the_copy_uses():
    sch = schedule(ROWS)
    sch.cache_read("s", "x", "local")
    assert violations(sch.module) == ()
    off = np.array([0, 3, 3, 7, 9], np.int32)
    result = build(sch)(off, np.arange(64, dtype=np.float32).reshape(16, 4))
    np.testing.assert_array_equal(result, ROW_SUMS)


@pytest.mark.parametrize(("step", "target"), [("parallel", "cpu"), ("bind", "simt")])
def test_rows_of_loaded_bounds_run_in_parallel(step, target):
    """The work of an iteration depends on integers that are bound inside of the loop."""
    sch = schedule(ROWS)
    getattr(sch, step)("i", *(["blockIdx.x"] if step == "bind" else []))
    off = np.array([0, 3, 3, 7, 9], np.int32)
    result = build(sch, target)(off, np.arange(64, dtype=np.float32).reshape(16, 4))
    np.testing.assert_array_equal(result, ROW_SUMS)


@pytest.mark.parametrize("least", [0, 1])
def test_cache_write_of_a_block_whose_loops_may_be_empty(least):
    """If a row has no elements, the block leaves the old contents of the buffer."""
    sch = schedule(f"""
n = symbols("n", lower=0)
k = symbols("k", lower={least})

@prim_func
def f(x: Buffer[(n, k), i32], y: InOut[(n,), i32]):
    for i in range(n):
        for j in range(k):
            with block("last"):
                vi, vj = spatial(i), ordered(j)
                y[vi] = x[vi, vj]
""")
    block = sch.blockize("j")
    if least == 0:
        step = CacheWrite(block, sch.get_buffer("y"), "global")
        rejected(sch, step, CacheWrite.Requires.WRITES_WHOLE_BOX, "may have no iterations")
    else:
        sch.cache_write(block, "y", "global")
        sch.verify(runs=6).required()


def test_cache_write_of_a_block_with_an_init_needs_no_analysis_of_its_loops(monkeypatch):
    """The init writes every element, whether the loops in the block have iterations or not."""
    sch = schedule("""
n, k = symbols("n k", lower=0)

@prim_func
def f(x: Buffer[(n, k), i32], y: InOut[(n,), i32]):
    for i in range(n):
        for j in range(k):
            with block("sum"):
                vi, vj = spatial(i), reduce(j)
                with init(): y[vi] = 3
                for p in range(vj):
                    y[vi] += x[vi, p]
""")

    def regions(*args: object) -> None:
        raise AssertionError(f"not needed: {args}")

    monkeypatch.setattr(cache_write, "written_in", regions)
    sch.cache_write("sum", "y", "global")
    sch.verify(runs=6).required()


def test_cache_write_copies_inside_the_binders_of_the_integers_that_the_copy_uses():
    sch = schedule(WRITES_ROWS)
    sch.cache_write("s", "y", "local")
    assert violations(sch.module) == ()
    first = np.array([0, 8, 4, 12], np.int32)
    result = build(sch)(first, np.arange(16, dtype=np.float32).reshape(4, 4))
    np.testing.assert_array_equal(result, np.arange(16).reshape(4, 4)[[0, 2, 1, 3]].ravel())


def test_cache_read_copies_before_the_block(golden):
    sch = schedule(MATMUL)
    copy = sch.cache_read("mm", "B", "global")
    assert copy.name == "copy_B"
    golden("cache_read.txt", str(sch))
    assert sch.verify().required().compared[0].exact


def test_the_copy_is_inside_a_loop_of_the_producer():
    sch = schedule(CHAIN)
    second = sch.get_block("second")
    (j,) = sch.get_loops(second)
    sch.compute_at("first", j)
    copy = sch.cache_read(second, "t", "local")
    assert j in sch.get_loops(copy)
    assert sch.verify().ok


def test_cache_write_copies_after_the_block(golden):
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    i, j, _ = sch.get_loops(mm)
    i0, _ = sch.split(i, factors=(None, 14))
    sch.split(j, factors=(None, 8))
    copy = sch.cache_write(mm, "C", "local")
    sch.reverse_compute_at(copy, i0)
    golden("cache_write.txt", str(sch))
    assert sch.verify().required().compared[0].exact


def test_requirements_of_cache_read():
    sch = schedule(MATMUL)
    mm, c, b = sch.get_block("mm"), sch.get_buffer("C"), sch.get_buffer("B")
    rejected(
        sch, CacheRead(mm, b, "cellar"), CacheRead.Requires.SCOPE_EXISTS, "no memory scope 'cellar'"
    )
    rejected(sch, CacheRead(mm, c), CacheRead.Requires.ONLY_READS_BUFFER, "also writes 'C'")
    chain = schedule(CHAIN)
    first, u = chain.get_block("first"), chain.get_buffer("u")
    rejected(chain, CacheRead(first, u), CacheRead.Requires.READS_BUFFER, "it reads x")


def test_requirements_of_cache_write():
    sch = schedule(MATMUL)
    mm, c, a = sch.get_block("mm"), sch.get_buffer("C"), sch.get_buffer("A")
    rejected(sch, CacheWrite(mm, a), CacheWrite.Requires.WRITES_BUFFER, "it writes C")
    rejected(sch, CacheWrite(mm, c, "cellar"), CacheWrite.Requires.SCOPE_EXISTS)
    *_, k = sch.get_loops(mm)
    sch.decompose_reduction(mm, k)
    rejected(sch, CacheWrite(mm, c), CacheWrite.Requires.ONLY_WRITER, "also written by mm_init")
    twice = schedule(IN_PLACE)
    rejected(
        twice,
        CacheWrite(twice.get_block("double"), twice.get_buffer("x")),
        CacheWrite.Requires.IGNORES_OLD_CONTENTS,
    )
    even = schedule(EVEN)
    rejected(
        even,
        CacheWrite(even.get_block("spread"), even.get_buffer("y")),
        CacheWrite.Requires.WRITES_WHOLE_BOX,
        "does not provably write every element",
    )
    holes = schedule(HOLES)
    assert not holes.check(CacheWrite(holes.get_block("zero"), holes.get_buffer("y")))


TRIANGLE = """
n = symbols("n", lower=1)

@prim_func
def f(A: Buffer[(n, n), f32], y: InOut[(n, n), f32]):
    t = alloc((n, n), f32)
    for i in range(n):
        for k in range(i + 1):
            with block("s"):
                vi, vk = spatial(i), spatial(k)
                t[vi, vk] = A[vi, vk] * 2.0
    for i2 in range(n):
        for k2 in range(i2 + 1):
            with block("e"):
                wi, wk = spatial(i2), spatial(k2)
                y[wi, wk] = t[wi, wk] + 1.0
"""


def test_cache_write_copies_the_written_triangle():
    sch = schedule(TRIANGLE)
    sch.loop_partition("i2", 1)
    sch.cache_write("s", "t", "local")
    assert violations(sch.module) == ()
    assert not violations(parse(str(sch)))
    function = build(sch)
    for n in (1, 2, 3, 7, 17):
        a = np.arange(n * n, dtype=np.float32).reshape(n, n)
        y = np.full((n, n), 5, np.float32)
        expected = np.where(np.tri(n), a * 2 + 1, y)
        np.testing.assert_array_equal(call_prim(sch.module.prims[0], [a, y.copy()])[0], expected)
        np.testing.assert_array_equal(function(a, y.copy()), expected)


def test_cache_write_rejects_a_triangle_whose_row_no_index_determines():
    text = """
@prim_func
def f(A: Buffer[(8, 8), f32], t: Out[(8,), f32]):
    for i in range(8):
        for k in range(i + 1):
            with block("s"):
                vi, vk = spatial(8, i), spatial(k)
                t[vk] = A[0, vk]
"""
    sch = schedule(text)
    rejected(
        sch,
        CacheWrite(sch.get_block("s"), sch.get_buffer("t"), "local"),
        CacheWrite.Requires.WRITES_WHOLE_BOX,
    )


def test_suggested_for_accessed_buffers():
    sch = schedule(MATMUL)
    steps = {c.step.title() for c in sch.suggest(sch.get_block("mm")) if c.applicable}
    assert "cache_read(block=mm, buffer=A, scope='local')" in steps
    assert "cache_write(block=mm, buffer=C, scope='local')" in steps


def test_a_copy_in_another_layout():
    sch = schedule(MATMUL)
    sch.cache_read("mm", "B", "global", "lambda a, b: (b // 8, a, b % 8)")
    assert sch.trace[-1].decisions == {"padded": False}
    assert [str(d) for d in sch.state.buffer(sch.get_buffer("B_global")).shape] == ["3", "16", "8"]
    assert sch.verify().required().compared[0].exact
    mm, buffer = sch.get_block("mm"), sch.get_buffer("A")
    crossed = index_map("lambda a, b: (a + b,)", {})
    rejected(
        sch,
        CacheRead(mm, buffer, "global", crossed),
        CacheRead.Requires.LEGAL_INDEX_MAP,
        "is not provably injective in",
    )
