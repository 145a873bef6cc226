"""Exported libraries with states: objects in C and Python, arguments in JavaScript."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.ir.dtype import f32
from tilewright.ir.interpreter import run_graph
from tilewright.ir.module import Constant
from tilewright.ir.script import parse

from tests.codegen.export.test_shared import PROGRAMS
from tests.ir.graph.state_programs import ORDERED

EXPECTED = [[22.0] * 8, [202.0] * 8]
"""The results of two calls with 100 and 7, from a state of 10: (state + 1) * 2."""


def loaded(folder: Path, name: str) -> Any:
    """Return an exported model, opened by its Python loader."""
    return loader_of(folder, name).load()


def loader_of(folder: Path, name: str) -> Any:
    """Return the Python loader of an exported model."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loader)
    return loader


HALVES = """
@graph_func
def main(x: Tensor[(4,), bf16], total: State[Tensor[(4,), bf16]]):
    new = add(total, x)
    return new, updates(total=new)
"""


def test_bfloat16_results_and_states_have_the_dtype_of_ml_dtypes(tmp_path: Path) -> None:
    from ml_dtypes import bfloat16

    model = loaded(tw.export(parse(HALVES), tmp_path / "made", name="halves").directory, "halves")
    state = model.new_state(total=np.full(4, 2, bfloat16))
    y = model.main(np.ones(4, bfloat16), state=state)
    assert y.dtype == state["total"].dtype == bfloat16
    assert y.tolist() == state["total"].tolist() == [3] * 4


CONVERTED = """
@graph_func
def main(x: Tensor[(3,), f32]):
    a = cast(x, dtype="bf16")
    b = cast(x, dtype="f8_e5m2")
    c = cast(x, dtype="i4")
    d = cast(x, dtype="u2")
    return a, b, c, d
"""


WITHOUT = """
import json, sys
import numpy as np
sys.modules["ml_dtypes"] = None  # importing it is an ImportError
from converted import load
found = load().main(np.array([1, -2, 3], np.float32))
print(json.dumps([[str(y.dtype), y.tolist()] for y in found]))
"""


def test_results_without_ml_dtypes_are_bits_and_integers(tmp_path: Path) -> None:
    made = tw.export(parse(CONVERTED), tmp_path / "made", name="converted")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], cwd=made.directory, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        ["uint16", [0x3F80, 0xC000, 0x4040]],
        ["uint8", [0x3C, 0xC0, 0x42]],
        ["int8", [1, -2, 3]],
        ["uint8", [1, 0, 3]],
    ]


SHARING = """
constant("w", (48, 32), f32)
b = symbols("b", lower=1)

@graph_func
def prefill(x: Tensor[(b, 32), f32]):
    t: Tensor[(32, 48), f32] = permute_dims(const("w"), axes=(1, 0))
    y: Tensor[(b, 48), f32] = matmul(x, t)
    return y

@graph_func
def decode(x: Tensor[(b, 32), f32]):
    t: Tensor[(32, 48), f32] = permute_dims(const("w"), axes=(1, 0))
    y: Tensor[(b, 48), f32] = matmul(x, t)
    z: Tensor[(b, 48), f32] = relu(y)
    return z
"""


def test_two_functions_share_a_weight_that_is_prepared(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((48, 32)).astype(np.float32)
    module = parse(SHARING, constants={"w": Constant((48, 32), f32, lambda: weight)})
    exe = tw.compile(module)
    model = loaded(tw.export(module, tmp_path / "made", name="sharing").directory, "sharing")
    for batch in (1, 5):
        x = rng.standard_normal((batch, 32)).astype(np.float32)
        product = run_graph(module, (x,), function="prefill")[0]
        for name, wanted in (("prefill", product), ("decode", np.maximum(product, 0))):
            np.testing.assert_allclose(exe[name](x), wanted, rtol=2e-5, atol=2e-5)
            assert np.array_equal(getattr(model, name)(x), exe[name](x))


def test_a_shared_library_updates_the_state(tmp_path: Path) -> None:
    made = tw.export(parse(ORDERED), tmp_path / "made", name="counter")
    model = loaded(made.directory, "counter")
    state = model.new_state(cache=np.full(8, 10, np.float32))
    results = [model.main(np.full(8, x, np.float32), state=state).tolist() for x in (100, 7)]
    assert results == EXPECTED
    assert state["cache"].tolist() == [7.0] * 8
    assert model.main(np.ones(8, np.float32)).tolist() == [2.0] * 8  # the default state is zero
    assert model.state["cache"].tolist() == [1.0] * 8
    model.close()


def test_a_webassembly_module_updates_the_state(tmp_path: Path) -> None:
    made = tw.export(parse(ORDERED), tmp_path / "made", kind="wasm", name="counter")
    node = shutil.which("node")
    assert node, "no node: `make test` finds or installs it"
    done = subprocess.run(
        [node, PROGRAMS / "state.mjs", made.directory], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["results"] == EXPECTED
    assert found["cache"] == [7.0] * 8
