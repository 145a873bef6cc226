"""Memory of calls: every exit from a call releases its allocations."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.codegen.errors import KernelError, OutOfMemoryError, SizeError
from tilewright.ir.dtype import f32, i64
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import CallTIR, MatchCast, TensorInfo
from tilewright.ir.loop.builder import Builder
from tilewright.ir.loop.nodes import Index, Let, Load, PrimFunc, Store
from tilewright.ir.module import Module
from tilewright.ir.symbolic import UnboundSymbolError, as_expr, var

from tests.codegen.runtime.helpers import CountingMemory, add_kernel, chain, tensor


def ones(n: int) -> np.ndarray:
    return np.ones(n, np.float32)


def checked_kernel() -> PrimFunc:
    """y[i] = i, after reading a position from ``at`` that has to be below n."""
    n, b = var("n", lower=0), Builder("checked")
    x, at = b.param("x", (n,), f32), b.param("at", (1,), i64)
    y = b.param("y", (n,), f32, "out")
    k = var("k")
    zero = as_expr(0)
    store = Store(y, (k,), Index(k, f32))
    b.block((), lambda: Let(k, zero, n, Load(at, (zero,)), "checked", store), name="y")
    del x
    return b.finish()


def failing() -> Module:
    n, g = var("n"), GraphBuilder("main")
    x, at = g.param("x", tensor(n)), g.param("at", TensorInfo((as_expr(1),), i64))
    h = g.bind("h", tensor(n), CallTIR("add", (x, x), (tensor(n),)))
    y = g.bind("y", tensor(n), CallTIR("checked", (h, at), (tensor(n),)))
    return Module().with_functions(add_kernel(), checked_kernel(), g.finish((h, y)))


def test_results_free_their_memory_when_they_are_deleted() -> None:
    memory = CountingMemory()
    exe = compile(chain(5), table=memory.table())
    results = [exe(ones(7)) for _ in range(3)]
    assert len(memory.live) == 3 + 1
    del results
    assert len(memory.live) == 1
    exe.trim()
    assert not memory.live


def test_an_executable_frees_its_arenas_when_it_is_deleted() -> None:
    memory = CountingMemory()
    exe = compile(chain(5), table=memory.table())
    exe(ones(7))
    assert len(memory.live) == 1
    del exe
    gc.collect()
    assert not memory.live


def test_a_failing_kernel_is_named_and_all_memory_is_released() -> None:
    memory = CountingMemory()
    exe = compile(failing(), table=memory.table())
    with pytest.raises(KernelError, match="out of range") as caught:
        exe(ones(4), np.array([9]))
    assert "kernel 'checked'" in caught.value.where
    assert 9 in caught.value.details["numbers"]
    exe.trim()
    assert not memory.live
    assert exe(ones(4), np.array([2]))[1][2] == 2


@pytest.mark.parametrize("allowed", range(4))
def test_memory_that_runs_out_anywhere(allowed: int) -> None:
    memory = CountingMemory()
    exe = compile(failing(), table=memory.table())
    memory.fail_at = allowed
    if allowed < 3:  # the arena, and two results
        with pytest.raises(OutOfMemoryError, match="bytes"):
            exe(ones(4), np.array([2]))
    else:
        exe(ones(4), np.array([2]))
    exe.trim()
    assert not memory.live
    memory.fail_at = None
    assert exe(ones(4), np.array([2]))[0].tolist() == [2.0] * 4


def late_module() -> Module:
    """main(count) makes a tensor whose size it reads from ``count``, and adds it to itself."""
    m, g = var("m", lower=0), GraphBuilder("main")
    count = g.param("count", TensorInfo((as_expr(1),), i64))
    g.bind("known", TensorInfo((as_expr(1),), i64, elements=(m,)), MatchCast(
        count, TensorInfo((as_expr(1),), i64, elements=(m,))))  # fmt: skip
    n, b = var("n"), Builder("iota")
    n = b.scalar(n)
    y = b.param("y", (n,), f32, "out")
    b.compute(y, lambda i: Index(i, f32))
    h = g.bind("h", tensor(m), CallTIR("iota", (), (tensor(m),), (m,)))
    r = g.bind("r", tensor(m), CallTIR("add", (h, h), (tensor(m),)))
    s = g.bind("s", tensor(m), CallTIR("add", (r, h), (tensor(m),)))
    return Module().with_functions(b.finish(), add_kernel(), g.finish((s,)))


def test_sizes_known_only_on_the_way() -> None:
    memory = CountingMemory()
    exe = compile(late_module(), table=memory.table())
    for n in (5, 0, 3):
        assert exe(np.array([n])).tolist() == [3.0 * k for k in range(n)]
    exe.trim()
    assert not memory.live


@pytest.mark.parametrize("allowed", range(4))
def test_memory_that_runs_out_on_the_way(allowed: int) -> None:
    memory = CountingMemory()
    exe = compile(late_module(), table=memory.table())
    memory.fail_at = allowed
    with pytest.raises(OutOfMemoryError):
        exe(np.array([5]))
    exe.trim()
    assert not memory.live


def test_invalid_sizes_on_the_way() -> None:
    exe = compile(late_module())
    with pytest.raises(SizeError, match="overflows: sizes must be less than 2"):
        exe(np.array([1 << 61]))
    with pytest.raises(OutOfMemoryError):
        exe(np.array([1 << 56]))


def test_a_negative_size() -> None:
    n, g = var("n", lower=0), GraphBuilder("main")
    x = g.param("x", tensor(n))
    b = Builder("shorter")
    m = var("m")
    a, y = b.param("a", (m,), f32), b.param("y", (m - 3,), f32, "out")
    b.compute(y, lambda i: b.load(a, i + 3))
    h = g.bind("h", tensor(n - 3), CallTIR("shorter", (x,), (tensor(n - 3),)))
    exe = compile(Module().with_functions(b.finish(), g.finish((h,))))
    assert exe(ones(5)).tolist() == [1.0, 1.0]
    assert exe(ones(3)).tolist() == []
    with pytest.raises(SizeError, match="is negative: -1"):
        exe(ones(2))


def test_an_overflow_is_noticed_at_entry() -> None:
    n, m = var("n", lower=0), var("m", lower=0)
    g = GraphBuilder("main")
    x, y = g.param("x", tensor(n, 0)), g.param("y", tensor(m, 0))
    b = Builder("outer")
    p, q = var("p"), var("q")
    b.param("a", (p, 0), f32)
    b.param("b", (q, 0), f32)
    out = b.param("y", (p, q, p, q), f32, "out")
    b.compute(out, lambda i, *_: Index(i, f32))
    info = tensor(n, m, n, m)
    h = g.bind("h", info, CallTIR("outer", (x, y), (info,)))
    exe = compile(Module().with_functions(b.finish(), g.finish((h,))))
    assert exe(np.ones((2, 0), "f"), np.ones((3, 0), "f")).shape == (2, 3, 2, 3)
    huge = np.ones((1 << 33, 0), np.float32)
    with pytest.raises(SizeError, match="overflows: sizes must be less than 2"):
        exe(huge, huge)


def test_a_small_shape_after_a_large_one_uses_its_own_plan() -> None:
    exe = compile(chain(6))
    for n in (1000, 3, 1000, 0, 17, 3):
        assert exe(ones(n)).tolist() == [7.0] * n


def test_more_shapes_than_plans_are_kept() -> None:
    exe = compile(chain(3))
    for n in [*range(1, 30), *range(1, 30)]:
        assert exe(ones(n)).tolist() == [4.0] * n


def test_the_memory_plan_can_be_queried() -> None:
    exe = compile(chain(6))
    plan = exe.memory({"n": 1000})
    assert plan.arena == plan.peak == 2 * 4032
    assert plan.unshared >= plan.arena
    assert all(s.offset + s.bytes <= plan.arena for s in plan.storages)
    with pytest.raises(UnboundSymbolError, match="no value for symbol 'n'"):
        exe.memory({})
