"""States of exported models: sizes, initial values, sharing, errors, threads."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.export.errors import ExportError
from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant
from tilewright.ir.script import parse

from tests.codegen.export.test_package import loaded
from tests.ir.graph.state_programs import ORDERED

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
