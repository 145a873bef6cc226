"""The selective scan of a state-space model agrees on all targets."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tilewright as tw
from tilewright.ir.interpreter import run_graph

from tests.codegen.kernels import LEVELS

if TYPE_CHECKING:
    from pathlib import Path

CHANNELS, STATES = 3, 4

TEXT = f"""
m = symbols("m", lower=1)

@prim_func
def selective_scan(
    x: Buffer[(m, {CHANNELS}), f32],
    d: Buffer[(m, {CHANNELS}), f32],
    a: Buffer[({CHANNELS}, {STATES}), f32],
    b: Buffer[(m, {STATES}), f32],
    c: Buffer[(m, {STATES}), f32],
    y: Out[(m, {CHANNELS}), f32],
):
    p = alloc(({CHANNELS}, {STATES}, m), f32)
    h = alloc(({CHANNELS}, {STATES}, m), f32)
    for i in range({CHANNELS}):
        for k in range({STATES}):
            for j in range(m):
                with block("states"):
                    vi, vk, vj = spatial(i), spatial(k), ordered(j)
                    p[vi, vk, vj], h[vi, vk, vj] = scan(
                        linear_recurrence,
                        exp(d[vj, vi] * a[vi, vk]),
                        d[vj, vi] * b[vj, vk] * x[vj, vi],
                    )
    for j2 in range(m):
        for i2 in range({CHANNELS}):
            for k2 in range({STATES}):
                with block("outputs"):
                    wj, wi, wk = spatial(j2), spatial(i2), reduce(k2)
                    with init(): y[wj, wi] = 0.0
                    y[wj, wi] += h[wi, wk, wj] * c[wj, wk]

@graph_func
def main(
    x: Tensor[(m, {CHANNELS}), f32],
    d: Tensor[(m, {CHANNELS}), f32],
    a: Tensor[({CHANNELS}, {STATES}), f32],
    b: Tensor[(m, {STATES}), f32],
    c: Tensor[(m, {STATES}), f32],
):
    y: Tensor[(m, {CHANNELS}), f32] = call_tir(selective_scan, x, d, a, b, c)
    return y
"""

SIZES = (1, 2, 7, 33, 100)
TARGETS = {
    **{level: tw.Target("cpu", features=(level,)) for level in LEVELS},
    "simt": tw.Target("simt"),
}


def inputs(m: int) -> list[np.ndarray]:
    rng = np.random.default_rng(m)
    x, b, c = (rng.standard_normal((m, n)) for n in (CHANNELS, STATES, STATES))
    d, a = rng.random((m, CHANNELS)), -rng.random((CHANNELS, STATES)) - 0.5
    return [value.astype(np.float32) for value in (x, d, a, b, c)]


def expected(m: int) -> np.ndarray:
    """Return the outputs in double precision, one step after the other."""
    x, d, a, b, c = (value.astype(np.float64) for value in inputs(m))
    state, outputs = np.zeros((CHANNELS, STATES)), []
    for j in range(m):
        state = np.exp(d[j][:, None] * a) * state + d[j][:, None] * b[j] * x[j][:, None]
        outputs.append(state @ c[j])
    return np.array(outputs)


def check(m: int, found: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected(m), rtol=1e-4, atol=1e-5)


def scheduled(target: tw.Target) -> tw.Schedule:
    """Return the program with a scan in parts, as a long sequence needs it."""
    sch = tw.Schedule(tw.parse(TEXT), target)
    total, _ = sch.scan_blocks("states", 16)
    blocks = (total, sch.get_block("states"))
    if target.is_gpu:
        nests = [sch.get_loops(block)[2] for block in blocks]
        for loop in (*nests, sch.get_loops("outputs")[0]):
            _, threads = sch.split(loop, factors=(None, 4))
            sch.bind(threads, "threadIdx.x")
        return sch
    for block in blocks:
        sch.parallel(sch.get_loops(block)[2])
    sch.vectorize(sch.get_loops("states")[-1])
    return sch


def test_the_interpreter_agrees():
    module = tw.parse(TEXT)
    for m in SIZES[:4]:
        (found,) = run_graph(module, inputs(m))
        check(m, found)


@pytest.mark.parametrize("name", TARGETS)
def test_targets_agree(name):
    target = TARGETS[name]
    for program in (tw.parse(TEXT), scheduled(target)):
        exe = tw.compile(program, target)
        for m in SIZES:
            check(m, exe(*inputs(m)))


def test_webassembly_in_node_agrees(tmp_path: Path):
    made = tw.export(tw.parse(TEXT), tmp_path / "scan", kind="wasm", name="scan")
    given = [[[list(v.shape), v.ravel().tolist()] for v in inputs(m)] for m in SIZES]
    (tmp_path / "run.mjs").write_text(f"""
import {{ load }} from "{made.directory}/scan.mjs";
const model = await load();
const found = [];
for (const call of {json.dumps(given)}) {{
  const args = call.map(([shape, data]) => ({{ data: Float32Array.from(data), shape }}));
  found.push(Array.from(model.main(...args).data));
}}
console.log(JSON.stringify(found));
""")
    node = shutil.which("node")
    assert node, "no node: `make test` finds or installs it"
    done = subprocess.run([node, tmp_path / "run.mjs"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for m, values in zip(SIZES, json.loads(done.stdout), strict=True):
        check(m, np.array(values).reshape(m, CHANNELS))
