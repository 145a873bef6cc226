"""States of exported models: sizes, initial values, sharing, errors, threads."""

from __future__ import annotations

import gc
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.errors import AliasError
from tilewright.codegen.export.errors import ExportError
from tilewright.codegen.export.link import run_linker
from tilewright.ir.dtype import f32
from tilewright.ir.importers import from_onnx
from tilewright.ir.module import Constant
from tilewright.ir.script import parse

from tests.codegen.export.test_package import loaded, loader_of
from tests.ir.graph.state_programs import ORDERED
from tests.ir.importers.onnx_models import attention_layer

SIZES = """
b = symbols("b", lower=0)
n = symbols("n", lower=1)
constant("start", (2,), f32)

@graph_func
def main(x: Tensor[(b, n), f32], seen: State[Tensor[(b, 2 * n + 1), f32]], count: State[Tensor[(2,), f32], const("start")]):
    t = concat(x, x, axis=1)
    new: Tensor[(b, 2 * n + 1), f32] = update_slice(seen, t, (0, 1))
    more: Tensor[(2,), f32] = add(count, 1.0)
    y = sum(seen, axes=(-1,), keepdims=False)
    return y, updates(seen=new, count=more)

@graph_func
def peek(count: State[Tensor[(2,), f32], const("start")]):
    y = multiply(count, 2.0)
    return y
"""  # noqa: E501


@pytest.fixture(scope="module")
def sized(tmp_path_factory: pytest.TempPathFactory) -> Any:
    start = np.array([5, 6], np.float32)
    module = parse(SIZES, constants={"start": Constant((2,), f32, lambda: start)})
    folder = tmp_path_factory.mktemp("sized") / "made"
    return loaded(tw.export(module, folder, name="sized").directory, "sized")


def test_states_have_sizes_and_initial_values(sized: Any) -> None:
    state, other = sized.new_state(b=2, n=3), sized.new_state(seen=np.ones((1, 3), np.float32), n=1)
    assert {k: v.shape for k, v in state.items()} == {"seen": (2, 7), "count": (2,)}
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert sized.main(x, state=state).tolist() == [0, 0]
    assert sized.main(x, state=state).tolist() == [6, 24]
    assert sized.main(np.full((1, 1), 9, np.float32), state=other).tolist() == [3]
    assert other["seen"].tolist() == [[1, 9, 9]]
    assert sized.peek(state=state).tolist() == [14, 16]  # functions share the state
    assert sized.peek(state=other).tolist() == [12, 14]
    state["count"] = 1
    assert sized.peek(state=state).tolist() == [2, 2]
    state.reset()
    assert state["count"].tolist() == [5, 6]
    assert not state["seen"].any()


def test_outputs_and_workspaces_of_the_caller(tmp_path: Path) -> None:
    start = np.array([5, 6], np.float32)
    module = parse(SIZES, constants={"start": Constant((2,), f32, lambda: start)})
    folder = tw.export(module, tmp_path / "made", name="sized", kind="static").directory
    program, library = tmp_path / "program", folder / "libsized.a"
    source = Path(__file__).parent / "programs" / "state_into.c"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{folder}"]
    run_linker(["cc", *flags, str(source), str(library), "-o", str(program)])
    done = subprocess.run(
        [program, folder / "sized.safetensors"], capture_output=True, text=True, check=True
    )
    result = "function 'main', result 'y' (Tensor((b,), f32)): "
    state = "function 'main', parameter 'seen' (Tensor((b, n * 2 + 1), f32))"
    given = "from the other arguments, got 3"
    assert done.stdout.splitlines() == [
        "state: 1 2",
        f"sizes: {state}: dimension 0 of shape (3, 7): expected b = 2 {given}",
        "short: 23",
        "call: 0 0",
        "call: 6 24",
        "allocations: 0",
        f"alias: {result}the output shares memory with parameter 'seen'",
        f"shape: {result}expected shape (2,), got shape (3,)",
        "null: function 'main': the state is null",
        "after: 6 24",
    ]


def test_an_output_of_a_call_with_a_state(sized: Any) -> None:
    state, x = sized.new_state(b=2, n=3), np.arange(6, dtype=np.float32).reshape(2, 3)
    y = np.ones(2, np.float32)
    assert sized.main(x, state=state, out=y) is y
    assert y.tolist() == [0, 0]
    sized.main(x, out=y, state=state)
    assert y.tolist() == [6, 24]


def test_memory_of_a_state_outlives_it(sized: Any) -> None:
    array = sized.new_state(b=2, n=3)["seen"]
    gc.collect()
    array[:] = 1
    assert array.sum() == 14


def test_wrong_states_are_errors(sized: Any) -> None:
    state = sized.new_state(b=2, n=3)
    x = np.ones((1, 3), np.float32)
    cases = [
        (lambda: sized.main(x), r"pass new_state\(b=4, n=4\)"),
        (lambda: sized.main(x, state=3), "expected a state of new_state.., got int"),
        (lambda: sized.main(x, state=state), r"parameter 'seen' .* expected b = 1 from"),
        (lambda: sized.new_state(k=1), "no state parameter or symbol 'k'; names are seen, count"),
        (lambda: sized.new_state(b=-1, n=1), "symbol 'b': expected 0 to 2147483647, got -1"),
        (lambda: sized.new_state(b=1 << 31, n=1), "symbol 'b': expected 0 to 2147483647"),
        (lambda: sized.new_state(b=2**31 - 1, n=2**31 - 1), "more elements than can be addressed"),
        (lambda: state["none"], "no state parameter 'none'"),
        (lambda: state.__setitem__("seen", np.ones(5, np.float32)), "state 'seen'"),
        (lambda: state.__setitem__("seen", np.ones((2, 7))), "state 'seen'"),
    ]  # fmt: skip
    for call, message in cases:
        with pytest.raises(Exception, match=message) as caught:
            call()
        assert type(caught.value).__name__ == "ModelError"
    assert sized.main(np.ones((2, 3), np.float32), state=state).tolist() == [0, 0]


LATER = """
@prim_func
def reversed_sum(c: InOut[(8,), f32], x: Buffer[(8,), f32]):
    for i in range(8):
        with block("u"):
            vi = spatial(i)
            c[vi] = c[vi] + x[7 - vi]

@graph_func
def main(x: Tensor[(8,), f32], total: State[Tensor[(8,), f32]]):
    new = call_tir(reversed_sum, total, x, updates=(0,))
    twice = call_tir(reversed_sum, new, new, updates=(0,))
    y = add(total, twice)
    return y, updates(total=twice)
"""


def test_a_state_that_is_used_after_its_successor_is_copied(tmp_path: Path) -> None:
    """So is an argument that aliases another one; a shared argument of the caller is an error."""
    module = parse(LATER)
    exe = tw.compile(module)
    assert not any(u.in_place for u in exe.memory().updates if u.memory == "total")
    loader = loader_of(tw.export(module, tmp_path / "made", name="later").directory, "later")
    exported, other = loader.load(), loader.load()
    state, own, total = exported.new_state(), exe.new_state(), np.zeros(8, np.float32)
    for k in range(3):
        x = np.arange(8, dtype=np.float32) + k
        new = total + x[::-1]
        twice = new + new[::-1]
        for found in (exported.main(x, state=state), exe(x, state=own)):
            assert found.tolist() == (total + twice).tolist()
        total = twice
        assert state["total"].tolist() == own["total"].tolist() == total.tolist()
    message = r"'total' \(state\) shares memory with 'x' \(in\)"
    with pytest.raises(Exception, match=message):
        exported.main(state["total"], state=state)
    with pytest.raises(AliasError, match=message):
        exe(own["total"], state=own)
    assert state["total"].tolist() == own["total"].tolist() == total.tolist()
    with pytest.raises(Exception, match="the state belongs to another model") as caught:
        other.main(np.ones(8, np.float32), state=state)
    assert caught.value.code == 20


def test_a_cache_that_grows_has_a_capacity(tmp_path: Path) -> None:
    module = from_onnx(attention_layer(), state={"past": "present"})
    exported = loaded(tw.export(module, tmp_path / "made", name="grown").directory, "grown")
    exe = tw.compile(module)
    state, own = (e.new_state(batch=2, capacity=5) for e in (exported, exe))
    for n in (3, 1, 0):
        x = np.full((2, n, 4), n / 4, np.float32)
        np.testing.assert_allclose(
            exported.main(x, state=state), exe(x, state=own), rtol=1e-6, atol=1e-6
        )
    assert state["length"] == own["length"] == 4
    with pytest.raises(Exception, match="seq = 2, past = 4, capacity = 5"):
        exported.main(np.ones((2, 2, 4), np.float32), state=state)
    state["length"] = 6
    with pytest.raises(Exception, match="seq = 0, past = 6, capacity = 5"):
        exported.main(np.ones((2, 0, 4), np.float32), state=state)
    state.reset()
    assert state["length"] == 0
    assert exported.main(np.ones((2, 5, 4), np.float32), state=state).shape == (2, 5, 4)


def test_sizes_of_states_may_be_products_of_several_symbols(tmp_path: Path) -> None:
    text = """
a, b = symbols("a b", lower=0)

@graph_func
def main(x: Tensor[(a, b), f32], seen: State[Tensor[(a * a * b + 1,), f32]]):
    new = add(seen, 1.0)
    return x, updates(seen=new)
"""
    model = loaded(tw.export(parse(text), tmp_path / "made", name="products").directory, "products")
    assert model.new_state(a=3, b=2)["seen"].shape == (19,)
    with pytest.raises(Exception, match="more elements than can be addressed"):
        model.new_state(a=2**31 - 1, b=2**31 - 1)


def test_calls_on_one_state_from_threads_are_not_mixed(sized: Any) -> None:
    state = sized.new_state(b=1, n=1)

    def count() -> None:
        for _ in range(200):
            sized.main(np.ones((1, 1), np.float32), state=state)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state["count"].tolist() == [805, 806]


def test_states_that_cannot_be_created_in_c_are_rejected(tmp_path: Path) -> None:
    text = SIZES.replace("2 * n + 1", "n // 2").replace("new: ", "# ").replace("seen=new, ", "")
    module = parse(text, constants={"start": Constant((2,), f32, lambda: np.zeros(2, np.float32))})
    with pytest.raises(ExportError, match="dimension n // 2, which is not a sum of products"):
        tw.export(module, tmp_path / "made")
    with pytest.raises(ExportError, match="'state_create' is reserved"):
        tw.export(parse(ORDERED.replace("def main", "def state_create")), tmp_path / "made")
