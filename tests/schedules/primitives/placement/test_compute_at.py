"""Tests of compute_at and reverse_compute_at."""

import numpy as np
import pytest

import tilewright
from tilewright.ir.interpreter import run_prim
from tilewright.ir.verify import violations
from tilewright.schedules.primitives.placement.compute_at import ComputeAt
from tilewright.schedules.primitives.placement.reverse_compute_at import ReverseComputeAt
from tilewright.schedules.requirement import CommonRequirement

from tests.schedules.helpers import CHAIN, MATMUL, rejected, schedule

STENCIL = """
n = symbols("n", lower=1)

@prim_func
def stencil(x: Buffer[(n + 2,), i32], y: Out[(n,), i32]):
    t = alloc((n + 2,), i32)
    for i in range(n + 2):
        with block("square"):
            vi = spatial(i)
            t[vi] = x[vi] * x[vi]
    for j in range(n):
        with block("sum"):
            vj = spatial(j)
            y[vj] = t[vj] + t[vj + 1] + t[vj + 2]
"""

DIAGONAL = """
@prim_func
def diagonal(x: Buffer[(8,), i32], y: Out[(8,), i32]):
    t = alloc((8, 8), i32)
    for i in range(8):
        with block("first"):
            vi = spatial(i)
            t[vi, vi] = x[vi]
    for j in range(8):
        with block("second"):
            vj = spatial(j)
            y[vj] = t[vj, vj]
"""

BETWEEN = """
@prim_func
def between(x: InOut[(8,), i32], y: Out[(8,), i32]):
    t = alloc((8,), i32)
    for i in range(8):
        with block("first"):
            vi = spatial(i)
            t[vi] = x[vi]
    for k in range(8):
        with block("clear"):
            vk = spatial(k)
            x[vk] = 0
    for j in range(8):
        with block("second"):
            vj = spatial(j)
            y[vj] = t[vj]
"""

EVENS = """
@prim_func
def evens(x: Buffer[(4,), i32], y: Out[(8,), i32]):
    t = alloc((8,), i32)
    for i in range(4):
        with block("first"):
            vi = spatial(i)
            t[vi * 2] = x[vi]
    for j in range(8):
        with block("second"):
            vj = spatial(j)
            y[vj] = t[vj]
"""

OVERWRITTEN = BETWEEN.replace("y[vj] = t[vj]", "y[vj] = t[vj] + x[vj]")

OVERLAPPING = """
@prim_func
def overlapping(x: Buffer[(34,), i32], z: Out[(34,), i32]):
    t = alloc((4, 10), i32)
    for i in parallel(4):
        for a in range(10):
            with block("first"):
                vi, va = spatial(i), spatial(a)
                t[vi, va] = x[vi * 8 + va]
    for k in range(4):
        for l in range(10):
            with block("second"):
                vk, vl = spatial(k), spatial(l)
                z[vk * 8 + vl] = t[vk, vl]
"""

ROW_SUMS = """
M = symbols("M", lower=1)

@prim_func
def rows(x: Buffer[(M, 8), i32], y: Out[(M,), i32]):
    t = alloc((M, 8), i32)
    for i in range(M):
        for j in range(8):
            with block("square"):
                vi, vj = spatial(i), spatial(j)
                t[vi, vj] = x[vi, vj] * x[vi, vj]
    for a in range(M):
        for k in range(8):
            with block("sum"):
                va, vk = spatial(a), reduce(k)
                with init(): y[va] = 0
                y[va] += t[va, vk]
"""


EDGES = """
n = symbols("n", lower=1)

@prim_func
def edges(x: Buffer[(n,), i32], y: Out[(n,), i32]):
    t = alloc((n,), i32)
    for i in range(n):
        with block("square"):
            vi = spatial(i)
            t[vi] = x[vi] * x[vi]
    for j in range(n):
        with block("sum"):
            vj = spatial(j)
            y[vj] = {value}
"""


def test_a_stencil_computes_the_region_of_a_tile(golden):
    sch = schedule(STENCIL)
    (j,) = sch.get_loops(sch.get_block("sum"))
    j0, _ = sch.split(j, factors=(None, 8))
    (old,) = sch.get_loops(sch.get_block("square"))
    sch.compute_at("square", j0)
    golden("compute_at.txt", str(sch))
    assert sch.state.follow(old) == ()
    assert sch.verify().required().compared[0].exact


@pytest.mark.parametrize(
    "value",
    [
        "t[max(vj - 1, 0)] + t[vj] + t[min(vj + 1, n - 1)]",
        "t[min(max(vj - 1, 0), n - 1)] - t[min(max(vj + 1, 0), n - 1)]",
        "where(vj >= 1, t[vj - 1], 0) + t[vj] + where(vj + 1 < n, t[vj + 1], 0)",
    ],
)
@pytest.mark.parametrize("kind", ["range", "parallel"])
def test_a_window_that_ends_at_the_edges_is_computed_per_tile(value: str, kind: str):
    """The indices of several reads differ by minima and maxima; all are within 10 elements."""
    text = EDGES.format(value=value)
    sch = schedule(text)
    tile, _ = sch.split("j", factors=(None, 8))
    if kind == "parallel":
        sch.parallel(tile)
    sch.compute_at("square", tile)
    (_, inner) = sch.get_loops("square")
    assert str(sch.state.loop(inner).extent) == "10"
    exe = tilewright.compile(sch.module)
    for n in (1, 2, 7, 8, 9, 17, 24, 31):
        x, y = np.arange(n, dtype=np.int32) * 7 % 11, np.zeros(n, np.int32)
        run_prim(schedule(text).module.prims[0], [x, y])
        np.testing.assert_array_equal(exe(x), y)


def test_a_reduction_moves_with_all_of_its_iterations():
    sch = schedule(MATMUL)
    copy = sch.cache_write("mm", "C", "local")
    a0, _ = sch.get_loops(copy)
    tile, _ = sch.split(a0, factors=(None, 4))
    sch.compute_at("mm", tile)
    loops = [str(sch.state.loop(x).extent) for x in sch.get_loops(sch.get_block("mm"))]
    assert loops == ["ceildiv(M, 4)", "4", "24", "16"]
    assert sch.verify().ok


def test_requirements_of_compute_at():
    sch = schedule(CHAIN)
    first, second, third = (sch.get_block(b) for b in ("first", "second", "third"))
    (i,), (j,), (k,) = (sch.get_loops(b) for b in (first, second, third))
    rejected(
        sch,
        ComputeAt(first, i),
        ComputeAt.Requires.LOOP_NOT_AROUND,
        "is already around block 'first'",
    )
    rejected(sch, ComputeAt(third, i), ComputeAt.Requires.WRITES_TEMPORARY, "is a parameter")
    problem = rejected(
        sch,
        ComputeAt(first, k),
        ComputeAt.Requires.CONSUMERS_IN_LOOP,
        "is read by 'second' outside of loop 'k'",
    )
    assert problem.fixes == (ComputeAt(first, j),)
    twice = schedule(DIAGONAL)
    destination = twice.get_loops(twice.get_block("second"))[0]
    assert not twice.check(ComputeAt(twice.get_block("first"), destination))
    pairs = schedule(DIAGONAL.replace("t[vi, vi]", "t[vi // 2, 0]"))
    destination = pairs.get_loops(pairs.get_block("second"))[0]
    rejected(
        pairs,
        ComputeAt(pairs.get_block("first"), destination),
        ComputeAt.Requires.INJECTIVE_WRITES,
        "are not injective in vi",
    )
    between = schedule(BETWEEN)
    destination = between.get_loops(between.get_block("second"))[0]
    rejected(
        between,
        ComputeAt(between.get_block("first"), destination),
        ComputeAt.Requires.KEEPS_DEPENDENCES,
        "dependence on 'x'",
    )


@pytest.mark.parametrize("extent", ["1", "3", "n"])
def test_an_init_reads_its_inputs_before_the_loops_of_the_reduction(extent):
    sch = schedule(f"""
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n, {extent}), i32], b: Buffer[(n,), i32], y: Out[(n,), i32]):
    for i in range(n):
        for k in range({extent}):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = b[vi]
                y[vi] = max(y[vi], x[vi, vk])
""")
    copy = sch.cache_read("y", "b", "global")
    i, k = sch.get_loops("y")
    problem = rejected(
        sch,
        ComputeAt(copy, k),
        ComputeAt.Requires.CONSUMERS_IN_LOOP,
        "the init of 'y' reads 'b_global' before loop 'k'",
    )
    assert problem.fixes == (ComputeAt(copy, i),)
    sch.compute_at(copy, i)
    sch.verify(runs=6).required()


def test_vectorized_destinations_are_rejected():
    text = CHAIN.replace('n = symbols("n", lower=0)', "")
    sch = schedule(text.replace("(n,)", "(8,)").replace("range(n)", "range(8)"))
    second = sch.get_block("second")
    (j,) = sch.get_loops(second)
    sch.vectorize(j)
    rejected(
        sch, ComputeAt(sch.get_block("first"), j), ComputeAt.Requires.NOT_VECTORIZED, "vectorized"
    )
    rejected(
        sch,
        ReverseComputeAt(sch.get_block("third"), j),
        ReverseComputeAt.Requires.NOT_VECTORIZED,
        "vectorized",
    )


def test_a_consumer_moves_into_the_tile_of_its_producer(golden):
    sch = schedule(CHAIN)
    (j,) = sch.get_loops(sch.get_block("second"))
    j0, _ = sch.split(j, factors=(None, 8))
    sch.reverse_compute_at("third", j0)
    golden("reverse_compute_at.txt", str(sch))
    assert sch.verify().required().compared[0].exact


def test_a_reduction_of_whole_rows_moves_into_the_loop_of_rows():
    sch = schedule(ROW_SUMS)
    i, j = sch.get_loops(sch.get_block("square"))
    total = sch.get_block("sum")
    rejected(
        sch,
        ReverseComputeAt(total, j),
        ReverseComputeAt.Requires.COMPLETE_INPUTS,
        "one iteration of loop 'j' does not provably provide all terms",
    )
    sch.reverse_compute_at(total, i)
    assert sch.verify().ok


def test_requirements_of_reverse_compute_at():
    sch = schedule(CHAIN)
    first, second, third = (sch.get_block(b) for b in ("first", "second", "third"))
    (i,), (j,), (k,) = (sch.get_loops(b) for b in (first, second, third))
    rejected(sch, ReverseComputeAt(third, k), ReverseComputeAt.Requires.LOOP_NOT_AROUND, "already")
    rejected(
        sch,
        ReverseComputeAt(third, i),
        ReverseComputeAt.Requires.READS_FROM_LOOP,
        "no block in loop 'i' writes",
    )
    rejected(sch, ReverseComputeAt(second, k), ReverseComputeAt.Requires.READS_FROM_LOOP)
    clear = schedule(BETWEEN)
    destination = clear.get_loops(clear.get_block("first"))[0]
    rejected(
        clear,
        ReverseComputeAt(clear.get_block("clear"), destination),
        ReverseComputeAt.Requires.READS_FROM_LOOP,
    )
    evens = schedule(EVENS)
    destination = evens.get_loops(evens.get_block("first"))[0]
    rejected(
        evens,
        ReverseComputeAt(evens.get_block("second"), destination),
        ReverseComputeAt.Requires.COMPLETE_INPUTS,
    )
    twice = schedule(DIAGONAL)
    destination = twice.get_loops(twice.get_block("first"))[0]
    assert not twice.check(ReverseComputeAt(twice.get_block("second"), destination))
    tile, _ = twice.split(destination, factors=(None, 4))
    rejected(
        twice,
        ReverseComputeAt(twice.get_block("second"), tile),
        ReverseComputeAt.Requires.COMPLETE_INPUTS,
        "does not write a full box",
    )
    cleared = schedule(OVERWRITTEN)
    destination = cleared.get_loops(cleared.get_block("first"))[0]
    rejected(
        cleared,
        ReverseComputeAt(cleared.get_block("second"), destination),
        ReverseComputeAt.Requires.KEEPS_DEPENDENCES,
        "dependence on 'x'",
    )
    stencil = schedule(STENCIL)
    destination = stencil.get_loops(stencil.get_block("square"))[0]
    rejected(
        stencil,
        ReverseComputeAt(stencil.get_block("sum"), destination),
        ReverseComputeAt.Requires.COMPLETE_INPUTS,
        "outside of the box",
    )
    del j


SHIFTED = """
n = symbols("n", lower=0)

@prim_func
def shifted(x: Buffer[(n,), i32], y: Out[(n,), i32]):
    t = alloc((n * 3 + 12,), i32)
    for i in range(n):
        with block("first"):
            vi = spatial(i)
            t[{index}] = x[vi] * 2
    for j in range(n):
        with block("second"):
            vj = spatial(j)
            y[vj] = t[{read}]
"""


@pytest.mark.parametrize(
    ("index", "read"),
    [
        ("vi + 3", "vj + 3"),
        ("n - vi", "vj + 1"),
        ("n - 1 - vi", "n - 1 - vj"),
        ("vi * 3", "vj * 3"),
        ("vi * 3 + 2", "vj * 3 + 2"),
        ("3 * n + 5 - vi * 3", "vj * 3 + 8"),
    ],
)
def test_a_linear_index_of_a_producer_limits_its_iterations_to_those_of_a_tile(index, read):
    text = SHIFTED.format(index=index, read=read)
    sch = schedule(text)
    tile, _ = sch.split("j", factors=(None, 8))
    sch.compute_at("first", tile)
    (_, inner) = sch.get_loops("first")
    assert str(sch.state.loop(inner).extent) == "8"
    exe = tilewright.compile(sch.module)
    for n in (0, 1, 2, 7, 8, 9, 17, 24, 31):
        x, y = np.arange(n, dtype=np.int32) * 7 % 11, np.zeros(n, np.int32)
        run_prim(schedule(text).module.prims[0], [x, y])
        np.testing.assert_array_equal(exe(x), y)


def test_in_place_updates_cannot_move():
    text = CHAIN.replace("y[vk] = u[vk] - x[vk]", "y[vk] = y[vk] + u[vk]").replace("Out[", "InOut[")
    sch = schedule(text)
    (j,) = sch.get_loops(sch.get_block("second"))
    rejected(
        sch,
        ReverseComputeAt(sch.get_block("third"), j),
        ReverseComputeAt.Requires.IGNORES_OLD_CONTENTS,
        "in place",
    )


def test_iteration_variables_must_be_plain_indices():
    text = CHAIN.replace("y[vk] = u[vk] - x[vk]", "y[vk] = u[n - 1 - vk] - x[vk]")
    sch = schedule(text)
    (j,) = sch.get_loops(sch.get_block("second"))
    rejected(
        sch,
        ReverseComputeAt(sch.get_block("third"), j),
        ReverseComputeAt.Requires.INDICES_OF_INPUTS,
        "not plain indices",
    )


PAIRS = """
@prim_func
def pairs(x: Buffer[(8,), i32], y: Out[(8, 8), i32]):
    t = alloc((8,), i32)
    for i in range(8):
        with block("first"):
            vi = spatial(i)
            t[vi] = x[vi]
    for a in range(8):
        for b in range(8):
            with block("second"):
                va, vb = spatial(a), spatial(b)
                y[va, vb] = t[va] + t[vb]
"""


def test_all_combinations_of_iterations_must_run():
    sch = schedule(PAIRS)
    (i,) = sch.get_loops(sch.get_block("first"))
    rejected(
        sch,
        ReverseComputeAt(sch.get_block("second"), i),
        ReverseComputeAt.Requires.COMPLETE_INPUTS,
        "would run only the iterations with va == vb",
    )


def test_a_repeated_write_cannot_move():
    sch = schedule(
        ROW_SUMS.replace("reduce(k)", "spatial(k)")
        .replace("+= t", "= t")
        .replace("                with init(): y[va] = 0\n", "")
    )
    i, _ = sch.get_loops(sch.get_block("square"))
    rejected(
        sch,
        ReverseComputeAt(sch.get_block("sum"), i),
        ReverseComputeAt.Requires.INJECTIVE_WRITES,
        "are not injective in vk",
    )


def test_another_writer_is_rejected():
    text = CHAIN.replace("y[vk] = u[vk] - x[vk]", "t[vk] = u[vk] - x[vk]").replace("Out", "InOut")
    sch = schedule(text)
    (j,) = sch.get_loops(sch.get_block("second"))
    rejected(
        sch,
        ReverseComputeAt(sch.get_block("third"), j),
        ReverseComputeAt.Requires.ONLY_WRITER,
        "not the only writer",
    )


def test_parallel_tiles_that_overlap_would_write_one_element_twice():
    sch = schedule(OVERLAPPING)
    (i, _) = sch.get_loops(sch.get_block("first"))
    rejected(
        sch,
        ReverseComputeAt(sch.get_block("second"), i),
        ReverseComputeAt.Requires.INDEPENDENT_ITERATIONS,
        "write the same elements of 'z'",
    )


def test_parallel_tiles_that_are_disjoint():
    sch = schedule(STENCIL)
    copy = sch.cache_write("sum", "y", "global")
    (j,) = sch.get_loops(sch.get_block("sum"))
    j0, _ = sch.split(j, factors=(None, 8))
    sch.parallel(j0)
    assert sch.check(ReverseComputeAt(copy, j0)) == ()


SHARED_TOTAL = """
n = symbols("n", lower=1)

@prim_func
def minus_total(x: Buffer[(n,), i32], y: Out[(n,), i32]):
    t = alloc((), i32, scope="shared")
    for k in range(n):
        with block("total"):
            vk = reduce(k)
            with init(): t[()] = 0
            t[()] += x[vk]
    for i in thread(n, "THREADS"):
        with block("minus"):
            vi = spatial(i)
            y[vi] = x[vi] - t[()]
"""


def test_threads_that_share_a_temporary_would_all_compute_it():
    sch = schedule(SHARED_TOTAL.replace("THREADS", "threadIdx.x"))
    rejected(
        sch,
        ComputeAt(sch.get_block("total"), sch.get_loop("i")),
        ComputeAt.Requires.INDEPENDENT_ITERATIONS,
        "may write the same elements of 't'",
    )


def test_thread_blocks_each_have_their_own_shared_temporary():
    sch = schedule(SHARED_TOTAL.replace("THREADS", "blockIdx.x"))
    sch.compute_at("total", "i")
    x = np.arange(5, dtype=np.int32)
    np.testing.assert_array_equal(tilewright.compile(sch.module, "simt")(x), x - 10)


COPIES = """
@prim_func
def copies(x: Buffer[(8,), i32], y: InOut[(8,), i32]):
    t = alloc((8,), i32)
    for i in range(8):
        with block("first"):
            vi = spatial(i)
            t[vi] = x[vi]
    for j in range(8):
        with block("second"):
            vj = spatial(j)
            y[vj] = t[vj]
"""


def first_into_second(old, new):
    """Return a schedule of ``COPIES`` with a replacement, and the step that moves "first"."""
    sch = schedule(COPIES.replace(old, new))
    return sch, ComputeAt(sch.get_block("first"), sch.get_loop("j"))


def second_into_first(old, new):
    """Return a schedule of ``COPIES`` with a replacement, and the step that moves "second"."""
    sch = schedule(COPIES.replace(old, new))
    return sch, ReverseComputeAt(sch.get_block("second"), sch.get_loop("i"))


def test_producers_that_cannot_move():
    sch, step = first_into_second("spatial(i)", "ordered(i)")
    rejected(sch, step, ComputeAt.Requires.NO_ORDERED_ITERATIONS, "has ordered iteration variables")
    sch, step = first_into_second("t[vi] = x[vi]", "t[vi] = x[vi]\n            t[vi] = 1")
    rejected(sch, step, ComputeAt.Requires.ONE_STORE, "does not consist of exactly one store")
    sch, step = first_into_second("y[vj] = t[vj]", "t[vj] = t[vj]")
    rejected(sch, step, ComputeAt.Requires.ONLY_WRITER, "other writers: second")
    sch, step = first_into_second("t[vi] = x[vi]", "t[vi] += x[vi]")
    rejected(sch, step, ComputeAt.Requires.IGNORES_OLD_CONTENTS, "updates 't' in place")


def test_consumers_that_cannot_move():
    sch, step = second_into_first("spatial(j)", "ordered(j)")
    rejected(
        sch,
        step,
        ReverseComputeAt.Requires.NO_ORDERED_ITERATIONS,
        "has ordered iteration variables",
    )
    sch, step = second_into_first("y[vj] = t[vj]", "y[vj] = t[vj]\n            y[vj] = 1")
    rejected(sch, step, ReverseComputeAt.Requires.ONE_STORE, "exactly one store")


TRIANGLES = """
n = symbols("n", lower=1)

@prim_func
def triangles(x: Buffer[(n, n), f32], y: InOut[(n, n), f32]):
    t = alloc((n, n), f32)
    for i in range(n):
        for j in range(i + 1):
            with block("first"):
                vi, vj = spatial(i), spatial(j)
                t[vi, vj] = x[vi, vj] * 2.0
    for k in range(n):
        for l in range(k + 1):
            with block("second"):
                vk, vl = spatial(k), spatial(l)
                y[vk, vl] = t[vk, vl] + 1.0
"""


def test_a_block_does_not_leave_the_loops_of_its_extents():
    sch = schedule(TRIANGLES)
    step = ComputeAt(sch.get_block("first"), sch.get_loop("l"))
    problem = rejected(sch, step, ComputeAt.Requires.EXTENTS_IN_SCOPE)
    assert problem.message == (
        "the extent i + 1 of iteration variable 'vj' of block 'first' depends on loop 'i', which "
        "is not around loop 'l'"
    )
    step = ReverseComputeAt(sch.get_block("second"), sch.get_loop("j"))
    rejected(sch, step, ReverseComputeAt.Requires.EXTENTS_IN_SCOPE, "depends on loop 'k'")


PAGES = """
@prim_func
def pages(table: Buffer[(4,), i32], x: Buffer[(6, 8), i32], y: Out[(4, 8), i32]):
    t = alloc((6, 8), i32)
    for a in range(6):
        for b in range(8):
            with block("first"):
                va, vb = spatial(a), spatial(b)
                t[va, vb] = x[va, vb] + 1
    for i in range(4):
        with checked(table[i], 1, 5) as p:
            for j in range(8):
                with block("second"):
                    vi, vp, vj = spatial(i), spatial(6, p), spatial(j)
                    y[vi, vj] = t[vp, vj]
"""


def test_a_destination_outside_of_a_binder_gets_all_values_of_the_loaded_integer():
    sch = schedule(PAGES)
    _, j = sch.get_loops("second")
    sch.branch().compute_at("first", j)
    i, _ = sch.get_loops("second")
    sch.compute_at("first", i)
    assert violations(sch.module) == ()
    assert "range(4)" in str(sch)
    assert sch.verify().required().compared[0].exact


def test_a_destination_inside_a_binder_gets_one_value_of_the_loaded_integer():
    sch = schedule(PAGES)
    _, j = sch.get_loops("second")
    sch.compute_at("first", j)
    assert violations(sch.module) == ()
    assert sch.verify().required().compared[0].exact


SUFFIXES = """
n = symbols("n", lower=0)

@prim_func
def suffixes(x: Buffer[(n,), f32], z: Out[(n,), f32]):
    y = alloc((n,), f32)
    for i in range(n):
        for k in range(n - i):
            with block("sum"):
                vi, vk = spatial(i), reduce(n, k)
                with init(): y[vi] = 0.0
                y[vi] += x[vk]
    for i1 in range(n):
        with block("copy"):
            v = spatial(i1)
            z[v] = y[v]
"""


def test_iterations_of_a_reduction_do_not_imply_the_guard_of_its_init():
    """That ``k in range(n - i)`` runs implies ``i < n``, but the init runs without ``k``."""
    sch = schedule(SUFFIXES)
    outer, _ = sch.split("i1", factors=(None, 8))
    sch.compute_at("sum", outer)
    assert "guard(i1_0 * 8 + i_1 < n)" in str(sch)
    assert sch.verify().ok


SCOPED = """
@prim_func
def f(x: Buffer[(4,), f32], y: Out[(4,), f32]):
    u = alloc((4,), f32)
    for i in range(4):
        t = alloc(({size},), f32)
        with block("t"):
            vi = spatial(i)
            t[vi] = x[vi] + 1.0
        with block("u"):
            ui = spatial(i)
            u[ui] = t[ui] * 2.0
    for j in range(4):
        with block("y"):
            wj = spatial(j)
            y[wj] = u[wj] + 1.0
"""


def test_a_block_does_not_leave_the_scope_of_a_temporary_that_it_reads():
    sch = schedule(SCOPED.format(size="i + 1"))
    step = ComputeAt(sch.get_block("u"), sch.get_loop("j"))
    rejected(sch, step, CommonRequirement.ALLOCATED, "'t' is allocated in each iteration of 'i'")
    sch = schedule(SCOPED.format(size="4"))
    sch.compute_at("u", "j")
    assert [b.name for b in sch.module.prim("f").buffers] == ["t"]  # u is allocated in j
    assert sch.verify().ok


def test_a_block_leaves_a_parallel_loop_if_its_iterations_write_different_elements():
    sch = schedule(SCOPED.format(size="4"))
    sch.parallel("i")
    sch.compute_at("u", "j")
    assert [b.name for b in sch.module.prim("f").buffers] == ["t"]
    assert sch.verify().ok


DIVISOR = "ceildiv(ceildiv(k, 16) - k // 16, 64)"
DIVIDED = """
n, k = symbols("n k", lower=1)

@prim_func
def divided(x: Buffer[(n, k), f32], y: InOut[(n, k), f32]):
    t = alloc((n, k), f32)
    for a in range(n):
        for b in range(k):
            with block("t"):
                va, vb = spatial(a), spatial(b)
                t[va, vb] = x[va, vb]
    for i in range(n):
        for j in range(DIV * 64):
            for c in range(16):
                with block("y"):
                    vi = spatial(i)
                    vj = spatial(k, (k // 16) * 16 + (j // DIV) * 16 + (j % DIV) * 1024 + c)
                    guard(k // 16 * 16 + (j // DIV) * 16 + (j % DIV) * 1024 + c < k)
                    y[vi, vj] = t[vi, vj]
"""


def test_divisors_of_a_loop_that_may_be_empty_are_not_moved_out_of_it():
    """At ``k = 16`` the loop has no iterations, and the divisor is 0."""
    sch = tilewright.Schedule(tilewright.parse(DIVIDED.replace("DIV", DIVISOR)))
    sch.compute_at("t", "i")
    x, y = np.ones((2, 16), np.float32), np.zeros((2, 16), np.float32)
    run_prim(sch.module.prims[0], [x, y], {})
    assert (y == 0).all()


def test_the_range_of_a_reduction_over_a_range_of_another_has_no_variable_of_the_other():
    """The rows of ``t`` that ``i`` needs are those of all ``l``, whose extent depends on ``j``."""
    sch = schedule("""
n = symbols("n", lower=1)

@prim_func
def f(x: Buffer[(n, n), f32], y: InOut[(n,), f32]):
    t = alloc((n, n), f32)
    for a in range(n):
        for b in range(n):
            with block("t"):
                va, vb = spatial(a), spatial(b)
                t[va, vb] = x[va, vb]
    for i in range(n):
        for j in range(n):
            for l in range(min(j + 1, 2)):
                with block("y"):
                    vi, vj, vl = spatial(i), reduce(j), reduce(n, l)
                    with init(): y[vi] = 0.0
                    y[vi] += t[vi, vl]
""")
    sch.compute_at("t", "i")
    assert not violations(sch.module)
    sch.verify()


@pytest.mark.parametrize("loop", ["ax0", "ax1"])
def test_a_condition_on_the_only_term_of_a_reduction_does_not_exclude_its_init(loop):
    """Row 0 has no term: its elements have the value of the init."""
    sch = schedule("""
n, m = symbols("n m", lower=1)

@prim_func
def f(x: Buffer[(n, 1), i32], y: Out[(n, m), i32]):
    for i in range(n):
        for j in range(m):
            for r in range(1):
                with block("y"):
                    vi, vj, vr = spatial(i), spatial(j), reduce(r)
                    guard(i != r)
                    with init(): y[vi, vj] = i32(2)
                    y[vi, vj] += x[vi, vr]
""")
    sch.cache_write("y", "y", "global")
    sch.compute_at("y", loop)
    assert not violations(sch.module)
    x, y = np.array([[5], [7]], np.int32), np.zeros((2, 3), np.int32)
    run_prim(sch.module.prims[0], [x, y], {"n": 2, "m": 3})
    assert y.tolist() == [[2, 2, 2], [9, 9, 9]]
