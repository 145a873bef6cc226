"""Host flow with tensors in device memory, which the host cannot access."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import ArgumentShapeError, DeviceError, LaunchError
from tilewright.codegen.lower.host.devices import NoDeviceLibraryError
from tilewright.codegen.runtime.cuda.device import opened_device
from tilewright.ir.dtype import bf16, bool_, i64
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import (
    Binding,
    Branch,
    CallDPSLibrary,
    CallTIR,
    IfElse,
    KernelVersion,
    TensorInfo,
    Value,
)
from tilewright.ir.loop.builder import Builder
from tilewright.ir.loop.nodes import Binary
from tilewright.ir.module import Module
from tilewright.ir.script import parse
from tilewright.ir.symbolic import as_expr, var

from tests.codegen.runtime.helpers import chain, increment_kernel, scale_kernel, tensor
from tests.ir.graph.state_programs import ORDERED

CUDA = tw.Target("cuda", arch="sm_80")


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def compiled(driver, module: Module) -> tw.Executable:
    driver.emulate(module)
    return tw.compile(module, CUDA)


def branching() -> Module:
    """Return the module of main(x, flag) = 3 * x if flag else x / 2."""
    n, g = var("n"), GraphBuilder("main")
    x, flag = g.param("x", tensor(n)), g.param("flag", TensorInfo((), bool_))

    def side(uid: int, kernel: str) -> Branch:
        value = Value(uid, kernel, tensor(n))
        return Branch((Binding(value, CallTIR(kernel, (x,), (tensor(n),))),), (value,))

    selected = g.bind("selected", tensor(n), IfElse(flag, side(100, "triple"), side(101, "halve")))
    kernels = (scale_kernel("triple", 3), scale_kernel("halve", 0.5))
    return Module().with_functions(*kernels, g.finish((selected, x)))


def test_a_tensor_on_the_device_selects_a_branch(driver) -> None:
    exe = compiled(driver, branching())
    for flag, expected in ((True, 3.0), (False, 0.5)):
        selected, x = exe(ones(5), np.array(flag))
        assert selected.tolist() == [expected] * 5
        assert x.tolist() == [1.0] * 5  # a parameter that is a result is copied on the device
    assert "copy device to host 1" in driver.calls
    assert "copy device to device 20" in driver.calls


def test_elements_of_a_tensor_on_the_device_bind_symbols(driver) -> None:
    n, m = var("n", lower=1), var("m", lower=0)
    g = GraphBuilder("main")
    x = g.param("x", tensor(n, m))
    g.param("shape", TensorInfo((as_expr(2),), i64, elements=(n, m)))
    exe = tw.compile(Module().with_functions(g.finish((x,))), CUDA)
    assert exe(ones(2, 3), np.array([2, 3])).shape == (2, 3)
    with pytest.raises(ArgumentShapeError, match="element 1"):
        exe(ones(2, 3), np.array([2, 4]))


def test_state_is_updated_on_the_device(driver) -> None:
    exe = compiled(driver, Module().with_functions(increment_kernel()))
    state = ones(4)
    exe["increment"].into(state)
    assert state.tolist() == [2.0] * 4
    uploaded = opened_device().upload(state)
    before = len(driver.calls)
    exe["increment"].into(uploaded)
    assert not [c for c in driver.calls[before:] if c.startswith("copy")]
    assert uploaded.numpy().tolist() == [3.0] * 4


def test_an_arena_on_the_device_is_used_for_all_shapes(driver) -> None:
    exe = compiled(driver, chain(5))
    for count in (3, 700, 3):
        assert exe(ones(count)).tolist() == [6.0] * count
    assert exe.memory({"n": 700}).arena >= 2 * 2800


def test_versions_of_a_kernel_are_chosen_by_their_guards(driver) -> None:
    n, g = var("n"), GraphBuilder("main")
    x = g.param("x", tensor(n))
    versions = (KernelVersion(n <= 1, "triple"), KernelVersion(n <= 4, "halve"))
    h = g.bind("h", tensor(n), CallTIR("double", (x,), (tensor(n),), versions=versions))
    kernels = [scale_kernel(k, f) for k, f in (("double", 2), ("triple", 3), ("halve", 0.5))]
    exe = compiled(driver, Module().with_functions(*kernels, g.finish((h,))))
    assert [exe(ones(k))[0] for k in (1, 2, 4, 5)] == [3.0, 0.5, 0.5, 2.0]
    launches = [c.split()[1] for c in driver.calls if c.startswith("launch")]
    assert launches == ["triple$i32", "halve$i32", "halve$i32", "double$i32"]


def test_bfloat16_arguments_and_results(driver) -> None:
    n, b = var("n", lower=0), Builder("twice")
    x, y = b.param("x", (n,), bf16), b.param("y", (n,), bf16, "out")
    b.compute(y, lambda i: Binary("add", b.load(x, i), b.load(x, i)))
    exe = compiled(driver, Module().with_functions(b.finish()))
    x_bits = np.arange(5).astype(bf16.numpy)
    result = exe(x_bits)
    assert result.dtype == bf16.numpy
    assert result.astype(float).tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]
    import torch

    compact = torch.arange(5, dtype=torch.bfloat16)
    assert exe(compact).astype(float).tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]
    strided = torch.arange(10, dtype=torch.bfloat16)[::2]
    assert exe(strided).astype(float).tolist() == [0.0, 4.0, 8.0, 12.0, 16.0]


def test_torch_tensors_on_the_host_are_copied(driver) -> None:
    import torch

    exe = compiled(driver, Module().with_functions(scale_kernel("triple", 3)))
    assert exe(torch.ones(3)).tolist() == [3.0] * 3


def test_a_host_library_call_is_rejected(driver) -> None:
    n, g = var("n", lower=0), GraphBuilder("main")
    x = g.param("x", tensor(n, n))
    y = g.bind("y", tensor(n, n), CallDPSLibrary("blas.sgemm", (x, x), (tensor(n, n),)))
    with pytest.raises(
        NoDeviceLibraryError, match=r"'blas\.sgemm' requires tensors in host memory"
    ):
        tw.compile(Module().with_functions(g.finish((y,))), CUDA)


def test_a_tensor_of_another_gpu(driver) -> None:
    class TensorOnSecondGpu:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 1)

    exe = compiled(driver, Module().with_functions(scale_kernel("triple", 3)))
    with pytest.raises(DeviceError, match="expected a tensor on cuda:0, got one on cuda:1"):
        exe(TensorOnSecondGpu())


def test_a_failing_copy_reports_an_earlier_fault(driver) -> None:
    exe = compiled(driver, branching())
    driver.library.fake_fault(700)
    with pytest.raises(LaunchError, match="illegal memory access"):
        exe(opened_device().upload(ones(3)), np.array(True))


def test_a_state_stays_on_the_device(driver) -> None:
    exe = compiled(driver, parse(ORDERED))
    state = exe.new_state(cache=np.full(8, 10, np.float32))
    before = len(driver.calls)
    assert exe(np.full(8, 100, np.float32), state=state).tolist() == [22.0] * 8
    copies = [c for c in driver.calls[before:] if c.startswith("copy")]
    assert copies == ["copy host to device 32", "copy device to host 32"]  # argument and result
    assert state["cache"].numpy().tolist() == [100.0] * 8
    other = state.copy()
    state["cache"] = 0
    assert state["cache"].numpy().tolist() == [0.0] * 8
    assert exe(np.ones(8, np.float32), state=other).tolist() == [202.0] * 8
    assert exe(np.ones(8, np.float32)).tolist() == [2.0] * 8
