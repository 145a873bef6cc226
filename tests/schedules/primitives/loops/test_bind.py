"""Tests of bind."""

from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.schedules.primitives.loops.bind import Bind
from tilewright.target.target import Target

from tests.schedules.helpers import (
    CHAIN,
    MATMUL,
    SAME,
    SCAN,
    accepted,
    rejected,
    schedule,
)

SUM = """
m, n = symbols("m n", lower=1)

@prim_func
def total(x: Buffer[(m, n), i32], y: Out[(m,), i32]):
    for i in range(m):
        for k in range(n):
            with block("sum"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0
                y[vi] += x[vi, vk]
"""

LONG = """
@prim_func
def long(x: Buffer[(100000, 2048), i32], y: Out[(100000, 2048), i32]):
    for i in range(100000):
        for j in range(2048):
            with block("copy"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj]
"""

TRIANGLE = """
n = symbols("n", lower=1)

@prim_func
def triangle(x: Buffer[(n,), i32], y: Out[(n, n), i32]):
    for i in range(n):
        for j in range(i + 1):
            with block("lower"):
                vi, vj = spatial(i), spatial(n, j)
                y[vi, vj] = x[vi]
"""

BOUND = """
@prim_func
def bound(x: Buffer[(8, 24), i32], y: Out[(8, 24), i32]):
    for i in range(8):
        for j in thread(24, "blockIdx.x"):
            with block("copy"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj]
"""

HORNER = """
@prim_func
def horner(x: Buffer[(4, 8), i32], y: InOut[(4,), i32]):
    for i in range(4):
        for k in range(8):
            with block("step"):
                vi, vk = spatial(i), reduce(k)
                y[vi] = y[vi] * 2 + x[vi, vk]
"""

STAGED = """
n = symbols("n", lower=1)

@prim_func
def staged(x: Buffer[(n, 32), i32], y: Out[(n, 32), i32]):
    t = alloc((n, 32), i32, scope="shared")
    for i in range(n):
        for j in range(32):
            with block("write"):
                vi, vj = spatial(i), spatial(j)
                t[vi, vj] = x[vi, vj]
        for k in range(32):
            with block("read"):
                wi, wk = spatial(i), spatial(k)
                y[wi, wk] = t[wi, 31 - wk]
"""


def test_rows_to_blocks_and_columns_to_threads(golden):
    sch = schedule(MATMUL)
    i, j, _ = sch.get_loops(sch.get_block("mm"))
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    golden("bind.txt", str(sch))
    assert sch.verify().required()


def test_shared_memory_is_private_to_a_thread_block():
    """Every thread block has its own shared memory, whatever its size."""
    sch = schedule(STAGED)
    i, j = sch.get_loops(sch.get_block("write"))
    _, k = sch.get_loops(sch.get_block("read"))
    accepted(sch, Bind(i, "blockIdx.x"), Bind(j, "threadIdx.x"), Bind(k, "threadIdx.x"))


def test_only_threads_can_share_a_reduction():
    sch = schedule(SUM)
    _, k = sch.get_loops(sch.get_block("sum"))
    _, inner = sch.split(k, factors=(None, 32))
    accepted(sch, Bind(inner, "threadIdx.x"))
    rejected(
        sch, Bind(inner, "blockIdx.x"), Bind.Requires.ITERATION_KINDS, "blockIdx.x cannot combine"
    )
    rejected(sch, Bind(inner, "vthread"), Bind.Requires.ITERATION_KINDS, "vthread cannot combine")


def test_requires_axis():
    sch = schedule(MATMUL)
    i, *_ = sch.get_loops(sch.get_block("mm"))
    assert (
        "threadIdx.x"
        in rejected(
            sch, Bind(i, "threadIdx.q"), Bind.Requires.AXIS_EXISTS, "no thread axis"
        ).message
    )


def test_requires_serial():
    sch = schedule(MATMUL)
    i, *_ = sch.get_loops(sch.get_block("mm"))
    sch.parallel(i)
    rejected(sch, Bind(i, "blockIdx.x"), Bind.Requires.SERIAL, "is already parallel")
    sch = schedule(BOUND)
    _, j = sch.get_loops(sch.get_block("copy"))
    rejected(
        sch, Bind(j, "threadIdx.x"), Bind.Requires.SERIAL, "'j' is already bound to blockIdx.x"
    )


def test_requires_one_extent_and_not_nested():
    sch = schedule(CHAIN)
    loops = [sch.get_loops(sch.get_block(b))[0] for b in ("first", "second")]
    _, a = sch.split(loops[0], factors=(None, 32))
    _, b = sch.split(loops[1], factors=(None, 64))
    sch.bind(a, "threadIdx.x")
    problem = rejected(
        sch,
        Bind(b, "threadIdx.x"),
        Bind.Requires.ONE_EXTENT_PER_AXIS,
        "threadIdx.x has extent 32 in loop",
    )
    assert problem.numbers == {"has": "32", "would be": "64"}
    nested = schedule(MATMUL)
    i, j, _ = nested.get_loops(nested.get_block("mm"))
    nested.bind(i, "blockIdx.x")
    rejected(nested, Bind(j, "blockIdx.x"), Bind.Requires.NOT_NESTED, "are nested")


def test_an_axis_without_threads_suggests_no_split():
    """A split into parts of 0 iterations is not legal."""
    sch = schedule(CHAIN)
    first, second = (sch.get_loops(sch.get_block(b))[0] for b in ("first", "second"))
    _, empty = sch.loop_partition(first, sch.state.loop(first).extent)
    sch.bind(empty, "blockIdx.x")
    problem = rejected(
        sch,
        Bind(second, "blockIdx.x"),
        Bind.Requires.ONE_EXTENT_PER_AXIS,
        "blockIdx.x has extent 0 in loop",
    )
    assert problem.fixes == ()


def test_requires_extents():
    sch = schedule(MATMUL)
    i, *_ = sch.get_loops(sch.get_block("mm"))
    problem = rejected(
        sch,
        Bind(i, "threadIdx.x"),
        Bind.Requires.KNOWN_EXTENT,
        "extent M of loop 'i' is not a constant",
    )
    assert problem.fixes
    long = schedule(LONG)
    i, j = long.get_loops(long.get_block("copy"))
    rejected(
        long,
        Bind(j, "threadIdx.x"),
        Bind.Requires.AXIS_LIMIT,
        "extent 2048 of loop 'j' is greater than 1024",
    )
    rejected(long, Bind(i, "blockIdx.y"), Bind.Requires.AXIS_LIMIT, "greater than 65535")
    accepted(long, Bind(i, "blockIdx.x"))


def test_requires_grid_size_is_known_at_launch():
    sch = schedule(TRIANGLE)
    i, j = sch.get_loops(sch.get_block("lower"))
    sch.bind(i, "blockIdx.y")
    rejected(sch, Bind(j, "blockIdx.x"), Bind.Requires.KNOWN_EXTENT, "must be known at launch")


def test_requires_threads_of_a_block():
    sch = Schedule(parse(LONG), Target("cuda", arch="sm_80"))
    i, j = sch.get_loops(sch.get_block("copy"))
    _, ti = sch.split(i, factors=(None, 32))
    _, tj = sch.split(j, factors=(None, 64))
    sch.bind(tj, "threadIdx.x")
    problem = rejected(
        sch,
        Bind(ti, "threadIdx.y"),
        Bind.Requires.THREAD_LIMIT,
        "64 (threadIdx.x) * 32 (threadIdx.y) = 2048 threads",
    )
    assert problem.numbers == {"threads": 2048, "limit": 1024}


def test_requires_nesting():
    sch = schedule(MATMUL)
    i, j, _ = sch.get_loops(sch.get_block("mm"))
    sch.parallel(i)
    rejected(
        sch,
        Bind(j, "threadIdx.x"),
        Bind.Requires.COMPATIBLE_NESTING,
        "'i' around loop 'j' is parallel",
    )
    other = schedule(MATMUL)
    i, j, _ = other.get_loops(other.get_block("mm"))
    rejected(
        other,
        Bind(j, "blockIdx.x"),
        Bind.Requires.COMPATIBLE_NESTING,
        "'i' around loop 'j' is serial",
    )
    other.bind(i, "blockIdx.x")
    inside = schedule(BOUND)
    rejected(
        inside,
        Bind(inside.get_loops(inside.get_block("copy"))[0], "threadIdx.x"),
        Bind.Requires.COMPATIBLE_NESTING,
        "inside",
    )


def test_requires_kinds_of_iterations():
    scan = schedule(SCAN)
    (i,) = scan.get_loops(scan.get_block("step"))
    rejected(
        scan,
        Bind(i, "threadIdx.x"),
        Bind.Requires.INDEPENDENT_ITERATIONS,
        "it reads y[vi] and writes y[vi + 1]; loop 'i' binds an ordered iteration variable",
    )
    horner = schedule(HORNER)
    _, k = horner.get_loops(horner.get_block("step"))
    rejected(
        horner,
        Bind(k, "threadIdx.x"),
        Bind.Requires.ITERATION_KINDS,
        "does not have the form C = C op value",
    )


def test_requires_independence():
    sch = schedule(SAME)
    _, j = sch.get_loops(sch.get_block("last"))
    rejected(
        sch,
        Bind(j, "threadIdx.x"),
        Bind.Requires.INDEPENDENT_ITERATIONS,
        "write the same elements of 'y'",
    )


def test_shared_memory_is_not_private_to_a_thread():
    """All threads of a thread block share a buffer that looks private to an iteration."""
    text = STAGED.replace("t[vi, vj]", "t[vi, 0]").replace("t[wi, 31 - wk]", "t[wi, 0]")
    sch = schedule(text)
    _, j = sch.get_loops(sch.get_block("write"))
    rejected(
        sch,
        Bind(j, "threadIdx.x"),
        Bind.Requires.INDEPENDENT_ITERATIONS,
        "write the same elements of 't'",
    )


def test_local_memory_is_private_to_a_thread():
    text = STAGED.replace('scope="shared"', 'scope="local"')
    sch = schedule(text)
    i, _ = sch.get_loops(sch.get_block("write"))
    accepted(sch, Bind(i, "blockIdx.x"))


def test_suggestions_depend_on_the_target():
    """A CPU has no thread axes; for a GPU, unused axes are suggested."""
    for target, wanted in (("cpu", []), ("cuda", ["blockIdx.y", "threadIdx.x"])):
        sch = Schedule(parse(MATMUL), Target(target))
        i, j, _ = sch.get_loops(sch.get_block("mm"))
        if wanted:
            sch.bind(i, "blockIdx.x")
        offered = [c.step.thread for c in sch.suggest(j) if isinstance(c.step, Bind)]
        assert offered == wanted
