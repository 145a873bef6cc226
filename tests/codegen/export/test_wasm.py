"""The exported WebAssembly module: in Node.js with its loader, and in wasmtime without."""

from __future__ import annotations

import base64
import json
import re
import shutil
import struct
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.export import ExportError
from tilewright.ir.dtype import f32, from_numpy
from tilewright.ir.interpreter import call_prim, run_graph
from tilewright.ir.module import Constant
from tilewright.ir.packing import storage_of

from tests.codegen.export.test_loader import (
    COMPLEX,
    NARROW,
    complex_arguments,
    narrow_arguments,
)
from tests.codegen.export.test_shared import PROGRAMS, filled
from tests.codegen.export.test_states import SIZES
from tests.ir.loop import reducer_programs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@pytest.fixture(scope="module")
def directory(module, tmp_path_factory):
    made = tw.export(module, tmp_path_factory.mktemp("wasm") / "small", kind="wasm", name="small")
    return made.directory


@pytest.fixture(scope="module")
def node(directory) -> dict:
    found = shutil.which("node")
    assert found, "no node: `make test` finds or installs it"
    done = subprocess.run(
        [found, PROGRAMS / "small.mjs", directory], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_node_agrees_with_the_interpreter(module, node):
    for n, results in zip((1, 7, 64, 0), node["results"], strict=True):
        wanted = run_graph(module, (filled((n, 24), 1), filled((n, 40), 2)))
        for got, array in zip(results, wanted, strict=True):
            assert got["shape"] == list(array.shape)
            data = np.array(got["data"], np.float32).reshape(array.shape)
            np.testing.assert_allclose(data, array, rtol=3e-5, atol=3e-5)


def test_parameters_are_written_in_place(node):
    assert node["total"] == [6, 8]
    assert node["same"]


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("shape", r"3 function 'main', parameter 'y' .*dimension 0 of shape \(2, 40\)"),
        ("dtype", r"1 function 'main', parameter 'x' .*: expected dtype f32, got f64"),
        ("rank", r"2 function 'main', parameter 'x' .*expected rank 2, got rank 1"),
        ("data", r"3 function 'main', .*shape \(3, 23\) has 69 elements, but data has 72"),
        ("sizes", r"14 function 'main', .*dimension 0 is not an integer: 1\.5"),
        ("minus", r"14 function 'main', .*dimension 0 is negative: -3"),
        ("alias", r"8 function 'accumulate', .*'total' \(inout\) shares memory with 'x' \(in\)"),
        ("module", r"0 cannot instantiate the module: WebAssembly"),
        ("count", r"0 function 'main': number of arguments: expected 2, got 1: main\(x: .*\)"),
        ("fact", r"9 function 'main': the program assumes n <= 64, which is false for n = 65"),
        ("closed", r"14 the model is closed"),
        ("trim", r"14 the model is closed"),
        ("truncated", r"16 expected weights of \d+ bytes, got 99 bytes"),
        ("altered", r"16 block 1 of 1 of the weights, bytes \d+ to \d+ of the file, is dama"),
        ("empty", r"16 expected weights of \d+ bytes, got 0 bytes"),
    ],
)
def test_code_and_message_of_an_invalid_call(node, mistake, message):
    assert re.match(message, node["refusals"][mistake]), node["refusals"][mistake]


def test_wasmtime_agrees_with_the_interpreter(module, directory):
    """The description in docs/abi.md suffices to call the module without the loader."""
    import wasmtime

    store = wasmtime.Store()
    code = wasmtime.Module.from_file(store.engine, str(directory / "small.wasm"))
    assert not code.imports
    exports = wasmtime.Instance(store, code, []).exports(store)
    memory = exports["memory"]

    def put(data: bytes) -> int:
        address = exports["small_alloc"](store, max(len(data), 1))
        memory.write(store, data, address)
        return address

    def tensor(array: np.ndarray) -> int:
        data, rank = put(array.tobytes()), array.ndim
        shape = put(struct.pack(f"<{rank}q", *array.shape))
        return put(struct.pack("<QiiiBBHQQQ", data, 1, 0, rank, 2, 32, 1, shape, 0, 0))

    weights = (directory / "small.safetensors").read_bytes()
    output, error, results = put(bytes(8)), put(bytes(512)), put(bytes(16))
    assert exports["small_start"](store, put(weights), len(weights), 0, output, error) == 0
    (model,) = struct.unpack("<I", memory.read(store, output, output + 4))
    x, y = filled((5, 24), 1), filled((5, 40), 2)
    words = (model, tensor(x), tensor(y), results, results + 8, error)
    assert exports["small_main"](store, *words) == 0
    for k, array in enumerate(run_graph(module, (x, y))):
        at = results + 8 * k
        (block,) = struct.unpack("<I", memory.read(store, at, at + 4))
        (data,) = struct.unpack("<I", memory.read(store, block + 32, block + 36))
        got = np.frombuffer(memory.read(store, data, data + array.nbytes), np.float32)
        np.testing.assert_allclose(got.reshape(array.shape), array, rtol=3e-5, atol=3e-5)
        exports["small_release"](store, block)
    exports["small_close"](store, model)


SCOPED = """
m, n = symbols("m n", lower=1)

@prim_func
def main(x: Buffer[(n, m), f32], p: Buffer[(n,), i32], y: Out[(n, m), f32]):
    for i in parallel(n):
        with checked(p[i], 0, m + 1) as size:
            t = alloc((size,), f32)
            for k in range(size):
                with block("t"):
                    vi, vk = spatial(n, i), spatial(m + 1, k)
                    t[vk] = x[vi, vk] * 2.0
            for j in range(m):
                with block("y"):
                    wi, wj, ws = spatial(n, i), spatial(m, j), spatial(m + 1, size)
                    y[wi, wj] = where(wj < ws, t[ws - wj - 1], 0.0)
"""

GUARDED = """
@prim_func
def main(x: Buffer[(18,), f32], y: Out[(16,), f32]):
    tmp = alloc((18,), f32)
    for i in range(16):
        for r in range(3):
            with block("p"):
                vi, vr = spatial(16, i), spatial(3, r)
                guard(i == 0 or r == 2)
                tmp[vi + vr] = x[vi + vr]
        with block("c"):
            vk = spatial(16, i)
            y[vk] = tmp[vk] + tmp[vk + 1] + tmp[vk + 2]
"""

INDICES = """
n = symbols("n", lower=0)

@prim_func
def main(x: Buffer[(n,), f32], y: Out[(n,), f32]):
    for i in range(n):
        with block("y"):
            vi = spatial(i)
            y[vi] = where(condition(vi * 3 % 5 <= 2), x[vi] + index(vi % 7, f32), x[vi * 11 % n])
"""

ROWS = np.arange(15, dtype=np.float32).reshape(3, 5)
ALLOCATED = {
    "ragged": (SCOPED, (ROWS, np.array([5, 0, 2], np.int32))),
    "guarded": (GUARDED, (np.arange(18, dtype=np.float32),)),
    "indices": (INDICES, (np.arange(37, dtype=np.float32),)),
}


@pytest.mark.parametrize("name", ALLOCATED)
def test_temporaries_guarded_windows_and_indices_of_lanes(tmp_path, name):
    text, arrays = ALLOCATED[name]
    module = tw.parse(text)
    made = tw.export(module, tmp_path / name, kind="wasm", name="scoped")
    (expected,) = call_prim(module.prim("main"), list(arrays))
    np.testing.assert_array_equal(
        called(made.directory / "scoped.wasm", arrays, expected), expected
    )


def called(path: Path, arrays: Sequence[np.ndarray], like: np.ndarray) -> np.ndarray:
    """Call the function ``main`` of the exported model ``scoped`` in wasmtime."""
    import wasmtime

    store = wasmtime.Store()
    code = wasmtime.Module.from_file(store.engine, str(path))
    exports = wasmtime.Instance(store, code, []).exports(store)
    memory = exports["memory"]

    def put(data: bytes) -> int:
        address = exports["scoped_alloc"](store, max(len(data), 1))
        memory.write(store, data, address)
        return address

    def tensor(array: np.ndarray) -> int:
        data, rank = put(array.tobytes()), array.ndim
        shape = put(struct.pack(f"<{rank}q", *array.shape))
        kind = {"f": 2, "i": 0}[array.dtype.kind]
        return put(struct.pack("<QiiiBBHQQQ", data, 1, 0, rank, kind, 32, 1, shape, 0, 0))

    output, error, results = put(bytes(8)), put(bytes(512)), put(bytes(8))
    assert exports["scoped_start"](store, 0, 0, 0, output, error) == 0
    (model,) = struct.unpack("<I", memory.read(store, output, output + 4))
    for _ in range(2):  # the second call uses the memory of the first one
        code = exports["scoped_main"](store, model, *map(tensor, arrays), results, error)
        assert code == 0, memory.read(store, error, error + 512)
    (block,) = struct.unpack("<I", memory.read(store, results, results + 4))
    (data,) = struct.unpack("<I", memory.read(store, block + 32, block + 36))
    got = np.frombuffer(memory.read(store, data, data + like.nbytes), like.dtype)
    return got.reshape(like.shape)


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> dict:
    start = np.array([5, 6], np.float32)
    module = tw.parse(SIZES, constants={"start": Constant((2,), f32, lambda: start)})
    folder = tmp_path_factory.mktemp("states") / "made"
    made = tw.export(module, folder, kind="wasm", name="sized")
    found = shutil.which("node")
    assert found, "no node: `make test` finds or installs it"
    done = subprocess.run(
        [found, PROGRAMS / "states.mjs", made.directory],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_states_persist_between_calls_and_are_independent(states):
    assert states["shapes"] == [[2, 7], [2]]
    assert (states["first"], states["second"], states["third"]) == ([0, 0], [6, 24], [3])
    assert states["seen"] == [1, 9, 9]
    assert states["peeks"] == [[14, 16], [12, 14]]


def test_states_are_read_written_and_reset(states):
    assert states["set"] == [2, 2]
    assert (states["copied"], states["kept"]) == ([8, 8], [4, 4])
    assert states["reset"] == [[5, 6], True]
    assert states["after"] == [10, 12]
    assert states["works"] == [0, 0]


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("missing", r"0 the shapes of states depend on b, n; pass newState\({ b: 4, n: 4 }\)"),
        ("kind", r"0 function 'main': expected a state of newState\(\), got Number"),
        ("size", r"3 function 'main', parameter 'seen' .* expected b = 1 from the other arguments"),
        ("unknown", "0 no state parameter or symbol 'k'; names are seen, count, b, n"),
        ("negative", "11 symbol 'b': expected 0 to 2147483647, got -1"),
        ("large", r"14 state 'seen' .* has more elements than can be addressed"),
        ("memory", r"12 cannot allocate \d+ bytes for the state"),
        ("name", "0 no state parameter 'none'; names are seen, count"),
        ("shape", r"0 state 'seen': expected shape \(2, 7\), got \(5,\)"),
        ("dtype", "1 state 'seen': expected dtype f32, got f64"),
        ("foreign", "20 the state belongs to another model"),
        ("freed", "0 the state was freed"),
        ("closed", "14 the model is closed"),
    ],
)
def test_code_and_message_of_a_wrong_state(states, mistake, message):
    assert re.match(message, states["refusals"][mistake]), states["refusals"][mistake]


@pytest.mark.parametrize(
    ("target", "kind"),
    [("cuda", "wasm"), ("cpu", "wasm"), ("wasm32", "shared"), ("aarch64", "wasm")],
)
def test_a_kind_of_another_machine(module, tmp_path, target, kind):
    if target == "cpu":
        chosen = tw.Target("cpu", arch="x86_64")
    elif target == "cuda":
        chosen = tw.Target("cuda")
    else:
        chosen = tw.Target("cpu", arch=target)
    with pytest.raises(ExportError, match=r"cannot be exported as|requires a CPU target"):
        tw.export(module, tmp_path / "model", target=chosen, kind=kind)


def test_packed_elements_and_narrow_floats_in_node(tmp_path):
    module = tw.parse(NARROW)
    made = tw.export(module, tmp_path / "small", kind="wasm", name="small")
    cases = [narrow_arguments(n) for n in (0, 1, 2, 7, 64)]
    stored = [[storage_of(a, from_numpy(a.dtype)).tolist() for a in given] for given in cases]
    (tmp_path / "run.mjs").write_text(f"""
import {{ load }} from "{made.directory}/small.mjs";
const model = await load();
const results = [];
for (const [x, a, q] of {json.dumps(stored)}) {{
  const n = a.length;
  const given = [x, a, q].map((data) => ({{ data: Uint8Array.from(data), shape: [n] }}));
  results.push(model.main(...given).map((t) => Array.from(t.data)));
}}
console.log(JSON.stringify(results));
""")
    node = shutil.which("node")
    assert node, "no node: `make test` finds or installs it"
    done = subprocess.run([node, tmp_path / "run.mjs"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for given, results in zip(cases, json.loads(done.stdout), strict=True):
        wanted = call_prim(module.prim("main"), given)
        for got, want in zip(results, wanted, strict=True):
            row = from_numpy(want.dtype)
            assert got == storage_of(want, row).tolist()


KINDS = {np.dtype(np.float32): "Float32Array", np.dtype(np.int32): "Int32Array",
         np.dtype(np.int64): "BigInt64Array"}  # fmt: skip
BYTES = """
import {{ load }} from "{directory}/small.mjs";
const model = await load();
const results = [];
for (const {{ name, given }} of {calls}) {{
  const tensors = given.map(({{ kind, base64, shape }}) => {{
    const bytes = Uint8Array.from(Buffer.from(base64, "base64"));
    return {{ data: new globalThis[kind](bytes.buffer), shape }};
  }});
  const made = model[name](...tensors);
  const text = ({{ data }}) =>
    Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
  results.push([[made].flat().filter((t) => t?.data).map(text), tensors.map(text)]);
}}
console.log(JSON.stringify(results));
"""


def test_reducers_in_node(tmp_path):
    module = tw.parse(reducer_programs.MODULE)
    made = tw.export(module, tmp_path / "small", kind="wasm", name="small")
    cases = [(k, *sizes) for k in reducer_programs.PROGRAMS for sizes in reducer_programs.SIZES]
    given = [reducer_programs.inputs(*case) for case in cases]
    calls = [
        {"name": name, "given": [
            {"kind": KINDS.get(a.dtype, "Uint8Array"), "shape": a.shape,
             "base64": base64.b64encode(storage_of(a, from_numpy(a.dtype)).tobytes()).decode()}
            for a in arrays
        ]}
        for (name, *_), arrays in zip(cases, given, strict=True)
    ]  # fmt: skip
    text = BYTES.format(directory=made.directory, calls=json.dumps(calls))
    (tmp_path / "run.mjs").write_text(text)
    node = shutil.which("node")
    assert node, "no node: `make test` finds or installs it"
    done = subprocess.run([node, tmp_path / "run.mjs"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for (name, *_), arrays, data in zip(cases, given, json.loads(done.stdout), strict=True):
        like = call_prim(module.prim(name), arrays)
        access = [p.access for p in module.prim(name).params if p.access != "out"]
        returned, passed = data
        updated = [x for x, kind in zip(passed, access, strict=True) if kind == "inout"]
        results = [
            np.frombuffer(base64.b64decode(x), want.dtype).reshape(want.shape)
            for x, want in zip(updated or returned, like, strict=True)
        ]
        reducer_programs.check(name, results, arrays)


def test_complex_numbers_are_pairs_in_node(tmp_path):
    module = tw.parse(COMPLEX)
    made = tw.export(module, tmp_path / "small", kind="wasm", name="small")
    cases = [complex_arguments(n) for n in (0, 1, 7)]
    stored = [[a.view(a.real.dtype).tolist() for a in given] for given in cases]
    (tmp_path / "run.mjs").write_text(f"""
import {{ load }} from "{made.directory}/small.mjs";
const model = await load();
const results = [];
for (const [x, w, q] of {json.dumps(stored)}) {{
  const shape = [q.length / 2];
  const given = [new Float32Array(x), new Float64Array(w), new Float32Array(q)];
  const [first, second] = model.main(...given.map((data) => ({{ data, shape }})));
  results.push([first, second].map((t) => [t.data.constructor.name, Array.from(t.data), t.shape]));
}}
let refusal = "";
try {{
  model.main({{ data: new Float32Array(1), shape: [1] }},
    {{ data: new Float64Array(2), shape: [1] }},
    {{ data: new Float32Array(2), shape: [1] }});
}} catch (error) {{
  refusal = error.message;
}}
console.log(JSON.stringify([results, refusal]));
""")
    node = shutil.which("node")
    assert node, "no node: `make test` finds or installs it"
    done = subprocess.run([node, tmp_path / "run.mjs"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found, refusal = json.loads(done.stdout)
    assert "2 elements, but data has 1" in refusal
    for given, results in zip(cases, found, strict=True):
        kinds = ("Float32Array", "Float64Array")
        for (kind, data, shape), expected, want in zip(
            results, kinds, call_prim(module.prim("main"), given), strict=True
        ):
            assert (kind, shape) == (expected, list(want.shape))
            assert data == want.view(want.real.dtype).tolist()
