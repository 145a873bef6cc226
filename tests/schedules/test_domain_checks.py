"""Steps and default rules never run more or fewer iterations of a block, or one of them twice."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from tilewright.ir.interpreter import call_prim
from tilewright.ir.script import parse
from tilewright.schedules import Schedule, StepError
from tilewright.schedules.primitives.caching.cache_write import CacheWrite
from tilewright.schedules.primitives.loops.bind import Bind
from tilewright.schedules.primitives.loops.fuse import Fuse
from tilewright.schedules.primitives.loops.parallel import Parallel
from tilewright.schedules.primitives.loops.reorder import Reorder
from tilewright.schedules.primitives.loops.vectorize import Vectorize
from tilewright.schedules.primitives.placement.compute_at import ComputeAt
from tilewright.schedules.primitives.placement.reverse_compute_at import ReverseComputeAt
from tilewright.schedules.primitives.placement.reverse_compute_inline import ReverseComputeInline
from tilewright.schedules.primitives.reduction.decompose_reduction import DecomposeReduction
from tilewright.schedules.primitives.reduction.rfactor import Rfactor
from tilewright.schedules.rules.default import apply_defaults

from tests.schedules import random_nests
from tests.schedules.equality import check_equal, inputs_of, same_after
from tests.schedules.helpers import rejected, schedule

ROW_SCALE = """
@prim_func
def f(e: Buffer[(6, 20), f32], y: Out[(6, 20), f32]):
    s = alloc((6,), f32)
    for c in range(6):
        for d in range(20):
            with block("sum"):
                vc, vd = spatial(c), reduce(d)
                with init(): s[vc] = 0.0
                s[vc] += e[vc, vd]
    for g in range(6):
        for h in range(20):
            with block("out"):
                vg, vh = spatial(g), spatial(h)
                y[vg, vh] = e[vg, vh] * s[vg]
"""

SUMS = """
n = symbols("n", lower=0)
@prim_func
def f(x: Buffer[(4, n), f32], y: Out[(4,), f32]):
    for i in range(4):
        for k in range(n):
            with block("s"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vk]
"""

TRIANGLE = """
n = symbols("n", lower=1)
@prim_func
def f(S: Buffer[(n, n), f32], y: Out[(n, n), f32]):
    top = alloc((n,), f32)
    for i in range(n):
        for j in range(i + 1):
            with block("top"):
                vi, vj = spatial(i), reduce(n, j)
                with init(): top[vi] = 0.0
                top[vi] += S[vi, vj]
    for a in range(n):
        for b in range(n):
            with block("y"):
                va, vb = spatial(a), spatial(b)
                y[va, vb] = S[va, vb] - top[va]
"""

HALF = """
@prim_func
def f(x: Buffer[(6, 64), f32], y: Out[(6,), f32]):
    for i in range(6):
        for k in range(32):
            with block("s"):
                vi, vk = spatial(i), reduce(64, k)
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vk]
"""

HALF_PRODUCT = """
@prim_func
def f(A: Buffer[(6, 64), f32], B: Buffer[(64, 16), f32], C: Out[(6, 16), f32]):
    for i in range(6):
        for j in range(16):
            for k in range(32):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(64, k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
"""

TRMM = """
n, m = symbols("n, m", lower=1)
@prim_func
def f(L: Buffer[(n, n), f32], B: Buffer[(n, m), f32], C: Out[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            for k in range(i + 1):
                with block("mm"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(n, k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += L[vi, vk] * B[vk, vj]
"""

BAND = """
n = symbols("n", lower=1)
@prim_func
def f(x: Buffer[(n, n), f32], y: Out[(n,), f32]):
    for i in range(n):
        for j in range(min(i + 3, n) - max(i - 2, 0)):
            with block("s"):
                vi, vj = spatial(i), reduce(n, j + max(i - 2, 0))
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vj]
"""

ATTENTION = """
n, d = symbols("n, d", lower=1)
@prim_func
def f(q: Buffer[(n, d), f32], w: Buffer[(n, d), f32], v: Buffer[(n, d), f32], y: Out[(n, d), f32]):
    s = alloc((n, n), f32)
    top = alloc((n,), f32)
    for i in range(n):
        for j in range(i + 1):
            for k in range(d):
                with block("score"):
                    vi, vj, vk = spatial(n, i), spatial(n, j), reduce(d, k)
                    with init(): s[vi, vj] = 0.0
                    s[vi, vj] += q[vi, vk] * w[vj, vk]
    for i1 in range(n):
        for j1 in range(i1 + 1):
            with block("top"):
                ti, tj = spatial(n, i1), reduce(n, j1)
                with init(): top[ti] = -inf
                top[ti] = max(top[ti], s[ti, tj])
    for i2 in range(n):
        for d2 in range(d):
            for j2 in range(i2 + 1):
                with block("out"):
                    oi, od, oj = spatial(n, i2), spatial(d, d2), reduce(n, j2)
                    with init(): y[oi, od] = 0.0
                    y[oi, od] += (s[oi, oj] - top[oi]) * v[oj, od]
"""

BRANCH = """
@prim_func
def f(x: Buffer[(8,), f32], y: InOut[(8,), f32]):
    t = alloc((8,), f32)
    for i in range(8):
        with block("t"):
            vi = spatial(i)
            t[vi] = x[vi] * 2.0
    for j in range(8):
        if j < 3:
            with block("y"):
                vj = spatial(8, j)
                y[vj] = t[vj] + 1.0
"""

BRANCH_SUM = """
n = symbols("n", lower=0)
@prim_func
def f(x: Buffer[(6, n), f32], y: InOut[(6,), f32]):
    for i in range(6):
        if i < 4:
            for k in range(n):
                if k < 5:
                    with block("s"):
                        vi, vk = spatial(6, i), reduce(n, k)
                        with init(): y[vi] = 0.0
                        y[vi] += x[vi, vk]
"""

REPEATED = """
@prim_func
def f(x: Buffer[(6, 8), f32], y: Out[(6,), f32]):
    for i in range(6):
        for r in range(2):
            for k in range(8):
                with block("s"):
                    vi, vk = spatial(i), reduce(k)
                    with init(): y[vi] = 0.0
                    y[vi] += x[vi, vk]
"""

POLYNOMIALS = """
@prim_func
def f(a: Buffer[(7,), f32], b: Buffer[(3,), f32], y: Out[(9,), f32]):
    for i in range(7):
        for k in range(3):
            with block("s"):
                vi, vk = spatial(9, i + k), reduce(3, k)
                with init(): y[vi] = 0.0
                y[vi] += a[vi - vk] * b[vk]
"""

MAYBE_EMPTY = """
@prim_func
def f(x: Buffer[(6,), f32], y: Out[(6,), f32]):
    T = alloc((1,), f32)
    for i in range(6):
        for r in range((2 - i % 3) // 2):
            with block("t"):
                vt = spatial(6, i)
                T[0] = x[vt]
        with block("y"):
            vy = spatial(6, i)
            y[vy] = T[0]
"""

CORNERS = """
n, m = symbols("n, m", lower=1)
@prim_func
def f(x: Buffer[(n, m), f32], y: InOut[(n, m), f32]):
    for i in range(n - 3):
        for j in range(m - 3):
            with block("y"):
                vi, vj = spatial(n, i), spatial(m, j)
                y[vi, vj] = x[vi, vj] + 1.0
"""


def block_loop(sch: Schedule, block: str, loop: str):
    return sch.get_block(block), sch.get_loop(loop)


def test_a_reduction_that_a_loop_repeats_is_decomposed_only_inside_this_loop():
    sch = schedule(ROW_SCALE)
    sch.compute_at("sum", "h")
    step = DecomposeReduction(*block_loop(sch, "sum", "g"))
    problem = rejected(sch, step, DecomposeReduction.Requires.RUNS_ONCE, "'h' inside loop 'g'")
    assert [fix.loop.name for fix in problem.fixes] == ["d_1"]
    same_after(
        ROW_SCALE,
        lambda s: s.compute_at("sum", "h"),
        lambda s: s.decompose_reduction("sum", "d_1"),
    )


def test_an_empty_reduction_loop_is_not_fused_with_the_loop_of_its_results():
    sch = schedule(SUMS)
    step = Fuse((sch.get_loop("i"), sch.get_loop("k")))
    problem = rejected(sch, step, Fuse.Requires.INIT_BEFORE_LOOPS, "may have no iterations")
    assert isinstance(problem.fixes[0], DecomposeReduction)
    same_after(SUMS, lambda s: s.decompose_reduction("s", "i"), lambda s: s.fuse("i", "k"))
    same_after(SUMS.replace("lower=0", "lower=1"), lambda s: s.fuse("i", "k"))


@pytest.mark.parametrize(
    "text", [TRIANGLE, HALF, HALF_PRODUCT, TRMM, BAND, ATTENTION, SUMS, CORNERS]
)
def test_the_default_rules_run_only_the_iterations_of_the_program(text):
    before = parse(text)
    sch = Schedule(before)
    apply_defaults(sch)
    check_equal(before, sch.module)


def test_a_triangular_reduction_is_computed_in_a_loop_of_its_consumer():
    sch = same_after(TRIANGLE, lambda s: s.compute_at("top", "a"))
    assert "for j_1 in range(a + 1):" in str(sch)
    same_after(
        TRIANGLE,
        lambda s: s.compute_at("top", "a"),
        lambda s: s.split("j_1", factors=(None, 4)),
        lambda s: s.decompose_reduction("top", "j_1_0"),
        lambda s: s.vectorize("j_1_1"),
        lambda s: s.parallel("a"),
    )


def test_causal_attention_is_computed_row_by_row():
    sch = same_after(
        ATTENTION,
        lambda s: s.compute_at("top", "i2"),
        lambda s: s.compute_at("score", "i2"),
        lambda s: s.parallel("i2"),
    )
    assert str(sch).count("range(i2 + 1)") == 3
    same_after(ATTENTION, lambda s: s.reverse_compute_at("top", "i"))


def test_a_banded_sum_keeps_its_band():
    same_after(
        BAND.replace("y: Out[(n,), f32]):", "z: Out[(n,), f32]):\n    y = alloc((n,), f32)")
        + """    for a in range(n):
        with block("z"):
            va = spatial(a)
            z[va] = y[va] * 2.0
""",
        lambda s: s.compute_at("s", "a"),
    )


def test_a_consumer_below_a_branch_is_inlined_with_its_condition():
    sch = same_after(BRANCH, lambda s: s.reverse_compute_inline("y"))
    assert "guard(i <= 2)" in str(sch)
    masked = BRANCH.replace('with block("t"):', 'if i < 4:\n            with block("t"):').replace(
        "            vi = spatial(i)\n            t[vi]",
        "                vi = spatial(8, i)\n                t[vi]",
    )
    same_after(masked, lambda s: s.reverse_compute_inline("y"))
    same_after(masked, lambda s: s.compute_inline("t"))
    same_after(masked, lambda s: s.compute_at("t", "j"))
    less = masked.replace("i < 4", "i < 2")
    sch = schedule(less)
    rejected(
        sch,
        ReverseComputeInline(sch.get_block("y")),
        ReverseComputeInline.Requires.SAME_ITERATIONS,
        "may run other iterations",
    )


PARTLY_READ = """
@prim_func(scheduled=True)
def f(x: Buffer[(16,), f32], y: Out[(16,), f32]):
    for c in range(16):
        t = alloc((16,), f32)
        for a in range(c - max(1, c) + 1):
            with block("p"):
                va = spatial(16, max(1, c) + a)
                t[va] = x[va] + 1.0
        with block("c"):
            vc = spatial(16, c)
            y[vc] = where(vc > 0, t[vc], 0.0)
"""


def test_a_consumer_is_not_inlined_where_only_the_loops_of_its_producer_exclude_iterations():
    sch = schedule(PARTLY_READ)
    rejected(
        sch,
        ReverseComputeInline(sch.get_block("c")),
        ReverseComputeInline.Requires.SAME_ITERATIONS,
        "may run other iterations",
    )


TWO_STORES = """
@prim_func
def f(x: Buffer[(8,), f32], y: InOut[(8,), f32], r: Out[(8,), f32]):
    z = alloc((8,), f32)
    t = alloc((8,), f32)
    for i in range(8):
        with block("p"):
            vi = spatial(i)
            t[vi] = x[vi] + 1.0
            z[vi] = x[vi] * 2.0
    for j in range(8):
        with block("c"):
            vj = spatial(8, j)
            y[vj] = t[vj] + z[vj]
    for k in range(8):
        with block("d"):
            vk = spatial(k)
            r[vk] = t[vk]
"""


def test_a_consumer_is_inlined_after_the_other_stores_of_its_producer():
    requires = ReverseComputeInline.Requires
    same_after(TWO_STORES, lambda s: s.reverse_compute_inline("c"))
    first = "            t[vi] = x[vi] + 1.0\n"
    for text, requirement in (
        (TWO_STORES.replace("for j in range(8)", "for j in range(5)"), requires.SAME_ITERATIONS),
        (TWO_STORES.replace("t[vj] + z", "t[7 - vj] + z"), requires.KEEPS_DEPENDENCES),
        (
            TWO_STORES.replace(first, "").replace("* 2.0\n", f"* 2.0\n{first}"),
            requires.KEEPS_DEPENDENCES,
        ),
    ):
        sch = schedule(text)
        rejected(sch, ReverseComputeInline(sch.get_block("c")), requirement, "producer 'p'")


def test_a_cached_output_is_copied_only_where_it_was_written():
    same_after(BRANCH, lambda s: s.cache_write("y", "y", "local"))
    same_after(BRANCH_SUM, lambda s: s.cache_write("s", "y", "local"))
    same_after(HALF, lambda s: s.cache_write("s", "y", "local"))
    text = BRANCH.replace(
        "spatial(8, j)\n                y[vj]", "spatial(8, j)\n                y[7 - vj]"
    )
    sch = schedule(text)
    rejected(
        sch,
        CacheWrite(sch.get_block("y"), sch.get_buffer("y")),
        CacheWrite.Requires.WRITES_WHOLE_BOX,
        "may leave gaps",
    )


def test_partial_results_below_a_branch_on_the_reduction_are_rejected():
    sch = schedule(BRANCH_SUM)
    step = Rfactor(*block_loop(sch, "s", "k"))
    rejected(sch, step, Rfactor.Requires.UNCONDITIONAL_TERMS, "the branch k <= 4")
    spatial = BRANCH_SUM.replace("if k < 5:", "if i < 3:")
    same_after(spatial, lambda s: s.rfactor("s", "k"))
    guarded = BRANCH_SUM.replace("if k < 5:", "if i < 4:").replace(
        "reduce(n, k)", "reduce(n, k)\n                        guard(k < 5)"
    )
    same_after(guarded, lambda s: s.rfactor("s", "k"))


def test_a_loop_that_repeats_a_reduction_stays_outside_of_it():
    sch = schedule(REPEATED)
    r, k = sch.get_loop("r"), sch.get_loop("k")
    rejected(sch, Fuse((r, k)), Fuse.Requires.INIT_BEFORE_LOOPS, "which repeats the reduction")
    rejected(sch, Reorder((k, r)), Reorder.Requires.INIT_BEFORE_LOOPS, "in each of them")
    step = DecomposeReduction(sch.get_block("s"), r)
    rejected(sch, step, DecomposeReduction.Requires.RUNS_ONCE)
    same_after(REPEATED, lambda s: s.reorder("r", "i"))
    same_after(REPEATED, lambda s: s.fuse("i", "r"))
    same_after(REPEATED, lambda s: s.decompose_reduction("s", "k"))


def test_results_with_terms_in_several_iterations_of_two_loops():
    sch = schedule(POLYNOMIALS)
    step = DecomposeReduction(*block_loop(sch, "s", "k"))
    problem = rejected(sch, step, DecomposeReduction.Requires.OUTERMOST_REDUCTION)
    assert [fix.loop.name for fix in problem.fixes] == ["i"]
    for step in (
        lambda s: s.decompose_reduction("s", "i"),
        lambda s: s.fuse("i", "k"),
        lambda s: s.reorder("k", "i"),
        lambda s: s.split("i", factors=(None, 4)),
    ):
        same_after(POLYNOMIALS, step)


def test_a_loop_that_may_be_empty_does_not_write_for_its_iteration():
    sch = schedule(MAYBE_EMPTY)
    rejected(
        sch,
        Parallel(sch.get_loop("i")),
        Parallel.Requires.INDEPENDENT_ITERATIONS,
        "elements of 'T'",
    )
    whole = MAYBE_EMPTY.replace("range((2 - i % 3) // 2)", "range(2 - i % 2)")
    same_after(whole, lambda s: s.parallel("i"))


def test_two_negative_extents_have_no_iterations_in_common():
    same_after(CORNERS, lambda s: s.fuse("i", "j"))
    same_after(CORNERS, lambda s: s.fuse("i", "j"), lambda s: s.split("i_j", factors=(None, 4)))


def test_a_reduction_moves_into_a_parallel_loop_with_its_own_copy():
    text = """
n, m = symbols("n, m", lower=1)
@prim_func
def f(x: Buffer[(n + m, 8), f32], w: Buffer[(n, m), f32], y: Out[(n, m), f32]):
    T = alloc((n + m,), f32)
    for i in range(n + m):
        for k in range(8):
            with block("T"):
                vi, vk = spatial(i), reduce(k)
                with init(): T[vi] = 0.0
                T[vi] += x[vi, vk]
    for a in range(n):
        for b in range(m):
            with block("y"):
                va, vb = spatial(a), spatial(b)
                y[va, vb] = T[va + vb]
"""
    same_after(text, lambda s: s.parallel("a"), lambda s: s.compute_at("T", "a"))
    same_after(text, lambda s: s.compute_at("T", "a"), lambda s: s.parallel("a"))
    constant = text.replace('n, m = symbols("n, m"', 'n = symbols("n"').replace(" m", " 5")
    constant = constant.replace("(m)", "(5)")
    same_after(constant, lambda s: s.parallel("a"), lambda s: s.compute_at("T", "a"))
    same_after(constant, lambda s: s.compute_at("T", "b"), lambda s: s.parallel("a"))


ROUNDS = """
@prim_func
def f(x: Buffer[(4, 8), f32], y: Out[(4,), f32]):
    t = alloc((4,), f32)
    for i in range(4):
        for k in range(8):
            for r in range(2):
                with block("s"):
                    vi, vk = spatial(i), reduce(k)
                    with init(): t[vi] = 0.0
                    t[vi] += x[vi, vk]
    for a in range(4):
        with block("y"):
            va = spatial(a)
            y[va] = t[va]
"""


def test_a_reduction_that_repeats_its_terms():
    sch = schedule(ROUNDS)
    step = ComputeAt(*block_loop(sch, "s", "a"))
    rejected(sch, step, ComputeAt.Requires.WHOLE_REDUCTION, "loop 'r' repeat the instances")
    bound = Bind(sch.get_loop("k"), "threadIdx.x")
    rejected(sch, bound, Bind.Requires.RUNS_ONCE, "loop 'r' repeat the instances")
    sch.decompose_reduction("s", "k")
    vector = Vectorize(sch.get_loop("k"))
    rejected(sch, vector, Vectorize.Requires.RUNS_ONCE, "loop 'r' repeat the instances")
    same_after(ROUNDS, lambda s: s.decompose_reduction("s", "i"))


def test_a_consumer_that_repeats_its_terms():
    text = """
@prim_func
def f(x: Buffer[(4, 8), f32], y: Out[(4,), f32]):
    t = alloc((4, 8), f32)
    for i in range(4):
        for j in range(8):
            with block("t"):
                vi, vj = spatial(i), spatial(j)
                t[vi, vj] = x[vi, vj]
    for a in range(4):
        for k in range(8):
            for r in range(2):
                with block("s"):
                    va, vk = spatial(a), reduce(k)
                    with init(): y[va] = 0.0
                    y[va] += t[va, vk]
"""
    sch = schedule(text)
    step = ReverseComputeAt(*block_loop(sch, "s", "i"))
    rejected(sch, step, ReverseComputeAt.Requires.WHOLE_REDUCTION, "loop 'r' repeat the instances")
    same_after(text.replace("range(2)", "range(1)"), lambda s: s.reverse_compute_at("s", "i"))


GAPS = """
@prim_func(scheduled=True)
def f(x: Buffer[(20,), f32], y: InOut[(20,), f32]):
    t = alloc((20,), f32)
    for i in range(5):
        for j in range(2):
            with block("t"):
                vt = spatial(20, i * 4 + j * 4)
                t[vt] = x[vt]
    for a in range(5):
        for b in range(2):
            with block("y"):
                vy = spatial(20, a * 4 + b * 4)
                y[vy] = t[vy]
"""


def test_iterations_without_a_description_are_not_moved():
    text = GAPS.replace("range(5)", "range(4)")
    sch = schedule(text)
    step = ComputeAt(*block_loop(sch, "t", "a"))
    rejected(sch, step, ComputeAt.Requires.DESCRIBED_DOMAIN, "cannot be described")
    whole = text.replace("vt = spatial(20, i * 4 + j * 4)", "vt = spatial(20, i * 2 + j)")
    whole = whole.replace("range(4)", "range(10)", 1)
    sch = schedule(whole)
    step = ReverseComputeAt(*block_loop(sch, "y", "i"))
    problems = [p.requirement for p in sch.check(step)]
    assert problems
    rejected(sch, step, ReverseComputeAt.Requires.DESCRIBED_DOMAIN, "cannot be described")


def test_an_init_is_not_moved_before_other_accesses_of_its_result():
    text = """
@prim_func
def f(x: Buffer[(4, 8), f32], y: InOut[(4,), f32], z: Out[(4,), f32]):
    for i in range(4):
        with block("old"):
            vo = spatial(i)
            z[vo] = y[3 - vo]
        for k in range(8):
            with block("s"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vk]
"""
    sch = schedule(text)
    step = DecomposeReduction(*block_loop(sch, "s", "i"))
    rejected(sch, step, DecomposeReduction.Requires.ORDERED_ACCESSES, "'old' in loop 'i'")
    same_after(text, lambda s: s.decompose_reduction("s", "k"))


GIVEN = ({"n": 1, "m": 1}, {"n": 2, "m": 3}, {"n": 5, "m": 2}, {"n": 7, "m": 5})


def results(function) -> list:
    return [call_prim(function, inputs_of(function, sizes), sizes) for sizes in GIVEN]


@pytest.mark.parametrize("part", range(4))
def test_random_steps_on_odd_nests_keep_the_results(part):
    rng = random.Random(part)
    accepted: Counter[str] = Counter()
    while sum(accepted.values()) < 40:
        module = parse(random_nests.program(rng))
        want = results(module.prims[0])
        if any(np.isnan(array).any() for arrays in want for array in arrays):
            continue  # it reads elements of a temporary that it does not write
        sch, applied = Schedule(module), []
        for _ in range(30):
            op, args, options = random_nests.step(rng, sch)
            try:
                getattr(sch, op)(*args, **options)
            except StepError:
                continue
            applied.append((op, args, options))
            for got, arrays in zip(results(sch.module.prims[0]), want, strict=True):
                np.testing.assert_array_equal(got, arrays, err_msg=f"{module}\n{applied}")
        accepted.update(op for op, _, _ in applied)
    assert len(accepted) >= 6
