"""WebGPU devices: memory, results on the device, errors of kernels, and missing drivers."""

from __future__ import annotations

import multiprocessing
import sys
import time

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import DeviceUnavailableError, KernelError, LaunchError
from tilewright.codegen.runtime.device_tensor import DeviceTensor
from tilewright.codegen.runtime.webgpu import adapter
from tilewright.codegen.runtime.webgpu.device import opened_device, webgpu_device
from tilewright.codegen.runtime.webgpu.kernel import RejectedShaderError, WebGpuKernel
from tilewright.codegen.wgsl import Shader
from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant, Module, UnknownFunctionError

from tests.codegen.wgsl.running import WEBGPU, compiled

COPY = """
n = symbols("n", lower=0)

@prim_func
def twice(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("add"):
            vi = spatial(i)
            y[vi] = x[vi] + x[vi]
"""

GATHER = """
n, m = symbols("n m", lower=0)

@prim_func
def gather(x: Buffer[(n,), f32], k: Buffer[(m,), {dtype}], y: Out[(m,), f32]):
    for i in range(m):
        with block("gather"):
            vi = spatial(i)
            with checked(k[vi], 0, n) as at:
                y[vi] = x[at]
"""


@pytest.fixture(scope="module")
def twice():
    return compiled(COPY)


def test_results_stay_on_the_device(twice):
    device = opened_device()
    x = device.upload(np.arange(5, dtype=np.float32))
    y = twice(twice(x))
    assert isinstance(y, DeviceTensor)
    assert y.device == "webgpu:0"
    np.testing.assert_array_equal(y.numpy(), np.arange(5) * 4)


def test_a_tensor_has_no_address_for_other_libraries(twice):
    y = twice(opened_device().upload(np.ones(3, np.float32)))
    with pytest.raises(BufferError, match=r"use numpy\(\)"):
        np.from_dlpack(y)


def test_shaders_are_not_images(twice):
    for name in (None, "twice"):
        with pytest.raises(UnknownFunctionError) as caught:
            twice.image(name)
        assert caught.value.hint == "only target 'cuda' has images"


def test_the_text_of_a_kernel_is_its_shader(twice):
    assert "@compute" in twice.llvm("twice")
    for request in (lambda: twice.assembly("twice"), lambda: twice.llvm("twice", optimized=True)):
        with pytest.raises(UnknownFunctionError, match="the driver compiles kernel 'twice'"):
            request()


def test_memory_is_reused(twice):
    device = opened_device()
    x = np.ones(1000, np.float32)
    twice(x)
    before = device.allocated
    for _ in range(5):
        twice(x)
    assert device.allocated == before
    device.trim()
    np.testing.assert_array_equal(twice(x), x * 2)


@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_a_failed_check_is_raised_by_name(dtype):
    exe = compiled(GATHER.format(dtype=dtype))
    x, k = np.arange(5, dtype=np.float32), np.array([0, 4, 2], f"int{dtype[1:]}")
    np.testing.assert_array_equal(exe(x, k), [0, 4, 2])
    for bad in (5, -1, 2**31 - 1, *((2**40,) if dtype == "i64" else ())):
        k[1] = bad
        with pytest.raises(KernelError, match=rf"(index|value) {bad}\b.*"):
            exe(x, k)
    k[1] = 3
    np.testing.assert_array_equal(exe(x, k), [0, 3, 2])


def test_more_launches_than_one_submission(twice):
    x = opened_device().upload(np.ones(3, np.float32))
    results = [twice(x) for _ in range(200)]
    assert all((r.numpy() == 2).all() for r in results)


def test_bytes_of_any_number_are_copied():
    text = COPY.replace("f32", "u8")
    exe = compiled(text)
    for size in range(9):
        x = np.arange(size, dtype=np.uint8)
        np.testing.assert_array_equal(exe(x), x * 2)


def test_constants_are_uploaded_once():
    text = """
constant("w", (4,), f32)
n = symbols("n", lower=0)

@prim_func
def add(x: Buffer[(n, 4), f32], w: Buffer[(4,), f32], y: Out[(n, 4), f32]):
    for i in range(n):
        for j in range(4):
            with block("add"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] + w[vj]

@graph_func
def main(x: Tensor[(n, 4), f32]):
    y: Tensor[(n, 4), f32] = call_tir(add, x, const("w"))
    return y
"""
    reads = []
    weights = np.arange(4, dtype=np.float32)

    def load():
        reads.append(1)
        return weights

    constant = Constant((4,), f32, load)
    module = tw.parse(text, constants={"w": constant})
    exe = tw.compile(module, target="webgpu")
    exe(np.ones((2, 4), np.float32))
    before = len(reads)
    for rows in (1, 3, 0, 17):
        x = np.ones((rows, 4), np.float32)
        np.testing.assert_array_equal(exe(x), x + weights)
    assert len(reads) == before


NETWORK = """
constant("a", (16, 24), f32)
constant("b", (24, 16), f32)
constant("g", (16,), f32)
n = symbols("n", lower=0)

@graph_func
def main(x: Tensor[(n, 16), f32]):
    h = matmul(x, const("a"))
    e = gelu(h)
    d = matmul(e, const("b"))
    r = add(x, d)
    s = layer_norm(r, const("g"), const("g"), epsilon=1e-5)
    y = softmax(s, axis=-1)
    return y
"""


def test_a_network_has_the_results_of_the_processor():
    rng = np.random.default_rng(0)
    shapes = {"a": (16, 24), "b": (24, 16), "g": (16,)}
    weights = {k: rng.normal(size=s).astype(np.float32) for k, s in shapes.items()}
    module = tw.parse(NETWORK, constants=weights)
    exe, host = tw.compile(module, target="webgpu"), tw.compile(module, target="cpu")
    for rows in (0, 1, 2, 7, 33, 97):
        x = rng.normal(size=(rows, 16)).astype(np.float32)
        np.testing.assert_allclose(exe(x), host(x), rtol=1e-5, atol=1e-6)


def test_a_binding_beyond_the_limit(monkeypatch, twice):
    device = opened_device()
    monkeypatch.setattr(device, "_most_bound", 1024)
    np.testing.assert_array_equal(twice(np.ones(256, np.float32)), np.full(256, 2))
    with pytest.raises(LaunchError, match=r"1028 bytes; a shader on .* can access 1024"):
        twice(np.ones(257, np.float32))


def test_a_shader_that_the_driver_rejects():
    kernel = WebGpuKernel(opened_device(), Shader("f$i32", "fn main( {", 0, (), 0, 0))
    with pytest.raises(RejectedShaderError, match="rejects the shader of kernel 'f'"):
        kernel.launch((1, 1, 1), [])


def test_a_feature_that_the_adapter_lacks(monkeypatch):
    assert webgpu_device(tw.Target("webgpu", features=("f16",))) is opened_device()
    monkeypatch.setattr(opened_device(), "features", frozenset({"f16"}))
    with pytest.raises(DeviceUnavailableError, match="has no timestamps"):
        webgpu_device(tw.Target("webgpu", features=("f16", "timestamps")))


def test_a_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "wgpu", None)
    with pytest.raises(DeviceUnavailableError, match="'wgpu' is not installed"):
        adapter.wgpu_module()


@pytest.mark.parametrize("fails", [True, False])
def test_a_missing_driver(monkeypatch, fails):
    class Gpu:
        def request_adapter_sync(self, **_):
            if fails:
                raise RuntimeError("no adapter")

    class Package:
        gpu = Gpu()

    monkeypatch.setattr(adapter, "wgpu_module", Package)
    with pytest.raises(DeviceUnavailableError, match="has no adapter") as caught:
        adapter.request_adapter()
    assert "mesa-vulkan-drivers" in caught.value.hint


def _in_child(queue, exe):
    try:
        exe(np.ones(3, np.float32))
    except tw.TilewrightError as error:
        queue.put(str(error))


def test_a_forked_child_reports_an_error(twice):
    twice(np.ones(3, np.float32))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue, twice))
    child.start()
    message = queue.get(timeout=60)
    child.join(60)
    assert "is a fork" in message or "allocate" in message


def test_the_driver_is_installed():
    """Tests without a driver fail; they are not skipped."""
    assert opened_device().name
    assert WEBGPU.is_gpu
    assert Module() is not None


SLOW = """
@prim_func(scheduled=True)
def slow(x: Buffer[(4096,), f32], y: Out[(1,), f32]):
    for b in thread(1, "blockIdx.x"):
        for r in range(8):  # Mesa's driver ends a loop after 65,535 iterations
            for k in range(4096):
                with block("sum"):
                    vb, vr, vk = spatial(b), reduce(r), reduce(k)
                    with init(): y[vb] = 0.0
                    y[vb] += x[vk] * 0.5
"""


def test_the_time_of_a_launch_includes_the_kernel():
    slow = compiled(SLOW)
    x = opened_device().upload(np.ones(4096, np.float32))
    slow(x)
    opened_device().wait()
    times: list[float] = []
    for _ in range(5):
        started = time.perf_counter()
        np.testing.assert_array_equal(slow(x).numpy(), [16384.0])
        times.append((time.perf_counter() - started) * 1e6)
    profile = slow.profile(x, function="slow", repeats=5)
    assert profile.total > 0.1 * min(times)  # a launch that is not waited for takes far less
