"""Tensor instructions of the processor and the peers, timed in the same run.

Run as ``python -m tests.benchmarks.probes [--json FILE] [--only PART] [--threads N]``. Parts:

- ``f32``: products with the multiply-add tile against NumPy and PyTorch, at five static shapes
  with B packed in the call and ahead of it, and one kernel with symbolic M.
- ``bytes``: u8 times s8 with VNNI, or its AVX2 replacement, against ``torch._int_mm`` (which takes
  s8 times s8, and more than 16 rows) and ONNX Runtime's MatMulInteger, whose weight is constant as
  well. Packing in the call is compared with PyTorch only, which also packs in the call.
- ``bf16``: bfloat16 with ``vdpbf16ps`` against ``torch.mm``, which returns bfloat16 and packs in
  the call; Tilewright packs ahead of the call and in it.

Every result is checked. Every rate is also shown as a fraction of the peak of the instruction,
which is measured on registers alone in the same run. Instructions that the machine lacks, and the
rows that need them, are listed as "not on this machine". ``TILEWRIGHT_HOST_FEATURES`` caps NumPy
and PyTorch as well, but not ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from .harness import NOT_HERE, arguments, interleaved, limit_threads, table, write_json
from .peaks import fastest, missing, peak_operations

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
"""The most rows that ``torch._int_mm`` rejects."""

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
    """Compile a product with the default rules; B is a constant if a weight is passed.

    Raises
    ------
    RuntimeError
        If the product does not use a tensor instruction.
    """
    import tilewright as tw
    from tilewright.ir.dtype import dtype
    from tilewright.ir.module import Constant
    from tilewright.ir.script import parse, to_text
    from tilewright.schedules.rules import with_default_schedule
    from tilewright.target.host import with_level

    sizes = dict(zip("MNK", shape, strict=True))
    words = dict(zip(("left", "right", "out"), dtypes, strict=True))
    words["wide"] = "" if dtypes[0] == dtypes[2] else dtypes[2]
    text = (PROGRAM + (PACKING if weight is None else PREPACKED)).format(**sizes, **words)
    constants = {}
    if weight is not None:
        constants["weight"] = Constant(weight.shape, dtype(dtypes[1]), lambda: weight)
    module = parse(text, constants=constants)
    target = tw.Target("cpu", threads=1)
    if "intrinsic=" not in to_text(with_default_schedule(module, with_level(target))):
        message = f"the product {shape} of {dtypes} does not use a tensor instruction"
        raise RuntimeError(message)
    return tw.compile(module, target)


def check(name: str, got, exact, bound) -> None:
    """Raise unless a result is within its error bound of the exact one."""
    import numpy as np

    worst = float(np.max(np.abs(np.asarray(got, np.float64) - exact) / bound))
    if worst > 1:
        message = f"{name}: the error is {worst:.1f} times its bound"
        raise ArithmeticError(message)


class Board:
    """The rows of one table and their figures.

    Parameters
    ----------
    title : str
        The title of the table.
    peers : tuple of str
        The names of the libraries compared with.
    kind : str
        The kind of product, whose fastest instruction sets the peak.
    threads : int
        The number of threads; the peak of one core is multiplied by it.
    """

    def __init__(self, title: str, peers: tuple[str, ...], kind: str, threads: int) -> None:
        self.title, self.peers = title, peers
        self.rows: list[list[str]] = []
        self.instruction = fastest(kind)
        self.lacking = missing(kind)
        self.figures: Figures = {NOT_HERE: self.lacking}
        if self.instruction is not None:
            self.peak = threads * peak_operations(self.instruction)
            self.figures["peak_instruction"] = self.instruction.name
            self.figures["peak_operations_per_second"] = self.peak

    def skip(self, shapes: Sequence[tuple[int, int, int]]) -> Figures:
        """Return figures that name the rows which need an instruction the machine lacks."""
        rows = [f"{self.title} {'x'.join(map(str, shape))}" for shape in shapes]
        return {NOT_HERE: [*self.lacking, *rows]}

    def record(self, name: str, shape, times: Mapping[str, float], goal: float) -> None:
        """Add a row from the times of Tilewright and its peers, in seconds."""
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
        """Print the table and return its figures."""
        header = ("case", "tilewright", *self.peers, "ratio", "goal", "of peak")
        peak = f"{self.instruction.name} peaks at {self.peak / 1e9:.0f}"
        table(f"{self.title} (10^9 operations/s; {peak})", header, self.rows)
        return self.figures


def part_f32(threads: int) -> Figures:
    """Measure f32 products with the multiply-add tile."""
    import numpy as np
    import torch

    rng = np.random.default_rng(1)
    board = Board("f32 matmul", ("numpy", "torch"), "f32", threads)
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
    """Return a session for MatMulInteger of u8 with a constant s8 weight."""
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
    """Measure u8 times s8 products."""
    import numpy as np
    import torch

    rng = np.random.default_rng(2)
    board = Board("u8 x s8 -> s32 matmul", ("torch._int_mm", "onnxruntime"), "bytes", threads)
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
                message = f"{name}: the sums of ONNX Runtime differ"
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
    """Measure bfloat16 products with sums in f32."""
    import ml_dtypes
    import numpy as np
    import torch

    rng = np.random.default_rng(3)
    board = Board("bf16 matmul", ("torch.mm",), "bf16", threads)
    if board.instruction is None:
        return board.skip(DOTS)
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
        if m > 1:  # packing costs more than the product of one row
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
