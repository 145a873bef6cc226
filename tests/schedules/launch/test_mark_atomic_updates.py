"""Updates that several threads may apply to one element at the same time."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen import compile as build
from tilewright.codegen.errors import KernelError
from tilewright.codegen.lower import lower_kernel
from tilewright.codegen.simt.findings import TrapError
from tilewright.ir.dtype import dtype as dtype_of
from tilewright.ir.interpreter import run_prim
from tilewright.ir.kernel_errors import MemoryScopeError
from tilewright.ir.script import parse
from tilewright.ir.thread.text import to_text
from tilewright.schedules import Schedule
from tilewright.schedules.primitives.loops.bind import Bind
from tilewright.target.target import Target

from tests.codegen.lower.passes.running import GPU, comparison, unchanged
from tests.codegen.simt.launching import Launcher
from tests.schedules.helpers import rejected

NAME = "mark_atomic_updates"

SCATTER = """
n = symbols("n", lower=0)

@prim_func
def f(at: Buffer[(n,), i32], x: Buffer[(n,), {dtype}], y: InOut[(8,), {dtype}]):
    for i in range(n):
        with block("s"):
            vi = reduce(i)
            with checked(at[vi], 0, 8) as p:
                y[p] = {value}
"""
ADD = SCATTER.format(dtype="f32", value="y[p] + x[vi]")

BINS = """
@prim_func
def f(idx: Buffer[(64,), i32], x: Buffer[(64,), f32], y: InOut[(8,), f32]):
    for i in range(64):
        with block("s"):
            vi = reduce(i)
            with checked(idx[vi], 0, 8) as p:
                y[p] += x[vi]
"""
ROWS = """
@prim_func
def f(x: Buffer[(64, 6), f32], y: InOut[(6,), f32]):
    for i in {axis}:
        for j in range(6):
            with block("s"):
                vi, vj = reduce(i), spatial(j)
                y[vj] += x[vi, vj]
"""


def bound(text: str, threads: int = 16) -> Schedule:
    """Return a schedule whose loop i is split over thread blocks and threads."""
    schedule = Schedule(parse(text))
    outer, inner = schedule.split("i", factors=(None, threads))
    schedule.bind(outer, "blockIdx.x")
    schedule.bind(inner, "threadIdx.x")
    return schedule


def expected(text: str, *arrays: np.ndarray) -> np.ndarray:
    """Return the result of the interpreter."""
    copies = [a.copy() for a in arrays]
    run_prim(parse(text).prims[0], copies)
    return copies[-1]


def test_golden(golden):
    text = BINS.replace("range(64)", 'thread(64, "threadIdx.x")')
    golden(f"{NAME}.txt", comparison(NAME, text, GPU))


def test_a_scatter_add_binds_to_threads():
    schedule = Schedule(parse(BINS))
    schedule.bind("i", "threadIdx.x")
    rng = np.random.default_rng(0)
    at, x = rng.integers(0, 8, 64, np.int32), rng.integers(-9, 9, 64).astype(np.float32)
    y = np.ones(8, np.float32)
    found = build(schedule, target="simt")(at, x, y.copy())
    np.testing.assert_array_equal(found, expected(BINS, at, x, y))


@pytest.mark.parametrize("n", [0, 1, 2, 37, 64])
def test_any_number_of_threads_may_update_one_element(n):
    schedule = bound(ADD)
    at, x = np.full(n, 3, np.int32), np.arange(n, dtype=np.float32)
    found = build(schedule, target="simt")(at, x, np.zeros(8, np.float32))
    np.testing.assert_array_equal(found, [0, 0, 0, n * (n - 1) / 2, 0, 0, 0, 0])


UPDATES = [
    (dtype, value)
    for dtype in ("f16", "bf16", "f32", "f64", "i8", "u8", "i16", "i32", "i64", "u32", "u64")
    for value in ("y[p] + x[vi]", "y[p] * x[vi]", "min(y[p], x[vi])", "max(y[p], x[vi])")
] + [(dtype, f"y[p] {op} x[vi]") for dtype in ("i8", "u32", "i64") for op in "&|^"]


@pytest.mark.parametrize(("dtype", "value"), UPDATES)
def test_every_update_is_atomic_on_every_dtype(dtype, value):
    text = SCATTER.format(dtype=dtype, value=value)
    rng = np.random.default_rng(1)
    of = dtype_of(dtype).numpy
    at = rng.integers(0, 8, 40, np.int32)
    x, y = (rng.integers(1, 4, size).astype(of) for size in (40, 8))
    found = build(bound(text), target="simt")(at, x, y.copy())
    np.testing.assert_array_equal(found, expected(text, at, x, y))


def test_an_index_out_of_range_stops_the_kernel():
    at = np.zeros(64, np.int32)
    at[5] = 8
    x, y = np.ones(64, np.float32), np.zeros(8, np.float32)
    schedule = Schedule(parse(BINS))
    with pytest.raises(KernelError, match=r"value 8, exclusive upper bound 8") as caught:
        build(schedule)(at, x, y)
    assert "in block 's', in checked(idx[i], 0, 8)" in str(caught.value)
    schedule.bind("i", "threadIdx.x")
    with pytest.raises(TrapError, match=r"value 8, exclusive upper bound 8") as trapped:
        build(schedule, target="simt")(at, x, y)
    assert "of 's' of kernel 'f'" in str(trapped.value)


def test_rows_are_added_to_one_row_by_several_thread_blocks():
    axis = 'thread(64, "blockIdx.x")'
    x = np.arange(384, dtype=np.float32).reshape(64, 6)
    found = build(parse(ROWS.format(axis=axis)), target="simt")(x, np.zeros(6, np.float32))
    np.testing.assert_array_equal(found, x.sum(0))


def test_a_reduction_over_the_threads_of_a_block_is_combined_without_atomics():
    assert unchanged(NAME, ROWS.format(axis='thread(64, "threadIdx.x")'), GPU)


def test_an_update_of_different_elements_is_not_atomic():
    text = """
@prim_func
def f(x: Buffer[(64,), f32], y: InOut[(64,), f32]):
    for i in thread(64, "threadIdx.x"):
        with block("s"):
            vi = spatial(i)
            y[vi] += x[vi]
"""
    assert unchanged(NAME, text, GPU)


MIXED = """
@prim_func
def f(at: Buffer[(64,), i32], x: Buffer[(64,), f32], y: InOut[(8,), f32]{more}):
    for i in range(64):
        with block("s"):
            vi = reduce(i)
            with checked(at[vi], 0, 8) as p:
                y[p] += x[vi]
{second}
"""
READS = """        with block("r"):
            wi = spatial(i)
            z[wi] = y[wi % 8]"""
OTHER = """        with block("r"):
            wi = reduce(i)
            with checked(at[wi], 0, 8) as q:
                y[q] = max(y[q], x[wi])"""
SAME = """        with block("r"):
            wi = reduce(i)
            with checked(at[wi], 0, 8) as q:
                y[q] += x[wi] * 2.0"""


@pytest.mark.parametrize(("more", "second"), [(", z: Out[(64,), f32]", READS), ("", OTHER)])
@pytest.mark.parametrize("axis", ["threadIdx.x", "blockIdx.x"])
def test_threads_do_not_observe_partial_updates(more, second, axis):
    schedule = Schedule(parse(MIXED.format(more=more, second=second)))
    rejected(
        schedule, Bind(schedule.get_loop("i"), axis), Bind.Requires.INDEPENDENT_ITERATIONS, "'y'"
    )


def test_two_blocks_with_the_same_update_are_atomic():
    text = MIXED.format(more="", second=SAME)
    schedule = Schedule(parse(text))
    schedule.bind("i", "threadIdx.x")
    at, x = np.arange(64, dtype=np.int32) % 5, np.ones(64, np.float32)
    found = build(schedule, target="simt")(at, x, np.zeros(8, np.float32))
    np.testing.assert_array_equal(found, expected(text, at, x, np.zeros(8, np.float32)))


def test_a_virtual_thread_does_not_update_atomically():
    schedule = Schedule(parse(BINS))
    rejected(
        schedule, Bind(schedule.get_loop("i"), "vthread"), Bind.Requires.ITERATION_KINDS, "'s'"
    )


def test_a_histogram_in_shared_memory_is_separated_from_its_copy_by_a_barrier():
    text = """
@prim_func
def f(at: Buffer[(64,), i32], y: Out[(8,), i32]):
    t = alloc((8,), i32, scope="shared")
    for k in thread(64, "threadIdx.x"):
        with block("zero"):
            vk = spatial(k)
            guard(k < 8)
            t[vk] = 0
    for i in thread(64, "threadIdx.x"):
        with block("count"):
            vi = reduce(i)
            with checked(at[vi], 0, 8) as p:
                t[p] += 1
    for j in thread(64, "threadIdx.x"):
        with block("copy"):
            vj = spatial(j)
            guard(j < 8)
            y[vj] = t[vj]
"""
    text = text.replace("spatial(k)", "spatial(8, k)").replace("spatial(j)", "spatial(8, j)")
    module = parse(text)
    shown = to_text(lower_kernel(module.prim("f"), Target("simt")).function)
    assert shown.count("barrier") == 2
    assert shown.count("atomic_add(t") == 1
    at = np.arange(64, dtype=np.int32) % 7
    np.testing.assert_array_equal(build(module, target="simt")(at), np.bincount(at, minlength=8))


def test_an_update_inside_of_a_block_of_a_bound_loop_is_not_atomic():
    schedule = Schedule(parse(ROWS.format(axis="range(64)")))
    i, j = schedule.get_loops(schedule.get_block("s"))
    schedule.reorder((j, i))
    schedule.bind(j, "threadIdx.x")
    schedule.blockize(i)
    assert "atomic" not in to_text(lower_kernel(schedule.module.prims[0], GPU).function)
    x, y = np.arange(384, dtype=np.float32).reshape(64, 6) % 7, np.ones(6, np.float32)
    found = build(schedule, target="simt")(x, y)
    np.testing.assert_array_equal(found, 1 + x.sum(axis=0))


@pytest.mark.parametrize("init", [False, True], ids=["in place", "init"])
def test_a_reduction_over_threads_is_atomic_if_other_loops_update_an_element_twice(init):
    """A combination after the loops would add the partial results of an element repeatedly."""
    text = """
@prim_func
def f(x: Buffer[(96,), i32], y: InOut[(6,), i32]):
    for r in range(3):
        for i in range(4):
            for k in range(32):
                with block("s"):
                    vo, vr = spatial(6, i + r), reduce(96, r * 32 + k)
                    y[vo] += x[vr]
"""
    if init:
        text = text.replace("y[vo] +=", "with init(): y[vo] = 0\n                    y[vo] +=")
    schedule = Schedule(parse(text))
    original = schedule.module.prims[0]
    schedule.bind("k", "threadIdx.x")
    launcher = Launcher(schedule.module.prims[0])
    assert "atomic_add(y" in to_text(launcher.function)
    x, y = np.arange(96, dtype=np.int32), np.arange(6, dtype=np.int32)
    expected = y.copy()
    run_prim(original, [x, expected])
    report = launcher.run([x, y], {})
    np.testing.assert_array_equal(y, expected)
    assert report.findings == ()


HISTOGRAM = """
@prim_func
def f(at: Buffer[(64,), i32], x: Buffer[(64,), i32], y: Out[(8,), i32]):
    t = alloc((8,), i32)
    u = alloc((8,), i32)
    for a in range(8):
        with block("zero"):
            va = spatial(a)
            t[va] = 0
            u[va] = 0
    for i in range(64):
        with block("s"):
            vi = {kind}(i)
            with checked(at[vi], 0, 8) as p:
                t[p] += x[vi]
                u[p] += x[vi] * x[vi]
    for b in range(8):
        with block("y"):
            vb = spatial(b)
            y[vb] = t[vb] + u[vb]
"""


@pytest.mark.parametrize("kind", ["reduce", "spatial"])
@pytest.mark.parametrize("scopes", [("global", "global"), ("shared", "global")])
def test_temporaries_that_several_threads_update_are_not_private_to_each(kind, scopes):
    schedule = Schedule(parse(HISTOGRAM.format(kind=kind)))
    schedule.bind("i", "threadIdx.x")
    for name, scope in zip("tu", scopes, strict=True):
        schedule.set_scope(name, scope)
    launcher = Launcher(schedule.module.prims[0])
    at, x, y = np.arange(64, dtype=np.int32) % 7, np.arange(64, dtype=np.int32), np.zeros(8, "i4")
    report = launcher.run([at, x, y], {})
    expected = np.bincount(at, x + x * x, 8).astype(np.int32)
    np.testing.assert_array_equal(y, expected)
    assert report.findings == ()


@pytest.mark.parametrize("kind", ["reduce", "spatial"])
@pytest.mark.parametrize("scopes", [("local", "local"), ("shared", "local"), ("local", "global")])
def test_updates_of_several_threads_in_the_memory_of_one_are_rejected(kind, scopes):
    schedule = Schedule(parse(HISTOGRAM.format(kind=kind)))
    schedule.bind("i", "threadIdx.x")
    for name, scope in zip("tu", scopes, strict=True):
        schedule.set_scope(name, scope)
    with pytest.raises(MemoryScopeError, match=r"private to a thread.*may update the same element"):
        lower_kernel(schedule.module.prims[0], GPU)


def test_updates_of_a_temporary_inside_one_iteration_of_a_thread_may_be_in_its_memory():
    text = """
@prim_func
def f(at: Buffer[(8, 4), i32], y: Out[(8, 3), i32]):
    t = alloc((3,), i32, scope="local")
    for i in thread(8, "threadIdx.x"):
        for a in range(3):
            with block("zero"):
                va = spatial(a)
                t[va] = 0
        for k in range(4):
            with block("s"):
                vi, vk = spatial(i), reduce(k)
                with checked(at[vi, vk], 0, 3) as p:
                    t[p] += 1
        for b in range(3):
            with block("y"):
                wi, wb = spatial(i), spatial(b)
                y[wi, wb] = t[wb]
"""
    launcher = Launcher(parse(text).prims[0])
    at, y = np.arange(32, dtype=np.int32).reshape(8, 4) % 3, np.zeros((8, 3), np.int32)
    report = launcher.run([at, y], {})
    np.testing.assert_array_equal(y, [np.bincount(row, minlength=3) for row in at])
    assert report.findings == ()


def test_two_sums_over_threads_without_init_are_combined():
    schedule = Schedule(
        parse("""
n = symbols("n", lower=1)

@prim_func
def f(x: Buffer[(3, n), i32], y: Out[(3, n), i32]):
    s = alloc((3,), i32)
    q = alloc((3,), i32)
    for i in range(3):
        for j in range(n):
            with block("sums"):
                vi, vj = spatial(i), reduce(j)
                with init():
                    s[vi] = 0
                    q[vi] = 0
                s[vi] += x[vi, vj]
                q[vi] += x[vi, vj] * 2
    for a in range(3):
        for b in range(n):
            with block("y"):
                va, vb = spatial(a), spatial(b)
                y[va, vb] = x[va, vb] + s[va] * q[va]
""")
    )
    schedule.bind("i", "blockIdx.x")
    schedule.bind("a", "blockIdx.x")
    outer, inner = schedule.split("j", (None, 8))
    _, last = schedule.split("b", (None, 8))
    schedule.decompose_reduction("sums", outer)
    schedule.bind(inner, "threadIdx.x")
    schedule.bind(last, "threadIdx.x")
    launcher = Launcher(schedule.module.prims[0])
    x = np.arange(3 * 19, dtype=np.int32).reshape(3, 19)
    y = np.zeros_like(x)
    report = launcher.run([x, y], {"n": 19})
    total = x.sum(1, keepdims=True, dtype=np.int32)
    np.testing.assert_array_equal(y, x + total * total * 2)
    assert report.findings == ()


OWN_SUMS = """
n, k = symbols("n k", lower=0)

@prim_func
def normed(x: Buffer[(n, k), i32], y: Out[(n, k), i32]):
    t = alloc((n,), i32)
    for i in range(n):
        for j0 in range(ceildiv(k, 32)):
            for j1 in thread(32, "threadIdx.x"):
                with block("zero"):
                    vi = spatial(i)
                    t[vi] = 0
                for r in range(k):
                    with block("sum"):
                        wi, wr = spatial(i), reduce(r)
                        t[wi] += x[wi, wr]
                with block("minus"):
                    ui, uj = spatial(i), spatial(k, j0 * 32 + j1)
                    guard(j0 * 32 + j1 < k)
                    y[ui, uj] = x[ui, uj] - t[ui]
"""


@pytest.mark.parametrize("k", [0, 2, 40])
def test_the_sums_that_each_thread_computes_for_itself_are_not_atomic(k):
    """Each thread writes the zero before its sum, so it has a sum of its own."""
    assert unchanged(NAME, OWN_SUMS, GPU)
    x = np.arange(3 * k, dtype=np.int32).reshape(3, k)
    run = build(parse(OWN_SUMS), "simt")["normed"]
    np.testing.assert_array_equal(run(x), x - x.sum(axis=1, keepdims=True))


NESTED = """
n = symbols("n", lower=1)

@prim_func
def f(x: Buffer[(4 * n, n), i32], y: InOut[(4 * n,), {dtype}]):
    for i in range(n):
        for k in range(n):
            with block("outer"):
                vo, vk = spatial(i), reduce(k)
                with init():
                    for j0 in range(4):
                        with block("first"):
                            vi0 = spatial(4 * n, vo * 4 + j0)
                            y[vi0] = {dtype}(i32(0))
                for j in range(4):
                    with block("s"):
                        vi, wk = spatial(4 * n, vo * 4 + j), reduce(n, vk)
                        y[vi] += {dtype}(x[vi, wk])
"""


@pytest.mark.parametrize("dtype", ["u2", "f32"])
@pytest.mark.parametrize("n", [1, 3, 300])
def test_an_element_that_one_thread_writes_in_two_inner_blocks_is_not_atomic(dtype, n):
    """The inner blocks of a reduction and of its init have different loops."""
    module = parse(NESTED.format(dtype=dtype))
    schedule = Schedule(module, target=GPU)
    schedule.default_schedule()
    assert "thread(" in str(schedule)
    assert "atomic" not in to_text(lower_kernel(schedule.module.prims[0], GPU).function)
    x = np.random.default_rng(n).integers(-9, 9, (4 * n, n)).astype(np.int32)
    y = np.zeros(4 * n, dtype_of(dtype).numpy)
    copy = y.copy()
    run_prim(module.prims[0], [x, copy])
    np.testing.assert_array_equal(build(schedule, target="simt")(x, y), copy)
