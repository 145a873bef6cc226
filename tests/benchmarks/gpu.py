"""GPU kernels on a GPU: results compared with float64, times with cuBLAS through PyTorch.

Run as ``python -m tests.gpu_check`` or ``make gpu-check``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

import tilewright as tw

from tests.benchmarks.harness import machine, table
from tests.codegen.gpu import kernels

if TYPE_CHECKING:
    from tilewright.codegen.runtime.cuda.device import CudaDevice

Array = np.ndarray
Figures = dict[str, Any]

SINGLE, HALF = 2.0**-24, 2.0**-11
"""Half a unit in the last place of f32 and f16."""

TENSOR_CORE = 2.0**-23
"""The error of an addition in a tensor core, which truncates."""


@dataclass(frozen=True)
class Kernel:
    """A kernel: its schedule, the shapes of its arguments by sizes, and its reference.

    ``reference`` returns the result in float64 and the bound of its rounding error.
    """

    name: str
    schedule: Callable[[], tw.Schedule]
    dtype: type[np.generic]
    shapes: Callable[..., Sequence[tuple[int, ...]]]
    reference: Callable[..., tuple[Array, Array]]
    checked: Sequence[tuple[int, ...]]
    timed: Sequence[tuple[int, ...]]
    work: Callable[..., float]
    unit: str
    peer: Callable[..., object]
    peer_name: str


def _product(slack: float) -> Callable[..., tuple[Array, Array]]:
    def reference(a: Array, b: Array) -> tuple[Array, Array]:
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        size = np.abs(wide_a) @ np.abs(wide_b)
        return wide_a @ wide_b, (a.shape[1] + 4) * slack * size + 1e-30

    return reference


def _softmax(x: Array) -> tuple[Array, Array]:
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    exact = powers / powers.sum(axis=1, keepdims=True)
    spread = np.abs(wide - wide.max(axis=1, keepdims=True))
    # The difference is rounded before exp, which scales the error with the difference.
    return exact, (x.shape[1] + 16 + 2 * spread) * 2 * SINGLE * exact + 1e-37


def _silu(x: Array, b: Array) -> tuple[Array, Array]:
    wide = x.astype(np.float64) + b.astype(np.float64)
    exact = wide / (1 + np.exp(-wide))
    slope = np.abs(exact) * (1 + np.abs(wide)) + np.abs(wide)
    return exact, 16 * SINGLE * (slope + np.abs(exact)) + 1e-37


SMALL = [(1, 1, 1), (17, 33, 70), (64, 64, 64), (129, 257, 65), (500, 300, 200)]
LARGE = [(512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (1000, 1000, 1000)]


def _matrices(m: int, k: int, n: int) -> Sequence[tuple[int, ...]]:
    return [(m, k), (k, n)]


KERNELS = (
    Kernel(
        "fused element-wise", kernels.elementwise, np.float32, lambda m, n: [(m, n), (n,)], _silu,
        [(1, 1), (3, 5), (37, 52), (128, 1024), (1000, 777)],
        [(1024, 1024), (4096, 4096)], lambda m, n: 4.0 * (2 * m * n + n), "GB/s",
        lambda torch, x, b: torch.nn.functional.silu(x + b), "PyTorch",
    ),
    Kernel(
        "row softmax", kernels.softmax, np.float32, lambda m, n: [(m, n)], _softmax,
        [(1, 1), (5, 300), (64, 256), (1000, 999), (333, 4096)],
        [(4096, 1024), (16384, 512)], lambda m, n: 4.0 * 2 * m * n, "GB/s",
        lambda torch, x: torch.softmax(x, 1), "PyTorch",
    ),
    Kernel(
        "f32 matmul", kernels.matmul, np.float32, _matrices, _product(SINGLE), SMALL, LARGE,
        lambda m, k, n: 2.0 * m * k * n, "GFLOP/s", lambda torch, a, b: torch.mm(a, b), "cuBLAS",
    ),
    Kernel(
        "f16 tensor-core matmul", kernels.tensor_matmul, np.float16, _matrices,
        _product(TENSOR_CORE), SMALL, LARGE, lambda m, k, n: 2.0 * m * k * n, "GFLOP/s",
        lambda torch, a, b: torch.mm(a, b), "cuBLAS",
    ),
)  # fmt: skip


def _arguments(kernel: Kernel, sizes: tuple[int, ...], seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(kernel.dtype) for s in kernel.shapes(*sizes)]


def check(
    kernel: Kernel, target: tw.Target, shapes: Sequence[tuple[int, ...]] | None = None
) -> list[Figures]:
    """Compare a compiled kernel with float64 at several shapes."""
    exe = tw.compile(kernel.schedule(), target)
    found: list[Figures] = []
    for seed, sizes in enumerate(kernel.checked if shapes is None else shapes):
        arguments = _arguments(kernel, sizes, seed)
        exact, bound = kernel.reference(*arguments)
        result = np.asarray(exe(*arguments), np.float64)
        share = float((np.abs(result - exact) / bound).max())
        found.append(_row(kernel.name, sizes, share, 1.0))
    return found


def _row(name: str, sizes: Sequence[int], error: float, bound: float) -> Figures:
    ok = bool(np.isfinite(error) and error <= bound)
    return {"kernel": name, "sizes": list(sizes), "error": error, "bound": bound, "ok": ok}


def attempt(name: str, part: Callable[[], list[Figures]]) -> list[Figures]:
    """Run one part, and return its error as a row if it fails, so that other parts still run."""
    try:
        return part()
    except (tw.TilewrightError, ImportError) as error:
        return [{"kernel": name, "sizes": [], "failed": str(error), "ok": False}]


def check_model(target: tw.Target) -> list[Figures]:
    """Compare MiniLM, scheduled by the default rules, with PyTorch in float64."""
    import torch

    from tilewright.workbench import demo

    model = demo.load_minilm()
    exe = tw.compile(tw.from_exported_program(demo.export_minilm(model)), target)
    exact = model.double()
    found: list[Figures] = []
    for batch, length in [(1, 1), (1, 16), (2, 33), (8, 128)]:
        rng = np.random.default_rng(length)
        ids = rng.integers(1000, 30000, (batch, length))
        mask = np.ones((batch, length), np.int64)
        mask[:, max(1, length - 3) :] = 0
        with torch.no_grad():
            expected = exact(
                input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)
            )["last_hidden_state"].numpy()
        error = float(np.abs(exe(ids, mask)[0] - expected).max())
        found.append(_row("MiniLM", (batch, length), error, 2e-5))
    return found


def _seconds(run: Callable[[], object], wait: Callable[[], object], budget: float = 0.5) -> float:
    """Return the median time of a call over rounds; calls of a round are queued without waits."""
    run()
    wait()
    start = time.perf_counter()
    run()
    wait()
    count = max(3, min(1000, int(0.05 / max(time.perf_counter() - start, 1e-6))))
    times: list[float] = []
    end = time.perf_counter() + budget
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        for _ in range(count):
            run()
        wait()
        times.append((time.perf_counter() - start) / count)
    return float(np.median(times))


def time_kernel(kernel: Kernel, target: tw.Target, device: CudaDevice) -> list[Figures]:
    """Measure a kernel on tensors in GPU memory, and its peer if PyTorch supports CUDA."""
    exe = tw.compile(kernel.schedule(), target)
    torch = cuda_torch()
    found: list[Figures] = []
    for sizes in kernel.timed:
        arguments = _arguments(kernel, sizes, 1)
        tensors = [device.upload(a) for a in arguments]
        ours = _seconds(lambda: exe(*tensors), device.wait)  # noqa: B023  # called at once
        row: Figures = {
            "kernel": kernel.name, "sizes": list(sizes), "us": ours * 1e6,
            kernel.unit: kernel.work(*sizes) / ours / 1e9, "peer": kernel.peer_name,
        }  # fmt: skip
        if torch is not None:
            copies = [torch.from_numpy(a).cuda() for a in arguments]
            theirs = _seconds(
                lambda: kernel.peer(torch, *copies),  # noqa: B023  # called at once
                torch.cuda.synchronize,
            )
            row |= {"peer_us": theirs * 1e6, "ratio": theirs / ours}
        found.append(row)
    return found


def cuda_torch() -> Any:
    """Return PyTorch if it is installed, supports CUDA, and detects the GPU."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def facts(device: CudaDevice) -> Figures:
    """Return the GPU, its driver, and the versions of all dependencies."""
    from tilewright.codegen.nvidia import assembler_version
    from tilewright.codegen.runtime.cuda.driver import driver

    versions = {}
    for name in ("tilewright", "llvmlite", "numpy", "pycuda", "torch"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "gpu": device.name, "capability": device.capability, "memory": device.total_memory,
        "driver": driver().version(), "ptxas": assembler_version() or "not installed",
        "host": machine(), "versions": versions,
    }  # fmt: skip


def report(figures: Mapping[str, Any]) -> None:
    """Print the tables of results and times."""
    results = [
        [
            r["kernel"],
            "x".join(map(str, r["sizes"])),
            f"{r['error']:.2g} of {r['bound']:g}" if "error" in r else r["failed"],
            "ok" if r["ok"] else "WRONG",
        ]
        for r in figures["results"]
    ]
    table("results: error and its bound", ["kernel", "sizes", "", ""], results)
    rows = []
    for r in figures["times"]:
        unit = "GFLOP/s" if "GFLOP/s" in r else "GB/s"
        theirs = f"{r['peer_us']:.1f}" if "peer_us" in r else "-"
        ratio = f"{r['ratio']:.2f}" if "ratio" in r else "-"
        rows.append([
            r["kernel"], "x".join(map(str, r["sizes"])), f"{r['us']:.1f}",
            f"{r[unit]:,.0f} {unit}", theirs, ratio,
        ])  # fmt: skip
    table("times", ["kernel", "sizes", "us", "", "peer us", "speedup"], rows)
