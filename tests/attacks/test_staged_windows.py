"""Windows of stencils and convolutions that the threads of a block copy to shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tilewright as tw

if TYPE_CHECKING:
    from collections.abc import Sequence

ROW = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n * 2 + 3,), f32], y: Out[(n,), f32]):
    for i in range(n):
        for k in range(5):
            with block("y"):
                vi, vk = spatial(i), reduce(k)
                with init(): y[vi] = 0.0
                y[vi] += x[vi * 2 + vk]
"""

PLANE = """
n, m = symbols("n m", lower=0)

@prim_func
def f(x: Buffer[(n + 2, m + 2), f32], y: Out[(n, m), f32]):
    for i in range(n):
        for j in range(m):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] + x[vi + 1, vj + 1] * 2.0 + x[vi + 2, vj] + x[vi, vj + 2]
"""

CHANNELS = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(3, n + 4), f32], w: Buffer[(2, 3, 5), f32], y: Out[(2, n), f32]):
    for o in range(2):
        for i in range(n):
            for c in range(3):
                for k in range(5):
                    with block("y"):
                        vo, vi, vc, vk = spatial(o), spatial(i), reduce(c), reduce(k)
                        with init(): y[vo, vi] = 0.0
                        y[vo, vi] += x[vc, vi + vk] * w[vo, vc, vk]
"""

PADDED = """
n = symbols("n", lower=0)

@prim_func
def f(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    p = alloc((n + 2,), f32)
    for a in range(n + 2):
        with block("p"):
            va = spatial(a)
            p[va] = where(condition(va >= 1 and va <= n), x[va - 1], 0.0)
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = p[vi] + p[vi + 1] + p[vi + 2]
"""


def share(sch: tw.Schedule, block: str, threads: Sequence[int], loops: int = 1) -> None:
    """Let the threads of a block copy the elements of the innermost loops together."""
    inner = sch.get_loops(block)[-loops:]
    whole = sch.fuse(tuple(inner)) if loops > 1 else inner[0]
    parts = sch.split(whole, (None, *threads))
    axes = ("threadIdx.x",) if len(threads) == 1 else ("threadIdx.y", "threadIdx.x")
    for part, axis in zip(parts[1:], axes, strict=True):
        sch.bind(part, axis)


def compiled(sch: tw.Schedule, *, scoped: bool = False) -> tw.Executable:
    """Return a kernel; the allocation of its temporary is that of the whole call if not scoped."""
    text = str(sch.module)
    return tw.compile(tw.parse(text if scoped else outermost(text)), target="simt")


def outermost(text: str) -> str:
    """Return a program with its allocation at the start of the function."""
    lines = text.splitlines()
    at = next(k for k, line in enumerate(lines) if " = alloc(" in line)
    start = next(k for k, line in enumerate(lines) if line.startswith("def "))
    moved = "    " + lines.pop(at).strip()
    return "\n".join([*lines[: start + 1], moved, *lines[start + 1 :]])


def result(exe: tw.Executable, shape: tuple[int, ...], *inputs: np.ndarray) -> np.ndarray:
    """Return the output of a kernel, which gets an array full of NaN."""
    out = np.full(shape, np.nan, np.float32)
    exe["f"].into(*inputs, out)
    return out


def integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).integers(-4, 5, shape).astype(np.float32)


def staged_row() -> tw.Schedule:
    sch = tw.Schedule(tw.parse(ROW))
    sch.split("i", (None, 16))
    sch.bind("i_0", "blockIdx.x")
    sch.cache_read("y", "x", "shared")
    sch.compute_at("copy_x", "i_0")
    sch.bind("i_1", "threadIdx.x")
    share(sch, "copy_x", (16,))
    return sch


@pytest.fixture(scope="module", params=[False, True])
def row(request: pytest.FixtureRequest) -> tw.Executable:
    return compiled(staged_row(), scoped=request.param)


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 35])
def test_a_window_with_a_stride(row: tw.Executable, n: int) -> None:
    x = integers(2 * n + 3)
    np.testing.assert_array_equal(
        result(row, (n,), x), [x[2 * i : 2 * i + 5].sum() for i in range(n)]
    )


@pytest.fixture(scope="module", params=["fused", "split in both dimensions"])
def plane(request: pytest.FixtureRequest) -> tw.Executable:
    sch = tw.Schedule(tw.parse(PLANE))
    sch.split("i", (None, 4))
    sch.split("j", (None, 8))
    sch.reorder(("i_0", "j_0", "i_1", "j_1"))
    sch.bind("i_0", "blockIdx.y")
    sch.bind("j_0", "blockIdx.x")
    sch.cache_read("y", "x", "shared")
    sch.compute_at("copy_x", "j_0")
    sch.bind("i_1", "threadIdx.y")
    sch.bind("j_1", "threadIdx.x")
    if request.param == "fused":
        share(sch, "copy_x", (4, 8), loops=2)
    else:
        rows, columns = sch.get_loops("copy_x")[-2:]
        outer, inner = sch.split(rows, (None, 4)), sch.split(columns, (None, 8))
        sch.reorder((outer[0], inner[0], outer[1], inner[1]))
        sch.bind(outer[1], "threadIdx.y")
        sch.bind(inner[1], "threadIdx.x")
    return compiled(sch)


@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 3), (1, 1), (4, 8), (5, 9), (13, 17)])
def test_a_window_in_two_dimensions(plane: tw.Executable, n: int, m: int) -> None:
    x = integers(n + 2, m + 2)
    expected = x[:n, :m] + 2 * x[1 : n + 1, 1 : m + 1] + x[2:, :m] + x[:n, 2:]
    np.testing.assert_array_equal(result(plane, (n, m), x), expected)


@pytest.fixture(scope="module", params=["i_0", "c"])
def channels(request: pytest.FixtureRequest) -> tw.Executable:
    sch = tw.Schedule(tw.parse(CHANNELS))
    sch.split("i", (None, 16))
    sch.reorder(("i_0", "c", "o", "i_1", "k") if request.param == "c" else ("i_0", "o", "i_1"))
    sch.cache_read("y", "x", "shared")
    sch.compute_at("copy_x", request.param)
    sch.bind("i_0", "blockIdx.x")
    sch.bind("o", "threadIdx.y")
    sch.bind("i_1", "threadIdx.x")
    share(sch, "copy_x", (2, 16), loops=1 if request.param == "c" else 2)
    return compiled(sch)


@pytest.mark.parametrize("n", [0, 1, 16, 17])
def test_a_convolution_with_channels(channels: tw.Executable, n: int) -> None:
    x, w = integers(3, n + 4), integers(2, 3, 5)
    expected = sum(np.einsum("oc,cn->on", w[:, :, k], x[:, k : k + n]) for k in range(5))
    np.testing.assert_array_equal(result(channels, (2, n), x, w), expected)


@pytest.fixture(scope="module")
def padded() -> tw.Executable:
    sch = tw.Schedule(tw.parse(PADDED))
    sch.split("i", (None, 16))
    sch.bind("i_0", "blockIdx.x")
    sch.set_scope("p", "shared")
    sch.compute_at("p", "i_0")
    sch.bind("i_1", "threadIdx.x")
    share(sch, "p", (16,))
    return compiled(sch)


@pytest.mark.parametrize("n", [0, 1, 2, 16, 17, 40])
def test_a_window_of_a_padded_temporary(padded: tw.Executable, n: int) -> None:
    x = integers(n)
    expected = np.convolve(x, np.ones(3, np.float32), "same")[:n] if n > 2 else [x.sum()] * n
    np.testing.assert_array_equal(result(padded, (n,), x), expected)


@pytest.mark.parametrize(
    "limit", ["ax0_1_0 * 16 + ax0_1_1 <= 33", "ax0_1_0 * 15 + ax0_1_1 <= 31", "ax0_1_1 <= 3"]
)
def test_a_copy_that_misses_an_element_is_refused(limit: str) -> None:
    """Thread blocks would read an element that another one copied."""
    text, whole = outermost(str(staged_row().module)), "ax0_1_0 * 16 + ax0_1_1 <= 34"
    assert whole in text
    with pytest.raises(tw.TilewrightError, match=r"are independent|another thread block"):
        tw.compile(tw.parse(text.replace(whole, limit)), target="simt")
