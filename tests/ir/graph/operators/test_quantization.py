"""Products with weights of 4 and 8 bits, dequantized in the loop, agree on all targets."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.export.link import run_linker
from tilewright.ir.dtype import dtype
from tilewright.ir.interpreter import run_graph
from tilewright.ir.loop.nodes import Cast, Load, Store
from tilewright.ir.loop.visit import walk, walk_element

from tests.codegen.export.test_cross import emulator
from tests.codegen.export.test_shared import PROGRAMS, filled

if TYPE_CHECKING:
    from pathlib import Path

    from tilewright.ir.module import Module

pytestmark = pytest.mark.slow

TEXT = """
n = symbols("n", lower=0)
constant("w", (24, 40), i4)
constant("s", (3, 40), f32)
constant("z", (3, 40), i4)
constant("v", (16, 24), f8_e4m3)
constant("t", (16,), f32)

@graph_func
def main(x: Tensor[(n, 24), f32], y: Tensor[(n, 40), f32]):
    d = dequantize_linear(const("w"), const("s"), const("z"), axis=0, block_size=8)
    p = matmul(x, d)
    c = add(p, y)
    e = dequantize_linear(const("v"), const("t"), axis=0)
    f = permute_dims(e, axes=(1, 0))
    q = matmul(x, f)
    r = sum(q, axes=(1,))
    return c, r
"""

SIZES = (0, 1, 2, 7, 33)
TARGETS = {
    "avx2": tw.Target("cpu", features=("avx2",)),
    "host": tw.Target("cpu"),
    "simt": tw.Target("simt"),
}


@pytest.fixture(scope="module")
def module() -> Module:
    rng = np.random.default_rng(8)
    int4, fp8 = dtype("i4").numpy, dtype("f8_e4m3").numpy
    constants = {
        "w": rng.integers(-8, 8, (24, 40)).astype(int4),
        "s": rng.uniform(0.5, 1, (3, 40)).astype(np.float32),
        "z": rng.integers(-8, 8, (3, 40)).astype(int4),
        "v": rng.standard_normal((16, 24)).astype(fp8),
        "t": rng.uniform(0.5, 1, 16).astype(np.float32),
    }
    return tw.parse(TEXT, constants=constants)


def inputs(size: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return filled((size, 24), 1), filled((size, 40), 2)


def check(module: Module, size: int, results: Any) -> None:
    """Compare with the interpreter; both are within the bound of sums of 24 and 384 terms."""
    x, _ = inputs(size)
    held = {k: c.load().astype(np.float64) for k, c in module.constants.items()}
    left = (held["w"] - np.repeat(held["z"], 8, 0)) * np.repeat(held["s"], 8, 0)
    right = held["v"].T * held["t"]
    wide = np.abs(x.astype(np.float64))
    sums = wide @ np.abs(left) + 4, (wide @ np.abs(right)).sum(1)
    wanted = run_graph(module, inputs(size))
    for have, want, magnitude, terms in zip(results, wanted, sums, (26, 386), strict=True):
        assert have.shape == want.shape
        assert np.all(np.abs(have.astype(np.float64) - want) <= 2 * terms * 2.0**-24 * magnitude)


@pytest.mark.parametrize("target", TARGETS)
def test_executables_agree_with_the_interpreter(module: Module, target: str) -> None:
    run = tw.compile(module, TARGETS[target])
    for size in SIZES:
        check(module, size, run(*inputs(size)))


def test_weights_remain_packed(module: Module) -> None:
    """No constant or kernel holds a weight in single precision."""
    sch = tw.Schedule(module, tw.Target("cpu"))
    sch.default_schedule()
    wide = {k: c for k, c in sch.module.constants.items() if c.dtype.name == "f32"}
    assert max(int(np.prod(c.shape)) for c in wide.values()) <= 120  # the scales
    for kernel in sch.module.prims:
        large = [b for b in kernel.buffers if b.dtype.name == "f32" and b.scope != "local"]
        assert not large, kernel.name
    narrow = {k: c for k, c in sch.module.constants.items() if k.startswith("prepared.")}
    assert {c.dtype.name for c in narrow.values()} >= {"i4", "f8_e4m3"}


def test_weights_are_converted_in_the_loop_of_the_product(module: Module) -> None:
    sch = tw.Schedule(module, tw.Target("cpu"))
    sch.default_schedule()
    products = [
        s for f in sch.module.prims for s in walk(f.body)
        if isinstance(s, Store) and s.value.dtype.name == "f32"
        and any(
            isinstance(e, Cast) and isinstance(e.operand, Load) and not e.operand.dtype.is_machine
            for e in walk_element(s.value)
        )
    ]  # fmt: skip
    assert len(products) == 4  # two products, each with a version of one row


def test_kernels_for_nvidia_gpus_are_assembled(module: Module) -> None:
    exe = tw.compile(module, tw.Target("cuda", arch="sm_90a"))
    for kernel in exe.kernels:
        resources = exe.image(kernel).resources
        assert resources is not None, kernel
        assert (resources.spill_stores, resources.spill_loads) == (0, 0)


@pytest.mark.parametrize("arch", ["aarch64", "riscv64"])
def test_emulated_processors_agree(module: Module, tmp_path: Path, arch: str) -> None:
    target = tw.Target("cpu", arch=arch)
    made = tw.export(module, tmp_path / "small", target=target, kind="static", name="small")
    program, out, sizes = tmp_path / "program", tmp_path / "out", SIZES[1:]
    run_linker(
        [
            "cc", "-target", f"{arch}-linux-musl", "-static", "-O1", "-std=c11",
            f"-I{made.directory}", str(PROGRAMS / "small.c"),
            str(made.directory / "libsmall.a"), "-o", str(program),
        ]
    )  # fmt: skip
    done = subprocess.run(
        [emulator(arch), program, made.directory / "small.safetensors", out, *map(str, sizes)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    got = np.fromfile(out, np.float32)
    for size in sizes:
        first, second, got = np.split(got, [size * 40, size * 41])
        check(module, size, (first.reshape(size, 40), second))
    assert not got.size


def test_webassembly_in_node_agrees(module: Module, tmp_path: Path) -> None:
    made = tw.export(module, tmp_path / "small", kind="wasm", name="small")
    given = [[size, *(a.ravel().tolist() for a in inputs(size))] for size in SIZES]
    (tmp_path / "run.mjs").write_text(f"""
import {{ load }} from "{made.directory}/small.mjs";
const model = await load();
const found = [];
for (const [n, x, y] of {json.dumps(given)}) {{
  const results = model.main(
    {{ data: Float32Array.from(x), shape: [n, 24] }},
    {{ data: Float32Array.from(y), shape: [n, 40] }},
  );
  found.push(results.map((t) => Array.from(t.data)));
}}
console.log(JSON.stringify(found));
""")
    node = shutil.which("node")
    assert node, "no node: `make test` finds or installs it"
    done = subprocess.run([node, tmp_path / "run.mjs"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for size, (first, second) in zip(SIZES, json.loads(done.stdout), strict=True):
        results = np.array(first).reshape(size, 40), np.array(second).reshape(size)
        check(module, size, results)
