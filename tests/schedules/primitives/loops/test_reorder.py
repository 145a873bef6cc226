import pytest

from tilewright.schedules.primitives.loops.reorder import Reorder

from tests.schedules.helpers import CHAIN, MATMUL, SAME, SCAN, accepted, rejected, schedule

SCAN_2D = """
@prim_func
def scan(x: Buffer[(8, 4), i32], y: Out[(8, 4), i32]):
    for i in range(7):
        for j in range(4):
            with block("step"):
                vi, vj = ordered(i), spatial(j)
                y[vi + 1, vj] = y[vi, vj] + x[vi, vj]
"""

TRIANGLE = """
@prim_func
def triangle(x: Buffer[(8,), i32], y: Out[(8, 8), i32]):
    for i in range(8):
        for j in range(i + 1):
            with block("lower"):
                vi, vj = spatial(i), spatial(8, j)
                y[vi, vj] = x[vi]
"""

SHIFTED = """
@prim_func
def shifted(x: Buffer[(8, 8), i32], y: Out[(8, 8), i32]):
    t = alloc((8, 9), i32)
    for i in range(8):
        for j in range(8):
            with block("write"):
                vi, vj = spatial(i), spatial(j)
                t[vi, vj + 1] = x[vi, vj]
            with block("read"):
                wi, wj = spatial(i), spatial(j)
                y[wi, wj] = t[wi, wj]
"""

IN_ORDER = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n, m, 3), i32], y: Out[(n,), i32]):
    for i in range(n):
        for k in range(m):
            for l in range(3):
                with block("horner"):
                    vi, vk, vl = spatial(i), reduce(k), reduce(l)
                    with init(): y[vi] = 0
                    y[vi] = y[vi] * 2 + x[vi, vk, vl]
"""

COMPOSED = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n, m), i32], p: InOut[({size},), i32], q: InOut[({size},), i32]):
    for i in range(n):
        for k in range(m):
            with block("composed"):
                vi, vk = {kinds}
                @reducer(identity=(1, 0), commutative=False)
                def composed(a: i32, b: i32, c: i32, d: i32):
                    return a * c, b * c + d
                p[vi], q[vi] = composed({terms})
"""


def test_the_reduction_becomes_the_outer_loop(golden):
    sch = schedule(MATMUL)
    i, j, k = sch.get_loops(sch.get_block("mm"))
    sch.reorder((k, i))
    golden("reorder.txt", str(sch))
    assert sch.get_loops(sch.get_block("mm")) == (k, j, i)
    assert sch.verify().required().compared[0].exact


def test_requirements():
    sch = schedule(MATMUL)
    i, _j, _ = sch.get_loops(sch.get_block("mm"))
    rejected(sch, Reorder((i,)), Reorder.Requires.DIFFERENT_LOOPS, "at least two")
    rejected(sch, Reorder((i, i)), Reorder.Requires.DIFFERENT_LOOPS)
    chain = schedule(CHAIN)
    first, second = (chain.get_loops(chain.get_block(b))[0] for b in ("first", "second"))
    rejected(
        chain, Reorder((first, second)), Reorder.Requires.PERFECT_NEST, "not in a perfect nest"
    )
    triangle = schedule(TRIANGLE)
    a, b = triangle.get_loops(triangle.get_block("lower"))
    rejected(
        triangle,
        Reorder((b, a)),
        Reorder.Requires.INDEPENDENT_EXTENTS,
        "depends on 'i', which would become an inner loop",
    )
    skew = schedule(
        SCAN_2D.replace("= y[vi, vj]", "= y[vi, vj + 1]").replace("y: Out[(8, 4)", "y: Out[(8, 5)")
    )
    a, b = skew.get_loops(skew.get_block("step"))
    rejected(
        skew,
        Reorder((b, a)),
        Reorder.Requires.KEEPS_ORDER,
        "loops 'i' and 'j' would exchange their order, but block 'step' reads elements of 'y' that "
        "other iterations of loop 'j' may write: it reads y[vi, vj + 1] and writes y[vi + 1, vj]",
    )
    horner = schedule(IN_ORDER)
    _, a, b = horner.get_loops(horner.get_block("horner"))
    rejected(horner, Reorder((b, a)), Reorder.Requires.COMMUTATIVE, "not a commutative reduction")
    same = schedule(SAME)
    a, b = same.get_loops(same.get_block("last"))
    rejected(same, Reorder((b, a)), Reorder.Requires.INDEPENDENT_ITERATIONS, "same elements")
    shifted = schedule(SHIFTED)
    a, b = shifted.get_loops(shifted.get_block("read"))
    rejected(shifted, Reorder((b, a)), Reorder.Requires.INDEPENDENT_ITERATIONS, "another iteration")


def test_the_last_of_several_writes_of_an_element_stays_the_last():
    sch = schedule("""
@prim_func
def diagonals(x: Buffer[(8, 8), i32], y: Out[(15,), i32]):
    for i in range(8):
        for j in range(8):
            with block("last"):
                vi, vj = spatial(i), spatial(j)
                y[vi + vj] = x[vi, vj]
""")
    a, b = sch.get_loops("last")
    rejected(sch, Reorder((b, a)), Reorder.Requires.INDEPENDENT_ITERATIONS, "same elements")


def test_a_loop_that_may_be_empty_stays_outside_of_a_reduction():
    """Inside of it, the init would run even if the loop has no iterations."""
    sch = schedule("""
n = symbols("n", lower=0)

@prim_func
def smallest(n: Int, x: Buffer[(8, 16), f32], y: InOut[(8,), f32]):
    for i in range(8):
        for u in range(min(n, 1)):
            for r in range(16):
                with block("y"):
                    vi, vr = spatial(i), reduce(r)
                    with init(): y[vi] = inf
                    y[vi] = min(y[vi], x[vi, vr])
""")
    _, u, r = sch.get_loops("y")
    rejected(sch, Reorder((r, u)), Reorder.Requires.INIT_BEFORE_LOOPS, "there may be none")


def test_a_single_loop_is_rejected():
    scan = schedule(SCAN)
    (i,) = scan.get_loops(scan.get_block("step"))
    rejected(scan, Reorder((i,)), Reorder.Requires.DIFFERENT_LOOPS)


POLYNOMIAL = """
n, k = symbols("n k", lower=1)

@prim_func
def polynomial(a: Buffer[(n,), i32], b: Buffer[(k,), i32], y: InOut[(n + k - 1,), i32]):
    for r in range(k):
        for i in {kind}:
            with block("y"):
                vo, vk = spatial(n + k - 1, i + r), reduce(r)
                y[vo] += a[vo - vk] * b[vk]
"""


@pytest.mark.parametrize("kind", ["parallel(n)", "vectorized(8)"])
def test_a_concurrent_loop_must_stay_independent_with_the_loops_that_move_into_it(kind):
    text = POLYNOMIAL.format(kind=kind)
    sch = schedule(text if "n)" in kind else text.replace("(n,)", "(8,)").replace("n + k", "8 + k"))
    r, i = sch.get_loops("y")
    message = "after this step, iterations of loop 'i' may write the same elements"
    rejected(sch, Reorder((i, r)), Reorder.Requires.INDEPENDENT_ITERATIONS, message)


def test_a_concurrent_loop_moves_inward():
    text = POLYNOMIAL.format(kind="range(n)")
    sch = schedule(text.replace("i + r", "i").replace("n + k - 1", "n").replace("vo - vk", "vo"))
    sch.reorder(("i", "r"))
    sch.parallel("i")
    sch.reorder(("r", "i"))
    sch.reorder(("i", "r"))
    assert sch.verify().required().compared[0].exact


def test_terms_that_must_remain_in_order_are_combined_for_all_rows_at_once():
    """Each element has its terms in the same order if the loop over elements moves inside."""
    rows = COMPOSED.format(size="n", kinds="spatial(i), reduce(k)", terms="x[vi, vk], x[vi, vk]")
    for text, order in ((IN_ORDER, (1, 2, 0)), (rows, (1, 0))):
        sch = schedule(text)
        loops = sch.get_loops(sch.get_blocks("f")[0])
        sch.reorder(tuple(loops[k] for k in order))
        assert sch.verify()


def test_elements_whose_terms_are_on_a_diagonal_keep_their_order():
    """Iterations ``i + k`` update one element: the loops would reverse the order of its terms."""
    kinds = "spatial(n + m, i + k), reduce(k)"
    text = COMPOSED.format(size="n + m", kinds=kinds, terms="x[vi - vk, vk], 1")
    sch = schedule(text)
    i, k = sch.get_loops("composed")
    rejected(sch, Reorder((k, i)), Reorder.Requires.KEEPS_ORDER, "would exchange their order")


def test_the_init_runs_before_loops_whose_extent_depends_on_its_spatial_loops():
    """Only the spatial loops are copied for the init; the extent is that of a reduction loop."""
    sch = schedule("""
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n, n), f32], y: InOut[(n,), f32]):
    for i in range(n):
        for j in range(min(i + 2, n) - max(i - 1, 0)):
            with block("y"):
                vi, vj = spatial(i), reduce(n, j + max(i - 1, 0))
                with init(): y[vi] = f32(2)
                y[vi] += x[vi, vj]
""")
    i0, i1 = sch.split("i", (None, 32))
    j0, j1 = sch.split("j", (None, 32))
    j00, j01, _ = sch.split(j0, (4, 3, None))
    step = Reorder((j1, j01, i0, i1, j00))
    accepted(sch, step)
