"""Default schedules for GPUs: every kind of kernel is bound, and computes the same results."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen import compile as build
from tilewright.ir.interpreter import call_prim
from tilewright.ir.loop.nodes import For
from tilewright.ir.loop.visit import walk
from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.target.target import Target

from tests.amounts import covering
from tests.codegen.gpu import kernels
from tests.codegen.gpu.running import agrees
from tests.schedules.helpers import CHAIN, MATMUL, SCAN

EPILOGUE = """
b, m, n = symbols("b m n", lower=1)

@prim_func
def epilogue(A: Buffer[(b, m, 9), i32], B: Buffer[(b, 9, n), i32], s: Buffer[(n,), i32],
             C: Out[(b, m, n), i32]):
    P = alloc((b, m, n), i32)
    for h in range(b):
        for i in range(m):
            for j in range(n):
                for k in range(9):
                    with block("product"):
                        vh, vi, vj, vk = spatial(h), spatial(i), spatial(j), reduce(k)
                        with init(): P[vh, vi, vj] = 0
                        P[vh, vi, vj] += A[vh, vi, vk] * B[vh, vk, vj]
    for h1 in range(b):
        for i1 in range(m):
            for j1 in range(n):
                with block("relu"):
                    wh, wi, wj = spatial(h1), spatial(i1), spatial(j1)
                    C[wh, wi, wj] = max(P[wh, wi, wj] + s[wj], 0)
"""

COLUMNS = """
m, n = symbols("m n", lower=1)

@prim_func
def columns(x: Buffer[(m, n), i32], y: Out[(n,), i32]):
    for j in range(n):
        for i in range(m):
            with block("sum"):
                vj, vi = spatial(j), reduce(i)
                with init(): y[vj] = 0
                y[vj] += x[vi, vj]
"""

TOTAL = """
m, n = symbols("m n", lower=1)

@prim_func
def total(x: Buffer[(m, n), i32], y: Out[(m, n), i32]):
    s = alloc((), i32)
    for i in range(m):
        for j in range(n):
            with block("sum"):
                vi, vj = reduce(i), reduce(j)
                with init(): s[()] = 0
                s[()] += x[vi, vj]
    for i1 in range(m):
        for j1 in range(n):
            with block("add"):
                wi, wj = spatial(i1), spatial(j1)
                y[wi, wj] = x[wi, wj] + s[()]
"""

TWO = """
m, n = symbols("m n", lower=1)

@prim_func
def two(x: Buffer[(m,), i32], y: Buffer[(n,), i32], u: Out[(m,), i32], v: Out[(n,), i32]):
    for i in range(m):
        with block("first"):
            vi = spatial(i)
            u[vi] = x[vi] * 2
    for j in range(n):
        with block("second"):
            vj = spatial(j)
            v[vj] = y[vj] + 1
"""

NORM = """
m = symbols("m", lower=1)

@prim_func
def norm(x: Buffer[(m, 40), i32], y: Out[(m, 40), i32]):
    t = alloc((m, 40), i32)
    s = alloc((m,), i32)
    for i in range(m):
        for j in range(40):
            for r in range(3):
                with block("inner"):
                    vi, vj, vr = spatial(i), spatial(j), reduce(r)
                    with init(): t[vi, vj] = 0
                    t[vi, vj] += x[vi, (vj + vr) % 40]
    for i1 in range(m):
        for k in range(40):
            with block("sum"):
                wi, wk = spatial(i1), reduce(k)
                with init(): s[wi] = 0
                s[wi] += t[wi, wk]
    for i2 in range(m):
        for j2 in range(40):
            with block("scale"):
                ui, uj = spatial(i2), spatial(j2)
                y[ui, uj] = t[ui, uj] * s[ui]
"""

BORDER = """
n = symbols("n", lower=1)

@prim_func
def border(x: Buffer[(n,), i32], y: Out[(n + 8,), i32]):
    for i in range(n + 8):
        with block("zero"):
            vi = spatial(n + 8, i)
            y[vi] = 0
    for j in range(n):
        with block("copy"):
            vj = spatial(j)
            y[vj + 4] = x[vj]
"""

TRANSPOSED = """
@prim_func
def transposed(x: Buffer[(30, 17), i32], y: Out[(17, 30), i32]):
    for i in range(17):
        for j in range(30):
            with block("turn"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vj, vi] + 1
"""

ONE_ROW = """
n = symbols("n", lower=1)

@prim_func
def one_row(x: Buffer[(1, n), i32], y: Out[(1, n), i32]):
    s = alloc((1,), i32)
    for i in range(1):
        for j in range(n):
            with block("sum"):
                vi, vj = spatial(i), reduce(j)
                with init(): s[vi] = 0
                s[vi] += x[vi, vj]
    for i1 in range(1):
        for j1 in range(n):
            with block("use"):
                wi, wj = spatial(i1), spatial(j1)
                y[wi, wj] = x[wi, wj] * s[-wi]
"""
"""The rows of the two nests are not the same, so one thread computes the sum of all."""

SCALAR = """
@prim_func
def scalar(x: Buffer[(1,), i32], y: Out[(), i32]):
    with block("one"):
        y[()] = x[0] + 1
"""

NESTED = """
n, k = symbols("n k", lower=1)

@prim_func
def nested(x: Buffer[(n, k), i32], y: Out[(n,), i32], z: Out[(n,), i32]):
    for i in range(n):
        with block("rows"):
            vi = spatial(i)
            z[vi] = x[vi, 0]
            for j in range(k):
                with block("sum"):
                    vr, vj = spatial(n, vi), reduce(j)
                    with init(): y[vr] = 0
                    y[vr] += x[vr, vj]
"""

EXCHANGED = """
n, k = symbols("n k", lower=1)

@prim_func
def exchanged(x: Buffer[(n, k), i32], y: Out[(n,), i32]):
    s = alloc((n,), i32)
    for i in range(n):
        with block("rows"):
            vi = spatial(i)
            for j in range(k):
                with block("sum"):
                    vr, vj = spatial(n, vi), reduce(j)
                    with init(): s[vr] = 0
                    s[vr] += x[vr, vj]
    for a in range(n):
        with block("reversed"):
            va = spatial(a)
            y[va] = s[n - 1 - va]
"""

RUNNING = """
n, k = symbols("n k", lower=1)

@prim_func
def running(x: Buffer[(n, k), i32], y: InOut[(n + 1,), i32]):
    for i in range(n):
        with block("rows"):
            vi = ordered(i)
            for j in range(k):
                with block("step"):
                    vr, vj = ordered(n, vi), ordered(j)
                    y[vr + 1] = y[vr + 1] + y[vr] * x[vr, vj]
"""

SIZES = {"b": 2, "m": 5, "n": 70, "M": 65, "N": 30, "K": 17, "k": 6, "rows": 3, "columns": 99}
PROGRAMS = {
    "matmul": (MATMUL, {"blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y"}),
    "epilogue": (
        EPILOGUE,
        {"blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y"},
    ),
    "chain": (CHAIN, {"blockIdx.x", "threadIdx.x"}),
    "scan": (SCAN, {"threadIdx.x"}),
    "columns": (COLUMNS, {"blockIdx.x", "threadIdx.x"}),
    "total": (TOTAL, {"threadIdx.x"}),
    "two": (TWO, {"blockIdx.x", "threadIdx.x"}),
    "norm": (NORM, {"blockIdx.x", "threadIdx.x"}),
    "border": (BORDER, {"threadIdx.x"}),
    "transposed": (TRANSPOSED, {"blockIdx.x", "threadIdx.x"}),
    "one row": (ONE_ROW, {"threadIdx.x"}),
    "scalar": (SCALAR, {"threadIdx.x"}),
    "nested": (NESTED, {"blockIdx.x", "threadIdx.x"}),
    "exchanged": (EXCHANGED, {"threadIdx.x"}),
    "running": (RUNNING, {"threadIdx.x"}),
    "softmax": (kernels.SOFTMAX, {"blockIdx.x", "threadIdx.x"}),
    "elementwise": (kernels.ELEMENTWISE, {"blockIdx.x", "threadIdx.x"}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_rule(name):
    text, axes = PROGRAMS[name]
    schedule = Schedule(parse(text), Target("simt"))
    (naive,) = schedule.module.prims
    schedule.schedule_kernel(naive.name)
    scheduled = schedule.module.prim(naive.name)
    bound = {s.thread for s in walk(scheduled.body) if isinstance(s, For) and s.kind == "thread"}
    assert bound == axes
    tolerance = 1e-5 if name in ("softmax", "elementwise") else 0.0
    agrees(scheduled, naive, SIZES, tolerance=tolerance)


@pytest.mark.parametrize("name", PROGRAMS)
def test_webgpu_has_the_rules_of_cuda(name):
    """The same composite steps, within the limits of WebGPU."""
    used = []
    for target in (Target("cuda", arch="sm_90a"), Target("webgpu")):
        schedule = Schedule(parse(PROGRAMS[name][0]), target)
        (naive,) = schedule.module.prims
        schedule.schedule_kernel(naive.name)
        assert not schedule.state.launchable(target, naive.name)
        used.append([group.op for group in schedule.trace.groups])
    assert used[0] == used[1]
    assert "schedule_kernel" in used[0]


def test_scheduled_kernels_are_unchanged():
    schedule = Schedule(parse(COLUMNS), Target("simt"))
    j, _ = schedule.get_loops(schedule.get_block("sum"))
    schedule.bind(j, "blockIdx.y")
    before = schedule.module
    schedule.schedule_kernel("columns")
    assert schedule.module is before


SCATTER = """
n = symbols("n", lower=0)

@prim_func
def f(at: Buffer[(n,), i32], x: Buffer[(n, 3), f32], y: InOut[(8, 3), f32]):
    for i in range(n):
        for j in range(3):
            with block("s"):
                vi, vj = reduce(i), spatial(j)
                with checked(at[vi], 0, 8) as p:
                    y[p, vj] += x[vi, vj]
"""


@pytest.mark.parametrize("n", [0, 1, 5, 700])
def test_a_scatter_is_bound_to_threads_with_atomic_updates(n):
    exe = build(parse(SCATTER), target="simt")
    at = np.arange(n, dtype=np.int32) * 5 % 8
    x, y = np.ones((n, 3), np.float32), np.zeros((8, 3), np.float32)
    expected = y.copy()
    np.add.at(expected, at, x)
    np.testing.assert_array_equal(exe(at, x, y), expected)


def test_the_loops_of_a_scatter_are_bound():
    sch = Schedule(parse(SCATTER), Target("cuda", arch="sm_80"))
    sch.schedule_gpu_loops("f")
    assert [sch.state.loop(x).thread for x in sch.get_loops("s")] == ["blockIdx.x", "threadIdx.x"]


def test_a_running_sum_over_rows_of_symbolic_length():
    """Each thread sums its own row, so the loop over the row needs no barrier."""
    module = parse("""
r, n = symbols("r n", lower=0)

@graph_func
def main(x: Tensor[(r, n), f32]):
    y = cumsum(x, axis=1)
    return y
""")
    exe = build(module, target=Target("simt", arch="sm_80"))
    for shape in ((0, 3), (1, 0), (1, 1), (3, 5), (33, 7)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(exe(x), x.cumsum(axis=1))


def test_a_softmax_of_a_symbolic_dimension_beside_an_empty_one():
    """The temporaries have no elements, but no constant dimensions either."""
    module = parse("""
n = symbols("n", lower=1)

@graph_func
def main(x: Tensor[(n, 0, 2), f32]):
    y = softmax(x, axis=0)
    return y
""")
    exe = build(module, target=Target("simt", arch="sm_80"))
    for n in (1, 5):
        assert exe(np.zeros((n, 0, 2), np.float32)).shape == (n, 0, 2)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((4, 2, 0), (0, 5)),
        ((4, 2, 0), (4, 0, 5)),
        ((4, 0, 0), (0, 5)),
        ((70, 0), (0, 70)),
        ((4, 2, 3), (3, 0)),
    ],
)
def test_products_of_operands_with_an_empty_constant_dimension(left, right):
    module = parse(f"""
@graph_func
def main(x: Tensor[{left}, f32], w: Tensor[{right}, f32]):
    y = matmul(x, w)
    return y
""")
    exe = build(module, target=Target("simt", arch="sm_80"))
    x, w = np.ones(left, np.float32), np.ones(right, np.float32)
    np.testing.assert_array_equal(exe(x, w), x @ w)


@pytest.mark.parametrize("op", ["+", "*"])
def test_a_scatter_of_complex_numbers_runs_in_one_thread(op):
    """The two parts of a complex number are not updated atomically."""
    module = parse(f"""
n, r = symbols("n r", lower=1)

@prim_func
def f(at: Buffer[(n,), i32], w: Buffer[(n,), c64], y: InOut[(r,), c64]):
    for i in range(n):
        with block("count"):
            vi = reduce(i)
            with checked(at[vi], 0, r) as p:
                y[p] {op}= w[vi]
""")
    at, w = np.array([1, 0, 1], np.int32), np.array([2, 3j, 1 + 1j], np.complex64)
    y = np.array([1, 1j], np.complex64)
    build(module, Target("simt", arch="sm_80"))(at, w, y)
    expected = [1 + 3j, 3 + 2j] if op == "+" else [3j, 2j * (1 + 1j)]
    np.testing.assert_array_equal(y, np.array(expected, np.complex64))


BANDS = """
n = symbols("n", lower=0)

@prim_func
def band(x: Buffer[(n, 5), f32], z: Buffer[(n, 6), f32], y: Out[(5, n, 6), f32]):
    for b in range(5):
        for i in range(n):
            for j in range(6):
                for k in range(STOP - FIRST):
                    with block("band"):
                        vb, vi, vj, vk = spatial(b), spatial(i), spatial(j), reduce(n, k + FIRST)
                        with init(): y[vb, vi, vj] = 0.0
                        y[vb, vi, vj] += x[vk, vb] * z[vk, vj]
"""
RANGES = {
    "a band": ("max(0, i - 3)", "min(n, i + 4)"),
    "the upper triangle": ("i", "n"),
    "the lower triangle": ("0", "(i + 1)"),
    "a window of the past": ("max(0, i - 3)", "(i + 1)"),
}


@pytest.mark.parametrize(("name", "form"), covering(RANGES, ["product", "sums", "largest"]))
def test_rows_of_reductions_over_a_part_are_in_parallel(name: str, form: str) -> None:
    first, stop = RANGES[name]
    text = BANDS.replace("FIRST", first).replace("STOP", stop)
    if form != "product":
        text = text.replace("x[vk, vb] * z[vk, vj]", "z[vk, vj]")
    if form == "largest":
        text = text.replace("+= z[vk, vj]", "= max(y[vb, vi, vj], z[vk, vj])")
    before = parse(text)
    target = Target("simt", arch="sm_80")
    sch = Schedule(before, target)
    sch.default_schedule()
    axes = {x.thread for x in walk(sch.module.prims[0].body) if isinstance(x, For)}
    assert {"blockIdx.x", "threadIdx.x"} <= axes
    exe, rng = build(sch, target=target), np.random.default_rng(0)
    for n in (0, 1, 2, 7, 33, 130):
        given = [rng.integers(-3, 4, (n, m)).astype(np.float32) for m in (5, 6)]
        (expected,) = call_prim(before.prims[0], given, {"n": n})
        np.testing.assert_array_equal(exe(*given), expected)
