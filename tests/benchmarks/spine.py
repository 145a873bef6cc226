"""The measured claims of the compiler's spine, peers timed in the same run.

Run as ``python -m tests.benchmarks.spine [--json FILE] [--only PART] [--threads N]``. Parts:

- ``matmul``: f32 products against NumPy and PyTorch, B packed in the call and ahead of it, and one
  kernel with symbolic M.
- ``host``: the cost of the compiled host flow, a kernel and a call.
- ``minilm``: the sentence-embedding model against PyTorch eager and ONNX Runtime.
- ``compile``: the model from its exported program to an executable, cold and cached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from .harness import arguments, interleaved, limit_threads, per_call, table, write_json

Figures: TypeAlias = dict[str, object]

SIZES = (7, 37, 128, 500)
SHAPES = ((1, 8), (1, 32), (1, 128), (8, 32), (8, 128))


def matmul_module(*, rows: int | None, prepacked: bool):
    """A product with K = N = 1024; B is a weight where it is packed ahead."""
    import numpy as np

    from tilewright.ir.dtype import f32
    from tilewright.ir.graph.builder import GraphBuilder
    from tilewright.ir.graph.nodes import TensorInfo
    from tilewright.ir.module import Constant, Module
    from tilewright.ir.symbolic import as_expr, var

    m = as_expr(rows) if rows else var("m", lower=1)
    k = as_expr(1024)
    b = np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32)
    g = GraphBuilder("main")
    x = g.param("x", TensorInfo((m, k), f32, rank=2))
    info = TensorInfo((k, k), f32, rank=2)
    y = g.constant("b", info) if prepacked else g.param("b", info)
    module = Module().with_functions(g.finish([g.emit("matmul", x, y)]))
    if prepacked:
        module = module.with_constants({"b": Constant((1024, 1024), f32, lambda: b)})
    return module, b


def compiled(module, threads: int):
    """Compile with the default rules, cold or from the cache."""
    import tilewright as tw

    return tw.compile(module, tw.Target("cpu", threads=threads))


def compare_products(
    ours: Mapping[str, Callable[[], object]],
    a,
    b,
) -> dict[str, float]:
    """Time products of the same arrays, checked against float64."""
    import numpy as np
    import torch

    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = 1024 * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b))
    for name, run in ours.items():
        worst = float(np.max(np.abs(np.asarray(run()) - exact) / bound))
        if worst > 1:
            message = f"{name} is {worst:.1f} times the error bound away"
            raise ArithmeticError(message)
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    with torch.inference_mode():
        return interleaved({**ours, "numpy": lambda: a @ b, "torch": lambda: ta @ tb})


def part_matmul(threads: int) -> Figures:
    """Products against NumPy and PyTorch."""
    import numpy as np

    rng = np.random.default_rng(1)
    figures: Figures = {}
    rows: list[list[str]] = []

    def record(name: str, m: int, times: dict[str, float], goal: float) -> None:
        flops = 2 * m * 1024 * 1024
        ratio = times["numpy"] / times["ours"]
        figures[name] = {**times, "ratio_to_numpy": ratio, "goal": goal}
        cells = [f"{flops / times[k] / 1e9:.1f}" for k in ("ours", "numpy", "torch")]
        rows.append([name, *cells, f"{ratio:.2f}", f"{goal:.2f}"])

    a = rng.standard_normal((1024, 1024)).astype(np.float32)
    module, b = matmul_module(rows=1024, prepacked=False)
    packing = compiled(module, threads)
    record(
        "1024, packing timed", 1024, compare_products({"ours": lambda: packing(a, b)}, a, b), 0.85
    )
    module, b = matmul_module(rows=1024, prepacked=True)
    ahead = compiled(module, threads)
    record("1024, B prepacked", 1024, compare_products({"ours": lambda: ahead(a)}, a, b), 0.95)
    module, b = matmul_module(rows=None, prepacked=True)
    symbolic = compiled(module, threads)
    for m in (1, *SIZES):
        x = rng.standard_normal((m, 1024)).astype(np.float32)
        times = compare_products({"ours": lambda x=x: symbolic(x)}, x, b)
        record(f"symbolic M = {m}, B prepacked", m, times, 0.8)
    table(
        "f32 matmul, K = N = 1024, GFLOP/s",
        ("case", "tilewright", "numpy", "torch", "ratio", "goal"),
        rows,
    )
    return figures


def chain(length: int):
    """A graph of kernels that are kept apart, each on 16 elements."""
    from tilewright.ir.dtype import f32
    from tilewright.ir.graph.builder import GraphBuilder
    from tilewright.ir.graph.nodes import TensorInfo
    from tilewright.ir.module import Module
    from tilewright.ir.symbolic import as_expr
    from tilewright.schedules import Schedule
    from tilewright.schedules.refs import FunctionRef

    g = GraphBuilder("main")
    value = g.param("x", TensorInfo((as_expr(16),), f32, rank=1))
    for k in range(length):
        value = g.emit("add" if k % 2 else "multiply", value, 1.5)
    schedule = Schedule(Module().with_functions(g.finish([value])))
    schedule.legalize(FunctionRef("main"))
    return schedule


def part_host(threads: int) -> Figures:
    """What a kernel and a call cost beside the work in them."""
    import numpy as np

    x = np.ones(16, np.float32)
    times: dict[int, float] = {}
    for length in (10, 20):
        exe = compiled(chain(length), threads)
        times[length] = per_call(lambda exe=exe: exe(x))
    kernel = (times[20] - times[10]) / 10
    table(
        "host flow, microseconds",
        ("what", "time", "goal"),
        [
            ["one more kernel", f"{kernel * 1e6:.3f}", "1"],
            ["a call of 10 kernels from Python", f"{times[10] * 1e6:.2f}", "20"],
            ["a call of 20 kernels from Python", f"{times[20] * 1e6:.2f}", "20"],
        ],
    )
    return {"kernel": kernel, "call_10": times[10], "call_20": times[20]}


PARTS: dict[str, Callable[[int], Figures]] = {"matmul": part_matmul, "host": part_host}


def main() -> None:
    """Run the chosen parts and print their tables."""
    options = arguments(__doc__ or "")
    limit_threads(options.threads)
    import torch

    torch.set_num_threads(options.threads)
    figures: Figures = {"threads": options.threads}
    for name, part in PARTS.items():
        if options.only in name:
            figures[name] = part(options.threads)
    write_json(options.json, figures)


if __name__ == "__main__":
    main()
