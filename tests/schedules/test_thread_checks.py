"""Independence of the threads that share a temporary, when its scope is set after ``bind``."""

import numpy as np
import pytest

from tilewright.codegen import compile
from tilewright.schedules.primitives.caching.cache_read import CacheRead
from tilewright.schedules.primitives.caching.cache_write import CacheWrite
from tilewright.schedules.primitives.layout.set_scope import SetScope
from tilewright.schedules.primitives.loops.bind import Bind

from tests.schedules.helpers import rejected, schedule

REVERSED = """
@prim_func
def f(x: Buffer[(64, 100), f32], y: Out[(64, 100), f32]):
    t = alloc((100,), f32)
    for i in range(64):
        for j in range(100):
            with block("p"):
                vi, vj = spatial(i), spatial(j)
                t[vj] = x[vi, vj]
        for j1 in range(100):
            with block("c"):
                wi, wj = spatial(i), spatial(j1)
                y[wi, wj] = t[wj] + t[99 - wj]
"""

OWN_ROWS = """
@prim_func
def f(x: Buffer[(64, 100), f32], y: Out[(64, 100), f32]):
    t = alloc((64, 100), f32)
    for i in range(64):
        for j in range(100):
            with block("p"):
                vi, vj = spatial(i), spatial(j)
                t[vi, vj] = x[vi, vj]
        for j1 in range(100):
            with block("c"):
                wi, wj = spatial(i), spatial(j1)
                y[wi, wj] = t[wi, wj] + t[wi, 99 - wj]
"""

HISTOGRAM = """
@prim_func
def f(idx: Buffer[(64,), i32], x: Buffer[(64,), i32], y: Out[(8,), i32]):
    t = alloc((8,), i32)
    for a in range(8):
        with block("zero"):
            va = spatial(a)
            t[va] = 0
    for i in range(64):
        with block("count"):
            vi = spatial(i)
            with checked(idx[vi], 0, 8) as p:
                t[p] = t[p] + x[vi]
    for b in range(8):
        with block("copy"):
            vb = spatial(b)
            y[vb] = t[vb]
"""


def bound(text=REVERSED, loop="i"):
    sch = schedule(text)
    sch.bind(loop, "threadIdx.x")
    return sch


def check_on_threads(sch):
    x = np.random.default_rng(0).standard_normal((64, 100)).astype(np.float32)
    kernel = compile(sch.module, "simt")["f"]
    np.testing.assert_array_equal(kernel(x), x + x[:, ::-1])


SAME = "iterations of loop 'i' may write the same elements of 't"


def shared_copy_that_is_read():
    sch = bound()
    step = CacheRead(sch.get_block("c"), sch.get_buffer("t"), "shared")
    return sch, rejected(sch, step, CacheRead.Requires.INDEPENDENT_THREADS, SAME)


def shared_copy_that_is_written():
    sch = bound()
    step = CacheWrite(sch.get_block("p"), sch.get_buffer("t"), "shared")
    return sch, rejected(sch, step, CacheWrite.Requires.INDEPENDENT_THREADS, SAME)


def shared_temporary():
    sch = bound()
    step = SetScope(sch.get_buffer("t"), "shared")
    return sch, rejected(sch, step, SetScope.Requires.INDEPENDENT_THREADS, SAME)


@pytest.mark.parametrize(
    "case", [shared_copy_that_is_read, shared_copy_that_is_written, shared_temporary]
)
def test_threads_that_would_race_in_a_shared_temporary_are_rejected(case):
    sch, problem = case()
    (fix,) = problem.fixes
    assert fix.scope == "local"
    sch.apply(fix)
    check_on_threads(sch)


def test_the_other_order_is_rejected_by_bind():
    sch = schedule(REVERSED)
    sch.set_scope("t", "shared")
    (i, _) = sch.get_loops("p")
    rejected(sch, Bind(i, "threadIdx.x"), Bind.Requires.INDEPENDENT_ITERATIONS, "the same elements")


def test_threads_may_share_a_temporary_in_which_each_has_its_own_part():
    sch = bound(OWN_ROWS)
    sch.set_scope("t", "shared")
    check_on_threads(sch)


def test_threads_may_update_a_shared_temporary_atomically():
    sch = bound(HISTOGRAM)
    sch.set_scope("t", "shared")
    idx, x = np.arange(64, dtype=np.int32) % 5, np.arange(64, dtype=np.int32)
    expected = np.bincount(idx, x, 8).astype(np.int32)
    np.testing.assert_array_equal(compile(sch.module, "simt")["f"](idx, x), expected)


def test_blocks_of_threads_do_not_share_a_temporary():
    sch = schedule(REVERSED)
    sch.bind("i", "blockIdx.x")
    sch.set_scope("t", "shared")
    check_on_threads(sch)
