"""Tensor instructions of the processor, against the peers, timed in the same run.

Run as ``python -m tests.benchmarks.probes [--json FILE] [--only PART] [--threads N]``. Parts:

- ``f32``: products through the multiply-add tile against NumPy and PyTorch, at five static shapes
  with B packed in the call and ahead of it, and one kernel with symbolic M.
- ``bytes``: u8 times s8 through VNNI against ``torch._int_mm`` (which takes s8 times s8, and more
  than 16 rows) and ONNX Runtime's MatMulInteger, whose weight is a constant like ours. Packing in
  the call is compared with PyTorch alone, which packs in the call, too.
- ``bf16``: bfloat16 through ``vdpbf16ps`` against ``torch.mm``, which gives bfloat16 and packs in
  the call; ours ahead of it and in it.

Every result is checked, and every rate given as a fraction of the peak that the same instruction
reaches on registers alone, measured in this run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from .harness import arguments, interleaved, limit_threads, table, write_json
from .peaks import peak_operations

Figures: TypeAlias = dict[str, object]

STATIC = (
    (512, 512, 512),
    (1024, 1024, 1024),
    (384, 1536, 384),
    (128, 4096, 1024),
    (2048, 768, 768),
)
"""M, N, K."""

ROWS = (1, 16, 37, 128, 500)
"""Values of the symbolic M; the weight is 1024 x 1024."""

DOTS = (
    (1, 1024, 1024),
    (37, 1024, 1024),
    (128, 1024, 1024),
    (512, 1024, 1024),
    (1024, 1024, 1024),
    (256, 3072, 768),
    (256, 768, 3072),
)

INT_MM_ROWS = 16
"""``torch._int_mm`` refuses so few rows."""

PROGRAM = """
M = symbols("M", lower=1)

@prim_func
def product(
    A: Buffer[({M}, {K}), {left}], B: Buffer[({K}, {N}), {right}], C: Out[({M}, {N}), {out}]
):
    for i in range({M}):
        for j in range({N}):
            for k in range({K}):
                with block("product"):
                    vi, vj, vk = spatial(i), spatial(j), reduce(k)
                    with init(): C[vi, vj] = {out}(0)
                    C[vi, vj] += {wide}(A[vi, vk]) * {wide}(B[vk, vj])
"""

PREPACKED = """
constant("weight", ({K}, {N}), {right})

@graph_func
def main(x: Tensor[({M}, {K}), {left}]):
    y: Tensor[({M}, {N}), {out}] = call_tir(product, x, const("weight"))
    return y
"""

PACKING = """
@graph_func
def main(x: Tensor[({M}, {K}), {left}], w: Tensor[({K}, {N}), {right}]):
    y: Tensor[({M}, {N}), {out}] = call_tir(product, x, w)
    return y
"""


def compiled(shape: tuple[int | str, int, int], dtypes: tuple[str, str, str], weight=None):
    """Compile a product with the default rules; B is a weight if one is given.

    The module is asserted to have gone through a tensor instruction.
    """
    import tilewright as tw
    from tilewright.codegen.cpu import with_level
    from tilewright.ir.dtype import dtype
    from tilewright.ir.module import Constant
    from tilewright.ir.script import parse, to_text
    from tilewright.schedules.rules import finished

    sizes = dict(zip("MNK", shape, strict=True))
    words = dict(zip(("left", "right", "out"), dtypes, strict=True))
    words["wide"] = "" if dtypes[0] == dtypes[2] else dtypes[2]
    text = (PROGRAM + (PACKING if weight is None else PREPACKED)).format(**sizes, **words)
    constants = {}
    if weight is not None:
        constants["weight"] = Constant(weight.shape, dtype(dtypes[1]), lambda: weight)
    module = parse(text, constants=constants)
    target = tw.Target("cpu", threads=1)
    if "intrinsic=" not in to_text(finished(module, with_level(target))):
        message = f"no tensor instruction does this product: {shape} {dtypes}"
        raise RuntimeError(message)
    return tw.compile(module, target)


def check(name: str, got, exact, bound) -> None:
    """Refuse a result that is not within its bound of the exact one."""
    import numpy as np

    worst = float(np.max(np.abs(np.asarray(got, np.float64) - exact) / bound))
    if worst > 1:
        message = f"{name} is {worst:.1f} times the error bound away"
        raise ArithmeticError(message)


class Board:
    """Collects the rows of one table and their figures."""

    def __init__(self, title: str, peers: tuple[str, ...], peak: float) -> None:
        self.title, self.peers, self.peak = title, peers, peak
        self.rows: list[list[str]] = []
        self.figures: Figures = {"peak_operations_per_second": peak}

    def record(self, name: str, shape, times: Mapping[str, float], goal: float) -> None:
        m, n, k = shape
        work = 2.0 * m * n * k
        ratio = min(times[p] for p in self.peers if p in times) / times["ours"]
        fraction = work / times["ours"] / self.peak
        self.figures[name] = {**times, "ratio": ratio, "goal": goal, "of_peak": fraction}
        rates = [
            f"{work / times[p] / 1e9:.1f}" if p in times else "-" for p in ("ours", *self.peers)
        ]
        self.rows.append([name, *rates, f"{ratio:.2f}", f"{goal:.2f}", f"{fraction:.0%}"])

    def show(self) -> Figures:
        header = ("case", "tilewright", *self.peers, "ratio", "goal", "of peak")
        table(f"{self.title} (10^9 operations/s; peak {self.peak / 1e9:.0f})", header, self.rows)
        return self.figures


def part_f32(threads: int) -> Figures:
    """f32 through the multiply-add tile."""
    import numpy as np
    import torch

    rng = np.random.default_rng(1)
    board = Board("f32 matmul", ("numpy", "torch"), threads * peak_operations("fma"))
    f32 = ("f32", "f32", "f32")

    def compare(case: tuple[str, float], ours: Callable[[], object], a, b) -> None:
        name, goal = case
        shape = (*a.shape[:1], *b.shape[::-1])
        exact = a.astype(np.float64) @ b.astype(np.float64)
        bound = shape[2] * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b))
        check(name, ours(), exact, bound)
        ta, tb = torch.from_numpy(a), torch.from_numpy(b)
        runs = {"ours": ours, "numpy": lambda: a @ b, "torch": lambda: ta @ tb}
        with torch.inference_mode():
            board.record(name, shape, interleaved(runs), goal)

    for shape in STATIC:
        m, n, k = shape
        a = rng.standard_normal((m, k)).astype(np.float32)
        b = rng.standard_normal((k, n)).astype(np.float32)
        ahead, packing = compiled(shape, f32, b), compiled(shape, f32)
        name = "x".join(map(str, shape))
        compare((f"{name} prepacked", 1.05), lambda a=a, f=ahead: f(a), a, b)
        compare((f"{name} packing", 0.95), lambda a=a, b=b, f=packing: f(a, b), a, b)
    b = rng.standard_normal((1024, 1024)).astype(np.float32)
    symbolic = compiled(("M", 1024, 1024), f32, b)
    for m in ROWS:
        a = rng.standard_normal((m, 1024)).astype(np.float32)
        compare((f"symbolic M = {m}", 0.95), lambda a=a: symbolic(a), a, b)
    return board.show()


def integer_session(weight, folder: Path, threads: int):
    """MatMulInteger of u8 with a constant s8 weight."""
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    k, n = weight.shape
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, ["m", k])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, ["m", n])],
        [numpy_helper.from_array(np.ascontiguousarray(weight), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, folder / "product.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    return onnxruntime.InferenceSession(
        str(folder / "product.onnx"), options, providers=["CPUExecutionProvider"]
    )


def part_bytes(threads: int) -> Figures:
    """u8 times s8 through VNNI."""
    import numpy as np
    import torch

    rng = np.random.default_rng(2)
    peak = threads * peak_operations("vpdpbusd")
    board = Board("u8 x s8 -> s32 matmul", ("torch._int_mm", "onnxruntime"), peak)
    for shape in DOTS:
        m, n, k = shape
        name = "x".join(map(str, shape))
        a = rng.integers(0, 256, (m, k)).astype(np.uint8)
        b = rng.integers(-128, 128, (k, n)).astype(np.int8)
        ours = compiled(("M", n, k), ("u8", "i8", "i32"), b)
        packing = compiled(("M", n, k), ("u8", "i8", "i32"))
        exact = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)
        if not (np.array_equal(ours(a), exact) and np.array_equal(packing(a, b), exact)):
            message = f"{name}: wrong sums"
            raise ArithmeticError(message)
        ta, tb = torch.from_numpy((a // 2).astype(np.int8)), torch.from_numpy(b)
        with TemporaryDirectory() as folder, torch.inference_mode():
            session = integer_session(b, Path(folder), threads)
            feed = {"x": a}
            if not np.array_equal(session.run(None, feed)[0], exact):
                message = f"{name}: ONNX Runtime's sums differ"
                raise ArithmeticError(message)
            runs = {
                "ours": lambda a=a, f=ours: f(a),
                "packing": lambda a=a, b=b, f=packing: f(a, b),
                "torch._int_mm": lambda ta=ta, tb=tb: torch._int_mm(ta, tb),
                "onnxruntime": lambda s=session, f=feed: s.run(None, f),
            }
            if m <= INT_MM_ROWS:
                del runs["torch._int_mm"]
            times = interleaved(runs)
        in_call = times | {"ours": times.pop("packing")}
        board.record(f"{name} prepacked", shape, times, 0.9)
        in_call = {k: v for k, v in in_call.items() if k in {"ours", "torch._int_mm"}}
        if len(in_call) > 1:
            board.record(f"{name} packing", shape, in_call, 0.9)
    return board.show()


def part_bf16(threads: int) -> Figures:
    """Bfloat16 through vdpbf16ps; sums in f32."""
    import ml_dtypes
    import numpy as np
    import torch

    rng = np.random.default_rng(3)
    board = Board("bf16 matmul", ("torch.mm",), threads * peak_operations("vdpbf16ps"))
    for shape in DOTS:
        m, n, k = shape
        name = "x".join(map(str, shape))
        a, b = (rng.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((m, k), (k, n)))
        ours = compiled(("M", n, k), ("bf16", "bf16", "f32"), b)
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        # Each of k additions rounds once to f32; products of bfloat16 are exact.
        bound = k * 2.0**-24 * (np.abs(wide_a) @ np.abs(wide_b))
        packing = compiled(("M", n, k), ("bf16", "bf16", "f32"))
        check(name, ours(a), wide_a @ wide_b, bound)
        check(name, packing(a, b), wide_a @ wide_b, bound)
        ta, tb = (torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) for x in (a, b))
        runs = {
            "ours": lambda a=a, f=ours: f(a),
            "packing": lambda a=a, b=b, f=packing: f(a, b),
            "torch.mm": lambda ta=ta, tb=tb: torch.mm(ta, tb),
        }
        with torch.inference_mode():
            times = interleaved(runs)
        in_call = times | {"ours": times.pop("packing")}
        board.record(f"{name} prepacked", shape, times, 0.9)
        if m > 1:  # packing for one row is work wasted, and nobody's way to do it
            board.record(f"{name} packing", shape, in_call, 0.9)
    return board.show()


PARTS: dict[str, Callable[[int], Figures]] = {
    "f32": part_f32,
    "bytes": part_bytes,
    "bf16": part_bf16,
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
