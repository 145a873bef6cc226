"""Temporaries of parallel regions: one copy per worker in the scratch argument."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import compile
from tilewright.codegen.lower import lower_kernel
from tilewright.ir.interpreter import run_prim
from tilewright.ir.script import parse
from tilewright.ir.symbolic import evaluate
from tilewright.schedules import Schedule
from tilewright.target.target import Target

from tests.codegen.kernels import LEVELS, Runtime, build
from tests.codegen.lower.to_thread.scoped_temporaries import ScopedTemporaries

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


SCOPES = """
@prim_func(scheduled=True)
def f(x: Buffer[(n, m), f32], y: Out[(n, m), f32]):
    for i in {kind}(n):
        for r in range(2):
            s = alloc((m,), f32, scope="{scope}")
            for j in range(m):
                s[j] = x[i, j] * 2.0
            for k in range(m):
                y[i, k] = s[m - 1 - k]
        for r2 in range(2):
            t = alloc((m,), f32, scope="{scope}")
            for j2 in range(m):
                t[j2] = y[i, j2] + 1.0
            for k2 in range(m):
                y[i, k2] = t[m - 1 - k2]
"""


def flipped_twice(x: np.ndarray) -> np.ndarray:
    return (x * 2)[:, ::-1] + 2


@pytest.mark.parametrize("scope", ["global", "local"])
@pytest.mark.parametrize("kind", ["range", "parallel"])
def test_temporaries_of_scopes_one_after_the_other_share_memory(kind: str, scope: str) -> None:
    exe = compile(parse(HEAD + SCOPES.format(kind=kind, scope=scope)), Target("cpu", threads=2))
    x = np.random.default_rng(0).integers(-9, 9, (300, 200)).astype(np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(exe(x), flipped_twice(x))
    workers = 2 if kind == "parallel" else 1
    plan = exe.memory({"n": 300, "m": 200})
    assert plan.arena == workers * 832
    assert plan.unshared == 2 * (-(-workers * 800 // 64) * 64)
    assert [s.name for s in plan.storages] == ["s_t_scratch"]
    assert [s.tensors for s in plan.storages] == [("s (kernel f)", "t (kernel f)")]
    rows = [r for r in str(exe.explain("f")).splitlines() if r.startswith("temporary")]
    assert len(rows) == 2
    assert len({row.split(" at ")[1] for row in rows}) == 1


def test_temporaries_that_all_workers_share_do_not_share_memory() -> None:
    """One worker may use the first temporary while another one uses the second."""
    text = """
@prim_func(scheduled=True)
def f(x: Buffer[(n, m), f32], y: Out[(n, m), f32], z: Out[(n, m), f32]):
    s = alloc((n, m), f32)
    t = alloc((n, m), f32)
    for i in parallel(n):
        for j in range(m):
            s[i, j] = x[i, j] * 2.0
        for k in range(m):
            y[i, k] = s[i, m - 1 - k]
        for j2 in range(m):
            t[i, j2] = x[i, j2] + 1.0
        for k2 in range(m):
            z[i, k2] = t[i, m - 1 - k2]
    for i3 in parallel(n):
        for k3 in range(m):
            y[i3, k3] = y[i3, k3] + s[i3, k3]
        for k4 in range(m):
            z[i3, k4] = z[i3, k4] + t[i3, k4]
"""
    exe = compile(parse(HEAD + text), Target("cpu", threads=2))
    x = np.random.default_rng(0).integers(-9, 9, (300, 200)).astype(np.float32)
    for _ in range(3):
        y, z = exe(x)
        np.testing.assert_array_equal(y, (x * 2)[:, ::-1] + x * 2)
        np.testing.assert_array_equal(z, (x + 1)[:, ::-1] + x + 1)
    plan = exe.memory({"n": 300, "m": 200})
    assert plan.arena == plan.unshared == 2 * 300 * 200 * 4


def test_a_value_that_later_iterations_read_does_not_share_memory() -> None:
    text = """
@prim_func(scheduled=True)
def f(x: Buffer[(n, m), f32], y: Out[(n, m), f32]):
    c = alloc((m,), f32)
    for j0 in range(m):
        c[j0] = 0.0
    for i in range(n):
        for j in range(m):
            y[i, j] = c[j]
        s = alloc((m,), f32)
        for j1 in range(m):
            s[j1] = x[i, j1]
        for k in range(m):
            c[k] = c[k] + s[m - 1 - k]
"""
    exe = compile(parse(HEAD + text), Target("cpu", threads=1))
    x = np.random.default_rng(0).integers(-9, 9, (30, 200)).astype(np.float32)
    expected = np.cumsum(x[:, ::-1], 0) - x[:, ::-1]
    np.testing.assert_array_equal(exe(x), expected)
    assert exe.memory({"n": 30, "m": 200}).arena == 2 * 832


def test_temporaries_of_the_stack_are_limited_together() -> None:
    """Each temporary has 16 KiB: many of them are larger than the stack of a thread."""
    count = 100
    body = "\n".join(
        f"    t{k} = alloc((4096,), f32)\n    for i{k} in range(4096): t{k}[i{k}] = x[i{k}] + {k}.0"
        for k in range(count)
    )
    total = "\n".join(
        f"    for j{k} in range(4096): y[j{k}] = y[j{k}] + t{k}[4095 - j{k}]" for k in range(count)
    )
    head = "@prim_func(scheduled=True)\ndef f(x: Buffer[(4096,), f32], y: InOut[(4096,), f32]):\n"
    module = parse(head + body + "\n" + total)
    kernel = lower_kernel(module.prim("f"), Target("cpu"))
    assert kernel.scratch is not None
    assert int(evaluate(kernel.scratch, {})) >= (count - 8) * 4096 * 4


@pytest.mark.parametrize("seed", range(6))
def test_random_scopes_equal_the_interpreter(seed: int) -> None:
    module = parse(ScopedTemporaries(seed).program())
    exe = compile(module, Target("cpu", threads=2))
    for n, m in ((1, 1), (5, 3), (11, 4)):
        x = np.random.default_rng(seed).integers(-9, 9, n).astype(np.float32)
        found = np.random.default_rng(1).integers(-9, 9, (6, m)).astype(np.float32)
        expected = found.copy()
        run_prim(module.prim("f"), [x, expected])
        exe(x, found)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
        plan = exe.memory({"n": n, "m": m})
        assert plan.peak == plan.arena
