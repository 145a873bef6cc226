"""Tests of blockize, and of other steps on the new block."""

import numpy as np
import pytest

from tilewright.codegen import compile as build
from tilewright.ir.analysis import flops, tree_of
from tilewright.ir.interpreter import run_prim
from tilewright.ir.script import parse, to_text
from tilewright.ir.symbolic import to_text as term_text
from tilewright.ir.verify import violations
from tilewright.schedules.primitives.caching.cache_read import CacheRead
from tilewright.schedules.primitives.loops.parallel import Parallel
from tilewright.schedules.primitives.placement.compute_at import ComputeAt
from tilewright.schedules.primitives.tensorize.blockize import Blockize
from tilewright.schedules.requirement import CommonRequirement

from tests.schedules.helpers import CHAIN, MATMUL, SCAN, rejected, schedule

GATHER = """
n = symbols("n", lower=1)

@prim_func
def gather(x: Buffer[(n, 4), i32], at: Buffer[(n,), i32], y: Out[(n, 4), i32]):
    for i in range(n):
        with checked(at[i], 0, n) as p:
            for j in range(4):
                with block("take"):
                    vi, vj, vp = spatial(i), spatial(j), spatial(n, p)
                    y[vi, vj] = x[vp, vj]
"""

MIXED = """
@prim_func
def mixed(x: Buffer[(4, 8), i32], y: Out[(4,), i32]):
    for f in range(4):
        for g in range(8):
            with block("sum"):
                vi, vk = spatial(4, f), reduce(11, f + g)
                guard(f + g < 8)
                with init(): y[vi] = 0
                y[vi] += x[vi, vk]
"""

TRIANGLE = """
@prim_func
def triangle(x: Buffer[(4, 8, 8), i32], y: Out[(4, 8), i32]):
    for m in range(2):
        for k in range(8):
            for i in range(k + 1):
                with block("sum"):
                    vm, vi, vk = reduce(m), spatial(8, i), reduce(k)
                    with init(): y[0, vi] = 0
                    y[0, vi] += x[vm, vi, vk]
"""


def tiled():
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    i, j, k = sch.get_loops(mm)
    i0, i1 = sch.split(i, factors=(None, 14))
    j0, j1 = sch.split(j, factors=(None, 8))
    sch.reorder((i0, j0, k, i1, j1))
    return sch, mm, (i0, j0, k, i1, j1)


def test_the_init_moves_to_the_new_block(golden):
    sch, _, loops = tiled()
    sch.blockize(loops[3])
    golden("blockize.txt", str(sch))
    assert violations(sch.module) == ()
    assert sch.verify().required().compared[0].exact


def test_the_init_stays_in_the_inner_block():
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    block = sch.blockize(sch.get_loops(mm)[1])
    assert sch.state.block(block).init is None
    assert sch.state.block(mm).init is not None
    assert violations(sch.module) == ()
    assert sch.verify().ok


def test_the_loops_of_the_init_have_the_extents_of_the_new_block():
    """The new block has an iteration variable for each outer loop in such an extent."""
    sch = schedule("""
@prim_func
def rows(x: Buffer[(8, 8, 4), i32], y: Out[(8, 8), i32]):
    for i in range(8):
        for k in range(4):
            for j in range(i + 1):
                with block("sum"):
                    vi, vj, vk = spatial(i), spatial(8, j), reduce(k)
                    with init(): y[vi, vj] = 0
                    y[vi, vj] += x[vi, vj, vk]
""")
    sch.blockize("j")
    assert violations(sch.module) == ()
    assert "for j_init in range(vi_1 + 1" in str(sch)
    assert sch.verify().ok


def test_text_round_trip():
    sch, _, loops = tiled()
    sch.blockize(loops[3])
    text = str(sch)
    assert to_text(parse(text).prims[0]) == text


def test_outer_steps_treat_the_new_block_as_a_unit(golden):
    sch, _, (i0, j0, k, i1, _) = tiled()
    block = sch.blockize(i1)
    start = sch.decompose_reduction(block, k)
    sch.parallel(i0)
    sch.split(j0, factors=(None, 2))
    sch.cache_read(block, "A", "local")
    golden("around.txt", str(sch))
    assert [b.name for b in tree_of(sch.module.prims[0]).outermost_blocks()] == [
        "copy_A",
        sch.state.block(start).name,
        "mm_o",
    ]
    assert violations(sch.module) == ()
    assert sch.verify().required().compared[0].exact


def test_a_producer_moves_to_the_region_of_the_block():
    sch = schedule(CHAIN)
    second = sch.get_block("second")
    (j,) = sch.get_loops(second)
    j0, j1 = sch.split(j, factors=(None, 8))
    sch.blockize(j1)
    sch.compute_at("first", j0)
    assert sch.verify().required().compared[0].exact
    assert term_text(sch.state.loop(sch.get_loops("first")[-1]).extent) == "8"


def test_flops_do_not_change():
    sch, _, loops = tiled()
    before = flops(sch.module.prims[0])
    sch.blockize(loops[3])
    assert flops(sch.module.prims[0]) == before


def test_steps_inside_of_a_plain_block():
    sch, _, (*_, i1, j1) = tiled()
    sch.blockize(i1)
    sch.split(i1, factors=(None, 2))
    sch.vectorize(j1)
    assert sch.verify().required().compared[0].exact


def test_nested_blocks():
    sch, _, (*_, i1, j1) = tiled()
    sch.blockize(j1)
    sch.blockize(i1)
    assert violations(sch.module) == ()
    assert sch.verify().required().compared[0].exact


def test_placement_rejects_targets_in_different_blocks():
    chain = schedule(CHAIN)
    (j,) = chain.get_loops("second")
    chain.blockize(j)
    step = ComputeAt(chain.get_block("first"), j)
    rejected(
        chain,
        step,
        CommonRequirement.SAME_BLOCK,
        "'first' is outside of blocks, 'j' is inside block 'second_o'; expected the same block",
    )


def test_steps_inside_of_a_block_in_a_vectorized_loop_are_rejected():
    sch = schedule(CHAIN)
    (j,) = sch.get_loops("second")
    _, j1, j2 = sch.split(j, factors=(None, 8, 1))
    sch.blockize(j2)
    sch.vectorize(j1)
    rejected(
        sch,
        CacheRead(sch.get_block("second"), sch.get_buffer("x")),
        CommonRequirement.ISOLATED,
        "loop 'j_1' around block 'second_o' is vectorized",
    )


def test_overlapping_iterations_are_detected():
    text = """
@prim_func
def overlap(x: Buffer[(8,), i32], y: Out[(8,), i32]):
    for i in range(5):
        for j in range(4):
            with block("copy"):
                vi, vj = spatial(i), spatial(j)
                y[vi + vj] = x[vi]
"""
    sch = schedule(text)
    i, j = sch.get_loops("copy")
    sch.blockize(j)
    rejected(
        sch,
        Parallel(i),
        Parallel.Requires.INDEPENDENT_ITERATIONS,
        "write the same elements of 'y' in block 'copy_o'",
    )


def test_a_scan_keeps_its_order():
    sch = schedule(SCAN)
    (i,) = sch.get_loops("step")
    i0, i1 = sch.split(i, factors=(None, 2))
    block = sch.blockize(i1)
    assert {v.kind for v in sch.state.block(block).iters} == {"ordered"}
    rejected(
        sch,
        Parallel(i0),
        Parallel.Requires.INDEPENDENT_ITERATIONS,
        "loop 'i_0' binds an ordered iteration variable of block 'step_o'",
    )
    assert sch.verify().ok


def test_two_blocks_are_rejected():
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    i, _, k = sch.get_loops(mm)
    sch.decompose_reduction(mm, k)
    rejected(sch, Blockize(i), Blockize.Requires.PERFECT_NEST, "blocks inside: mm_init, mm")


@pytest.mark.parametrize("lower", [0, 2, -3])
def test_a_loaded_integer_becomes_an_iteration_variable(lower):
    at = f"p - ({lower})"
    text = GATHER.replace("checked(at[i], 0, n)", f"checked(at[i], {lower}, n + {lower})")
    sch = schedule(text.replace("spatial(n, p)", f"spatial(n, {at})"))
    sch.blockize(sch.get_loops("take")[-1])
    assert violations(sch.module) == ()
    x = np.arange(20, dtype=np.int32).reshape(5, 4)
    index = np.array([4, 0, 0, 2, 1], np.int32)
    np.testing.assert_array_equal(build(sch)(x, index + np.int32(lower)), x[index])


def test_requirements_of_blockize():
    sch = schedule(GATHER.replace("checked(at[i], 0, n)", "checked(at[i], 0, i + 1)"))
    j = sch.get_loops("take")[-1]
    rejected(
        sch, Blockize(j), Blockize.Requires.ONE_KIND_PER_VARIABLE, "'p', which is read from memory"
    )
    mixed = schedule(MIXED)
    rejected(
        mixed,
        Blockize(mixed.get_loops("sum")[1]),
        Blockize.Requires.ONE_KIND_PER_VARIABLE,
        "binds reduce and spatial iteration variables",
    )
    triangle = schedule(TRIANGLE)
    k = triangle.get_loops("sum")[1]
    rejected(triangle, Blockize(k), Blockize.Requires.DUPLICABLE_INIT, "cannot be duplicated")


def test_suggested_for_a_nest():
    sch, _, (*_, i1, _) = tiled()
    found = [c.step.title() for c in sch.suggest(i1) if c.applicable]
    assert "blockize(loop=i_1)" in found


ROWS_OF_A_TRIANGLE = """
n = symbols("n", lower=1)

@prim_func
def lower(x: Buffer[(n, n), i32], y: InOut[(n, n), i32]):
    for i in range(n):
        for j in range(i + 1):
            with block("y"):
                vi, vj = spatial(i), spatial(n, j)
                y[vi, vj] = x[vi, vj]
"""


def test_a_block_of_a_triangle_in_a_block():
    """The number of tiles of a row depends on the row, which is an iteration variable there."""
    sch = schedule(ROWS_OF_A_TRIANGLE)
    _, inner = sch.split("j", factors=(None, 16))
    sch.blockize(inner)
    sch.blockize(inner)
    assert not violations(sch.module)
    assert sch.verify().required().ok


def test_an_extent_that_a_block_cannot_see_is_rejected():
    sch = schedule("""
n = symbols("n", lower=1)

@prim_func
def ends(x: Buffer[(n,), i32], y: InOut[(n,), i32]):
    for i in range(n):
        for j in range(i + 1):
            with block("y_o"):
                wj = spatial(i + 1, j)
                reads(x[wj])
                writes(y[wj])
                for k in range(1):
                    with block("y"):
                        vj = spatial(n, wj)
                        y[vj] = x[vj]
""")
    rejected(
        sch,
        Blockize(sch.get_loop("k")),
        Blockize.Requires.ONE_KIND_PER_VARIABLE,
        "depends on 'wj', whose extent i + 1 is known only outside of block 'y_o'",
    )


TOTAL = """
@prim_func
def total(x: Buffer[(8, 4), i32], y: InOut[(), i32]):
    for i in range(8):
        for j in range(4):
            with block("sum"):
                vi, vj = reduce(i), reduce(j)
                with init(): y[()] = 0
                y[()] += x[vi, vj]
"""


@pytest.mark.parametrize("kind", ["vectorized", "bound to threadIdx.x"])
def test_lanes_and_threads_combine_only_the_updates_of_one_block(kind):
    sch = schedule(TOTAL)
    if kind == "vectorized":
        sch.decompose_reduction("sum", "i")
        sch.vectorize("i")
    else:
        sch.bind("i", "threadIdx.x")
    problem = rejected(sch, Blockize(sch.get_loop("j")), Blockize.Requires.NOT_COMBINED)
    assert f"loop 'i' is {kind} and iterates a reduction of block 'sum'" in problem.message


OUTER_REDUCTION = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n, n), i32], y: InOut[(n, n), i32]):
    for i in range(n):
        for r in range(n):
            for j in range({extent}):
                with block("sum"):
                    vi, vj, vr = spatial(i), spatial({domain}), reduce(r)
                    guard(j <= i + r)
                    with init(): y[vi, vj] = 0
                    y[vi, vj] += x[vj, vr]
"""
"""A reduction of which an iteration of the loop around the new block has a part of the elements."""


@pytest.mark.parametrize("domain", ["j", "n, j"])
def test_the_init_of_a_block_depends_on_no_outer_loop_of_the_reduction(domain):
    sch = schedule(OUTER_REDUCTION.format(extent="min(n, i + r + 1)", domain=domain))
    rejected(sch, Blockize(sch.get_loops("sum")[2]), Blockize.Requires.DUPLICABLE_INIT, "'sum'")


def test_the_init_of_a_block_has_no_condition_on_the_reduction():
    sch = schedule(OUTER_REDUCTION.format(extent="n", domain="j"))
    before = sch.module.prims[0]
    sch.blockize(sch.get_loops("sum")[2])
    assert violations(sch.module) == ()
    x = np.arange(49, dtype=np.int32).reshape(7, 7)
    old, new = (np.full((7, 7), -1, np.int32) for _ in range(2))
    run_prim(before, [x, old])
    run_prim(sch.module.prims[0], [x, new])
    np.testing.assert_array_equal(new, old)
