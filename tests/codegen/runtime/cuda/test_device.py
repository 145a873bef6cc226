"""The CUDA device with a fake driver: driver calls, results, and failures."""

from __future__ import annotations

import ctypes
import gc
import threading

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import (
    AliasError,
    AlignmentError,
    ArgumentShapeError,
    DTypeError,
    LaunchError,
    OutOfMemoryError,
    ReadOnlyError,
)
from tilewright.codegen.nvidia import Image
from tilewright.codegen.runtime.cuda.device import CudaDevice, opened_device
from tilewright.codegen.runtime.cuda.driver import WrongArchError
from tilewright.codegen.runtime.device_tensor import DeviceTensor
from tilewright.codegen.runtime.table import ProviderError, RuntimeTable
from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant

from tests.codegen.gpu import kernels

CUDA = tw.Target("cuda", arch="sm_80")


def doubled() -> tw.Schedule:
    """Return a schedule of ``y = 2 x`` with one thread block per 128 elements."""
    sch = tw.Schedule(
        tw.parse("""
n = symbols("n", lower=0)

@prim_func
def double(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("twice"):
            vi = spatial(i)
            y[vi] = x[vi] * 2.0
""")
    )
    (i,) = sch.get_loops(sch.get_block("twice"))
    block, thread = sch.split(i, factors=(None, 128))
    sch.bind(block, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    return sch


def array_at(address: int, count: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address))


def word_at(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


@pytest.fixture
def gpu(driver):
    """The fake driver with a GPU that executes the kernel of :func:`doubled`."""

    def run(name: str, dims: list[int], params: list[int]) -> int:
        assert name == "double"
        x, y, n = map(word_at, params)
        assert dims == [-(-n // 128), 1, 1, 128, 1, 1, 0]
        array_at(y, n)[:] = 2 * array_at(x, n)
        return 0

    driver.on_launch(run, 3)
    return driver


@pytest.fixture
def exe(gpu):
    return tw.compile(doubled(), CUDA)


def test_arrays_are_copied_there_and_back(gpu, exe) -> None:
    x = np.arange(300, dtype=np.float32)
    y = exe(x)
    assert isinstance(y, np.ndarray)
    np.testing.assert_array_equal(y, 2 * x)
    calls = gpu.calls
    assert "copy host to device 1200" in calls
    assert "launch double$i32 (3, 1, 1) x (128, 1, 1) shared 0" in calls
    assert calls[-1] == "copy device to host 1200"


def test_empty_arguments_launch_no_kernel(gpu, exe) -> None:
    assert exe(np.zeros(0, np.float32)).shape == (0,)
    assert not [c for c in gpu.calls if c.startswith("launch")]


def test_strided_arrays_are_copied_compactly(exe) -> None:
    x = np.arange(20, dtype=np.float32)[::2]
    np.testing.assert_array_equal(exe(x), 2 * x)


def test_tensors_on_the_device_stay_there(gpu, exe) -> None:
    device = opened_device()
    x = device.upload(np.arange(5, dtype=np.float32))
    before = len(gpu.calls)
    y = exe(x)
    z = exe(y)
    assert isinstance(z, DeviceTensor)
    assert not [c for c in gpu.calls[before:] if c.startswith("copy")]
    np.testing.assert_array_equal(z.numpy(), [0, 4, 8, 12, 16])
    assert repr(z) == "DeviceTensor(shape=(5,), dtype=f32, device='cuda:0')"


def test_memory_is_returned_to_the_pool(exe) -> None:
    device = opened_device()
    exe.trim()
    gc.collect()
    before = device.allocated
    y = exe(device.upload(np.ones(7, np.float32)))
    assert device.allocated > before
    del y
    gc.collect()
    exe.trim()
    assert device.allocated == before


def test_dlpack_shares_the_memory_both_ways(exe) -> None:
    y = exe(opened_device().upload(np.ones((4,), np.float32)))
    assert y.__dlpack_device__() == (2, 0)
    allocated = opened_device().allocated
    for version in (None, (1, 0)):
        capsule = y.__dlpack__(max_version=version)
        assert "dltensor" in repr(capsule)
    assert opened_device().allocated == allocated
    with pytest.raises(BufferError, match=r"cannot export a tensor on cuda:0 with copy=True"):
        y.__dlpack__(copy=True)
    with pytest.raises(BufferError, match=r"dl_device=\(1, 0\)"):
        y.__dlpack__(dl_device=(1, 0))


def test_export_to_another_stream_waits(gpu, exe) -> None:
    y = exe(opened_device().upload(np.ones(4, np.float32)))
    y.__dlpack__(stream=1)
    assert "wait" not in gpu.calls
    y.__dlpack__(stream=7)
    assert "wait" in gpu.calls


def test_written_arguments_are_copied_back(exe) -> None:
    x, y = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    exe["double"].into(x, y)
    np.testing.assert_array_equal(y, 2 * x)


def test_many_threads_call_at_once(exe) -> None:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for n in range(1, 40):
                x = np.full(n * 7 + seed, seed, np.float32)
                np.testing.assert_array_equal(exe(x), 2 * x)
        except BaseException as error:  # noqa: BLE001  # shown below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_profiles_wait_for_the_kernel(gpu, exe) -> None:
    profile = exe.profile(np.ones(100, np.float32), repeats=3)
    assert [t.kernel for t in profile] == ["double"]
    assert profile.total > 0
    launches = [k for k, c in enumerate(gpu.calls) if c.startswith("launch")]
    assert all(gpu.calls[k + 1] == "wait" for k in launches)


def weighted() -> tw.Schedule:
    """Return a schedule of ``y = x + w`` with a weight ``w``."""
    module = tw.parse("""
@prim_func
def shift(x: Buffer[(4,), f32], w: Buffer[(4,), f32], y: Out[(4,), f32]):
    for i in range(4):
        with block("add"):
            vi = spatial(i)
            y[vi] = x[vi] + w[vi]

@graph_func
def main(x: Tensor[(4,), f32]):
    y: Tensor[(4,), f32] = call_tir(shift, x, const("w", Tensor[(4,), f32]))
    return y
""")
    weights = np.arange(4, dtype=np.float32)
    sch = tw.Schedule(module.with_constants({"w": Constant((4,), f32, lambda: weights)}))
    (i,) = sch.get_loops(sch.get_block("add"))
    sch.bind(i, "threadIdx.x")
    return sch


def test_weights_are_uploaded_once(driver) -> None:
    def run(_name: str, _dims: list[int], params: list[int]) -> int:
        x, w, y = (array_at(word_at(p), 4) for p in params)
        y[:] = x + w
        return 0

    driver.on_launch(run, 3)
    exe = tw.compile(weighted(), CUDA)
    for _ in range(3):
        np.testing.assert_array_equal(exe(np.ones(4, np.float32)), [1, 2, 3, 4])
    assert len([c for c in driver.calls if c == "copy host to device 16"]) == 1 + 3


def test_a_kernel_image_is_loaded_once(gpu) -> None:
    tw.compile(doubled(), CUDA)(np.ones(3, np.float32))
    before = len([c for c in gpu.calls if c.startswith("load")])
    tw.compile(doubled(), CUDA)(np.ones(3, np.float32))
    assert len([c for c in gpu.calls if c.startswith("load")]) == before


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("elementwise", [(37, 52), (52,)]),
        ("softmax", [(5, 300)]),
        ("matmul", [(17, 33), (33, 70)]),
        ("tensor_matmul", [(17, 33), (33, 40)]),
    ],
)
def test_results_of_emulated_kernels_equal_target_simt(driver, name: str, shapes) -> None:
    """Only the driver is fake: PyCUDA, host flow, machine code and launches are real."""
    schedule = getattr(kernels, name)()
    simt = tw.compile(schedule, tw.Target("simt", arch="sm_80"))
    driver.emulate(schedule)
    rng = np.random.default_rng(3)
    (source,) = schedule.module.prims
    types = [b.dtype.numpy for b in source.buffer_params]
    arguments = [rng.standard_normal(s).astype(t) for s, t in zip(shapes, types, strict=False)]
    result = tw.compile(schedule, CUDA)(*arguments)
    np.testing.assert_array_equal(result, simt(*arguments))
    assert "load cubin" in driver.calls or name in str(opened_device()._loaded)


def test_memory_of_the_gpu_is_exhausted(gpu, exe) -> None:
    opened_device().trim()
    gpu.library.fake_limit(gpu.used + 4096)
    with pytest.raises(OutOfMemoryError, match="cannot allocate 400000 bytes on Fake GPU"):
        exe(np.ones(100_000, np.float32))
    small = opened_device().upload(np.ones(3, np.float32))
    gpu.library.fake_limit(gpu.used)
    opened_device().trim()
    x = np.ones(600, np.float32)
    gpu.library.fake_limit(gpu.used + 4096)
    with pytest.raises(OutOfMemoryError, match="cannot allocate"):
        for _ in range(8):
            x = np.concatenate([x, x])
            exe(x)
    gpu.reset()
    np.testing.assert_array_equal(small.numpy(), 1)


def test_a_kernel_that_faults(gpu, exe) -> None:
    gpu.on_launch(lambda *_: 700, 3)
    with pytest.raises(LaunchError, match="an illegal memory access") as error:
        exe(np.ones(5, np.float32))
    assert error.value.details["code"] == 700
    assert error.value.details["kernel"] == "double"
    allocated = opened_device().allocated
    with pytest.raises(LaunchError):
        exe(np.ones(5, np.float32))
    gc.collect()
    assert opened_device().allocated <= allocated


def test_a_gpu_older_than_the_target(driver) -> None:
    exe = tw.compile(doubled(), tw.Target("cuda", arch="sm_90a"))
    assert ".target sm_90a" in exe.assembly("double")
    with pytest.raises(WrongArchError, match="sm_90a"):
        exe(np.ones(3, np.float32))


def test_another_generation_of_gpus_loads_the_ptx(driver) -> None:
    driver.library.fake_capability(90)
    device = CudaDevice()
    assert device.capability == 90
    artifact = tw.compile(doubled(), CUDA).artifact
    device.load(artifact)
    assert driver.calls[-1] == "load ptx"
    special = Image("sm_80a", "", b"")
    with pytest.raises(WrongArchError, match="compiled for sm_80a, but Fake GPU is sm_90"):
        device._loadable("k", special)


def test_a_driver_older_than_the_machine_code_loads_the_ptx(driver) -> None:
    artifact = tw.compile(doubled(), CUDA).artifact
    driver.library.fake_unloadable(218)  # machine code only
    CudaDevice().load(artifact)
    assert driver.calls[-1] == "load ptx"


@pytest.mark.parametrize("code", [200, 209])
def test_a_driver_that_rejects_the_image(driver, code: int) -> None:
    artifact = tw.compile(doubled(), CUDA).artifact
    device = CudaDevice()
    driver.library.fake_unloadable(code)
    with pytest.raises(WrongArchError, match="cannot load kernel 'double'"):
        device.load(artifact)


def test_invalid_arguments_raise_the_same_errors_as_on_a_cpu(exe) -> None:
    with pytest.raises(DTypeError, match="expected dtype f32, got f64"):
        exe(np.ones(3))
    with pytest.raises(ArgumentShapeError, match="expected n = 4"):
        exe["double"].into(np.ones(4, np.float32), np.ones(3, np.float32))
    x = np.ones(4, np.float32)
    with pytest.raises(AliasError, match="shares memory"):
        exe["double"].into(x, x)
    fixed = np.ones(4, np.float32)
    fixed.flags.writeable = False
    with pytest.raises(ReadOnlyError):
        exe["double"].into(x, fixed)


def test_a_misaligned_part_of_a_tensor(exe) -> None:
    tensor = opened_device().upload(np.arange(9, dtype=np.float32))
    part = DeviceTensor(tensor.address + 4, (8,), f32, opened_device(), tensor)
    with pytest.raises(AlignmentError, match="a multiple of 16 bytes"):
        exe(part)
    part = DeviceTensor(tensor.address + 16, (5,), f32, opened_device(), tensor)
    np.testing.assert_array_equal(exe(part).numpy(), [8, 10, 12, 14, 16])


def test_grids_beyond_the_launch_limits_are_rejected(driver) -> None:
    sch = tw.Schedule(
        tw.parse("""
n = symbols("n", lower=0)

@prim_func
def rows(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("b"):
            vi = spatial(i)
            y[vi] = x[vi]
""")
    )
    (i,) = sch.get_loops(sch.get_block("b"))
    sch.bind(i, "blockIdx.y")
    exe = tw.compile(sch, CUDA)
    exe(np.ones(65_535, np.float32))
    with pytest.raises(LaunchError, match="has 65536 thread blocks, expected at most 65535"):
        exe(np.ones(65_536, np.float32))


def test_a_device_has_its_own_runtime_table(driver) -> None:
    artifact = tw.compile(doubled(), CUDA)
    assert artifact.target == CUDA
    with pytest.raises(ProviderError, match="uses the runtime table of its device"):
        tw.compile(doubled(), CUDA, table=RuntimeTable())


def network() -> tw.Module:
    """Return a linear layer with a transposed weight and a softmax."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((5, 8)).astype(np.float32)
    bias = rng.standard_normal(5).astype(np.float32)
    module = tw.parse("""
rows = symbols("rows", lower=0)

@graph_func
def main(x: Tensor[(rows, 8), f32]):
    transposed: Tensor[(8, 5), f32] = permute_dims(const("w", Tensor[(5, 8), f32]), axes=(1, 0))
    product: Tensor[(rows, 5), f32] = matmul(x, transposed)
    shifted: Tensor[(rows, 5), f32] = add(product, const("b", Tensor[(5,), f32]))
    y: Tensor[(rows, 5), f32] = softmax(shifted, axis=1)
    return y, product
""")
    return module.with_constants({
        "w": Constant((5, 8), f32, lambda: weights), "b": Constant((5,), f32, lambda: bias),
    })  # fmt: skip


def test_a_graph_with_default_schedules(driver) -> None:
    driver.emulate(network())
    exe, cpu = tw.compile(network(), CUDA), tw.compile(network(), "cpu")
    for rows in (1, 7, 0, 3):
        x = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
        for result, expected in zip(exe(x), cpu(x), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    uploaded = opened_device().upload(np.ones((2, 8), np.float32))
    y, product = exe(uploaded)
    assert isinstance(y, DeviceTensor)
    assert product.shape == (2, 5)
    np.testing.assert_allclose(y.numpy(), cpu(uploaded.numpy())[0], rtol=1e-5)
