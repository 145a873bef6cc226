"""Matrix products, host flow, MiniLM, and compilation, with the peers timed in the same run.

Run as ``python -m tests.benchmarks.spine [--json FILE] [--only PART] [--threads N]``. Parts:

- ``matmul``: f32 products against NumPy and PyTorch, with B packed in the call and ahead of it, and
  one kernel with symbolic M.
- ``host``: the cost of the compiled host flow per kernel and per call.
- ``minilm``: the sentence-embedding model against PyTorch eager and ONNX Runtime.
- ``compile``: from the exported program of the model to an executable, cold and cached.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from .harness import arguments, interleaved, limit_threads, per_call, table, write_json

Figures: TypeAlias = dict[str, object]

SIZES = (7, 37, 128, 500)
SHAPES = ((1, 8), (1, 32), (1, 128), (8, 32), (8, 128))


def matmul_module(*, rows: int | None, prepacked: bool):
    """Return a product with K = N = 1024, and B, which is a weight if packed ahead of the call."""
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
    """Compile with the default rules."""
    import tilewright as tw

    return tw.compile(module, tw.Target("cpu", threads=threads))


def compare_products(
    ours: Mapping[str, Callable[[], object]],
    a,
    b,
) -> dict[str, float]:
    """Return the times of products of the same arrays, after a check against float64."""
    import numpy as np
    import torch

    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = 1024 * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b))
    for name, run in ours.items():
        worst = float(np.max(np.abs(np.asarray(run()) - exact) / bound))
        if worst > 1:
            message = f"{name}: the error is {worst:.1f} times its bound"
            raise ArithmeticError(message)
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    with torch.inference_mode():
        return interleaved({**ours, "numpy": lambda: a @ b, "torch": lambda: ta @ tb})


def part_matmul(threads: int) -> Figures:
    """Measure products against NumPy and PyTorch."""
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
    """Return a schedule of kernels that are not fused, each on 16 elements."""
    from tilewright.ir.dtype import f32
    from tilewright.ir.graph.builder import GraphBuilder
    from tilewright.ir.graph.nodes import TensorInfo
    from tilewright.ir.module import Module
    from tilewright.ir.symbolic import as_expr
    from tilewright.schedules import Schedule
    from tilewright.schedules.handles import FunctionRef

    g = GraphBuilder("main")
    value = g.param("x", TensorInfo((as_expr(16),), f32, rank=1))
    for k in range(length):
        value = g.emit("add" if k % 2 else "multiply", value, 1.5)
    schedule = Schedule(Module().with_functions(g.finish([value])))
    schedule.legalize(FunctionRef("main"))
    return schedule


def part_host(threads: int) -> Figures:
    """Measure the overhead of a kernel and of a call."""
    import numpy as np

    x = np.ones(16, np.float32)
    times: dict[int, float] = {}
    for length in (10, 20):
        exe = compiled(chain(length), threads)
        times[length] = per_call(lambda exe=exe: exe(x))
    kernel = (times[20] - times[10]) / 10
    table(
        "host flow, microseconds",
        ("overhead", "time", "goal"),
        [
            ["one additional kernel", f"{kernel * 1e6:.3f}", "1"],
            ["a call of 10 kernels from Python", f"{times[10] * 1e6:.2f}", "20"],
            ["a call of 20 kernels from Python", f"{times[20] * 1e6:.2f}", "20"],
        ],
    )
    return {"kernel": kernel, "call_10": times[10], "call_20": times[20]}


def onnx_session(model, folder: Path, threads: int):
    """Export MiniLM to ONNX and return a session of ONNX Runtime."""
    import onnxruntime as ort
    import torch

    path = folder / "minilm.onnx"
    ids, mask = (torch.ones(2, 16, dtype=torch.int64) for _ in range(2))
    dims = {0: "batch", 1: "seq"}
    torch.onnx.export(
        model,
        (),
        path,
        kwargs={"input_ids": ids, "attention_mask": mask},
        dynamic_shapes={"input_ids": dims, "attention_mask": dims},
        dynamo=True,
        verbose=False,
    )
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    return ort.InferenceSession(path, options)


def part_minilm(threads: int) -> Figures:
    """Measure MiniLM against PyTorch eager and ONNX Runtime."""
    import numpy as np
    import torch

    import tilewright as tw
    from tilewright.workbench.demo import export_minilm, load_minilm

    model = load_minilm()
    exe = compiled(tw.from_exported_program(export_minilm(model)), threads)
    figures: Figures = {}
    rows: list[list[str]] = []
    with TemporaryDirectory() as folder, torch.inference_mode():
        session = onnx_session(model, Path(folder), threads)
        for batch, length in SHAPES:
            ids = np.random.default_rng(0).integers(1000, 30000, (batch, length))
            mask = np.ones_like(ids)
            given = {"input_ids": ids, "attention_mask": mask}
            tensors = {k: torch.from_numpy(v) for k, v in given.items()}
            runs = {
                "ours": lambda ids=ids, mask=mask: exe(ids, mask)[0],
                "torch": lambda tensors=tensors: model(**tensors)[0].numpy(),
                "onnxruntime": lambda given=given: session.run(None, given)[0],
            }
            results = {k: np.asarray(run()) for k, run in runs.items()}
            for name, result in results.items():
                if not np.allclose(result, results["torch"], atol=5e-5):
                    message = f"{name} and PyTorch differ at {batch}x{length}"
                    raise ArithmeticError(message)
            times = interleaved(runs, seconds=3)
            ratios = {k: times[k] / times["ours"] for k in ("torch", "onnxruntime")}
            figures[f"{batch}x{length}"] = {**times, "ratios": ratios, "goal": 0.8}
            cells = [f"{times[k] * 1e3:.2f}" for k in runs]
            rows.append([f"{batch}x{length}", *cells, *(f"{r:.2f}" for r in ratios.values())])
    table(
        "MiniLM, milliseconds; ratios are peer / ours, goal 0.8 of eager",
        ("shape", "tilewright", "torch", "onnxruntime", "x torch", "x onnxruntime"),
        rows,
    )
    return figures


COMPILE = """
import json, sys, time
import torch
from tilewright.workbench.demo import export_minilm, load_minilm
program = export_minilm(load_minilm())
import tilewright as tw
start = time.perf_counter()
module = tw.from_exported_program(program)
imported = time.perf_counter()
tw.compile(module)
print(json.dumps({"import": imported - start, "total": time.perf_counter() - start}))
"""


def part_compile(threads: int) -> Figures:
    """Measure compilation of MiniLM from its exported program, in fresh processes."""
    figures: Figures = {}
    with TemporaryDirectory() as folder:
        environment = {**os.environ, "TILEWRIGHT_CACHE": folder}
        for name in ("cold", "cached"):
            done = subprocess.run(
                [sys.executable, "-c", COMPILE],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            figures[name] = json.loads(done.stdout.splitlines()[-1])
    goals = {"cold": "20", "cached": "1"}
    rows = [[n, f"{f['import']:.2f}", f"{f['total']:.2f}", goals[n]] for n, f in figures.items()]
    table("compile MiniLM, seconds", ("", "import", "import + compile", "goal"), rows)
    return {**figures, "threads": threads}


PARTS: dict[str, Callable[[int], Figures]] = {
    "matmul": part_matmul,
    "host": part_host,
    "minilm": part_minilm,
    "compile": part_compile,
}


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
