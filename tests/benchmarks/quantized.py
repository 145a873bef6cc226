"""Products with weights of 4 and 8 bits: a part of ``tests.benchmarks.reducers``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import Any, TypeAlias

from .harness import interleaved, table

Figures: TypeAlias = dict[str, object]

DEPTH, COLUMNS, GROUP = 8192, 14336, 128
"""The sizes of a weight larger than the caches, and the number of its elements with one scale."""

ROWS = (1, 128)
BANDWIDTH_GOAL, PEER_GOAL = 0.85, 1.2
MEMORY_BYTES, READ_BYTES = 256 << 20, 16 << 20
"""The bytes that measure the bandwidth, and those that one call reads: about a millisecond."""

INT4 = """
constant("w", ({K}, {N}), i4)
constant("s", ({G}, {N}), f32)
m = symbols("m", lower=1)

@graph_func
def main(x: Tensor[(m, {K}), f32]):
    d = dequantize_linear(const("w"), const("s"), axis=0, block_size={B})
    y = matmul(x, d)
    return y
"""

FP8 = """
constant("w", ({K}, {N}), f8_e4m3)
constant("s", ({N},), f32)
m = symbols("m", lower=1)

@graph_func
def main(x: Tensor[(m, {K}), f32]):
    d = dequantize_linear(const("w"), const("s"), axis=1)
    y = matmul(x, d)
    return y
"""


@dataclass(frozen=True)
class Weight:
    """A quantized weight with its scales, its value, and the bytes that a product reads."""

    quantized: Any
    scales: Any
    wide: Any

    @property
    def bytes(self) -> int:
        """The bytes of the packed weight and its scales."""
        from tilewright.ir.dtype import from_numpy
        from tilewright.ir.sizes import storage_bytes

        own = storage_bytes(int(self.quantized.size), from_numpy(self.quantized.dtype))
        return own + int(self.scales.nbytes)


def memory_runs() -> dict[str, Callable[[], object]]:
    """Return functions that read or copy the next part of memory that is not in the caches."""
    import numpy as np
    import torch

    parts = np.split(np.ones(MEMORY_BYTES // 4, np.float32), MEMORY_BYTES // READ_BYTES)
    copies = cycle([(np.empty_like(x), x) for x in parts])
    arrays, tensors = cycle(parts), cycle([torch.from_numpy(x) for x in parts])
    return {
        "numpy sum": lambda: next(arrays).sum(),
        "torch sum": lambda: next(tensors).sum(),
        "copy": lambda: np.copyto(*next(copies)),
    }


def read_bandwidth(times: Mapping[str, float]) -> float:
    """Return the bytes per second of the fastest of the functions of :func:`memory_runs`."""
    read = min(times["numpy sum"], times["torch sum"])
    return max(READ_BYTES / read, 2 * READ_BYTES / times["copy"])


def int4_weight() -> Weight:
    """Return a weight of 4 bits with a scale per group of 128 elements of a column."""
    import numpy as np
    from ml_dtypes import int4

    rng = np.random.default_rng(5)
    quantized = rng.integers(-8, 8, (DEPTH, COLUMNS), np.int8)
    scales = rng.uniform(0.01, 0.02, (DEPTH // GROUP, COLUMNS)).astype(np.float32)
    wide = quantized.astype(np.float32).reshape(DEPTH // GROUP, GROUP, COLUMNS)
    wide = (wide * scales[:, None]).reshape(DEPTH, COLUMNS)
    return Weight(quantized.astype(int4), scales, wide)


def fp8_weight() -> Weight:
    """Return a weight of 8-bit floats with a scale per column."""
    import numpy as np
    from ml_dtypes import float8_e4m3fn

    rng = np.random.default_rng(6)
    quantized = rng.standard_normal((DEPTH, COLUMNS), np.float32).astype(float8_e4m3fn)
    scales = rng.uniform(0.01, 0.02, COLUMNS).astype(np.float32)
    return Weight(quantized, scales, quantized.astype(np.float32) * scales)


def compiled(text: str, weight: Weight, threads: int) -> Any:
    """Compile a product with the default rules; the weight is a constant."""
    import tilewright as tw

    sizes = {"K": DEPTH, "N": COLUMNS, "G": DEPTH // GROUP, "B": GROUP}
    constants = {"w": weight.quantized, "s": weight.scales}
    module = tw.parse(text.format(**sizes), constants=constants)
    return tw.compile(module, tw.Target("cpu", threads=threads))


def int4_peers(weight: Weight) -> dict[str, Callable[[Any], Any]]:
    """Return functions of PyTorch: dequantization and product, and its own packed product."""
    import numpy as np
    import torch

    q = torch.from_numpy(weight.quantized.astype(np.int8))
    s = torch.from_numpy(weight.scales)

    def dequantized(x: Any) -> Any:
        wide = q.to(torch.float32).reshape(DEPTH // GROUP, GROUP, COLUMNS) * s[:, None]
        return x @ wide.reshape(DEPTH, COLUMNS)

    unsigned = (q.T.contiguous() + 8).to(torch.int32)
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(unsigned, 1)
    pairs = torch.stack([s, torch.zeros_like(s)], dim=-1).to(torch.bfloat16)

    def own(x: Any) -> Any:
        half = x.to(torch.bfloat16)
        return torch.ops.aten._weight_int4pack_mm_for_cpu(half, packed, GROUP, pairs)

    return {"torch dequantize": dequantized, "torch int4pack (bf16)": own}


def fp8_peers(weight: Weight) -> dict[str, Callable[[Any], Any]]:
    """Return functions of PyTorch and NumPy that convert the weight, then multiply."""
    import numpy as np
    import torch

    q = torch.from_numpy(weight.quantized.view(np.uint8)).view(torch.float8_e4m3fn)
    s = torch.from_numpy(weight.scales)
    return {"torch dequantize": lambda x: x @ (q.to(torch.float32) * s)}


def part(
    name: str, text: str, weight: Weight,
    peers: Callable[[Weight], Mapping[str, Callable[[Any], Any]]], threads: int,
) -> Figures:  # fmt: skip
    """Measure the products of one weight with one row and with many."""
    import numpy as np
    import torch

    run, others = compiled(text, weight, threads), peers(weight)
    memory, figures = memory_runs(), Figures()
    rows: list[list[str]] = []
    for m in ROWS:
        x = np.random.default_rng(m).standard_normal((m, DEPTH)).astype(np.float32)
        exact = x.astype(np.float64) @ weight.wide[:, :64].astype(np.float64)
        bound = DEPTH * 2.0**-24 * (np.abs(x) @ np.abs(weight.wide[:, :64]))
        if np.any(np.abs(run(x)[:, :64] - exact) > bound):
            message = f"{name}: wrong sums for {m} rows"
            raise ArithmeticError(message)
        t = torch.from_numpy(x)
        runs: dict[str, Callable[[], object]] = {"ours": lambda x=x: run(x)}
        runs |= {n: lambda f=f, t=t: f(t) for n, f in others.items()}
        if m == 1:  # NumPy reads the weight in f32: the time of converting it is left out
            runs["numpy f32"] = lambda x=x: x @ weight.wide
        with torch.inference_mode():
            times = interleaved({**runs, **memory}, seconds=3.0, least=5)
        bandwidth = read_bandwidth(times)
        times = {k: v for k, v in times.items() if k in runs}
        ratio = min(v for k, v in times.items() if k != "ours") / times["ours"]
        share = weight.bytes / times["ours"] / bandwidth
        figures[f"{name} m = {m}"] = {
            **times,
            "ratio": ratio,
            "of_bandwidth": share,
            "read_bytes_per_second": bandwidth,
        }
        shown = [f"{k} {v * 1e3:.2f}" for k, v in times.items() if k != "ours"]
        ours, speed = f"{times['ours'] * 1e3:.2f}", f"{bandwidth / 1e9:.1f}"
        rows.append([f"m = {m}", ours, "; ".join(shown), f"{ratio:.2f}", speed, f"{share:.0%}"])
    goal = f"goal: {PEER_GOAL} x the best peer, or {BANDWIDTH_GOAL:.0%} of the bandwidth"
    header = ("case", "tilewright", "peers", "ratio", "GB/s of memory", "of bandwidth")
    table(f"{name} (ms; {goal})", header, rows)
    return figures


def part_int4(threads: int) -> Figures:
    """Measure products with weights of 4 bits."""
    return part("int4 matmul", INT4, int4_weight(), int4_peers, threads)


def part_fp8(threads: int) -> Figures:
    """Measure products with weights of 8-bit floats."""
    return part("fp8 matmul", FP8, fp8_weight(), fp8_peers, threads)
