"""Tests of parallel, vectorize and unroll."""

import numpy as np
import pytest

import tilewright
from tilewright.schedules.apply import check
from tilewright.schedules.primitives.loops.parallel import Parallel
from tilewright.schedules.primitives.loops.unroll import Unroll
from tilewright.schedules.primitives.loops.vectorize import Vectorize

from tests.schedules.helpers import CHAIN, MATMUL, SAME, SCAN, rejected, schedule

TRIANGLE = """
@prim_func
def triangle(x: Buffer[(8,), i32], y: Out[(8, 8), i32]):
    for i in range(8):
        for j in range(i + 1):
            with block("lower"):
                vi, vj = spatial(i), spatial(8, j)
                y[vi, vj] = x[vi]
"""

NEIGHBORS = """
@prim_func
def neighbors(x: Buffer[(8,), i32], y: Out[(8,), i32]):
    t = alloc((9,), i32)
    for i in range(8):
        with block("write"):
            vi = spatial(i)
            t[vi] = x[vi]
        with block("read"):
            wi = spatial(i)
            y[wi] = t[wi + 1]
"""


SHARED = """
@prim_func
def shared(x: Buffer[(8, 8), i32], y: Out[(8,), i32], z: Out[(8, 8), i32]):
    for i in range(8):
        for k in range(8):
            with block("sum"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0
                y[vi] += x[vi, vk]
            with block("copy"):
                wi, wk = spatial(i), spatial(k)
                z[wi, wk] = x[wi, wk]
"""


def test_all_three(golden):
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    i, j, k = sch.get_loops(mm)
    sch.reorder((i, k, j))
    sch.parallel(i)
    sch.vectorize(j)
    sch.unroll(k)
    golden("kinds.txt", str(sch))
    assert dict(sch.module.prim("matmul").attributes)["scheduled"] is True


def test_lanes_may_share_a_reduction():
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    *_, k = sch.get_loops(mm)
    problem = rejected(
        sch, Vectorize(k), Vectorize.Requires.ITERATION_KINDS, "whose init is not decomposed"
    )
    assert [f.title() for f in problem.fixes] == ["decompose_reduction(block=mm, loop=k)"]
    sch.decompose_reduction(mm, k)
    sch.vectorize(k)
    assert sch.verify().ok


@pytest.mark.parametrize("factors", [(None, 8), (None, 5)])
@pytest.mark.parametrize("outside", [False, True])
def test_vectorize_of_a_reduction_with_init_suggests_decompose_reduction(factors, outside):
    """The fix also works for a split reduction with a tail, and for an outer reduction loop."""
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    _, j, k = sch.get_loops(mm)
    k0, k1 = sch.split(k, factors=factors)
    if outside:
        sch.reorder((k0, j, k1))
    problem = rejected(
        sch, Vectorize(k1), Vectorize.Requires.ITERATION_KINDS, "whose init is not decomposed"
    )
    assert [f.title() for f in problem.fixes] == [
        f"decompose_reduction(block=mm, loop={sch.state.loop(k0).var.name})"
    ]
    sch.apply(problem.fixes[0])
    sch.vectorize(k1)
    assert sch.verify().ok


def test_no_fix_for_a_loop_with_other_statements():
    sch = schedule(SHARED)
    k = sch.get_loops(sch.get_block("sum"))[-1]
    assert (
        rejected(sch, Vectorize(k), Vectorize.Requires.ITERATION_KINDS, "of block 'sum'").fixes
        == ()
    )


def test_requirements_of_parallel():
    sch = schedule(MATMUL)
    i, j, k = sch.get_loops(sch.get_block("mm"))
    rejected(sch, Parallel(k), Parallel.Requires.ITERATION_KINDS, "binds a reduction of block 'mm'")
    sch.parallel(j)
    rejected(sch, Parallel(j), Parallel.Requires.SERIAL, "is already parallel")
    rejected(
        sch,
        Parallel(i),
        Parallel.Requires.COMPATIBLE_NESTING,
        "'j' inside loop 'i' is parallel; no loop inside it may be parallel",
    )
    other = schedule(MATMUL)
    i, j, k = other.get_loops(other.get_block("mm"))
    other.reorder((j, i))
    other.vectorize(j)
    rejected(
        other,
        Parallel(i),
        Parallel.Requires.COMPATIBLE_NESTING,
        "'j' around loop 'i' is vectorized; no loop around it may be parallel or vectorized",
    )
    scan = schedule(SCAN)
    rejected(
        scan,
        Parallel(*scan.get_loops(scan.get_block("step"))),
        Parallel.Requires.INDEPENDENT_ITERATIONS,
        "it reads y[vi] and writes y[vi + 1]; loop 'i' binds an ordered iteration variable",
    )
    same = schedule(SAME)
    _, j = same.get_loops(same.get_block("last"))
    rejected(
        same,
        Parallel(j),
        Parallel.Requires.INDEPENDENT_ITERATIONS,
        "write the same elements of 'y'",
    )
    near = schedule(NEIGHBORS)
    (i,) = near.get_loops(near.get_block("read"))
    rejected(
        near,
        Parallel(i),
        Parallel.Requires.INDEPENDENT_ITERATIONS,
        "reads elements of 't' that other iterations",
    )


def test_requirements_of_vectorize():
    sch = schedule(MATMUL)
    i, j, k = sch.get_loops(sch.get_block("mm"))
    problem = rejected(
        sch,
        Vectorize(i),
        Vectorize.Requires.CONSTANT_EXTENT,
        "extent M of loop 'i' is not a constant",
    )
    assert [f.verb() for f in problem.fixes] == ["split", "split"]
    rejected(sch, Vectorize(k), Vectorize.Requires.ITERATION_KINDS, "reduction")
    sch.vectorize(j)
    rejected(sch, Vectorize(j), Vectorize.Requires.SERIAL)
    _i0, i1 = sch.split(i, factors=(None, 4))
    rejected(
        sch,
        Vectorize(i1),
        Vectorize.Requires.COMPATIBLE_NESTING,
        "'j' inside loop 'i_1' is vectorized",
    )
    triangle = schedule(TRIANGLE)
    i, j = triangle.get_loops(triangle.get_block("lower"))
    rejected(triangle, Vectorize(i), Vectorize.Requires.UNIFORM_EXTENTS, "depends on 'i'")
    scan = schedule(SCAN)
    rejected(
        scan,
        Vectorize(*scan.get_loops(scan.get_block("step"))),
        Vectorize.Requires.INDEPENDENT_ITERATIONS,
        "it reads y[vi] and writes y[vi + 1]; loop 'i' binds an ordered iteration variable",
    )
    same = schedule(SAME)
    _, j = same.get_loops(same.get_block("last"))
    rejected(
        same, Vectorize(j), Vectorize.Requires.INDEPENDENT_ITERATIONS, "write the same elements"
    )
    running = schedule("""
@prim_func
def running(x: Buffer[(64,), i32], y: InOut[(65,), i32]):
    for i in range(64):
        with block("step"):
            vi = spatial(i)
            y[vi + 1] = y[vi] + x[vi]
""")
    (i,) = running.get_loops("step")
    rejected(running, Vectorize(i), Vectorize.Requires.INDEPENDENT_ITERATIONS, "other iterations")


def test_requirements_of_unroll():
    sch = schedule(MATMUL)
    i, _, k = sch.get_loops(sch.get_block("mm"))
    rejected(sch, Unroll(i), Unroll.Requires.CONSTANT_EXTENT, "is not a constant")
    sch.unroll(k)
    rejected(sch, Unroll(k), Unroll.Requires.SERIAL, "is already unrolled")
    text = MATMUL.replace("16", "1000")
    big = schedule(text)
    *_, k = big.get_loops(big.get_block("mm"))
    rejected(big, Unroll(k), Unroll.Requires.CONSTANT_EXTENT, "1000 of loop 'k' exceeds 256")


@pytest.mark.parametrize("verb", ["parallel", "vectorize", "unroll"])
def test_suggested_for_serial_loops(verb):
    sch = schedule(CHAIN)
    (loop,) = sch.get_loops(sch.get_block("first"))
    assert verb in [c.step.verb() for c in sch.suggest(loop)]


NESTED = """
@prim_func
def nested(x: Buffer[(16, 16, 16, 16), i32], y: Out[(16, 16, 16, 16), i32]):
    for a in range(16):
        for b in range(16):
            for c in range(16):
                for d in range(16):
                    with block("copy"):
                        va, vb, vc, vd = spatial(a), spatial(b), spatial(c), spatial(d)
                        y[va, vb, vc, vd] = x[va, vb, vc, vd]
"""


@pytest.mark.parametrize("order", ["abcd", "dcba", "bdac"])
def test_unrolled_loops_have_a_limit_of_copies(order):
    sch = schedule(NESTED)
    for name in order[:3]:
        sch.unroll(name)
    step = Unroll(sch.get_loop(order[3]))
    found = rejected(sch, step, Unroll.Requires.COPIES, "16 * 16 * 16 * 16 = 65,536 copies")
    assert [ref.name for ref in found.where] == ["a", "b", "c", "d"]


SCATTER = """
@prim_func
def scatter(at: Buffer[(64,), i32], x: Buffer[(64, 3), f32], y: InOut[(8, 3), f32]):
    for i in range(64):
        for j in range(3):
            with block("s"):
                vi, vj = reduce(i), spatial(j)
                with checked(at[vi], 0, 8) as p:
                    y[p, vj] += x[vi, vj]
"""


def test_a_scatter_is_not_parallel_on_a_cpu_except_over_its_spatial_loops():
    sch = schedule(SCATTER)
    i, j = sch.get_loops("s")
    problem = rejected(
        sch, Parallel(i), Parallel.Requires.ITERATION_KINDS, "only the threads of a GPU update"
    )
    assert [f.title() for f in problem.fixes] == ["parallel(loop=j)"]
    rejected(sch, Vectorize(i), Vectorize.Requires.ITERATION_KINDS, "'s'")
    sch.parallel(j)
    assert sch.verify().ok


ANTI_DIAGONAL = """
n = symbols("n", lower=1)
m = symbols("m", lower=1)

@prim_func
def product(a: Buffer[(n,), i32], b: Buffer[(m,), i32], c: Out[(n + m,), i32]):
    for s in range(n + m):
        for i in range(max(min(s + 1, n) - max(s - m + 1, 0), 0)):
            with block("c"):
                vs, vi = spatial(s), reduce(n, i + max(s - m + 1, 0))
                with init(): c[vs] = 0
                c[vs] += a[vi] * b[vs - vi]
"""


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 3), (40, 70)])
def test_a_loop_that_the_spatial_variables_determine_does_not_iterate_the_reduction(n, m):
    """The terms of one element are in one iteration, although their index contains the loop."""
    sch = schedule(ANTI_DIAGONAL)
    sch.parallel("s")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, k).astype(np.int32) for k in (n, m))
    found = tilewright.compile(tilewright.parse(str(sch)), "cpu")(a, b)
    np.testing.assert_array_equal(found, np.append(np.convolve(a, b), 0))


TEMPORARIES = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n, m), f32], y: Out[(n,), f32]):
    for i in range(n):
        for k in range(m):
            with block("sum"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 3.0
                t = alloc((2,), f32)
                t[0] = x[vi, vk] * 2.0
                t[1] = x[vi, m - 1 - vk]
                y[vi] += max(t[0], t[1])
"""


def largest(x):
    return 3.0 + np.maximum(2 * x, x[:, ::-1]).sum(1)


def test_the_lanes_of_a_reduction_have_their_own_temporaries():
    sch = schedule(TEMPORARIES)
    _, lanes = sch.split("k", factors=(None, 8))
    sch.decompose_reduction("sum", sch.get_loops("sum")[1])
    sch.vectorize(lanes)
    assert sch.verify(runs=4).ok
    exe = tilewright.compile(sch.module)
    for n, m in ((1, 1), (3, 8), (2, 37), (3, 0)):
        x = np.random.default_rng(m).integers(-9, 9, (n, m)).astype(np.float32)
        np.testing.assert_array_equal(exe(x), largest(x))


def test_the_threads_of_a_reduction_have_their_own_temporaries():
    sch = schedule(TEMPORARIES)
    _, threads = sch.split("k", factors=(None, 8))
    sch.bind("i", "blockIdx.x")
    sch.bind(threads, "threadIdx.x")
    assert sch.verify(runs=4).ok
    exe = tilewright.compile(sch.module, "simt")
    for n, m in ((1, 1), (3, 8), (2, 37)):
        x = np.random.default_rng(m).integers(-9, 9, (n, m)).astype(np.float32)
        np.testing.assert_array_equal(exe(x), largest(x))


@pytest.mark.parametrize("verb", ["vectorize", "unroll"])
def test_a_fix_keeps_how_often_the_init_runs(verb):
    """A tile of 16 iterations has two rows, of which both have an init."""
    sch = schedule("""
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n, 8), f32], y: Out[(n,), f32]):
    for i in range(n):
        for j in range(8):
            with block("sum"):
                vi, vj = spatial(i), reduce(j)
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vj]
""")
    fused = sch.fuse("i", "j")
    step = {"vectorize": Vectorize, "unroll": Unroll}[verb](fused)
    problem = next(p for p in check(sch.state, step) if "constant" in p.message)
    assert [fix.title() for fix in problem.fixes] == ["split(loop=i_j, factors=(None, 8))"]
    assert not check(sch.state, problem.fixes[0])
