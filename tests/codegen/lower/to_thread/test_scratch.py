"""Temporaries of parallel regions: one copy per worker in the scratch argument."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import compile
from tilewright.ir.script import parse
from tilewright.schedules import Schedule
from tilewright.target.target import Target

from tests.codegen.kernels import LEVELS, Runtime, build

HEAD = "n, m = symbols('n m', lower=1)\n\n"


def function(body: str):
    module = parse(HEAD + "@prim_func\n" + body)
    return next(iter(module.functions.values()))


ROWS = """
def rows(x: Buffer[(n, m), f32], y: Out[(n, m), f32]):
    row = alloc((n, m), f32)
    for i in parallel(n):
        for j in range(m):
            with block("double"):
                vi, vj = spatial(i), spatial(j)
                row[vi, vj] = x[vi, vj] * 2.0
        for k in range(m):
            with block("reverse"):
                vi, vk = spatial(i), spatial(k)
                reads(row[vi, 0:m])
                y[vi, vk] = row[vi, m - 1 - vk] + 1.0
"""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_rows_of_a_parallel_loop_use_separate_scratch(level: str, threads: int) -> None:
    x = np.random.default_rng(0).random((400, 300), np.float32)
    y, runtime = np.empty_like(x), Runtime(threads=threads)
    kernel = build(function(ROWS), level)
    assert kernel.artifact.parallel
    assert kernel.artifact.scratch is not None
    assert kernel(x, y, runtime=runtime) == 0
    np.testing.assert_array_equal(y, (x * 2 + 1)[:, ::-1])
    assert runtime.regions == (threads > 1)


def test_small_parallel_loops_stay_on_one_thread() -> None:
    x = np.ones((3, 4), np.float32)
    y, runtime = np.empty_like(x), Runtime(threads=2)
    assert build(function(ROWS))(x, y, runtime=runtime) == 0
    assert runtime.regions == 0
    np.testing.assert_array_equal(y, np.full((3, 4), 3, np.float32))


def test_a_local_copy_that_two_parallel_regions_use_is_shared() -> None:
    module = parse("""
@prim_func
def f(x: Buffer[(800, 600), f32], y: Out[(800, 600), f32]):
    for i in range(800):
        for j in range(600):
            with block("double"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 2.0
""")
    schedule = Schedule(module)
    schedule.cache_read("double", "x", "local")
    schedule.parallel("ax0")
    schedule.parallel("i")
    x = np.random.default_rng(0).random((800, 600), np.float32)
    y, runtime = np.empty_like(x), Runtime(threads=2)
    assert build(schedule.module.prim("f"))(x, y, runtime=runtime) == 0
    np.testing.assert_array_equal(y, x * 2)
    assert runtime.regions == 2


def column_sums(name: str, kind: str) -> str:
    """Return a loop whose iterations add rows to a temporary of 512 elements."""
    i, k, j, c = (f"{letter}{name}" for letter in "ikjc")
    return f"""
    for {i} in {kind}(200):
        for {k} in range(n):
            for {j} in range(512):
                with block("sum_{name}"):
                    vi, vk, vj = spatial(200, {i}), reduce(n, {k}), spatial(512, {j})
                    with init():
                        t{name}[vi, vj] = 0.0
                    t{name}[vi, vj] = t{name}[vi, vj] + x[vi, vk]
        for {c} in range(512):
            with block("{name}"):
                vi, vc = spatial(200, {i}), spatial(512, {c})
                {name}[vi, vc] = t{name}[vi, vc]
"""


@pytest.mark.parametrize("kinds", [("parallel", "parallel"), ("range", "parallel")])
def test_accumulators_of_two_regions_are_private_to_each_worker(kinds: tuple[str, str]) -> None:
    """The blocks of long sums in two loops may not share accumulators across workers."""
    text = """
n = symbols("n", lower=0)

@prim_func(scheduled=True)
def f(x: Buffer[(200, n), f32], y: Out[(200, 512), f32], z: Out[(200, 512), f32]):
    ty = alloc((200, 512), f32, scope="local")
    tz = alloc((200, 512), f32, scope="local")
"""
    text += "".join(column_sums(name, kind) for name, kind in zip("yz", kinds, strict=True))
    exe = compile(parse(text), Target("cpu", threads=2))
    x = np.random.default_rng(0).integers(-9, 9, (200, 300)).astype(np.float32)
    for _ in range(4):
        for found in exe(x):
            np.testing.assert_array_equal(found, np.repeat(x.sum(1)[:, None], 512, 1))
