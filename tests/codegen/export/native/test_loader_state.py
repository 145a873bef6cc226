"""States of packed dtypes and 8-bit floats: executables, Python loader, C program, WebAssembly."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import StateError
from tilewright.codegen.export.link import run_linker
from tilewright.ir.dtype import dtype
from tilewright.ir.packing import PackedArray, pack

from tests.codegen.export.test_package import loaded

if TYPE_CHECKING:
    from pathlib import Path

SUMS = """
n = symbols("n", lower=0)
@prim_func
def push(x: Buffer[(n,), i4], total: State[(n,), i4], last: State[(3,), f8_e4m3], y: Out[(n,), i4]):
    for i in range(ceildiv(n, 2)):
        with block("total"):
            vi = spatial(i)
            total[vi] = total[vi] + x[vi]
    for j in range(n):
        with block("y"):
            vj = spatial(j)
            y[vj] = total[n - 1 - vj]
    for k in range(3):
        with block("last"):
            vk = spatial(k)
            last[vk] = f8_e4m3(f32(last[vk]) * 2.0 + 0.75)
"""
"""A sum of the first half of the elements, an odd number of which share bytes with the others."""

SIZES = (1, 2, 5, 8)


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values).astype(dtype("i4").numpy)


def expected(calls: int, x: np.ndarray[Any, Any]) -> tuple[list[int], list[float]]:
    """Return the two states after some calls."""
    whole, half = x.astype(int), -(-len(x) // 2)
    total = np.where(np.arange(len(x)) < half, calls * whole, 0)
    wrapped = (total + 8) % 16 - 8
    last = 0.0
    for _ in range(calls):
        last = float(np.float32(last * 2 + 0.75).astype(dtype("f8_e4m3").numpy))
    return wrapped.tolist(), [last] * 3


def example(size: int) -> np.ndarray[Any, Any]:
    return ints(*(np.arange(size) * 5 % 16 - 8))


@pytest.mark.parametrize("target", ["cpu", "simt"])
def test_states_keep_their_values_between_calls(target: str) -> None:
    run = tw.compile(tw.parse(SUMS), tw.Target(target))
    for size in SIZES:
        x, state = example(size), run.new_state(n=size)
        for call in range(1, 4):
            y = run(x, state=state)
            total, last = expected(call, x)
            assert y.astype(int).tolist() == total[::-1]
            if target == "cpu":
                assert state["total"].unpack().astype(int).tolist() == total
                assert state["last"].astype(float).tolist() == last


def test_the_memory_of_a_packed_state_is_packed() -> None:
    run = tw.compile(tw.parse(SUMS), tw.Target("cpu"))
    state = run.new_state(total=ints(1, 2, 3, 4, 5))
    held = state["total"]
    assert isinstance(held, PackedArray)
    assert held.data.nbytes == 3
    run(ints(1, 1, 1, 1, 1), state=state)
    assert state["total"] is held
    assert held.unpack().astype(int).tolist() == [2, 3, 4, 4, 5]
    other = state.copy()
    state["total"] = 7
    assert held.unpack().astype(int).tolist() == [7] * 5
    state["total"] = [-8, 0, 1, 2, 3]
    state["total"] = PackedArray.of(held.unpack(), "i4")
    assert held.unpack().astype(int).tolist() == [-8, 0, 1, 2, 3]
    assert other["total"].unpack().astype(int).tolist() == [2, 3, 4, 4, 5]
    state.reset()
    assert not held.data.any()
    assert "i4(5,)" in repr(state)
    assert "3 bytes" in str(state)


@pytest.mark.parametrize("value", [8, 0.5, [1, 2], np.zeros(5, np.int8), np.zeros(5, np.float32)])
def test_values_that_a_packed_state_cannot_have_are_rejected(value: Any) -> None:
    run = tw.compile(tw.parse(SUMS), tw.Target("cpu"))
    state = run.new_state(n=5)
    with pytest.raises(StateError, match=r"expected values for i4\(5,\)"):
        state["total"] = value


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("narrow") / "made"
    return tw.export(tw.parse(SUMS), folder, name="sums").directory


def test_states_of_the_python_loader(made: Path) -> None:
    model = loaded(made, "sums")
    for size in SIZES:
        x, state = example(size), model.new_state(n=size)
        held = state["total"]
        for call in range(1, 4):
            y = model.push(x, state=state)
            total, last = expected(call, x)
            assert y.astype(int).tolist() == total[::-1]
            assert held.unpack().astype(int).tolist() == total
            assert state["last"].astype(float).tolist() == last
    state["total"] = 3
    assert held.unpack().astype(int).tolist() == [3] * size
    state["total"] = example(size)
    assert held.data.tolist() == pack(example(size), dtype("i4")).tolist()
    with pytest.raises(Exception, match="not integers in -8 to 7"):
        state["total"] = 8
    state.reset()
    assert not held.data.any()


DTYPES = ("i4", "u2", "u8", "i8", "u64", "bool", "f8_e4m3", "bf16", "f32")
EVERY = """
@graph_func
def main_DTYPE(x: Tensor[(n,), DTYPE], s_DTYPE: State[Tensor[(n,), DTYPE]]):
    return s_DTYPE, updates(s_DTYPE=x)
"""


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A model with a function and a state of each dtype."""
    functions = (EVERY.replace("DTYPE", name) for name in (*DTYPES, "i32"))
    module = tw.parse('n = symbols("n", lower=0)\n' + "".join(functions))
    folder = tmp_path_factory.mktemp("every") / "made"
    return loaded(tw.export(module, folder, name="every").directory, "every")


@pytest.mark.parametrize("name", DTYPES)
def test_states_of_the_python_loader_are_arrays_of_their_dtype(name: str, every: Any) -> None:
    element, key, main = dtype(name).numpy, f"s_{name}", getattr(every, f"main_{name}")
    for size in (0, 1, 2, 5):
        x = (np.arange(size) % 2).astype(element)
        state, other = every.new_state(**{key: x}), every.new_state(n=size)
        for found in (np.array(state[key]), main(state[key], state=other)):
            assert (found.dtype, found.shape) == (x.dtype, x.shape)
        assert np.array(other[key]).tolist() == x.tolist()
        for value in (1, [1] * size, True):
            state.reset()
            state[key] = value
            assert np.array(state[key]).tolist() == np.ones(size, element).tolist()


@pytest.mark.parametrize(
    ("name", "value", "range_"),
    [("u8", 256, "0 to 255"), ("i8", [128], "-128 to 127"), ("bool", 2, "0 to 1"),
     ("u64", -1, "0 to 18446744073709551615"), ("u2", 4, "0 to 3"), ("i32", 0.5, "-2147483648")],
)  # fmt: skip
def test_numbers_that_a_state_of_the_python_loader_cannot_have_are_rejected(
    name: str, value: Any, range_: str, every: Any
) -> None:
    state = every.new_state(n=1)
    with pytest.raises(Exception, match=f"state 's_{name}': not integers in {range_}"):
        state[f"s_{name}"] = value


def test_packed_elements_of_the_python_loader_are_copied_to_arrays(made: Path) -> None:
    held = loaded(made, "sums").new_state(total=example(5))["total"]
    assert repr(held) == "Packed((5,), i4)"
    assert np.asarray(held, np.float32).tolist() == example(5).tolist()
    with pytest.raises(ValueError, match="an array is a copy"):
        np.array(held, copy=False)


PROGRAM = """
#define TILEWRIGHT_STDIO
#include "sums.h"
int main(void) {
  int64_t bytes = 0;
  tw_error error;
  tw_runtime runtime = tw_stdlib_runtime();
  void *weights = tw_read_file("sums.safetensors", &bytes);
  sums_model *model;
  sums_state *state;
  if (sums_open(&runtime, weights, bytes, &model, &error)) return 1;
  if (sums_state_create(model, 5, &state, &error)) return 1;
  unsigned char x[3] = {0x21, 0x43, 0x05};
  int64_t shape[1] = {5};
  tw_tensor in = tw_describe(x, shape, 1, 0, 4);
  for (int k = 0; k < 2; k++) {
    tw_result *y;
    if (sums_push(model, &in, state, &y, &error)) return printf("%s\\n", error.message), 1;
    tw_release(y);
  }
  const tw_tensor *total = sums_state_tensor(state, "total");
  const unsigned char *found = total->data;
  printf("%d %d %d %d\\n", total->dtype_bits, found[0], found[1], found[2]);
  sums_state_destroy(state);
  sums_close(model);
  free(weights);
  return 0;
}
"""


def test_states_of_a_c_program(tmp_path: Path) -> None:
    made = tw.export(tw.parse(SUMS), tmp_path / "made", kind="static", name="sums").directory
    (made / "main.c").write_text(PROGRAM)
    program = made / "program"
    run_linker(
        [
            "cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{made}", str(made / "main.c"),
            str(made / "libsums.a"), "-lm", "-o", str(program),
        ]
    )  # fmt: skip
    done = subprocess.run([program], cwd=made, capture_output=True, text=True, check=True)
    total, _ = expected(2, ints(1, 2, 3, 4, 5))
    assert done.stdout.split() == ["4", *map(str, pack(ints(*total), dtype("i4")))]


def test_states_in_node(tmp_path: Path) -> None:
    made = tw.export(tw.parse(SUMS), tmp_path / "made", kind="wasm", name="sums").directory
    x = example(5)
    (tmp_path / "run.mjs").write_text(f"""
import {{ load }} from "{made}/sums.mjs";
const model = await load();
const state = model.newState({{ n: 5 }});
const x = {{ data: Uint8Array.from({pack(x, dtype("i4")).tolist()}), shape: [5] }};
const found = [];
for (let k = 0; k < 2; k++) model.push(x, state);
found.push(Array.from(state.get("total").data), Array.from(state.get("last").data));
state.set("total", -3);
found.push(Array.from(state.get("total").data));
state.set("total", x);
found.push(Array.from(state.get("total").data));
state.reset();
found.push(Array.from(state.get("total").data));
console.log(JSON.stringify(found));
""")
    node = shutil.which("node")
    assert node, "no node: `make test` finds or installs it"
    done = subprocess.run([node, tmp_path / "run.mjs"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sums, last, filled, copied, cleared = json.loads(done.stdout)
    total, low = expected(2, x)
    assert sums == pack(ints(*total), dtype("i4")).tolist()
    assert last == np.array(low).astype(dtype("f8_e4m3").numpy).view(np.uint8).tolist()
    assert filled == [0xDD] * 3
    assert copied == pack(x, dtype("i4")).tolist()
    assert cleared == [0] * 3
