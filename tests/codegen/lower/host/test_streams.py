"""Kernels and copies on several streams of a device, which run as late as the waits allow."""

from __future__ import annotations

import ctypes
import random
import re
from collections.abc import Iterator

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.build.rtlib_object import rtlib_address
from tilewright.codegen.errors import DeviceUnavailableError
from tilewright.codegen.lower.host.devices import PlacementError
from tilewright.codegen.lower.host.streams import Streams
from tilewright.codegen.rtlib import devices, layout
from tilewright.codegen.runtime.cuda.device import opened_device
from tilewright.ir.script import parse

from tests.codegen.runtime.cuda.pretended import FakeDriver, loaded

CUDA = tw.Target("cuda", arch="sm_80")


@pytest.fixture
def driver() -> Iterator[FakeDriver]:
    """The fake driver after a reset."""
    fake = loaded()
    fake.reset()
    yield fake
    fake.reset()


KERNELS = """
n = symbols("n", lower=1)

@prim_func
def double(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi] * 2.0

@prim_func
def plus(x: Buffer[(n,), f32], z: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = x[vi] + z[vi]
"""

TWO_STREAMS = (
    KERNELS
    + """
@graph_func(stage="memory")
def main(x: Tensor[(n,), f32]):
    a_storage = alloc_storage(n * 4)
    a = view(a_storage, 0, Tensor[(n,), f32])
    launch(double, x, a, stream=1)
    b_storage = alloc_storage(n * 4)
    b = view(b_storage, 0, Tensor[(n,), f32])
    launch(double, x, b, stream=2)
    c_storage = alloc_storage(n * 4)
    c = view(c_storage, 0, Tensor[(n,), f32])
    launch(plus, a, b, c, stream=1)
    d_storage = alloc_storage(n * 4)
    d = view(d_storage, 0, Tensor[(n,), f32])
    launch(double, c, d)
    return d
"""
)
"""2 * (2 * x + 2 * x); the second launch may run at the same time as the first one."""

REUSED = (
    KERNELS
    + """
@graph_func(stage="memory")
def main(x: Tensor[(n,), f32]):
    a_storage = alloc_storage(n * 4)
    a = view(a_storage, 0, Tensor[(n,), f32])
    launch(double, x, a, stream=1)
    b_storage = alloc_storage(n * 4)
    b = view(b_storage, 0, Tensor[(n,), f32])
    launch(double, a, b, stream=1)
    c_storage = alloc_storage(n * 4)
    c = view(c_storage, 0, Tensor[(n,), f32])
    launch(plus, x, x, c, stream=2)
    d_storage = alloc_storage(n * 4)
    d = view(d_storage, 0, Tensor[(n,), f32])
    launch(plus, b, c, d)
    return d
"""
)
"""4 * x + 2 * x; c may be at the address of a, which stream 1 has not read yet."""

OFFLOADED = (
    KERNELS
    + """
@graph_func(stage="memory")
def main(x: Tensor[(n,), f32]):
    a_storage = alloc_storage(n * 4)
    a = view(a_storage, 0, Tensor[(n,), f32])
    launch(double, x, a)
    host_storage = alloc_storage(n * 4, device="cpu")
    host = view(host_storage, 0, Tensor((n,), f32, device="cpu"))
    copy(a, host, stream=1)
    b_storage = alloc_storage(n * 4)
    b = view(b_storage, 0, Tensor[(n,), f32])
    launch(double, x, b)
    c_storage = alloc_storage(n * 4)
    c = view(c_storage, 0, Tensor[(n,), f32])
    copy(host, c, stream=1)
    d_storage = alloc_storage(n * 4)
    d = view(d_storage, 0, Tensor[(n,), f32])
    launch(plus, b, c, d)
    return d
"""
)
"""A tensor is in host memory between two launches."""


def compiled(driver, text: str) -> tw.Executable:
    driver.emulate(parse(re.sub(r", (stream=\d|device=\"cpu\")", "", text)))
    return tw.compile(parse(text), CUDA)


@pytest.mark.parametrize(
    ("text", "factor"),
    [(TWO_STREAMS, 8), (REUSED, 6), (OFFLOADED, 4)],
    ids=["two", "reused", "off"],
)
def test_results_are_those_of_program_order(driver, text: str, factor: int) -> None:
    exe = compiled(driver, text)
    used = opened_device().allocated
    for count in (3, 700, 3):
        x = np.arange(count, dtype=np.float32)
        np.testing.assert_array_equal(exe(x), factor * x)
    assert opened_device().allocated <= used + 1  # the arena


def test_independent_operations_do_not_wait(driver) -> None:
    exe = compiled(driver, TWO_STREAMS)
    exe(np.ones(3, np.float32))
    waits = [c for c in driver.calls if "waits" in c]
    assert waits == [
        "stream 1 waits for 0",  # earlier calls
        "stream 2 waits for 0",
        "stream 1 waits for 2",  # b
        "stream 0 waits for 1",  # c
        "stream 0 waits for 1",  # the end of the call, also after an error
        "stream 0 waits for 2",
    ]


@pytest.mark.parametrize("text", [TWO_STREAMS, REUSED], ids=["two", "reused"])
def test_without_waits_results_are_wrong(driver, monkeypatch, text: str) -> None:
    """The streams of the fake driver run as late as possible."""
    tripled = text.replace("2.0", "3.0")
    x = np.ones(3, np.float32)
    monkeypatch.setattr(Streams, "before", lambda self, binding: None)
    assert compiled(driver, tripled)(x).tolist() not in ([18.0] * 3, [11.0] * 3)


def test_copies_between_host_and_device(driver) -> None:
    exe = compiled(driver, OFFLOADED)
    exe(np.ones(3, np.float32))
    assert driver.calls.count("copy device to host 12") == 2  # the tensor, and the result
    assert driver.calls.count("copy host to device 12") == 2  # the tensor, and the argument


def test_a_device_that_does_not_exist(driver) -> None:
    exe = tw.compile(parse(OFFLOADED.replace('device="cpu"', 'device="cuda:3"')), CUDA)
    with pytest.raises(
        DeviceUnavailableError, match="no device 'cuda:3'; devices are 'cpu', 'cuda'"
    ):
        exe(np.ones(3, np.float32))


def test_a_kernel_with_arguments_in_host_memory() -> None:
    text = OFFLOADED.replace("launch(plus, b, c, d)", "launch(plus, host, host, host)")
    with pytest.raises(PlacementError, match=r"kernel 'plus' is compiled for .* on 'cpu'"):
        tw.compile(parse(text), CUDA)


@pytest.mark.parametrize("offset", [layout.RECORD_CLUSTER, layout.RECORD_ATTRIBUTES])
def test_clusters_and_attributes_are_rejected(driver, offset: int) -> None:
    """The record has words for them, and the provider for CUDA does not ignore them."""
    record = (ctypes.c_int64 * (layout.RECORD_SIZE // 8))()
    record[offset // 8] = 2
    call = (ctypes.c_int64 * 64)()
    call[layout.CALL_TABLE // 8] = opened_device().table.address
    launch = ctypes.CFUNCTYPE(ctypes.c_int, *(ctypes.c_void_p,) * 3, ctypes.c_int64)(
        rtlib_address(devices.launch_with_cuda)
    )
    assert launch(call, record, None, 0) == devices.NOT_SUPPORTED
    assert not [c for c in driver.calls if c.startswith("launch")]


SWITCHED = (
    KERNELS
    + """
@graph_func(stage="memory")
def main(x: Tensor[(n,), f32]):
    a_storage = alloc_storage(n * 4)
    a = view(a_storage, 0, Tensor[(n,), f32])
    b_storage = alloc_storage(n * 4)
    b = view(b_storage, 0, Tensor[(n,), f32])
    c_storage = alloc_storage(n * 4)
    c = view(c_storage, 0, Tensor[(n,), f32])
    launch(double, x, a, stream=1)
    if n < 4:
        launch(double, a, b, stream=2)
    else:
        launch(plus, a, x, b)
    launch(plus, a, b, c, stream=1)
    return c
"""
)
"""6 * x below 4 elements, else 5 * x."""


def test_operations_in_branches(driver) -> None:
    exe = compiled(driver, SWITCHED)
    for count, factor in ((3, 6), (4, 5), (700, 5), (1, 6)):
        x = np.arange(count, dtype=np.float32)
        np.testing.assert_array_equal(exe(x), factor * x)


LOOPED = (
    KERNELS.replace('n = symbols("n", lower=1)', 'n, k = symbols("n k", lower=0)')
    + """
@graph_func(stage="memory")
def main(x: Tensor[(n,), f32]):
    @loop(k, count=4)
    def y(c: Tensor[(n,), f32] = x):
        a_storage = alloc_storage(n * 4)
        a = view(a_storage, 0, Tensor[(n,), f32])
        launch(double, c, a, stream=1)
        b_storage = alloc_storage(n * 4)
        b = view(b_storage, 0, Tensor[(n,), f32])
        launch(plus, a, c, b, stream=2)
        return b
    z_storage = alloc_storage(n * 4)
    z = view(z_storage, 0, Tensor[(n,), f32])
    launch(double, y, z, stream=1)
    return z
"""
)
"""Each iteration multiplies by 3; the result is 162 * x."""


def test_operations_in_loops(driver) -> None:
    exe = compiled(driver, LOOPED)
    for count in (3, 700, 1):
        x = np.arange(count, dtype=np.float32)
        np.testing.assert_array_equal(exe(x), 162.0 * x)


def random_program(seed: int) -> tuple[str, float]:
    """Return a program of launches on random streams, and the factor that it multiplies x by."""
    rng = random.Random(seed)
    lines, factors = ["@graph_func(stage='memory')", "def main(x: Tensor[(n,), f32]):"], {"x": 1.0}
    for k in range(9):
        stream = f", stream={rng.randrange(3)}"
        first, second = (rng.choice(list(factors)[-3:]) for _ in range(2))
        host = rng.random() < 0.2 and k < 8
        lines += [
            f"    s{k} = alloc_storage(n * 4)",
            f"    t{k} = view(s{k}, 0, Tensor[(n,), f32])",
        ]
        if host:
            lines += [
                f'    h{k} = alloc_storage(n * 4, device="cpu")',
                f'    u{k} = view(h{k}, 0, Tensor((n,), f32, device="cpu"))',
                f"    copy({first}, u{k}{stream})",
                f"    copy(u{k}, t{k}, stream={rng.randrange(3)})",
            ]
            factors[f"t{k}"] = factors[first]
        elif rng.random() < 0.5:
            lines.append(f"    launch(double, {first}, t{k}{stream})")
            factors[f"t{k}"] = 2 * factors[first]
        else:
            lines.append(f"    launch(plus, {first}, {second}, t{k}{stream})")
            factors[f"t{k}"] = factors[first] + factors[second]
    lines.append("    return t8")
    return KERNELS + "\n".join(lines), factors["t8"]


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(driver, seed: int) -> None:
    text, factor = random_program(seed)
    exe = compiled(driver, text)
    for count in (1, 700):
        x = np.arange(count, dtype=np.float32)
        np.testing.assert_array_equal(exe(x), np.float32(factor) * x)
