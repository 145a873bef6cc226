"""Tensors on two devices of a CPU, with separate memory providers."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import DeviceUnavailableError, OutOfMemoryError
from tilewright.codegen.export.errors import ExportError
from tilewright.codegen.lower.host.devices import PlacementError
from tilewright.codegen.runtime.table import MemoryProvider, ProviderError, RuntimeTable
from tilewright.ir.interpreter import run_graph
from tilewright.ir.script import parse

from tests.codegen.runtime.helpers import CountingMemory

KERNEL = """
n = symbols("n", lower=1)

@prim_func
def double(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi] * 2.0
"""

OFFLOADED = (
    KERNEL
    + """
@graph_func(stage="memory")
def main(x: Tensor[(n,), f32]):
    a_storage = alloc_storage(n * 4)
    a = view(a_storage, 0, Tensor[(n,), f32])
    launch(double, x, a)
    away_storage = alloc_storage(n * 4, device="cpu:1")
    away = view(away_storage, 0, Tensor((n,), f32, device="cpu:1"))
    copy(a, away)
    more_storage = alloc_storage(n * 4, device="cpu:1")
    more = view(more_storage, 0, Tensor((n,), f32, device="cpu:1"))
    launch(double, away, more)
    b_storage = alloc_storage(n * 4)
    b = view(b_storage, 0, Tensor[(n,), f32])
    copy(more, b)
    c_storage = alloc_storage(n * 4)
    c = view(c_storage, 0, Tensor[(n,), f32])
    launch(double, b, c)
    return c
"""
)
"""Of three launches, the second one runs on the second device."""


def counting() -> tuple[CountingMemory, RuntimeTable]:
    """Return the memory of device cpu:1, and a table with that device."""
    memory = CountingMemory()
    provider = MemoryProvider(memory.allocate, memory.free)
    return memory, RuntimeTable(devices={"cpu:1": provider})


def test_tensors_on_the_second_device() -> None:
    memory, table = counting()
    module = parse(OFFLOADED)
    exe = tw.compile(module, table=table)
    for count in (1, 5, 700):
        x = np.arange(count, dtype=np.float32)
        np.testing.assert_array_equal(exe(x), 8.0 * x)
        np.testing.assert_array_equal(run_graph(module, (x,))[0], 8.0 * x)
    assert memory.allocations == 6
    assert not memory.live
    assert exe.spec().devices == ("cpu:1",)


def test_a_storage_is_released_when_the_memory_of_its_device_is_exhausted() -> None:
    memory, table = counting()
    exe = tw.compile(parse(OFFLOADED), table=table)
    memory.fail_at = 1
    with pytest.raises(OutOfMemoryError):
        exe(np.ones(4, np.float32))
    assert not memory.live


def test_a_device_that_does_not_exist() -> None:
    message = "no device 'cpu:1'; devices are 'cpu'"
    with pytest.raises(DeviceUnavailableError, match=message):
        tw.compile(parse(OFFLOADED))
    with pytest.raises(ProviderError, match="'cpi:1' is not a device"):
        RuntimeTable(devices={"cpi:1": None})


def test_a_parameter_on_another_device() -> None:
    text = (
        KERNEL
        + """
@graph_func(stage="memory")
def main(x: Tensor((n,), f32, device="cpu:1")):
    return x
"""
    )
    with pytest.raises(PlacementError, match="parameter 'x' is on 'cpu:1'"):
        tw.compile(parse(text), table=counting()[1])


def test_an_export_of_two_devices(tmp_path) -> None:
    with pytest.raises(ExportError, match="function 'main' has tensors on 'cpu:1'"):
        tw.export(parse(OFFLOADED), tmp_path / "made")
