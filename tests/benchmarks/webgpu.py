"""Kernels in a page on its WebGPU adapter: Tilewright and ONNX Runtime Web, interleaved.

Run as ``python -m tests.benchmarks.webgpu --peer node_modules/onnxruntime-web/dist [--json FILE]``,
with the folder of the npm package ``onnxruntime-web``. Both run the same ONNX model in one page of
Chromium (``CHROMIUM``) on the same adapter: by default SwiftShader, which runs on the processor and
shows little about a GPU; ``--options`` are the flags of Chromium for another one. A call copies the
arguments to the device and the result back. Each row has the medians of interleaved calls and their
ratio; the results are compared with NumPy in double precision first.
"""

from __future__ import annotations

import argparse
import base64
import os
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

import tilewright as tw

from tests.benchmarks.harness import NOT_HERE, table, write_json
from tests.codegen.export.pages import array, given, opened
from tests.codegen.wgsl.tint import OPTIONS

Array = NDArray[Any]

LEAST = 7
"""The least number of calls of each library."""

PATIENCE = 900.0
"""The longest time of a part of a case in seconds, on a slow software adapter."""

OPEN = """async (url, name, peer, bytes) => {
    const own = await import(`${url}${name}.mjs`);
    globalThis.own = await own.load();
    if (!peer) return [];
    globalThis.ort ??= await import(`${peer}ort.webgpu.min.mjs`);
    ort.env.wasm.wasmPaths = peer;
    ort.env.wasm.numThreads = 1;
    const data = Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0));
    const options = { executionProviders: ["webgpu"] };
    globalThis.session = await ort.InferenceSession.create(data, options);
    return session.outputNames;
}"""

RUN = """async (inputs, count, withPeer) => {
    const values = arrays(inputs);
    const own = async () => {
        const y = await globalThis.own.run(values);
        const data = await y.read();
        y.free();
        return data;
    };
    const peer = async () => {
        const feeds = {};
        for (const [name, { data, shape }] of Object.entries(values))
            feeds[name] = new ort.Tensor("float32", data, shape);
        const found = await session.run(feeds);
        return Object.values(found)[0].data;
    };
    const runs = withPeer ? { own, peer } : { own };
    const times = {}, results = {};
    for (const [name, run] of Object.entries(runs)) {
        times[name] = [];
        results[name] = { data: Array.from(await run()), shape: [] };
        await run();
    }
    for (let k = 0; k < count; k++) {
        for (const [name, run] of Object.entries(runs)) {
            const start = performance.now();
            await run();
            times[name].push(performance.now() - start);
        }
    }
    return { times, results };
}"""


@dataclass(frozen=True)
class Case:
    """A model: its nodes, the shapes of its arguments with symbols, and its reference."""

    name: str
    nodes: tuple[Any, ...]
    shapes: Mapping[str, tuple[int | str, ...]]
    sizes: Mapping[str, int]
    reference: Callable[..., Array]
    weights: Mapping[str, tuple[int, ...]]

    def model(self, draw: np.random.Generator) -> tuple[onnx.ModelProto, dict[str, Array]]:
        """Return the model with random weights, and the weights."""
        made = {n: draw.normal(size=s).astype(np.float32) for n, s in self.weights.items()}
        graph = helper.make_graph(
            list(self.nodes),
            "model",
            [
                helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
                for n, s in self.shapes.items()
            ],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [onnx.numpy_helper.from_array(w, n) for n, w in made.items()],
        )
        opset = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opset, ir_version=9), made

    def inputs(self, draw: np.random.Generator) -> dict[str, Array]:
        """Return random arguments at the sizes of the case."""
        return {
            name: draw.normal(size=[self.sizes.get(str(d), d) for d in shape]).astype(np.float32)
            for name, shape in self.shapes.items()
        }


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _norm(x: Array, g: Array, b: Array) -> Array:
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * g + b


def _attention(q: Array, k: Array, v: Array) -> Array:
    return _softmax(q @ k.swapaxes(-1, -2)) @ v


_NODE = helper.make_node
CASES: tuple[Case, ...] = (
    Case(
        "matmul 256 x 256 x 256", (_NODE("MatMul", ["x", "w"], ["y"]),), {"x": ("n", 256)},
        {"n": 256}, lambda x, w: x @ w, {"w": (256, 256)},
    ),
    Case(
        "one row x 1024 x 1024", (_NODE("MatMul", ["x", "w"], ["y"]),), {"x": ("n", 1024)},
        {"n": 1}, lambda x, w: x @ w, {"w": (1024, 1024)},
    ),
    Case(
        "softmax 256 x 512", (_NODE("Softmax", ["x"], ["y"], axis=-1),), {"x": ("n", 512)},
        {"n": 256}, _softmax, {},
    ),
    Case(
        "layer norm 256 x 384", (_NODE("LayerNormalization", ["x", "g", "b"], ["y"], axis=-1),),
        {"x": ("n", 384)}, {"n": 256}, _norm, {"g": (384,), "b": (384,)},
    ),
    Case(
        "attention 4 x 64 x 32",
        (
            _NODE("Transpose", ["k"], ["t"], perm=[0, 2, 1]),
            _NODE("MatMul", ["q", "t"], ["s"]),
            _NODE("Softmax", ["s"], ["p"], axis=-1),
            _NODE("MatMul", ["p", "v"], ["y"]),
        ),
        {"q": (4, "n", 32), "k": (4, "n", 32), "v": (4, "n", 32)}, {"n": 64}, _attention, {},
    ),
)  # fmt: skip


def run(case: Case, page: Any, peer: str) -> dict[str, float]:
    """Return the medians of both libraries in ms after the comparison of their results.

    Raises
    ------
    SystemExit
        If a result differs from that of NumPy.
    """
    draw = np.random.default_rng(0)
    model, weights = case.model(draw)
    inputs = case.inputs(draw)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "out"
        tw.export(tw.from_onnx(model), str(target), target="webgpu", kind="web", name="own")
        url = page.serve("own", target)
        content = base64.b64encode(model.SerializeToString()).decode() if peer else ""
        page.run(OPEN, url, "own", peer, content)
        found = page.run(RUN, given(**inputs), LEAST, bool(peer))
    wide = [a.astype(np.float64) for a in (*inputs.values(), *weights.values())]
    wanted = case.reference(*wide)
    for name, result in found["results"].items():
        actual = array({**result, "shape": wanted.shape})
        error = float(np.abs(actual - wanted).max() / np.abs(wanted).max())
        if error > 1e-5:
            raise SystemExit(f"{case.name}: the results of {name} differ by {error:.1e}")
    return {name: statistics.median(times) for name, times in found["times"].items()}


def main(given_arguments: Sequence[str] | None = None) -> None:
    """Print the table, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", type=Path, help="the folder dist of onnxruntime-web")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--only", default="", help="run the cases whose names contain this")
    parser.add_argument("--options", nargs="*", default=OPTIONS, help="flags of Chromium")
    chosen = parser.parse_args(given_arguments)
    figures: dict[str, Any] = {}
    for case in (c for c in CASES if chosen.only in c.name):
        with opened(os.environ["CHROMIUM"], options=chosen.options) as page:
            page.patience = PATIENCE
            peer = page.serve("peer", chosen.peer) if chosen.peer else ""
            figures[case.name] = run(case, page, peer)
    rows = [
        [name, *(f"{t:.1f}" for t in times.values()), f"{_ratio(times):.2f}" if chosen.peer else ""]
        for name, times in figures.items()
    ]
    table("ms per call", ["case", *next(iter(figures.values())), "peer / own"], rows)
    if chosen.peer:
        mean = statistics.geometric_mean(_ratio(times) for times in figures.values())
        print(f"geometric mean of peer / own: {mean:.2f}")
        figures["geometric mean"] = mean
    missing = [] if chosen.peer else ["ONNX Runtime Web (npm install onnxruntime-web)"]
    write_json(chosen.json, {"ms": figures, "peers": {NOT_HERE: missing}})


def _ratio(times: Mapping[str, float]) -> float:
    return times["peer"] / times["own"]


if __name__ == "__main__":
    main()
