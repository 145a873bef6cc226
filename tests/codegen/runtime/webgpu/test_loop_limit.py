"""Drivers that end long loops: such a kernel raises an error instead of having wrong results."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pytest

from tilewright.codegen.runtime.webgpu.adapter import request_adapter, wgpu_module
from tilewright.codegen.runtime.webgpu.device import opened_device
from tilewright.codegen.runtime.webgpu.loop_limit import LoopEndedError, ends_loops

from tests.codegen.wgsl.running import compiled
from tests.codegen.wgsl.test_loop_guards import QUOTIENTS

LIMIT = 65_535

NESTED = """
n, m = symbols("n m", lower=0)

@prim_func(scheduled=True)
def nested(x: Buffer[(m,), f32], n: Int, y: Out[(1,), f32]):
    for b in thread(1, "blockIdx.x"):
        for r in range(n):
            for k in range(m):
                with block("sum"):
                    vb, vr, vk = spatial(b), reduce(r), reduce(k)
                    with init(): y[vb] = 0.0
                    y[vb] += x[vk]
"""

SEARCH = """
n = symbols("n", lower=0)

@prim_func(scheduled=True)
def search(x: Buffer[(n,), f32], y: Out[(4,), f32]):
    for b in thread(1, "blockIdx.x"):
        for t in thread(4, "threadIdx.x"):
            for k in range(n):
                with block("largest"):
                    vt, vk = spatial(t), reduce(k)
                    with init(): y[vt] = 0.0
                    y[vt] = max(y[vt], x[vk])
"""


SCATTER = """
n = symbols("n", lower=0)

@prim_func(scheduled=True)
def scatter(k: Buffer[(32,), i32], x: Buffer[(n,), f32], y: InOut[(4,), f32]):
    for b in thread(1, "blockIdx.x"):
        for t in thread(32, "threadIdx.x"):
            for j in range(n):
                with block("add"):
                    vt, vj = reduce(t), reduce(j)
                    with checked(k[vt], 0, 4) as at:
                        y[at] += x[vj] * 0.5
"""


def test_a_minimal_shader_shows_the_limit_of_the_driver():
    """Mesa's llvmpipe ends a loop after 65,535 iterations; drivers of GPUs do not."""
    adapter = request_adapter()
    device = adapter.request_device_sync()
    assert ends_loops(wgpu_module(), device) == is_limited()


def is_limited() -> bool:
    return "llvmpipe" in opened_device().name


def ended(kernel: str) -> AbstractContextManager[object]:
    """Expect that the driver ends a loop of a kernel, if it does so."""
    if not is_limited():
        return nullcontext()
    return pytest.raises(LoopEndedError, match=rf"ended a loop of kernel '{kernel}'.* 65,535 iter")


@pytest.mark.parametrize("rows", [1, 7, 250])
def test_all_loops_of_an_invocation_share_the_limit(rows):
    exe = compiled(NESTED)
    for columns in (LIMIT // rows // 2, LIMIT // rows + rows, LIMIT // rows * 3):
        x = np.ones(columns, np.float32)
        long = rows * columns > LIMIT - 2 * rows
        with ended("nested") if long else nullcontext():
            np.testing.assert_array_equal(exe(x, rows), [rows * columns])
    np.testing.assert_array_equal(exe(x[:3], rows), [3 * rows])


def test_no_length_has_a_wrong_result():
    """Around the limit a call has the right result, or it raises."""
    exe = compiled(SEARCH)
    failed = 0
    for length in (65_000, *range(LIMIT - 3, LIMIT + 4), 131_071):
        x = np.zeros(length, np.float32)
        x[-1] = 5
        try:
            found = exe(x)
        except LoopEndedError:
            failed += 1
            continue
        np.testing.assert_array_equal(found, [5] * 4)
    assert (3 <= failed <= 8) == is_limited()


def test_loops_of_functions_count():
    """A quotient of integers of 64 bits has a loop of 64 iterations."""
    exe = compiled(QUOTIENTS)
    x = np.full((1, 300_000), 2**40, np.int64)
    few = x[:, :7]
    np.testing.assert_array_equal(exe(few), (few // (few + 3)).sum(1))
    with ended("quotients"):
        np.testing.assert_array_equal(exe(x), (x // (x + 3)).sum(1))


def test_repeated_updates_count():
    """Threads that update one float repeat the update until no other thread interferes."""
    exe = compiled(SCATTER)
    k = np.zeros(32, np.int32)
    for length in (0, 1, 70, 70_000):
        x, y = np.ones(length, np.float32), np.zeros(4, np.float32)
        with ended("scatter") if length > LIMIT else nullcontext():
            exe["scatter"](k, x, y)
            np.testing.assert_array_equal(y, [16 * length, 0, 0, 0])


def test_the_error_is_raised_by_the_read_of_a_result_on_the_device():
    exe = compiled(NESTED)
    device = opened_device()
    y = exe(device.upload(np.ones(70_000, np.float32)), 1)
    with ended("nested"):
        y.numpy()
    exe(device.upload(np.ones(70_000, np.float32)), 1)
    with ended("nested"):
        device.wait()
    device.wait()
