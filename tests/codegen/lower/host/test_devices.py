"""Tensors on two devices of a CPU, and ``to_device`` there and on a GPU with host memory."""

# ruff: noqa: E501  # lines of programs

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import DeviceUnavailableError, OutOfMemoryError
from tilewright.codegen.export.errors import ExportError
from tilewright.codegen.lower.host.devices import PlacementError
from tilewright.codegen.runtime.table import MemoryProvider, ProviderError, RuntimeTable
from tilewright.ir.interpreter import run_graph
from tilewright.ir.script import parse

from tests.codegen.runtime.cuda.pretended import FakeDriver, loaded
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


CONDITION = """
@graph_func
def main(x: Tensor[(n, 4), f32]):
    s = sum(x)
    p0 = less(s, 10.0)
    p = to_device(p0, device="AWAY")
    if p:
        a = multiply(x, 2.0)
        y: Tensor[(n, 4), f32] = a
    else:
        b = negative(x)
        y: Tensor[(n, 4), f32] = b
    return y
"""

BRANCH = """
@graph_func
def main(x: Tensor[(n, 4), f32]):
    s = sum(x)
    p = less(s, 10.0)
    x0 = to_device(x, device="AWAY")
    if p:
        @loop(k, count=2)
        def w(h: Tensor((n, 4), f32, device="AWAY") = x0):
            g = to_device(h, device="default")
            a = add(g, 1.0)
            b = to_device(a, device="AWAY")
            return b
        y: Tensor((n, 4), f32, device="AWAY") = w
    else:
        y: Tensor((n, 4), f32, device="AWAY") = x0
    z = to_device(y, device="default")
    o = to_device(x0, device="default")
    return z, o
"""

CARRIED = """
@graph_func
def main(x: Tensor[(n, 4), f32]):
    x0 = to_device(x, device="AWAY")
    @loop(k, count=n)
    def y(h: Tensor((n, 4), f32, device="AWAY") = x0, e: Tensor((4,), f32, device="AWAY") = each(x0)):
        g = to_device(h, device="default")
        f = to_device(e, device="default")
        a = add(g, f)
        b = to_device(a, device="AWAY")
        s = sum(a, axes=(0,))
        t = to_device(s, device="AWAY")
        return b, t
    last = y[0]
    sums = y[1]
    z = to_device(last, device="default")
    r = to_device(sums, device="default")
    return z, r
"""

UNTIL = """
@graph_func
def main(x: Tensor[(n, 4), f32]):
    zero = full((), 0, dtype="i64")
    x0 = to_device(x, device="AWAY")
    @loop(k)
    def y(i: Tensor[(), i64] = zero, h: Tensor((t, 4), f32, device="AWAY") = x0) -> Tuple[Tensor[(), i64], Tensor((u, 4), f32, device="AWAY"), Tensor((v, 4), f32, device="AWAY")]:
        m0 = less(i, 3)
        m = to_device(m0, device="AWAY")
        while m:
            j = add(i, 1)
            g = to_device(h, device="default")
            s = sum(g, axes=(0,))
            r = reshape(s, (1, 4))
            a = concat(r, g, axis=0)
            b = to_device(a, device="AWAY")
            q = to_device(s, device="AWAY")
            return j, b, q
    h2 = y[1]
    stack = y[2]
    z = to_device(h2, device="default")
    r2 = to_device(stack, device="default")
    return z, r2
"""

PACKED = """
@graph_func
def main(x: Tensor[(n, 4), f32]):
    a = cast(x, dtype="i4")
    b = to_device(a, device="AWAY")
    c = to_device(b, device="AWAY")
    d = to_device(c, device="default")
    e = to_device(d, device="default")
    y = cast(e, dtype="f32")
    return y
"""

PROGRAMS = {
    "a condition": CONDITION,
    "a loop in a branch": BRANCH,
    "carried values and slices": CARRIED,
    "values of unknown size": UNTIL,
    "packed elements, and copies on one device": PACKED,
}
SIZES = (0, 1, 3, 6)


@pytest.fixture
def driver() -> Iterator[FakeDriver]:
    """The fake driver after a reset."""
    fake = loaded()
    fake.reset()
    yield fake
    fake.reset()


def module_with(name: str, away: str) -> tw.Module:
    """Return a program with a name for the other device."""
    symbols = 'n, k, t, u, v = symbols("n k t u v", lower=0)\n'
    return tw.parse(symbols + PROGRAMS[name].replace("AWAY", away))


def check(exe: tw.Executable, module: tw.Module) -> None:
    """Compare the results with those of the interpreter at all sizes."""
    for n in SIZES:
        x = np.arange(n * 4, dtype=np.float32).reshape(n, 4) % 5 - 1
        found, wanted = exe(x), run_graph(module, (x,))
        for a, b in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
            np.testing.assert_array_equal(a, b, f"{n} rows")


@pytest.mark.parametrize("name", PROGRAMS)
def test_on_the_second_device_of_a_cpu(name: str) -> None:
    module = module_with(name, "cpu:1")
    memory, table = counting()
    check(tw.compile(module, "cpu", table=table), module)
    assert memory.allocations
    assert not memory.live


@pytest.mark.parametrize("name", PROGRAMS)
def test_in_host_memory_of_a_program_for_a_gpu(name: str, driver: FakeDriver) -> None:
    module = module_with(name, "cpu")
    driver.emulate(module_with(name, "default"))
    check(tw.compile(module, tw.Target("cuda", arch="sm_80")), module)
