import numpy as np
import pytest

import tilewright
from tilewright.ir.interpreter import run_prim
from tilewright.ir.verify import violations
from tilewright.schedules.primitives.reduction.rfactor import Rfactor

from tests.schedules.helpers import MATMUL, accepted, rejected, schedule

ROW_MAX = """
M, N = symbols("M, N", lower=1)

@prim_func
def row_max(x: Buffer[(M, N), i32], y: Out[(M,), i32]):
    for i in range(M):
        for k in range(N):
            with block("max"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = x[vi, 0]
                y[vi] = max(y[vi], x[vi, vk])
"""

HORNER = """
@prim_func
def horner(x: Buffer[(8, 4), i32], y: Out[(8,), i32]):
    for i in range(8):
        for k in range(4):
            with block("horner"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0
                y[vi] = y[vi] * 2 + x[vi, vk]
"""

TWICE = """
@prim_func
def twice(x: Buffer[(8,), i32], y: Out[(4,), i32]):
    for again in range(2):
        for i in range(4):
            for k in range(8):
                with block("sum"):
                    vi, vk = spatial(i), reduce(k)
                    with init(): y[vi] = 0
                    y[vi] += x[vk]
"""

BOTH = """
@prim_func
def both(x: Buffer[(4, 8), i32], y: Out[(4,), i32]):
    for f in range(32):
        with block("sum"):
            vi, vk = spatial(4, f // 8), reduce(8, f % 8)
            with init(): y[vi] = 0
            y[vi] += x[vi, vk]
"""

TRIANGLE = """
@prim_func
def triangle(x: Buffer[(8,), i32], y: Out[(8,), i32]):
    for i in range(8):
        for k in range(i + 1):
            with block("sum"):
                vi, vk = spatial(i), reduce(8, k)
                with init(): y[vi] = 0
                y[vi] += x[vk]
"""

TOTAL = """
n = symbols("n", lower=0)

@prim_func
def total(x: Buffer[(n,), i32], y: Out[{shape}, i32]):
    for k in range(n):
        with block("sum"):
            vk = reduce(k)
            with init(): y[{at}] = 5
            y[{at}] += x[vk]
"""

LARGEST_OF_THREE = """
n, m = symbols("n m", lower=0)

@prim_func
def largest(x: Buffer[(n, m), i32], y: Out[(n,), i32]):
    for i in range(n):
        for k in range(m):
            with block("sum"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 3
                t = alloc((3,), i32)
                for q in range(3):
                    t[q] = x[vi, min(vk + q, m - 1)]
                y[vi] += max(t[0], max(t[1], t[2]))
"""

CORNER = """
@prim_func
def corner(x: Buffer[(8, 4), i32], y: Out[(8, 8), i32]):
    for i in range(8):
        for k in range(4):
            with block("sum"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi, 0] = 0
                y[vi, 0] += x[vi, vk]
"""


def test_lanes_of_a_reduction_with_a_predicate(golden):
    sch = schedule(ROW_MAX)
    block = sch.get_block("max")
    _, k = sch.get_loops(block)
    _, lane = sch.split(k, factors=(None, 4))
    sch.rfactor(block, lane)
    golden("rfactor.txt", str(sch))
    assert sch.verify().required().compared[0].exact


def test_the_inner_loop_of_a_matmul():
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    *_, k = sch.get_loops(mm)
    k0, _ = sch.split(k, factors=(None, 5))
    combine = sch.rfactor(mm, k0)
    assert combine.name == "mm_combine"
    sch.parallel(k0)
    assert sch.verify().required().compared[0].exact


@pytest.mark.parametrize(
    ("shape", "at"),
    [("()", "()"), ("(1,)", "0"), ("(1, 1)", "0, 0"), ("(4,)", "2"), ("(n + 1,)", "n")],
)
def test_a_total_is_factored(shape: str, at: str) -> None:
    """The result is one element, at indices without iteration variables."""
    sch = schedule(TOTAL.format(shape=shape, at=at).replace("Out[", "InOut["))
    _, inner = sch.split("k", factors=(None, 4))
    sch.rfactor("sum", inner)
    assert violations(sch.module) == ()
    assert sch.verify().ok
    sizes = {"()": (), "(1,)": (1,), "(1, 1)": (1, 1), "(4,)": (4,)}
    for n in (0, 1, 4, 7):
        x = np.arange(n, dtype=np.int32) * 3
        y = np.full(sizes.get(shape, (n + 1,)), -3, np.int32)
        run_prim(sch.module.prims[0], [x, y])
        assert y[y != -3].tolist() == [5 + x.sum()]
        assert y.ravel()[-1] != -3 or shape == "(4,)"


def test_a_part_of_a_row_is_factored():
    """A variable of extent 1 is not an index, and one index is a constant."""
    text = CORNER.replace("[vi, 0]", "[0, vi + 0]").replace(
        "spatial(i), reduce(k)", "spatial(i), reduce(k)\n                vu = spatial(1, 0)"
    )
    sch = schedule(text.replace("x[vi, vk]", "x[vi, vk + vu]"))
    sch.rfactor("sum", "k")
    assert "y[0, vi_all] += y_rf[0, vi_all, vpart]" in str(sch)
    assert sch.verify().ok


def test_requirements():
    sch = schedule(MATMUL)
    mm = sch.get_block("mm")
    i, _, k = sch.get_loops(mm)
    problem = rejected(
        sch,
        Rfactor(mm, i),
        Rfactor.Requires.REDUCTION_LOOP,
        "bind reduction iteration variables only",
    )
    assert problem.fixes == (Rfactor(mm, k),)
    horner = schedule(HORNER)
    block = horner.get_block("horner")
    rejected(
        horner,
        Rfactor(block, horner.get_loops(block)[1]),
        Rfactor.Requires.COMMUTATIVE_REDUCTION,
        "with an init and an update",
    )
    both = schedule(BOTH)
    block = both.get_block("sum")
    rejected(both, Rfactor(block, both.get_loops(block)[0]), Rfactor.Requires.REDUCTION_LOOP)
    twice = schedule(TWICE)
    block = twice.get_block("sum")
    rejected(
        twice,
        Rfactor(block, twice.get_loops(block)[2]),
        Rfactor.Requires.RUNS_ONCE,
        "the iterations of loop 'again' repeat the instances",
    )
    corner = schedule(CORNER.replace("[vi, 0]", "[vi, vi]"))
    block = corner.get_block("sum")
    rejected(
        corner,
        Rfactor(block, corner.get_loops(block)[1]),
        Rfactor.Requires.WRITES_WHOLE_BOX,
        "indexed by (vi, vi)",
    )
    triangle = schedule(TRIANGLE)
    block = triangle.get_block("sum")
    rejected(
        triangle,
        Rfactor(block, triangle.get_loops(block)[1]),
        Rfactor.Requires.INDEPENDENT_EXTENT,
        "depends on another loop",
    )


LOADED = """
n = symbols("n", lower=0)

@prim_func
def sums(off: Buffer[(n,), i32], x: Buffer[(9,), i32], y: Out[(n,), i32]):
    for i in range(n):
        with checked(off[i], 0, 5) as lo:
            for j in range(4):
                with block("sum"):
                    vi, vj = spatial(i), reduce(9, BINDING)
                    guard(GUARD)
                    with init(): y[vi] = 0
                    y[vi] += x[vj]
"""


@pytest.mark.parametrize(
    ("binding", "guard", "requirement", "message"),
    [
        (
            "lo + j",
            "i >= 0",
            "INDEPENDENT_EXTENT",
            "'vj' is bound to lo + j, which depends on 'lo'",
        ),
        (
            "j",
            "lo + j < 6",
            "UNCONDITIONAL_TERMS",
            "depends on 'lo', which its iteration variables",
        ),
    ],
)
def test_terms_that_depend_on_an_integer_read_outside_of_the_block(
    binding, guard, requirement, message
):
    sch = schedule(LOADED.replace("BINDING", binding).replace("GUARD", guard))
    block = sch.get_block("sum")
    step = Rfactor(block, sch.get_loop("j"))
    rejected(sch, step, Rfactor.Requires[requirement], message)


def test_a_condition_on_an_integer_read_outside_of_the_block_keeps_its_rows():
    sch = schedule(LOADED.replace("BINDING", "j").replace("GUARD", "lo < 3"))
    accepted(sch, Rfactor(sch.get_block("sum"), sch.get_loop("j")))


def test_a_guard_over_all_loops_limits_the_spatial_iterations_of_partial_results():
    """The guard excludes no terms of the rows that exist, but all terms of the others."""
    sch = schedule("""
@prim_func(scheduled=True)
def f(x: Buffer[(3, 8), f32], y: Out[(3,), f32]):
    for i in range(8):
        for k in range(8):
            with block("sum"):
                vi, vk = spatial(3, i), reduce(k)
                guard(i * 8 + k < 24)
                with init(): y[vi] = 0.0
                y[vi] += x[vi, vk]
""")
    sch.rfactor("sum", "k")
    assert violations(sch.module) == ()
    sch.verify()


@pytest.mark.parametrize("inner", [4, 1])
def test_a_reduction_with_temporaries_is_factored(inner: int) -> None:
    """The temporaries of terms beyond the end of a partial tile are not computed."""
    sch = schedule(LARGEST_OF_THREE)
    _, lane = sch.split("k", factors=(None, inner))
    sch.rfactor("sum", lane)
    assert violations(sch.module) == ()
    assert ("if vk_0 * 4 + vk_1 < m:" in str(sch)) is (inner == 4)
    assert sch.verify(runs=4).ok
    exe = tilewright.compile(sch.module)
    for n, m in ((0, 3), (3, 0), (2, 1), (3, 7), (5, 16)):
        x = np.random.default_rng(m).integers(-9, 9, (n, m)).astype(np.int32)
        at = np.minimum(np.arange(m)[:, None] + np.arange(3), max(m - 1, 0))
        np.testing.assert_array_equal(exe(x), 3 + x[:, at].max(-1, initial=-9).sum(-1))


DEPENDENT_ROWS = """
n = symbols("n", lower=0)

@prim_func
def f(w: Buffer[(n, n), f32], y: InOut[({scale}n, n), f32]):
    for i in range(n):
        for j in range(i + 1):
            for r in range(j + 1):
                with block("sum"):
                    vi, vj, vr = spatial({scale}n, {scale}i), spatial(j), reduce(n, r)
                    with init(): y[vi, vj] = 0.0
                    y[vi, vj] += w[vr, vj]
"""


def test_the_extent_of_a_row_may_depend_on_the_number_of_the_row():
    """The combination runs for the same elements; those above the diagonal keep their values."""
    sch = schedule(DEPENDENT_ROWS.format(scale=""))
    _, inner = sch.split("r", factors=(None, 8))
    sch.rfactor("sum", inner)
    assert "for j_all in range(i_all + 1)" in str(sch)
    assert sch.verify(runs=6).ok
    exe = tilewright.compile(sch)
    w = np.arange(49, dtype=np.float32).reshape(7, 7)
    y = np.full((7, 7), -1, np.float32)
    exe(w, y)
    expected = np.tril(np.repeat(np.cumsum(w, axis=0).diagonal()[None], 7, axis=0))
    np.testing.assert_array_equal(y, np.where(np.tri(7) > 0, expected, -1))


def test_the_extent_of_a_row_may_not_depend_on_a_loop_that_no_variable_is():
    sch = schedule(DEPENDENT_ROWS.format(scale="2 * "))
    _, inner = sch.split("r", factors=(None, 8))
    (block,) = sch.get_blocks("f")
    step = Rfactor(block, inner)
    message = "extent i + 1 of spatial iteration variable 'vj' depends on 'i'"
    rejected(sch, step, Rfactor.Requires.INDEPENDENT_EXTENT, message)
