"""Cached memory plans: reuse for other sizes, room for growth, limits, and threads."""

from __future__ import annotations

import ctypes
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tilewright.codegen import compile
from tilewright.codegen.build.rtlib_object import rtlib_address
from tilewright.codegen.errors import OutOfMemoryError
from tilewright.codegen.rtlib import layout, plans
from tilewright.codegen.rtlib.language import Ptr, load_i64, move, store_i64
from tilewright.codegen.rtlib.plan_table import PlanLayout, plan_table
from tilewright.codegen.runtime.table import MemoryProvider, RuntimeTable
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import CallTIR
from tilewright.ir.loop.builder import Builder
from tilewright.ir.loop.nodes import Load, PrimFunc
from tilewright.ir.module import Module
from tilewright.ir.symbolic import as_expr, var

from tests.codegen.runtime.helpers import CountingMemory, add_kernel, chain, tensor
from tests.cpu_time import relative_ms, timed

PLACE = ctypes.CFUNCTYPE(ctypes.c_int64, *([ctypes.c_void_p] * 4))


def ones(n: int) -> np.ndarray:
    return np.ones(n, np.float32)


def outer_kernel() -> PrimFunc:
    """Return a kernel of y[i, j] = a[i]."""
    n, m, b = var("n", lower=0), var("m", lower=0), Builder("outer")
    a = b.param("a", (n,), tensor(n).dtype)
    b.param("b", (m,), tensor(m).dtype)
    y = b.param("y", (n, m), tensor(n).dtype, "out")
    b.compute(y, lambda i, j: Load(a, (i,)))
    return b.finish()


def row_kernel() -> PrimFunc:
    """Return a kernel of y[i] = the sum of a[i, :]."""
    n, m, b = var("n", lower=0), var("m", lower=0), Builder("row")
    a = b.param("a", (n, m), tensor(n).dtype)
    y = b.param("y", (n,), tensor(n).dtype, "out")
    b.reduce(y, (m,), lambda i, r: Load(a, (i, r)))
    return b.finish()


def attention() -> Module:
    """Return main(x, c) = x + rows of (x outer c), with temporaries of n, n * m and m elements."""
    n, m, g = var("n", lower=0), var("m", lower=0), GraphBuilder("main")
    x, c = g.param("x", tensor(n)), g.param("c", tensor(m))
    d = g.bind("d", tensor(m), CallTIR("add", (c, c), (tensor(m),)))
    s = g.bind("s", tensor(n, m), CallTIR("outer", (x, d), (tensor(n, m),)))
    r = g.bind("r", tensor(n), CallTIR("row", (s,), (tensor(n),)))
    q = g.bind("q", tensor(n), CallTIR("add", (r, x), (tensor(n),)))
    y = g.bind("y", tensor(n), CallTIR("add", (q, q), (tensor(n),)))
    return Module().with_functions(add_kernel(), outer_kernel(), row_kernel(), g.finish((y,)))


def planned(exe, **shapes: int) -> int:
    return exe.memory(shapes).call.planned


def test_a_thousand_growing_sizes_make_few_plans() -> None:
    memory = CountingMemory()
    exe = compile(chain(6), table=memory.table())
    for n in range(1000):
        assert (exe(ones(n)) == 7).all()
    assert planned(exe, n=0) <= 8
    assert memory.allocations - 1000 <= planned(exe, n=0)
    assert exe.memory({"n": 0}).call.reused >= 990


def test_a_growing_cache_with_constant_and_square_sizes_makes_few_plans() -> None:
    exe = compile(attention())
    for n in range(200, 1000):
        x = ones(4)
        assert (exe(x, ones(n)) == 2 * (n + 1)).all()
    assert planned(exe, n=4, m=4) <= 16
    exe = compile(attention())
    for n in range(1, 400):
        assert (exe(ones(n), ones(n)) == 2 * (n + 1)).all()
    assert planned(exe, n=4, m=4) <= 60


def test_decreasing_sizes_make_few_plans() -> None:
    exe = compile(chain(6))
    for n in range(20_000, 0, -20):
        assert (exe(ones(n)) == 7).all()
    assert planned(exe, n=1) <= 20


def test_the_first_plan_and_a_large_step_are_exact() -> None:
    exe = compile(chain(6))
    for n in (10_000, 20_000, 40_000, 1000):
        exe(ones(n))
        plan = exe.memory({"n": n})
        assert (plan.call.kind, plan.call.total) == ("exact", plan.arena)


def test_constant_sizes_get_no_room_for_growth() -> None:
    exe = compile(attention())
    for m in (1000, 1010, 1100):
        exe(ones(5000), ones(m))
    plan = exe.memory({"n": 5000, "m": 1100})
    assert plan.call.kind == "larger"
    assert plan.arena < plan.call.total <= 1.25 * plan.arena
    fixed = sum(s.bytes for s in plan.storages if "d" not in s.tensors and "s" not in s.tensors)
    assert plan.call.total - fixed <= 1.25 * (plan.arena - fixed)


@pytest.fixture(scope="module")
def growing():
    return compile(chain(6))


@given(sizes=st.lists(st.integers(0, 3000), min_size=1, max_size=30))
def test_an_arena_is_at_most_a_quarter_and_a_page_too_large(growing, sizes: list[int]) -> None:
    for n in sizes:
        assert (growing(ones(n)) == 7).all()
        plan = growing.memory({"n": n})
        assert plan.call.total <= plan.arena + plan.arena // 4 + plans.SLACK


def test_alternating_shapes_make_each_plan_once() -> None:
    exe = compile(chain(6))
    shapes = [64 << (2 * k) for k in range(layout.PLAN_COUNT)]
    for _ in range(5):
        for n in shapes:
            assert exe(ones(n))[-1] == 7
    assert planned(exe, n=1) == len(shapes)


def test_size_zero_before_and_after_other_sizes() -> None:
    exe = compile(attention())
    for n, m in ((0, 0), (3, 4), (0, 7), (5, 0), (2000, 0), (0, 2000), (300, 200), (0, 0)):
        assert (exe(ones(n), ones(m)) == 2 * (m + 1)).all()


def test_threads_with_growing_sizes() -> None:
    exe = compile(attention())

    def work(seed: int) -> bool:
        start = random.Random(seed).randrange(1, 50)
        for n in range(start, start + 120):
            if n % 10 == 0:
                plan = exe.memory({"n": n, "m": n + seed})
                assert plan.peak <= plan.call.total
            assert (exe(ones(n), ones(n + seed)) == 2 * (n + seed + 1)).all()
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))
    assert planned(exe, n=1, m=1) <= 16 * 40


class LimitedMemory:
    """A memory provider that refuses allocations above a number of bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.live: dict[int, object] = {}

    def allocate(self, size: int, alignment: int) -> int:
        if size > self.limit:
            return 0
        memory = ctypes.create_string_buffer(size + alignment)
        address = -(-ctypes.addressof(memory) // alignment) * alignment
        self.live[address] = memory
        return address

    def free(self, address: int) -> None:
        del self.live[address]

    def table(self) -> RuntimeTable:
        provider = MemoryProvider(self.allocate, self.free)
        return RuntimeTable(threads=1, parallel="serial", memory=provider)


def test_room_for_growth_is_given_up_if_memory_does_not_suffice() -> None:
    memory = LimitedMemory(1 << 30)
    exe = compile(chain(6), table=memory.table())
    exe(ones(10_000))
    assert exe.memory({"n": 10_100}).call.kind == "growing"
    exact = exe.memory({"n": 10_100}).arena
    memory.limit = exact
    assert (exe(ones(10_100)) == 7).all()
    assert exe.memory({"n": 10_100}).call.total == exact
    with pytest.raises(OutOfMemoryError):
        exe(ones(20_000))
    assert (exe(ones(10_100)) == 7).all()


def test_a_larger_plan_is_given_up_if_memory_does_not_suffice_after_trim() -> None:
    memory = LimitedMemory(1 << 30)
    exe = compile(chain(6), table=memory.table())
    for n in (10_000, 10_100):
        exe(ones(n))
    plan = exe.memory({"n": 10_100})
    assert plan.call.kind == "larger"
    exe.trim()
    memory.limit = plan.arena
    for _ in range(2):
        assert (exe(ones(10_100)) == 7).all()
    assert exe.memory({"n": 10_100}).call.kind == "exact"


def wide(count: int) -> Module:
    """Return main(x), whose ``count`` temporaries of n elements live at once."""
    n, g = var("n", lower=0), GraphBuilder("main")
    x = g.param("x", tensor(n, 0))
    b = Builder("fill")
    p = var("p", lower=0)
    a = b.param("a", (p, 0), tensor(p).dtype)
    out = b.param("y", (p,), tensor(p).dtype, "out")
    b.reduce(out, (as_expr(0),), lambda i, r: Load(a, (i, r)))
    made = [g.bind(f"h{k}", tensor(n), CallTIR("fill", (x,), (tensor(n),))) for k in range(count)]
    total = made[0]
    for k, value in enumerate(made[1:]):
        total = g.bind(f"t{k}", tensor(n), CallTIR("add", (total, value), (tensor(n),)))
    return Module().with_functions(add_kernel(), b.finish(), g.finish((total,)))


def test_a_sum_of_sizes_that_overflows_is_out_of_memory() -> None:
    exe = compile(wide(40))
    assert exe(np.ones((3, 0), np.float32)).tolist() == [0, 0, 0]
    for exponent in (53, 55, 57):
        with pytest.raises(OutOfMemoryError, match="bytes"):
            exe(np.ones((1 << exponent, 0), np.float32))
    assert exe(np.ones((4, 0), np.float32)).tolist() == [0, 0, 0, 0]


sizes_of_steps = st.lists(
    st.lists(st.integers(0, 4000), min_size=5, max_size=5), min_size=1, max_size=12
)
RANGES = [(0, 3), (1, 2), (2, 6), (4, 5), (5, 9)]


def check(plan: Ptr, table: Ptr, sizes: list[int]) -> None:
    """Check that a plan is valid for sizes: live storages are disjoint, and within the arena."""
    offsets = [load_i64(plan, layout.PLAN_OFFSETS + 8 * k) for k in range(len(sizes))]
    total = load_i64(plan, layout.PLAN_TOTAL)
    assert all(0 <= o <= o + s <= total for o, s in zip(offsets, sizes, strict=True))
    for a, (first, last) in enumerate(RANGES):
        for b, (other_first, other_last) in enumerate(RANGES[:a]):
            if first <= other_last and other_first <= last and sizes[a] and sizes[b]:
                assert offsets[a] + sizes[a] <= offsets[b] or offsets[b] + sizes[b] <= offsets[a]


@given(sizes_of_steps)
def test_every_chosen_plan_is_valid_for_the_sizes(steps: list[list[int]]) -> None:
    records = PlanLayout(1, len(RANGES))
    slot = (ctypes.c_int64 * (records.slot_bytes // 8))()
    words = plan_table(1, RANGES)
    table = (ctypes.c_int64 * len(words))(*words)
    at, rows = Ptr(ctypes.addressof(slot)), Ptr(ctypes.addressof(table))
    scratch = move(at, records.scratch)
    for drawn in steps:
        sizes = [64 * s for s in drawn]
        for k, size in enumerate(sizes):
            store_i64(at, records.sizes + 8 * k, size)
        given_sizes = move(at, records.sizes)
        peak = plans.peak_of(rows, given_sizes)
        plan = plans.dominating_plan(at, rows, given_sizes, peak)
        if not plan:
            base = plans.exceeded_plan(at, rows, given_sizes, peak)
            plan = plans.oldest_plan(at, rows)
            plans.fill_plan(at, rows, base, plan, scratch)
        key = (ctypes.c_int64 * 1)(sum(sizes))
        plans.keep_shape(at, plan, Ptr(ctypes.addressof(key)), rows)
        check(plan, rows, sizes)
        assert load_i64(plan, layout.PLAN_PEAK) <= peak + peak // 4 + plans.SLACK
        again = plans.dominating_plan(at, rows, given_sizes, peak)
        assert again
        check(again, rows, sizes)


def test_more_storages_than_workspaces_have_memory_for() -> None:
    memory = CountingMemory()
    exe = compile(wide(layout.SMALL_COUNT + 10), table=memory.table())
    x = np.ones((3, 0), np.float32)
    assert exe(x).tolist() == [0, 0, 0]
    assert len(exe.spec().storages) > layout.SMALL_COUNT
    exe.trim()
    assert not memory.live
    for allowed in range(3):
        memory.fail_at = memory.allocations + allowed
        with pytest.raises(OutOfMemoryError):
            exe(np.ones((3 + 100 * allowed, 0), np.float32))
        exe.trim()
        assert not memory.live


@timed
@pytest.mark.parametrize("kind", ["narrow", "uniform"])
def test_planning_time_is_nearly_linear(kind: str) -> None:
    def milliseconds(count: int) -> float:
        choose = random.Random(1)
        steps = [sorted(choose.choices(range(count), k=2)) for _ in range(count)]
        live = [(k, k + 3) for k in range(count)] if kind == "narrow" else steps
        words = plan_table(0, [(first, last) for first, last in live])
        table = (ctypes.c_int64 * len(words))(*words)
        sizes = (ctypes.c_int64 * count)(*(64 * choose.randint(1, 99) for _ in range(count)))
        offsets = (ctypes.c_int64 * count)()
        scratch = (ctypes.c_int64 * (PlanLayout(0, count).sweep_bytes // 8))()
        place = PLACE(rtlib_address(plans.place))
        return relative_ms(lambda: place(table, sizes, offsets, scratch))

    small = min(milliseconds(2000) for _ in range(3))
    assert min(milliseconds(20_000) for _ in range(2)) <= 40 * small


def test_the_plan_of_a_call_while_all_workspaces_are_busy_is_exact() -> None:
    exe = compile(chain(6))
    for n in (10_000, 10_100):
        exe(ones(n))
    function = exe["main"]
    busy = [
        (layout.INSTANCE_SLOTS + k * function.spec.slot + layout.SLOT_BUSY) // 8
        for k in range(layout.SLOT_COUNT)
    ]
    for at in busy:
        function._instance[at] = 1
    plan = exe.memory({"n": 10_100})
    assert (plan.call.kind, plan.call.total) == ("exact", plan.arena)
    assert (exe(ones(10_100)) == 7).all()
    for at in busy:
        function._instance[at] = 0
    assert exe.memory({"n": 10_100}).call.kind == "larger"
