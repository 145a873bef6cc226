import numpy as np

from tilewright.ir.interpreter import run_prim
from tilewright.ir.loop.nodes import PrimFunc
from tilewright.ir.script import parse
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule
from tilewright.schedules.apply import prepared
from tilewright.schedules.primitives.loops.loop_partition import LoopPartition
from tilewright.schedules.requirement import CommonRequirement

from tests.codegen.gpu.running import agrees
from tests.schedules.helpers import CHAIN, MATMUL, rejected, schedule
from tests.strategies import outputs, symbols_of


def step(sch, loop, point):
    return prepared(sch.state, LoopPartition(loop, point))


def test_the_main_part_needs_no_predicate(golden):
    sch = schedule(MATMUL)
    i, _, _ = sch.get_loops(sch.get_block("mm"))
    i0, _ = sch.split(i, factors=(None, 14))
    main, _ = sch.loop_partition(i0, "M // 14")
    assert main == i0
    golden("loop_partition.txt", str(sch))
    assert str(sch.state.block(sch.get_block("mm")).predicate) == "True"
    assert sch.verify().required().compared[0].exact


def test_a_reduction_continues_in_the_second_part():
    sch = schedule(MATMUL)
    *_, k = sch.get_loops(sch.get_block("mm"))
    sch.loop_partition(k, 5)
    assert sch.state.block(sch.get_block("mm_1")).init is None
    assert sch.verify().required().compared[0].exact


def test_requirements():
    sch = schedule(MATMUL)
    i, j, k = sch.get_loops(sch.get_block("mm"))
    problem = rejected(sch, step(sch, i, 7), LoopPartition.Requires.POINT_IN_RANGE, "past the end")
    assert problem.counterexample is not None
    rejected(sch, step(sch, j, -1), LoopPartition.Requires.POINT_IN_RANGE, "less than 0")
    rejected(
        sch,
        LoopPartition(j, sch.state.loop(i).var),
        LoopPartition.Requires.POINT_IN_RANGE,
        "not a term over the symbols",
    )
    rejected(
        sch,
        step(sch, k, 0),
        LoopPartition.Requires.INIT_IN_FIRST_PART,
        "may have to run in the second part",
    )
    sch.unroll(k)
    rejected(sch, step(sch, k, 4), LoopPartition.Requires.SERIAL, "is unrolled")


def test_suggested_at_the_last_full_tile():
    sch = schedule(CHAIN)
    (j,) = sch.get_loops(sch.get_block("second"))
    j0, _ = sch.split(j, factors=(None, 8))
    found = [c.step for c in sch.suggest(j0) if isinstance(c.step, LoopPartition)]
    assert [str(s.point) for s in found] == ["n // 8"]
    sch.apply(found[0])
    assert sch.verify().ok


def test_steps_inside_a_part_without_iterations_keep_the_program_well_formed():
    """All conditions are provable there, so a predicate that limits accesses is simplified."""
    text = """
n = symbols("n", lower=1)

@prim_func
def nested(n: Int, x: Buffer[(4 * n,), f32], y: Out[(4 * n,), f32]):
    for i in range(n):
        with block("outer"):
            vo = spatial(i)
            for j in range(4):
                with block("inner"):
                    vi = spatial(4 * n, vo * 4 + j)
                    y[vi] = x[vi]
"""
    sch = Schedule(parse(text))
    sch.loop_partition("i", 0)
    sch.blockize("i")
    sch.split("j", (None, 32))
    assert violations(sch.module) == ()


BAND = """
n = symbols("n", lower=1)

@prim_func
def band(x: Buffer[(n, n), f32], y: Out[(n,), f32]):
    for i in range(n):
        for j in range(min(i + 4, n) - max(i - 3, 0)):
            with block("y"):
                vi, vj = spatial(i), reduce(n, j + max(i - 3, 0))
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vj]
"""
"""The loop over rows occurs in the binding of the reduction, but does not iterate it."""


def same_at(before: PrimFunc, after: PrimFunc, sizes: tuple[int, ...]) -> None:
    """Check that two functions have equal results at some sizes."""
    for n in sizes:
        env = dict.fromkeys(symbols_of(before), n)
        (old,), (new,) = (outputs(f, run_prim, env) for f in (before, after))
        assert (old == new).all()


def test_both_parts_of_a_band_have_the_inits_of_their_rows():
    sch = Schedule(parse(BAND))
    before = sch.module.prims[0]
    sch.split("i", (None, 32))
    sch.loop_partition("i_1", 16)
    same_at(before, sch.module.prims[0], (1, 16, 18, 35))


def test_the_remainder_of_a_band_has_the_inits_of_its_rows():
    sch = Schedule(parse(BAND))
    before = sch.module.prims[0]
    sch.split("i", (None, 8), tail="epilogue")
    same_at(before, sch.module.prims[0], (1, 8, 18))


def test_a_reduction_of_several_values_over_threads_is_partitioned():
    """The threads combine their partial results after each part."""
    sch = Schedule(
        parse("""
k = symbols("k", lower=0)

@prim_func
def f(x: Buffer[(k,), f32], e: Out[(), f32], p: Out[(), i64]):
    for j in range(k):
        with block("find"):
            vj = reduce(j)
            with init(): e[()], p[()] = -inf, 9223372036854775807
            e[()], p[()] = argmax(x[vj], vj)
""")
    )
    outer, inner = sch.split("j", factors=(None, 4))
    sch.decompose_reduction("find", outer)
    sch.bind(inner, "threadIdx.x")
    before = sch.module.prims[0]
    sch.loop_partition(outer, "k // 8")
    for k in (0, 1, 8, 19):
        agrees(sch.module.prims[0], before, {"k": k})


def test_an_init_that_runs_for_the_largest_extents_stays_in_one_loop():
    """The first part alone has smaller extents, so its init would leave elements out."""
    sch = Schedule(
        parse("""
n = symbols("n", lower=2)

@prim_func
def f(x: Buffer[(n, n), i32], y: Out[(n,), i32]):
    for r in range(n):
        for j in range(r + 1):
            with block("sum"):
                vj, vr = spatial(n, j), reduce(r)
                with init(): y[vj] = 0
                y[vj] += x[vj, vr]
""")
    )
    step = LoopPartition(sch.get_loops("sum")[0], 1)
    rejected(sch, step, LoopPartition.Requires.INIT_IN_FIRST_PART, "'sum' may have to run")


def test_a_scan_of_lanes_is_not_divided():
    sch = Schedule(
        parse(
            """
@prim_func
def f(x: Buffer[(8, 16), i32], y: Out[(8, 16), i32]):
    for i in range(8):
        for j in range(16):
            with block("scan"):
                vi, vj = spatial(i), ordered(j)
                y[vi, vj] = scan(add, x[vi, vj])
"""
        )
    )
    sch.vectorize(sch.get_loops("scan")[1])
    step = LoopPartition(sch.add_unit_loop("scan"), 0)
    rejected(
        sch, step, CommonRequirement.INDEPENDENT, "reads elements of 'y' that other iterations"
    )


def test_parts_inside_of_a_block_use_facts_of_outer_loops():
    """The loop j runs only if m is at least 2, so both parts have one iteration."""
    text = """
n, m = symbols("n m", lower=0)

@prim_func
def f(m: Int, off: Buffer[(n + 1,), i32], x: Buffer[(m + 1, m + 1), i32], y: InOut[(n,), i32]):
    for i in range(n):
        with checked(off[i], 0, m + 1) as lo:
            with checked(off[i + 1], lo, m + 1) as hi:
                for j in range((hi - lo) // 2):
                    with block("o"):
                        vi, vl, vj = spatial(n, i), spatial(m + 1, lo), reduce(m + 1, j)
                        reads(x[0:m + 1, 0:min(2, m)])
                        writes(y[vi])
                        for k in range(min(2, m)):
                            with block("s"):
                                vii, vll = spatial(n, vi), spatial(m + 1, vl)
                                vjj, vk = reduce(m + 1, vj), reduce(m + 1, k)
                                y[vii] += x[vll, vk] + x[vjj, vk]
"""
    sch = Schedule(parse(text))
    sch.loop_partition(sch.get_loops("s")[-1], 1)
    assert violations(sch.module) == ()
    (before,), after = parse(text).prims, sch.module.prim("f")
    off = np.array([0, 2, 2, 4], np.int32)
    x, results = np.arange(25, dtype=np.int32).reshape(5, 5), []
    for func in (before, after):
        y = np.zeros(3, np.int32)
        run_prim(func, [off, x, y], {"m": 4})
        results.append(y.tolist())
    assert results[0] == results[1]
    assert any(results[0])


BAND = """
n = symbols("n", lower=0)

@prim_func
def band(n: Int, x: Buffer[(n * 4 + 8,), f32], y: InOut[(n + 1,), f32]):
    for i in range(n + 1):
        for r in range(5):
            with block("y"):
                vi, vr = spatial(n + 1, i), reduce(5, r)
                guard(i * 4 + r < n * 4)
                with init(): y[vi] = 0.0
                y[vi] += x[vi * 4 + vr]
"""


def test_a_condition_on_a_reduction_remains_such_in_the_first_part():
    """All of the first 4 terms agree on ``i < n``, which would keep the init from running."""
    for point in (1, 2, 3, 4):
        sch = schedule(BAND)
        problem = LoopPartition.Requires.INIT_IN_FIRST_PART
        rejected(sch, step(sch, sch.get_loop("r"), point), problem, "becomes i < n")
    sch.loop_partition("r", 5)
    assert sch.verify().required().compared[0].exact
