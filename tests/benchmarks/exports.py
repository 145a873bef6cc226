"""MiniLM in every export format: results, sizes, and times to the first result.

Run as ``python -m tests.benchmarks.exports [--json FILE] [--only PART] [--threads 1]``. Every part
is a program that does not use Tilewright: C on this machine (from a shared library, a static
library, an object), plain Python, JavaScript in node, wasmtime, and C on emulated AArch64 and
RISC-V. Each runs the same two shapes, whose results are compared with the interpreter's. Parts
whose tool is not installed are listed as "not on this machine". The part ``memory`` is described in
`tests.benchmarks.export_memory`.

*First result* is the time of a process that runs one shape: it loads the weights, packs them, and
calls the model once. *Call* is the mean time of further calls in one process. Times under
emulation do not predict the speed of real processors.
"""

from __future__ import annotations

import importlib.util
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

import tilewright as tw
from tilewright.codegen.export.link import run_linker
from tilewright.ir.interpreter import run_graph
from tilewright.workbench.demo import export_minilm, load_minilm

from .export_memory import measure_memory
from .harness import NOT_HERE, arguments, table, write_json

PROGRAMS = Path(__file__).parents[1] / "codegen" / "export" / "programs"
SHAPES = ((3, 17), (1, 32))
BOUND = 2e-5
"""The largest allowed difference from the results of the interpreter, which are of order one."""


@dataclass(frozen=True)
class Part:
    """One way to run the model.

    Parameters
    ----------
    kind : str
        The export format.
    target : Target
        The machine that runs it.
    command : callable
        Returns the command that runs the export in a folder.
    starts : int
        Processes to start for the time to the first result.
    repeats : int
        Calls to time in one process.
    tool : str
        A program on PATH or a Python package that the command needs.
    """

    kind: str
    target: tw.Target
    command: Callable[[Path], list[str]]
    starts: int = 7
    repeats: int = 30
    tool: str = ""

    @property
    def available(self) -> bool:
        """Whether the tool is installed."""
        programs = (self.tool, f"{self.tool}-static")
        found = any(map(shutil.which, programs)) or importlib.util.find_spec(self.tool or "sys")
        return bool(found)


@cache
def module():
    """Return the model, imported once."""
    return tw.from_exported_program(export_minilm(load_minilm()))


def inputs(batch: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs that every program generates itself."""
    k = np.arange(batch * length)
    ids = (1000 + k * 7919 % 29000).reshape(batch, length)
    return ids, (k % length < length - k // length).astype(np.int64).reshape(batch, length)


@cache
def expected(shapes: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the results of the interpreter, concatenated."""
    results = [r for shape in shapes for r in run_graph(module(), inputs(*shape))]
    return np.concatenate([np.asarray(r, np.float32).reshape(-1) for r in results])


def program(folder: Path, triple: str = "", *more: str) -> list[str]:
    """Compile the C program with the library in a folder."""
    made, found = folder / "program", {p.suffix: p for p in folder.iterdir()}
    library = next(found[s] for s in (".so", ".a", ".o") if s in found)
    where = ["-target", triple] if triple else []
    run_linker(["cc", *where, "-O1", "-std=c11", *more, f"-I{folder}", str(PROGRAMS / "minilm.c"),
                str(library), f"-Wl,-rpath,{folder}", "-o", str(made)])  # fmt: skip
    return [str(made), str(folder / "minilm.safetensors")]


def emulated(arch: str) -> Callable[[Path], list[str]]:
    """Return the command that runs a static program under qemu."""
    qemu = shutil.which(f"qemu-{arch}-static") or f"qemu-{arch}"
    return lambda folder: [qemu, *program(folder, f"{arch}-linux-musl", "-static")]


def script(name: str, runner: Sequence[str]) -> Callable[[Path], list[str]]:
    """Return the command that runs a script on a folder."""
    return lambda folder: [*runner, str(PROGRAMS / name), str(folder)]


HOST = tw.Target("cpu", threads=1)
PYTHON = (sys.executable, "-I")
MEMORY = "memory"
PARTS = {
    "C, shared": Part("shared", HOST, program),
    "C, static": Part("static", HOST, program),
    "C, object": Part("object", HOST, program),
    "plain Python": Part("shared", HOST, script("minilm_plain.py", PYTHON)),
    "wasm, node": Part("wasm", HOST, script("minilm.mjs", ("node",)), tool="node"),
    "wasm, wasmtime": Part("wasm", HOST, script("minilm_wasmtime.py", PYTHON), tool="wasmtime"),
    "C, aarch64 in qemu": Part(
        "static",
        tw.Target("cpu", arch="aarch64", threads=1),
        emulated("aarch64"),
        1,
        1,
        "qemu-aarch64",
    ),
    "C, riscv64 in qemu": Part(
        "static",
        tw.Target("cpu", arch="riscv64", threads=1),
        emulated("riscv64"),
        1,
        1,
        "qemu-riscv64",
    ),
}


def run(command: Sequence[str], out: Path, repeats: int, shapes: Sequence[tuple[int, int]]) -> str:
    """Run a program and return its output."""
    numbers = [str(n) for shape in shapes for n in shape]
    done = subprocess.run(
        [*command, str(out), str(repeats), *numbers], capture_output=True, text=True, check=False
    )
    if done.returncode:
        message = f"{command[0]} ended with {done.returncode}: {done.stderr[-2000:]}"
        raise RuntimeError(message)
    return done.stdout


def measured(
    name: str, part: Part, work: Path, shapes: Sequence[tuple[int, int]] = SHAPES
) -> dict[str, float]:
    """Export, run, compare, and time one part."""
    begin = perf_counter()
    made = tw.export(module(), work / "model", target=part.target, kind=part.kind, name="minilm")
    exported = perf_counter() - begin
    command, out = part.command(made.directory), work / "out"
    call = float(run(command, out, part.repeats, shapes))
    got, wanted = np.fromfile(out, np.float32), expected(shapes)
    error = float(np.abs(got - wanted).max()) if got.shape == wanted.shape else np.inf
    if not error <= BOUND:
        message = f"{name}: the error is {error}, the bound is {BOUND}"
        raise ArithmeticError(message)
    first: list[float] = []
    for _ in range(part.starts):
        begin = perf_counter()
        run(command, out, 0, shapes[-1:])
        first.append(perf_counter() - begin)
    suffixes = (".so", ".a", ".o", ".wasm")
    code = next(size for file, size in made.files.items() if file.endswith(suffixes))
    return {
        "code_bytes": code,
        "weights_bytes": made.files["minilm.safetensors"],
        "export_s": exported,
        "first_result_ms": statistics.median(first) * 1e3,
        "call_us": call,
        "largest_error": error,
    }


def main() -> None:
    """Run the chosen parts and print their table."""
    options = arguments(__doc__ or "")
    figures: dict[str, object] = {}
    rows: list[list[str]] = []
    absent: list[str] = []
    for name, part in PARTS.items():
        if options.only not in name:
            continue
        if not part.available:
            absent.append(f"{name} ({part.tool})")
            continue
        with TemporaryDirectory() as work:
            found = measured(name, part, Path(work))
        figures[name] = found
        rows.append(
            [
                name, f"{found['code_bytes'] / 1e3:,.0f}", f"{found['weights_bytes'] / 1e6:.1f}",
                f"{found['export_s']:.1f}", f"{found['first_result_ms']:,.0f}",
                f"{found['call_us'] / 1e3:,.2f}", f"{found['largest_error']:.1e}",
            ]
        )  # fmt: skip
        print(f"{name}: done", flush=True)
    if rows:
        table(
            f"Exported MiniLM; first result and call at {SHAPES[-1][0]}x{SHAPES[-1][1]}",
            ("form", "code kB", "weights MB", "export s", "first result ms", "call ms", "error"),
            rows,
        )
    if options.only in MEMORY:
        with TemporaryDirectory() as work:
            figures[MEMORY] = measure_memory(module(), Path(work))
    elif not rows and not absent:
        sys.exit(f"no part contains {options.only!r}: {', '.join((*PARTS, MEMORY))}")
    figures[NOT_HERE] = absent
    write_json(options.json, {"shapes": [list(s) for s in SHAPES], "parts": figures})


if __name__ == "__main__":
    main()
