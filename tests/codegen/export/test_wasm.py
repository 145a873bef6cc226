"""The exported model as WebAssembly: in node through its loader, and in wasmtime by hand."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.export import ExportError
from tilewright.ir.interpreter import run_graph

from tests.codegen.export.test_shared import PROGRAMS, filled


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


def test_what_is_written_in_place_is(node):
    assert node["total"] == [6, 8]
    assert node["same"]


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("shape", r"3 function 'main', parameter 'y' .*dimension 0 of shape \(2, 40\)"),
        ("dtype", r"1 parameter 'x': expected \{ data: Float32Array"),
        ("rank", r"2 function 'main', parameter 'x' .*expected 2 dimensions, got 1"),
        ("data", r"3 parameter 'x': shape \[3,23\] has 69 elements, data 72"),
        ("sizes", r"14 parameter 'x': shape \[1.5,48\] is not of sizes"),
        ("minus", r"14 parameter 'x': shape \[-3,-24\] is not of sizes"),
        ("alias", r"8 parameter 'total' is written and shares memory with 'x'"),
        ("module", r"0 the module cannot be run: WebAssembly"),
        ("count", r"0 main\(x: .*\): got 1 arguments"),
        ("fact", r"9 function 'main': the program assumes n <= 64, with n = 65"),
        ("closed", r"14 the model is closed"),
        ("truncated", r"16 the weights have 99 bytes, those of this model have \d+"),
        ("altered", r"16 the tensors of the weights are not those of this model"),
        ("empty", r"16 the weights have 0 bytes"),
    ],
)
def test_mistakes_get_a_code_and_a_message(node, mistake, message):
    assert re.match(message, node["refusals"][mistake]), node["refusals"][mistake]


def test_wasmtime_agrees_with_the_interpreter(module, directory):
    """Without the loader: what docs/abi.md says is enough to call the module."""
    import wasmtime

    store = wasmtime.Store()
    code = wasmtime.Module.from_file(store.engine, str(directory / "small.wasm"))
    assert not code.imports
    exports = wasmtime.Instance(store, code, []).exports(store)
    memory = exports["memory"]

    def put(data: bytes) -> int:
        place = exports["small_alloc"](store, max(len(data), 1))
        memory.write(store, data, place)
        return place

    def tensor(array: np.ndarray) -> int:
        data, rank = put(array.tobytes()), array.ndim
        shape = put(struct.pack(f"<{rank}q", *array.shape))
        return put(struct.pack("<QiiiBBHQQQ", data, 1, 0, rank, 2, 32, 1, shape, 0, 0))

    weights = (directory / "small.safetensors").read_bytes()
    place, error, results = put(bytes(8)), put(bytes(512)), put(bytes(16))
    assert exports["small_start"](store, put(weights), len(weights), 0, place, error) == 0
    (model,) = struct.unpack("<I", memory.read(store, place, place + 4))
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
    with pytest.raises(ExportError, match=r"cannot be exported as|holds code of a processor"):
        tw.export(module, tmp_path / "model", target=chosen, kind=kind)
