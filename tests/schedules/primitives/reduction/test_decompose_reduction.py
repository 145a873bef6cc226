from itertools import pairwise

import numpy as np
import pytest

from tilewright.ir.interpreter import run_prim
from tilewright.ir.verify import violations
from tilewright.schedules.primitives.reduction.decompose_reduction import DecomposeReduction

from tests.schedules.helpers import CHAIN, MATMUL, rejected, schedule

MIXED = """
@prim_func
def mixed(x: Buffer[(4, 8), i32], y: Out[(4,), i32]):
    for f in range(32):
        with block("sum"):
            vi, vk = spatial(4, f // 8), reduce(8, f % 8)
            with init(): y[vi] = 0
            y[vi] += x[vi, vk]
"""


TRIANGLE = """
@prim_func
def triangle(x: Buffer[(8, 8), i32], y: Out[(8,), i32]):
    for k in range(8):
        for i in range(k + 1):
            with block("sum"):
                vi, vk = spatial(8, i), reduce(k)
                with init(): y[vi] = 0
                y[vi] += x[vi, vk]
"""


def test_spatial_loops_are_duplicated_around_the_init(golden):
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    i, j, k = sch.get_loops(mm)
    i0, i1 = sch.split(i, factors=(None, 14))
    j0, j1 = sch.split(j, factors=(None, 8))
    sch.reorder((i0, j0, k, i1, j1))
    sch.vectorize(j1)
    init = sch.decompose_reduction(mm, k)
    golden("decompose_reduction.txt", str(sch))
    assert sch.state.loop(sch.get_loops(init)[-1]).kind == "vectorized"
    assert sch.verify().required().compared[0].exact


def test_the_predicate_of_a_split_reduction_stays_with_the_update():
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    *_, k = sch.get_loops(mm)
    k0, _ = sch.split(k, factors=(None, 5))
    init = sch.decompose_reduction(mm, k0)
    assert str(sch.state.block(init).predicate) == "True"
    assert str(sch.state.block(mm).predicate) == "k_0 * 5 + k_1 < 16"
    assert sch.verify().ok


CHOSEN = """
m = symbols("m", lower=0)

@prim_func
def f(x: Buffer[(m,), f32], y: Out[(), f32]):
    for k0 in range(ceildiv(m, 8)):
        for k1 in range(8):
            with block("sum"):
                vk = reduce(ceildiv(m, 8) * 8, k0 * 8 + k1)
                with init(): y[()] = {init}
                y[()] += where({condition}, x[vk], {otherwise})
"""


def test_terms_that_are_the_identity_are_excluded_by_the_predicate():
    sch = schedule(CHOSEN.format(init="0.0", condition="vk < m", otherwise="0.0"))
    sch.decompose_reduction("sum", "k0")
    block = sch.state.block(sch.get_block("sum"))
    assert str(block.predicate) == "k0 * 8 + k1 < m"
    assert "where" not in str(sch)
    assert sch.verify().ok


@pytest.mark.parametrize(
    ("init", "condition", "otherwise"),
    [("-0.0", "vk < m", "0.0"), ("0.0", "vk < m", "1.0"), ("1.0", "vk < m", "0.0")],
)
def test_other_terms_that_a_condition_selects_are_kept(init, condition, otherwise):
    """A sum that starts at -0.0 and skips the term 0.0 would have the other sign."""
    sch = schedule(CHOSEN.format(init=init, condition=condition, otherwise=otherwise))
    sch.decompose_reduction("sum", "k0")
    block = sch.state.block(sch.get_block("sum"))
    assert str(block.predicate) == "True"
    assert f"where(vk < m, x[vk], {otherwise})" in str(sch)
    assert sch.verify().ok


def test_the_terms_of_a_declared_reducer_are_excluded_together():
    text = """
m = symbols("m", lower=0)

@prim_func
def f(x: Buffer[(m,), f32], c: Out[(), f32], mean: Out[(), f32], square: Out[(), f32]):
    for k in range(m):
        with block("reduce"):
            vk = reduce(k)
            with init(): c[()], mean[()], square[()] = 0.0, 0.0, 0.0
            t = x[vk] * 2.0
            c[()], mean[()], square[()] = welford(1.0, t, 0.0)
"""
    sch = schedule(text)
    outer, inner = sch.split("k", (None, 8))
    sch.rfactor("reduce", outer)
    assert str(sch).count("where(") == 4
    sch.decompose_reduction("reduce", inner)
    assert "where(" not in str(sch)
    assert str(sch.state.block(sch.get_block("reduce")).predicate) == "k_0 * 8 + k_1 < m"
    assert sch.verify().ok


def test_requirements():
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    i, _, k = sch.get_loops(mm)
    sch.reorder((k, i))
    problem = rejected(
        sch,
        DecomposeReduction(mm, i),
        DecomposeReduction.Requires.OUTERMOST_REDUCTION,
        "more than once",
    )
    assert problem.fixes == (DecomposeReduction(mm, k),)
    sch.decompose_reduction(mm, k)
    rejected(
        sch,
        DecomposeReduction(mm, k),
        DecomposeReduction.Requires.REDUCTION,
        "not a reduction with an init",
    )
    chain = schedule(CHAIN)
    first = chain.get_block("first")
    rejected(
        chain,
        DecomposeReduction(first, chain.get_loops(first)[0]),
        DecomposeReduction.Requires.REDUCTION,
    )
    triangle = schedule(TRIANGLE)
    block = triangle.get_block("sum")
    rejected(
        triangle,
        DecomposeReduction(block, triangle.get_loops(block)[0]),
        DecomposeReduction.Requires.DUPLICABLE_INIT,
        "duplicated",
    )


def test_a_loop_that_binds_both_kinds_is_duplicated():
    sch = schedule(MIXED)
    block = sch.get_block("sum")
    sch.decompose_reduction(block, sch.get_loops(block)[0])
    assert sch.verify().required().compared[0].exact


def test_write_indices_must_be_injective():
    text = """
@prim_func
def last(x: Buffer[(4, 8, 3), i32], y: Out[(4,), i32]):
    for i in range(4):
        for k in range(8):
            for j in range(3):
                with block("sum"):
                    vi, vk, vj = spatial(i), reduce(k), spatial(j)
                    with init(): y[vi] = 0
                    y[vi] += x[vi, vk, vj]
"""
    sch = schedule(text)
    block = sch.get_block("sum")
    rejected(
        sch,
        DecomposeReduction(block, sch.get_loops(block)[1]),
        DecomposeReduction.Requires.INJECTIVE_WRITES,
        "are not injective in vj",
    )


def test_the_fix_for_another_loop_is_a_legal_loop():
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    copy = sch.cache_read(mm, "A", "global")
    problem = rejected(
        sch,
        DecomposeReduction(mm, sch.get_loops(copy)[0]),
        DecomposeReduction.Requires.LOOP_AROUND,
        "not around",
    )
    assert [f.title() for f in problem.fixes] == ["decompose_reduction(block=mm, loop=k)"]


def test_suggested_innermost_first():
    sch = schedule(MATMUL)
    found = [c.step.title() for c in sch.suggest(sch.get_block("mm")) if c.applicable]
    assert "decompose_reduction(block=mm, loop=k)" in found


START_FROM_MEMORY = """
k = symbols("k", lower=1)

@prim_func
def total(x: Buffer[(k,), i32], s: Buffer[(1,), i32], y: Out[(1,), i32]):
    for i in range(1):
        for j in range(k):
            with block("total"):
                vi, vj = spatial(i), reduce(j)
                with init(): y[vi] = s[vi]
                y[vi] += x[vj]
"""


def decomposed_start(sch):
    sch.decompose_reduction("total", "j")


def start_in_the_first_part(sch):
    sch.loop_partition("j", "1")


@pytest.mark.parametrize("step", [decomposed_start, start_in_the_first_part])
def test_a_reduction_without_its_init_omits_the_read_regions_of_the_init(step):
    sch = schedule(START_FROM_MEMORY)
    step(sch)
    *_, last = sch.state.tree("total").blocks.values()
    assert [r.buffer.name for r in last.reads] == ["x"]


SEGMENTS = """
@prim_func
def segments(off: Buffer[(5,), i32], x: Buffer[(16, 4), i32], y: Out[(4, 4), i32]):
    for i in range(4):
        with checked(off[i], 0, 17) as lo:
            with checked(off[i + 1], lo, 17) as hi:
                for d in range(4):
                    for e in range({extent}):
                        for j in range(hi - lo):
                            with block("sum"):
                                vi, vl, vd = spatial(4, i), spatial(17, lo), spatial(4, d)
                                ve, vj = spatial(e), reduce(16, j)
                                with init(): y[vi, vd] = 0
                                y[vi, vd] += x[vl + vj, vd] + index(ve, i32)
"""


@pytest.mark.parametrize("loop", ["d", "e", "j"])
def test_a_reduction_of_segments_whose_bounds_are_loaded(loop):
    """The spatial iteration variable ``vl`` has one value in each execution of the loop."""
    sch = schedule(SEGMENTS.format(extent=1))
    sch.decompose_reduction("sum", loop)
    offsets = np.array([0, 3, 3, 7, 16], np.int32)
    x = np.arange(64, dtype=np.int32).reshape(16, 4)
    y = np.full((4, 4), -1, np.int32)
    run_prim(sch.module.prims[0], [offsets, x, y])
    parts = [x[a:b].sum(axis=0) for a, b in pairwise(offsets)]
    np.testing.assert_array_equal(y, np.array(parts))


@pytest.mark.parametrize(("loop", "lost"), [("d", "ve"), ("e", "ve"), ("j", None)])
def test_iterations_of_one_execution_must_write_different_elements(loop, lost):
    """Two values of ``ve`` initialize the same element; before ``j``, ``ve`` has one value."""
    sch = schedule(SEGMENTS.format(extent=2))
    block = sch.get_block("sum")
    at = "idej".index(loop)
    step = DecomposeReduction(block, sch.get_loops(block)[at])
    if lost is None:
        assert not list(step.check(sch.state))
        return
    rejected(sch, step, DecomposeReduction.Requires.INJECTIVE_WRITES, f"not injective in {lost}")


@pytest.mark.parametrize("loop", ["i", "j"])
def test_the_extent_of_an_iteration_variable_that_depends_on_a_copied_loop(loop):
    """The init has the extents of its own loops."""
    sch = schedule("""
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n, n), i32], y: InOut[(n, n), i32]):
    for i in range(n):
        for j in range(i + 1):
            for r in range(i - j + 1):
                with block("sum"):
                    vi, vj, vr = spatial(i), spatial(j), reduce(n, r)
                    with init(): y[vi, vj] = 0
                    y[vi, vj] += x[vj, vr]
""")
    sch.decompose_reduction("sum", loop)
    assert violations(sch.module) == ()
    assert sch.verify().ok


def test_the_extent_of_an_iteration_variable_that_depends_on_the_reduction():
    """The init runs for the largest extent, and not before a single loop."""
    sch = schedule(TRIANGLE.replace("spatial(8, i)", "spatial(i)"))
    step = DecomposeReduction(sch.get_block("sum"), sch.get_loops("sum")[0])
    rejected(sch, step, DecomposeReduction.Requires.DUPLICABLE_INIT, "depends on another loop")
    x, y = np.arange(64, dtype=np.int32).reshape(8, 8), np.full(8, -1, np.int32)
    run_prim(sch.module.prims[0], [x, y])
    np.testing.assert_array_equal(y, np.triu(x).sum(axis=1))


@pytest.mark.parametrize("place", ["around", "in the block"])
def test_a_condition_on_an_integer_read_before_the_reduction(place):
    """The init runs only for the rows that the condition selects."""
    around, inside = ("lo < 3", "True") if place == "around" else ("True", "lo < 3")
    sch = schedule(f"""
n = symbols("n", lower=1)

@prim_func
def f(off: Buffer[(n,), i32], x: Buffer[(9,), i32], y: InOut[(n,), i32]):
    for i in range(n):
        with checked(off[i], 0, 5) as lo:
            if {around}:
                for j in range(4):
                    with block("sum"):
                        vi, vj = spatial(i), reduce(9, lo + j)
                        guard({inside})
                        with init(): y[vi] = 0
                        y[vi] += x[vj]
""")
    step = DecomposeReduction(sch.get_block("sum"), sch.get_loops("sum")[0])
    rejected(sch, step, DecomposeReduction.Requires.DUPLICABLE_INIT, "a value is read from memory")
    off, x = np.array([4, 0, 3], np.int32), np.arange(9, dtype=np.int32)
    sch.decompose_reduction("sum", "j")
    y = np.full(3, -1, np.int32)
    run_prim(sch.module.prims[0], [off, x, y])
    np.testing.assert_array_equal(y, [-1, 6, -1])


def test_a_condition_on_a_symbol_that_the_reduction_uses():
    """A symbol does not iterate the reduction, so the init has the condition, too."""
    sch = schedule("""
n, m = symbols("n m", lower=1)

@prim_func
def f(x: Buffer[(n + m,), i32], w: Buffer[(m,), i32], y: InOut[(n,), i32]):
    for i in range(n):
        for k in range(m):
            with block("sum"):
                vi, vk = spatial(i), reduce(m, m - 1 - k)
                guard(i < m)
                with init(): y[vi] = 0
                y[vi] += x[vi + vk] * w[vk]
""")
    before = sch.module.prims[0]
    sch.decompose_reduction("sum", "i")
    x, w = np.ones(7, np.int32), np.ones(2, np.int32)
    for func in (before, sch.module.prims[0]):
        y = np.full(5, -1, np.int32)
        run_prim(func, [x, w, y])
        np.testing.assert_array_equal(y, [2, 2, -1, -1, -1])
