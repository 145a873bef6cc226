"""Steps on programs whose temporaries are allocated in loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.interpreter import call_prim, run_graph
from tilewright.ir.loop.nodes import Alloc, For
from tilewright.ir.loop.visit import allocations, walk
from tilewright.ir.script import parse
from tilewright.ir.verify import violations
from tilewright.schedules import Schedule, StepError

from tests.codegen.kernels import LEVELS, build

if TYPE_CHECKING:
    from collections.abc import Callable

    Step = Callable[[Schedule], object]

INNER = """
@prim_func
def f(x: Buffer[(4, 8), f32], y: Out[(4, 8), f32]):
    for i in range(4):
        for j in range(8):
            t = alloc((2,), f32, scope="local")
            for k in range(2):
                with block("t"):
                    vi, vj, vk = spatial(i), spatial(j), spatial(k)
                    t[vk] = x[vi, vj] + index(vk, f32)
            with block("y"):
                wi, wj = spatial(i), spatial(j)
                y[wi, wj] = t[0] * t[1]
"""

BETWEEN = """
@prim_func
def f(x: Buffer[(4, 8), f32], y: Out[(4, 8), f32]):
    for i in range(4):
        t = alloc(({size},), f32)
        for j in range(8):
            with block("t"):
                vi, vj = spatial(i), spatial(j)
                t[0] = x[vi, vj] + 1.0
            with block("y"):
                wi, wj = spatial(i), spatial(j)
                y[wi, wj] = t[0] * 2.0
"""

STAGES = """
@prim_func
def f(x: Buffer[(4, 8), f32], y: Out[(4, 8), f32]):
    {outside}
    for i in range(4):
        {inside}
        for j in range(8):
            with block("t"):
                vi, vj = spatial(i), spatial(j)
                t[vj] = x[vi, vj] + 1.0
        for k in range(8):
            with block("u"):
                ui, uk = spatial(i), spatial(k)
                u[uk] = t[uk] * 2.0
        for l in range(8):
            with block("y"):
                wi, wl = spatial(i), spatial(l)
                y[wi, wl] = u[7 - wl] - 1.0
"""
OUTSIDE = STAGES.format(outside="t = alloc((8,), f32)\n    u = alloc((8,), f32)", inside="")
INSIDE = STAGES.format(outside="", inside="t = alloc((8,), f32)\n        u = alloc((8,), f32)")

SUMS = """
@prim_func
def f(x: Buffer[(4, 8), f32], y: Out[(4, 8), f32]):
    for i in range(4):
        s = alloc((1,), f32)
        for k in range(8):
            with block("s"):
                vi, vk = spatial(i), reduce(k)
                with init(): s[0] = 0.0
                s[0] += x[vi, vk]
        for j in range(8):
            with block("y"):
                wi, wj = spatial(i), spatial(j)
                y[wi, wj] = s[0] - x[wi, wj]
"""

COPY = """
@prim_func
def f(x: Buffer[(4, 8), f32], y: Out[(4, 8), f32]):
    for i in range(4):
        for j in range(8):
            with block("w"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 2.0
"""


def after(text: str, *steps: Step) -> Schedule:
    """Apply steps, and compare the results of the interpreter and of native code."""
    module = parse(text)
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    (expected,) = call_prim(module.prim("f"), [x])
    sch = Schedule(module)
    for step in steps:
        step(sch)
        func = sch.module.prim("f")
        assert violations(sch.module) == ()
        assert str(parse(str(sch.module))) == str(sch.module)
        np.testing.assert_array_equal(call_prim(func, [x])[0], expected)
    actual = np.empty((4, 8), np.float32)
    assert build(sch.module.prim("f"), LEVELS[-1])(x, actual) == 0
    np.testing.assert_array_equal(actual, expected)
    return sch


def around(sch: Schedule, name: str) -> list[str]:
    """Return the loops around the allocation of a temporary, outermost first."""
    tree = sch.state.tree("f")
    (alloc,) = (a for a in allocations(tree.function.body) if a.buffer.name == name)
    loops = (getattr(s, "var", None) for s in tree.ancestors(alloc))
    return [v.name for v in loops if v is not None][::-1]


STEPS: list[tuple[str, str, tuple[Step, ...]]] = [
    ("split", INNER, (lambda s: s.split("j", factors=(None, 3)),)),
    ("parallel", INNER, (lambda s: s.parallel("i"),)),
    ("unroll", INNER, (lambda s: s.unroll("k"),)),
    ("vectorize", INNER, (lambda s: s.vectorize("j"),)),
    ("reorder", INNER, (lambda s: s.reorder("j", "i"),)),
    ("loop_partition", INNER, (lambda s: s.loop_partition("j", 3),)),
    ("epilogue", INNER, (lambda s: s.split("j", factors=(None, 3), tail="epilogue"),)),
    ("add_unit_loop", INNER, (lambda s: s.add_unit_loop("y"),)),
    ("cache_read", INNER, (lambda s: s.cache_read("t", "x", "local"),)),
    ("cache_read of a scoped temporary", INNER, (lambda s: s.cache_read("y", "t", "local"),)),
    ("cache_write", INNER, (lambda s: s.cache_write("y", "y", "local"),)),
    ("cache_write of a scoped temporary", INNER, (lambda s: s.cache_write("t", "t", "local"),)),
    ("set_scope", INNER, (lambda s: s.set_scope("t", "global"),)),
    ("transform_layout", INNER, (lambda s: s.transform_layout("t", lambda a: (a // 2, a % 2)),)),
    ("blockize", INSIDE, (lambda s: s.blockize("j"),)),
    ("cache_write of a sum", SUMS, (lambda s: s.cache_write("s", "s", "local"),)),
    ("split of a sum", SUMS, (lambda s: s.split("k", factors=(None, 3)),)),
    ("several", INSIDE, (
        lambda s: s.parallel("i"), lambda s: s.vectorize("j"), lambda s: s.split("k", (2, None)),
        lambda s: s.vectorize("l"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("text", "steps"), [s[1:] for s in STEPS], ids=[s[0] for s in STEPS])
def test_steps_keep_the_results(text: str, steps: tuple[Step, ...]):
    after(text, *steps)


def test_the_shape_follows_the_loop_variable():
    text = INNER.replace("(2,)", "(i * 8 + j + 2,)")
    sch = after(text, lambda s: s.split("j", factors=(None, 4)), lambda s: s.fuse("i", "j_0"))
    assert "t = alloc((" in str(sch)
    assert around(sch, "t") == ["i_j_0", "j_1"]


@pytest.mark.parametrize("step", [lambda s: s.fuse("i", "j"), lambda s: s.reorder("j", "i")])
def test_an_allocation_between_two_loops_moves_into_both(step: Step):
    sch = after(BETWEEN.format(size="1"), step)
    assert len(around(sch, "t")) == len(sch.get_loops("t"))


def test_an_allocation_whose_shape_depends_on_the_outer_loop_blocks_the_step():
    for step in (lambda s: s.fuse("i", "j"), lambda s: s.reorder("j", "i")):
        with pytest.raises(StepError, match=r"whole body|perfect nest"):
            after(BETWEEN.format(size="i + 1"), step)


def test_copied_bodies_allocate_buffers_of_their_own():
    sch = after(INNER, lambda s: s.loop_partition("j", 3))
    found = [alloc.buffer for alloc in allocations(sch.module.prim("f").body)]
    assert len({b.uid for b in found}) == len({b.name for b in found}) == len(found) == 2


def test_a_parallel_loop_allocates_the_temporaries_of_its_iterations():
    sch = after(OUTSIDE, lambda s: s.parallel("i"))
    assert around(sch, "t") == around(sch, "u") == ["i"]
    sch = after(INSIDE, lambda s: s.parallel("i"))
    assert around(sch, "t") == around(sch, "u") == ["i"]


def test_a_parallel_loop_that_shares_no_elements_keeps_the_allocation():
    text = COPY.replace("for i in range(4):", "t = alloc((4, 8), f32)\n    for i in range(4):")
    text = text.replace(
        "        for j in range(8):",
        """        for k in range(8):
            with block("t"):
                ui, uk = spatial(i), spatial(k)
                t[ui, uk] = x[ui, uk]
        for j in range(8):""",
    )
    sch = after(text.replace("= x[vi, vj]", "= t[vi, vj]"), lambda s: s.parallel("i"))
    assert [b.name for b in sch.module.prim("f").buffers] == ["t"]


CHAIN = """
n, m = symbols("n m", lower=1)
@prim_func
def f(x: Buffer[(n, m), f32], y: Out[(n, m), f32]):
    t = alloc((n, m), f32)
    s = alloc((n,), f32)
    for a in range(n):
        for b in range(m):
            with block("t"):
                ta, tb = spatial(a), spatial(b)
                t[ta, tb] = x[ta, tb] + 1.0
    for c in range(n):
        for d in range(m):
            with block("s"):
                sc, sd = spatial(c), reduce(d)
                with init(): s[sc] = 0.0
                s[sc] += t[sc, sd]
    for i in range(n):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = t[vi, vj] * s[vi]
"""

PLACED: list[tuple[str, str, list[str], tuple[Step, ...]]] = [
    ("compute_at", "t", ["i"], (
        lambda s: s.compute_at("s", "i"), lambda s: s.compute_at("t", "i"),
    )),
    ("compute_at of a sum", "s", ["i"], (lambda s: s.compute_at("s", "i"),)),
    ("compute_at of a sum again", "s", ["i", "j"], (
        lambda s: s.compute_at("s", "i"), lambda s: s.compute_at("s", "j"),
    )),
    ("cache_read", "x_local", ["a"], (
        lambda s: s.cache_read("t", "x", "local"), lambda s: s.compute_at("copy_x", "a"),
    )),
    ("cache_read between", "t_local", ["i"], (
        lambda s: s.compute_at("s", "i"), lambda s: s.compute_at("t", "i"),
        lambda s: s.cache_read("y", "t", "local"),
    )),
    ("cache_write", "y_local", ["i"], (
        lambda s: s.cache_write("y", "y", "local"),
        lambda s: s.reverse_compute_at("copy_y_local", "i"),
    )),
    ("cache_write between", "s_local", ["i"], (
        lambda s: s.compute_at("s", "i"), lambda s: s.cache_write("s", "s", "local"),
    )),
    ("rfactor", "s_rf", ["c"], (
        lambda s: s.split("d", factors=(None, 4)), lambda s: s.rfactor("s", "d_1"),
        lambda s: s.reverse_compute_at("s_combine", "c"),
    )),
    ("rfactor between", "s_rf", ["i"], (
        lambda s: s.compute_at("s", "i"),
        lambda s: s.rfactor("s", s.split(s.get_loops("s")[1], factors=(None, 4))[1]),
    )),
]  # fmt: skip


@pytest.mark.parametrize(
    ("buffer", "loops", "steps"), [p[1:] for p in PLACED], ids=[p[0] for p in PLACED]
)
def test_steps_allocate_temporaries_around_their_uses(
    buffer: str, loops: list[str], steps: tuple[Step, ...]
):
    sch = Schedule(parse(CHAIN))
    for step in steps:
        step(sch)
        assert violations(sch.module) == ()
        assert str(parse(str(sch.module))) == str(sch.module)
    assert around(sch, buffer) == loops
    assert sch.verify().ok
    again = Schedule(parse(CHAIN))
    again.replay(sch.trace).completed()
    assert str(again) == str(sch)
    sch.undo()
    assert str(sch) != str(again)
    sch.redo()
    assert str(sch) == str(again)


def test_a_temporary_whose_values_outlive_an_iteration_stays_outside():
    text = """
@prim_func
def f(x: Buffer[(18,), f32], y: Out[(16,), f32]):
    t = alloc((18,), f32)
    for i in range(16):
        for r in range(3):
            with block("t"):
                vi, vr = spatial(i), spatial(r)
                guard(i == 0 or r == 2)
                t[vi + vr] = x[vi + vr]
        for z in range(1):
            with block("y"):
                vk = spatial(i)
                y[vk] = t[vk] + t[vk + 1] + t[vk + 2]
"""
    sch = Schedule(parse(text))
    sch.cache_write("y", "y", "local")
    sch.reverse_compute_at("copy_y_local", "z")
    assert [b.name for b in sch.module.prim("f").buffers] == ["t"]
    assert around(sch, "y_local") == ["i", "z"]
    assert sch.verify().ok


def test_shared_memory_is_allocated_outside_of_the_threads_that_share_it():
    sch = Schedule(parse(COPY), tw.Target("simt", arch="sm_90a"))
    sch.cache_read("w", "x", "shared")
    sch.bind("i", "threadIdx.y")
    inner, _ = sch.split("j", factors=(None, 4))
    sch.compute_at("copy_x", inner)
    assert [b.name for b in sch.module.prim("f").buffers] == ["x_shared"]


def test_a_moved_block_moves_the_allocations_that_it_reads():
    sch = Schedule(parse(CHAIN))
    sch.compute_at("s", "i")
    sch.compute_at("t", "i")
    assert around(sch, "t") == around(sch, "s") == ["i"]
    sch.compute_at("s", "j")
    assert around(sch, "t") == ["i"]
    assert around(sch, "s") == ["i", "j"]


def test_the_order_of_parallel_and_compute_at_does_not_matter():
    cache, move = lambda s: s.cache_read("w", "x", "local"), lambda s: s.compute_at("copy_x", "i")
    first = after(COPY, cache, move, lambda s: s.parallel("i"))
    second = after(COPY, cache, lambda s: s.parallel("i"), move)
    assert str(first) == str(second)


def test_a_thread_loop_allocates_the_temporaries_of_its_iterations():
    sch = Schedule(parse(OUTSIDE))
    sch.bind("i", "blockIdx.x")
    assert around(sch, "t") == around(sch, "u") == ["i"]
    again = Schedule(parse(OUTSIDE))
    again.bind("i", "threadIdx.x")
    assert around(again, "t") == ["i"]


def test_a_value_of_another_iteration_is_still_rejected():
    text = OUTSIDE.replace("u[uk] = t[uk] * 2.0", "u[uk] = t[(uk + 1) % 8] * 2.0")
    after(text, lambda s: s.parallel("i"))
    carried = OUTSIDE.replace(
        "t[vj] = x[vi, vj] + 1.0", "guard(i < 3)\n                t[vj] = 1.0"
    )
    sch = Schedule(parse(carried))
    with pytest.raises(StepError, match="other iterations of loop 'i' may write"):
        sch.parallel("i")


def test_a_single_iteration_variable_of_an_inlined_block_is_zero():
    text = """
@prim_func
def f(x: Buffer[(4, 8), f32], y: Out[(4, 8), f32]):
    for i in range(4):
        for j in range(8):
            c = alloc((), f32)
            for k in range(1):
                with block("c"):
                    vk = spatial(k)
                    c[()] = x[vk, vk] + 1.0
            with block("y"):
                wi, wj = spatial(i), spatial(j)
                y[wi, wj] = c[()] * x[wi, wj]
"""
    sch = after(text, lambda s: s.compute_inline("c"))
    assert "alloc" not in str(sch)
    assert not any(isinstance(s, Alloc) for s in sch.state.tree("f").order)


KERNELS = """
m, n = symbols("m n", lower=1)

@prim_func
def rows(x: Buffer[(n, m), f32], p: Buffer[(n,), i32], y: Out[(n, m), f32]):
    for i in range(n):
        with checked(p[i], 0, m + 1) as size:
            t = alloc((size,), f32)
            for k in range(size):
                with block("t"):
                    vi, vk = spatial(n, i), spatial(m + 1, k)
                    t[vk] = x[vi, vk] * 2.0
            for j in range(m):
                with block("y"):
                    wi, wj, ws = spatial(n, i), spatial(m, j), spatial(m + 1, size)
                    y[wi, wj] = where(wj < ws, t[ws - wj - 1], 0.0)

@prim_func
def scale(x: Buffer[(n, m), f32], y: Out[(n, m), f32]):
    for i in range(n):
        t = alloc((m,), f32)
        for k in range(m):
            with block("t"):
                vi, vk = spatial(i), spatial(k)
                t[vk] = x[vi, vk] + 1.0
        for j in range(m):
            with block("y"):
                wi, wj = spatial(i), spatial(j)
                y[wi, wj] = t[m - 1 - wj]

@graph_func
def main(x: Tensor[(n, m), f32], p: Tensor[(n,), i32]):
    a: Tensor[(n, m), f32] = call_tir(scale, x)
    b: Tensor[(n, m), f32] = call_tir(rows, a, p)
    c: Tensor[(n, m), f32] = call_tir(scale, b)
    return c
"""


def test_kernels_with_temporaries_are_fused():
    module = parse(KERNELS)
    x, p = np.arange(15, dtype=np.float32).reshape(3, 5), np.array([5, 0, 2], np.int32)
    (expected,) = run_graph(module, (x, p))
    sch = Schedule(module)
    sch.fuse_ops("main")
    sch.fuse_tir("main")
    (kernel,) = sch.module.prims
    names = [alloc.buffer.name for alloc in allocations(kernel.body)]
    assert len(set(names)) == len(names) == 3
    np.testing.assert_array_equal(run_graph(sch.module, (x, p))[0], expected)
    for target in ("cpu", "simt"):
        for program in (module, sch.module):
            np.testing.assert_array_equal(tw.compile(program, target)(x, p), expected)


def test_a_copy_inside_of_a_vector_is_allocated_in_each_lane():
    text = """
n = symbols("n", lower=1)
@prim_func
def f(x: Buffer[(8,), f32], p: Buffer[(n,), i32], y: Out[(n, 16), f32]):
    for i in range(n):
        for d in vectorized(16):
            with checked(p[i], 0, 9) as hi:
                for j in range(hi):
                    with block("s"):
                        vi, vd, vj = spatial(i), spatial(d), reduce(8, j)
                        with init(): y[vi, vd] = 0.0
                        y[vi, vd] += x[vj]
"""
    sch = Schedule(parse(text))
    sch.cache_read("s", "x", "local")
    lane = next(
        s for s in walk(sch.module.prim("f").body) if isinstance(s, For) and s.var.name == "d"
    )
    assert [a.buffer.name for a in allocations(lane.body)] == ["x_local"]
    sch.verify()
    x, p = np.arange(8, dtype=np.float32), np.array([0, 8, 3], np.int32)
    expected = [[x[:k].sum()] * 16 for k in p]
    np.testing.assert_array_equal(tw.compile(sch, "cpu")(x, p), expected)


def test_a_temporary_in_a_loop_with_other_statements_moves_out_and_in_again():
    """``W_pad`` is first lifted out of ``j_0``; its new scope ends after the loop ``k_0``."""
    sch = Schedule(
        parse("""
M, N = symbols("M N", lower=0)

@prim_func
def f(A: Buffer[(5, M), f32], W: Buffer[(N, 5), f32], C: Out[(M, N), f32]):
    for j in range(N):
        for i in range(M):
            for k in range(5):
                with block("mm"):
                    vj, vi, vk = spatial(j), spatial(i), reduce(k)
                    with init(): C[vi, vj] = 0.0
                    C[vi, vj] += A[vk, vi] * W[vj, vk]
"""),
        tw.Target("simt", arch="sm_80"),
    )
    sch.schedule_gpu_matmul("f")
    sch.bind("k_0", "threadIdx.z")
    sch.decompose_reduction("mm", "j_0")
    assert not violations(sch.module)
    assert {a.buffer.name for a in allocations(sch.module.prims[0].body)} >= {"A_pad", "W_pad"}
    sch.verify()
